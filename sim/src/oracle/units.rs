//! The rules for units of a gauge once faults have stopped: who must have which, and who must have one in turn.

use std::time::Duration;

use lessor_server::repository::{Kind, Rotate};

use super::{Facts, Oracle, Target};
use crate::site::Site;

/// A part of a unit that is not missed.
const NEARLY: f64 = 1e-6;
/// Nobody is waited for longer than that.
const LONGEST: Duration = Duration::from_secs(120);

/// The turns of those who share a gauge that has too few units for all.
pub(crate) struct Turns {
    pub(crate) targets: Vec<Target>,
    /// The clients whose turn must come within the longest wait.
    pub(crate) due: Vec<u32>,
    /// The longest wait of any of them.
    pub(crate) longest: Duration,
}

// === impl Oracle ===

impl Oracle {
    /// Checks that clients have the whole units that are due to them: all where there are enough for everybody, and
    /// at one site those that need not go round.
    pub(super) fn judge_units(&mut self, facts: &Facts<'_>, resource: u16, targets: &[Target]) {
        let short = facts.is_short(resource, targets);
        if short && facts.sites.len() > 1 {
            return;
        }
        let whole = |target: &Target| if short { (target.due + NEARLY).floor() } else { target.due };
        let missing = targets.iter().map(|target| (whole(target) - target.believed.as_f64()).max(0.0));
        let missing: f64 = missing.sum();
        if missing > NEARLY {
            self.fail(20, || {
                format!(
                    "{missing} units of r{resource} are not where they are due:\n{}",
                    Target::table(targets)
                )
            });
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The turns of a gauge whose units go round; nothing where none do, or where shares are cut on the way.
    pub(crate) fn turns(&self, resource: u16) -> Option<Turns> {
        let targets = self.targets(resource);
        if self.resources[usize::from(resource)].rotate == Some(Rotate::None)
            || self.are_nodes_cut(resource)
            || !self.is_short(resource, &targets)
        {
            return None;
        }
        let turn = self.longest_turn(resource);
        let wait = |target: &Target| turn.mul_f64((4.0 / target.due).min(1e6));
        let is_due = |target: &&Target| target.due > NEARLY && wait(target) <= LONGEST;
        let longest = targets.iter().filter(is_due).map(wait).max()?;
        let due = targets.iter().filter(is_due).map(|target| target.client).collect();
        Some(Turns { targets, due, longest })
    }

    /// Whether there are fewer units of a gauge than are wanted.
    pub(crate) fn is_short(&self, resource: u16, targets: &[Target]) -> bool {
        let lacks = |target: &Target| target.due + NEARLY < target.wants;
        self.resources[usize::from(resource)].kind == Kind::Gauge && targets.iter().any(lacks)
    }

    /// The longest time that a turn and the hand-over at its end take, on all levels together.
    fn longest_turn(&self, resource: u16) -> Duration {
        self.turn_of(self.resources[usize::from(resource)].quantum)
    }

    /// The same for turns of that length; absent: as long as it takes to ask again.
    pub(super) fn turn_of(&self, quantum: Option<Duration>) -> Duration {
        let of = |site: &Site| {
            let refresh = site.lengths.terms.refresh_interval;
            quantum.unwrap_or(refresh) + refresh * 2 + Duration::from_secs(1)
        };
        self.sites.iter().map(of).max().unwrap_or_default() * self.levels()
    }
}
