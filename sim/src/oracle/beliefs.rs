//! The beliefs of clients, counted in real time whatever their clocks show, and the rules for holders.

use lessor_proto::message::{Down, Grant, Report};
use lessor_proto::{Amount, Epoch, Time};

use super::Delivery;
use crate::holding::Holding;
use crate::plan::{Scrutiny, Way};
use crate::process::Actor;
use crate::simulation::{Event, News, Simulation, ToHolder};
use crate::trace::Happening;

// === impl Simulation ===

impl Simulation {
    /// A client says that it may use so much from here on.
    pub(crate) fn adopt(&mut self, hold: u32, amount: Amount, until: Time) {
        let holding = &self.holdings[hold as usize];
        let (client, resource) = (holding.client, holding.resource);
        let actor = Actor::Client(client);
        let local = self.local(actor);
        let micros = amount.as_micros();
        self.note(actor.who(), Happening::MayUse, [micros, until.as_nanos(), resource.into()]);
        let holding = &mut self.holdings[hold as usize];
        let lived = local < holding.until;
        let gained = micros > 0 && (!lived || micros > holding.amount || until != holding.until);
        if gained {
            let of_it =
                |delivery: &&Delivery| delivery.resource == Some(resource) && delivery.micros == micros;
            if let Some(delivery) = self.oracle.delivery.iter().find(of_it) {
                let (found, before, fence) =
                    (delivery.order, holding.order, self.clients[client as usize].fence);
                // Doorman's clients take what they are given.
                let free = self.clients[client as usize].way == Way::Legacy;
                let in_order = free || found > before && found.is_some_and(|it| it.epoch >= fence);
                holding.order = found;
                if free {
                    // What it promises is about the session that its token names.
                    holding.promised = None;
                }
                if !in_order {
                    self.oracle.fail(8, || {
                        format!("client {client} adopts {found:?} after {before:?}, fence {fence}")
                    });
                }
            } else if self.oracle.delivery.iter().all(|delivery| delivery.resource.is_some())
                || micros > holding.amount
            {
                self.oracle.fail(8, || format!("client {client} has {amount} of r{resource} from nobody"));
            }
        }
        let holding = &mut self.holdings[hold as usize];
        holding.amount = micros;
        holding.until = until;
        if let (Some(order), Some((promised, most))) = (holding.order, holding.promised)
            && order <= promised
            && holding.use_at(local) > most
        {
            self.oracle.fail(9, || format!("client {client} uses {amount} and promised {most} millionths"));
        }
        self.recount(hold);
        let counted = self.holdings[hold as usize].counted;
        let total = self.oracle.totals[usize::from(resource)];
        self.news.push(News { client, resource, amount: Amount::from_micros(counted), total });
        if gained && matches!(self.rules.watch, Scrutiny::Close) {
            self.check_adopted(hold);
        }
    }

    /// A client whose lease has ended goes by what it was advised, or goes on.
    pub(crate) fn fall_back(&mut self, hold: u32, amount: Amount, until: Time) {
        let holding = &mut self.holdings[hold as usize];
        (holding.amount, holding.until) = (amount.as_micros(), until);
        let (client, resource) = (holding.client, holding.resource);
        self.note(
            Actor::Client(client).who(),
            Happening::MayUse,
            [amount.as_micros(), until.as_nanos(), resource.into()],
        );
        self.recount(hold);
        let amount = Amount::from_micros(self.holdings[hold as usize].counted);
        let total = self.oracle.totals[usize::from(resource)];
        self.news.push(News { client, resource, amount, total });
    }

    /// Brings what is counted of a holding up to date, and sees to it that it is looked at when it ends.
    pub(crate) fn recount(&mut self, hold: u32) {
        let holding = &self.holdings[hold as usize];
        let client = &self.clients[holding.client as usize];
        let clock = client.process.clock;
        let runs = client.lives() && client.process.paused.is_none();
        let counted = if runs { holding.use_at(clock.at(self.now)) } else { 0 };
        let (before, resource, site) = (holding.counted, usize::from(holding.resource), client.site);
        if counted != before {
            self.holdings[hold as usize].counted = counted;
            self.holdings[hold as usize].was_counted |= counted > 0;
            let swap = |sum: &mut u128| *sum = *sum + u128::from(counted) - u128::from(before);
            swap(&mut self.oracle.totals[resource]);
            let mut at = Some(site);
            while let Some(site) = at {
                swap(&mut self.oracle.below[site as usize * self.resources.len() + resource]);
                at = self.sites[site as usize].parent;
            }
            self.oracle.stirred.push(site);
        }
        if counted > 0 {
            let holding = &mut self.holdings[hold as usize];
            let local = clock.at(self.now);
            let ends = holding.used.iter().map(|used| used.until).chain([holding.until]);
            let next = ends.filter(|&end| end > local).min().unwrap_or(Time::MAX);
            let when = clock.when(next);
            if when < holding.lapse || holding.lapse < self.now {
                holding.lapse = when;
                self.queue.put(when, Event::Lapse(hold));
            }
        }
    }

    /// A holding ends, unless it was renewed.
    pub(crate) fn lapse(&mut self, hold: u32) {
        let now = self.now;
        let holding = &mut self.holdings[hold as usize];
        if holding.lapse != now {
            return;
        }
        holding.lapse = Time::MAX;
        let (before, client) = (holding.counted, holding.client);
        let frozen = self.process(Actor::Client(client)).frozen.is_some();
        if !frozen {
            self.stop_overdue(hold);
        }
        self.recount(hold);
        let holding = &self.holdings[hold as usize];
        if holding.counted != before {
            let total = self.oracle.totals[usize::from(holding.resource)];
            let amount = Amount::from_micros(holding.counted);
            self.news.push(News { client: holding.client, resource: holding.resource, amount, total });
        }
    }

    /// The amount that is used of a holding at this moment, in millionths.
    pub(super) fn uses(&self, holding: &Holding) -> u64 {
        let client = &self.clients[holding.client as usize];
        let runs = client.lives() && client.process.paused.is_none();
        if runs { holding.use_at(client.process.clock.at(self.now)) } else { 0 }
    }

    /// All sums again, from nothing.
    pub(crate) fn recount_all(&mut self) {
        let mut totals = vec![0; self.resources.len()];
        for holding in &self.holdings {
            let used = self.uses(holding);
            totals[usize::from(holding.resource)] += u128::from(used);
            // An event of this very moment may still be ahead that ends it.
            if used > holding.counted || used < holding.counted && holding.lapse > self.now {
                let (client, counted) = (holding.client, holding.counted);
                self.oracle.fail(23, || format!("client {client} uses {used}, and {counted} is counted"));
                return;
            }
        }
        if totals.iter().zip(&self.oracle.totals).any(|(fresh, kept)| fresh > kept) {
            self.oracle.fail(23, || "what clients believe was added up wrong".to_owned());
        }
    }

    /// The grants in what a holder is about to take in.
    pub(crate) fn watch_mail(&mut self, actor: Actor, delivery: &ToHolder) {
        let grants = match delivery {
            ToHolder::Answered { answer, .. } => &answer.grants[..],
            ToHolder::Down { down: Down::Grants(grants), .. } => &grants[..],
            ToHolder::Down { down: Down::Renewed { .. }, .. } => {
                self.oracle.delivery.push(Delivery { resource: None, order: None, micros: 0 });
                &[]
            }
            _ => &[],
        };
        for grant in grants {
            let index = self.resources.iter().position(|resource| resource.id == grant.resource);
            let Some(index) = index else { continue };
            let delivery = Delivery {
                resource: Some(index as u16),
                order: grant.order,
                micros: grant.capacity.as_micros(),
            };
            self.oracle.delivery.push(delivery);
            let is_gauge = grant.generation == Some(Grant::GAUGE) && self.knows_kind(actor);
            if is_gauge && !delivery.micros.is_multiple_of(1_000_000) {
                self.oracle.fail(23, || format!("{actor:?} is granted {} of a gauge", grant.capacity));
            }
        }
    }

    /// Watches a report that a holder is about to send.
    pub(crate) fn watch_report(&mut self, actor: Actor, epoch: Option<Epoch>, report: &Report) {
        let index = self.resources.iter().position(|resource| resource.id == report.resource);
        let Some(index) = index else { return };
        let promise = report.has.as_ref().map(|has| (has.order, report.held.unwrap_or(has.capacity)));
        match actor {
            Actor::Client(client) => {
                let local = self.local(actor);
                let found = &mut self.clients[client as usize];
                found.fence = found.fence.max(epoch.unwrap_or_default());
                let mut holds = found.holds.clone();
                let of_it = |hold: &u32| usize::from(self.holdings[*hold as usize].resource) == index;
                let Some(hold) = holds.find(of_it) else { return };
                let holding = &mut self.holdings[hold as usize];
                let Some((Some(order), held)) = promise else { return };
                holding.promised = Some((order, held.as_micros()));
                let used = holding.use_at(local);
                if holding.order <= Some(order) && used > held.as_micros() {
                    self.oracle.fail(9, || format!("client {client} promises {held} and uses {used}"));
                }
            }
            // The books of a large node take long to add up.
            Actor::Task(_) if matches!(self.rules.watch, Scrutiny::Loose(_)) => {}
            Actor::Task(task) => {
                let Some((_, held)) = promise else { return };
                let total = self.books_of(task, index as u16).map_or(0, |books| books.total);
                if total > u128::from(held.as_micros()) {
                    self.oracle.fail(12, || format!("it reports that it holds {held}, and {total} is out"));
                }
            }
        }
    }
}
