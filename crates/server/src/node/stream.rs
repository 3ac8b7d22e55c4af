//! Streams: who is connected, what is due to them, and what comes out for them.

use lessor_proto::message::{
    Ask, BoundBy, Down, Hello, HolderKind, Refusal, Release, Report, StreamReport, UnitsAsked, Up, Welcome,
};
use lessor_proto::{ReportId, ResourceId, Time};

use super::Node;
use super::ends::EndedStream;
use super::parent::Above;
use super::resources::Surroundings;
use super::waiting::Wait;
use crate::domain_sync::DomainEvent;
use crate::marks::Marks;
use crate::resource::{earliest, shows_earlier};
use crate::streams::{Beat, Output, Peer, Stream};

// === impl Node ===

impl Node {
    /// Whether whoever says `hello` may open a stream.
    ///
    /// # Errors
    /// When a node says so that stands above this one.
    pub fn check_hello(&mut self, hello: &Hello) -> Result<(), Refusal> {
        self.names.check(hello.kind, &hello.holder)
    }

    /// Somebody has opened a stream. Another one of the same life of the same holder is dropped.
    pub fn connect(&mut self, now: Time, hello: Hello) -> Peer {
        self.finish_ends(now, hello.kind, &hello.holder);
        let (peer, before) = self.streams.open(hello.clone());
        self.note_opened(now, peer, &hello);
        self.sharing.note(now, DomainEvent::Opened { peer, hello });
        if let Some(before) = before {
            self.drop_stream(now, before);
        }
        let welcome = self.welcome(now);
        self.streams.peers.say(peer, Down::Welcome(welcome));
        self.tell_names(|told| told == peer);
        self.counters.tally.streams += 1;
        peer
    }

    /// Something came up a stream.
    pub fn receive(&mut self, now: Time, peer: Peer, up: Up) {
        if self.streams.peers.get(peer).is_none() {
            return;
        }
        self.counters.tally.received += 1;
        let goes_on = match up {
            Up::Hello(_) => false,
            Up::Report(report) => self.on_report(now, peer, report),
            Up::Release { id, resources } => {
                self.give_back(now, peer, id, resources);
                self.streams.peers.say(peer, Down::Released { id })
            }
            Up::Domains(report) => {
                self.on_domains(now, peer, report);
                true
            }
            Up::Units(asked) => {
                self.on_units(now, peer, &asked);
                true
            }
            Up::Jobs(news) => {
                self.on_jobs(now, peer, news);
                true
            }
            Up::View(part) => {
                self.on_view(now, peer, part);
                true
            }
            Up::Bye => return self.on_bye(now, peer),
        };
        if !goes_on {
            self.drop_stream(now, peer);
        }
    }

    /// The holder at the other end may hold these no more, whatever it says that it wants: what it has is recalled, and stays
    /// charged until it acknowledges that, or its lease has ended.
    pub fn revoke(&mut self, now: Time, peer: Peer, resources: &[ResourceId]) {
        self.streams.waiting.forget(peer, Some(resources));
        if let Some(stream) = self.streams.peers.get_mut(peer) {
            // It may come to have a place, or another life of it, only later.
            resources.iter().for_each(|id| stream.revoked.insert(id));
        }
        for id in resources {
            self.with_advanced(now, id, |resource, around| {
                if let Some(slot) = resource.listener(peer) {
                    resource.revoke(now, slot, BoundBy::Recall, around.cx, around.peers);
                }
            });
        }
    }

    /// A stream has ended. What was granted on it stays charged.
    pub fn disconnect(&mut self, now: Time, peer: Peer) {
        if let Some(stream) = self.streams.peers.remove(peer) {
            self.forget_stream(now, peer, &stream);
            self.work_end(now, EndedStream { peer, attached: stream.attached, leaver: None });
        }
    }

    /// The next thing to do at `now`; nothing if all is done until [`Node::next_deadline`].
    pub fn poll(&mut self, now: Time) -> Option<Output> {
        self.next_output(now, true)
    }

    /// The same, but for what is due from resources whose time has come: see [`Node::look_next`].
    pub fn poll_said(&mut self, now: Time) -> Option<Output> {
        self.next_output(now, false)
    }

    /// Looks at one resource whose time has come, if there is one, or takes up a part of a heartbeat, or of what was put off for
    /// a stream. What is to be said then comes out of [`Node::poll_said`].
    pub fn look_next(&mut self, now: Time) {
        let is_else_due = self.resources.next_due(now).is_some() || self.streams.heartbeats.is_due(now);
        let is_more_due = is_else_due || self.streams.resuming.is_any();
        let is_most_due = is_more_due || self.streams.sweep.is_any();
        if self.streams.ended.take_turn(is_most_due || self.streams.job_words.is_any()) {
            return self.work_ends(now);
        }
        if self.streams.job_words.take_turn(is_most_due) {
            return self.work_jobs(now);
        }
        if self.streams.sweep.take_turn(is_more_due) {
            return self.work_sweep(now);
        }
        if self.streams.resuming.take_turn(is_else_due) {
            return self.work_resuming(now);
        }
        if self.streams.heartbeats.take_turn(now, self.resources.next_due(now).is_some()) {
            return self.work_heartbeats(now);
        }
        if let Some(id) = self.resources.next_due(now) {
            // What the node above allows comes before what is told below.
            self.take_up_changes(now);
            self.look_at(now, &id);
        }
    }

    /// Whether the time of some resource or heartbeat has come, or something that was put off is to be looked at.
    #[must_use]
    pub fn is_look_due(&self, now: Time) -> bool {
        self.resources.next_deadline().is_some_and(|at| at <= now) || self.streams.is_look_due(now)
    }

    /// Whether something waits for a stream to take something.
    #[must_use]
    pub fn awaits_streams(&self) -> bool {
        self.streams.peers.is_any_waiting()
    }

    fn next_output(&mut self, now: Time, looks: bool) -> Option<Output> {
        loop {
            if let Some(output) = self.streams.peers.poll() {
                self.counters.tally.sent += u64::from(matches!(output, Output::Send { .. }));
                return Some(output);
            }
            self.hear_those_who_waited(now);
            // What the node above allows comes before what is told below.
            self.take_up_changes(now);
            if looks && self.is_look_due(now) {
                self.look_next(now);
                continue;
            }
            if self.say_domains(now) || self.say_looks(now) {
                continue;
            }
            match self.poll_parent(now) {
                Some(action) => return Some(Output::Parent(action)),
                // What has changed above may have to be told below.
                None if looks && self.is_look_due(now) || self.streams.peers.is_any_sendable() => {}
                None => return None,
            }
        }
    }

    /// When to poll again, and to ask for [`Node::next_marks`], if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let resources = self.resources.next_deadline();
        let parent = self.parent.as_ref().map(Above::next_deadline);
        let marks = self.marks.as_ref().and_then(Marks::next_deadline);
        let (streams, sharing) = (self.streams.next_deadline(), self.sharing.next_deadline());
        let looks = self.streams.lookers.next_deadline();
        earliest([resources, parent, marks, streams, sharing, looks])
    }

    /// When the holder at the other end of a stream was last heard of; absent where nothing is granted on it.
    #[must_use]
    pub fn last_heard(&self, peer: Peer) -> Option<Time> {
        let attached = &self.streams.peers.get(peer)?.attached;
        attached.iter().filter_map(|id| self.resources.get(id)?.last_heard(peer)).max()
    }

    /// The number of grants that were made to the holder at the other end of a stream, and wait until the stream takes something.
    #[must_use]
    pub fn waiting_grants(&self, peer: Peer) -> usize {
        self.streams.peers.get(peer).map_or(0, Stream::waiting_grants)
    }

    /// The number of open streams.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.streams.peers.len()
    }

    /// The number of open streams of holders of an earlier version, which know fewer kinds of message.
    #[must_use]
    pub fn older_streams(&self) -> usize {
        self.streams.peers.older()
    }

    /// The time of a resource on the timeline has come.
    fn look_at(&mut self, now: Time, id: &ResourceId) {
        self.with(now, id, |resource, around| {
            if resource.is_unsettled(now) {
                resource.settle(now, around.cx, around.peers);
            }
            resource.send_units(now, around.cx, around.peers);
        });
    }

    fn on_report(&mut self, now: Time, peer: Peer, report: StreamReport) -> bool {
        let Some(stream) = self.streams.peers.get(peer) else { return false };
        let (id, renew_all) = (report.id, report.renew_all);
        let is_meant = report.target_epoch.is_none_or(|epoch| epoch == self.config.epoch);
        if report.reports.is_empty() && renew_all && is_meant && stream.hello.kind == HolderKind::Client {
            // A heartbeat and nothing else, as nearly all are: there is nothing to admit.
            self.on_heartbeat(now, peer, Beat { id, at: now });
            return true;
        }
        let ask = report.into_ask(&stream.hello);
        let ask = self.held_back_on(now, peer, ask);
        if let (HolderKind::Node, Some(incarnation)) = (ask.kind, ask.incarnation) {
            self.hear_of_node(now, &ask.holder, ask.line, incarnation);
        }
        if ask.target_epoch.is_some_and(|epoch| epoch != self.config.epoch) {
            self.counters.tally.misdirected += 1;
            let welcome = self.welcome(now);
            return self.streams.peers.say(peer, Down::Welcome(welcome));
        }
        let epoch = self.config.epoch;
        if now < self.opens() && ask.reports.iter().any(|report| shows_earlier(report, epoch)) {
            // It was told to come back.
            return false;
        }
        if let Err(refusal) = self.admit_on(now, peer, &ask) {
            self.counters.refuse(&refusal);
            return self.streams.peers.say(peer, Down::Refused { id, why: refusal.to_string() });
        }
        for report in &ask.reports {
            self.hear(now, peer, &ask, report);
        }
        if renew_all {
            self.on_heartbeat(now, peer, Beat { id, at: now });
        }
        true
    }

    /// Whether what a stream's holder asks for may be heard.
    pub(super) fn admit_on(&mut self, now: Time, peer: Peer, ask: &Ask) -> Result<(), Refusal> {
        if let Some(stream) = self.streams.peers.get(peer) {
            let is_fresh = |report: &&Report| !stream.attached.contains(&report.resource);
            let fresh = ask.reports.iter().filter(is_fresh).count();
            let (count, limit) = (stream.attached.len() + fresh, self.config.resources_per_stream);
            if fresh > 0 && count > limit {
                return Err(Refusal::Exhausted { what: "resources on one stream".to_owned(), count, limit });
            }
        }
        // Nobody makes room for what is refused anyway.
        self.admit(now, ask)
    }

    /// One report of a stream's holder.
    pub(super) fn hear(&mut self, now: Time, peer: Peer, ask: &Ask, report: &Report) {
        if self.shows_a_gap(ask, report) {
            self.distrust_record(now);
        }
        self.open(now, &report.resource);
        let barred_by = self.barred_by(now, peer, ask, &report.resource);
        let wait = self.with_advanced(now, &report.resource, |resource, around| {
            let Surroundings { cx, peers } = around;
            if let Some(until) = resource.waits_to_learn(now, ask, report, cx) {
                return Some(Wait::Learning(until));
            }
            if resource.waits_for_room(now, ask, report, cx) {
                return Some(Wait::Room);
            }
            if let Some(slot) = resource.hear(now, ask, report, cx) {
                match barred_by {
                    None => resource.unbar_on(slot, peer),
                    Some(by) => resource.bar(slot, by, cx),
                }
                resource.attach(now, slot, peer, report.has.as_ref(), cx.config.epoch);
                if let Some(stream) = peers.get_mut(peer) {
                    // The name that all share, which is at hand.
                    stream.attached.insert(resource.id());
                }
                resource.respond(now, slot, cx, peers);
            }
            None
        });
        match wait.flatten() {
            Some(wait) => self.streams.waiting.put(peer, ask, report, wait),
            None => self.note_job_party(now, &report.resource, peer),
        }
    }

    /// Why nothing may be lent to the holder at the other end, if that is so: it has lost a right, or an operator holds it back.
    fn barred_by(&self, now: Time, peer: Peer, ask: &Ask, id: &ResourceId) -> Option<BoundBy> {
        let is_revoked = self.streams.peers.get(peer).is_some_and(|stream| stream.revoked.contains(id));
        let held_back = self.holds_back(now, ask.kind, &ask.holder, id);
        if is_revoked { Some(BoundBy::Recall) } else { held_back }
    }

    fn give_back(&mut self, now: Time, peer: Peer, id: ReportId, resources: Vec<ResourceId>) {
        self.streams.waiting.forget(peer, Some(&resources));
        let event = DomainEvent::Released { peer, resources: resources.clone() };
        self.sharing.note(now, event);
        self.forget_job_party(peer, resources.iter());
        let Some(stream) = self.streams.peers.get_mut(peer) else { return };
        for id in &resources {
            stream.attached.remove(id);
            stream.revoked.remove(id);
            stream.drained.remove(id);
        }
        let hello = &stream.hello;
        let (kind, line, incarnation) = (hello.kind, hello.line, Some(hello.incarnation));
        let release = Release { holder: hello.holder.clone(), incarnation, report_id: Some(id), resources };
        self.release_as(now, kind, line, &release);
    }

    /// The holder at the other end asks for units.
    fn on_units(&mut self, now: Time, peer: Peer, asked: &UnitsAsked) {
        let hello = self.streams.peers.get(peer).map(|stream| &stream.hello);
        let is_held_back =
            |hello: &Hello| self.holds_back(now, hello.kind, &hello.holder, &asked.resource).is_some();
        if hello.is_some_and(is_held_back) {
            return;
        }
        self.with_unsaid(&asked.resource, |resource, around| {
            resource.ask_units(now, peer, asked);
            resource.send_units(now, around.cx, around.peers);
        });
    }

    /// The holder at the other end gives all back, and ends the stream.
    fn on_bye(&mut self, now: Time, peer: Peer) {
        let Some(stream) = self.streams.peers.close(peer) else { return };
        self.counters.tally.releases += 1;
        self.forget_stream(now, peer, &stream);
        let leaver = Some(stream.hello);
        self.work_end(now, EndedStream { peer, attached: stream.attached, leaver });
    }

    /// This end ends the stream.
    pub(super) fn drop_stream(&mut self, now: Time, peer: Peer) {
        if let Some(stream) = self.streams.peers.close(peer) {
            self.forget_stream(now, peer, &stream);
            self.work_end(now, EndedStream { peer, attached: stream.attached, leaver: None });
        }
    }

    fn forget_stream(&mut self, now: Time, peer: Peer, stream: &Stream) {
        self.streams.forget(peer, stream);
        self.sharing.note(now, DomainEvent::Closed { peer });
        self.note_closed(now, peer, stream.hello.kind);
        self.forget_job_party(peer, stream.attached.iter());
    }

    fn welcome(&self, now: Time) -> Welcome {
        let opens = self.opens();
        let claims_open = now >= opens;
        let claims_open_in = (!claims_open).then(|| opens.since(now));
        let (epoch, features) = (self.config.epoch, self.config.features);
        Welcome { epoch, claims_open, claims_open_in, heartbeat: self.streams.heartbeat, features }
    }
}
