//! The configuration of a node at its start.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::holding::Proof;
use lessor_client::session::Transport;
use lessor_proto::message::Limits;
use lessor_proto::{Amount, Drift, Epoch, ResourceId, Time};

use crate::ledger::{Ghost, Part};
use crate::mutation::Rules;
use crate::repository::{Kind, Template};
use crate::token::TokenKeys;

/// The configuration of a node at its start. Everything that clients can make grow has its limit here.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The name of the node in the tree.
    pub name: String,
    /// The number of this epoch: greater than that of any before.
    pub epoch: Epoch,
    /// The bound on the error of clocks.
    pub drift: Drift,
    /// Limits on one request.
    pub message: Limits,
    /// Resources in all.
    pub resources: usize,
    /// Holders of one resource.
    pub clients_per_resource: usize,
    /// Lives of one client id that may hold one resource at once.
    pub lives_per_client: usize,
    /// Decides where names fall in hash tables. Secret to clients, or they could slow others down.
    pub hash_seed: u64,
    /// The template for names that the repository does not cover; absent: they are refused.
    pub unknown_names: Option<Arc<Template>>,
    /// The line of succession in which `epoch` stands: all who bear the name of this node in one line are one holder to the
    /// node above, the later in the place of the earlier. Absent: nobody has preceded this process, and whatever else bears
    /// its name is another holder.
    pub line: Option<u64>,
    /// The node above, for all but the root.
    pub parent: Option<ParentConfig>,
    /// The record of the capacity that earlier leaders may have left out; absent: nobody knows it, and the node
    /// learns, unless it keeps marks: then nothing is out.
    pub record: Option<Record>,
    /// Whether nothing is handed out beyond marks that a successor can read ([`Node::next_marks`]). A server that is
    /// alone keeps none.
    ///
    /// [`Node::next_marks`]: crate::node::Node::next_marks
    pub marks: bool,
    /// For how long a leader of this node goes on leading without hearing that it still does. Written beside the marks.
    pub authority: Duration,
    /// With what tokens are made and checked; absent: there are none.
    pub keys: Option<TokenKeys>,
    /// Whether those who show a lease from before `record` are believed without a token, where there are no keys.
    pub trust_claims: bool,
    /// The treatment of capacity that claimants give up.
    pub claims: Claims,
    /// All of them, except where a test shows what each is for.
    pub rules: Rules,
}

/// Where the capacity of a node comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParentConfig {
    /// `host:port` of the tasks of the node above, asked in turn; at least one.
    pub servers: Vec<Arc<str>>,
    /// The way to speak to them.
    pub transport: Transport,
    /// Whether polling asks before its time when there is news.
    pub eager: bool,
}

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
    /// Set when it is not known how much is out of anything: the record has been lost, or there has never been one.
    /// Marks say nothing; the times for which leases last and leaders act are no less than those given here.
    pub unknown: bool,
    /// It is not certain that the last leader has stopped: nothing is believed of what holders show before all of it has
    /// ended.
    pub unsure: bool,
    /// For how long, at the least, nobody had been elected when this leader began, by its own clock. It need not wait again
    /// for what has ended meanwhile.
    pub vacant: Duration,
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

/// The treatment of capacity that claimants give up of what they showed to a new leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Claims {
    /// It is free for others at once. Who shows an old token, after it has given that capacity back, makes some of what
    /// others hold look free, until that ends.
    #[default]
    Freed,
    /// It is free when everything has ended that may be out from before: whatever holders say, those who are honest are
    /// never above the capacity.
    Deferred,
}

/// The time for which a leader leads without hearing that it still does, if nothing else is said.
const AUTHORITY: Duration = Duration::from_secs(4);

/// Holders on streams have claimed so long after claims have opened.
const CLAIMED_AFTER: Duration = Duration::from_secs(2);

// === impl NodeConfig ===

impl NodeConfig {
    /// A node of that name and epoch, with the default limits.
    #[must_use]
    pub fn new(name: impl Into<String>, epoch: Epoch) -> NodeConfig {
        NodeConfig {
            name: name.into(),
            epoch,
            drift: Drift::DEFAULT,
            message: Limits::default(),
            resources: 100_000,
            clients_per_resource: 1_000_000,
            lives_per_client: 16,
            hash_seed: 0,
            unknown_names: None,
            line: None,
            parent: None,
            record: None,
            marks: false,
            authority: AUTHORITY,
            keys: None,
            trust_claims: false,
            claims: Claims::default(),
            rules: Rules::default(),
        }
    }
}

// === impl Record ===

impl Record {
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
        let over = drift.grantor_end(since, authority.saturating_add(longest_lease));
        let vacant = u64::try_from(self.vacant.as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(over.as_nanos().saturating_sub(vacant))
    }
}

/// For how long a leader that begins without knowing what is out learns it by `template`, before it hands out anything else;
/// zero if it is not to.
pub(crate) fn learning(template: &Template, record: Option<&Record>, drift: Drift) -> Duration {
    if template.learning.is_zero() {
        return Duration::ZERO;
    }
    // Whatever is written there, a lease of a server with these very templates may last for so long.
    let lease = template.lease_length;
    let longest = record.map_or(lease, |record| {
        let before = lease.max(record.longest_lease).max(record.longest_safe_lease);
        before.saturating_add(record.authority)
    });
    drift.stretch(template.learning.max(longest))
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
mod tests {
    use super::*;

    const NOON: Time = Time::from_nanos(1_000_000_000_000);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn db() -> ResourceId {
        ResourceId::new("db", 256).unwrap()
    }

    #[test]
    fn floors_end_later_and_hold_nothing_else_up() {
        let (longest_lease, longest_safe_lease) = (seconds(60), seconds(3_600));
        let record = Record { longest_lease, longest_safe_lease, ..Record::default() };
        assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(60));
        assert_eq!(record.ends(&db().floor(), NOON, Drift::NONE), NOON + seconds(3_600));
        // Written before there were floors: what bears such a name was granted as everything else.
        let before = Record { longest_safe_lease: Duration::ZERO, ..record };
        assert_eq!(before.ends(&db().floor(), NOON, Drift::NONE), NOON + seconds(60));
    }

    #[test]
    fn what_is_out_ends_after_the_authority_and_the_longest_lease() {
        let record = Record { longest_lease: seconds(60), authority: seconds(4), ..Record::default() };
        assert_eq!(record.opens(NOON, Drift::NONE), NOON + seconds(4));
        assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(64));
        let drift = Drift::from_parts_per_million(10_000);
        assert!(record.opens(NOON, drift) > NOON + Duration::from_millis(4_080));
    }

    #[test]
    fn nobody_waits_for_one_who_has_resigned() {
        let record =
            Record { longest_lease: seconds(60), authority: seconds(4), closed: true, ..Record::default() };
        assert_eq!(record.opens(NOON, Drift::NONE), NOON);
        assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(60));
    }

    #[test]
    fn time_without_a_leader_is_not_waited_for_again() {
        let record = Record {
            longest_lease: seconds(60),
            authority: seconds(4),
            vacant: seconds(10),
            ..Record::default()
        };
        assert_eq!(record.opens(NOON, Drift::NONE), NOON);
        assert_eq!(record.ends(&db(), NOON, Drift::NONE), NOON + seconds(54));
    }
}
