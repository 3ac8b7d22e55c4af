//! The beliefs of clients, counted in real time whatever their clocks show, and the rules for holders.

use lessor_proto::Amount;
use lessor_proto::message::{Down, Grant, Order};

use super::Delivery;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::event::ToHolder;
use crate::holding::Holding;
use crate::plan::{Scrutiny, Way};

// === impl Oracle ===

impl Oracle {
    /// All sums again, from nothing.
    pub(crate) fn recount_all(&mut self, facts: &Facts<'_>) {
        let mut totals = vec![0; facts.resources.len()];
        for holding in facts.holdings {
            let used = facts.uses(holding);
            totals[usize::from(holding.resource)] += u128::from(used);
            // An event of this very moment may still be ahead that ends it.
            if used > holding.sums.counted || used < holding.sums.counted && holding.sums.lapse > facts.now {
                let (client, counted) = (holding.client, holding.sums.counted);
                self.fail(23, || format!("client {client} uses {used}, and {counted} is counted"));
                return;
            }
        }
        if totals.iter().zip(&self.sums.totals).any(|(fresh, kept)| fresh > kept) {
            self.fail(23, || "what clients believe was added up wrong".to_owned());
        }
    }

    /// The grants in what a holder is about to take in.
    pub(crate) fn watch_mail(&mut self, facts: &Facts<'_>, actor: Actor, delivery: &ToHolder) {
        let grants = match delivery {
            ToHolder::Answered { answer, .. } => &answer.grants[..],
            ToHolder::Down { down: Down::Grants(grants), .. } => &grants[..],
            ToHolder::Down { down: Down::Renewed { .. }, .. } => {
                self.delivery.push(Delivery { resource: None, order: None, micros: 0 });
                &[]
            }
            _ => &[],
        };
        for grant in grants {
            let index = facts.resources.iter().position(|resource| resource.id == grant.resource);
            let Some(index) = index else { continue };
            let delivery = Delivery {
                resource: Some(index as u16),
                order: grant.order,
                micros: grant.capacity.as_micros(),
            };
            self.delivery.push(delivery);
            let is_gauge = grant.generation == Some(Grant::GAUGE) && facts.knows_kind(actor);
            if is_gauge && !delivery.micros.is_multiple_of(1_000_000) {
                self.fail(23, || format!("{actor:?} is granted {} of a gauge", grant.capacity));
            }
        }
    }

    /// Checks that the amount and the grant that a holding is about to adopt have just come. The number of that grant, unless it
    /// is an old one that goes on.
    pub(crate) fn check_order(
        &mut self,
        facts: &Facts<'_>,
        hold: u32,
        amount: Amount,
    ) -> Option<Option<Order>> {
        let holding = &facts.holdings[hold as usize];
        let (client, resource, before, micros) =
            (holding.client, holding.resource, holding.grant.order, amount.as_micros());
        let of_it = |delivery: &&Delivery| delivery.resource == Some(resource) && delivery.micros == micros;
        let Some(found) = self.delivery.iter().find(of_it).map(|delivery| delivery.order) else {
            let is_named = self.delivery.iter().all(|delivery| delivery.resource.is_some());
            if is_named || micros > holding.amount {
                self.fail(8, || format!("client {client} has {amount} of r{resource} from nobody"));
            }
            return None;
        };
        let fence = facts.clients[client as usize].fence;
        // Doorman's clients take what they are given.
        let is_free = facts.clients[client as usize].way == Way::Legacy;
        let is_in_order = is_free || found > before && found.is_some_and(|it| it.epoch >= fence);
        if !is_in_order {
            self.fail(8, || format!("client {client} adopts {found:?} after {before:?}, fence {fence}"));
        }
        Some(found)
    }

    /// Checks that a holding that has adopted something is used for no more than was promised.
    pub(crate) fn check_promise(&mut self, facts: &Facts<'_>, hold: u32) {
        let holding = &facts.holdings[hold as usize];
        let client = holding.client;
        if let (Some(order), Some((promised, most))) = (holding.grant.order, holding.grant.promised)
            && order <= promised
            && holding.use_at(facts.local(Actor::Client(client))) > most
        {
            let amount = Amount::from_micros(holding.amount);
            self.fail(9, || format!("client {client} uses {amount} and promised {most} millionths"));
        }
    }

    /// Checks that a client which is about to report uses no more than it promises for a grant.
    pub(crate) fn check_promised(&mut self, facts: &Facts<'_>, hold: u32, (order, held): (Order, Amount)) {
        let holding = &facts.holdings[hold as usize];
        let client = holding.client;
        let used = holding.use_at(facts.local(Actor::Client(client)));
        if holding.grant.order <= Some(order) && used > held.as_micros() {
            self.fail(9, || format!("client {client} promises {held} and uses {used}"));
        }
    }

    /// Checks that a node that is about to report promises no less than it has handed out.
    pub(crate) fn check_node_promise(&mut self, facts: &Facts<'_>, task: u32, resource: u16, held: Amount) {
        // The books of a large node take long to add up.
        if matches!(facts.rules.watch, Scrutiny::Loose(_)) {
            return;
        }
        let total = facts.books_of(task, resource).map_or(0, |books| books.total);
        if total > u128::from(held.as_micros()) {
            self.fail(12, || format!("it reports that it holds {held}, and {total} is out"));
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The amount that is used of a holding at this moment, in millionths.
    pub(super) fn uses(&self, holding: &Holding) -> u64 {
        let client = &self.clients[holding.client as usize];
        let runs = client.lives() && client.process.paused.is_none();
        if runs { holding.use_at(client.process.clock.at(self.now)) } else { 0 }
    }
}
