//! The books of nodes, compared with what clients believe, with each other, and with what they were.

use lessor_client::holding::Rung;
use lessor_proto::message::{HolderKind, Order};
use lessor_proto::{Amount, Time};
use lessor_server::node::{Books, ChildBook, Claims};
use lessor_server::repository::Kind;

use super::Mail;
use crate::clock::Clock;
use crate::process::Party;
use crate::town::Town;

/// What was seen of a place and a resource.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    reign: u32,
    ghost: u64,
    /// Who was charged what, while the books were in debt.
    debtors: Vec<ChildBook>,
    /// What had been granted since the cut, of a limit that may have been cut again since.
    since_cut: u128,
    /// What the sum may not pass, and until when by the clock of its leader it may still do so, since that was last cut.
    limit: u128,
    owing: Option<Time>,
    /// The lease that the node has: how much, until when by its clock, and which grant.
    amount: u64,
    until: Time,
    order: Option<Order>,
    /// The latest end of any lease of this reign, by its clock, and of any reign before, in real time.
    latest: Time,
    past: Time,
}

/// Entries that a grantor may keep of one holder.
const MOST_ENTRIES: usize = 16;
/// Nodes cut time into ticks of 67 ms.
const TICK: std::time::Duration = std::time::Duration::from_millis(70);
/// Clocks are read in whole nanoseconds.
const ROUNDING: std::time::Duration = std::time::Duration::from_nanos(16);

// === impl Seen ===

impl Seen {
    pub(super) fn dethrone(&mut self, clock: Clock) {
        *self = Seen { past: self.ends(clock), ..Seen::default() };
    }

    /// When the last lease ends that any leader of the place has had.
    fn ends(&self, clock: Clock) -> Time {
        if self.latest == Time::ZERO { self.past } else { self.past.max(clock.when(self.latest)) }
    }
}

// === impl Town ===

impl Town {
    /// The books of the leader of a place as they are.
    pub(crate) fn books(&self, place: u32, resource: u16) -> Option<Books> {
        let now = self.local(Party::Place(place));
        let leader = self.places[place as usize].leader.as_ref()?;
        leader.node.books(now, &self.resources[usize::from(resource)].id)
    }

    /// The books of all leaders, for people.
    #[must_use]
    pub fn ledgers(&self) -> String {
        let mut text = String::new();
        for place in 0..self.places.len() as u32 {
            for resource in 0..self.resources.len() as u16 {
                let Some(books) = self.books(place, resource) else { continue };
                let Books { limit, total, ghost, in_debt, since_cut, children } = books;
                let seen = &self.oracle.seen[self.oracle.at(place, resource)];
                let now = self.local(Party::Place(place));
                text += &format!(
                    "{} r{resource} [{now}]: limit {limit:?}, total {total}, ghost {ghost}, debt {in_debt} ({since_cut}), \
                     lease {} until [{}] {:?}\n",
                    self.places[place as usize].name, seen.amount, seen.until, seen.order
                );
                for ChildBook { kind, holder, incarnation, charge, ends, wants, weight, share, entries } in
                    children
                {
                    text += &format!(
                        "    {kind:?} {holder} {incarnation:x?}: charge {charge} until {ends:?} in {entries}, wants {wants} \
                         for {weight}, share {share}\n"
                    );
                }
            }
        }
        text
    }

    /// The node of a place has acted: what lease has it?
    pub(crate) fn watch_node(&mut self, place: u32) {
        self.oracle.acted.push(place);
        if self.places[place as usize].parent.is_none() {
            return;
        }
        let now = self.local(Party::Place(place));
        for resource in 0..self.resources.len() as u16 {
            let Some(leader) = &self.places[place as usize].leader else { return };
            let Some(session) = leader.node.parent_session() else { return };
            let allowance = session.allowance(now, &self.resources[usize::from(resource)].id);
            let micros = allowance.capacity.unwrap_or(Amount::MAX).as_micros();
            // It was dropped: whatever is adopted after that begins anew.
            if session.rung(now, &self.resources[usize::from(resource)].id) == Rung::Waiting {
                let index = self.oracle.at(place, resource);
                self.oracle.seen[index].order = None;
            }
            self.watch_lease(place, resource, micros, allowance.until);
        }
    }

    fn watch_lease(&mut self, place: u32, resource: u16, micros: u64, until: Time) {
        let now = self.local(Party::Place(place));
        let index = self.oracle.at(place, resource);
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
        let of_it = |mail: &&Mail| mail.resource == Some(resource) && mail.micros == micros;
        // Of two grants in one message, the later one is the lease.
        if let Some(mail) = self.oracle.mail.iter().rev().find(of_it) {
            seen.order = mail.order;
            let found = mail.order;
            if found <= before {
                self.oracle.fail(8, || format!("place {place} adopts {found:?} after {before:?}"));
            }
        }
        let ends = self.places[place as usize].process.clock.when(until);
        let parent = self.places[place as usize].parent.expect("the root has no lease");
        self.check_nested(parent, resource, ends, || format!("place {place}"));
    }

    /// A client has adopted something: it is charged for it for at least as long, and its node has it for as long.
    pub(super) fn check_adopted(&mut self, hold: u32) {
        let holding = &self.holdings[hold as usize];
        let (client, resource, order) = (holding.client, holding.resource, holding.order());
        let (found, until) = (&self.clients[client as usize], holding.until);
        let (place, ends) = (found.place, found.process.clock.when(until));
        self.check_nested(place, resource, ends, || format!("client {client}"));
        let found = &self.places[place as usize];
        if order.is_none_or(|order| order.epoch != found.epoch) {
            return;
        }
        let Some(books) = self.books(place, resource) else { return };
        let charged = books.children.iter().filter(|child| self.is_of(client, child));
        let counted = charged.filter_map(|child| child.ends).max().unwrap_or(Time::ZERO);
        let counted = self.places[place as usize].process.clock.when(counted);
        if counted + ROUNDING < ends {
            self.oracle.fail(7, || {
                format!("client {client} uses r{resource} until {ends}, and is charged until {counted}")
            });
        }
    }

    /// Whoever is below a place uses nothing for longer than the place has it.
    fn check_nested(&mut self, place: u32, resource: u16, ends: Time, who: impl FnOnce() -> String) {
        if self.places[place as usize].parent.is_none() {
            return;
        }
        let clock = self.places[place as usize].process.clock;
        let own = self.oracle.seen[self.oracle.at(place, resource)].ends(clock);
        if ends > own + ROUNDING {
            let who = who();
            self.oracle.fail(11, || {
                format!("{who} has r{resource} until {ends}, and place {place} above it until {own}")
            });
        }
    }

    fn is_of(&self, client: u32, child: &ChildBook) -> bool {
        let found = &self.clients[client as usize];
        child.kind == HolderKind::Client
            && child.holder == found.id.as_str()
            && (child.incarnation.is_none() || child.incarnation == Some(found.incarnation))
    }

    /// The books of a node, by themselves and against its clients.
    pub(super) fn check_node(&mut self, place: u32, resource: u16, acted: bool) {
        let Some(books) = self.books(place, resource) else {
            return self.check_no_books(place, resource);
        };
        self.check_recount(place, resource, &books);
        let claimed = self.check_ghost(place, resource, &books, acted);
        if acted {
            self.check_limit(place, resource, &books, claimed);
            self.check_mark(place, resource, books.total);
        }
        let below = self.oracle.below[self.oracle.at(place, resource)];
        if self.places[place as usize].parent.is_none() && below > books.total {
            self.oracle.fail(2, || {
                format!("clients believe {below} of r{resource}, and {} is in the books", books.total)
            });
        }
        let epoch = self.places[place as usize].epoch;
        for &client in &self.places[place as usize].clients {
            let mut holds = self.clients[client as usize].holds.clone();
            let hold = holds.find(|&hold| self.holdings[hold as usize].resource == resource);
            let Some(holding) = hold.map(|hold| &self.holdings[hold as usize]) else { continue };
            if holding.counted == 0 || holding.order().is_none_or(|order| order.epoch != epoch) {
                continue;
            }
            let charges = books.children.iter().filter(|child| self.is_of(client, child));
            let charge: u64 = charges.map(|child| child.charge.as_micros()).sum();
            // Units in use beyond the lease were taken under an earlier one, perhaps of an earlier reign.
            let spare = if holding.counted > holding.amount { books.ghost.as_micros() } else { 0 };
            let counted = holding.counted;
            if counted > charge + spare || holding.amount.min(counted) > charge {
                self.oracle.fail(4, || {
                    format!("client {client} uses {counted} of r{resource} and is charged {charge}")
                });
                return;
            }
        }
    }

    fn check_no_books(&mut self, place: u32, resource: u16) {
        let found = &self.places[place as usize];
        let id = &self.resources[usize::from(resource)].id;
        let below = self.oracle.below[self.oracle.at(place, resource)];
        let read = found.leader.as_ref().map(|leader| &leader.read);
        let haunted = self.is_haunted(place) && read.is_some_and(|read| read.marks.contains_key(id));
        if read.is_some() && found.parent.is_none() && below > 0 && !haunted {
            self.oracle.fail(2, || format!("clients believe {below} of r{resource}, and there are no books"));
        }
    }

    fn check_recount(&mut self, place: u32, resource: u16, books: &Books) {
        let charges: u128 = books.children.iter().map(|child| u128::from(child.charge.as_micros())).sum();
        let total = charges + u128::from(books.ghost.as_micros());
        if total != books.total {
            self.oracle.fail(23, || {
                format!(
                    "place {place}, r{resource}: charges come to {total}, and the sum kept is {}",
                    books.total
                )
            });
        }
        let gauge = self.resources[usize::from(resource)].kind == Kind::Gauge;
        for child in &books.children {
            if child.entries > MOST_ENTRIES {
                self.oracle
                    .fail(21, || format!("place {place} keeps {} grants of one holder", child.entries));
            }
            if gauge && !child.charge.as_micros().is_multiple_of(Amount::MICROS_PER_UNIT) {
                self.oracle.fail(23, || format!("place {place} charges {} of a gauge", child.charge));
            }
        }
    }

    /// Gives back by how much the ghost has shrunk: what was claimed of it.
    fn check_ghost(&mut self, place: u32, resource: u16, books: &Books, acted: bool) -> u64 {
        let (index, haunted) = (self.oracle.at(place, resource), self.is_haunted(place));
        let reign = self.places[place as usize].process.life;
        let seen = &mut self.oracle.seen[index];
        let ghost = books.ghost.as_micros();
        // What claimants give up may go back to it.
        let deferred = self.rules.claims == Claims::Deferred;
        let read = self.places[place as usize].leader.as_ref().map(|leader| &leader.read.marks);
        let found = read.and_then(|marks| marks.get(&self.resources[usize::from(resource)].id));
        let grew = match seen.reign == reign && !deferred {
            true => ghost > seen.ghost,
            false => books.ghost > found.copied().unwrap_or_default(),
        };
        let claimed = seen.ghost.saturating_sub(ghost);
        (seen.reign, seen.ghost) = (reign, ghost);
        if grew || acted && ghost > 0 && !haunted {
            self.oracle.fail(14, || {
                format!("place {place} has a ghost of {} of r{resource} (grew: {grew})", books.ghost)
            });
        }
        claimed
    }

    fn check_limit(&mut self, place: u32, resource: u16, books: &Books, claimed: u64) {
        let index = self.oracle.at(place, resource);
        let Some(limit) = books.limit else { return };
        let limit = u128::from(limit.as_micros());
        if books.total > limit && !books.in_debt {
            self.oracle.fail(5, || {
                format!("place {place} has {} of {limit} of r{resource} out, and no debt", books.total)
            });
        }
        let since_cut = std::mem::replace(&mut self.oracle.seen[index].since_cut, books.since_cut);
        if books.in_debt && books.since_cut > limit.max(since_cut) {
            self.oracle.fail(5, || {
                format!("place {place} granted {} of {limit} of r{resource} since the cut", books.since_cut)
            });
        }
        // Everything granted before a cut is over a lease later, and a ghost at its own end; what was granted since fits the
        // limit.
        let found = &self.places[place as usize];
        let lease = found.process.clock.at(self.now) + self.rules.drift.stretch(found.longest_lease);
        let ghost = found.leader.as_ref().map_or(Time::ZERO, |leader| leader.ghost_end);
        let over = lease.max(ghost) + TICK * 2;
        let seen = &mut self.oracle.seen[index];
        let cut = std::mem::replace(&mut seen.limit, limit) > limit;
        seen.owing = match seen.owing {
            _ if !books.in_debt => None,
            Some(owing) if !cut => Some(owing),
            _ => Some(over),
        };
        let debtors = if books.in_debt { books.children.clone() } else { Vec::new() };
        let before = std::mem::replace(&mut seen.debtors, debtors);
        if before.is_empty() || !books.in_debt {
            return;
        }
        for child in &books.children {
            // All leaders of a node are one holder.
            let is_it = |other: &&ChildBook| {
                (other.kind, &other.holder) == (child.kind, &child.holder)
                    && (child.kind == HolderKind::Node || other.incarnation == child.incarnation)
            };
            let was = before.iter().filter(is_it).map(|child| child.charge).max().unwrap_or_default();
            if child.charge.as_micros() > was.as_micros() + claimed {
                self.oracle.fail(5, || {
                    format!("place {place} is in debt, and {} grows to {}", child.holder, child.charge)
                });
            }
        }
    }

    /// The node of a place has let end what has ended: of what was cut, too much was out for one lease at the longest.
    pub(crate) fn check_debts(&mut self, place: u32) {
        let now = self.local(Party::Place(place));
        for resource in 0..self.resources.len() as u16 {
            // Units of a gauge that were recalled may be used as long as their lease is renewed.
            let rate = self.resources[usize::from(resource)].kind == Kind::Rate;
            let owing = self.oracle.seen[self.oracle.at(place, resource)].owing;
            if rate
                && owing.is_some_and(|owing| owing < now)
                && let Some(books) = self.books(place, resource).filter(|books| books.in_debt)
            {
                self.oracle.fail(5, || {
                    format!("place {place} has {} of r{resource} out a lease after the cut", books.total)
                });
            }
        }
    }

    /// What is used below a place is charged to it by the one above, and so is the lease it has.
    pub(super) fn check_edge(&mut self, place: u32, resource: u16) {
        let found = &self.places[place as usize];
        let Some(parent) = found.parent else { return };
        if self.places[parent as usize].leader.is_none() {
            return;
        }
        let books = self.books(parent, resource);
        let id = &self.resources[usize::from(resource)].id;
        let read = self.places[parent as usize].leader.as_ref().map(|leader| &leader.read);
        let ghost = match &books {
            Some(books) => books.ghost,
            None if self.is_haunted(parent) => {
                read.and_then(|read| read.marks.get(id)).copied().unwrap_or_default()
            }
            None => Amount::ZERO,
        };
        let children = books.iter().flat_map(|books| &books.children);
        let its = children.filter(|child| child.kind == HolderKind::Node && *child.holder == *found.name);
        let charge: u128 = its.map(|child| u128::from(child.charge.as_micros())).sum();
        let index = self.oracle.at(place, resource);
        let below = self.oracle.below[index];
        let ghost = u128::from(ghost.as_micros());
        if below > charge + ghost {
            self.oracle.fail(3, || {
                format!("below place {place} {below} of r{resource} is used, and {charge} is charged, ghost {ghost}")
            });
        }
        let seen = &self.oracle.seen[index];
        let live = self.local(Party::Place(place)) < seen.until && self.is_led(place);
        let current = seen.order.is_some_and(|order| order.epoch == self.places[parent as usize].epoch);
        let amount = seen.amount;
        if live && current && u128::from(amount) > charge {
            self.oracle
                .fail(4, || format!("place {place} has {amount} of r{resource} and is charged {charge}"));
        }
    }
}
