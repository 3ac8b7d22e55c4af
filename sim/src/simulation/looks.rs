//! The views that looks of operators end in, and what must be in one when nothing goes wrong any more.

use std::time::Duration;

use lessor_proto::Features;
use lessor_proto::message::LookKind;
use lessor_server::look::tree::{NodeBranch, TreeQuery};
use lessor_server::look::{self, LookQuestion, ViewTree};

use super::Simulation;
use crate::actor::Actor;
use crate::faults::Fault;
use crate::oracle::Violation;

/// The number of resources in the last question, which nobody else asks.
const LAST: usize = 9;

// === impl Simulation ===

impl Simulation {
    /// The operator sees what came of looks.
    pub(super) fn see_views(&mut self, task: u32) {
        while let Some((_, bytes)) = self.node(task).next_view() {
            let Some(view) = ViewTree::read(&bytes, look::BOUNDS.levels) else {
                self.oracle.fail(38, || format!("task {task} shows {} bytes that are no view", bytes.len()));
                continue;
            };
            let tree = NodeBranch::of(String::new(), view);
            let nodes = tree.seen_nodes();
            if tree.figures.is_none() || !nodes.left_out.is_empty() {
                self.oracle.fail(38, || format!("task {task} shows {tree:?} of a small tree"));
            }
            self.progress.counts.views += 1;
            self.progress.counts.nodes_shown += nodes.shown as u64;
            self.progress.counts.nodes_unseen += (nodes.silent.len() + nodes.cannot_be_asked.len()) as u64;
        }
    }

    /// Where operators look at the tree: the root shows all nodes to which streams lead down that know looks.
    ///
    /// # Errors
    /// When it does not.
    pub fn judge_looks(&mut self) -> Result<(), Box<Violation>> {
        let Some(task) = self.tree.sites[0].head.filter(|_| self.rules.faults.every(Fault::Look).is_some())
        else {
            return Ok(());
        };
        let wanted = self.in_sight(0);
        let before = self.progress.counts;
        let body = TreeQuery { resources: LAST, matching: None }.to_bytes();
        let now = self.local(Actor::Task(task));
        let question = LookQuestion { kind: LookKind::Tree, body };
        if self.node(task).look(now, question, look::PATIENCE).is_err() {
            self.oracle.fail(38, || format!("task {task} looks at too much when nobody has asked for long"));
        }
        self.drive_task(task);
        self.pass(look::PATIENCE + Duration::from_secs(1))?;
        let (views, shown) = (
            self.progress.counts.views - before.views,
            self.progress.counts.nodes_shown - before.nodes_shown,
        );
        if (views, shown) != (1, wanted) {
            let what = || format!("{views} views show {shown} nodes, of {wanted} that are in sight");
            self.oracle.fail(38, what);
        }
        self.look()
    }

    /// The nodes that can be looked at from that of a site, itself among them.
    fn in_sight(&self, site: u32) -> u64 {
        let Some(task) = self.tree.sites[site as usize].head else { return 0 };
        let knows = |task| self.features(Actor::Task(task)).covers(Features::LOOKS);
        let is_in_sight = |child: u32| {
            let below = self.tree.sites[child as usize].head;
            below.is_some_and(|below| knows(task) && knows(below) && self.has_stream(below, task))
        };
        let children = self.tree.sites[site as usize].kin.children.iter();
        1 + children.filter(|child| is_in_sight(**child)).map(|child| self.in_sight(*child)).sum::<u64>()
    }

    fn has_stream(&self, from: u32, to: u32) -> bool {
        let stream = self.process(Actor::Task(from)).stream.and_then(|stream| self.streams.get(stream));
        stream.is_some_and(|stream| stream.task == to && stream.peer.is_some())
    }
}
