//! The rules of calm, once faults have stopped: everybody has its share, and nobody has anything to say.

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::Amount;
use lessor_server::repository::Kind;

use super::Violation;
use crate::holding::Holding;
use crate::plan::Keeps;
use crate::simulation::{Counts, Simulation};

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

// === impl Simulation ===

impl Simulation {
    /// The share of a resource that each client that lives should have, and the one that it has.
    #[must_use]
    pub fn targets(&self, resource: u16) -> Vec<Target> {
        let found = &self.resources[usize::from(resource)];
        let capacity = if found.covered { found.capacity.as_f64() } else { 0.0 };
        let mut shares = Shares::new(found.policy, capacity);
        let of_it = |holding: &&Holding| {
            let client = &self.clients[holding.client as usize];
            holding.resource == resource
                && client.lives()
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
            holding.resource == resource && lives && !self.may_hold(holding) && self.is_known(holding)
        };
        let nothing = Demand { priority: 0, weight: 1, wants: 0.0 };
        self.holdings.iter().filter(is_without).for_each(|_| shares.insert(&nothing));
        let target = |holding: &Holding| Target {
            client: holding.client,
            wants: demand(holding).wants,
            priority: demand(holding).priority,
            due: shares.share(&demand(holding)),
            believed: Amount::from_micros(holding.counted),
        };
        live().map(target).collect()
    }

    /// Every site is led, as all its tasks know, and everybody has what is due to it, up to what the grid blurs.
    ///
    /// # Errors
    /// When it is not, or somebody has not: rule 19 or 20.
    pub fn judge(&mut self) -> Result<(), Box<Violation>> {
        (0..self.sites.len() as u32).for_each(|site| self.judge_leader(site));
        // A client that is known by nothing but an amount may be taken for others whose charges have not ended.
        let are_shared = !self.some_forget();
        for resource in 0..self.resources.len() as u16 {
            self.judge_places(resource);
            if are_shared {
                self.judge_one(resource);
            }
        }
        self.look()
    }

    /// Since `before` nothing was said on streams but heartbeats and the answers to them, if everybody streams.
    ///
    /// # Errors
    /// When something was: rule 17.
    pub fn judge_silence(&mut self, before: &Counts) -> Result<(), Box<Violation>> {
        let after = self.counts();
        let (up, down) = (after.reports - before.reports, after.pushes - before.pushes);
        // A lease that its node's own lease cuts short is renewed by a grant instead, and not with others of its stream where the
        // leader renews one at a time.
        let answers = if self.some_renew_singly() { self.resources.len() as u64 } else { 1 };
        if up > 0 || down > (after.heartbeats - before.heartbeats) * answers {
            self.oracle
                .fail(17, || format!("with nothing to say, {up} messages went up and {down} grants down"));
        }
        self.look()
    }

    /// Whether some leader renews one lease of a stream after the other.
    fn some_renew_singly(&self) -> bool {
        let mut leaders = self.tasks.iter().filter_map(|task| task.leadership.as_deref());
        leaders.any(|leadership| leadership.heartbeat_slice == 1)
    }

    fn judge_leader(&mut self, site: u32) {
        if self.sites[site as usize].keeps != Keeps::Etcd {
            if self.acting(site) == 0 {
                self.oracle.fail(19, || format!("nobody leads site {site}"));
            }
            return;
        }
        let head = self.sites[site as usize].head.map(|task| self.tasks[task as usize].address.to_string());
        let (acting, named) = (self.acting(site), self.named(site));
        if acting != 1 || named.iter().any(|named| *named != head) {
            self.oracle
                .fail(19, || format!("site {site} is led by {head:?}, {acting} act, {named:?} are named"));
        }
    }

    fn judge_one(&mut self, resource: u16) {
        let found = self.resources[usize::from(resource)].clone();
        let targets = self.targets(resource);
        let capacity = if found.covered { found.capacity.as_f64() } else { 0.0 };
        let due: f64 = targets.iter().map(|target| target.due).sum();
        let had: f64 = targets.iter().map(|target| target.believed.as_f64()).sum();
        // A unit is the least that a gauge can be out by, a millionth a rate, at each holder.
        let holders = (targets.len() + self.sites.len()) as f64;
        let grain = if found.kind == Kind::Gauge { 1.0 } else { 2e-6 };
        let (name, policy) = (&found.id, found.policy);
        let flat = self.sites.len() == 1;
        let blur = match found.kind {
            _ if flat => 0.0,
            Kind::Rate => GRID * capacity,
            // Units that are shared in turns are on their way through the tree.
            Kind::Gauge => capacity / 4.0,
        };
        let slack = 1e-6 * capacity + grain * holders + blur;
        if had + slack < due {
            self.oracle.fail(19, || {
                format!("clients have {had} of r{resource}, and {due} is due to them ({name} {policy:?} {capacity}):\n{}", table(&targets))
            });
        }
        if let Some((high, low)) = inverted(&targets).filter(|(high, low)| high.min(*low) > slack) {
            self.oracle.fail(22, || {
                format!(
                    "{high} of r{resource} are missing above, and {low} are used below:\n{}",
                    table(&targets)
                )
            });
        }
        if found.kind == Kind::Gauge {
            return self.judge_units(resource, &targets);
        }
        if !flat && found.policy != SharePolicy::FairShare || self.are_nodes_cut(resource) {
            return;
        }
        let misplaced: f64 =
            targets.iter().map(|target| (target.due - target.believed.as_f64()).max(0.0)).sum();
        if misplaced > slack {
            self.oracle.fail(20, || {
                format!(
                    "{misplaced} of r{resource} are with the wrong clients ({policy:?} {capacity}):\n{}",
                    table(&targets)
                )
            });
        }
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

pub(super) fn table(targets: &[Target]) -> String {
    let row = |target: &Target| {
        let Target { client, wants, priority, due, believed } = target;
        format!("  client {client:>3} wants {wants:>14.6} at {priority}: due {due:>14.6}, has {believed}\n")
    };
    targets.iter().map(row).collect()
}
