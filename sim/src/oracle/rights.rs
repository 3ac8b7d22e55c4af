//! The rules about rights, caps and places: what was taken away is not granted, nobody counts for more than may be, and nobody is
//! kept out where somebody has a place and nothing in it.

use std::sync::Arc;

use lessor_algorithms::Demand;
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Incarnation, Time};
use lessor_server::node::{Books, ChildBook};
use lessor_server::repository::{Kind, Legacy};

use super::facts::TICK;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::faults::Fault;
use crate::holding::Holding;
use crate::plan::Way;
use crate::rule_book::Whose;

/// A holder that may hold something no more, by the rules that its grantor goes by, or as an operator has recalled or drained it there.
#[derive(Clone, Debug)]
pub(super) struct DeniedHolder {
    whose: Whose,
    /// Which life of a client; all leaders of a node are one holder.
    life: Option<Incarnation>,
    /// The amount that it was charged for when it was seen last, in millionths.
    charge: u64,
    /// Since when, by the clock of its grantor.
    since: Time,
}

// === impl Oracle ===

impl Oracle {
    /// Nobody is charged for more who may hold a resource no more, by the rules that its grantor has looked at.
    pub(super) fn check_denied(&mut self, facts: &Facts<'_>, task: u32, resource: u16, books: &Books) {
        let Some(book) = facts.rule_book else { return };
        let now = facts.local(Actor::Task(task));
        let mut found: Vec<DeniedHolder> = Vec::new();
        for child in &books.children {
            let Some(whose) = book.whose(child.kind, &child.holder) else { continue };
            let is_held_back =
                facts.is_recalled(task, whose, resource) || facts.is_drained(task, child, resource);
            if facts.is_allowed(task, whose, resource) && !is_held_back {
                continue;
            }
            let life = child.incarnation.filter(|_| child.kind == HolderKind::Client);
            let charge = child.charge.as_micros();
            match found.iter_mut().find(|denied| (denied.whose, denied.life) == (whose, life)) {
                Some(denied) => denied.charge += charge,
                None => found.push(DeniedHolder { whose, life, charge, since: now }),
            }
        }
        let index = self.at(task, resource);
        let before = std::mem::take(&mut self.seen[index].held_back.denied);
        for denied in &mut found {
            let is_it = |was: &&DeniedHolder| (was.whose, was.life) == (denied.whose, denied.life);
            let Some(was) = before.iter().find(is_it) else { continue };
            denied.since = was.since;
            if denied.charge > was.charge {
                let (whose, charge, most) = (denied.whose, denied.charge, was.charge);
                self.fail(33, || {
                    format!("task {task} charges {whose:?} {charge} of r{resource}, which it may not hold, after {most}")
                });
            }
        }
        self.seen[index].held_back.denied = found;
    }

    /// The node of a task has let end what has ended: a lease after it could hold something no more nobody is charged for it.
    pub(crate) fn check_revoked(&mut self, facts: &Facts<'_>, task: u32) {
        if facts.rule_book.is_none() || facts.rules.faults.every(Fault::Kind).is_some() {
            return;
        }
        let now = facts.local(Actor::Task(task));
        for resource in 0..facts.resources.len() as u16 {
            let Some(books) = facts.books_of(task, resource).filter(|books| books.counted == Kind::Rate)
            else {
                continue;
            };
            self.check_denied(facts, task, resource, &books);
            let site = facts.tasks[task as usize].site;
            let longest = facts.sites[site as usize].longest(&facts.resources[usize::from(resource)].id);
            let longest = facts.rules.drift.stretch(facts.rules.drift.stretch(longest)) + TICK * 2;
            let seen = &self.seen[self.at(task, resource)];
            let late =
                seen.held_back.denied.iter().find(|denied| denied.charge > 0 && denied.since + longest < now);
            if let Some(DeniedHolder { whose, charge, .. }) = late.cloned() {
                self.fail(33, || {
                    format!("task {task} charges {whose:?} {charge} of r{resource}, which it may not hold, after {longest:?}")
                });
            }
        }
    }

    /// Nobody counts for more than the template in force lets anybody, and there are no more holders than may be.
    pub(super) fn check_caps(&mut self, facts: &Facts<'_>, task: u32, resource: u16, books: &Books) {
        let limits = facts.rules.limits;
        let Some(leadership) = &facts.tasks[task as usize].leadership else { return };
        let id = &facts.resources[usize::from(resource)].id;
        let template = leadership.node.repository().find(id);
        let (priority, clients) =
            template.map_or((None, None), |template| (template.most_priority, template.most_clients));
        let is_above = |child: &&ChildBook| {
            clients.is_some_and(|most| child.weight > u64::from(most).max(child.demands as u64))
                || priority.is_some_and(|most| child.priority > most)
        };
        let above = books
            .children
            .iter()
            .find(is_above)
            .map(|child| (child.holder.clone(), child.weight, child.priority));
        if let Some((holder, weight, found)) = above {
            self.fail(34, || {
                format!(
                    "task {task} counts {holder} as {weight} of r{resource} at {found}; most are {clients:?} at {priority:?}"
                )
            });
        }
        let count = books.children.len();
        if limits.clients.is_some_and(|most| count > most) {
            self.fail(35, || format!("task {task} has {count} holders of r{resource}"));
        }
        if let Some(most) = limits.holdings {
            let all = facts.all_books(task).iter().map(|books| books.children.len()).sum::<usize>();
            if all > most {
                self.fail(35, || format!("task {task} has {all} holders in all, and {most} may be"));
            }
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Whether rules let somebody hold a resource, as a task has looked at them: of who has streams, with the last of these.
    fn is_allowed(&self, task: u32, whose: Whose, resource: u16) -> bool {
        let Some(book) = self.rule_book else { return true };
        let found = &self.tasks[task as usize];
        let rights = found.leadership.iter().flat_map(|leadership| {
            leadership.rights.iter().filter(|(peer, _)| leadership.peers.contains(**peer))
        });
        let of_streams = rights.filter(|(_, rights)| rights.whose == whose).map(|(_, rights)| rights.edition);
        let mut editions: Vec<usize> = of_streams.collect();
        editions.push(found.editions.rules);
        // With any priority: who asks with a greater one is refused, and keeps what it has until that ends.
        editions.iter().any(|&edition| book.edition(edition).rights.may_hold(whose, resource, i64::MIN))
    }

    fn all_books(&self, task: u32) -> Vec<Arc<Books>> {
        (0..self.resources.len() as u16).filter_map(|resource| self.books_of(task, resource)).collect()
    }
}

// === impl Oracle: calm ===

impl Oracle {
    /// A holder that may hold a resource and wants some of it has a place, unless all are taken by those who have or want
    /// something. And one that may not has nothing.
    pub(super) fn judge_places(&mut self, facts: &Facts<'_>, resource: u16) {
        for hold in 0..facts.holdings.len() {
            let holding = &facts.holdings[hold];
            if holding.resource != resource || !facts.clients[holding.client as usize].lives() {
                continue;
            }
            if !facts.may_hold(holding) {
                let (client, counted) = (holding.client, holding.sums.counted);
                if counted > 0 {
                    self.fail(33, || {
                        format!("client {client} has {counted} of r{resource}, and may not hold it")
                    });
                }
                continue;
            }
            if holding.demand.wants <= 0.0 || facts.is_denied(holding) || !holding.is_asked() {
                continue;
            }
            let Some((site, kind, name)) = facts.without_place(holding) else { continue };
            if !facts.is_full(site, resource, (kind, &name)) {
                self.fail(35, || {
                    format!("{name} has no place at r{resource} of site {site}, and there is one")
                });
            }
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Whether a holding is known at its site, and the site at each one above.
    pub(crate) fn has_place(&self, holding: &Holding) -> bool {
        self.without_place(holding).is_none()
    }

    /// The same, whether or not there are limits: of one that may hold nothing it is told by that whether it listens.
    pub(super) fn is_known(&self, holding: &Holding) -> bool {
        self.unknown_at(holding).is_none()
    }

    /// The site at which somebody on the way of a holding to the root has no place, and who that is.
    fn without_place(&self, holding: &Holding) -> Option<(u32, HolderKind, String)> {
        let limits = self.rules.limits;
        if (limits.clients, limits.holdings, limits.of_stream) == (None, None, None) {
            return None;
        }
        self.unknown_at(holding)
    }

    /// The site that does not know somebody on the way of a holding to the root, and who that is.
    fn unknown_at(&self, holding: &Holding) -> Option<(u32, HolderKind, String)> {
        let client = &self.clients[holding.client as usize];
        let mut below = (HolderKind::Client, client.id.as_str().to_owned());
        let mut at = Some(client.site);
        while let Some(site) = at {
            let books = self.books(site, holding.resource);
            let (kind, name) = &below;
            let is_it = |child: &ChildBook| {
                child.kind == *kind
                    && child.holder == **name
                    && (*kind == HolderKind::Node
                        || child.incarnation.is_none()
                        || child.incarnation == Some(client.incarnation))
            };
            if !books.is_some_and(|books| books.children.iter().any(is_it)) {
                return Some((site, below.0, below.1));
            }
            below = (HolderKind::Node, self.sites[site as usize].name.to_string());
            at = self.sites[site as usize].kin.parent;
        }
        None
    }

    /// Whether all places at a site are taken by those who have or want something, or `holder` holds as many resources as a stream
    /// may.
    fn is_full(&self, site: u32, resource: u16, (kind, name): (HolderKind, &str)) -> bool {
        let limits = self.rules.limits;
        let Some(head) = self.sites[site as usize].head else { return false };
        let all = self.all_books(head);
        let is_it = |child: &ChildBook| child.kind == kind && child.holder == name;
        // What one request holds makes no room for the rest of it.
        let is_idle = |child: &ChildBook| child.charge == Amount::ZERO && child.wants <= 0.0 && !is_it(child);
        let is_taken = |books: &Arc<Books>| !books.children.iter().any(is_idle);
        let of_one = self.books_of(head, resource);
        let full = limits.clients.is_some_and(|most| {
            of_one.as_ref().is_some_and(|books| books.children.len() >= most && is_taken(books))
        });
        let full_in_all = limits.holdings.is_some_and(|most| {
            all.iter().map(|books| books.children.len()).sum::<usize>() >= most && all.iter().all(is_taken)
        });
        let held = all.iter().filter(|books| books.children.iter().any(is_it)).count();
        full || full_in_all || limits.of_stream.is_some_and(|most| held >= most)
    }

    /// Whether everybody who lives has a place and may hold what it wants, so that nobody asks in vain.
    pub(crate) fn are_all_in(&self) -> bool {
        self.holdings
            .iter()
            .filter(|holding| self.clients[holding.client as usize].lives() && holding.is_asked())
            .all(|holding| self.may_hold(holding) && self.has_place(holding))
    }

    /// Whether what nodes stand for is cut, so that shares below them are others than the root would give each client.
    pub(super) fn are_nodes_cut(&self, resource: u16) -> bool {
        let caps = |site: u32| self.rule_book.map(|book| book.rights().caps(site));
        let by_rules = (1..self.sites.len() as u32).filter_map(caps).any(|caps| caps != (None, None));
        let by_template = self.resources[usize::from(resource)].most_clients.is_some();
        self.sites.len() > 1 && (by_rules || by_template)
    }

    /// The demand that a holding counts for at the root: its wants, its weight and its priority.
    pub(super) fn counted_demand(&self, holding: &Holding) -> Demand {
        let resource = &self.resources[usize::from(holding.resource)];
        let mut demand = Demand {
            priority: holding.demand.priority,
            weight: holding.demand.weight,
            wants: holding.demand.wants,
        };
        if let (Some(book), Whose::Client(client)) = (self.rule_book, self.whose(holding.client)) {
            let allowance = book.rights().allowance(client);
            demand.wants = allowance.most_wants.map_or(demand.wants, |most| demand.wants.min(most));
            demand.weight *= allowance.weight;
            let site = self.clients[holding.client as usize].site;
            let priorities = self.nodes_above(site).filter_map(|site| book.rights().caps(site).1);
            demand.priority = priorities.fold(demand.priority, i64::min);
        }
        demand.priority = resource.most_priority.map_or(demand.priority, |most| demand.priority.min(most));
        demand.weight = resource.most_clients.map_or(demand.weight, |most| demand.weight.min(most));
        demand
    }

    /// Whether a client is one of Doorman's, of a resource that is denied to those.
    pub(super) fn is_denied(&self, holding: &Holding) -> bool {
        let denies = self.resources[usize::from(holding.resource)].legacy == Legacy::Deny;
        denies && self.clients[holding.client as usize].way == Way::Legacy
    }
}
