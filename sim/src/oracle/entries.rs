//! The entries of the tier of a shared domain, for the judge: from when on hits count where windows are reset.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_algorithms::tiers::Windows;
use lessor_proto::Time;

use crate::plan::SharedDomainPlan;

/// At the most so many entries are remembered.
const MOST: usize = 1_000;

/// The entries that were made, by whom, and when.
#[derive(Debug)]
pub(super) struct Entries {
    windows: Windows,
    active: Duration,
    log: VecDeque<TierEntry>,
}

#[derive(Clone, Copy, Debug)]
struct TierEntry {
    at: Time,
    client: u32,
    life: u32,
    /// Whether it was made by somebody who did not have to know of an earlier one.
    counts: bool,
}

// === impl Entries ===

impl Entries {
    pub(super) fn new(plan: &SharedDomainPlan) -> Entries {
        Entries { windows: plan.windows, active: plan.active, log: VecDeque::new() }
    }

    /// The last entry, if the tier is active for longer than `slack` by all that may count. Of entries that are made by those
    /// who do not know of each other the earliest counts.
    pub(super) fn active_since(&self, now: Time, slack: Duration) -> Option<Time> {
        let recent = self.counting().take_while(|&at| now.since(at) < self.active + slack);
        let (last, first) = recent.fold((None, None), |(last, _), at| (last.or(Some(at)), Some(at)));
        last.filter(|_| first.is_some_and(|first| now.since(first) + slack < self.active))
    }

    /// The first time from which a hit counts for whoever must know of it; it may seem to be made so much too early.
    pub(super) fn must_count_from(&self, now: Time, early: Duration) -> Time {
        match (self.windows, self.active_since(now, early)) {
            (Windows::Keep, _) => Time::ZERO,
            (Windows::Reset, Some(last)) => last + early,
            (Windows::Reset, None) => now,
        }
    }

    /// The last entry of all, from which on hits count if everybody knows of it.
    pub(super) fn last(&self) -> Time {
        match self.windows {
            Windows::Keep => Time::ZERO,
            Windows::Reset => self.counting().next().unwrap_or(Time::ZERO),
        }
    }

    /// The entries that count, the last one first.
    fn counting(&self) -> impl Iterator<Item = Time> {
        self.log.iter().rev().filter(|entry| entry.counts).map(|entry| entry.at)
    }

    /// The first time from which a hit may count for a client: its own last entry, or one before that which may be the same.
    pub(super) fn may_count_from(&self, client: u32, life: u32, late: Duration) -> Time {
        let is_own = |entry: &&TierEntry| (entry.client, entry.life) == (client, life);
        let own = self.log.iter().rev().find(is_own).filter(|_| self.windows == Windows::Reset);
        let Some(own) = own.map(|own| own.at) else { return Time::ZERO };
        let before = self.log.iter().rev().map(|entry| entry.at).filter(|&at| at < own);
        // Of two entries so close to each other the earlier counts.
        let first = before.fold(own, |first, at| if first.since(at) < self.active { at } else { first });
        Time::from_nanos(first.as_nanos().saturating_sub(late.as_nanos() as u64))
    }

    /// A client enters the tier. It counts for all if it did not have to know of an earlier entry.
    pub(super) fn enter(&mut self, at: Time, who: (u32, u32), is_known: bool) {
        let (client, life) = who;
        self.log.push_back(TierEntry { at, client, life, counts: !is_known });
        if self.log.len() > MOST {
            self.log.pop_front();
        }
    }
}
