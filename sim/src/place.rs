//! A place of the tree: some tasks, one of which leads at most, and what outlives a leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::session::Transport;
use lessor_proto::Time;
use lessor_server::node::{Node, Peer, Record};

use crate::clock::Clock;
use crate::plan::Terms;
use crate::process::Process;
use crate::stream::StreamRef;

/// A place of the tree.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: Arc<str>,
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) clients: Vec<u32>,
    pub(crate) transport: Transport,
    pub(crate) streams: bool,
    /// How its leases are, as configured.
    pub(crate) terms: Terms,
    /// The longest lease that any leader was told to grant.
    pub(crate) longest_lease: Duration,
    pub(crate) tasks: Vec<Task>,
    /// Whom the others take for the leader.
    pub(crate) rumour: Option<u8>,
    pub(crate) leader: Option<Box<Leader>>,
    /// What the leader is as a process. Its lives are the reigns.
    pub(crate) process: Process,
    /// The greatest epoch so far.
    pub(crate) epoch: u64,
    /// What its leaders have written, for the one to come.
    pub(crate) record: Record,
    /// How often.
    pub(crate) writes: u64,
    /// How long a leader goes on unseen.
    pub(crate) authority: Duration,
    /// Since when nobody leads, or did before the one who does.
    pub(crate) vacant_since: Time,
    /// Until when nothing from below gets in.
    pub(crate) door_in: Time,
    /// And until when nothing gets out to those below.
    pub(crate) door_out: Time,
}

/// One task of a place. One that does not lead sends everybody to the one that does.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) address: Arc<str>,
    pub(crate) clock: Clock,
    pub(crate) up: bool,
}

/// The task that leads.
#[derive(Debug)]
pub(crate) struct Leader {
    pub(crate) node: Node,
    pub(crate) task: u8,
    pub(crate) peers: BTreeMap<Peer, StreamRef>,
    /// What it found written.
    pub(crate) read: Record,
    /// When its predecessor is certainly silent, by its clock.
    pub(crate) opens: Time,
    /// When nothing of earlier reigns is in use any more, likewise.
    pub(crate) ghost_end: Time,
}

// === impl Place ===

impl Place {
    /// The addresses of all tasks.
    pub(crate) fn addresses(&self) -> Vec<Arc<str>> {
        self.tasks.iter().map(|task| task.address.clone()).collect()
    }

    /// Whom a task that does not lead names.
    pub(crate) fn rumoured(&self) -> lessor_proto::message::Leader {
        let address = self.rumour.map(|task| self.tasks[usize::from(task)].address.to_string());
        lessor_proto::message::Leader { address }
    }
}
