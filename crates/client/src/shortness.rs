//! Shortness: for how long less was held than was wanted, by what bound that.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::BoundBy;

/// The reason why less is held than is wanted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ShortBy {
    /// There is a lease, and this is what its grantor says that it is bound by.
    Bound(BoundBy),
    /// There is a lease of all that was wanted when it was granted, and more is wanted since.
    Asked,
    /// There is a lease, and its grantor does not say.
    Unsaid,
    /// There is no lease: it has ended, or none was granted yet.
    NoLease,
}

/// The time for which less was held than was wanted, by reasons.
#[derive(Clone, Default, Debug)]
pub(crate) struct Shortness {
    past: BTreeMap<ShortBy, Duration>,
    /// The reason at the moment, and since when it is counted.
    current: Option<(ShortBy, Time)>,
}

// === impl ShortBy ===

impl ShortBy {
    /// The name, as in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ShortBy::Bound(by) => by.as_str(),
            ShortBy::Asked => "asked",
            ShortBy::Unsaid => "unsaid",
            ShortBy::NoLease => "no_lease",
        }
    }
}

// === impl Shortness ===

impl Shortness {
    /// From `now` on it is short for that reason, or not any more.
    pub(crate) fn note(&mut self, now: Time, by: Option<ShortBy>) {
        if self.current.map(|(by, _)| by) == by {
            return;
        }
        if let Some((before, since)) = self.current.take() {
            *self.past.entry(before).or_default() += now.since(since);
        }
        self.current = by.map(|by| (by, now));
    }

    /// All of it until `now`.
    pub(crate) fn until(&self, now: Time) -> BTreeMap<ShortBy, Duration> {
        let mut all = self.past.clone();
        if let Some((by, since)) = self.current {
            *all.entry(by).or_default() += now.since(since);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_for_the_reason_that_holds_and_for_none_where_nothing_is_missing() {
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        let (level, debt) = (ShortBy::Bound(BoundBy::Level), ShortBy::Bound(BoundBy::Debt));
        let mut shortness = Shortness::default();
        shortness.note(at(0), Some(level));
        shortness.note(at(1), Some(level));
        shortness.note(at(3), Some(debt));
        shortness.note(at(4), None);
        shortness.note(at(10), Some(level));
        let counted = |now| shortness.until(now).into_iter().map(|(by, time)| (by.as_str(), time.as_secs()));
        assert_eq!(counted(at(12)).collect::<Vec<_>>(), [("level", 5), ("debt", 1)]);
        assert_eq!(counted(at(13)).collect::<Vec<_>>(), [("level", 6), ("debt", 1)], "it goes on");
    }
}
