//! Units on request: for holders whose lease brings less than a unit in the burst, unless the template says that each saves
//! one up ([`SmallLeases::Save`]).
//!
//! If each of them saved a unit up, all could spend theirs in one instant. So they save none: their leases stay in the books,
//! and flow together into one bucket here, the *pool*, out of which units are sent to those who ask. Whoever has been sent the
//! least for its lease comes first.
//!
//! The amount that can be spent in one instant is what is saved up: the depths of the buckets of others, what is in the
//! pool, and units that are *out*, sent to those who do not wait, which they may use a little later. Together those are
//! no more whole units than the limit brings in the burst, or one where that is less: a depth counts as long as the
//! lease it is for, until giving that up is acknowledged, and a unit that is out until it is said to be used or lost,
//! or until it is too late to use it. So in one instant all of them together take at most `limit * burst`, or one, and
//! in any window `w` less than one unit more than that and `limit * w`: while a unit is out a fraction of the next
//! flows in all the same, as otherwise a pool that holds one unit would lose what comes in meanwhile.
//!
//! Those who reach no server, and those who poll, cannot ask. They are told when a unit is *due*, each at its own moment, one
//! behind the other; what they could take in one instant is what is due to them in the burst.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_algorithms::bucket::Bucket;
use lessor_proto::message::{Down, HolderKind, UnitsAsked};
use lessor_proto::{Amount, Time};

use super::slab::Slot;
use super::{CallContext, Resource};
use crate::mutation::{Rule, Rules};
use crate::repository::SmallLeases;
use crate::streams::{Peer, Peers};
use crate::table::Table;

#[cfg(test)]
mod tests;

/// Units sent at one look at the most; the rest at the next, which comes at once.
const MOST_AT_ONCE: u32 = 64;
/// Units that one holder may wait for; more would not be served in a while anybody waits.
const MOST_ASKED: u64 = 10_000;
/// The longest time for which a unit is kept for who does not wait: as far apart as attempts are that come often.
const LONGEST_KEEP: Duration = Duration::from_millis(500);
/// By this part a unit is counted longer than it is kept, as clocks differ.
const DRIFT_PART: u32 = 8;
/// Nanoseconds in which a millionth of a unit a second brings a unit.
const MICRO_PERIOD: u64 = 1_000_000 * 1_000_000_000;

/// Units for those who ask.
#[derive(Clone, Default, Debug)]
pub(super) struct Pool {
    bucket: Bucket,
    /// The rate that the leases bring that flow in, in millionths a second.
    rate: u64,
    members: Table<Member>,
    /// Those who wait and whose stream takes what is sent, by what they were sent for their lease.
    line: BTreeSet<(u128, Slot)>,
    /// The amount sent for the lease of the holder that was served last: one that comes anew begins there.
    served: u128,
    /// Units that may be used later: how many until when.
    out: Out,
    /// More could be sent at once.
    goes_on: bool,
}

/// Units that may be used later: how many until when, and how many in all.
#[derive(Clone, Default, Debug)]
struct Out {
    until: BTreeMap<Time, u64>,
    units: u64,
}

/// Units that were sent.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sent {
    units: u32,
    /// The number of them that are kept, and the time for which they are.
    kept: u32,
    keep: Duration,
}

#[derive(Clone, Default, Debug)]
struct Member {
    /// The part of its lease that flows in, in millionths a second; nothing of one that is large enough to have a
    /// bucket.
    rate: u64,
    /// The rate that its lease brought when that last flowed in.
    lease: u64,
    /// Units asked for, and sent, since it began.
    asked: u64,
    sent: u64,
    /// Of those that are missing, so many are for attempts that do not wait, the last ones.
    kept: u64,
    /// The time for which those may be used.
    keep: Duration,
    /// Those of its units that are out, and how many are not any more.
    out: Out,
    done: u64,
    /// The amount that it was sent for its lease: nanoseconds in which that brings as much.
    served: u128,
    waits: bool,
}

// === impl Pool ===

impl Pool {
    /// The lease of `slot` flows in, at that rate; with nothing it is asked for all the same.
    pub(super) fn join(&mut self, slot: Slot, rate: u64) {
        if self.members.get(slot).is_none() {
            self.members.insert(slot, Member::default());
        }
        let Some(member) = self.members.get_mut(slot) else { return };
        self.rate = self.rate - member.rate + rate;
        member.rate = rate;
        member.lease = if rate > 0 { rate } else { member.lease };
    }

    pub(super) fn leave(&mut self, slot: Slot) {
        if let Some(member) = self.members.remove(slot) {
            self.rate -= member.rate;
            self.line.remove(&(member.served, slot));
        }
    }

    /// The rate that the leases bring that flow in, in millionths a second.
    pub(super) fn rate(&self) -> u64 {
        self.rate
    }

    pub(super) fn has(&self, slot: Slot) -> bool {
        self.members.get(slot).is_some()
    }

    /// The holder at `slot` asks for units.
    pub(super) fn ask(&mut self, now: Time, slot: Slot, asked: &UnitsAsked) {
        let Some(member) = self.members.get_mut(slot) else { return };
        if member.waits {
            self.line.remove(&(member.served, slot));
        }
        member.done += member.out.end_until(now);
        for _ in member.done..asked.done.unwrap_or_default() {
            let Some(until) = member.out.end_first() else { break };
            self.out.end(until);
            member.done += 1;
        }
        member.asked = asked.asked.min(member.sent + MOST_ASKED);
        (member.kept, member.keep) = match asked.keep {
            Some(keep) => (asked.kept.map_or(u64::MAX, u64::from), keep.min(LONGEST_KEEP)),
            None => (0, Duration::ZERO),
        };
        member.waits = member.asked > member.sent;
        if member.waits {
            member.served = member.served.max(self.served);
            self.line.insert((member.served, slot));
        }
    }

    /// Lets the holder at `slot` stand in line again if it waits: its stream takes something. What it was not sent meanwhile
    /// others had.
    pub(super) fn resume(&mut self, slot: Slot) {
        let Some(member) = self.members.get_mut(slot).filter(|member| member.waits) else { return };
        self.line.remove(&(member.served, slot));
        member.served = member.served.max(self.served);
        self.line.insert((member.served, slot));
    }

    /// Lets flow in what came until `now`, where at most `depth` millionths of a unit are saved up here, and sends what is
    /// there: to those who `take` something at the moment. The others stand in line no more until [`Pool::resume`].
    pub(super) fn serve(
        &mut self,
        now: Time,
        depth: u64,
        rules: Rules,
        mut takes: impl FnMut(Slot) -> bool,
    ) -> BTreeMap<Slot, Sent> {
        let mut sent: BTreeMap<Slot, Sent> = BTreeMap::new();
        self.out.end_until(now);
        self.bucket.refill(now.as_nanos());
        self.set_aside(now, depth, rules);
        let mut left = MOST_AT_ONCE;
        while left > 0
            && self.bucket.tokens() > 0
            && let Some(&(_, slot)) = self.line.first()
        {
            if !takes(slot) {
                self.line.pop_first();
                continue;
            }
            if !self.bucket.take(1) {
                break;
            }
            self.send(now, slot, sent.entry(slot).or_default());
            self.set_aside(now, depth, rules);
            left -= 1;
        }
        self.goes_on = left == 0;
        sent
    }

    fn send(&mut self, now: Time, slot: Slot, sent: &mut Sent) {
        self.line.pop_first();
        let Some(member) = self.members.get_mut(slot) else { return };
        self.served = member.served;
        sent.units += 1;
        if member.asked - member.sent <= member.kept {
            member.kept = member.kept.min(member.asked - member.sent) - 1;
            let until = now + member.keep + member.keep / DRIFT_PART;
            member.done += member.out.end_until(now);
            member.out.begin(until);
            self.out.begin(until);
            (sent.kept, sent.keep) = (sent.kept + 1, member.keep);
        }
        member.sent += 1;
        member.served += u128::from(MICRO_PERIOD / member.lease.max(1));
        member.waits = member.asked > member.sent;
        if member.waits {
            self.line.insert((member.served, slot));
        }
    }

    /// Leaves so much room in the bucket that with what is out there are no more whole units than in `depth`.
    fn set_aside(&mut self, now: Time, depth: u64, rules: Rules) {
        let out = if rules.keep(Rule::OutCounts) { self.out.units } else { 0 };
        let whole =
            (depth / Amount::MICROS_PER_UNIT).saturating_add(1).saturating_mul(Amount::MICROS_PER_UNIT);
        let most = if out > 0 { whole - 1 } else { depth };
        self.bucket.set_aside(0);
        if self.bucket.rate_micros() != self.rate || self.bucket.capacity_micros() != most {
            self.bucket.set(now.as_nanos(), self.rate, most, u64::MAX);
        }
        self.bucket.set_aside(out);
    }

    /// When there is something to send, if nothing else happens.
    pub(super) fn wake(&self) -> Option<Time> {
        if self.line.is_empty() {
            return None;
        }
        if self.goes_on {
            return Some(Time::ZERO);
        }
        let over = self.out.until.first_key_value().map(|(&until, _)| until);
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

// === impl Out ===

impl Out {
    fn begin(&mut self, until: Time) {
        *self.until.entry(until).or_default() += 1;
        self.units += 1;
    }

    /// One of those ends that would have ended then.
    fn end(&mut self, until: Time) {
        let Some(units) = self.until.get_mut(&until) else { return };
        *units -= 1;
        self.units -= 1;
        if *units == 0 {
            self.until.remove(&until);
        }
    }

    /// The first one ends: when it would have.
    fn end_first(&mut self) -> Option<Time> {
        let until = self.until.first_key_value().map(|(&until, _)| until)?;
        self.end(until);
        Some(until)
    }

    /// Those end whose time is over: how many.
    fn end_until(&mut self, now: Time) -> u64 {
        let before = self.units;
        while let Some((&until, &units)) = self.until.first_key_value()
            && until <= now
        {
            self.until.pop_first();
            self.units -= units;
        }
        before - self.units
    }
}

// === impl Resource ===

impl Resource {
    /// Whether a lease of that `amount` is too small to save a unit up.
    fn is_small(&self, amount: Amount) -> bool {
        let small_leases = self.terms.small_leases.unwrap_or_default();
        let on_request = small_leases == SmallLeases::Request && self.holders.shares().policy().is_bounded();
        let burst = self.terms.told_burst().filter(|_| on_request);
        burst.is_some_and(|burst| {
            amount > Amount::ZERO && brings(amount, burst) < u128::from(Amount::MICROS_PER_UNIT)
        })
    }

    /// When a unit of `amount` is due to the holder at `slot`, counted from its last report, if that is too small to save one
    /// up. Of n with equal leases the i-th is due at i/n of the time between two units.
    pub(super) fn unit_due(&self, slot: Slot, amount: Amount) -> Option<Duration> {
        let child = self.holders.at(slot);
        if child.kind == HolderKind::Node || !child.flags.incarnated || !self.is_small(amount) {
            return None;
        }
        let period = MICRO_PERIOD / amount.as_micros();
        let among = u64::from(slot) + 1;
        let among = among.max(u64::try_from(self.holders.children().len()).unwrap_or(u64::MAX));
        let at = u128::from(period) * u128::from(slot) / u128::from(among);
        let at = u64::try_from(at).unwrap_or_default();
        Some(Duration::from_nanos((at + period - child.last.basis.as_nanos() % period) % period))
    }

    /// Lets the charge of the holder at `slot`, which listens, flow into the pool if it is small.
    pub(super) fn pool_in(&mut self, slot: Slot) {
        let child = self.holders.at(slot);
        let charge = child.account().charge();
        let is_client = child.kind == HolderKind::Client;
        match is_client && self.is_small(charge) {
            true => self.pusher.pool_mut().join(slot, charge.as_micros()),
            // It asks until it has heard that it has more, or nothing.
            false if self.pusher.pool().has(slot) => self.pusher.pool_mut().join(slot, 0),
            false => {}
        }
    }

    /// The holder that listens on `peer` asks for units.
    pub(crate) fn ask_units(&mut self, now: Time, peer: Peer, asked: &UnitsAsked) {
        if let Some(slot) = self.listener(peer) {
            if !self.pusher.pool().has(slot) {
                // It has heard that it has little before it has said so.
                self.pusher.pool_mut().join(slot, 0);
            }
            self.pusher.pool_mut().ask(now, slot, asked);
        }
    }

    /// The stream of the holder at `slot` takes something again.
    pub(crate) fn resume_units(&mut self, now: Time, slot: Slot, cx: CallContext<'_>, peers: &mut Peers) {
        self.pusher.pool_mut().resume(slot);
        self.send_units(now, cx, peers);
    }

    /// Sends the units that are there to those who wait for them. One whose stream takes nothing at the moment is sent none:
    /// they would wait for it here, and arrive together with those that came in meanwhile.
    pub(crate) fn send_units(&mut self, now: Time, cx: CallContext<'_>, peers: &mut Peers) {
        if self.pusher.pool().line.is_empty() && self.pusher.pool().rate() == 0 {
            return;
        }
        let depth = self.pool_depth(cx);
        let (pool, listeners) = self.pusher.pool_and_listeners();
        let takes = |slot| listeners.peer(slot).is_none_or(|peer| peers.takes(peer, &self.id));
        for (slot, sent) in pool.serve(now, depth, cx.config.rules, takes) {
            if let Some(peer) = self.pusher.peer(slot) {
                let keep = Some((sent.kept, sent.keep));
                peers.say(peer, Down::Units { resource: self.id.clone(), units: sent.units, keep });
            }
        }
    }

    /// The most that may be saved up in the pool, in millionths of a unit: the yield of the limit in the burst
    /// without what all others may save up, who are charged for the rest; one unit at the least. Where nothing may be granted,
    /// as by a configuration that is older than was in force, the limit is no ground for more than what is out brings.
    fn pool_depth(&self, cx: CallContext<'_>) -> u64 {
        let burst = self.terms.told_burst().unwrap_or_default();
        let outstanding = self.outstanding();
        let others = outstanding.as_micros().saturating_sub(self.pusher.pool().rate());
        let limit = self.ledger.limit().unwrap_or(Amount::ZERO);
        let limit = if cx.longest.lease.is_zero() { limit.min(outstanding) } else { limit };
        let depth = brings(limit.saturating_sub(Amount::from_micros(others)), burst);
        let on_top = if cx.config.rules.keep(Rule::UnitsWithinBurst) { 0 } else { Amount::MICROS_PER_UNIT };
        u64::try_from(depth).unwrap_or(u64::MAX).max(Amount::MICROS_PER_UNIT).saturating_add(on_top)
    }
}

/// The yield of a rate in that time, in millionths of a unit.
fn brings(rate: Amount, time: Duration) -> u128 {
    u128::from(rate.as_micros()) * time.as_nanos() / 1_000_000_000
}
