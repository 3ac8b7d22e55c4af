//! Echoed leases: those that a sticky holder showed and was answered with, and goes on using for longer than they last.
//!
//! Such a holder goes on from when it was last answered, whatever the lease says. A successor that echoes or reseals a
//! lease charges nothing for it, as it is a part of the ghost; but the ghost counts from the election. So what was
//! echoed stays a part of it for as long as what is granted would count, until its holder claims it. Of the rest the
//! ghost ends in time.

use std::collections::BTreeMap;

use lessor_proto::{Amount, Time};

use super::claim::counts_until_heard;
use super::slab::Slot;
use super::{CallContext, Resource};
use crate::ledger::Term;
use crate::mutation::Rule;
use crate::token::{PolledLease, PollerLife};

/// The leases that were echoed and not claimed: by whom, how much of it, and until when that counts.
#[derive(Clone, Default, Debug)]
pub(super) struct Echoed(BTreeMap<(String, PollerLife), (Amount, Time)>);

// === impl Echoed ===

impl Echoed {
    pub(super) fn note(&mut self, name: &str, life: PollerLife, amount: Amount, until: Time) {
        self.0.insert((name.to_owned(), life), (amount, until));
    }

    pub(super) fn remove(&mut self, name: &str, life: PollerLife) {
        if !self.0.is_empty() {
            self.0.remove(&(name.to_owned(), life));
        }
    }

    /// Drops what has ended by `now`. Returns what is left, and when the first of it ends.
    pub(super) fn left(&mut self, now: Time) -> Option<(Amount, Time)> {
        if self.0.is_empty() {
            return None;
        }
        self.0.retain(|_, &mut (_, until)| now < until);
        let end = self.0.values().map(|&(_, until)| until).min()?;
        Some((self.0.values().map(|&(amount, _)| amount).fold(Amount::ZERO, Amount::saturating_add), end))
    }

    /// When the last of it ends.
    pub(super) fn last_end(&self) -> Option<Time> {
        self.0.values().map(|&(_, until)| until).max()
    }
}

// === impl Resource ===

impl Resource {
    /// `name` was answered with `amount` of the lease that it shows, and goes on with that from here on.
    pub(super) fn note_echo(
        &mut self,
        now: Time,
        name: &str,
        lease: &PolledLease,
        amount: Amount,
        cx: CallContext<'_>,
    ) {
        if counts_until_heard(&self.terms) && cx.config.rules.keep(Rule::EchoCounted) {
            let until = cx.config.drift.grantor_end(now, self.terms.longest_charge());
            self.claims.note_echo(name, lease.life, amount, until);
        }
    }

    /// The child at `slot` is charged for what it showed of its `lease`, for as long as what is granted from here on.
    pub(super) fn settle_echo(&mut self, now: Time, slot: Slot, lease: &PolledLease, cx: CallContext<'_>) {
        self.claims.settle_echo(&self.holders.at(slot).name, lease.life);
        if counts_until_heard(&self.terms) && cx.config.rules.keep(Rule::EchoCounted) {
            let term = Term { basis: now, length: self.terms.longest_charge(), drift: cx.config.drift };
            self.charge(slot, |ledger, account| ledger.prolong(account, term));
        }
    }

    /// The ghost is over, but for what was echoed and is not.
    pub(super) fn keep_echoed(&mut self, now: Time) {
        if let Some((amount, end)) = self.claims.echoed_at(now) {
            self.ledger.keep_ghost(amount, end);
        }
    }

    /// When nothing of the ghost counts any more.
    pub(crate) fn ghost_until(&self) -> Time {
        self.ledger.ghost_end().max(self.claims.echoed().last_end().unwrap_or(Time::ZERO))
    }
}
