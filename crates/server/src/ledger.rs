//! Charges: who may hold how much until when, and the sum of it.
//!
//! A grantor counts for every holder the *largest* grant that it has sent and that is neither superseded by a report nor
//! run out on its own clock. An increase counts at once; a decrease counts when the holder has said that it keeps to it,
//! or when the larger grant has ended. That is the whole difference to counting what was decided last, and it is what
//! makes the sum of what holders believe stay within the limit whatever is lost, late or dead.
//!
//! When the limit is cut below what is out the ledger is in *debt*: until the sum fits again nobody grows, and the grants
//! made since the cut must fit the limit by themselves, or renewals at the old amounts would never let it fit.
//!
//! Amounts are integers, and the sum is kept in passing; [`Ledger::total`] is what [`Account::charge`] sums up to.

mod account;

use std::time::Duration;

use lessor_proto::{Amount, Drift, Time};

pub use account::{Account, Entry};

/// The sum of all charges of one resource against its limit.
#[derive(Debug)]
pub struct Ledger {
    /// What the sum may not pass; absent for resources whose sum is not limited.
    limit: Option<Amount>,
    /// In millionths.
    total: u128,
    /// What is charged to grants since the debt began, in millionths; kept in debt only.
    since_cut: u128,
    /// How many debts there have been.
    cut: u32,
    debt: bool,
}

/// What somebody should get, and how it is counted.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// The share due.
    pub target: Amount,
    /// Nothing may be granted in fractions of this: a unit for gauges, a millionth for rates.
    pub grain: Amount,
    /// When the report was received on which the end of the grant is counted.
    pub basis: Time,
    /// How long the holder may use it, counted from when it sent that report.
    pub length: Duration,
    /// How much clocks may err.
    pub drift: Drift,
    /// The number of the grant.
    pub seq: u32,
}

/// What was written into the ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granted {
    /// How much: the target, or as much of it as there is room for.
    pub amount: Amount,
    /// The holder is still charged for more than this until it reports: it should do so at once.
    pub ack_wanted: bool,
}

// === impl Ledger ===

impl Ledger {
    /// A ledger in which nothing is out.
    #[must_use]
    pub fn new(limit: Option<Amount>) -> Ledger {
        Ledger { limit, total: 0, since_cut: 0, cut: 0, debt: false }
    }

    /// What the sum may not pass.
    #[must_use]
    pub fn limit(&self) -> Option<Amount> {
        self.limit
    }

    /// Changes the limit. Below what is out it brings debt. A further cut within a debt does not begin it anew: what was
    /// granted since the first one goes on counting, or the two together could pass either limit.
    pub fn set_limit(&mut self, limit: Option<Amount>) {
        self.limit = limit;
        let fits = limit.is_none_or(|limit| self.total <= micros(limit));
        if !fits && !self.debt {
            self.cut += 1;
            self.since_cut = 0;
        }
        self.debt = !fits;
    }

    /// The sum of all charges, in millionths: more than an [`Amount`] holds when the sum is not limited.
    #[must_use]
    pub fn total(&self) -> u128 {
        self.total
    }

    /// Whether more is out than the limit since it was cut.
    #[must_use]
    pub fn in_debt(&self) -> bool {
        self.debt
    }

    /// By how much the sum passes the limit without a cut that explains it: nothing, always.
    #[must_use]
    pub fn overcommitment(&self) -> Amount {
        match self.limit {
            Some(limit) if !self.debt => amount(self.total.saturating_sub(micros(limit))),
            _ => Amount::ZERO,
        }
    }

    /// What is free to be handed out.
    #[must_use]
    pub fn headroom(&self) -> Amount {
        match self.limit {
            Some(limit) => amount(micros(limit).saturating_sub(self.total)),
            None => Amount::MAX,
        }
    }

    /// Forgets the grants of `account` that have ended.
    pub fn expire(&mut self, account: &mut Account, now: Time) {
        self.change(account, |account| account.expire(now));
    }

    /// The holder has promised to use no more than `held` under all grants up to `seq`.
    pub fn acknowledge(&mut self, account: &mut Account, seq: u64, held: Amount) {
        self.change(account, |account| account.acknowledge(seq, held));
    }

    /// Charges `amount`, which the holder has from an earlier reign, until `end`; as much of it as there is room for.
    pub fn claim(&mut self, account: &mut Account, claimed: Amount, end: Time) -> Amount {
        let room = claimed.min(self.headroom());
        let cut = self.cut;
        self.change(account, |account| account.add(Entry { amount: room, end, seq: 0, cut }));
        room
    }

    /// Grants what is offered, as far as there is room, and charges it.
    pub fn grant(&mut self, account: &mut Account, offer: &Offer) -> Granted {
        let charged = account.charge();
        let amount = self.room(account, offer.target).round_down(offer.grain);
        let end = offer.drift.grantor_end(offer.basis, offer.length);
        let cut = self.cut;
        self.change(account, |account| account.add(Entry { amount, end, seq: offer.seq, cut }));
        assert!(self.overcommitment() == Amount::ZERO, "granted {amount} beyond the limit: {self:?}");
        Granted { amount, ack_wanted: charged > amount }
    }

    /// Everything `account` was charged for is free: its holder has promised to use nothing, or all of it has ended.
    pub fn close(&mut self, account: &mut Account) {
        self.change(account, Account::clear);
    }

    /// How much of `target` may be granted.
    fn room(&self, account: &Account, target: Amount) -> Amount {
        let Some(limit) = self.limit else { return target };
        let charged = account.charge();
        if !self.debt {
            let growth = target.saturating_sub(charged).min(self.headroom());
            return target.min(charged.saturating_add(growth));
        }
        let others = self.since_cut - micros(account.charge_since(self.cut));
        target.min(charged).min(amount(micros(limit).saturating_sub(others)))
    }

    /// Every change of an account passes here, so that the sums follow.
    fn change(&mut self, account: &mut Account, change: impl FnOnce(&mut Account)) {
        let (charge, since) = (account.charge(), account.charge_since(self.cut));
        change(account);
        self.total = self.total + micros(account.charge()) - micros(charge);
        if self.debt {
            self.since_cut = self.since_cut + micros(account.charge_since(self.cut)) - micros(since);
            self.debt = self.limit.is_some_and(|limit| self.total > micros(limit));
        }
    }
}

trait RoundDown {
    fn round_down(self, grain: Amount) -> Amount;
}

impl RoundDown for Amount {
    fn round_down(self, grain: Amount) -> Amount {
        let grain = grain.as_micros().max(1);
        Amount::from_micros(self.as_micros() / grain * grain)
    }
}

fn micros(amount: Amount) -> u128 {
    u128::from(amount.as_micros())
}

fn amount(micros: u128) -> Amount {
    Amount::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
