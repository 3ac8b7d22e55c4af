//! The leases that nodes and clients adopt: each has been charged by the one above, and lasts no longer than that one's.

use lessor_client::Rung;
use lessor_proto::message::Order;
use lessor_proto::{Amount, Time};

use super::ROUNDING;
use crate::oracle::Delivery;
use crate::plan::Way;
use crate::process::Actor;
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    /// The node of a task has acted: what lease has it? It may act more than once in one event, as after a pause.
    pub(crate) fn watch_node(&mut self, task: u32) {
        if self.tasks[task as usize].leadership.is_none() {
            return;
        }
        if self.oracle.acted.last() != Some(&task) {
            self.oracle.acted.push(task);
        }
        self.watch_leases(task);
    }

    fn watch_leases(&mut self, task: u32) {
        let now = self.local(Actor::Task(task));
        for resource in 0..self.resources.len() as u16 {
            let Some(leadership) = &self.tasks[task as usize].leadership else { return };
            let Some(session) = leadership.node.parent_session() else { return };
            let allowance = session.allowance(now, &self.resources[usize::from(resource)].id);
            let micros = allowance.capacity.unwrap_or(Amount::MAX).as_micros();
            let order = session.proof(&self.resources[usize::from(resource)].id).map(|proof| proof.order);
            // It was dropped: whatever is adopted after that begins anew.
            if session.rung(now, &self.resources[usize::from(resource)].id) == Rung::Waiting {
                let index = self.oracle.at(task, resource);
                self.oracle.seen[index].order = None;
            }
            self.watch_lease(task, resource, (micros, allowance.until), order);
        }
    }

    /// Notes the lease of a node: how much, until when, and by which grant as its session says. It may have given some of it back
    /// since it adopted that, so that the amount does not tell.
    fn watch_lease(&mut self, task: u32, resource: u16, lease: (u64, Time), order: Option<Order>) {
        let (micros, until) = lease;
        let now = self.local(Actor::Task(task));
        let index = self.oracle.at(task, resource);
        let seen = &mut self.oracle.seen[index];
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
        if order.is_some() && self.oracle.delivery.iter().any(of_it) {
            seen.order = order;
            if order <= before {
                self.oracle.fail(8, || format!("task {task} adopts {order:?} after {before:?}"));
            }
        }
        let found = &self.tasks[task as usize];
        let ends = found.process.clock.when(until);
        let parent = self.sites[found.site as usize].parent.expect("the root has no lease");
        self.check_nested(parent, resource, ends, || format!("task {task}"));
    }

    /// A client has adopted something: it is charged for it for at least as long, and its node has it for as long.
    pub(in crate::oracle) fn check_adopted(&mut self, hold: u32) {
        let holding = &self.holdings[hold as usize];
        let (client, resource, order) = (holding.client, holding.resource, holding.order());
        let (found, until) = (&self.clients[client as usize], holding.until);
        let (site, ends) = (found.site, found.process.clock.when(until));
        self.check_nested(site, resource, ends, || format!("client {client}"));
        let Some(task) = order.and_then(|order| self.task_of(site, order.epoch)) else { return };
        let Some(books) = self.books_of(task, resource) else { return };
        let id = self.clients[client as usize].id.as_str();
        let charged =
            books.children.iter().filter(|child| child.holder == id && self.is_life_of(client, child));
        let counted = charged.filter_map(|child| child.ends).max().unwrap_or(Time::ZERO);
        let counted = self.tasks[task as usize].process.clock.when(counted);
        // A lease that was echoed or resealed is a part of the ghost of whoever did that, until it is claimed.
        let echoes = self.clients[client as usize].way == Way::Legacy;
        let tasks = self.sites[site as usize].tasks.clone().filter(|_| echoes);
        let ghost = tasks.map(|task| self.ghost_until(task, resource)).max();
        let counted = counted.max(ghost.unwrap_or_default());
        if counted + ROUNDING < ends {
            self.oracle.fail(7, || {
                format!("client {client} uses r{resource} until {ends}, and is charged until {counted}")
            });
        }
    }

    /// Until when, in real time, a leader counts what may be out from before; zero of one that counts nothing.
    fn ghost_until(&self, task: u32, resource: u16) -> Time {
        let Some(leadership) = &self.tasks[task as usize].leadership else { return Time::ZERO };
        let until = match self.books_of(task, resource) {
            Some(books) if books.ghost == Amount::ZERO => return Time::ZERO,
            Some(books) => books.ghost_until,
            None => leadership.ghost_end,
        };
        self.tasks[task as usize].process.clock.when(until)
    }

    /// Checks that nobody below a site uses anything for longer than the site has it.
    fn check_nested(&mut self, site: u32, resource: u16, ends: Time, who: impl FnOnce() -> String) {
        if self.sites[site as usize].parent.is_none() {
            return;
        }
        let tasks = self.sites[site as usize].tasks.clone();
        let of_task = |task: u32| {
            let clock = self.tasks[task as usize].process.clock;
            self.oracle.seen[self.oracle.at(task, resource)].ends(clock)
        };
        let own = tasks.map(of_task).max().unwrap_or_default();
        if ends > own + ROUNDING {
            let who = who();
            self.oracle.fail(11, || {
                format!("{who} has r{resource} until {ends}, and site {site} above it until {own}")
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lessor_client::Transport;
    use lessor_proto::ResourceId;

    use crate::plan::{Link, SimulationPlan};
    use crate::simulation::Simulation;

    /// A root and a leaf a second away, which polls, and one client that wants 10 of 100.
    fn far() -> SimulationPlan {
        let mut plan = SimulationPlan::tree(&[1], 1, 100.0, 10.0);
        plan.sites[1].link = Link::fixed(Duration::from_secs(1));
        plan.sites[1].transport = Transport::Poll;
        plan
    }

    /// The grant that the leaf holds, as the oracle has it and as its session does, and what it may hand out of that.
    fn held(sim: &Simulation) -> Option<[Option<lessor_proto::message::Order>; 2]> {
        let task = sim.sites[1].head?;
        let id = ResourceId::new("db", 256).expect("a name");
        let session = sim.tasks[task as usize].leadership.as_ref()?.node.parent_session()?;
        let seen = &sim.oracle.seen[sim.oracle.at(task, 0)];
        (seen.amount > 0).then(|| [seen.order, session.proof(&id).map(|proof| proof.order)])
    }

    /// While the answer is on its way, less is wanted: the leaf gives some of what it adopts back at once.
    #[test]
    fn a_node_holds_what_it_adopted_last_also_where_it_gives_some_of_it_back_at_once() {
        let mut sim = Simulation::new(1, &far());
        sim.pass(Duration::from_secs(30)).expect("no rule is broken");
        let before = held(&sim).expect("it has a lease");
        sim.set_wants(0, 80.0);
        sim.pass(Duration::from_millis(1_500)).expect("no rule is broken");
        sim.set_wants(0, 30.0);
        for _ in 0..100 {
            sim.pass(Duration::from_millis(10)).expect("no rule is broken");
            let [seen, held] = held(&sim).expect("it has a lease");
            assert_eq!(seen, held, "at {:?}", sim.now());
        }
        assert_ne!(held(&sim).expect("it has a lease"), before, "it was granted more meanwhile");
    }
}
