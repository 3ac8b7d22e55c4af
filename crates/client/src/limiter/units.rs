//! Units that are asked for one by one, where a lease brings less than one in the burst.
//!
//! Waiters are counted, and so many are asked for. An attempt that does not wait is denied, and one is asked for, for the
//! next attempt: it is good for one more round trip, and the grantor counts it for the burst. Where attempts come often, it is
//! good until the next one should have come, and with each that is granted, from the third on, one is asked for ahead. How many are *missing* is
//! said anew whenever that changes, and says everything; so nothing is lost with a message.

use std::task::Waker;
use std::time::Duration;

use lessor_proto::Time;

/// A round trip before the first was measured.
const FIRST_TRIP: Duration = Duration::from_millis(20);
/// What is taken for a round trip at the least, and at the most.
const TRIPS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(500)];

/// Attempts that are not further apart come often.
const OFTEN: Duration = Duration::from_millis(500);

/// What a limiter asks its grantor for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Wish {
    /// So many units are missing at this moment.
    pub missing: u32,
    /// Some of them are for those who do not wait: from the asking on they are good for so long, and then nobody has them.
    pub keep: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Units {
    /// Whether units are had by asking.
    asks: bool,
    /// Units that the grantor sent and nobody has taken.
    there: u32,
    /// When they are lost.
    stale_at: Time,
    /// The attempt that a unit was asked for last, if none was sent yet.
    tried: Option<Try>,
    /// When somebody last came who does not wait.
    attempt: Option<Time>,
    /// How often in a row that was soon after the one before.
    often: u32,
    /// When somebody was first missed that is still missing.
    since: Option<Time>,
    /// How long an answer takes, about.
    trip: Duration,
    /// Units missing when that was last looked at.
    seen: u32,
    bell: Option<Waker>,
}

/// An attempt for which a unit was asked for.
#[derive(Clone, Copy, Debug)]
struct Try {
    at: Time,
    /// So long after that the unit is good for.
    keep: Duration,
}

// === impl Units ===

impl Units {
    pub(super) const fn new() -> Units {
        Units {
            asks: false,
            there: 0,
            stale_at: Time::ZERO,
            tried: None,
            attempt: None,
            often: 0,
            since: None,
            trip: FIRST_TRIP,
            seen: 0,
            bell: None,
        }
    }

    pub(super) fn call(&mut self, bell: Waker) {
        self.bell = Some(bell);
    }

    /// Units are asked for from here on, or are not.
    pub(super) fn ask(&mut self, asks: bool) {
        if self.asks != asks {
            self.asks = asks;
            (self.there, self.tried, self.since, self.seen) = (0, None, None, 0);
        }
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asks
    }

    pub(super) fn there(&self) -> u32 {
        self.there
    }

    pub(super) fn take(&mut self, n: u32) {
        self.there -= n;
    }

    /// Until when nobody needs to come, as one was asked for; or one is there.
    pub(super) fn asked_until(&self) -> Time {
        match self.tried {
            Some(tried) if self.there == 0 => tried.at + self.trip,
            _ => Time::ZERO,
        }
    }

    /// Nobody came in time for what was sent, or nothing was sent in time. What is waited for is not lost.
    pub(super) fn drop_stale(&mut self, now: Time, waited: u64) {
        if waited == 0 && now >= self.stale_at {
            self.there = 0;
        }
        self.tried.take_if(|tried| now >= tried.until());
    }

    /// The grantor has sent `n`, while `waited` are waited for. What is for nobody who waits is good for a while, if it was
    /// asked for.
    pub(super) fn bring(&mut self, n: u32, now: Time, waited: u64) {
        if !self.asks {
            return;
        }
        if let Some(since) = self.since.take() {
            let [least, most] = TRIPS;
            self.trip = ((self.trip * 3 + now.since(since)) / 4).clamp(least, most);
        }
        self.drop_stale(now, waited);
        let waited = u32::try_from(waited).unwrap_or(u32::MAX);
        let kept = waited.saturating_add(u32::from(self.tried.is_some()));
        self.there = self.there.saturating_add(n).min(kept);
        self.stale_at = self.tried.map_or(now, Try::until);
        if self.there > waited {
            self.tried = None;
        }
        self.seen = self.missing(waited.into());
    }

    /// An attempt to take `n` was denied: after how long to come again, if units are asked for.
    pub(super) fn try_later(&mut self, n: u32, now: Time) -> Option<Duration> {
        if !self.asks {
            return None;
        }
        if n == 1 {
            let keep = self.came(now).unwrap_or(self.trip * 2);
            self.tried.get_or_insert(Try { at: now, keep });
        }
        Some(self.tried.map_or(self.trip, |tried| (tried.at + self.trip).since(now)))
    }

    /// Somebody who does not wait was granted what was sent. If more will come soon, one is asked for ahead.
    pub(super) fn granted(&mut self, now: Time) {
        if self.asks
            && let Some(keep) = self.came(now)
            && self.there == 0
            && self.often > 1
        {
            self.tried.get_or_insert(Try { at: now, keep });
        }
    }

    /// Somebody came who does not wait: how long a unit for the next one is good for, if these come often.
    fn came(&mut self, now: Time) -> Option<Duration> {
        let apart = now.since(self.attempt.replace(now)?);
        self.often = if apart <= OFTEN { self.often.saturating_add(1) } else { 0 };
        (apart <= OFTEN).then(|| (apart * 2).max(self.trip * 2))
    }

    /// What is missing while `waited` are waited for; nothing if units are not asked for.
    pub(super) fn wish(&mut self, now: Time, waited: u64) -> Option<Wish> {
        if !self.asks {
            return None;
        }
        self.drop_stale(now, waited);
        let missing = self.missing(waited);
        self.seen = missing;
        self.since = self.since.or_else(|| (missing > 0).then_some(now)).filter(|_| missing > 0);
        Some(Wish { missing, keep: self.tried.map(|tried| tried.until().since(now)) })
    }

    /// Whom to wake if something else is missing than was last said.
    pub(super) fn take_bell(&mut self, waited: u64) -> Option<Waker> {
        let missing = self.missing(waited);
        let is_news = self.asks && std::mem::replace(&mut self.seen, missing) != missing;
        if is_news { self.bell.clone() } else { None }
    }

    fn missing(&self, waited: u64) -> u32 {
        let waited = u32::try_from(waited).unwrap_or(u32::MAX);
        waited.saturating_add(u32::from(self.tried.is_some())).saturating_sub(self.there)
    }
}

// === impl Try ===

impl Try {
    fn until(self) -> Time {
        self.at + self.keep
    }
}
