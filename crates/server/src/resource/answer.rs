//! What a report is answered with: the share due, as far as the ledger has room, and what goes with it.

use std::time::Duration;

use lessor_algorithms::Policy;
use lessor_proto::message::{Grant, Order, Sharing};
use lessor_proto::{Amount, Time, wire};

use super::slab::Slot;
use super::{Reign, Resource};
use crate::ledger::{Granted, Offer};
use crate::repository::{Kind, SafeCapacity};

/// How soon Doorman's clients are told to come back when something waits for them: they poll by a timer only.
pub(crate) const SOON: Duration = Duration::from_secs(1);

/// The answer to a report.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) grant: Grant,
    /// More is due to the holder than there was room for.
    pub(crate) short: bool,
}

// === impl Resource ===

impl Resource {
    /// Grants what is due to the child at `slot`, counted from its last report.
    pub(super) fn answer(&mut self, now: Time, slot: Slot, reign: Reign<'_>) -> Reply {
        let target = self.target(now, slot);
        let config = reign.config;
        let child = self.children.at_mut(slot);
        let length = if child.provisional {
            self.terms.lease_length.min(self.terms.refresh_interval * 2)
        } else {
            self.terms.lease_length
        };
        let seq = child.next_seq;
        child.next_seq += 1;
        let grain = grain(self.terms.kind);
        let offer = Offer { target, grain, basis: child.basis, length, drift: config.drift, seq };
        let granted = self.ledger.grant(&mut child.account, &offer);
        let short = granted.amount < target && target.saturating_sub(granted.amount) >= grain;
        let hurry = granted.ack_wanted || short;
        Reply { grant: self.grant(slot, length, granted, hurry, config.epoch), short }
    }

    fn grant(&self, slot: Slot, length: Duration, granted: Granted, hurry: bool, epoch: u64) -> Grant {
        let child = self.children.at(slot);
        // Our clients are told more exactly: by `ack_wanted` and by when to try again.
        let refresh_interval = match (hurry, child.incarnated) {
            (true, false) => SOON.min(self.terms.refresh_interval),
            _ => self.terms.refresh_interval,
        };
        Grant {
            resource: self.id.clone(),
            capacity: granted.amount,
            length,
            refresh_interval,
            order: Some(Order { epoch, seq: (child.next_seq - 1).into() }),
            basis: child.report_id(),
            token: if child.incarnated { Vec::new() } else { child.session.to_le_bytes().to_vec() },
            ack_wanted: granted.ack_wanted,
            safe_capacity: Some(self.safe_capacity()),
            sharing: Some(self.sharing()),
        }
    }

    /// What is due to the child at `slot`.
    fn target(&self, now: Time, slot: Slot) -> Amount {
        let child = self.children.at(slot);
        let amount = if self.is_learning(now) {
            child.account.charge().min(Amount::from_f64(child.demands.wants()))
        } else {
            Amount::from_f64(child.demands.iter().map(|demand| self.shares.share(&demand)).sum())
        };
        // With fewer units than clients every share is a fraction: then the first to come have one each.
        if self.terms.kind == Kind::Gauge && Amount::ZERO < amount && amount < grain(Kind::Gauge) {
            return if child.demands.wants() < 1.0 { Amount::ZERO } else { grain(Kind::Gauge) };
        }
        amount
    }

    /// What clients are told to fall back to, in units: -1 is without limit. It may be used for ever once they are cut
    /// off, and nothing is reserved for it: it lies outside the promise that the sum stays within the capacity.
    pub(super) fn safe_capacity(&self) -> f64 {
        match self.terms.safe_capacity {
            SafeCapacity::Dynamic => self.terms.capacity.as_f64() / self.shares.weight().max(1) as f64,
            SafeCapacity::Unlimited => -1.0,
            SafeCapacity::Fixed(amount) => amount.as_f64(),
        }
    }

    fn sharing(&self) -> Sharing {
        let kind = match self.terms.policy {
            Policy::None => wire::algorithm::Kind::NoAlgorithm,
            Policy::Static => wire::algorithm::Kind::Static,
            Policy::ProportionalShare => wire::algorithm::Kind::ProportionalShare,
            Policy::FairShare => wire::algorithm::Kind::FairShare,
        };
        Sharing { kind, lease_length: self.terms.lease_length, refresh_interval: self.terms.refresh_interval }
    }
}

/// Nothing is granted in fractions of this.
pub(super) fn grain(kind: Kind) -> Amount {
    match kind {
        Kind::Rate => Amount::from_micros(1),
        Kind::Gauge => Amount::from_units(1),
    }
}
