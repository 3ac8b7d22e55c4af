//! The writes of marks: what is due to be written when, and what counts once it has been.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::internals::holding::Proof;
use lessor_proto::{Amount, ResourceId, Time};

use super::known::KnownMark;
use super::need::{Need, NeedValue, Over};
use super::{MarkWrite, Marks, PATIENCE, Settled};
use crate::ledger::Ceiling;
use crate::record::{Longest, RecordChange, RestOver, Terms, Unknown};

/// The interval at which the rest is looked at, and it is said how long that may be out.
const LOOKS: Duration = Duration::from_secs(10);
/// After something is over that is told of, nodes have let it end.
const LET_END: Duration = Duration::from_millis(100);
/// After a write that failed, or may have.
const BACK_OFF: Duration = Duration::from_millis(100);

// === impl Marks ===

impl Marks {
    /// Returns the write that is due at `now`, if any; `need` tells what each resource needs, `over` when what is
    /// left from before is over, and `proof` what is to stand beside a mark. There is none before the outcome of
    /// the previous write is known.
    pub(crate) fn next(
        &mut self,
        now: Time,
        need: impl Fn(&ResourceId) -> Need,
        over: Over,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> Option<MarkWrite> {
        if !self.is_due(now) {
            return None;
        }
        let mut values: BTreeMap<ResourceId, NeedValue> = BTreeMap::new();
        for id in self.schedule.take_due(now).unwrap_or_default() {
            let need = need(&id);
            self.align(&id, need.kind);
            let Ceiling { total, lasting, .. } = self.marks.get(&id).copied().unwrap_or_default().ceiling();
            if need.amount > total || need.lasting > lasting {
                let mark = if need.amount > total { need.mark() } else { total };
                values.insert(id, need.beside(mark));
                if need.rest > Amount::ZERO {
                    // What is not claimed of that is told of again.
                    self.schedule.look_by(now + LOOKS);
                }
            }
        }
        while let Some(id) = self.schedule.pop_falling(now) {
            let mark = self.marks.entry(id.clone()).or_default();
            mark.falling = None;
            let need = need(&id);
            if need.is_exceeded_by(mark.most) {
                values.entry(id).or_insert(need.beside(need.lower_mark()));
            } else if need.epoch > mark.epoch && mark.least > Amount::ZERO {
                values.entry(id).or_insert(need.beside(mark.least));
            }
        }
        let looks = self.schedule.take_look(now);
        if looks {
            for (id, mark) in &self.marks {
                let need = need(id);
                let value = need.beside(mark.least);
                let is_news = value.rest < mark.rest || value.rest > mark.rest.saturating_add(need.ample());
                if is_news && need.out <= mark.least {
                    values.entry(id.clone()).or_insert(value);
                }
            }
        }
        self.note_rests(&values);
        if looks {
            let told = (!self.rests.is_empty()).then_some(now + LOOKS);
            let over = over.next(now).map(|at| at + LET_END);
            self.schedule.look_at(told.into_iter().chain(over).min());
        }
        let header = self.header.at(now, self.unmarked(), self.rest_over(now, over));
        let tells = header.rest_over.is_some() && (looks || !values.is_empty());
        let header = (tells || self.header.is_news(header)).then_some(header);
        (!values.is_empty() || header.is_some()).then(|| self.write(values, header, over, proof))
    }

    /// Takes in the outcome of the write `ticket`; not `committed`: nobody knows it.
    pub(crate) fn settle(&mut self, now: Time, ticket: u64, committed: bool) -> Option<Settled> {
        let (write, over) = self.in_flight.take_if(|(write, _)| write.ticket == ticket)?;
        let mut settled = Settled::default();
        if let Some(header) = write.change.terms.filter(|_| committed) {
            settled.unknown = match header.unknown > self.header.says_unknown() {
                true => header.unknown,
                false => Unknown::Nothing,
            };
            let before = self.header.written.replace(header).map_or(Longest::default(), Terms::longest);
            self.header.doubtful = false;
            self.header.earlier_doubtful &= write.change.earlier.as_ref() != Some(&self.header.earlier);
            settled.longer = header.longest().passes(before);
        }
        let change = write.change;
        let deletes = change.deletes.into_iter().map(|id| (id, Amount::ZERO));
        for (id, amount) in change.marks.into_iter().chain(deletes) {
            let mark = self.marks.entry(id.clone()).or_default();
            let rest = change.rests.get(&id).copied().unwrap_or_default();
            match committed {
                true if amount == Amount::ZERO && mark.falling.is_none() => {
                    self.marks.remove(&id);
                    self.rests.remove(&id);
                }
                true => {
                    (mark.most, mark.least) = (amount, amount);
                    (mark.lasting, mark.rest) = (amount.saturating_sub(rest), rest);
                    if rest == Amount::ZERO {
                        self.rests.remove(&id);
                    }
                    mark.rest_end = over.of(&id);
                    if mark.kind != change.kinds.get(&id).copied() {
                        // It was on its way when the kind was changed, and allows for nothing of the new one.
                        (mark.least, mark.lasting) = (Amount::ZERO, Amount::ZERO);
                    }
                    mark.epoch = change.proofs.get(&id).map(|proof| proof.order.epoch);
                }
                false if mark.least < amount || mark.lasting < amount.saturating_sub(rest) => {
                    self.schedule.raise(&id);
                }
                false => self.set_falling(&id, Some(now + PATIENCE)),
            }
            settled.resources.extend(committed.then_some(id));
        }
        if self.rests.is_empty() && self.header.written.is_some_and(|written| written.rest_over.is_some()) {
            // Nothing is left that this could be about.
            self.schedule.look_by(now + LOOKS);
        }
        if !committed {
            self.schedule.hold_until(now + BACK_OFF);
        }
        if self.schedule.is_any_due() || self.header.is_due() {
            self.schedule.hurry_to(now);
        }
        Some(settled)
    }

    /// The last write of this leader, which grants nothing any more: what is out of each resource. Before it is certain that
    /// its predecessor does not act any more, it cannot say so of itself.
    pub(crate) fn resign(
        &mut self,
        now: Time,
        need: impl Fn(&ResourceId) -> Need,
        over: Over,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> MarkWrite {
        self.resigned = true;
        self.in_flight = None;
        let value = |(id, mark): (&ResourceId, &KnownMark)| {
            let need = need(id);
            (id.clone(), need.beside(mark.least.min(need.out)))
        };
        let values: BTreeMap<ResourceId, NeedValue> = self.marks.iter().map(value).collect();
        let closed = now >= self.header.before.1;
        self.note_rests(&values);
        let header = self.header.at(now, self.unmarked(), self.rest_over(now, over));
        MarkWrite { closed, ..self.write(values, Some(header), over, proof) }
    }

    /// Whether there may be something to be written at `now`.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    /// When there is something to be written.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        if self.in_flight.is_some() || self.resigned {
            return None;
        }
        self.schedule.next_deadline([self.header.changes_at(), self.header.learnt_at(self.unmarked())])
    }

    fn write(
        &mut self,
        values: BTreeMap<ResourceId, NeedValue>,
        header: Option<Terms>,
        over: Over,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> MarkWrite {
        self.last_ticket += 1;
        let earlier = header.and_then(|_| self.header.tell_earlier());
        let mut change = RecordChange { terms: header, earlier, ..RecordChange::default() };
        for (id, NeedValue { amount, rest, kind }) in values {
            let mark = self.marks.entry(id.clone()).or_default();
            mark.kind = kind.or(mark.kind);
            mark.most = mark.most.max(amount);
            mark.least = mark.least.min(amount);
            mark.lasting = mark.lasting.min(amount.saturating_sub(rest));
            // Whatever was said before is over no later.
            mark.rest_end = if mark.rest > Amount::ZERO { mark.rest_end } else { over.of(&id) };
            mark.rest = mark.rest.max(rest);
            if rest > Amount::ZERO {
                change.rests.insert(id.clone(), rest);
            }
            if amount > Amount::ZERO {
                change.proofs.extend(proof(&id).map(|proof| (id.clone(), proof)));
                change.kinds.extend(mark.kind.map(|kind| (id.clone(), kind)));
                change.marks.insert(id, amount);
            } else {
                change.deletes.insert(id);
            }
        }
        if let Some(header) = header {
            self.header.send(header);
        }
        let write = MarkWrite { ticket: self.last_ticket, change, closed: false };
        self.in_flight = Some((write.clone(), over));
        write
    }

    /// The record may say from here on that something is left from before of those of which it is to say so.
    fn note_rests(&mut self, values: &BTreeMap<ResourceId, NeedValue>) {
        let left = values.iter().filter(|(_, value)| value.rest > Amount::ZERO);
        self.rests.extend(left.map(|(id, _)| id.clone()));
    }

    /// The time for which the rest may still be out, if the record may say of anything that it is.
    fn rest_over(&self, now: Time, over: Over) -> Option<RestOver> {
        let rest_over = RestOver { lease: over.lease.since(now), safe_lease: over.safe_lease.since(now) };
        (!self.rests.is_empty()).then_some(rest_over)
    }
}
