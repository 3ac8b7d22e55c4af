//! The way up: a node is a client of the node above it, by the same session as any client.

use std::time::Duration;

use lessor_client::internals::holding::{HoldingConfig, Inheritance, Surplus};
use lessor_client::internals::session::{Action, Change, Event, Session, SessionConfig};
use lessor_client::{Failure, Fallback, Kind};
use lessor_proto::message::{DomainReport, Down, HolderKind};
use lessor_proto::{ClientId, Epoch, Incarnation, ResourceId, Time};

use super::{Node, NodeConfig};
use crate::look::LookEvent;
use crate::record::{Record, Unknown};
use crate::repository;

/// The session with the node above.
#[derive(Clone, Debug)]
pub(crate) struct Above {
    session: Session,
}

// === impl Above ===

impl Above {
    /// As `config` says; nothing for a root.
    ///
    /// # Panics
    /// When the name of the node cannot be that of a holder.
    pub(crate) fn new(config: &NodeConfig) -> Option<Above> {
        let parent = config.parent.as_ref()?;
        let holder = ClientId::new(config.name.as_str(), usize::MAX).expect("the name of a node is a name");
        // Leaders of a line are told by that, which strangers do not know. Without one nothing else tells this process from one
        // that poses as it: its epoch is said to everybody.
        let incarnation = match config.line {
            Some(_) => config.epoch.into(),
            None => Incarnation(config.epoch.0 ^ config.hash_seed),
        };
        let session = Session::new(SessionConfig {
            kind: HolderKind::Node,
            drift: config.drift,
            transport: parent.transport,
            eager: parent.eager,
            line: config.line,
            features: config.features,
            rules: config.rules.of_holder(),
            ..SessionConfig::new(holder, incarnation, parent.servers.clone())
        });
        Some(Above { session })
    }

    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(crate) fn tell(&mut self, report: DomainReport) {
        self.session.tell(report);
    }

    pub(crate) fn next_deadline(&self) -> Time {
        self.session.next_deadline()
    }
}

// === impl Node ===

impl Node {
    /// Time has passed that the clock of `now` did not show. What this node holds from the one above ends that much earlier,
    /// and so does all that it grants from here on; what it has granted is counted as long as it was to.
    pub fn lose_time(&mut self, now: Time, lost: Duration) {
        if let Some(Above { session }) = &mut self.parent {
            session.lose_time(now, lost);
        }
    }

    /// Something came from the node above.
    pub fn on_parent(&mut self, now: Time, event: Event) {
        if let Event::Down { id, down: Down::Look(look) } = &event {
            self.streams.lookers.note(now, LookEvent::Asked { stream: *id, look: look.clone() });
        }
        let outcome = match &event {
            Event::Answered { answer, .. } if answer.redirect.is_none() => {
                self.take_notice(&answer.notice.clone().unwrap_or_default())
            }
            Event::Down { down: Down::Notice(notice) | Down::NoticeInGrants(notice), .. } => {
                self.take_notice(notice)
            }
            Event::Failed { failure: Failure::Loop(why), .. }
            | Event::Closed { failure: Failure::Loop(why), .. } => {
                self.names.shut_out(why.clone());
                Ok(())
            }
            _ => Ok(()),
        };
        let Some(Above { session }) = &mut self.parent else { return };
        if let Err(why) = outcome {
            // As if nobody served there: what is held lasts until its end.
            return match event {
                Event::Answered { id, .. } => {
                    session.handle(now, Event::Failed { id, failure: Failure::Loop(why) });
                }
                Event::Down { id, .. } => session.abandon(now, id, Failure::Loop(why)),
                _ => {}
            };
        }
        let granted = match &event {
            Event::Down { down: Down::Grants(grants), .. } => {
                Some(grants.iter().map(|grant| grant.resource.clone()).collect::<Vec<ResourceId>>())
            }
            Event::Down { down: Down::Redirect(_), .. } | Event::Closed { .. } => None,
            _ => Some(Vec::new()),
        };
        session.handle(now, event);
        self.take_up_jobs(now);
        match granted {
            Some(granted) => self.note_streams(now, &granted),
            None => self.note_all_streams(now),
        }
    }

    /// The next thing to do with the node above. What changes by it is taken up.
    pub(super) fn poll_parent(&mut self, now: Time) -> Option<Action> {
        while let Some(action) = self.parent.as_mut()?.session.poll(now) {
            match action {
                Action::Change(change) => self.take_up(now, &change),
                Action::News(news) => self.learn_domains(now, news),
                action => return Some(action),
            }
        }
        None
    }

    /// Takes up what the node above allows from here on.
    pub(super) fn take_up_changes(&mut self, now: Time) {
        while let Some(change) = self.parent.as_mut().and_then(|above| above.session.next_change(now)) {
            self.take_up(now, &change);
        }
    }

    fn take_up(&mut self, now: Time, change: &Change) {
        let before = self.parent.as_ref().and_then(|above| above.session.before(&change.resource));
        let grantor = epoch_above(&self.parent, &change.resource);
        let before_us = self.config.record.as_ref().and_then(|record| record.proofs.get(&change.resource));
        let is_the_same = before_us.map(|proof| proof.order.epoch) == grantor;
        let is_recalled =
            self.parent.as_ref().is_some_and(|above| above.session.is_recalled(&change.resource));
        let is_told = self.is_told_of_line();
        let earlier = self.parent.as_ref().and_then(|above| above.session.earlier(&change.resource));
        // Whoever is not known to have stopped may have been granted something since.
        let is_sure = self.config.record.as_ref().is_some_and(|record| !record.unsure);
        self.with(now, &change.resource, |resource, around| {
            if let Some(before) = before.filter(|&(_, until)| now < until && !is_told) {
                resource.inherit(before);
            }
            // What was inherited is no grant.
            if change.allowance.until > now {
                let counted = if is_recalled { None } else { change.allowance.capacity };
                resource.note_grantor(now, is_the_same, counted, around.cx.config.drift);
            }
            if let Some(end) = earlier.filter(|_| is_sure) {
                resource.end_ghost(now, end);
            }
            resource.lease(change.allowance, change.learns_until);
        });
    }

    /// Whether the record tells all that leaders before this one have left in use in this line of succession. Where marks are
    /// kept that is nothing if it does not know: nobody has granted anything before the first write said that it does.
    fn is_told_of_line(&self) -> bool {
        let tells =
            |record: &Record| record.unknown == Unknown::Nothing || self.config.marks && !record.is_copy;
        self.config.record.as_ref().is_some_and(tells)
    }

    /// Lets the marks and the session know what is wanted of a resource, and what of it is out.
    pub(super) fn sync(&mut self, now: Time, id: &ResourceId) {
        let Some(resource) = self.resources.get_mut(id) else { return };
        let silent = resource.take_silent();
        self.note_mark(now, id);
        self.couple(now, id);
        self.note_silent(now, id, silent);
        let most_buckets = self.config.message.buckets_per_resource;
        let Some(Above { session }) = &mut self.parent else { return };
        let Some(resource) = self.resources.get_mut(id).filter(|resource| resource.speaks(now)) else {
            return;
        };
        // While the template says a gauge, and what is out are still units a second, those are counted as whole units.
        let in_use = match resource.terms().kind {
            repository::Kind::Rate => resource.outstanding(),
            repository::Kind::Gauge => resource.outstanding().ceil_to_units(),
        };
        if resource.ask_above() {
            let config = HoldingConfig {
                kind: held_as(resource.terms().kind),
                bands: resource.bands(most_buckets),
                fallback: Fallback::Pessimistic,
                surplus: Surplus::Keep,
            };
            session.add(now, id.clone(), config);
            let record = self.config.record.as_ref();
            let proof = record.and_then(|record| record.proofs.get(id)).cloned();
            if let Some(proof) = proof {
                let counted = resource.inherited(now, &self.config);
                let kind = held_as(resource.counted());
                session.inherit(id, Inheritance { kind, counted, proof });
            }
        } else if resource.take_wants_news() {
            session.set_bands(now, id, resource.bands(most_buckets));
        }
        session.set_peak(now, id, resource.peak());
        session.set_in_use(now, id, in_use);
        session.set_unenforced(id, resource.unenforced());
    }

    /// Nobody below uses a resource any more.
    pub(super) fn leave_above(&mut self, now: Time, id: &ResourceId) {
        if let Some(Above { session }) = &mut self.parent {
            session.remove(now, id);
        }
    }
}

/// The kind as which a resource of that kind is held.
fn held_as(kind: repository::Kind) -> Kind {
    match kind {
        repository::Kind::Rate => Kind::Rate,
        repository::Kind::Gauge => Kind::Gauge,
    }
}

/// The epoch of the node above under which it granted what it did last.
pub(super) fn epoch_above(parent: &Option<Above>, id: &ResourceId) -> Option<Epoch> {
    parent.as_ref()?.session().lease_order(id).map(|order| order.epoch)
}
