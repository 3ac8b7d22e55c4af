//! The parts of a state of the model: processes, and what is on its way between them.
//!
//! Parts are shared between states until one of them changes, and each remembers its fingerprint: a hash of what its
//! `Debug` shows. That names every field of the real machines, times included, and nothing is left out but counters which
//! nothing reads back ([`STATISTICS`]). `Debug` shows times in whole milliseconds; all that happens in the model happens
//! two of them apart at least, so that two different moments look different.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::session::Session;
use lessor_proto::message::{Answer, Ask, Down, Order, Release, Up};
use lessor_proto::{Amount, Time};
use lessor_server::node::{Node, Peer};

use super::bounds::Rate;

/// Counters for people, by how they begin and end in what `Debug` shows: states that differ in them alone are the same.
/// `sessions` numbers holders that draw no incarnation, of which there are none here.
const STATISTICS: [(&str, &str); 3] =
    [("counts: Counts {", "}"), ("tally: Tally {", "}"), ("sessions: ", ",")];

/// A part with its fingerprint.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    value: T,
    /// 0: it has changed.
    print: u64,
}

/// A holder: a client, or a node towards the one above it, by number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Actor {
    Client(usize),
    Node(usize),
}

/// A client process.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub(crate) session: Session,
    pub(crate) name: &'static str,
    pub(crate) incarnation: u64,
    pub(crate) rate: Rate,
    /// The node it asks.
    pub(crate) home: usize,
    pub(crate) alive: bool,
    /// Whether it wants anything at all.
    pub(crate) joined: bool,
    /// Whether it has left, and come back.
    pub(crate) came_back: bool,
    pub(crate) wants: u64,
    /// The allowance that its program was told last.
    pub(crate) told: Allowance,
    /// Which grant that is.
    pub(crate) order: Option<Order>,
    /// The last promise: to use no more than so much under grants up to that one.
    pub(crate) promised: Option<(Order, Amount)>,
    pub(crate) line: Line,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) node: Node,
    pub(crate) rate: Rate,
    pub(crate) epoch: u64,
    pub(crate) line: Line,
}

/// The record of what a holder has said, for the budget.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Line {
    pub(crate) words: u8,
    /// The last request: the answer to an earlier one is passed over.
    pub(crate) last: u64,
}

/// A message on its way that is not on a stream: it arrives at any time later, or never.
#[derive(Clone, Debug)]
pub(crate) enum Delivery {
    Ask { from: Actor, id: u64, ask: Ask },
    Answer { to: Actor, id: u64, answer: Answer },
    Release { from: Actor, id: u64, release: Release },
    Released { to: Actor, id: u64 },
}

/// A stream: what is on its way, in order. Nothing: the end.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) holder: Actor,
    pub(crate) id: u64,
    /// The other end, while it has it open.
    pub(crate) peer: Option<Peer>,
    /// Whether the holder has it open.
    pub(crate) heard: bool,
    /// Whether it still takes messages up.
    pub(crate) mute: bool,
    pub(crate) up: VecDeque<Option<Up>>,
    pub(crate) down: VecDeque<Option<Down>>,
}

// === impl Kept ===

impl<T: Clone + fmt::Debug> Kept<T> {
    pub(crate) fn new(value: T) -> Arc<Kept<T>> {
        Arc::new(Kept { value, print: 0 })
    }

    /// To change it.
    pub(crate) fn change(this: &mut Arc<Kept<T>>) -> &mut T {
        let kept = Arc::make_mut(this);
        kept.print = 0;
        &mut kept.value
    }

    /// Computes the fingerprint, if it has changed.
    pub(crate) fn seal(this: &mut Arc<Kept<T>>, paper: &mut String) {
        if this.print == 0 {
            paper.clear();
            write!(paper, "{:?}", this.value).expect("a string takes everything");
            Arc::make_mut(this).print = fingerprint(paper);
        }
    }

    pub(crate) fn print(&self) -> u64 {
        self.print
    }
}

impl<T> std::ops::Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

fn fingerprint(mut text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let next = |text: &str| {
        let found = STATISTICS.iter().filter_map(|&(begin, end)| Some((text.find(begin)?, end)));
        found.min()
    };
    while let Some((begin, end)) = next(text) {
        hasher.write(&text.as_bytes()[..begin]);
        let rest = &text[begin..];
        text = &rest[rest.find(end).map_or(rest.len(), |at| at + end.len())..];
    }
    hasher.write(text.as_bytes());
    hasher.finish().max(1)
}

// === impl Client ===

impl Client {
    /// The amount that it would use at `real` time.
    pub(crate) fn uses(&self, real: u64) -> Amount {
        let live = self.alive && self.rate.at(real) < self.told.until;
        if live { self.told.capacity.unwrap_or(Amount::MAX) } else { Amount::ZERO }
    }
}

// === impl Rate ===

impl Rate {
    /// The time that the clock shows at `real` time.
    pub(crate) fn at(self, real: u64) -> Time {
        Time::from_nanos(real * self.0 / 4)
    }

    /// Whether `time` on this clock is not before `other` on a clock of that `rate`, but for the rounding of clocks.
    pub(crate) fn reaches(self, time: Time, rate: Rate, other: Time) -> bool {
        u128::from(time.as_nanos() + 2) * u128::from(rate.0)
            >= u128::from(other.as_nanos()) * u128::from(self.0)
    }
}
