//! The times at which reports were sent, kept for as long as a grant may count from them.
//!
//! Polling, a grant answers the last report, or one of the few before. Over a stream reports go out many to the second,
//! and a grant pushed much later may still count from any that the grantor has taken up since the one it counted from
//! before. So what is forgotten is forgotten by number, not by age; with a bound, because numbers are given by us and
//! confirmed by others.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::{ReportId, Time};

/// The reports sent, in the order of their numbers, and the last number that was given.
#[derive(Clone, Debug, Default)]
pub(super) struct SentRequests {
    reports: VecDeque<Sending>,
    /// The last number given to a request or a stream: the report id of asks.
    last_id: ReportId,
    /// When something was last asked for.
    last_ask: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    id: ReportId,
    at: Time,
    /// The number of resources that it spoke of.
    resources: u32,
}

// === impl SentRequests ===

impl SentRequests {
    /// The number of the next request or stream, which is given to it from here on.
    pub(super) fn next_id(&mut self) -> ReportId {
        self.last_id = self.last_id.next();
        self.last_id
    }

    /// The last number that was given.
    pub(super) fn last_id(&self) -> ReportId {
        self.last_id
    }

    /// When something was last asked for.
    pub(super) fn last_ask(&self) -> Option<Time> {
        self.last_ask
    }

    /// Report `id`, above all before it, leaves at `at`. Of all reports at most `most` are remembered, the last.
    pub(super) fn note(&mut self, id: ReportId, at: Time, resources: usize, most: usize) {
        assert!(self.reports.back().is_none_or(|last| last.id < id), "report numbers grow");
        while self.reports.len() >= most {
            self.reports.pop_front();
        }
        let resources = u32::try_from(resources).unwrap_or(u32::MAX);
        self.reports.push_back(Sending { id, at, resources });
        self.last_ask = Some(at);
    }

    /// When report `id` was sent, if that is remembered.
    pub(super) fn at(&self, id: ReportId) -> Option<Time> {
        self.find(id).map(|sending| sending.at)
    }

    /// Whether report `id` spoke of one resource only.
    pub(super) fn was_alone(&self, id: ReportId) -> bool {
        self.find(id).is_some_and(|sending| sending.resources == 1)
    }

    /// Whether report `id` spoke of nothing.
    pub(super) fn said_nothing(&self, id: ReportId) -> bool {
        self.find(id).is_some_and(|sending| sending.resources == 0)
    }

    /// No grant counts from a report before `floor` any more.
    pub(super) fn forget_before(&mut self, floor: ReportId) {
        while self.reports.front().is_some_and(|first| first.id < floor) {
            self.reports.pop_front();
        }
    }

    /// Time has passed unseen. What was sent before the zero of the clock is forgotten: it cannot be counted from.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        let lost = u64::try_from(lost.as_nanos()).unwrap_or(u64::MAX);
        self.reports.retain_mut(|sending| {
            let at = sending.at.as_nanos().checked_sub(lost);
            sending.at = Time::from_nanos(at.unwrap_or_default());
            at.is_some()
        });
    }

    fn find(&self, id: ReportId) -> Option<&Sending> {
        self.reports.binary_search_by_key(&id, |sending| sending.id).ok().map(|place| &self.reports[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn what_no_grant_counts_from_is_forgotten() {
        let mut sent = SentRequests::default();
        (1..=10).for_each(|id| sent.note(ReportId(2 * id), second(id), 1, 100));
        sent.forget_before(ReportId(7));
        assert_eq!(
            (sent.at(ReportId(6)), sent.at(ReportId(7)), sent.at(ReportId(8))),
            (None, None, Some(second(4)))
        );
    }

    #[test]
    fn there_is_a_bound() {
        let mut sent = SentRequests::default();
        (1..=1_000).for_each(|id| sent.note(ReportId(id), second(id), 1, 8));
        assert_eq!(
            (sent.reports.len(), sent.at(ReportId(992)), sent.at(ReportId(993))),
            (8, None, Some(second(993)))
        );
    }

    #[test]
    fn lost_time_makes_everything_older() {
        let mut sent = SentRequests::default();
        sent.note(ReportId(1), second(1), 1, 8);
        sent.note(ReportId(2), second(9), 1, 8);
        sent.lose_time(Duration::from_secs(5));
        assert_eq!((sent.at(ReportId(1)), sent.at(ReportId(2))), (None, Some(second(4))));
    }
}
