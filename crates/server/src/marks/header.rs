//! The header that stands beside the marks: how long leases last, who may act for how long, and how long something is
//! left from before.

use std::time::Duration;

use lessor_proto::Time;

use crate::record::{EarlierStop, Longest, RestOver, Terms, Unknown};

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
    pub(super) unknown_until: UnknownUntil,
    /// Of these it is not known after that either: no template has said yet for how long anything of it may last.
    pub(super) untold: Unknown,
    /// The leaders before this one whose leases may count still.
    pub(super) earlier: Vec<EarlierStop>,
    /// Whether the record may say something else of them.
    pub(super) earlier_doubtful: bool,
}

/// Until when it is not known what is out from before, of each class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UnknownUntil {
    /// Of all.
    all: Time,
    /// Of floors, which is no sooner.
    floors: Time,
}

// === impl UnknownUntil ===

impl UnknownUntil {
    /// It is not known before `until` what is out of `unknown`.
    pub(super) fn extend(&mut self, unknown: Unknown, until: Time) {
        if unknown == Unknown::All {
            self.all = self.all.max(until);
        }
        if unknown > Unknown::Nothing {
            self.floors = self.floors.max(until);
        }
    }

    /// The classes of which it is not known at `now`.
    pub(super) fn at(self, now: Time) -> Unknown {
        match now {
            _ if now < self.all => Unknown::All,
            _ if now < self.floors => Unknown::Floors,
            _ => Unknown::Nothing,
        }
    }

    /// When it is of fewer than `unknown`.
    fn end(self, unknown: Unknown) -> Option<Time> {
        match unknown {
            Unknown::All => Some(self.all),
            Unknown::Floors => Some(self.floors),
            Unknown::Nothing => None,
        }
    }
}

// === impl Heading ===

impl Heading {
    /// The header that should be written at `now`.
    pub(super) fn at(&mut self, now: Time, unmarked: Unknown, rest_over: Option<RestOver>) -> Terms {
        self.past.retain(|&(_, until)| now < until);
        let longest = self.past.iter().fold(self.longest, |longest, &(past, _)| longest.max(past));
        let (authority, until) = self.before;
        let before = if now < until { authority } else { Duration::ZERO };
        Terms {
            longest_lease: longest.lease,
            longest_safe_lease: longest.safe_lease,
            authority: self.authority.max(before),
            config_version: self.config_version,
            unknown: self.unknown_until.at(now).max(self.untold).max(unmarked),
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
            written.unknown = written.unknown.min(header.unknown);
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

    /// When it is to say of more resources that the marks are all there is to know, where of `unmarked` they are not.
    pub(super) fn learnt_at(&self, unmarked: Unknown) -> Option<Time> {
        let said = self.says_unknown();
        self.unknown_until.end(said).filter(|_| said > self.untold.max(unmarked))
    }

    /// The resources of which it says for certain that more may be out than the marks say.
    pub(super) fn says_unknown(&self) -> Unknown {
        self.written.map_or(Unknown::Nothing, |written| written.unknown)
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
