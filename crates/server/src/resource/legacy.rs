//! Holders that draw no incarnation, as Doorman's clients and servers: who may hold, for how long it counts, and how much
//! all of them together may have.
//!
//! Their charges are summed up in passing, by [`Holders::charge`]. Where they may have a part of the capacity
//! only, that part is shared among them as the whole is among all; each gets the lesser of its two shares, and none of it
//! before others have given theirs back.
//!
//! [`Holders::charge`]: super::holders::Holders::charge

use lessor_proto::Amount;
use lessor_proto::message::{Ask, HolderKind, Refusal, Report};

use super::hearing::promise;
use super::holders::Child;
use super::slab::Slot;
use super::{CallContext, Reply, Resource};
use crate::config::NodeConfig;
use crate::ledger::Term;
use crate::repository::{Legacy, Template};

/// Resources with more holders than that are not counted again in passing, in debug builds.
const MOST_RECOUNTED: usize = 256;

/// Whether `template` lets the one who asks hold anything of this node.
///
/// What is sticky counts for longer than a lease. Below another node the capacity is a lease itself: it would be granted to
/// others from above when this node has died, while those who were granted it here go on.
pub(crate) fn admit(template: &Template, ask: &Ask, config: &NodeConfig) -> Result<(), Refusal> {
    let why = match template.legacy {
        _ if ask.incarnation.is_some() => return Ok(()),
        Legacy::Sticky { .. } if config.parent.is_some() => format!(
            "is legacy: sticky, which counts for longer than the lease of node {:?} from the one above; ask the root, or \
             write legacy: expire",
            config.name
        ),
        Legacy::Deny => "is legacy: deny".to_owned(),
        Legacy::Expire | Legacy::Sticky { .. } => return Ok(()),
    };
    let field = match ask.kind {
        HolderKind::Client => "incarnation",
        HolderKind::Node => "holder_epoch",
    };
    Err(Refusal::Invalid {
        field: field.to_owned(),
        found: "is missing".to_owned(),
        wanted: format!("a number drawn when the process starts: {:?} {why}", template.glob.as_str()),
    })
}

// === impl Resource ===

impl Resource {
    /// The amount due to the holder at `slot`, to which `target` of the whole would be due, and the most that may
    /// be granted to it.
    pub(super) fn within_part(&self, slot: Slot, target: Amount) -> (Amount, Amount) {
        let child = self.holders.at(slot);
        let Some(part) = self.holders.legacy().part().filter(|_| !child.flags.incarnated) else {
            return (target, Amount::MAX);
        };
        let Some(limit) = self.ledger.limit() else { return (target, Amount::MAX) };
        let others = self.holders.legacy().lent() - u128::from(child.account().charge().as_micros());
        let others = Amount::from_micros(u64::try_from(others).unwrap_or(u64::MAX));
        let most = self.terms.legacy_max_fraction.of(limit).saturating_sub(others);
        match self.terms.is_whole() {
            false => {
                let share = child.demands().iter().map(|demand| part.share(&demand)).sum();
                (target.min(Amount::from_f64(share)), most)
            }
            // Units go to the first to come, until their turn is over.
            true => (target.min(most), most),
        }
    }

    /// Prolongs what a holder that draws no incarnation may go on with, by what it shows, whether or not that proves who it is.
    ///
    /// Units of a gauge may be in use for as long as its lease is renewed: all that it was granted, but where it shows that it uses
    /// none those before end as they would have. What is sticky it may go on with for ever if this answer is lost: the grant that
    /// it shows, and those since. What others of its id have from before counts from when they were heard, whoever of them shows
    /// this.
    pub(super) fn prolong_shown(&mut self, slot: Slot, report: &Report, reply: &Reply, cx: CallContext<'_>) {
        let child = self.holders.at(slot);
        if child.flags.incarnated {
            return;
        }
        let promised = promise(report, child, cx.config.epoch).filter(|_| report.held.is_none());
        let shown = promised.map_or(0, |(seq, _)| seq);
        let (basis, drift, length) = (child.last.basis, cx.config.drift, reply.told.length);
        if self.may_have_units_out() {
            let uses_none = report.has.as_ref().is_some_and(|has| has.capacity == Amount::ZERO);
            let from = if uses_none { shown } else { 0 };
            let term = Term { basis, length, drift };
            self.charge(slot, |ledger, account| ledger.prolong_from(account, from, term));
        }
        let counted = self.terms.legacy.counted(length);
        if counted != length {
            let term = Term { basis, length: counted, drift };
            self.charge(slot, |ledger, account| ledger.prolong_from(account, shown, term));
        }
    }

    /// The sum and the number that are kept in passing are the sum and the number.
    pub(super) fn check_lent(&self) {
        if cfg!(debug_assertions) && self.holders.children().len() <= MOST_RECOUNTED {
            let legacy = || self.holders.children().iter().filter(|child| !child.flags.incarnated);
            let charge = |child: &Child| u128::from(child.account().charge().as_micros());
            let counted: (u128, usize) = (legacy().map(charge).sum(), legacy().count());
            let kept = self.holders.legacy();
            assert!(
                counted == (kept.lent(), kept.count()),
                "{counted:?} lent to so many legacy holders, not {kept:?}"
            );
        }
    }
}
