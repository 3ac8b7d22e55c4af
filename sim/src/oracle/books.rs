//! The books of nodes, compared with what clients believe, with each other, and with what they were.

mod debts;
mod leases;

use std::sync::Arc;

use lessor_proto::message::{HolderKind, Order};
use lessor_proto::{Amount, Epoch, Time};
use lessor_server::ledger::Cut;
use lessor_server::node::{Books, ChildBook, Claims};
use lessor_server::repository::{Kind, Legacy};

use super::facts::TICK;
use super::frozen::FrozenBooks;
use super::rights::DeniedHolder;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::clock::Clock;
use crate::plan::Way;

/// The state of a task and a resource when they were last seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// The epoch of it whose ghost was seen.
    epoch: Epoch,
    ghost: u64,
    /// The children with their charges, while the books were in debt.
    debtors: Vec<ChildBook>,
    /// The cuts of the debt that the books were in.
    cuts: Vec<Cut>,
    /// The limit of the sum, and the time, by the clock of its leader, until which the sum may still pass it since
    /// it was last cut.
    limit: u128,
    owing: Option<Time>,
    /// The lease that the node has: how much, until when by its clock, and which grant.
    pub(super) amount: u64,
    pub(super) until: Time,
    pub(super) order: Option<Order>,
    pub(super) held_back: HeldBack,
    /// The latest end of any lease of this epoch, by its clock, and of any epoch before, in real time.
    latest: Time,
    past: Time,
}

/// The state of what operators hold back, when it was last seen.
#[derive(Clone, Debug, Default)]
pub(super) struct HeldBack {
    /// The holders that may hold it no more.
    pub(super) denied: Vec<DeniedHolder>,
    /// The books as they were, of what is frozen.
    pub(super) frozen: Option<FrozenBooks>,
}

/// Entries that a grantor may keep of one holder.
const MOST_ENTRIES: usize = 16;
/// Clocks are read in whole nanoseconds.
pub(super) const ROUNDING: std::time::Duration = std::time::Duration::from_nanos(16);

// === impl Seen ===

impl Seen {
    pub(super) fn dethrone(&mut self, clock: Clock) {
        *self = Seen { past: self.ends(clock), ..Seen::default() };
    }

    /// When the last lease ends that the task has had.
    fn ends(&self, clock: Clock) -> Time {
        if self.latest == Time::ZERO { self.past } else { self.past.max(clock.when(self.latest)) }
    }
}

// === impl Oracle ===

impl Oracle {
    /// The books of a node, by themselves and against its clients.
    pub(super) fn check_node(&mut self, facts: &Facts<'_>, task: u32, resource: u16, acted: bool) {
        let site = facts.tasks[task as usize].site;
        let Some(epoch) = facts.tasks[task as usize].epoch() else { return };
        // The books of one who was deposed need not know what its successor grants.
        let is_head = facts.sites[site as usize].head == Some(task);
        let Some(books) = facts.books_of(task, resource) else {
            return if is_head {
                self.check_no_books(facts, task, resource);
            };
        };
        self.check_recount(facts, task, resource, &books);
        let acts = facts.tasks[task as usize].acts(facts.now);
        let claimed = self.check_ghost(facts, task, resource, &books, acted && acts);
        if acted {
            self.check_limit(facts, task, resource, &books, claimed);
            self.check_caps(facts, task, resource, &books);
            self.check_denied(facts, task, resource, &books);
            self.check_frozen(facts, task, resource, &books);
        }
        if acts {
            self.check_mark(facts, task, resource, &books);
        }
        let below = self.sums.below[self.at(site, resource)];
        let knows = is_head && !facts.is_learning(task);
        if knows && facts.sites[site as usize].kin.parent.is_none() && below > books.total {
            self.fail(2, || {
                format!("clients believe {below} of r{resource}, and {} is in the books", books.total)
            });
        }
        for &client in &facts.sites[site as usize].kin.clients {
            let mut holds = facts.clients[client as usize].holds.clone();
            let hold = holds.find(|&hold| facts.holdings[hold as usize].resource == resource);
            let Some(holding) = hold.map(|hold| &facts.holdings[hold as usize]) else { continue };
            if holding.sums.counted == 0 || holding.order().is_none_or(|order| order.epoch != epoch) {
                continue;
            }
            let id = facts.clients[client as usize].id.as_str();
            let first = books.children.partition_point(|child| child.holder.as_str() < id);
            let lives = books.children[first..].iter().take_while(|child| child.holder == id);
            let charges = lives.filter(|child| facts.is_life_of(client, child));
            let charge: u64 = charges.map(|child| child.charge.as_micros()).sum();
            // Units in use beyond the lease were taken under an earlier one, perhaps of an earlier epoch.
            let ghost = books.ghost.as_micros();
            let spare = if holding.sums.counted > holding.amount { ghost } else { 0 };
            // What was resealed is a part of the ghost until it is claimed.
            let resealed = if facts.clients[client as usize].way == Way::Legacy { ghost } else { 0 };
            let (counted, charge) = (holding.sums.counted, charge + resealed);
            if counted > charge + spare || holding.amount.min(counted) > charge {
                self.fail(4, || {
                    format!("client {client} uses {counted} of r{resource} and is charged {charge}")
                });
                return;
            }
        }
    }

    fn check_no_books(&mut self, facts: &Facts<'_>, task: u32, resource: u16) {
        let site = facts.tasks[task as usize].site;
        let id = &facts.resources[usize::from(resource)].id;
        let below = self.sums.below[self.at(site, resource)];
        let read = facts.tasks[task as usize].leadership.as_ref().map(|leadership| &leadership.left.record);
        let haunted = facts.is_haunted(task) && read.is_some_and(|read| read.marks.contains_key(id));
        let knows = read.is_some() && !facts.is_learning(task);
        if knows && facts.sites[site as usize].kin.parent.is_none() && below > 0 && !haunted {
            self.fail(2, || format!("clients believe {below} of r{resource}, and there are no books"));
        }
    }

    fn check_recount(&mut self, facts: &Facts<'_>, task: u32, resource: u16, books: &Books) {
        let charges: u128 = books.children.iter().map(|child| u128::from(child.charge.as_micros())).sum();
        let total = charges + u128::from(books.ghost.as_micros());
        if total != books.total {
            self.fail(23, || {
                format!(
                    "task {task}, r{resource}: charges come to {total}, and the sum kept is {}",
                    books.total
                )
            });
        }
        let gauge = books.counted == Kind::Gauge;
        for child in &books.children {
            if child.entries > MOST_ENTRIES {
                self.fail(21, || format!("task {task} keeps {} grants of one holder", child.entries));
            }
            if gauge
                && facts.shows_kind(child)
                && !child.charge.as_micros().is_multiple_of(Amount::MICROS_PER_UNIT)
            {
                self.fail(23, || format!("task {task} charges {} of a gauge", child.charge));
            }
        }
    }

    /// Gives back by how much the ghost has shrunk: what was claimed of it.
    fn check_ghost(
        &mut self,
        facts: &Facts<'_>,
        task: u32,
        resource: u16,
        books: &Books,
        acted: bool,
    ) -> u64 {
        let haunted = facts.is_haunted(task) || facts.is_echoed(task, resource, books);
        let index = self.at(task, resource);
        let epoch = facts.tasks[task as usize].epoch().unwrap_or_default();
        let seen = &mut self.seen[index];
        let ghost = books.ghost.as_micros();
        // What claimants give up may go back to it.
        let deferred = facts.rules.claims == Claims::Deferred;
        let read =
            facts.tasks[task as usize].leadership.as_ref().map(|leadership| &leadership.left.record.marks);
        let found = read.and_then(|marks| marks.get(&facts.resources[usize::from(resource)].id));
        let grew = match seen.epoch == epoch && !deferred {
            true => ghost > seen.ghost,
            false => books.ghost > found.copied().unwrap_or_default(),
        };
        let claimed = seen.ghost.saturating_sub(ghost);
        (seen.epoch, seen.ghost) = (epoch, ghost);
        let id = &facts.resources[usize::from(resource)].id;
        let now = facts.local(Actor::Task(task));
        let leadership = facts.tasks[task as usize].leadership.as_ref();
        let outlasts = leadership.is_some_and(|leadership| {
            let rest = leadership.left.record.rests.get(id).copied().unwrap_or_default();
            let own = found.copied().unwrap_or_default().saturating_sub(rest);
            rest > Amount::ZERO
                && leadership.left.rest_end[usize::from(id.is_floor())] + TICK <= now
                && books.ghost > own
        });
        if outlasts && acted && !deferred {
            self.fail(14, || {
                format!("task {task} has a ghost of {} of r{resource}, and the rest is over", books.ghost)
            });
        }
        // Who has no record is told what may be out by the node above.
        let told =
            facts.tasks[task as usize].leadership.as_ref().is_some_and(|leadership| leadership.left.learns);
        if !told && (grew || acted && ghost > 0 && !haunted) {
            self.fail(14, || {
                format!("task {task} has a ghost of {} of r{resource} (grew: {grew})", books.ghost)
            });
        }
        claimed
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The books of the last leader of a site as they are.
    pub(crate) fn books(&self, site: u32, resource: u16) -> Option<Arc<Books>> {
        self.books_of(self.sites[site as usize].head?, resource)
    }

    /// The books of a task that leads, or believes that it does.
    pub(crate) fn books_of(&self, task: u32, resource: u16) -> Option<Arc<Books>> {
        let leadership = self.tasks[task as usize].leadership.as_ref()?;
        leadership.node.read(resource, &self.resources[usize::from(resource)].id)
    }

    /// The task of a site that leads, or believes so, in an epoch.
    pub(super) fn task_of(&self, site: u32, epoch: Epoch) -> Option<u32> {
        let mut tasks = self.sites[site as usize].tasks.clone();
        tasks.find(|&task| self.tasks[task as usize].epoch() == Some(epoch))
    }

    /// Whether a holder of the id of a client is its life that goes on.
    fn is_life_of(&self, client: u32, child: &ChildBook) -> bool {
        let found = &self.clients[client as usize];
        child.kind == HolderKind::Client
            && (child.incarnation.is_none() || child.incarnation == Some(found.incarnation))
    }

    /// Whether a ghost may be what was echoed of what is sticky, which counts from then on.
    fn is_echoed(&self, task: u32, resource: u16, books: &Books) -> bool {
        let Legacy::Sticky { hold } = self.resources[usize::from(resource)].legacy else { return false };
        let Some(leadership) = &self.tasks[task as usize].leadership else { return false };
        let last = leadership.left.ghost_end + self.rules.drift.stretch(hold);
        self.local(Actor::Task(task)) < last.min(books.ghost_until) + TICK
    }
}
