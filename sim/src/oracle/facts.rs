//! The facts that the oracle is handed: all that there is in a simulation at a moment, to look at.

use std::time::Duration;

use lessor_proto::message::HolderKind;
use lessor_proto::{ClientId, Time};
use lessor_server::node::{ChildBook, RecallStatus};

use crate::actor::Actor;
use crate::client::Client;
use crate::holding::Holding;
use crate::process::Process;
use crate::programs::Programs;
use crate::registry::Registry;
use crate::resource::Resource;
use crate::rule_book::{RuleBook, Whose};
use crate::rules::Rules;
use crate::shared_domain::SharedDomain;
use crate::site::{Site, Task};
use crate::stream::Streams;

/// Nodes cut time into ticks of 67 ms.
pub(super) const TICK: Duration = Duration::from_millis(70);

/// The state of a simulation, of which the oracle changes nothing.
#[derive(Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) now: Time,
    pub(crate) rules: &'a Rules,
    pub(crate) sites: &'a [Site],
    /// Of all sites.
    pub(crate) tasks: &'a [Task],
    pub(crate) clients: &'a [Client],
    pub(crate) holdings: &'a [Holding],
    pub(crate) programs: &'a Programs,
    pub(crate) streams: &'a Streams,
    pub(crate) resources: &'a [Resource],
    /// The domain that clients share, if they do.
    pub(crate) domain: Option<&'a SharedDomain>,
    /// The rules of access, if servers go by any.
    pub(crate) rule_book: Option<&'a RuleBook>,
    /// The content of etcd, if there is one.
    pub(crate) registry: Option<&'a Registry>,
}

// === impl Facts: processes and sites ===

impl<'a> Facts<'a> {
    pub(super) fn process(&self, actor: Actor) -> &'a Process {
        match actor {
            Actor::Client(client) => &self.clients[client as usize].process,
            Actor::Task(task) => &self.tasks[task as usize].process,
        }
    }

    /// The time on the clock of an actor.
    pub(super) fn local(&self, actor: Actor) -> Time {
        self.process(actor).clock.at(self.now)
    }

    /// A site, and each one above it.
    pub(crate) fn way_up(&self, site: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(site), |&site| self.sites[site as usize].kin.parent)
    }

    /// Those of them that are nodes below another one: all but the root.
    pub(crate) fn nodes_above(&self, site: u32) -> impl Iterator<Item = u32> {
        self.way_up(site).filter(|&site| self.sites[site as usize].kin.parent.is_some())
    }

    /// The number of levels of the tree.
    pub(crate) fn levels(&self) -> u32 {
        let depth = |site: u32| self.way_up(site).count() as u32;
        (0..self.sites.len() as u32).map(depth).max().unwrap_or(1)
    }

    /// Whether nothing gets through from an actor to a task, or back.
    pub(crate) fn is_closed(&self, actor: Actor, task: u32) -> bool {
        let (process, task) = (self.process(actor), &self.tasks[task as usize]);
        let site = &self.sites[task.site as usize];
        process.cut_up.max(site.door.shut_in) > self.now
            || process.cut_down.max(site.door.shut_out) > self.now
    }
}

// === impl Facts: leaders ===

impl Facts<'_> {
    /// Whether a task does not know all that is out under the epochs before its own, and learns it or has it from the node
    /// above.
    pub(super) fn is_learning(&self, task: u32) -> bool {
        self.now < self.sites[self.tasks[task as usize].site as usize].learns_until
    }

    /// Whether something may be out under the epochs before that of a task.
    pub(super) fn is_haunted(&self, task: u32) -> bool {
        let now: Time = self.local(Actor::Task(task));
        self.tasks[task as usize]
            .leadership
            .as_ref()
            .is_some_and(|leadership| now < leadership.left.ghost_end + TICK)
    }

    /// The number of tasks of a site that may act: more than one only if another was deposed by hand.
    pub(crate) fn acting(&self, site: u32) -> usize {
        let tasks = self.sites[site as usize].tasks.clone();
        tasks.filter(|&task| self.tasks[task as usize].acts(self.now)).count()
    }

    /// The leaders that the tasks of a site that do not lead name when they are asked who does.
    pub(crate) fn named(&self, site: u32) -> Vec<Option<String>> {
        let tasks = self.sites[site as usize].tasks.clone().map(|task| &self.tasks[task as usize]);
        tasks.filter(|task| !task.acts(self.now)).map(|task| task.another().address).collect()
    }
}

// === impl Facts: who may ===

impl Facts<'_> {
    /// Of whom rules speak that a holding is of.
    pub(super) fn whose(&self, client: u32) -> Whose {
        Whose::Client(self.clients[client as usize].twin_of.unwrap_or(client))
    }

    /// Whether a client, and each node above it, may hold what it does, by the rules in force.
    pub(crate) fn may_hold(&self, holding: &Holding) -> bool {
        let Some(book) = self.rule_book else { return true };
        let site = self.clients[holding.client as usize].site;
        let nodes = self.nodes_above(site).map(Whose::Site);
        nodes
            .chain([self.whose(holding.client)])
            .all(|whose| book.rights().may_hold(whose, holding.resource, holding.demand.priority))
    }

    /// Whether an override drains a holder at a leader.
    pub(super) fn is_drained(&self, task: u32, child: &ChildBook, resource: u16) -> bool {
        let Some(leadership) = &self.tasks[task as usize].leadership else { return false };
        let holder = ClientId::new(child.holder.as_str(), child.holder.len()).expect("it is a holder");
        let id = &self.resources[usize::from(resource)].id;
        leadership.node.overrides().drains(child.kind, &holder, id).is_some()
    }

    /// Whether a leader has taken back what somebody had of a resource, and gives it nothing more.
    pub(super) fn is_recalled(&self, task: u32, whose: Whose, resource: u16) -> bool {
        let (Some(book), Some(leadership)) = (self.rule_book, &self.tasks[task as usize].leadership) else {
            return false;
        };
        let id = &self.resources[usize::from(resource)].id;
        let is_it = |found: &RecallStatus| {
            let mut kinds = [HolderKind::Client, HolderKind::Node].into_iter();
            found.resource == *id && kinds.any(|kind| book.whose(kind, found.holder.as_str()) == Some(whose))
        };
        leadership.node.recalls(self.local(Actor::Task(task))).any(|found| is_it(&found))
    }
}
