//! A site of the tree, its tasks, and the epochs of those of them that lead.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::message;
use lessor_proto::{Epoch, ResourceId, Time};
use lessor_server::election::lag::Lag;
use lessor_server::election::{Candidate, Ticket};
use lessor_server::node::{Peer, PeerTable};
use lessor_server::record::Record;

use crate::directory::{Directory, Journal};
use crate::event::ToNode;
use crate::open_node::OpenNode;
use crate::plan::{Keeps, Terms};
use crate::process::Process;
use crate::rule_book::PeerRights;
use crate::stream::StreamRef;

/// A site of the tree.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) name: Arc<str>,
    pub(crate) kin: Kin,
    pub(crate) upward: UpwardWay,
    pub(crate) lengths: LeaseLengths,
    /// Its tasks, in the list of all tasks.
    pub(crate) tasks: Range<u32>,
    /// The task whose epoch is the last that has begun, until that ends. Others may act beside it, for as long as its
    /// record says.
    pub(crate) head: Option<u32>,
    /// The greatest epoch in which a task was told to lead.
    pub(crate) epoch: Epoch,
    /// Until when something may be out of which no record of it tells: of before the first epoch that went by that.
    pub(crate) learns_until: Time,
    /// The way in which it remembers.
    pub(crate) keeps: Keeps,
    /// The disk of a server that is alone.
    pub(crate) directory: Directory,
    pub(crate) figures: SiteFigures,
    pub(crate) door: Door,
}

/// The place of a site in the tree.
#[derive(Debug)]
pub(crate) struct Kin {
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) clients: Vec<u32>,
}

/// The way in which a site asks the one above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpwardWay {
    pub(crate) transport: Transport,
    /// Whether its servers take streams.
    pub(crate) streams: bool,
}

/// The lengths of what a site grants, and for which its leaders may act.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseLengths {
    /// The terms of its leases, as configured.
    pub(crate) terms: Terms,
    /// The longest lease that any leader was told to grant.
    pub(crate) longest_lease: Duration,
    /// The time for which a leader goes on unseen.
    pub(crate) authority: Duration,
}

/// The figures of a site.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SiteFigures {
    /// The number of times that a leader had something written.
    pub(crate) writes: u64,
    /// The number of grants that its leaders made on streams.
    pub(crate) grants: u64,
}

/// The way between a site and all below it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Door {
    /// Until when nothing from below gets in.
    pub(crate) shut_in: Time,
    /// And until when nothing gets out to those below.
    pub(crate) shut_out: Time,
}

/// One task of a site.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) site: u32,
    /// Which of them: 0 is the first.
    pub(crate) number: u8,
    pub(crate) address: Arc<str>,
    /// As a process that holds what it has from the node above. Its lives are the epochs.
    pub(crate) process: Process,
    /// Whether anybody is there who takes calls.
    pub(crate) up: bool,
    /// Absent of a server that is alone, and while there is no process.
    pub(crate) candidate: Option<Box<Candidate>>,
    /// Absent while it does not lead, as far as it has heard.
    pub(crate) leadership: Option<Box<Leadership>>,
    /// The leader, as far as it knows.
    pub(crate) knows: message::Leader,
    /// The number of processes that have begun there. An answer of etcd to another process is not heard.
    pub(crate) births: u32,
    pub(crate) editions: TaskEditions,
    /// Whether it has what was in force.
    pub(crate) lag: Option<Lag>,
    pub(crate) etcd: EtcdWay,
}

/// The editions that a task has read.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TaskEditions {
    /// The edition of the configuration that it has been told, where there are any.
    pub(crate) edition: usize,
    /// The edition of the rules of access that it has read, where there are any.
    pub(crate) rules: usize,
}

/// The way between a task and etcd.
#[derive(Clone, Default, Debug)]
pub(crate) struct EtcdWay {
    /// Until when nothing gets from it to etcd, nor back.
    pub(crate) cut: Time,
    /// The watches that it has at etcd.
    pub(crate) watching: BTreeSet<u64>,
    /// The time at which the latest news on a watch is seen: news comes in order.
    pub(crate) seen_until: Time,
}

/// A task that leads, or did before it was deposed and has not heard of that.
#[derive(Debug)]
pub(crate) struct Leadership {
    pub(crate) node: OpenNode,
    pub(crate) epoch: Epoch,
    /// The number of leases of one stream that it renews together.
    pub(crate) heartbeat_slice: usize,
    pub(crate) peers: PeerTable<StreamRef>,
    /// The rights of those at the other ends of streams, where there are rules of access.
    pub(crate) rights: BTreeMap<Peer, PeerRights>,
    /// The legacy of those before it.
    pub(crate) left: LeftBehind,
    /// The journal of its state directory, if it keeps one.
    pub(crate) journal: Option<Journal>,
    /// The write that it has asked for: the candidate's ticket of it, and the node's.
    pub(crate) writing: Option<(Ticket, u64)>,
    /// The messages that wait until it may act again, the oldest first.
    pub(crate) waiting: VecDeque<ToNode>,
    /// Whether what is out is written down.
    pub(crate) keeps: bool,
    /// The newest edition that was in force under it or, by what it has read, before.
    pub(crate) newest: u64,
    /// The grants by stream that it had made when it was told of an earlier one, and that waited to be sent.
    pub(crate) made_before: BTreeMap<Peer, usize>,
}

/// The record that earlier leaders have left, and the end of what is out, by the clock of the one that leads.
#[derive(Clone, Debug)]
pub(crate) struct LeftBehind {
    /// The record that it found written.
    pub(crate) record: Record,
    /// When its predecessor is certainly silent.
    pub(crate) opens: Time,
    /// When nothing of earlier epochs is in use any more.
    pub(crate) ghost_end: Time,
    /// When nothing of those before its predecessor is: of floors as the second.
    pub(crate) rest_end: [Time; 2],
    /// It knows nothing of those before it, and learns from holders what they have.
    pub(crate) learns: bool,
}

/// Floors last for so many leases.
pub(crate) const FLOOR_LEASES: u32 = 10;

// === impl Site ===

impl Site {
    /// The longest lease of `resource` that any leader was told to grant.
    pub(crate) fn longest(&self, resource: &ResourceId) -> Duration {
        if resource.is_floor() {
            self.lengths.longest_lease * FLOOR_LEASES
        } else {
            self.lengths.longest_lease
        }
    }
}

// === impl Task ===

impl Task {
    pub(crate) fn new(site: u32, number: u8, address: Arc<str>, process: Process) -> Task {
        Task {
            site,
            number,
            address,
            process,
            up: false,
            candidate: None,
            leadership: None,
            knows: message::Leader::default(),
            births: 0,
            editions: TaskEditions::default(),
            lag: None,
            etcd: EtcdWay::default(),
        }
    }

    /// Whether it may act at the real moment `now`, if it does anything: it has been told that it leads, and its authority
    /// lies ahead by its own clock. One that never stands for election acts as long as it leads.
    pub(crate) fn acts(&self, now: Time) -> bool {
        let local = self.process.clock.at(now);
        let may = |candidate: &Candidate| candidate.authority_until().is_some_and(|until| local < until);
        self.process.paused.is_none()
            && self.leadership.is_some()
            && self.candidate.as_deref().is_none_or(may)
    }

    pub(crate) fn epoch(&self) -> Option<Epoch> {
        self.leadership.as_ref().map(|leadership| leadership.epoch)
    }

    /// The leader instead of this task, as far as it knows.
    pub(crate) fn another(&self) -> message::Leader {
        if self.knows.address.as_deref() == Some(&*self.address) {
            message::Leader::default()
        } else {
            self.knows.clone()
        }
    }
}
