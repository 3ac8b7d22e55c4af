//! Recalls of operators: they take back at a leader what somebody has there, for a while, or let it have that again before its time.

use std::time::Duration;

use lessor_proto::message::HolderKind;
use lessor_proto::{ClientId, ResourceId};
use lessor_server::node::RecallStatus;

use crate::actor::Actor;
use crate::rule_book::Whose;
use crate::simulation::Simulation;
use crate::trace::Happening;

/// The longest time for which a holder gets nothing.
const LONGEST: Duration = Duration::from_secs(30);

// === impl Simulation ===

impl Simulation {
    /// An operator takes back what somebody has, or lifts a recall. Not at a leader that could not be asked to.
    pub(in crate::simulation) fn recall_some(&mut self) -> bool {
        let Some(task) = self.any_leader() else { return false };
        let is_frozen = self.process(Actor::Task(task)).frozen.is_some();
        if is_frozen || !self.tree.tasks[task as usize].acts(self.now) {
            return false;
        }
        let lifts = self.rng.chance(200);
        let is_done = if lifts { self.lift_one(task) } else { self.recall_one(task) };
        if is_done {
            self.drive_task(task);
        }
        is_done
    }

    fn recall_one(&mut self, task: u32) -> bool {
        let resource = self.rng.index(self.resources.len()) as u16;
        let Some(books) = self.facts().books_of(task, resource).filter(|books| !books.children.is_empty())
        else {
            return false;
        };
        let name = &books.children[self.rng.index(books.children.len())].holder;
        let holder = ClientId::new(name.as_str(), name.len()).expect("it is a holder");
        let time = self.rng.time(Duration::from_secs(1), LONGEST);
        let now = self.local(Actor::Task(task));
        let id = self.resources[usize::from(resource)].id.clone();
        self.note_recall(task, &id, &holder, time);
        self.node(task).recall(now, &id, &holder, time).is_ok()
    }

    fn lift_one(&mut self, task: u32) -> bool {
        let now = self.local(Actor::Task(task));
        let Some(RecallStatus { resource, holder, .. }) = self.node(task).recalls(now).next() else {
            return false;
        };
        self.note_recall(task, &resource, &holder, Duration::ZERO);
        self.node(task).lift_recall(now, &resource, &holder)
    }

    fn note_recall(&mut self, task: u32, id: &ResourceId, holder: &ClientId, time: Duration) {
        let resource = self.resources.iter().position(|found| found.id == *id).unwrap_or_default();
        let kinds = [HolderKind::Client, HolderKind::Node];
        let whose = kinds.map(|kind| self.configurations.rule_book.as_ref()?.whose(kind, holder.as_str()));
        let whose = whose.into_iter().flatten().next().map_or(0, |whose| match whose {
            Whose::Client(client) => u64::from(client) * 2,
            Whose::Site(site) => u64::from(site) * 2 + 1,
        });
        let what = [resource as u64, time.as_nanos() as u64, whose];
        self.note(Actor::Task(task).who(), Happening::Recalls, what);
    }
}
