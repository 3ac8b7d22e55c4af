//! The header that stands beside the marks: how long leases last, who may act for how long, and how long something is
//! left from before.

use std::time::Duration;

use lessor_proto::Time;

use crate::record::{EarlierStop, Longest, RestOver, Terms};

/// The header as it is to be.
#[derive(Clone, Debug)]
pub(super) struct Heading {
    /// The header that is written for certain, or less; absent before the first write.
    pub(super) written: Option<Terms>,
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
    /// The leaders before this one whose leases may count still.
    pub(super) earlier: Vec<EarlierStop>,
    /// Whether the record may say something else of them.
    pub(super) earlier_doubtful: bool,
}

// === impl Heading ===

impl Heading {
    /// The header that should be written at `now`.
    pub(super) fn at(&mut self, now: Time, all_marked: bool, rest_over: Option<RestOver>) -> Terms {
        self.past.retain(|&(_, until)| now < until);
        let longest = self.past.iter().fold(self.longest, |longest, &(past, _)| longest.max(past));
        let (authority, until) = self.before;
        let before = if now < until { authority } else { Duration::ZERO };
        Terms {
            longest_lease: longest.lease,
            longest_safe_lease: longest.safe_lease,
            authority: self.authority.max(before),
            config_version: self.config_version,
            unknown: self.untold || now < self.unknown_until || !all_marked,
            rest_over,
        }
    }

    /// Whether it does not say that. For how long something is left from before is said when that is.
    pub(super) fn is_news(&self, header: Terms) -> bool {
        let timeless =
            |header: Terms| Terms { rest_over: header.rest_over.map(|_| RestOver::default()), ..header };
        self.doubtful || self.earlier_doubtful || self.written.map(timeless) != Some(timeless(header))
    }

    /// It may say `header` from here on.
    pub(super) fn send(&mut self, header: Terms) {
        self.doubtful = true;
        if let Some(written) = &mut self.written {
            let Longest { lease, safe_lease } = written.longest().min(header.longest());
            (written.longest_lease, written.longest_safe_lease) = (lease, safe_lease);
            written.unknown &= header.unknown;
        }
    }

    /// The earlier leaders that are to be named beside it, if they are not known to stand there.
    pub(super) fn tell_earlier(&self) -> Option<Vec<EarlierStop>> {
        self.earlier_doubtful.then(|| self.earlier.clone())
    }

    /// Names no earlier leader any more: what they have granted is learnt from whoever shows it.
    pub(super) fn forget_earlier(&mut self) {
        self.earlier_doubtful |= !self.earlier.is_empty();
        self.earlier.clear();
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
