//! The marks of a node: what is to be written so that a successor knows the most that may be out, and what the node may
//! do once it is.

use lessor_client::internals::holding::Proof;
use lessor_proto::message::Report;
use lessor_proto::{Amount, ResourceId, Time};

use super::parent::epoch_above;
use super::{Node, call_context, longest};
use crate::ledger::Ghost;
use crate::marks::{MarkWrite, Marks, Need, Over};
use crate::mutation::Rule;
use crate::record::{Longest, Unknown};
use crate::repository::{Legacy, Template};
use crate::resource::{Resource, shows_earlier};

// === impl Node ===

impl Node {
    /// Returns the write that is due at `now`, if any. There is no other before [`Node::on_marks`] has told its
    /// outcome.
    pub fn next_marks(&mut self, now: Time) -> Option<MarkWrite> {
        if !self.marks.as_ref()?.is_due(now) {
            return None;
        }
        let mut marks = self.marks.take()?;
        let over = self.over(now);
        let write = marks.next(now, |id| self.need(now, id), over, |id| self.proof(id));
        self.marks = Some(marks);
        let write = write?;
        self.counters.tally.mark_writes += 1;
        // A lower mark counts from here on.
        for id in write.change.marks.keys().chain(&write.change.deletes) {
            if let Some(resource) = self.resources.get_mut(id) {
                let kind = resource.counted();
                let ceiling = self.marks.as_ref().map(|marks| marks.ceiling(id, kind));
                if resource.ledger().ceiling() != ceiling {
                    resource.set_ceiling(ceiling);
                }
            }
        }
        Some(write)
    }

    /// The write `ticket` has certainly been made, or nobody knows. Who got less than its share for want of it is served.
    pub fn on_marks(&mut self, now: Time, ticket: u64, committed: bool) {
        let settled = self.marks.as_mut().and_then(|marks| marks.settle(now, ticket, committed));
        let Some(settled) = settled else { return };
        self.release_claims(&settled.resources);
        let said = self.marks.as_ref().map_or(Unknown::Nothing, Marks::says_unknown);
        self.streams.waiting.release_unknown(if settled.longer { said } else { settled.unknown });
        for id in &settled.resources {
            self.set_ceiling(now, id);
        }
        if settled.longer {
            for id in self.resources.names() {
                self.with_unsaid(&id, |resource, _| resource.unsettle());
            }
        }
    }

    /// Nothing is granted from here on, nor credited. The last write says so, and exactly what is out; nothing where no
    /// marks are kept. What a node has from the one above stays with it, for its next leader.
    pub fn resign(&mut self, now: Time) -> Option<MarkWrite> {
        let mut marks = self.marks.take()?;
        let need = |id: &ResourceId| Need { rest: self.rest(now, id), ..self.need(now, id) };
        let write = marks.resign(now, need, self.over(now), |id| self.proof(id));
        self.marks = Some(marks);
        self.counters.tally.mark_writes += 1;
        Some(write)
    }

    /// A resource may need another mark than it has.
    pub(super) fn note_mark(&mut self, now: Time, id: &ResourceId) {
        let Some(resource) = self.resources.get_mut(id) else { return };
        self.counters.tally.claims.add(resource.take_claims());
        if resource.has_untold() {
            self.tenure.note_untold(id);
        }
        if let Some(marks) = &mut self.marks {
            let need = Need { epoch: epoch_above(&self.parent, id), ..resource.need() };
            if self.config.record.as_ref().is_some_and(|record| !record.knows(id)) {
                marks.learn_until(now, Unknown::with(id.is_floor()), Some(resource.learns_until()));
                if let Some((longest, until)) = resource.shown_longest() {
                    marks.keep_longest(now, longest, until);
                }
            }
            if !marks.note(now, id, need) {
                resource.forget_lack();
            }
        }
    }

    /// The record is to say how long leases are granted for: by the templates in force, and of what they do not cover any more
    /// as before, as long as somebody holds any of it.
    pub(super) fn tell_longest(&mut self, now: Time) {
        let uncovered = self.resources.iter().filter(|(id, _)| self.template(id).is_none());
        let of = |(id, resource): (&ResourceId, &Resource)| {
            let length = resource.terms().legacy.counted(resource.terms().lease_length);
            match id.is_floor() {
                true => Longest { safe_lease: length, ..Longest::default() },
                false => Longest { lease: length, ..Longest::default() },
            }
        };
        let longest = uncovered.map(of).fold(longest(&self.repository, &self.config), Longest::max);
        if let Some(marks) = &mut self.marks {
            marks.set_longest(now, longest, self.config.drift);
        }
    }

    /// When claims open.
    pub(super) fn opens(&self) -> Time {
        call_context(&self.config, &self.marks, &self.tenure, &self.current_call).opens()
    }

    /// The mark of a resource is another one, or may be.
    fn set_ceiling(&mut self, now: Time, id: &ResourceId) {
        let Some(kind) = self.resources.get(id).map(Resource::counted) else { return };
        let ceiling = self.marks.as_ref().map(|marks| marks.ceiling(id, kind));
        self.with_advanced(now, id, |resource, _| resource.set_ceiling(ceiling));
    }

    /// The need that the mark of a resource has to allow for. Of a resource that nobody has asked for, it is what
    /// may be out from before.
    pub(super) fn need(&self, now: Time, id: &ResourceId) -> Need {
        let settled = self.config.record.as_ref().is_some_and(|record| {
            record.knows(id) && record.settles(self.tenure.since(), self.config.drift) <= now
        });
        let rest = if settled { self.rest(now, id) } else { Amount::ZERO };
        if let Some(resource) = self.resources.get(id) {
            return Need { epoch: epoch_above(&self.parent, id), rest, ..resource.need() };
        }
        let out = self.unopened(now, id).map_or(Amount::ZERO, |ghost| ghost.amount());
        Need { amount: out, out, rest, limit: Some(out), ..Need::default() }
    }

    /// The amount of a resource that is left from before and over when the record is to say so.
    fn rest(&self, now: Time, id: &ResourceId) -> Amount {
        let by = self.ends_of_rest(now, id.is_floor());
        let sticky = |terms: &Template| matches!(terms.legacy, Legacy::Sticky { .. });
        match self.resources.get(id) {
            // What is echoed counts for longer.
            Some(resource) if sticky(resource.terms()) => Amount::ZERO,
            None if self.template(id).is_some_and(|template| sticky(&template)) => Amount::ZERO,
            Some(resource) => resource.ledger().ghost_parts().ending_by(by),
            None => self.unopened(now, id).map_or(Amount::ZERO, |ghost| ghost.ending_by(by)),
        }
    }

    /// When what is left from before is over that successors are told of.
    fn over(&self, now: Time) -> Over {
        let at = |is_floor| {
            let at = self.ends_of_rest(now, is_floor);
            let short = !self.config.rules.keep(Rule::FullRest);
            if short { now + at.since(now) / 2 } else { at }
        };
        Over { lease: at(false), safe_lease: at(true) }
    }

    fn ends_of_rest(&self, now: Time, is_floor: bool) -> Time {
        let record = self.config.record.as_ref();
        record.map_or(Time::ZERO, |record| {
            record.next_rest(is_floor, self.tenure.since(), now, self.config.drift)
        })
    }

    /// Whether the holder of a resource that nobody has asked for yet shows what it has of another kind than `template` says:
    /// it is heard, or it could not give that back.
    pub(super) fn shows_other_kind(&self, now: Time, template: &Template, report: &Report) -> bool {
        let id = &report.resource;
        let record = self.config.record.as_ref().filter(|record| record.knows(id));
        let kind = record.and_then(|record| record.kinds.get(id));
        let is_out = || self.unopened(now, id).is_some_and(|ghost| ghost.amount() > Amount::ZERO);
        kind.is_some_and(|&kind| kind != template.kind)
            && shows_earlier(report, self.config.epoch)
            && is_out()
    }

    /// The ghost of a resource that nobody has asked for.
    fn unopened(&self, now: Time, id: &ResourceId) -> Option<Ghost> {
        let record = self.config.record.as_ref()?;
        Some(record.ghost(id, self.tenure.since(), self.config.drift).at(now))
    }

    /// The proof of the lease that this node has from the one above, or that a leader before this one had.
    fn proof(&self, id: &ResourceId) -> Option<Proof> {
        let own = self.parent.as_ref().and_then(|above| above.session().proof(id));
        own.or_else(|| self.config.record.as_ref()?.proofs.get(id).cloned())
    }
}
