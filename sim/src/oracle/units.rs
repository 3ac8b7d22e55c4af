//! The rules for units of a gauge once faults have stopped: who must have which, and who must have one in turn.

use std::time::Duration;

use lessor_proto::Time;
use lessor_server::repository::{Kind, Rotate};

use super::Violation;
use super::calm::{Target, table};
use crate::simulation::{News, Observer, Simulation};

/// A part of a unit that is not missed.
const NEARLY: f64 = 1e-6;
/// Nobody is waited for longer than that.
const LONGEST: Duration = Duration::from_secs(120);

/// The clients that have had a unit of a resource.
struct Served {
    resource: u16,
    clients: Vec<bool>,
}

// === impl Simulation ===

impl Simulation {
    /// Whether units of some gauge go round, as there are fewer than are wanted.
    #[must_use]
    pub fn has_turns(&self) -> bool {
        (0..self.resources.len() as u16).any(|resource| self.is_short(resource, &self.targets(resource)))
    }

    /// Each client that is due a part of a unit has one in its turn: for the turns that it is due, each as long as it lasts
    /// and as it takes to hand a unit over, on each level.
    ///
    /// # Errors
    /// When one has none for too long: rule 20, or when another rule is broken meanwhile.
    pub fn judge_turns(&mut self) -> Result<(), Box<Violation>> {
        for resource in 0..self.resources.len() as u16 {
            let targets = self.targets(resource);
            if self.resources[usize::from(resource)].rotate == Some(Rotate::None)
                || self.are_nodes_cut(resource)
                || !self.is_short(resource, &targets)
            {
                continue;
            }
            let turn = self.longest_turn(resource);
            let wait = |target: &Target| turn.mul_f64((4.0 / target.due).min(1e6));
            let due = |target: &&Target| target.due > NEARLY && wait(target) <= LONGEST;
            let Some(longest) = targets.iter().filter(due).map(wait).max() else { continue };
            let mut served = Served { resource, clients: vec![false; self.clients()] };
            for target in &targets {
                served.clients[target.client as usize] = target.believed.floor_units() > 0;
            }
            self.run_until_heard(self.now + longest, &mut served)?;
            let forgotten = targets.iter().filter(due).find(|target| !served.clients[target.client as usize]);
            if let Some(target) = forgotten {
                let client = target.client;
                self.oracle.fail(20, || {
                    format!("client {client} has no unit of r{resource} in {longest:?}:\n{}", table(&targets))
                });
            }
            self.look()?;
        }
        Ok(())
    }

    /// Checks that clients have the whole units that are due to them: all where there are enough for everybody, and
    /// at one site those that need not go round.
    pub(super) fn judge_units(&mut self, resource: u16, targets: &[Target]) {
        let short = self.is_short(resource, targets);
        if short && self.sites.len() > 1 {
            return;
        }
        let whole = |target: &Target| if short { (target.due + NEARLY).floor() } else { target.due };
        let missing = targets.iter().map(|target| (whole(target) - target.believed.as_f64()).max(0.0));
        let missing: f64 = missing.sum();
        if missing > NEARLY {
            self.oracle.fail(20, || {
                format!("{missing} units of r{resource} are not where they are due:\n{}", table(targets))
            });
        }
    }

    fn is_short(&self, resource: u16, targets: &[Target]) -> bool {
        let lacks = |target: &Target| target.due + NEARLY < target.wants;
        self.resources[usize::from(resource)].kind == Kind::Gauge && targets.iter().any(lacks)
    }

    /// The longest time that a turn and the hand-over at its end take, on all levels together.
    fn longest_turn(&self, resource: u16) -> Duration {
        self.turn_of(self.resources[usize::from(resource)].quantum)
    }

    /// The same for turns of that length; absent: as long as it takes to ask again.
    pub(super) fn turn_of(&self, quantum: Option<Duration>) -> Duration {
        let of = |site: &crate::site::Site| {
            let refresh = site.terms.refresh_interval;
            quantum.unwrap_or(refresh) + refresh * 2 + Duration::from_secs(1)
        };
        self.sites.iter().map(of).max().unwrap_or_default() * self.levels()
    }
}

impl Observer for Served {
    fn hear(&mut self, _: Time, news: News) {
        if news.resource == self.resource && news.amount.floor_units() > 0 {
            self.clients[news.client as usize] = true;
        }
    }
}
