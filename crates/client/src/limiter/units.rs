//! Units that are asked for one by one, where a lease brings less than one in the burst.
//!
//! Waiters are counted, and so many are asked for; what is sent for them is used when it arrives, or never. An attempt that
//! does not wait is denied, and one is asked for, for the next attempt, to be *kept*: it is good for as long as the grantor
//! says that it counts it. What is used or lost of those is said, so that it counts no longer than that. The next attempt is to
//! come after a round trip, the shortest of late, and then again and again, the less often the longer it has taken, but often
//! enough to find the unit. Where attempts come often of their own accord, a unit is kept until the next one should have come,
//! and with each that is granted, from the third on, one is asked for ahead. How many are *missing* is said anew whenever
//! that changes, and says everything; so nothing is lost with a message.

use std::task::Waker;
use std::time::Duration;

use lessor_proto::{Amount, Time};

/// A round trip before the first was measured.
const FIRST_TRIP: Duration = Duration::from_millis(20);
/// The bounds of what is taken for a round trip.
const TRIPS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(500)];
/// The age from which measurements count no more, or from twice of it.
const OF_LATE: Duration = Duration::from_secs(10);
/// The bounds of the time for which a unit is asked to be kept. A grantor keeps none for longer.
const KEEPS: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];
/// Attempts that come no later than that after they could have come often.
const OFTEN: Duration = Duration::from_millis(500);
/// An attempt for which a unit was asked for longer ago than a round trip comes again after this part of the time since.
const OVERDUE_PART: u32 = 8;

/// The units that a limiter asks its grantor for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UnitWish {
    /// The number of units that are missing at this moment.
    pub missing: u32,
    /// The number of them that are for attempts that do not wait.
    pub kept: u32,
    /// The time for which those are to be kept; absent if there are none.
    pub keep: Option<Duration>,
    /// Units that were sent to be kept, and were neither used nor lost yet.
    pub held: u32,
}

/// Units that a grantor sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentUnits {
    /// The number of units.
    pub units: u32,
    /// The number of them that are to be kept for attempts that do not wait, and the time for which they are.
    /// Absent: all, for as long as was asked.
    pub keep: Option<(u32, Duration)>,
}

#[derive(Debug)]
pub(super) struct Units {
    /// The rate that is had by asking, in millionths of a unit a second; zero if nothing is.
    rate: u64,
    /// Units that came for those who wait, and were not taken yet.
    there: u32,
    /// Units that are kept for attempts that do not wait.
    held: u32,
    /// When those are lost.
    stale_at: Time,
    /// The attempts that units were asked for, if some were not sent yet.
    tried: Option<Try>,
    /// From when on the next attempt may come that does not wait: when the last one was granted, or was told to come again.
    expected: Option<Time>,
    /// The number of times in a row that this was soon after.
    often: u32,
    /// When somebody was first missed that is still missing.
    since: Option<Time>,
    /// The shortest time that an answer took in this while, and in the one before.
    trips: [Option<Duration>; 2],
    /// When this while began.
    turned: Time,
    /// The wish when that was last looked at.
    seen: UnitWish,
    notifier: Option<Waker>,
}

/// Attempts for which units were asked for.
#[derive(Clone, Copy, Debug)]
struct Try {
    at: Time,
    /// When they are to come again.
    due: Time,
    /// It was asked for before anybody came.
    is_ahead: bool,
    /// Units that were not sent yet.
    missing: u32,
    /// The time for which they are to be kept.
    keep: Duration,
}

// === impl UnitWish ===

impl UnitWish {
    /// Whether the grantor does not know this, who knows what was wished `before`, and what it has sent since.
    pub(crate) fn is_news_after(&self, before: &UnitWish) -> bool {
        (before.missing, before.kept) != (self.missing, self.kept) || self.held < before.held
    }
}

// === impl SentUnits ===

impl SentUnits {
    /// Units for those who wait.
    #[must_use]
    pub const fn now(units: u32) -> SentUnits {
        SentUnits { units, keep: Some((0, Duration::ZERO)) }
    }
}

// === impl Units ===

impl Units {
    pub(super) const fn new() -> Units {
        Units {
            rate: 0,
            there: 0,
            held: 0,
            stale_at: Time::ZERO,
            tried: None,
            expected: None,
            often: 0,
            since: None,
            trips: [None; 2],
            turned: Time::ZERO,
            seen: UnitWish { missing: 0, kept: 0, keep: None, held: 0 },
            notifier: None,
        }
    }

    pub(super) fn call(&mut self, notifier: Waker) {
        self.notifier = Some(notifier);
    }

    /// Sets the rate that is had by asking from here on, in millionths of a unit a second.
    pub(super) fn ask(&mut self, rate: u64) {
        if (self.rate > 0) != (rate > 0) {
            (self.there, self.held, self.tried, self.since) = (0, 0, None, None);
            self.seen = UnitWish::default();
        }
        self.rate = rate;
    }

    pub(super) fn is_asking(&self) -> bool {
        self.rate > 0
    }

    pub(super) fn there(&self) -> u32 {
        self.there.saturating_add(self.held)
    }

    /// Takes units that are there; those that were sent for who waits first.
    pub(super) fn take(&mut self, n: u32) {
        let now = n.min(self.there);
        self.there -= now;
        self.held -= n - now;
    }

    /// Until when nobody needs to come, as one was asked for; or one is there.
    pub(super) fn asked_until(&self) -> Time {
        match self.tried {
            Some(tried) if self.there() == 0 && tried.missing >= self.most_missing() && !tried.is_ahead => {
                tried.due
            }
            _ => Time::ZERO,
        }
    }

    /// Nobody came in time for what was sent, or comes any more for what was not. Units for those who wait are lost when nobody
    /// does.
    pub(super) fn drop_stale(&mut self, now: Time, waited: u64) {
        if waited == 0 {
            self.there = 0;
            if now >= self.stale_at {
                self.held = 0;
            }
        }
        self.tried.take_if(|tried| now >= tried.until());
    }

    /// Units have come, while `waited` are waited for. Those that are to be kept are lost if nobody comes for them any more.
    pub(super) fn bring(&mut self, sent: SentUnits, now: Time, waited: u64) {
        if !self.is_asking() {
            return;
        }
        if let Some(since) = self.since.take() {
            self.measure(now.since(since), now);
        }
        self.drop_stale(now, waited);
        let waited = u32::try_from(waited).unwrap_or(u32::MAX);
        let (kept, keep) =
            sent.keep.unwrap_or_else(|| (sent.units, self.tried.map_or(Duration::ZERO, |tried| tried.keep)));
        let kept = kept.min(sent.units);
        self.there = self.there.saturating_add(sent.units - kept).min(waited);
        let comes = self.tried.map_or(0, |tried| tried.missing);
        let held = kept.min(comes.saturating_add(waited.saturating_sub(self.there())));
        if held > 0 {
            // All of them are lost with the first.
            let stale_at = now + keep;
            self.stale_at = if self.held > 0 { self.stale_at.min(stale_at) } else { stale_at };
            self.held = self.held.saturating_add(held);
        }
        if let Some(tried) = &mut self.tried {
            tried.missing = tried.missing.saturating_sub(kept);
        }
        self.tried.take_if(|tried| tried.missing == 0);
        // By so many less are missing, and so many more held: that needs not be said.
        self.seen.missing = self.seen.missing.saturating_sub(sent.units);
        self.seen.kept = self.seen.kept.saturating_sub(kept);
        self.seen.held = self.seen.held.saturating_add(kept);
    }

    /// Units that were taken for who waited, and turned out to be of no use: they go to who waits next, or are lost.
    pub(super) fn give_back(&mut self, n: u32, waited: u64) {
        if self.is_asking() {
            let waited = u32::try_from(waited).unwrap_or(u32::MAX);
            self.there = self.there.saturating_add(n).min(waited);
        }
    }

    /// An attempt to take `n` was denied: after how long to come again, if units are asked for.
    pub(super) fn try_later(&mut self, n: u32, now: Time) -> Option<Duration> {
        if !self.is_asking() {
            return None;
        }
        if n == 1 {
            let late = self.came(now);
            let most = self.most_missing();
            let mut tried = self.tried.unwrap_or(self.attempt_at(now, late));
            if tried.is_ahead {
                (tried.is_ahead, tried.due) = (false, tried.due.max(now + TRIPS[0]));
            } else if now < tried.due {
                // Nobody was to come again so soon: this is somebody else.
                tried.missing = tried.missing.saturating_add(1).min(most);
            } else {
                // It is to find the unit before that is lost.
                let again = (now.since(tried.at) / OVERDUE_PART).min(tried.keep / 2);
                tried.due = now + again.max(TRIPS[0]);
            }
            self.tried = Some(tried);
            self.expected = Some(tried.due);
        }
        Some(self.tried.map_or(self.trip(), |tried| tried.due.since(now)))
    }

    fn measure(&mut self, trip: Duration, now: Time) {
        let [late, before] = &mut self.trips;
        if now.since(self.turned) >= OF_LATE {
            (*late, *before, self.turned) = (None, *late, now);
        }
        *late = Some(late.map_or(trip, |least| least.min(trip)));
    }

    /// The shortest time that an answer takes.
    fn trip(&self) -> Duration {
        let [least, most] = TRIPS;
        self.trips.into_iter().flatten().min().unwrap_or(FIRST_TRIP).clamp(least, most)
    }

    /// Nothing was asked for yet.
    fn attempt_at(&self, now: Time, late: Option<Duration>) -> Try {
        let [least, most] = KEEPS;
        // Whoever was told to come again does so after a trip, which may be shorter than is known, and then often enough; but
        // some come when they like.
        let early = if self.trips == [None; 2] { FIRST_TRIP } else { Duration::ZERO };
        let keep = (late.unwrap_or_default() * 2).max(early + least).min(most);
        Try { at: now, due: now + self.trip(), is_ahead: false, missing: 0, keep }
    }

    /// Somebody who does not wait was granted what was sent. If more will come soon, one is asked for ahead.
    pub(super) fn granted(&mut self, now: Time) {
        if self.is_asking()
            && let late @ Some(_) = self.came(now)
            && self.there() == 0
            && self.often > 1
        {
            let ahead = Try { is_ahead: true, missing: 1, ..self.attempt_at(now, late) };
            self.tried.get_or_insert(ahead);
        }
        self.expected = Some(now);
    }

    /// The one who was denied waits from here on.
    pub(super) fn waits_instead(&mut self) {
        self.tried = None;
    }

    /// Somebody came who does not wait: how long after that was expected, if these come often.
    fn came(&mut self, now: Time) -> Option<Duration> {
        let late = now.since(self.expected?);
        self.often = if late <= OFTEN { self.often.saturating_add(1) } else { 0 };
        (late <= OFTEN).then_some(late)
    }

    /// The most units that are asked for at a time for those who do not wait: what the lease brings until they come, and one.
    fn most_missing(&self) -> u32 {
        let brought = u128::from(self.rate) * self.trip().as_nanos() / 1_000_000_000;
        u32::try_from(brought / u128::from(Amount::MICROS_PER_UNIT)).unwrap_or(u32::MAX - 1) + 1
    }

    /// The units that are missing while `waited` are waited for; nothing if units are not asked for.
    pub(super) fn wish(&mut self, now: Time, waited: u64) -> Option<UnitWish> {
        if !self.is_asking() {
            return None;
        }
        self.drop_stale(now, waited);
        self.seen = self.wished(waited);
        let is_missing = self.seen.missing > 0;
        self.since = self.since.or_else(|| is_missing.then_some(now)).filter(|_| is_missing);
        Some(self.seen)
    }

    /// The waker to wake if something else is missing than was last said, or less is held.
    pub(super) fn take_notifier(&mut self, waited: u64) -> Option<Waker> {
        let wished = self.wished(waited);
        let is_news = self.is_asking() && wished.is_news_after(&std::mem::replace(&mut self.seen, wished));
        if is_news { self.notifier.clone() } else { None }
    }

    fn wished(&self, waited: u64) -> UnitWish {
        let waited = u32::try_from(waited).unwrap_or(u32::MAX);
        let kept = self.tried.map_or(0, |tried| tried.missing);
        let missing = waited.saturating_sub(self.there()).saturating_add(kept);
        UnitWish { missing, kept, keep: self.tried.map(|tried| tried.keep), held: self.held }
    }
}

// === impl Try ===

impl Try {
    /// When nobody comes for it any more who comes when told, or late.
    fn until(self) -> Time {
        self.due + self.keep
    }
}
