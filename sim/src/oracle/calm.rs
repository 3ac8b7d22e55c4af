//! The rules of calm, once faults have stopped: everybody has its share, and nobody has anything to say.

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::Amount;
use lessor_server::repository::Kind;

use super::{Facts, Oracle};
use crate::counts::Counts;
use crate::holding::Holding;
use crate::plan::Keeps;

/// The share of a resource that a client should have, and the one that it has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Target {
    /// The client.
    pub client: u32,
    /// The amount that it wants.
    pub wants: f64,
    /// Greater is served first.
    pub priority: i64,
    /// The amount that would be due to it if the root served all clients itself.
    pub due: f64,
    /// The amount that it may use.
    pub believed: Amount,
}

/// The most of the capacity that lies with the wrong clients because nodes tell demands on a grid (section 9.3).
const GRID: f64 = 0.023;

// === impl Oracle ===

impl Oracle {
    /// Checks that every site is led, as all its tasks know, and that everybody has what is due to it, up to what the grid blurs.
    pub(crate) fn judge(&mut self, facts: &Facts<'_>) {
        (0..facts.sites.len() as u32).for_each(|site| self.judge_leader(facts, site));
        // A client that is known by nothing but an amount may be taken for others whose charges have not ended.
        let are_shared = !facts.rules.forgetful;
        for resource in 0..facts.resources.len() as u16 {
            self.judge_places(facts, resource);
            self.judge_companions(facts, resource);
            if are_shared {
                self.judge_one(facts, resource);
            }
        }
    }

    /// Checks that from `before` to `after` nothing was said on streams but heartbeats and the answers to them.
    pub(crate) fn judge_silence(&mut self, facts: &Facts<'_>, before: &Counts, after: &Counts) {
        let (up, down) = (after.reports - before.reports, after.pushes - before.pushes);
        // A lease that its node's own lease cuts short is renewed by a grant instead, and not with others of its stream where the
        // leader renews one at a time.
        let answers = if facts.some_renew_singly() { facts.resources.len() as u64 } else { 1 };
        if up > 0 || down > (after.heartbeats - before.heartbeats) * answers {
            self.fail(17, || format!("with nothing to say, {up} messages went up and {down} grants down"));
        }
    }

    fn judge_leader(&mut self, facts: &Facts<'_>, site: u32) {
        if facts.sites[site as usize].keeps != Keeps::Etcd {
            if facts.acting(site) == 0 {
                self.fail(19, || format!("nobody leads site {site}"));
            }
            return;
        }
        let head = facts.sites[site as usize].head.map(|task| facts.tasks[task as usize].address.to_string());
        let (acting, named) = (facts.acting(site), facts.named(site));
        if acting != 1 || named.iter().any(|named| *named != head) {
            self.fail(19, || format!("site {site} is led by {head:?}, {acting} act, {named:?} are named"));
        }
    }

    fn judge_one(&mut self, facts: &Facts<'_>, resource: u16) {
        let found = facts.resources[usize::from(resource)].clone();
        let targets = facts.targets(resource);
        let capacity = if facts.is_covered(resource) { found.capacity.as_f64() } else { 0.0 };
        let due: f64 = targets.iter().map(|target| target.due).sum();
        let had: f64 = targets.iter().map(|target| target.believed.as_f64()).sum();
        // A unit is the least that a gauge can be out by, a millionth a rate, at each holder.
        let holders = (targets.len() + facts.sites.len()) as f64;
        let grain = if found.kind == Kind::Gauge { 1.0 } else { 2e-6 };
        let (name, policy) = (&found.id, found.policy);
        let flat = facts.sites.len() == 1;
        let blur = match found.kind {
            _ if flat => 0.0,
            Kind::Rate => GRID * capacity,
            // Units that are shared in turns are on their way through the tree.
            Kind::Gauge => capacity / 4.0,
        };
        let slack = 1e-6 * capacity + grain * holders + blur;
        if had + slack < due {
            self.fail(19, || {
                format!("clients have {had} of r{resource}, and {due} is due to them ({name} {policy:?} {capacity}):\n{}", Target::table(&targets))
            });
        }
        if let Some((high, low)) = inverted(&targets).filter(|(high, low)| high.min(*low) > slack) {
            self.fail(22, || {
                format!(
                    "{high} of r{resource} are missing above, and {low} are used below:\n{}",
                    Target::table(&targets)
                )
            });
        }
        if found.kind == Kind::Gauge {
            return self.judge_units(facts, resource, &targets);
        }
        if !flat && found.policy != SharePolicy::FairShare || facts.are_nodes_cut(resource) {
            return;
        }
        let misplaced: f64 =
            targets.iter().map(|target| (target.due - target.believed.as_f64()).max(0.0)).sum();
        if misplaced > slack {
            self.fail(20, || {
                format!(
                    "{misplaced} of r{resource} are with the wrong clients ({policy:?} {capacity}):\n{}",
                    Target::table(&targets)
                )
            });
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The share of a resource that each client that lives should have, and the one that it has.
    pub(crate) fn targets(&self, resource: u16) -> Vec<Target> {
        let found = &self.resources[usize::from(resource)];
        let capacity = if self.is_covered(resource) { found.capacity.as_f64() } else { 0.0 };
        let mut shares = Shares::new(found.policy, capacity);
        let of_it = |holding: &&Holding| {
            let client = &self.clients[holding.client as usize];
            holding.resource == resource
                && client.lives()
                && holding.is_asked()
                && !self.is_denied(holding)
                && self.may_hold(holding)
                && self.has_place(holding)
        };
        let demand = |holding: &Holding| self.counted_demand(holding);
        let live = || self.holdings.iter().filter(of_it);
        live().for_each(|holding| shares.insert(&demand(holding)));
        // One that has lost its right and listens still wants nothing, which leaves more to others by some policies.
        let is_without = |holding: &&Holding| {
            let lives = self.clients[holding.client as usize].lives();
            holding.resource == resource
                && lives
                && holding.is_asked()
                && !self.may_hold(holding)
                && self.is_known(holding)
        };
        let nothing = Demand { priority: 0, weight: 1, wants: 0.0 };
        self.holdings.iter().filter(is_without).for_each(|_| shares.insert(&nothing));
        let target = |holding: &Holding| Target {
            client: holding.client,
            wants: demand(holding).wants,
            priority: demand(holding).priority,
            due: shares.share(&demand(holding)),
            believed: Amount::from_micros(holding.sums.counted),
        };
        live().map(target).collect()
    }

    /// Whether some leader renews one lease of a stream after the other.
    fn some_renew_singly(&self) -> bool {
        let mut leaders = self.tasks.iter().filter_map(|task| task.leadership.as_deref());
        leaders.any(|leadership| leadership.heartbeat_slice == 1)
    }
}

/// The shortfall at the greatest priority that has one, and the amount that all below it have.
fn inverted(targets: &[Target]) -> Option<(f64, f64)> {
    let lacks = |target: &Target| (target.due - target.believed.as_f64()).max(0.0);
    let lacking = targets.iter().filter(|target| lacks(target) > 1e-6);
    let priority = lacking.map(|target| target.priority).max()?;
    let of = |target: &&Target| target.priority == priority;
    let high = targets.iter().filter(of).map(lacks).sum();
    let below = targets.iter().filter(|target| target.priority < priority);
    Some((high, below.map(|target| target.believed.as_f64()).sum()))
}

// === impl Target ===

impl Target {
    /// A line for each of them.
    pub(crate) fn table(targets: &[Target]) -> String {
        let row = |target: &Target| {
            let Target { client, wants, priority, due, believed } = target;
            format!(
                "  client {client:>3} wants {wants:>14.6} at {priority}: due {due:>14.6}, has {believed}\n"
            )
        };
        targets.iter().map(row).collect()
    }
}
