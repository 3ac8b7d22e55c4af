//! The versions of processes, where they are mixed: each that begins is of this version or of the one before, as while a fleet is
//! upgraded, or goes back. Nobody may be sent a kind of message that it does not know (I32).

use lessor_proto::Features;
use lessor_proto::message::{Down, Up};

use super::Simulation;
use crate::actor::Actor;
use crate::rng::Rng;
use crate::stream::StreamRef;

/// Of a thousand processes so many are of the version before.
const OLDER: u32 = 400;

// === impl Simulation ===

impl Simulation {
    /// The kinds of message that the process of an actor knows which runs.
    pub(super) fn features(&self, actor: Actor) -> Features {
        self.features_of(
            actor,
            match actor {
                Actor::Client(client) => self.population.clients[client as usize].process.life,
                Actor::Task(task) => self.tree.tasks[task as usize].births,
            },
        )
    }

    /// The same of one of its processes.
    pub(super) fn features_of(&self, actor: Actor, births: u32) -> Features {
        let Some(drawn) = self.rules.mixed else { return Features::CURRENT };
        let mut rng = Rng::new(drawn ^ actor.code() ^ u64::from(births) << 40);
        if rng.chance(OLDER) { Features::BASE } else { Features::CURRENT }
    }

    /// A grantor sends nothing that the holder at the other end does not know.
    pub(super) fn watch_down(&mut self, stream: StreamRef, down: &Down) {
        let Some(&found) = self.streams.get(stream) else { return };
        if !found.features.covers(down.needs()) {
            let code = found.holder.actor.code();
            self.oracle.fail(32, || format!("{code} knows {:?} and is sent {down:?}", found.features));
        }
    }

    /// Nor does a holder that the grantor does not know.
    pub(super) fn watch_up(&mut self, task: u32, up: &Up) {
        let known = self.features(Actor::Task(task));
        if !known.covers(up.needs()) {
            self.oracle.fail(32, || format!("task {task} knows {known:?} and is sent {up:?}"));
        }
    }
}
