//! Debts: after a cut nothing more is granted, and a lease later no more is out than there is.

use lessor_proto::Time;
use lessor_proto::message::HolderKind;
use lessor_server::node::{Books, ChildBook};
use lessor_server::repository::Kind;

use crate::actor::Actor;
use crate::oracle::facts::TICK;
use crate::oracle::{Facts, Oracle};

// === impl Oracle ===

impl Oracle {
    pub(super) fn check_limit(
        &mut self,
        facts: &Facts<'_>,
        task: u32,
        resource: u16,
        books: &Books,
        claimed: u64,
    ) {
        let index = self.at(task, resource);
        let Some(limit) = books.limit else { return };
        let limit = u128::from(limit.as_micros());
        if books.total > limit && !books.in_debt {
            self.fail(5, || {
                format!("task {task} has {} of {limit} of r{resource} out, and no debt", books.total)
            });
        }
        self.check_cuts(task, resource, limit, books);
        let over = facts.over_after_cut(task, resource, books);
        let seen = &mut self.seen[index];
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
        let learns = facts.is_learning(task);
        for child in &books.children {
            // All leaders of a node are one holder.
            let is_it = |other: &&ChildBook| {
                (other.kind, &other.holder) == (child.kind, &child.holder)
                    && (child.kind == HolderKind::Node || other.incarnation == child.incarnation)
            };
            let was = before.iter().filter(is_it).map(|child| child.charge).max().unwrap_or_default();
            // It has just shown what it has from before its grantor began, who did not know.
            let lives = |children: &[ChildBook]| children.iter().filter(is_it).count();
            if learns && lives(&books.children) > lives(&before) {
                continue;
            }
            if child.charge.as_micros() > was.as_micros() + claimed {
                self.fail(5, || {
                    format!("task {task} is in debt, and {} grows to {}", child.holder, child.charge)
                });
            }
        }
    }

    /// The grants since each cut of a debt fit the limit that it made, or are no more than they were, where two are counted as
    /// one.
    fn check_cuts(&mut self, task: u32, resource: u16, limit: u128, books: &Books) {
        let index = self.at(task, resource);
        let before = std::mem::replace(&mut self.seen[index].cuts, books.cuts.clone());
        let last = books.cuts.last().map(|cut| u128::from(cut.limit.as_micros()));
        if books.in_debt && last != Some(limit) {
            self.fail(5, || format!("task {task} is in debt of r{resource} by {last:?}, of {limit}"));
        }
        for cut in &books.cuts {
            let was = before.iter().find(|was| was.number == cut.number).map_or(0, |was| was.since);
            if cut.since > u128::from(cut.limit.as_micros()).max(was) {
                self.fail(5, || {
                    format!("task {task} granted too much of r{resource} since the cut: {cut:?}")
                });
            }
        }
    }

    /// The node of a task has let end what has ended: of what was cut, too much was out for one lease at the longest.
    pub(crate) fn check_debts(&mut self, facts: &Facts<'_>, task: u32) {
        let now = facts.local(Actor::Task(task));
        for resource in 0..facts.resources.len() as u16 {
            let owing = self.seen[self.at(task, resource)].owing;
            if owing.is_some_and(|owing| owing < now)
                && let Some(books) = facts.books_of(task, resource).filter(|books| books.in_debt)
                // Units of a gauge that were recalled may be used as long as their lease is renewed, and so is what is out
                // below of another kind.
                && books.counted == Kind::Rate
                && !books.changes_kind
            {
                self.fail(5, || {
                    format!("task {task} has {} of r{resource} out a lease after the cut", books.total)
                });
            }
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The time, by the clock of a task, at which all is over that was granted before a cut at this moment.
    fn over_after_cut(&self, task: u32, resource: u16, books: &Books) -> Time {
        // Everything granted before a cut is over a lease later, and a ghost at its own end; what was granted since fits the
        // limit.
        let found = &self.tasks[task as usize];
        let longest = self.sites[found.site as usize].longest(&self.resources[usize::from(resource)].id);
        let lease = found.process.clock.at(self.now) + self.rules.drift.stretch(longest);
        let ghost = found.leadership.as_ref().map_or(Time::ZERO, |leadership| leadership.left.ghost_end);
        lease.max(ghost).max(books.ghost_until) + TICK * 2
    }
}
