//! The books of a node, compared with what is used below another, and with the lease that has.

use lessor_proto::Amount;
use lessor_proto::message::HolderKind;
use lessor_server::node::Books;

use super::{Facts, Oracle};
use crate::actor::Actor;

// === impl Oracle ===

impl Oracle {
    /// Checks that what is used below a site is charged to it by the one above, and so is the lease it has.
    pub(super) fn check_edge(&mut self, facts: &Facts<'_>, site: u32, resource: u16) {
        let Some(parent) = facts.sites[site as usize].kin.parent else { return };
        for task in facts.sites[site as usize].tasks.clone() {
            self.check_lease(facts, task, parent, resource);
        }
        let Some(head) = facts.sites[parent as usize].head else { return };
        // Of two servers of one name neither counts what the other has granted.
        let are_two = facts.rules.namesakes && facts.sites[parent as usize].kin.parent.is_some();
        if facts.is_learning(head) || are_two {
            return;
        }
        let books = facts.books_of(head, resource);
        let id = &facts.resources[usize::from(resource)].id;
        let read = facts.tasks[head as usize].leadership.as_ref().map(|leadership| &leadership.left.record);
        let ghost = match &books {
            Some(books) => books.ghost,
            None if facts.is_haunted(head) => {
                read.and_then(|read| read.marks.get(id)).copied().unwrap_or_default()
            }
            None => Amount::ZERO,
        };
        let charge = facts.charge_of(site, books.as_deref());
        let below = self.sums.below[self.at(site, resource)];
        let ghost = u128::from(ghost.as_micros());
        if below > charge + ghost {
            self.fail(3, || {
                format!(
                    "below site {site} {below} of r{resource} is used, and {charge} is charged, ghost {ghost}"
                )
            });
        }
    }

    /// The lease of a task that acts for its site is charged to that, by whoever granted it and still leads, as it believes.
    fn check_lease(&mut self, facts: &Facts<'_>, task: u32, parent: u32, resource: u16) {
        let seen = &self.seen[self.at(task, resource)];
        let (found, amount) = (&facts.tasks[task as usize], seen.amount);
        let site = found.site;
        let Some(order) = seen.order.filter(|_| facts.local(Actor::Task(task)) < seen.until) else { return };
        let Some(grantor) = facts.task_of(parent, order.epoch) else { return };
        if !found.acts(facts.now) || !facts.tasks[grantor as usize].acts(facts.now) {
            return;
        }
        let books = facts.books_of(grantor, resource);
        let charge = facts.charge_of(site, books.as_deref());
        if u128::from(amount) > charge {
            self.fail(4, || format!("task {task} has {amount} of r{resource} and is charged {charge}"));
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The charge of a site in the books of one above.
    fn charge_of(&self, site: u32, books: Option<&Books>) -> u128 {
        let name = &self.sites[site as usize].name;
        let children = books.into_iter().flat_map(|books| &books.children);
        let its = children.filter(|child| child.kind == HolderKind::Node && *child.holder == **name);
        its.map(|child| u128::from(child.charge.as_micros())).sum()
    }
}
