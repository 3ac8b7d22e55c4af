//! The header that stands beside the marks: how long leases last, who may act for how long, and how long something is
//! left from before.

use std::time::Duration;

use lessor_proto::Time;

use crate::config::{Longest, RestOver};

/// The header of a record, which stands beside the marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkHeader {
    /// No lease is granted for longer, but of floors.
    pub longest_lease: Duration,
    /// No floor is granted for longer, nor for longer than that; zero where there are none.
    pub longest_safe_lease: Duration,
    /// A leader goes on for no longer without hearing that it leads.
    pub authority: Duration,
    /// Nothing is granted after this was written.
    pub closed: bool,
    /// The newest configuration that was in force.
    pub config_version: u64,
    /// More may be out than the marks say: the leader does not know yet what was before it.
    pub unknown: bool,
    /// The time for which the rest may still be out; absent: nothing is said of that.
    pub rest_over: Option<RestOver>,
}

/// The header as it is to be.
#[derive(Clone, Debug)]
pub(super) struct Heading {
    /// The header that is written for certain, or less; absent before the first write.
    pub(super) written: Option<MarkHeader>,
    /// Whether it may say something else.
    pub(super) doubtful: bool,
    /// The longest leases that may be granted from here on.
    pub(super) longest: Longest,
    pub(super) authority: Duration,
    pub(super) config_version: u64,
    /// Longer leases that may be out, until then.
    pub(super) past: Vec<(Longest, Time)>,
    /// For how long the leader before may act unseen, and when it certainly does not.
    pub(super) before: (Duration, Time),
    /// Until then it is not known what is out from before.
    pub(super) unknown_until: Time,
    /// Nor after that: no template has said yet for how long anything of it may last.
    pub(super) untold: bool,
}

// === impl MarkHeader ===

impl MarkHeader {
    /// The longest that leases may last.
    pub(super) fn longest(self) -> Longest {
        Longest { lease: self.longest_lease, safe_lease: self.longest_safe_lease }
    }
}

// === impl Heading ===

impl Heading {
    /// The header that should be written at `now`.
    pub(super) fn at(
        &mut self,
        now: Time,
        closed: bool,
        all_marked: bool,
        rest_over: Option<RestOver>,
    ) -> MarkHeader {
        self.past.retain(|&(_, until)| now < until);
        let longest = self.past.iter().fold(self.longest, |longest, &(past, _)| longest.max(past));
        let (authority, until) = self.before;
        let before = if now < until { authority } else { Duration::ZERO };
        MarkHeader {
            longest_lease: longest.lease,
            longest_safe_lease: longest.safe_lease,
            authority: self.authority.max(before),
            closed,
            config_version: self.config_version,
            unknown: self.untold || now < self.unknown_until || !all_marked,
            rest_over,
        }
    }

    /// Whether it does not say that. For how long something is left from before is said when that is.
    pub(super) fn is_news(&self, header: MarkHeader) -> bool {
        let timeless = |header: MarkHeader| MarkHeader {
            rest_over: header.rest_over.map(|_| RestOver::default()),
            ..header
        };
        self.doubtful || self.written.map(timeless) != Some(timeless(header))
    }

    /// It may say `header` from here on.
    pub(super) fn send(&mut self, header: MarkHeader) {
        self.doubtful = true;
        if let Some(written) = &mut self.written {
            let Longest { lease, safe_lease } = written.longest().min(header.longest());
            (written.longest_lease, written.longest_safe_lease) = (lease, safe_lease);
            written.unknown &= header.unknown;
        }
    }

    /// When it is to say that the marks are all there is to know, if it says that they are not.
    pub(super) fn learnt_at(&self) -> Option<Time> {
        self.written.filter(|written| written.unknown && !self.untold).map(|_| self.unknown_until)
    }

    /// Whether it says for certain that more may be out than the marks say.
    pub(super) fn says_unknown(&self) -> bool {
        self.written.is_some_and(|written| written.unknown)
    }

    /// Whether it does not allow what is to be granted.
    pub(super) fn is_due(&self) -> bool {
        self.doubtful || self.written.is_none_or(|written| self.longest.passes(written.longest()))
    }

    /// When it says more than it has to.
    pub(super) fn changes_at(&self) -> Option<Time> {
        let written = self.written?;
        let past = self.past.iter().map(|&(_, until)| until).min();
        let past = past.filter(|_| written.longest().passes(self.longest));
        let before = (written.authority > self.authority).then_some(self.before.1);
        past.into_iter().chain(before).min()
    }
}
