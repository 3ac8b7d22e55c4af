//! An actor: a client or a task, and which life of it.

use crate::trace::Speaker;

/// Something that holds leases: a client, or a task of a site that leads it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Actor {
    Client(u32),
    Task(u32),
}

/// One life of an actor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sender {
    pub(crate) actor: Actor,
    pub(crate) life: u32,
}

// === impl Actor ===

impl Actor {
    /// A number that tells it from all others.
    pub(crate) fn code(self) -> u64 {
        match self {
            Actor::Client(index) => u64::from(index),
            Actor::Task(index) => 1 << 32 | u64::from(index),
        }
    }

    /// The name of it in a trace.
    pub(crate) fn who(self) -> Speaker {
        match self {
            Actor::Client(index) => Speaker::Client(index),
            Actor::Task(index) => Speaker::Task(index),
        }
    }
}
