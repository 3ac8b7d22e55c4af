//! A task of the world: its candidate and its clock, and what it believes while it leads.

use std::collections::{BTreeSet, VecDeque};

use lessor_proto::Time;
use lessor_server::election::{Candidate, Leader, Ticket};
use lessor_sim::clock::{Clock, PERFECT};
use lessor_sim::rng::Rng;

use super::Happening;

/// Clocks err by up to a twentieth.
pub(super) const DRIFT: u32 = 50_000;

/// A task, and what it believes.
pub(super) struct Task {
    pub(super) clock: Clock,
    pub(super) candidate: Option<Candidate>,
    pub(super) life: u64,
    /// The events that come while it is frozen.
    pub(super) frozen: Option<VecDeque<Happening>>,
    /// Nothing gets to etcd or comes from it.
    pub(super) is_cut: bool,
    /// When it will wake up next.
    pub(super) wakes: Time,
    pub(super) books: Option<Books>,
    pub(super) leader: Option<Leader>,
    /// The watches that it believes to have.
    pub(super) watching: BTreeSet<u64>,
    /// The time at which the latest news on a watch is seen: news comes in the order in which it was.
    pub(super) seen_until: Time,
}

/// The beliefs of a leader.
pub(super) struct Books {
    pub(super) epoch: u64,
    /// The record says that at least so much is out.
    pub(super) mark: u64,
    pub(super) writing: Option<(Ticket, u64)>,
    /// The amount that may be out under one who was deposed by hand, and the time until which it may.
    pub(super) floor: (u64, Time),
}

// === impl Task ===

impl Task {
    pub(super) fn new(rng: &mut Rng) -> Task {
        Task {
            clock: clock(rng, Time::ZERO),
            candidate: None,
            life: 0,
            frozen: None,
            is_cut: false,
            wakes: Time::MAX,
            books: None,
            leader: None,
            watching: BTreeSet::new(),
            seen_until: Time::ZERO,
        }
    }

    /// Whether it would act if it did anything at this moment. Frozen or not: it may go on at any.
    pub(super) fn may_act(&self, now: Time) -> bool {
        let until = self.candidate.as_ref().and_then(Candidate::authority_until);
        until.is_some_and(|until| self.clock.at(now) < until)
    }

    pub(super) fn end(&mut self) {
        self.candidate = None;
        self.books = None;
        self.leader = None;
        self.watching.clear();
    }
}

/// A rate at which a clock may go, mostly one at the edges.
pub(super) fn rate(rng: &mut Rng) -> u64 {
    let (least, most) = (PERFECT - u64::from(DRIFT) * 1_000, PERFECT + u64::from(DRIFT) * 1_000);
    match rng.below(3) {
        0 => least,
        1 => most,
        _ => rng.between(least, most),
    }
}

/// A clock that shows anything, at such a rate.
pub(super) fn clock(rng: &mut Rng, now: Time) -> Clock {
    let shown = Time::from_nanos(rng.below(1_000_000_000_000_000));
    let rate = rate(rng);
    Clock::new(now, shown, rate)
}
