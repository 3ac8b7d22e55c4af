//! Overrides of operators: they freeze, drain or cap something at a leader for a while, or lift that before its time.

use std::time::Duration;

use lessor_proto::message::HolderKind;
use lessor_server::overrides::{Override, OverrideAct};

use crate::actor::Actor;
use crate::simulation::Simulation;
use crate::trace::Happening;

/// The longest time for which one is in force, in seconds.
const LONGEST: u64 = 30;

// === impl Simulation ===

impl Simulation {
    /// An operator overrides something, or lifts that: at the etcd of the templates, or at a leader that can be asked to.
    pub(in crate::simulation) fn override_some(&mut self) -> bool {
        let Some(task) = self.any_leader() else { return false };
        let (lifts, is_followed) = (self.rng.chance(200), self.followed(task).is_some());
        let is_frozen = self.process(Actor::Task(task)).frozen.is_some();
        if is_frozen || !self.tree.tasks[task as usize].acts(self.now) {
            return false;
        }
        let drawn = if lifts { None } else { self.draw_override(task) };
        match (is_followed, drawn) {
            (_, None) if !lifts => false,
            (true, it) => self.push_override(it.as_ref()),
            (false, it) => self.override_here(task, it),
        }
    }

    /// A leader has an override in force, or the oldest no more.
    fn override_here(&mut self, task: u32, it: Option<Override>) -> bool {
        let now = self.local(Actor::Task(task));
        let mut all = self.node(task).overrides().at(now);
        let oldest = all.iter().next().map(|(it, _)| it.id.clone());
        let is_done = match it {
            Some(it) => {
                let until = now + Duration::from_secs(it.seconds);
                all.put(it, until).is_ok()
            }
            None => oldest.is_some_and(|oldest| all.lift(&oldest)),
        };
        if is_done {
            let count = all.len() as u64;
            self.note(Actor::Task(task).who(), Happening::Overrides, [count, u64::MAX - 1, 0]);
            self.node(task).set_overrides(now, &all);
            self.drive_task(task);
        }
        is_done
    }

    fn draw_override(&mut self, task: u32) -> Option<Override> {
        let resource = self.rng.index(self.resources.len()) as u16;
        let (act, kind) = self.draw_override_act(task, resource)?;
        let seconds = 1 + self.rng.below(LONGEST);
        let id = format!("o{}", self.rng.below(1 << 32));
        self.note(Actor::Task(task).who(), Happening::Overrides, [resource.into(), kind, seconds]);
        Some(Override { id, act, seconds, ..Override::for_reason("the simulation") })
    }

    /// An act, and its number.
    fn draw_override_act(&mut self, task: u32, resource: u16) -> Option<(OverrideAct, u64)> {
        let name = self.resources[usize::from(resource)].id.to_string();
        if self.rng.chance(400) {
            return Some((OverrideAct::Freeze { resource: name }, 0));
        }
        if self.rng.chance(300) {
            let most = self.resources[usize::from(resource)].capacity.as_f64();
            let capacity = (most * self.rng.below(1_000) as f64 / 1_000.0).round();
            return Some((OverrideAct::Cap { resource: name, capacity }, 1));
        }
        if self.rng.chance(150) {
            self.progress.counts.unenforced += 1;
            return Some((OverrideAct::Unenforce { resource: name }, 4));
        }
        let (is_any, deny) = (self.rng.chance(300), self.rng.chance(400));
        let books = self.facts().books_of(task, resource).filter(|books| !books.children.is_empty())?;
        let child = &books.children[self.rng.index(books.children.len())];
        let holder = child.holder.to_string();
        Some(match child.kind {
            HolderKind::Node => (OverrideAct::DrainNode { node: holder }, 3),
            HolderKind::Client => {
                let resource = (!is_any).then_some(name);
                (OverrideAct::DrainClient { client: holder, resource, deny }, 2)
            }
        })
    }
}
