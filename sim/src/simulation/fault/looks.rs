//! Looks of operators at the tree below a leader: they go down the streams and their views come up, beside all that leases say.

use lessor_proto::message::LookKind;
use lessor_server::look::tree::TreeQuery;
use lessor_server::look::{self, LookQuestion};

use crate::actor::Actor;
use crate::simulation::Simulation;
use crate::trace::Happening;

/// Different questions, of which none is answered by what another was told.
const QUESTIONS: usize = 3;

// === impl Simulation ===

impl Simulation {
    /// An operator looks at the tree. Not at a leader that could not be asked to.
    pub(in crate::simulation) fn look_at_tree(&mut self) -> bool {
        let Some(task) = self.any_leader() else { return false };
        let is_frozen = self.process(Actor::Task(task)).frozen.is_some();
        if is_frozen || !self.tree.tasks[task as usize].acts(self.now) {
            return false;
        }
        let resources = 1 + self.rng.index(QUESTIONS);
        let body = TreeQuery { resources, matching: None }.to_bytes();
        let now = self.local(Actor::Task(task));
        let question = LookQuestion { kind: LookKind::Tree, body };
        if self.node(task).look(now, question, look::PATIENCE).is_err() {
            return false;
        }
        self.note(Actor::Task(task).who(), Happening::Looks, [resources as u64, 0, 0]);
        self.drive_task(task);
        true
    }
}
