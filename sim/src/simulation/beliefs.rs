//! The beliefs of clients: what each may use from here on, counted in real time whatever its clock shows.

use lessor_proto::message::Report;
use lessor_proto::{Amount, Epoch, Time};

use super::{Event, News, Simulation};
use crate::actor::Actor;
use crate::plan::{Scrutiny, Way};
use crate::trace::Happening;

// === impl Simulation ===

impl Simulation {
    /// A client says that it may use so much from here on.
    pub(super) fn adopt(&mut self, hold: u32, amount: Amount, until: Time) {
        let holding = &self.population.holdings[hold as usize];
        let (client, resource) = (holding.client, holding.resource);
        let actor = Actor::Client(client);
        let local = self.local(actor);
        let micros = amount.as_micros();
        self.note(actor.who(), Happening::MayUse, [micros, until.as_nanos(), resource.into()]);
        let holding = &self.population.holdings[hold as usize];
        let lived = local < holding.until;
        let gained = micros > 0 && (!lived || micros > holding.amount || until != holding.until);
        if gained && let Some(order) = self.consult(|oracle, facts| oracle.check_order(facts, hold, amount)) {
            let holding = &mut self.population.holdings[hold as usize];
            holding.grant.order = order;
            if self.population.clients[client as usize].way == Way::Legacy {
                // What it promises is about the session that its token names.
                holding.grant.promised = None;
            }
        }
        let holding = &mut self.population.holdings[hold as usize];
        (holding.amount, holding.until) = (micros, until);
        self.consult(|oracle, facts| oracle.check_promise(facts, hold));
        self.recount(hold);
        self.publish_belief(hold);
        if gained && matches!(self.rules.watch, Scrutiny::Close) {
            self.consult(|oracle, facts| oracle.check_adopted(facts, hold));
        }
    }

    /// A client whose lease has ended goes by what it was advised, or goes on.
    pub(super) fn fall_back(&mut self, hold: u32, amount: Amount, until: Time) {
        let holding = &mut self.population.holdings[hold as usize];
        (holding.amount, holding.until) = (amount.as_micros(), until);
        let (client, resource) = (holding.client, holding.resource);
        self.note(
            Actor::Client(client).who(),
            Happening::MayUse,
            [amount.as_micros(), until.as_nanos(), resource.into()],
        );
        self.recount(hold);
        self.publish_belief(hold);
    }

    /// Tells those who listen what a client believes of a holding.
    fn publish_belief(&mut self, hold: u32) {
        let holding = &self.population.holdings[hold as usize];
        let (client, resource) = (holding.client, holding.resource);
        let (amount, total) = (Amount::from_micros(holding.sums.counted), self.oracle.total(resource));
        self.progress.news.push(News { client, resource, amount, total });
    }

    /// Brings what is counted of a holding up to date, and sees to it that it is looked at when it ends.
    pub(super) fn recount(&mut self, hold: u32) {
        let holding = &self.population.holdings[hold as usize];
        let client = &self.population.clients[holding.client as usize];
        let clock = client.process.clock;
        let runs = client.lives() && client.process.paused.is_none();
        let counted = if runs { holding.use_at(clock.at(self.now)) } else { 0 };
        let (before, resource, site) = (holding.sums.counted, holding.resource, client.site);
        if counted != before {
            self.population.holdings[hold as usize].sums.counted = counted;
            self.population.holdings[hold as usize].sums.was_counted |= counted > 0;
            self.oracle.count(&self.tree.sites, site, resource, (before, counted));
        }
        if counted > 0 {
            let holding = &mut self.population.holdings[hold as usize];
            let local = clock.at(self.now);
            let ends = holding.permits.used.iter().map(|used| used.until).chain([holding.until]);
            let next = ends.filter(|&end| end > local).min().unwrap_or(Time::MAX);
            let when = clock.when(next);
            if when < holding.sums.lapse || holding.sums.lapse < self.now {
                holding.sums.lapse = when;
                self.queue.put(when, Event::Lapse(hold));
            }
        }
    }

    /// A holding ends, unless it was renewed.
    pub(super) fn lapse(&mut self, hold: u32) {
        let now = self.now;
        let holding = &mut self.population.holdings[hold as usize];
        if holding.sums.lapse != now {
            return;
        }
        holding.sums.lapse = Time::MAX;
        let (before, client) = (holding.sums.counted, holding.client);
        let frozen = self.process(Actor::Client(client)).frozen.is_some();
        if !frozen {
            self.stop_overdue(hold);
        }
        self.recount(hold);
        if self.population.holdings[hold as usize].sums.counted != before {
            self.publish_belief(hold);
        }
    }

    /// Takes down what a holder promises in a report that it is about to send.
    pub(super) fn take_promise(&mut self, actor: Actor, epoch: Option<Epoch>, report: &Report) {
        let index = self.resources.iter().position(|resource| resource.id == report.resource);
        let Some(index) = index else { return };
        let promise = report.has.as_ref().map(|has| (has.order, report.held.unwrap_or(has.capacity)));
        match (actor, promise) {
            (Actor::Client(client), promise) => {
                let found = &mut self.population.clients[client as usize];
                found.fence = found.fence.max(epoch.unwrap_or_default());
                let of_it =
                    |hold: &u32| usize::from(self.population.holdings[*hold as usize].resource) == index;
                let Some(hold) = found.holds.clone().find(of_it) else { return };
                let Some((Some(order), held)) = promise else { return };
                self.population.holdings[hold as usize].promise(order, held);
                self.consult(|oracle, facts| oracle.check_promised(facts, hold, (order, held)));
            }
            (Actor::Task(task), Some((_, held))) => {
                self.consult(|oracle, facts| oracle.check_node_promise(facts, task, index as u16, held));
            }
            (Actor::Task(_), None) => {}
        }
    }
}
