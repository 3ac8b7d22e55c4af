//! Units on request: for holders whose lease brings less than a unit in the burst, where the template says so
//! ([`SmallLeases::Request`]).
//!
//! If each of them saved a unit up, all could spend theirs in one instant. So they save none: their leases stay in the books,
//! and flow together into one bucket here, the *pool*, out of which units are sent to those who ask. Whoever has been sent the
//! least for its lease comes first.
//!
//! What can be spent in one instant is what is saved up: the depths of the buckets of others, what is in the pool, and units
//! sent to those who do not wait, which they may use a little later. Together that is no more than the limit brings in the
//! burst, and one unit: a depth counts as long as the lease it is for, until giving that up is acknowledged. So in any window
//! `w` all of them together take at most `limit * (w + burst)`, and that unit. A unit for who does not wait counts as saved up
//! for the burst, and may be kept for up to half a second: of those who do not wait it is `limit * (w + 0.5 s)`. If it counted
//! as long as it is kept, few of them could have one at a time, and all of them less than their leases bring.
//!
//! Those who reach no server, and those who poll, cannot ask. They are told when a unit is *due*, each at its own moment, one
//! behind the other; what they could take in one instant is what is due to them in the burst.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_algorithms::bucket::Bucket;
use lessor_proto::message::{Down, HolderKind, UnitsAsked};
use lessor_proto::{Amount, Time};

use super::Resource;
use super::slab::Slot;
use crate::mutation::{Mutation, Rules};
use crate::node::{Peer, Peers};
use crate::repository::SmallLeases;

#[cfg(test)]
mod tests;

/// Units sent at one look at the most; the rest at the next, which comes at once.
const MOST_AT_ONCE: u32 = 64;
/// Units that one holder may wait for; more would not be served in a while anybody waits.
const MOST_ASKED: u64 = 10_000;
/// For no longer a unit is kept for who does not wait: as far apart as attempts are that come often.
const LONGEST_KEEP: Duration = Duration::from_millis(500);
/// Nanoseconds in which a millionth of a unit a second brings a unit.
const MICRO_PERIOD: u64 = 1_000_000 * 1_000_000_000;

/// Units for those who ask.
#[derive(Clone, Default, Debug)]
pub(super) struct Pool {
    bucket: Bucket,
    /// What the leases bring that flow in, in millionths a second.
    rate: u64,
    members: BTreeMap<Slot, Member>,
    /// Those who wait, by what they were sent for their lease.
    line: BTreeSet<(u128, Slot)>,
    /// What has been sent for the lease of who was served last: who comes anew begins there.
    served: u128,
    /// Units that may be used later: how many until when.
    out: BTreeMap<Time, u64>,
    /// More could be sent at once.
    goes_on: bool,
}

#[derive(Clone, Default, Debug)]
struct Member {
    /// What flows in of its lease, in millionths a second; nothing of one that is large enough to have a bucket.
    rate: u64,
    /// What its lease brought when that last flowed in.
    lease: u64,
    /// Units asked for, and sent, since it began.
    asked: u64,
    sent: u64,
    /// Until when what it is sent may be used.
    keep: Option<Time>,
    /// What it was sent for its lease: nanoseconds in which that brings as much.
    served: u128,
    waits: bool,
}

// === impl Pool ===

impl Pool {
    /// The lease of `slot` flows in, at that rate; with nothing it is asked for all the same.
    pub(super) fn join(&mut self, slot: Slot, rate: u64) {
        let member = self.members.entry(slot).or_default();
        self.rate = self.rate - member.rate + rate;
        member.rate = rate;
        member.lease = if rate > 0 { rate } else { member.lease };
    }

    pub(super) fn leave(&mut self, slot: Slot) {
        if let Some(member) = self.members.remove(&slot) {
            self.rate -= member.rate;
            self.line.remove(&(member.served, slot));
        }
    }

    /// What the leases bring that flow in, in millionths a second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) fn has(&self, slot: Slot) -> bool {
        self.members.contains_key(&slot)
    }

    /// The holder at `slot` has asked for so many since it began; what it is sent may be used until then.
    pub(super) fn ask(&mut self, slot: Slot, asked: u64, keep: Option<Time>) {
        let Some(member) = self.members.get_mut(&slot) else { return };
        if member.waits {
            self.line.remove(&(member.served, slot));
        }
        member.asked = asked.min(member.sent + MOST_ASKED);
        member.keep = member.keep.max(keep);
        member.waits = member.asked > member.sent;
        if member.waits {
            member.served = member.served.max(self.served);
            self.line.insert((member.served, slot));
        }
    }

    /// Lets flow in what came until `now`, where at most `depth` millionths of a unit are saved up here, and sends what is
    /// there: to whom, and how many. What may be used later counts as saved up for the `burst` and no longer: so those who do
    /// not wait have what their leases bring, however long they keep it.
    pub(super) fn serve(&mut self, now: Time, depth: u64, burst: Duration) -> BTreeMap<Slot, u32> {
        let mut sent: BTreeMap<Slot, u32> = BTreeMap::new();
        let nanos = now.as_nanos();
        if self.bucket.rate_micros() != self.rate || self.bucket.capacity_micros() != depth {
            self.bucket.set(nanos, self.rate, depth, u64::MAX);
        }
        while self.out.first_key_value().is_some_and(|(&until, _)| until <= now) {
            self.out.pop_first();
        }
        self.set_aside();
        self.bucket.refill(nanos);
        let mut left = MOST_AT_ONCE;
        while left > 0
            && let Some(&(_, slot)) = self.line.first()
            && self.bucket.take(1)
        {
            self.send(now, slot, burst);
            *sent.entry(slot).or_default() += 1;
            left -= 1;
        }
        self.goes_on = left == 0;
        sent
    }

    fn send(&mut self, now: Time, slot: Slot, burst: Duration) {
        self.line.pop_first();
        let Some(member) = self.members.get_mut(&slot) else { return };
        self.served = member.served;
        member.sent += 1;
        member.served += u128::from(MICRO_PERIOD / member.lease.max(1));
        member.waits = member.asked > member.sent;
        if member.waits {
            self.line.insert((member.served, slot));
        }
        if let Some(keep) = member.keep.filter(|&keep| keep > now) {
            *self.out.entry(keep.min(now + burst)).or_default() += 1;
            self.set_aside();
        }
    }

    fn set_aside(&mut self) {
        self.bucket.set_aside(self.out.values().sum());
    }

    /// When there is something to send, if nothing else happens.
    pub(super) fn wake(&self) -> Option<Time> {
        if self.line.is_empty() {
            return None;
        }
        if self.goes_on {
            return Some(Time::ZERO);
        }
        let over = self.out.first_key_value().map(|(&until, _)| until);
        // What is out keeps a pool from filling that would hold one unit.
        let due = self.bucket.available_at(1).map(Time::from_nanos);
        due.map(|due| {
            if self.bucket.capacity_micros() < Amount::MICROS_PER_UNIT {
                over.unwrap_or(due).max(due)
            } else {
                due
            }
        })
    }
}

// === impl Resource ===

impl Resource {
    /// Whether a lease of that `amount` is too small to save a unit up.
    fn is_small(&self, amount: Amount) -> bool {
        let on_request = self.terms.small_leases == SmallLeases::Request && self.shares.policy().is_bounded();
        let burst = self.terms.told_burst().filter(|_| on_request);
        burst.is_some_and(|burst| {
            amount > Amount::ZERO && brings(amount, burst) < u128::from(Amount::MICROS_PER_UNIT)
        })
    }

    /// When a unit of `amount` is due to the holder at `slot`, counted from its last report, if that is too small to save one
    /// up. Of n with equal leases the i-th is due at i/n of the time between two units.
    pub(super) fn unit_due(&self, slot: Slot, amount: Amount) -> Option<Duration> {
        let child = self.children.at(slot);
        if child.kind == HolderKind::Node || !child.incarnated || !self.is_small(amount) {
            return None;
        }
        let period = MICRO_PERIOD / amount.as_micros();
        let among = u64::from(slot) + 1;
        let among = among.max(u64::try_from(self.children.len()).unwrap_or(u64::MAX));
        let at = u128::from(period) * u128::from(slot) / u128::from(among);
        let at = u64::try_from(at).unwrap_or_default();
        Some(Duration::from_nanos((at + period - child.basis.as_nanos() % period) % period))
    }

    /// What is charged to the holder at `slot`, which listens, flows into the pool if it is small.
    pub(super) fn pool_in(&mut self, slot: Slot) {
        let child = self.children.at(slot);
        let charge = child.account.charge();
        let is_client = child.kind == HolderKind::Client;
        match is_client && self.is_small(charge) {
            true => self.pool.join(slot, charge.as_micros()),
            // It asks until it has heard that it has more, or nothing.
            false if self.pool.has(slot) => self.pool.join(slot, 0),
            false => {}
        }
    }

    /// The holder that listens on `peer` asks for units.
    pub(crate) fn ask_units(&mut self, now: Time, peer: Peer, asked: &UnitsAsked) {
        if let Some(slot) = self.listener(peer) {
            if !self.pool.has(slot) {
                // It has heard that it has little before it has said so.
                self.pool.join(slot, 0);
            }
            let keep = asked.keep.map(|keep| now + keep.min(LONGEST_KEEP));
            self.pool.ask(slot, asked.asked, keep);
        }
    }

    /// Sends the units that are there to those who wait for them.
    pub(crate) fn send_units(&mut self, now: Time, rules: Rules, peers: &mut Peers) {
        if self.pool.line.is_empty() && self.pool.rate() == 0 {
            return;
        }
        let burst = self.terms.told_burst().unwrap_or_default();
        for (slot, units) in self.pool.serve(now, self.pool_depth(rules), burst) {
            if let Some(peer) = self.streaming.peer(slot) {
                peers.say(peer, Down::Units { resource: self.id.clone(), units });
            }
        }
    }

    /// What may be saved up in the pool, in millionths of a unit: what the limit brings in the burst without what all others
    /// may save up, who are charged for the rest; one unit at the least.
    fn pool_depth(&self, rules: Rules) -> u64 {
        let burst = self.terms.told_burst().unwrap_or_default();
        let others = self.outstanding().as_micros().saturating_sub(self.pool.rate());
        let limit = self.ledger.limit().unwrap_or(Amount::ZERO);
        let depth = brings(limit.saturating_sub(Amount::from_micros(others)), burst);
        let on_top = if rules.lack(Mutation::UnitOnTop) { Amount::MICROS_PER_UNIT } else { 0 };
        u64::try_from(depth).unwrap_or(u64::MAX).max(Amount::MICROS_PER_UNIT).saturating_add(on_top)
    }
}

/// What a rate brings in that time, in millionths of a unit.
fn brings(rate: Amount, time: Duration) -> u128 {
    u128::from(rate.as_micros()) * time.as_nanos() / 1_000_000_000
}
