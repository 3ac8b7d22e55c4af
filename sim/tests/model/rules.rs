//! The rules that must hold in every state, by their numbers in section 13 of the protocol, and what must be reached for
//! the exploration to be worth something.

use lessor_proto::message::{Ask, HolderKind, Order, Report};
use lessor_proto::{Amount, Epoch, Incarnation, Time};
use lessor_server::node::Books;

use super::arrivals::{Charges, Who};
use super::bounds::{CAPACITY, LEASE_NANOS};
use super::parts::{Actor, Client, Kept};
use super::world::{World, resource};

/// The cut of the capacity, and the time until which what there was before may still be in use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(crate) struct Past {
    /// Half of the capacity is gone.
    pub(crate) cut: bool,
    /// Until when what there was before may still be in use.
    pub(crate) until: u64,
}

const I1: &str = "I1 the sum that clients believe in stays within the capacity";
const I2: &str = "I2 what clients believe in is in the books of the root";
const I3: &str = "I3 what is used below a node is charged to it";
const I4: &str = "I4 nobody uses more than it is charged for";
const I5: &str = "I5 the books stay within their limit, and nobody grows in debt";
const I7: &str = "I7 a charge ends no sooner than the use";
const I8: &str = "I8 the order of adopted grants increases";
const I9: &str = "I9 a promise is kept";
const I11: &str = "I11 leases below end before the lease above";
const I12: &str = "I12 a node holds all that is out";
const I14: &str = "I14 a ghost does not grow";
const I23: &str = "I23 the sums kept are the sums";
const NO_PANIC: &str = "no assertion of the machines fails";

/// The facts that must be reached.
pub(crate) const FACTS: [&str; 11] = [
    "two clients fill the capacity together",
    "a recall is acknowledged",
    "a client has what a dead one had",
    "debt is entered",
    "debt is left",
    "a claim is converted",
    "two lives of one client hold something",
    "a lease is renewed on a stream",
    "what was released is held by another",
    "a client below a node holds something",
    "a client comes back after it left",
];
const FILLED: u32 = 0;
const ACKNOWLEDGED: u32 = 1;
const INHERITED: u32 = 2;
const DEBT: u32 = 3;
const DEBT_LEFT: u32 = 4;
const CLAIMED: u32 = 5;
const TWINS: u32 = 6;
const RENEWED: u32 = 7;
const RELEASED: u32 = 8;
const BELOW: u32 = 9;
const BACK: u32 = 10;

// === impl World: while something happens ===

impl World {
    pub(crate) fn fail(&mut self, rule: &'static str) {
        if rule == I1 || rule == NO_PANIC || !self.only_promise {
            self.broken = self.broken.or(Some(rule));
        }
    }

    pub(crate) fn panicked(&mut self) {
        self.fail(NO_PANIC);
    }

    fn show(&mut self, fact: u32) {
        self.facts |= 1 << fact;
    }

    /// A client has adopted a grant.
    pub(crate) fn adopted(&mut self, number: usize, order: Order) {
        let client = Kept::change(&mut self.clients[number]);
        let before = client.order.replace(order);
        if before.is_some_and(|before| before >= order) {
            self.fail(I8);
        }
        let client = &self.clients[number];
        let site = &self.sites[client.home];
        if order.epoch != Epoch(site.epoch) {
            return;
        }
        let now = site.rate.at(self.real);
        let books = site.node.books(now, &resource());
        let ends = books.iter().flat_map(|books| charged(books, client)).filter_map(|(_, ends)| ends).max();
        if !site.rate.reaches(ends.unwrap_or(Time::ZERO), client.rate, client.told.until) {
            self.fail(I7);
        }
    }

    /// A holder asks.
    pub(crate) fn watch_ask(&mut self, actor: Actor, ask: &Ask) {
        self.watch_reports(actor, &ask.reports);
    }

    /// A holder reports.
    pub(crate) fn watch_reports(&mut self, actor: Actor, reports: &[Report]) {
        for report in reports {
            let Some(has) = &report.has else { continue };
            let held = report.held.unwrap_or(has.capacity);
            match actor {
                Actor::Client(number) => {
                    let real = self.real;
                    let client = Kept::change(&mut self.clients[number]);
                    if let Some(order) = has.order {
                        client.promised = Some((order, held));
                    }
                    if client.breaks_promise(real) {
                        self.fail(I9);
                    }
                }
                Actor::Node(site) => {
                    let site = &self.sites[site];
                    let books = site.node.books(site.rate.at(self.real), &resource());
                    if books.is_some_and(|books| books.total > u128::from(held.as_micros())) {
                        self.fail(I12);
                    }
                }
            }
        }
    }

    /// A report has arrived.
    pub(crate) fn watch_books(&mut self, site: usize, before: &Charges) {
        let after = self.charges(site);
        let converted = after.of.iter().any(|(who, charge)| *charge > before.of(who));
        if after.ghost < before.ghost && converted {
            self.show(CLAIMED);
        }
        let lowered =
            before.of.iter().any(|(who, charge)| after.of(who) < *charge && after.of(who) > Amount::ZERO);
        if lowered {
            self.show(ACKNOWLEDGED);
        }
    }
}

// === impl World: after something happened ===

impl World {
    /// Looks whether a rule is broken, and what has been reached, since `before`.
    pub(crate) fn judge(&mut self, before: &World) {
        self.judge_promise();
        if !self.only_promise {
            for site in 0..self.sites.len() {
                self.judge_site(before, site);
            }
            for number in 0..self.clients.len() {
                self.judge_client(number);
            }
        }
        self.look_for_facts(before);
    }

    fn judge_promise(&mut self) {
        let units = if self.past.cut && self.real >= self.past.until { CAPACITY / 2 } else { CAPACITY };
        if self.used(|_| true) > u128::from(Amount::from_units(units).as_micros()) {
            self.fail(I1);
        }
    }

    fn used(&self, of: impl Fn(&Client) -> bool) -> u128 {
        let uses = self.clients.iter().filter(|client| of(client)).map(|client| client.uses(self.real));
        uses.map(|amount| u128::from(amount.as_micros())).sum()
    }

    fn judge_site(&mut self, before: &World, number: usize) {
        let site = &self.sites[number];
        let (now, epoch) = (site.rate.at(self.real), site.epoch);
        let led = before.sites[number].epoch == epoch;
        let Some(books) = site.node.books(now, &resource()) else {
            if number == 0 && epoch == 1 && self.used(|_| true) > 0 {
                self.fail(I2);
            }
            return;
        };
        let charges: u128 = books.children.iter().map(|child| u128::from(child.charge.as_micros())).sum();
        if charges + u128::from(books.ghost.as_micros()) != books.total {
            self.fail(I23);
        }
        let limit = u128::from(books.limit.unwrap_or(Amount::MAX).as_micros());
        let is_passed = books.cuts.iter().any(|cut| cut.since > u128::from(cut.limit.as_micros()));
        let is_cut = books.cuts.last().map(|cut| cut.limit) == books.limit;
        if books.total > limit && !books.in_debt || books.in_debt && (is_passed || !is_cut) {
            self.fail(I5);
        }
        let (then, found) = (before.charges(number), self.charges(number));
        let grew = found.of.iter().any(|(who, charge)| *charge > then.of(who));
        if led && then.in_debt && books.in_debt && grew && found.ghost == then.ghost {
            self.fail(I5);
        }
        if led && before.sites[number].node.books(now, &resource()).is_some() && found.ghost > then.ghost {
            self.fail(I14);
        }
        if number == 0 && self.used(|_| true) > books.total {
            self.fail(I2);
        }
        if number > 0 {
            self.judge_edge(number, &books);
        }
        if led && books.in_debt {
            self.show(DEBT);
        }
        if led && then.in_debt && !books.in_debt {
            self.show(DEBT_LEFT);
        }
    }

    /// A node against the one above it.
    fn judge_edge(&mut self, number: usize, books: &Books) {
        let (site, above) = (&self.sites[number], &self.sites[number - 1]);
        let used = self.used(|client| client.home == number);
        let charged = above.node.books(above.rate.at(self.real), &resource()).map_or(0, |above| {
            let its = above.children.iter().filter(|child| child.kind == HolderKind::Node);
            let charge: u128 = its.map(|child| u128::from(child.charge.as_micros())).sum();
            charge + u128::from(above.ghost.as_micros())
        });
        // Before it has books a successor above has the record.
        let known = above.epoch == 1 || above.node.books(above.rate.at(self.real), &resource()).is_some();
        let session = site.node.parent_session();
        let until = session.map(|session| session.allowance(site.rate.at(self.real), &resource()).until);
        let (fresh, until) = (site.epoch == 1, until.unwrap_or(Time::ZERO));
        let outlives = books.children.iter().filter_map(|child| child.ends).any(|ends| ends > until);
        let live = until > site.rate.at(self.real);
        if known && used > charged {
            self.fail(I3);
        }
        if fresh && live && outlives {
            self.fail(I11);
        }
    }

    fn judge_client(&mut self, number: usize) {
        let client = &self.clients[number];
        if client.breaks_promise(self.real) {
            self.fail(I9);
        }
        let client = &self.clients[number];
        let site = &self.sites[client.home];
        let used = client.uses(self.real);
        if used == Amount::ZERO || client.order.is_none_or(|order| order.epoch != Epoch(site.epoch)) {
            return;
        }
        let books = site.node.books(site.rate.at(self.real), &resource());
        let charge = books.iter().flat_map(|books| charged(books, client)).map(|(charge, _)| charge).max();
        if charge.unwrap_or_default() < used {
            self.fail(I4);
        }
    }

    fn look_for_facts(&mut self, before: &World) {
        let uses: Vec<u64> = self.clients.iter().map(|client| client.uses(self.real).as_micros()).collect();
        let capacity = Amount::from_units(CAPACITY).as_micros();
        if uses.iter().sum::<u64>() == capacity && uses.iter().filter(|&&used| used > 0).count() > 1 {
            self.show(FILLED);
        }
        if uses.iter().filter(|&&used| used > 0).count() > 1
            && self.clients.len() > 2
            && self.clients.iter().any(|client| {
                client.incarnation == 1
                    && client.name == self.clients[2].name
                    && client.uses(self.real) > Amount::ZERO
            })
            && uses[2] > 0
        {
            self.show(TWINS);
        }
        if uses.iter().any(|&used| used > capacity - self.estate.as_micros()) && self.estate > Amount::ZERO {
            self.show(INHERITED);
        }
        for (now, then) in self.clients.iter().zip(&before.clients) {
            let renewed = now.order == then.order
                && now.told.until > then.told.until
                && now.told.capacity == then.told.capacity;
            let one = (now.uses(self.real) > Amount::ZERO, now.home > 0);
            let grew = now.uses(self.real) > then.uses(self.real);
            if renewed && !self.streams.is_empty() {
                self.facts |= 1 << RENEWED;
            }
            if one == (true, true) {
                self.facts |= 1 << BELOW;
            }
            if grew && now.came_back {
                self.facts |= 1 << BACK;
            }
            if grew
                && self.clients.iter().any(|other| !other.joined)
                && now.uses(self.real).as_micros() == capacity
            {
                self.facts |= 1 << RELEASED;
            }
        }
    }
}

/// The charges of a client in these books, each with its end.
fn charged<'a>(books: &'a Books, client: &'a Client) -> impl Iterator<Item = (Amount, Option<Time>)> + 'a {
    let its = books.children.iter().filter(|child| {
        child.kind == HolderKind::Client
            && child.holder == client.name
            && child.incarnation == Some(Incarnation(client.incarnation))
    });
    its.map(|child| (child.charge, child.ends))
}

// === impl Charges ===

impl Charges {
    fn of(&self, who: &Who) -> Amount {
        self.of.iter().find(|(other, _)| other == who).map_or(Amount::ZERO, |(_, charge)| *charge)
    }
}

// === impl Client ===

impl Client {
    /// Whether it uses more than it has promised, under a grant that the promise is about.
    fn breaks_promise(&self, real: u64) -> bool {
        let about = |order: Order| self.order.is_none_or(|held| held <= order);
        self.promised.is_some_and(|(order, most)| about(order) && self.uses(real) > most)
    }
}

// === impl Past ===

impl Past {
    /// The capacity is cut at `real` time.
    pub(crate) fn begin(real: u64) -> Past {
        Past { cut: true, until: real + LEASE_NANOS }
    }
}
