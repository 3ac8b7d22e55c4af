//! The rules of elections and records: who may act, and what is written for successors.

use std::time::Duration;

use lessor_proto::message::Grant;
use lessor_proto::{Amount, Time};
use lessor_server::node::Books;
use lessor_server::record::Record;

use super::books::ROUNDING;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::plan::Keeps;

// === impl Oracle ===

impl Oracle {
    /// At most one task of a site may act; beside it one whose key was deleted by hand, for as long as its successor
    /// knows.
    pub(super) fn check_authority(&mut self, facts: &Facts<'_>, site: u32) {
        let Some(registry) = facts.registry.filter(|_| facts.sites[site as usize].keeps == Keeps::Etcd)
        else {
            return;
        };
        let tasks = facts.sites[site as usize].tasks.clone();
        let acting = || tasks.clone().filter(|&task| facts.tasks[task as usize].acts(facts.now));
        let leads = registry.leads(site);
        let newest = acting().filter_map(|task| facts.tasks[task as usize].epoch()).max();
        let mut broken = None;
        for task in acting() {
            let epoch = facts.tasks[task as usize].epoch();
            let key = epoch.and_then(|epoch| registry.key_of(site, epoch));
            let stands = epoch == newest && key == leads;
            let forced = key.is_some_and(|key| facts.was_just_deposed(site, key));
            if !stands && !forced {
                broken = Some(format!(
                    "task {task} acts in epoch {epoch:?}, {newest:?} has begun, the key is of {leads:?}"
                ));
            }
            if let Some(head) = facts.sites[site as usize].head.filter(|&head| head != task)
                && let Some(leadership) = &facts.tasks[head as usize].leadership
                && facts.local(Actor::Task(head)) >= leadership.left.opens
            {
                broken =
                    Some(format!("task {task} acts in epoch {epoch:?}, and task {head} takes it for silent"));
            }
        }
        if let Some(what) = broken {
            self.fail(13, || what);
        }
    }

    /// Checks that no grant of a leader outlasts the time that its successor would wait for. An echo is no grant:
    /// the lease that it shows lasts as long without it, and where the record says that it is not known what is
    /// out, a successor learns it as this leader does.
    pub(crate) fn watch_grants(&mut self, facts: &Facts<'_>, task: u32, grants: &[Grant]) {
        let Some(record) = facts.record_of(task) else { return };
        let longest = |grant: &Grant| match grant.resource.is_floor() {
            true => record.longest_lease.max(record.longest_safe_lease),
            false => record.longest_lease,
        };
        // A client that forgets the number of its lease is answered with none.
        let echoed = |grant: &Grant| grant.order.is_none_or(|order| order.epoch < record.epoch);
        let counts = |grant: &&Grant| !(record.unknown.is_of(grant.resource.is_floor()) && echoed(grant));
        if let Some(grant) = grants.iter().filter(counts).find(|grant| grant.length > longest(grant)) {
            let (length, longest) = (grant.length, longest(grant));
            self.fail(6, || format!("task {task} grants for {length:?}, and {longest:?} is written"));
        }
    }

    /// Checks that no more of a resource is out than a successor would find written, and that the part of it that
    /// outlasts the moment by which a successor would take the rest for over, if its clock were fast and ours slow,
    /// is no more than what is written without the rest.
    pub(super) fn check_mark(&mut self, facts: &Facts<'_>, task: u32, resource: u16, books: &Books) {
        let id = &facts.resources[usize::from(resource)].id;
        let Some(record) = facts.record_of(task) else { return };
        let mark = record.marks.get(id).copied().unwrap_or(Amount::ZERO);
        let rest = record.rests.get(id).copied().unwrap_or(Amount::ZERO);
        let kind = record.kinds.get(id).copied();
        let over = if id.is_floor() { record.rest_over.safe_lease } else { record.rest_over.lease };
        let (epoch, unknown, closed) = (record.epoch, record.unknown.is_of(id.is_floor()), record.closed);
        let ending = books.ghost_parts.ending_by(facts.local(Actor::Task(task)) + over + ROUNDING);
        let total = books.total;
        let lasting = total - u128::from(ending.as_micros());
        // One that was deposed is itself what the writer found, and ends with that.
        let wrote = facts.tasks[task as usize].epoch() == Some(epoch) && !unknown;
        if wrote && rest > Amount::ZERO && lasting > u128::from(mark.saturating_sub(rest).as_micros()) {
            self.fail(6, || {
                format!(
                    "task {task} has {lasting} of r{resource} out for longer than {over:?}, and of {mark} {rest} is written \
                     to end by then"
                )
            });
        }
        // Who learns what is out says so, and a successor learns it as well.
        if total > u128::from(mark.as_micros()) && !unknown {
            self.fail(6, || format!("task {task} has {total} of r{resource} out, and {mark} is written"));
        } else if total > 0 && closed {
            self.fail(6, || format!("task {task} acts, and the record is closed"));
        } else if let Some(kind) = kind.filter(|&kind| wrote && total > 0 && kind != books.counted) {
            let counted = books.counted;
            self.fail(6, || {
                format!(
                    "task {task} has {total} of r{resource} out as a {counted:?}, and a {kind:?} is written"
                )
            });
        }
    }

    /// A new leader of a node says nothing to the node above before its predecessor is certainly silent.
    pub(crate) fn watch_silence(&mut self, facts: &Facts<'_>, task: u32) {
        let now: Time = facts.local(Actor::Task(task));
        let opens = facts.tasks[task as usize].leadership.as_ref().map(|leadership| leadership.left.opens);
        if opens.is_some_and(|opens| now < opens) {
            self.fail(13, || format!("task {task} speaks to the node above at [{now}], before {opens:?}"));
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Whether a leader was deposed by hand so short a time ago that it may still go on for the authority that it
    /// has, on the slowest clock.
    fn was_just_deposed(&self, site: u32, key: u64) -> bool {
        let authority =
            self.rules.drift.stretch(self.sites[site as usize].lengths.authority) + Duration::from_nanos(16);
        let forced = self.registry.and_then(|registry| registry.forced(site, key));
        forced.is_some_and(|at| self.now.since(at) <= authority)
    }

    /// The record that a successor of the leader would find, if anything is written.
    fn record_of(&self, task: u32) -> Option<&Record> {
        let found = &self.tasks[task as usize];
        let site = &self.sites[found.site as usize];
        match site.keeps {
            Keeps::Nothing => None,
            Keeps::File => found.leadership.as_ref()?.journal.as_ref().map(|_| &site.directory.stored),
            Keeps::Etcd => self.registry.map(|registry| registry.record(found.site)),
        }
    }
}
