//! The trace of a run: what happened, as numbers, hashed as they come; the last ones are kept for whoever has to read
//! what led to a failure.

use std::collections::VecDeque;
mod words;

use lessor_proto::Time;

use self::words::{EntryText, Exact};

/// One thing that happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) at: Time,
    /// The time on the clock of `who`.
    pub(crate) local: Time,
    pub(crate) who: Speaker,
    pub(crate) what: Happening,
    /// Three numbers, which mean what [`Happening`] says.
    pub(crate) numbers: [u64; 3],
}

/// To whom it happened.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Speaker {
    /// All of the simulation.
    Simulation,
    Client(u32),
    Task(u32),
    Site(u32),
}

/// The kind of an event, with the meaning of its numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Happening {
    /// amount, until, resource
    MayUse,
    /// number
    Asks,
    /// number
    Releases,
    /// stream
    Connects,
    /// stream, report, whether it is a heartbeat
    Reports,
    /// stream
    SendsOther,
    /// stream
    Disconnects,
    /// order, capacity, held: what a report says of a lease
    Holds,
    /// holder, number
    Answers,
    /// holder, number
    Refuses,
    /// holder, epoch
    Sends,
    /// capacity, epoch, seq: what a message to a holder says
    Grants,
    /// epoch, time between heartbeats
    Welcomes,
    /// basis, grants
    Renews,
    /// stream
    IsConnected,
    /// stream
    IsDisconnected,
    /// number
    HearsAnswer,
    /// number
    HearsFailure,
    /// number
    HearsReleased,
    /// stream
    HearsDown,
    /// stream
    HearsClosed,
    /// wants as bits, resource
    Wants,
    /// life
    Begins,
    /// life
    Ends,
    /// until when
    Freezes,
    /// events kept back
    Thaws,
    /// epoch, that of the epoch it has read of, whether that had ended in order
    Leads,
    /// epoch, why
    Falls,
    /// whether authority is there
    Authority,
    /// number, what it is called for
    CallsEtcd,
    /// epoch of the leader it has heard of
    Follows,
    /// what has become of it, until when
    Etcd,
    /// parts per thousand million
    Rate,
    /// until when, direction
    Cut,
    /// resource, capacity
    Capacity,
    /// lease length
    Lease,
    /// resource, whether it is shared fairly
    Policy,
    /// stream, who hears
    Breaks,
    /// stream, until when
    Stalls,
    /// resource, units
    InUse,
    /// number, marks put, marks deleted
    Writes,
    /// whether a record was found, whether one is kept: a state directory
    Opens,
    /// for how long a clock stood still
    Loses,
    /// what has become of it, until when
    Disk,
    /// what it was, what it is: the way in which a site remembers
    Keeps,
    /// edition, the newest
    Edition,
    /// edition, the one that was in force
    Aside,
    /// resource, whether it is a gauge
    Kind,
    /// resource, whether as a gauge
    Reopens,
    /// hits granted, hits that count in the tier, on which ground
    Serves,
    /// limit of the domain
    Limits,
    /// whether a client or a site, which, what has become of its rights
    Right,
    /// edition of the rules, stream, what that means for it
    Reviews,
    /// resource, greatest priority, most clients
    Caps,
    /// resource, for how long (0: lifted), client (even) or site
    Recalls,
    /// resources of each node that are asked for
    Looks,
    /// resource, kind of the override, for how many seconds; or how many are in force
    Overrides,
}

/// The lines so far.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    hash: u64,
    last: VecDeque<Entry>,
    kept: usize,
}

/// Lines kept, if nobody says otherwise.
pub(crate) const KEPT: usize = 80;

// === impl Trace ===

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace { hash: 0xcbf2_9ce4_8422_2325, last: VecDeque::with_capacity(KEPT), kept: KEPT }
    }

    pub(crate) fn add(&mut self, line: Entry) {
        let who = match line.who {
            Speaker::Simulation => 0,
            Speaker::Client(index) => 1 << 32 | u64::from(index),
            Speaker::Site(index) => 2 << 32 | u64::from(index),
            Speaker::Task(index) => 3 << 32 | u64::from(index),
        };
        let [first, second, third] = line.numbers;
        self.mix(line.at.as_nanos());
        self.mix(who << 8 | line.what as u64);
        self.mix(first);
        self.mix(second);
        self.mix(third);
        if self.last.len() == self.kept {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    /// Keeps so many from here on, which should not be fewer than before.
    pub(crate) fn keep(&mut self, lines: usize) {
        self.kept = lines.max(self.last.len());
    }

    /// Of all lines.
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// The last of them, one below the other; `name` says what somebody is called.
    pub(crate) fn tell(&self, name: impl Fn(Speaker) -> String) -> String {
        let line = |line: &Entry| {
            format!(
                "{:>14} [{:>14}] {:<10} {}\n",
                Exact(line.at),
                Exact(line.local),
                name(line.who),
                EntryText(line)
            )
        };
        self.last.iter().map(line).collect()
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}
