//! The record of a node: what its leaders write down for their successors, and what a leader asks to be changed in it.
//!
//! Where it is kept, at etcd or in a file, and in which form, is the matter of [`crate::election`].

mod cluster;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_client::internals::holding::Proof;
use lessor_proto::{Amount, Drift, Epoch, ResourceId, Time};

use crate::ledger::{Ghost, Part};
use crate::repository::Kind;

pub use self::cluster::EtcdCluster;
pub use self::unknown::Unknown;

/// The facts that a leader must know of those before it: the most that may be out under them, and how long they
/// may act.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Record {
    /// At most so much is out of each resource; of those that are not mentioned nothing is.
    pub marks: BTreeMap<ResourceId, Amount>,
    /// The kinds that they count, where that is known.
    pub kinds: BTreeMap<ResourceId, Kind>,
    /// The part of that which the last leader had not granted itself: it was left from before it.
    pub rests: BTreeMap<ResourceId, Amount>,
    /// The time for which that may last, by the clock of the last leader: from when this was read at the latest.
    pub rest_over: RestOver,
    /// The proofs that the node held leases from the one above.
    pub proofs: BTreeMap<ResourceId, Proof>,
    /// For epochs of which that is known, when their leaders had certainly stopped, by their own clocks. What counted then
    /// is a part of what is out.
    pub stops: BTreeMap<Epoch, Time>,
    /// The same of leaders before the last, as that one wrote it down, and until when it counted what they had left.
    pub earlier: Vec<EarlierStop>,
    /// The longest time that any of it may last, by the clock of its holder.
    pub longest_lease: Duration,
    /// The same of floors, if it is longer.
    pub longest_safe_lease: Duration,
    /// For how long the last leader may have gone on after it was succeeded, by its own clock.
    pub authority: Duration,
    /// The newest configuration that was in force.
    pub config_version: u64,
    /// It has resigned: it granted nothing after it wrote this, and nobody before it can.
    pub closed: bool,
    /// The number of the last leader's epoch; 0: not known.
    pub epoch: Epoch,
    /// The line of succession of all who go on from this record; 0: whoever wrote last knew of none.
    pub line: u64,
    /// The first epoch of that line; 0: not known. What was granted before it is no part of what is out by this record, where the
    /// node has one above it, which knows of that.
    pub first_epoch: Epoch,
    /// If whoever wrote last had stopped before, when: by its own clock.
    pub stopped: Option<Time>,
    /// The etcd at which the last leader began to write it; absent: it did not say.
    pub written_at: Option<EtcdCluster>,
    /// The etcd at which the next one has read it; absent: that does not say which it is.
    pub read_at: Option<EtcdCluster>,
    /// It may be an old copy, and leaders may have led of which it knows nothing: those are not one etcd that has gone on, or a holder
    /// shows a lease of such a leader.
    pub is_copy: bool,
    /// The resources of which it is not known how much is out: the record has been lost, or there has never been one.
    /// Their marks say nothing; the times for which leases last and leaders act are no less than those given here.
    pub unknown: Unknown,
    /// It is not certain that the last leader has stopped: nothing is believed of what holders show before all of it has
    /// ended.
    pub unsure: bool,
}

/// A leader before the one that wrote this.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EarlierStop {
    /// The number of its epoch.
    pub epoch: Epoch,
    /// When it had certainly stopped, by its own clock.
    pub stop: Time,
    /// Until when, by the clock of the one that wrote this, all counted there for certain that had counted at that stop.
    pub until: Time,
}

/// A change of the record that a leader asks for, to be made whole and only as long as it has not been succeeded. The amounts
/// that the leader holds back in its own books must change before it is written, or after, whichever is safe: a mark is raised
/// before more is handed out, and lowered after less is out.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RecordChange {
    /// The terms that hold from here on; absent: those that stand there.
    pub terms: Option<Terms>,
    /// The marks to be set: the most that is out of each of these.
    pub marks: BTreeMap<ResourceId, Amount>,
    /// The kinds that they count, where that is known.
    pub kinds: BTreeMap<ResourceId, Kind>,
    /// The parts of marks that are set which were left from before this leader; of others nothing was.
    pub rests: BTreeMap<ResourceId, Amount>,
    /// The proofs beside marks that are set, which show the lease of the node; beside others none stands any more.
    pub proofs: BTreeMap<ResourceId, Proof>,
    /// The marks to be removed: nothing is out.
    pub deletes: BTreeSet<ResourceId>,
    /// The leaders before this one whose leases may count still, if that is to be said anew.
    pub earlier: Option<Vec<EarlierStop>>,
}

/// The terms that hold for all resources.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Terms {
    /// No lease that is out, or will be, is longer.
    pub longest_lease: Duration,
    /// The same of floors, if it is longer; 0 where there are none.
    pub longest_safe_lease: Duration,
    /// For how long, at the most, a leader that is cut off goes on; that of this one counts in any case.
    pub authority: Duration,
    /// The configuration in force.
    pub config_version: u64,
    /// The resources of which more may be out than the marks say.
    pub unknown: Unknown,
    /// For how long, at the most, what was left from before this leader may be out; absent: nothing is said of that, and all that
    /// is out counts as its own.
    pub rest_over: Option<RestOver>,
}

/// The times for which that may last which is left from before, of each class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RestOver {
    /// Of all that are not floors.
    pub lease: Duration,
    /// Of floors.
    pub safe_lease: Duration,
}

/// The longest times that leases may last, by class.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Longest {
    /// Of all that are not floors.
    pub(crate) lease: Duration,
    /// Of floors, if that is longer.
    pub(crate) safe_lease: Duration,
}

/// Holders on streams have claimed so long after claims have opened.
const CLAIMED_AFTER: Duration = Duration::from_secs(2);

// === impl Record ===

impl Record {
    /// Whether it says how much of `resource` is out.
    pub(crate) fn knows(&self, resource: &ResourceId) -> bool {
        !self.unknown.is_of(resource.is_floor())
    }

    /// When no earlier leader grants or credits anything any more, by the clock of a leader that began at `since`: what
    /// holders show is the whole truth from then on.
    pub(crate) fn opens(&self, since: Time, drift: Drift) -> Time {
        self.after(since, Duration::ZERO, drift).max(since)
    }

    /// When nothing of `resource` is in use any more that is out by it, by the same clock.
    pub(crate) fn ends(&self, resource: &ResourceId, since: Time, drift: Drift) -> Time {
        self.after(since, self.longest().of(resource), drift)
    }

    /// The ghost of `resource` from before, by the clock of a leader that began at `since`.
    pub(crate) fn ghost(&self, resource: &ResourceId, since: Time, drift: Drift) -> Ghost {
        let out = self.marks.get(resource).copied().unwrap_or_default();
        let rest = self.rests.get(resource).map_or(Amount::ZERO, |&rest| rest.min(out));
        let end = self.ends(resource, since, drift);
        let own = Part { amount: out.saturating_sub(rest), end };
        Ghost::new(
            own,
            Part { amount: rest, end: self.rest_ends(resource.is_floor(), since, drift).min(end) },
        )
    }

    /// When that is over of which a leader that began at `since` tells its successors at `now` when it is: first what was left at
    /// the last leader, then all.
    pub(crate) fn next_rest(&self, is_floor: bool, since: Time, now: Time, drift: Drift) -> Time {
        let rest = self.rest_ends(is_floor, since, drift);
        if !self.rests.is_empty() && now < rest {
            return rest;
        }
        let longest = self.longest();
        self.after(since, if is_floor { longest.lease.max(longest.safe_lease) } else { longest.lease }, drift)
    }

    /// When those who hold from before have had time to claim that.
    pub(crate) fn settles(&self, since: Time, drift: Drift) -> Time {
        self.opens(since, drift) + CLAIMED_AFTER.min(self.longest_lease / 4)
    }

    /// The record, as it is known that its writer had stopped at `stop`, by its own clock; absent: when is not known.
    ///
    /// A lease of an earlier leader counts if it did when that one stopped, and still did when the writer stopped:
    /// until then nobody could have been granted it in its place.
    #[must_use]
    pub(crate) fn stopped_at(self, stop: Option<Time>) -> Record {
        let counted = |earlier: &&EarlierStop| stop.is_some_and(|stop| stop <= earlier.until);
        let earlier = self.earlier.iter().filter(counted).map(|earlier| (earlier.epoch, earlier.stop));
        let stops = earlier.chain(stop.map(|stop| (self.epoch, stop))).collect();
        Record { stops, ..self }
    }

    /// Until when what the leader of `epoch` has left counts for certain, by the clock of a leader that began at `since`.
    pub(crate) fn counts_until(&self, epoch: Epoch, since: Time, drift: Drift) -> Time {
        let own = self.after(since, self.longest_lease, drift);
        match epoch == self.epoch || self.rests.is_empty() {
            true => own,
            // It is not known which part it is in.
            false => self.rest_ends(false, since, drift).min(own),
        }
    }

    /// Returns the leaders before one that began at `since`, as that one writes them down.
    #[must_use]
    pub fn to_tell(&self, since: Time, drift: Drift) -> Vec<EarlierStop> {
        let until = |epoch| self.counts_until(epoch, since, drift);
        // Floors are never shown by those for whom this is.
        let stops = self.stops.iter().filter(|_| !self.unknown.is_of(false));
        stops.map(|(&epoch, &stop)| EarlierStop { epoch, stop, until: until(epoch) }).collect()
    }

    fn rest_ends(&self, is_floor: bool, since: Time, drift: Drift) -> Time {
        drift.grantor_end(since, self.rest_over.of(is_floor))
    }

    /// The longest times that any of it may last.
    pub(crate) fn longest(&self) -> Longest {
        Longest { lease: self.longest_lease, safe_lease: self.longest_safe_lease }
    }

    /// When leases that long are over which the last leader may have granted, by the clock of one that began at `since`.
    pub(crate) fn after(&self, since: Time, longest_lease: Duration, drift: Drift) -> Time {
        let authority = if self.closed { Duration::ZERO } else { self.authority };
        drift.grantor_end(since, authority.saturating_add(longest_lease))
    }
}

// === impl Terms ===

impl Terms {
    /// The longest that leases may last.
    pub(crate) fn longest(self) -> Longest {
        Longest { lease: self.longest_lease, safe_lease: self.longest_safe_lease }
    }
}

// === impl RestOver ===

impl RestOver {
    /// That of floors, or of all others.
    pub(crate) fn of(self, is_floor: bool) -> Duration {
        if is_floor { self.safe_lease } else { self.lease }
    }
}

// === impl Longest ===

impl Longest {
    /// The longest time that leases of `resource` may last.
    pub(crate) fn of(self, resource: &ResourceId) -> Duration {
        if resource.is_floor() { self.lease.max(self.safe_lease) } else { self.lease }
    }

    /// Each class by itself, and how long its leases last.
    pub(crate) fn classes(self) -> [(Longest, Duration); 2] {
        let lease = Longest { safe_lease: Duration::ZERO, ..self };
        let floors = Longest { lease: Duration::ZERO, ..self };
        [(lease, self.lease), (floors, self.safe_lease)]
    }

    /// Of each class the longer.
    pub(crate) fn max(self, other: Longest) -> Longest {
        Longest { lease: self.lease.max(other.lease), safe_lease: self.safe_lease.max(other.safe_lease) }
    }

    /// Of each class the shorter.
    pub(crate) fn min(self, other: Longest) -> Longest {
        Longest { lease: self.lease.min(other.lease), safe_lease: self.safe_lease.min(other.safe_lease) }
    }

    /// Whether leases of some class may be longer than `other` allows.
    pub(crate) fn passes(self, other: Longest) -> bool {
        self.lease > other.lease || self.safe_lease > other.safe_lease
    }
}

#[cfg(test)]
mod tests;
