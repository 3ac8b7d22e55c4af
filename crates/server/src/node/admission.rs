//! Admission of requests: what is looked at before anything of them counts, and what makes room where a limit is reached.

use lessor_proto::message::{Ask, Refusal, RefusedReport, Report};
use lessor_proto::{ResourceId, Time};

use super::{Node, call_context, covering};
use crate::mutation::Rule;
use crate::repository::Repository;
use crate::resource::{admit_legacy, check_kind, takes_place};

/// The room that a request takes, of what there is a limit for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Room {
    /// Resources that nobody has asked for yet.
    pub(super) resources: usize,
    /// Holders that a resource has not had yet.
    pub(super) holdings: usize,
}

/// The parts of a request that were admitted.
#[derive(Clone, Default, Debug)]
pub(super) struct AdmittedParts {
    pub(super) room: Room,
    /// Those that were refused, in order.
    pub(super) refused: Vec<RefusedReport>,
}

// === impl Node ===

impl Node {
    /// Whether the whole of a request is taken.
    pub(super) fn admit(&mut self, now: Time, ask: &Ask) -> Result<(), Refusal> {
        self.names.check(ask.kind, &ask.holder)?;
        let mut room = Room::default();
        for (index, report) in ask.reports.iter().enumerate() {
            room = self.admit_one(now, ask, (index, report), room)?;
        }
        Ok(())
    }

    /// Admits what is good of a request: it is refused if that is nothing.
    pub(super) fn admit_parts(&mut self, now: Time, ask: &Ask) -> Result<AdmittedParts, Refusal> {
        self.names.check(ask.kind, &ask.holder)?;
        let mut admitted = AdmittedParts::default();
        for (index, report) in ask.reports.iter().enumerate() {
            match self.admit_one(now, ask, (index, report), admitted.room) {
                Ok(room) => admitted.room = room,
                // It was the last that could have been good.
                Err(why) if admitted.refused.len() + 1 == ask.reports.len() => return Err(why),
                Err(why) => {
                    admitted.refused.push(RefusedReport::new(index, report.resource.as_str(), &why));
                }
            }
        }
        Ok(admitted)
    }

    /// Whether one report is taken, behind others that take so much room: then what it takes with them.
    fn admit_one(
        &mut self,
        now: Time,
        ask: &Ask,
        (index, report): (usize, &Report),
        room: Room,
    ) -> Result<Room, Refusal> {
        // It is not to make room for others of the request.
        self.resources.keep(&report.resource);
        self.check_drained(ask, report)?;
        let cx = call_context(&self.config, &self.marks, &self.tenure, &self.current_call);
        match self.resources.get_mut(&report.resource) {
            Some(resource) if resource.template().is_some() => {
                resource.advance(now);
                resource.check_kind(ask, index, report, &self.config)?;
                match resource.admit(ask, report, cx, &mut self.streams.peers)? {
                    0 => Ok(room),
                    more => {
                        self.fits(now, [room, Room { holdings: room.holdings + more, ..room }], ask, report)
                    }
                }
            }
            Some(_) => Err(unknown(&self.repository, index, &report.resource)),
            None => {
                let template =
                    covering(&self.repository, &self.orders.overrides, &self.config, &report.resource);
                let Some(template) = template else {
                    return Err(unknown(&self.repository, index, &report.resource));
                };
                if !self.shows_other_kind(now, &template, report) {
                    check_kind(&template, ask.kind, index, report)?;
                }
                admit_legacy(&template, ask, &self.config)?;
                let more = Room { resources: room.resources + 1, holdings: room.holdings + 1 };
                self.fits(now, [room, more], ask, report)
            }
        }
    }

    /// Whether there is room for `room` beside what there is, where there was for `before`. If not, a resource of which nobody has
    /// or wants any makes some, or a holder that has and wants nothing.
    fn fits(
        &mut self,
        now: Time,
        [before, room]: [Room; 2],
        ask: &Ask,
        report: &Report,
    ) -> Result<Room, Refusal> {
        if self.lacks(room, before).is_some()
            && let Some(id) = self.resources.pop_vacant()
        {
            self.forget_resource(now, &id);
        }
        if room.holdings > before.holdings
            && self.resources.holdings() + room.holdings > self.config.holdings
            && takes_place(report)
            && self.config.rules.keep(Rule::IdleMakeRoom)
        {
            self.make_room(now, ask);
        }
        self.lacks(room, before).map_or(Ok(room), Err)
    }

    /// A holder that has and wants nothing makes room for another one, of whatever resource; not the one that asks as far as it asks
    /// for that, or one resource of a request would make room for the next.
    fn make_room(&mut self, now: Time, ask: &Ask) {
        let mut next = self.resources.next_idling(None);
        while let Some(id) = next {
            let is_asked = ask.reports.iter().any(|report| report.resource == id);
            let beside = is_asked.then_some(ask.holder.as_str());
            let made = self.with(now, &id, |resource, around| resource.make_room(beside, around.peers));
            if made == Some(true) {
                return;
            }
            next = self.resources.next_idling(Some(&id));
        }
    }

    /// The limit that `room` passes and `before` did not.
    fn lacks(&self, room: Room, before: Room) -> Option<Refusal> {
        let (resources, holdings) = (self.resources.len(), self.resources.holdings());
        let exceeded = |what: &str, count, limit| {
            (count > limit).then(|| Refusal::Exhausted { what: what.to_owned(), count, limit })
        };
        let of_resources = (room.resources > before.resources)
            .then(|| exceeded("resources in all", resources + room.resources, self.config.resources));
        let of_holdings = (room.holdings > before.holdings)
            .then(|| exceeded("holdings in all", holdings + room.holdings, self.config.holdings));
        of_resources.flatten().or(of_holdings.flatten())
    }
}

fn unknown(repository: &Repository, index: usize, resource: &ResourceId) -> Refusal {
    let (field, resource_id) = (format!("resource[{index}].resource_id"), resource.to_string());
    match repository.why_unknown(resource) {
        Some(why) => Refusal::NoDomain { field, resource: resource_id, why },
        None => Refusal::Unknown { field, resource: resource_id },
    }
}
