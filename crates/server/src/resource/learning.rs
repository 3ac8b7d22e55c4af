//! Learning: until when what is out from before is not known, here or at the node above.

use std::time::Duration;

use lessor_proto::message::{Has, HolderKind};
use lessor_proto::{Amount, Time};

use super::claim::MOST_SHOWN;
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::config::learning;
use crate::mutation::Rule;
use crate::record::Longest;

/// The state of learning of one resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct Learning {
    until: Time,
    /// That is over, and those who listen have been told.
    is_told: bool,
    /// Until when the node above that granted its capacity does not know what is out, [`Time::MAX`] where it has not said;
    /// absent: it does.
    above_until: Option<Time>,
    /// The longest lease from before that holders have shown, and until when others like it may last.
    shown: Option<(Duration, Time)>,
}

// === impl Learning ===

impl Learning {
    /// The state of a resource of which it is not known until `until` what is out from before `since`.
    pub(super) fn new(since: Time, until: Time) -> Learning {
        Learning { until, is_told: until <= since, above_until: None, shown: None }
    }

    /// Until when what is out from before may still be in use, as far as is known.
    pub(super) fn until(&self) -> Time {
        self.until
    }

    /// Something that is out from before lasts until then at the least.
    pub(super) fn extend(&mut self, until: Time) {
        self.until = self.until.max(until);
    }

    /// Somebody shows a lease of that length from before, and others like it last until then at the most.
    pub(super) fn extend_as_shown(&mut self, length: Duration, until: Time) {
        self.extend(until);
        self.shown = self.shown.max(Some((length, until)));
    }

    /// The same, and those who listen are to be told again when that is over.
    pub(super) fn begin_anew(&mut self, until: Time) {
        self.extend(until);
        self.is_told = false;
    }

    /// The time from which it is known what is out from before is `at`.
    pub(super) fn end_at(&mut self, at: Time) {
        self.until = at;
    }

    /// When those who listen are to be told that it is over, if they have not been.
    pub(super) fn untold(&self) -> Option<Time> {
        (!self.is_told).then_some(self.until)
    }

    /// Those who listen are told that it is over. Returns whether they were not before.
    pub(super) fn tell_over(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// Whether the node above does not know what is out.
    pub(super) fn is_above(&self) -> bool {
        self.above_until.is_some()
    }

    /// The node above does not know what is out until then, or it does. Returns whether it has come to know it.
    pub(super) fn set_above(&mut self, until: Option<Time>) -> bool {
        std::mem::replace(&mut self.above_until, until).is_some() && until.is_none()
    }
}

// === impl Resource ===

impl Resource {
    /// Learns anew what is out from before, as it is not what the record says; nobody gets anything else meanwhile.
    pub(crate) fn learn_anew(&mut self, cx: CallContext<'_>) {
        if self.is_leased() {
            return;
        }
        let learning = learning(&self.terms, self.id.is_floor(), cx.config.record.as_ref(), cx.config.drift);
        self.learning.begin_anew(cx.since + learning);
        self.ledger.exorcise();
        self.earlier.forget_end();
        self.claims.end_deferral();
        self.reshare();
    }

    /// Charges the holder at `slot` for what it shows, of which it uses `held`. Units of a client beyond what a leader before this one
    /// counted are of a lease that is over, and may be somebody else's meanwhile. A node shows what that one counted for certain,
    /// and may have more out below: it is charged for that, and granted no more than it shows.
    pub(super) fn learn_of(&mut self, now: Time, slot: Slot, has: &Has, held: Amount, cx: CallContext<'_>) {
        let [shown, held] = [has.capacity, held].map(|amount| self.in_whole_units(amount));
        let is_client = self.holders.at(slot).kind == HolderKind::Client;
        let counted = match cx.config.rules.keep(Rule::LearnRunning) {
            true if is_client => held.min(shown),
            true if held > shown => {
                self.claims.learn(slot, shown);
                held
            }
            _ => held,
        };
        let remaining = has.lasts.map_or(Duration::ZERO, |lasts| lasts.remaining.min(MOST_SHOWN));
        let end = self.learning.until().max(cx.config.drift.grantor_end(now, remaining));
        self.charge(slot, |ledger, account| ledger.take_up(account, counted, end));
    }

    /// Until when what is out from before the start may still be in use, as far as is known.
    pub(crate) fn learns_until(&self) -> Time {
        self.learning.until()
    }

    /// Everybody who listens is told what is due to it, also if that is what it was told: it was told by one who did not know
    /// what is out.
    pub(super) fn owe_all(&mut self) {
        for slot in self.pusher.listeners().slots() {
            self.pusher.owe(slot);
        }
        self.pusher.unsettle();
    }

    /// The longest leases from before that holders have shown, and until when others like them may last.
    pub(crate) fn shown_longest(&self) -> Option<(Longest, Time)> {
        let class = |length| match self.id.is_floor() {
            true => Longest { safe_lease: length, ..Longest::default() },
            false => Longest { lease: length, ..Longest::default() },
        };
        self.learning.shown.map(|(length, until)| (class(length), until))
    }

    /// Whether those who are granted something are told that what is out is not known, here or above.
    pub(super) fn says_learning(&self, now: Time) -> bool {
        self.learning.is_above() || self.is_learning(now)
    }

    /// The time for which that goes on, here and above, as far as is known.
    pub(super) fn learning_left(&self, now: Time) -> Option<Duration> {
        let here = self.is_learning(now).then(|| self.learning.until());
        let until = here.max(self.learning.above_until)?;
        (until < Time::MAX).then(|| until.since(now))
    }

    /// Whether what is out from before the start may still be in use.
    pub(crate) fn is_learning(&self, now: Time) -> bool {
        now < self.learning.until() && self.holders.shares().policy().is_bounded()
    }
}
