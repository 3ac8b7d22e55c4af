//! The books of a node, compared with what is used below another, and with the lease that has.

use lessor_proto::Amount;
use lessor_proto::message::HolderKind;
use lessor_server::node::Books;

use crate::process::Actor;
use crate::simulation::Simulation;

// === impl Simulation ===

impl Simulation {
    /// Checks that what is used below a site is charged to it by the one above, and so is the lease it has.
    pub(super) fn check_edge(&mut self, site: u32, resource: u16) {
        let Some(parent) = self.sites[site as usize].parent else { return };
        for task in self.sites[site as usize].tasks.clone() {
            self.check_lease(task, parent, resource);
        }
        let Some(head) = self.sites[parent as usize].head else { return };
        // Of two servers of one name neither counts what the other has granted.
        let are_two = self.rules.namesakes && self.sites[parent as usize].parent.is_some();
        if self.is_learning(head) || are_two {
            return;
        }
        let books = self.books_of(head, resource);
        let id = &self.resources[usize::from(resource)].id;
        let read = self.tasks[head as usize].leadership.as_ref().map(|leadership| &leadership.read);
        let ghost = match &books {
            Some(books) => books.ghost,
            None if self.is_haunted(head) => {
                read.and_then(|read| read.marks.get(id)).copied().unwrap_or_default()
            }
            None => Amount::ZERO,
        };
        let charge = self.charge_of(site, books.as_deref());
        let below = self.oracle.below[self.oracle.at(site, resource)];
        let ghost = u128::from(ghost.as_micros());
        if below > charge + ghost {
            self.oracle.fail(3, || {
                format!(
                    "below site {site} {below} of r{resource} is used, and {charge} is charged, ghost {ghost}"
                )
            });
        }
    }

    /// The lease of a task that acts for its site is charged to that, by whoever granted it and still leads, as it believes.
    fn check_lease(&mut self, task: u32, parent: u32, resource: u16) {
        let seen = &self.oracle.seen[self.oracle.at(task, resource)];
        let (found, amount) = (&self.tasks[task as usize], seen.amount);
        let site = found.site;
        let Some(order) = seen.order.filter(|_| self.local(Actor::Task(task)) < seen.until) else { return };
        let Some(grantor) = self.task_of(parent, order.epoch) else { return };
        if !found.acts(self.now) || !self.tasks[grantor as usize].acts(self.now) {
            return;
        }
        let books = self.books_of(grantor, resource);
        let charge = self.charge_of(site, books.as_deref());
        if u128::from(amount) > charge {
            self.oracle
                .fail(4, || format!("task {task} has {amount} of r{resource} and is charged {charge}"));
        }
    }

    /// The charge of a site in the books of one above.
    fn charge_of(&self, site: u32, books: Option<&Books>) -> u128 {
        let name = &self.sites[site as usize].name;
        let children = books.into_iter().flat_map(|books| &books.children);
        let its = children.filter(|child| child.kind == HolderKind::Node && *child.holder == **name);
        its.map(|child| u128::from(child.charge.as_micros())).sum()
    }
}
