//! A process: something with a clock of its own that acts, sleeps until a deadline, freezes and dies.

use std::collections::VecDeque;

use lessor_client::internals::suspend::SuspendWatch;
use lessor_proto::Time;

use crate::clock::Clock;
use crate::event::Event;
use crate::plan::Link;
use crate::stream::StreamRef;

/// The state that clients and tasks have in common.
#[derive(Debug)]
pub(crate) struct Process {
    /// The number of lives before it: processes of a client, epochs of a task.
    pub(crate) life: u32,
    pub(crate) clock: Clock,
    /// When it will be woken.
    pub(crate) wake: Time,
    /// Its stream to the one above.
    pub(crate) stream: Option<StreamRef>,
    /// The way to the one above.
    pub(crate) link: Link,
    /// Until when nothing gets through to the one above.
    pub(crate) cut_up: Time,
    /// And until when nothing from there.
    pub(crate) cut_down: Time,
    pub(crate) frozen: Option<Box<Frozen>>,
    /// Its machine stands still, and its clock.
    pub(crate) paused: Option<Pause>,
}

/// A machine that stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pause {
    /// At which its clock ran.
    pub(crate) rate: u64,
    /// The readings of its clocks.
    pub(crate) watch: SuspendWatch,
}

/// A process that does not run.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) until: Time,
    /// The events that have happened to it meanwhile.
    pub(crate) backlog: VecDeque<Event>,
}

// === impl Process ===

impl Process {
    pub(crate) fn new(clock: Clock, link: Link) -> Process {
        Process {
            life: 0,
            clock,
            wake: Time::MAX,
            stream: None,
            link,
            cut_up: Time::ZERO,
            cut_down: Time::ZERO,
            frozen: None,
            paused: None,
        }
    }

    /// Another life begins: it knows nothing of the one before.
    pub(crate) fn renew(&mut self) {
        self.life += 1;
        self.wake = Time::MAX;
        self.stream = None;
        self.frozen = None;
        self.paused = None;
    }
}
