//! The log of all hits of a shared domain, wherever they were made, and of the limits that were configured.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::Time;

use super::{EARLY, TOO_LATE};

/// The hits of the last windows, and the limits.
#[derive(Debug)]
pub(super) struct HitLog {
    window: Duration,
    hits: VecDeque<DomainHit>,
    /// The limits that were configured, and when.
    limits: Vec<(Time, u32)>,
}

/// A hit that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainHit {
    pub(super) at: Time,
    pub(super) client: u32,
    pub(super) life: u32,
    /// There was room for it, whoever knew of it.
    had_room: bool,
}

// === impl HitLog ===

impl HitLog {
    pub(super) fn new(window: Duration, limit: u32) -> HitLog {
        HitLog { window, hits: VecDeque::new(), limits: vec![(Time::ZERO, limit)] }
    }

    /// The hits, the earliest first.
    pub(super) fn hits(&self) -> impl Iterator<Item = &DomainHit> {
        self.hits.iter()
    }

    pub(super) fn change_limit(&mut self, now: Time, limit: u32) {
        self.limits.push((now, limit));
    }

    /// A hit is made now. Hits count that were made within `counting`.
    pub(super) fn make(&mut self, now: Time, (client, life): (u32, u32), counting: Duration) {
        let made = self.count(now, counting.min(self.window + TOO_LATE));
        let had_room = made < self.least_limit(now) as usize;
        self.hits.push_back(DomainHit { at: now, client, life, had_room });
        while self.hits.front().is_some_and(|hit| now.since(hit.at) > self.window * 4) {
            self.hits.pop_front();
        }
    }

    /// The hits of the time before `now`.
    pub(super) fn count(&self, now: Time, time: Duration) -> usize {
        self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= time).count()
    }

    /// The hits without room, of the last two windows.
    pub(super) fn excess(&self, now: Time) -> usize {
        let recent = self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= self.window * 2 + EARLY);
        recent.filter(|hit| !hit.had_room).count()
    }

    /// The hits of the last two windows, the latest first: how long ago, by whom, and whether there was room.
    pub(super) fn table(&self, now: Time) -> String {
        let recent = self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= self.window * 2);
        let row = |hit: &DomainHit| {
            let sign = if hit.had_room { "" } else { "!" };
            format!(" {:.3}:c{}{sign}", now.since(hit.at).as_secs_f64(), hit.client)
        };
        recent.map(row).collect()
    }

    /// The least limit that anybody may go by, or may have gone by in the last windows.
    fn least_limit(&self, now: Time) -> u32 {
        let ends = |index: usize| self.limits.get(index + 1).map_or(Time::MAX, |&(at, _)| at);
        let recent = self.limits.iter().enumerate();
        let recent = recent.filter(|&(index, _)| now.since(ends(index).min(now)) <= self.window * 4);
        recent.map(|(_, &(_, limit))| limit).min().unwrap_or(0)
    }
}
