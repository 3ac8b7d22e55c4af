//! Claims on streams that wait until the record says that what they claim outlasts what is left from before, or that it is not
//! known what is out.
//!
//! The record says of a part of the ghost that it is over soon. Whoever claims from that part is renewed and lasts longer, so
//! the record has to say so first. Its report waits for that write and is heard as if it had come after it: nothing that it
//! promises is about this leader, and its lease counts from a later moment than the report came, which errs on the side of
//! counting it too long. Who asks without a stream is told to ask again.
//!
//! A leader that does not know what is out charges what it is shown beyond its marks, so the record has to say first that marks
//! are not all, and for how long others like it may last: its holder shows that to no successor. Who waits for that is heard at the
//! latest when all is over that could be shown.

use std::collections::BTreeMap;

use lessor_proto::message::{Ask, Down, Report};
use lessor_proto::{ClientId, ResourceId, Time};

use super::{Node, Peer};
use crate::record::Unknown;

/// Reports that wait: the last of each stream and resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    reports: BTreeMap<(Peer, ResourceId), (Ask, Wait)>,
    /// The record says so: they can be heard.
    ready: Vec<(Peer, Ask)>,
}

/// Until when it waits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    /// Until the record says another thing of the resource.
    Room,
    /// Until the record says that what is shown may be out, and no longer than until then.
    Learning(Time),
}

// === impl Waiting ===

impl Waiting {
    /// `report` of `ask` waits, in the place of an earlier one.
    pub(super) fn put(&mut self, peer: Peer, ask: &Ask, report: &Report, wait: Wait) {
        let alone = Ask { reports: vec![report.clone()], ..ask.clone() };
        self.reports.insert((peer, report.resource.clone()), (alone, wait));
    }

    /// Nothing of `peer` waits that is about one of `resources`; absent: of any.
    pub(super) fn forget(&mut self, peer: Peer, resources: Option<&[ResourceId]>) {
        let is_of = |of: Peer, id: &ResourceId| {
            of == peer && resources.is_none_or(|resources| resources.contains(id))
        };
        self.reports.retain(|(of, id), _| !is_of(*of, id));
        self.ready.retain(|(of, ask)| !ask.reports.iter().any(|report| is_of(*of, &report.resource)));
    }

    /// The streams of `holder` on which something waits that is about `resource`.
    pub(super) fn peers(&self, resource: &ResourceId, holder: &ClientId) -> Vec<Peer> {
        let waiting = self.reports.iter().map(|((peer, _), (ask, _))| (*peer, ask));
        let all = waiting.chain(self.ready.iter().map(|(peer, ask)| (*peer, ask)));
        let is_it = |ask: &Ask| {
            ask.holder == *holder && ask.reports.iter().any(|report| report.resource == *resource)
        };
        all.filter(|(_, ask)| is_it(ask)).map(|(peer, _)| peer).collect()
    }

    /// The record says another thing of `resource`.
    fn release(&mut self, resource: &ResourceId) {
        let released = self.reports.extract_if(.., |(_, id), _| id == resource);
        self.ready.extend(released.map(|((peer, _), (ask, _))| (peer, ask)));
    }

    /// Those can be heard who wait for the record to say that what they show may be out, and no longer than until `at`.
    pub(super) fn release_learnt(&mut self, at: Time) {
        if self.reports.is_empty() {
            return;
        }
        let is_over = |wait: &Wait| matches!(wait, Wait::Learning(until) if *until <= at);
        let released = self.reports.extract_if(.., |_, (_, wait)| is_over(wait));
        self.ready.extend(released.map(|((peer, _), (ask, _))| (peer, ask)));
    }

    /// The record says that it is not known what is out of these: those can be heard who wait for that.
    pub(super) fn release_unknown(&mut self, unknown: Unknown) {
        let is_said =
            |id: &ResourceId, wait: &Wait| matches!(wait, Wait::Learning(_)) && unknown.is_of(id.is_floor());
        let released = self.reports.extract_if(.., |(_, id), (_, wait)| is_said(id, wait));
        self.ready.extend(released.map(|((peer, _), (ask, _))| (peer, ask)));
    }

    /// When some of them can be heard.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        if !self.ready.is_empty() {
            return Some(Time::ZERO);
        }
        if self.reports.is_empty() {
            return None;
        }
        let until = |(_, wait): &(Ask, Wait)| match wait {
            Wait::Room => None,
            Wait::Learning(until) => Some(*until),
        };
        self.reports.values().filter_map(until).min()
    }
}

// === impl Node ===

impl Node {
    /// The marks of `resources` are written.
    pub(super) fn release_claims(&mut self, resources: &[ResourceId]) {
        for id in resources {
            if let Some(resource) = self.resources.get_mut(id) {
                resource.forget_room();
            }
            self.streams.waiting.release(id);
        }
    }

    /// Hears those who have waited long enough.
    pub(super) fn hear_those_who_waited(&mut self, now: Time) {
        self.streams.waiting.release_learnt(now);
        if self.streams.waiting.ready.is_empty() {
            return;
        }
        for (peer, ask) in std::mem::take(&mut self.streams.waiting.ready) {
            if self.streams.peers.get(peer).is_none() {
                continue;
            }
            // The configuration may have changed meanwhile.
            if let Err(refusal) = self.admit_on(now, peer, &ask) {
                self.counters.refuse(&refusal);
                let (id, why) = (ask.report_id.unwrap_or_default(), refusal.to_string());
                self.streams.peers.say(peer, Down::Refused { id, why });
                continue;
            }
            // An operator may hold its holder back since it said that.
            let ask = self.held_back_on(now, peer, ask);
            ask.reports.iter().for_each(|report| self.hear(now, peer, &ask, report));
        }
    }
}
