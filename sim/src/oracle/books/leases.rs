//! The leases that nodes and clients adopt: each has been charged by the one above, and lasts no longer than that one's.

use lessor_client::Rung;
use lessor_proto::message::Order;
use lessor_proto::{Amount, Time};

use super::ROUNDING;
use crate::actor::Actor;
use crate::oracle::Delivery;
use crate::oracle::{Facts, Oracle};
use crate::plan::Way;

// === impl Oracle ===

impl Oracle {
    /// The node of a task has acted: what lease has it? It may act more than once in one event, as after a pause.
    pub(crate) fn watch_node(&mut self, facts: &Facts<'_>, task: u32) {
        if facts.tasks[task as usize].leadership.is_none() {
            return;
        }
        if self.touched.acted.last() != Some(&task) {
            self.touched.acted.push(task);
        }
        self.watch_leases(facts, task);
    }

    fn watch_leases(&mut self, facts: &Facts<'_>, task: u32) {
        let now = facts.local(Actor::Task(task));
        for resource in 0..facts.resources.len() as u16 {
            let Some(leadership) = &facts.tasks[task as usize].leadership else { return };
            let Some(session) = leadership.node.parent_session() else { return };
            let allowance = session.allowance(now, &facts.resources[usize::from(resource)].id);
            let micros = allowance.capacity.unwrap_or(Amount::MAX).as_micros();
            let order = session.lease_order(&facts.resources[usize::from(resource)].id);
            // It was dropped: whatever is adopted after that begins anew.
            if session.rung(now, &facts.resources[usize::from(resource)].id) == Rung::Waiting {
                let index = self.at(task, resource);
                self.seen[index].order = None;
            }
            self.watch_lease(facts, task, resource, (micros, allowance.until), order);
        }
    }

    /// Notes the lease of a node: how much, until when, and by which grant as its session says. It may have given some of it back
    /// since it adopted that, so that the amount does not tell.
    fn watch_lease(
        &mut self,
        facts: &Facts<'_>,
        task: u32,
        resource: u16,
        lease: (u64, Time),
        order: Option<Order>,
    ) {
        let (micros, until) = lease;
        let now = facts.local(Actor::Task(task));
        let index = self.at(task, resource);
        let seen = &mut self.seen[index];
        if (seen.amount, seen.until) == (micros, until) {
            return;
        }
        let lived = now < seen.until;
        let gained = micros > 0 && (!lived || micros > seen.amount || until != seen.until);
        let before = seen.order;
        (seen.amount, seen.until) = (micros, until);
        if !gained {
            return;
        }
        seen.latest = seen.latest.max(until);
        let of_it = |delivery: &Delivery| delivery.resource == Some(resource) && delivery.order == order;
        if order.is_some() && self.delivery.iter().any(of_it) {
            seen.order = order;
            if order <= before {
                self.fail(8, || format!("task {task} adopts {order:?} after {before:?}"));
            }
        }
        let found = &facts.tasks[task as usize];
        let ends = found.process.clock.when(until);
        let parent = facts.sites[found.site as usize].kin.parent.expect("the root has no lease");
        self.check_nested(facts, parent, resource, ends, || format!("task {task}"));
    }

    /// A client has adopted something: it is charged for it for at least as long, and its node has it for as long.
    pub(crate) fn check_adopted(&mut self, facts: &Facts<'_>, hold: u32) {
        let holding = &facts.holdings[hold as usize];
        let (client, resource, order) = (holding.client, holding.resource, holding.order());
        let (found, until) = (&facts.clients[client as usize], holding.until);
        let (site, ends) = (found.site, found.process.clock.when(until));
        self.check_nested(facts, site, resource, ends, || format!("client {client}"));
        let Some(task) = order.and_then(|order| facts.task_of(site, order.epoch)) else { return };
        let Some(books) = facts.books_of(task, resource) else { return };
        let id = facts.clients[client as usize].id.as_str();
        let charged =
            books.children.iter().filter(|child| child.holder == id && facts.is_life_of(client, child));
        let counted = charged.filter_map(|child| child.ends).max().unwrap_or(Time::ZERO);
        let counted = facts.tasks[task as usize].process.clock.when(counted);
        // A lease that was echoed or resealed is a part of the ghost of whoever did that, until it is claimed.
        let echoes = facts.clients[client as usize].way == Way::Legacy;
        let tasks = facts.sites[site as usize].tasks.clone().filter(|_| echoes);
        let ghost = tasks.map(|task| facts.ghost_until(task, resource)).max();
        let counted = counted.max(ghost.unwrap_or_default());
        if counted + ROUNDING < ends {
            self.fail(7, || {
                format!("client {client} uses r{resource} until {ends}, and is charged until {counted}")
            });
        }
    }

    /// Checks that nobody below a site uses anything for longer than the site has it.
    fn check_nested(
        &mut self,
        facts: &Facts<'_>,
        site: u32,
        resource: u16,
        ends: Time,
        who: impl FnOnce() -> String,
    ) {
        if facts.sites[site as usize].kin.parent.is_none() {
            return;
        }
        let tasks = facts.sites[site as usize].tasks.clone();
        let of_task = |task: u32| {
            let clock = facts.tasks[task as usize].process.clock;
            self.seen[self.at(task, resource)].ends(clock)
        };
        let own = tasks.map(of_task).max().unwrap_or_default();
        if ends > own + ROUNDING {
            let who = who();
            self.fail(11, || {
                format!("{who} has r{resource} until {ends}, and site {site} above it until {own}")
            });
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Until when, in real time, a leader counts what may be out from before; zero of one that counts nothing.
    fn ghost_until(&self, task: u32, resource: u16) -> Time {
        let Some(leadership) = &self.tasks[task as usize].leadership else { return Time::ZERO };
        let until = match self.books_of(task, resource) {
            Some(books) if books.ghost == Amount::ZERO => return Time::ZERO,
            Some(books) => books.ghost_until,
            None => leadership.left.ghost_end,
        };
        self.tasks[task as usize].process.clock.when(until)
    }
}

#[cfg(test)]
mod tests;
