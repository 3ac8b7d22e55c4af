//! Nodes: what reaches a task, what one that leads does, and streams from their opening to their end.

use std::time::Duration;

use lessor_client::Failure;
use lessor_proto::message::{Answer, Ask, Down, Hello, Leader, Refusal};
use lessor_proto::{ReportId, Time};
use lessor_server::election::Candidate;
use lessor_server::node::{Output, Peer};

use super::{ENDLESS, Simulation, ToHolder, ToNode};
use crate::actor::{Actor, Sender};
use crate::stream::StreamRef;
use crate::trace::Happening;

// === what reaches a task ===

impl Simulation {
    /// Something arrives at a task.
    pub(super) fn at_node(&mut self, task: u32, delivery: ToNode) {
        let Some(delivery) = self.keep_back(task, delivery) else { return };
        let found = &self.tree.tasks[task as usize];
        if found.up && found.acts(self.now) {
            self.at_leader(task, delivery);
        } else if found.up {
            let leader = found.another();
            self.send_on(task, &delivery, leader);
        } else {
            self.refuse(task, &delivery);
        }
    }

    fn at_leader(&mut self, task: u32, delivery: ToNode) {
        let now = self.local(Actor::Task(task));
        match delivery {
            ToNode::Ask { from, id, ask } => self.answer_ask(task, from, id, &ask),
            ToNode::Release { from, id, release } => {
                if let Err(denial) = self.let_release(task, &release.holder) {
                    let failure = Failure::Refused(denial.to_string());
                    return self.post_down(task, from, ToHolder::Failed { id, failure });
                }
                self.node(task).release(now, &release);
                self.note(Actor::Task(task).who(), Happening::Answers, [from.actor.code(), id.0, 1]);
                self.post_down(task, from, ToHolder::Released { id, redirect: None });
            }
            ToNode::Open { stream, hello } => self.welcome(task, stream, *hello),
            ToNode::Up { stream, up } => {
                if self.is_cut(stream, true) {
                    return;
                }
                let Some(peer) = self.peer(task, stream) else { return };
                if let Some(up) = self.let_through(task, stream, peer, up) {
                    self.watch_up(task, &up);
                    self.node(task).receive(now, peer, up);
                }
            }
            ToNode::Gone { stream, certain } => {
                if !certain && self.is_cut(stream, true) {
                    return;
                }
                let peer = self.peer(task, stream);
                self.streams.node_left(stream);
                let Some(peer) = peer else { return };
                self.note(Actor::Task(task).who(), Happening::IsDisconnected, [peer.number(), 0, 0]);
                self.leadership(task).peers.remove(peer);
                self.node(task).disconnect(now, peer);
            }
            ToNode::Ready { stream } => {
                let Some(peer) = self.peer(task, stream) else { return };
                self.node(task).ready(now, peer);
            }
        }
        self.drive_leader(task);
    }

    /// Answers a request, or says why not.
    fn answer_ask(&mut self, task: u32, from: Sender, id: ReportId, ask: &Ask) {
        let (who, now) = (Actor::Task(task).who(), self.local(Actor::Task(task)));
        let answer = match self.ask_node(task, now, ask) {
            Ok(answer) => answer,
            Err(refusal) => {
                self.note(who, Happening::Refuses, [from.actor.code(), id.0, 0]);
                let failure = Failure::Refused(refusal.to_string());
                return self.post_down(task, from, ToHolder::Failed { id, failure });
            }
        };
        self.consult(|oracle, facts| oracle.watch_grants(facts, task, &answer.grants));
        // What is shown by those who draw no incarnation may be said again.
        if ask.incarnation.is_some() && !answer.grants.is_empty() {
            self.watch_edition(task);
        }
        self.note(who, Happening::Answers, [from.actor.code(), id.0, 0]);
        for grant in &answer.grants {
            let (epoch, seq) = grant.order.map_or((0, 0), |order| (order.epoch.0, order.seq));
            self.note(who, Happening::Grants, [grant.capacity.as_micros(), epoch, seq]);
        }
        self.post_down(task, from, ToHolder::Answered { id, answer: Box::new(answer) });
    }

    fn ask_node(&mut self, task: u32, now: Time, ask: &Ask) -> Result<Answer, Refusal> {
        let date = self.date();
        let ruled = self.rule_ask(task, ask).transpose()?;
        let node = self.node(task);
        node.set_date(now, date);
        match ruled {
            Some(ruled) => {
                let mut answer = node.ask(now, &ruled.ask)?;
                ruled.complete(&mut answer);
                Ok(answer)
            }
            None => node.ask(now, ask),
        }
    }

    /// A task that does not lead names the one that does.
    fn send_on(&mut self, task: u32, delivery: &ToNode, leader: Leader) {
        match *delivery {
            ToNode::Ask { from, id, .. } => {
                let answer = Answer { redirect: Some(leader), ..Answer::default() };
                self.post_down(task, from, ToHolder::Answered { id, answer: Box::new(answer) });
            }
            ToNode::Release { from, id, .. } => {
                self.post_down(task, from, ToHolder::Released { id, redirect: Some(leader) });
            }
            ToNode::Open { stream, .. } if !self.is_cut(stream, true) => {
                if !self.knows_streams(task) {
                    return self.unimplemented(stream);
                }
                let down = Down::Redirect(leader);
                self.send_down(stream, ToHolder::Down { stream, down });
                self.close_down(stream, "not the leader");
            }
            ToNode::Open { .. } => {}
            // Of one whose authority has lapsed the peers are still connected. Its key may have ended: what has come up is lost, so
            // the stream ends.
            ToNode::Up { stream, .. } => {
                if self.is_cut(stream, true) {
                    return;
                }
                match self.let_go(task, stream) {
                    true => self.close_down(stream, "not the leader"),
                    false => self.streams.node_left(stream),
                }
            }
            ToNode::Gone { stream, certain } => {
                if certain || !self.is_cut(stream, true) {
                    self.let_go(task, stream);
                    self.streams.node_left(stream);
                }
            }
            ToNode::Ready { stream } => {
                if self.peer(task, stream).is_none() {
                    self.streams.node_left(stream);
                }
            }
        }
    }

    /// Takes a stream from the node, if it is connected there.
    pub(super) fn let_go(&mut self, task: u32, stream: StreamRef) -> bool {
        let Some(peer) = self.peer(task, stream) else { return false };
        let now = self.local(Actor::Task(task));
        self.note(Actor::Task(task).who(), Happening::IsDisconnected, [peer.number(), 0, 0]);
        self.leadership(task).peers.remove(peer);
        self.node(task).disconnect(now, peer);
        true
    }

    pub(super) fn knows_streams(&self, task: u32) -> bool {
        self.tree.sites[self.tree.tasks[task as usize].site as usize].upward.streams
    }

    fn unimplemented(&mut self, stream: StreamRef) {
        let failure = Failure::Unimplemented;
        self.send_down(stream, ToHolder::Closed { stream, failure, certain: false });
        self.streams.node_left(stream);
    }

    /// Nobody is there.
    fn refuse(&mut self, task: u32, delivery: &ToNode) {
        match *delivery {
            ToNode::Ask { from, id, .. } | ToNode::Release { from, id, .. } => {
                self.fail(task, from, id, "connection refused");
            }
            ToNode::Open { stream, .. } if !self.is_cut(stream, true) => {
                self.close_down(stream, "connection refused");
            }
            ToNode::Open { .. } => {}
            ToNode::Up { stream, .. } | ToNode::Gone { stream, .. } | ToNode::Ready { stream } => {
                self.streams.node_left(stream);
            }
        }
    }
}

// === the one that leads ===

impl Simulation {
    /// Does all that the node of a task wants done, if it may act. Whether it wants something to be written.
    pub(super) fn drive_node(&mut self, task: u32) -> bool {
        if !self.tree.tasks[task as usize].acts(self.now) {
            return false;
        }
        let now = self.local(Actor::Task(task));
        self.confirm(task, now);
        let mut touched = self.leadership(task).node.next_deadline().is_some_and(|due| due <= now);
        let mut writes = false;
        for outputs in 0.. {
            assert!(outputs < ENDLESS, "node {task} never comes to rest:\n{}", self.trace());
            let Some(output) = self.node(task).poll(now) else {
                // What is written changes what can be said.
                let Some(write) = self.node(task).next_marks(now) else { break };
                writes |= self.write_record(task, write);
                touched = true;
                continue;
            };
            touched = true;
            match output {
                Output::Send { peer, down } => self.push(task, peer, down),
                Output::Close { peer } => {
                    if let Some(stream) = self.leadership(task).peers.remove(peer) {
                        self.close_down(stream, "closed by the server");
                    }
                }
                Output::Parent(action) => self.act(Actor::Task(task), action),
            }
        }
        self.see_views(task);
        if touched {
            self.consult(|oracle, facts| oracle.watch_node(facts, task));
        }
        if let Some(deadline) = self.leadership(task).node.next_deadline() {
            self.wake_at(Actor::Task(task), deadline);
        }
        writes
    }

    /// A leader knows until when nobody else led for certain.
    fn confirm(&mut self, task: u32, now: Time) {
        let candidate = self.tree.tasks[task as usize].candidate.as_deref();
        if let Some(led) = candidate.map_or(Some(Time::MAX), Candidate::led_at) {
            self.node(task).confirm(now, led);
        }
    }

    /// Lets end what has ended, in parts as the body of a server does.
    fn clean_all(&mut self, task: u32, now: Time) {
        let most = self.leadership(task).heartbeat_slice;
        let mut after = None;
        loop {
            after = self.node(task).advance_part(now, after.as_ref(), most);
            if after.is_none() {
                return;
            }
        }
    }

    /// The leader gives back the memory of what has ended, once a second while it may act.
    pub(super) fn tidy(&mut self, task: u32, life: u32) {
        if !self.leads_in(task, life) {
            return;
        }
        self.keep_up(task);
        if !self.leads_in(task, life) {
            return;
        }
        self.review_rights(task);
        if self.tree.tasks[task as usize].acts(self.now) {
            let now = self.local(Actor::Task(task));
            self.clean_all(task, now);
            self.consult(|oracle, facts| oracle.check_debts(facts, task));
            self.consult(|oracle, facts| oracle.check_revoked(facts, task));
            self.drive_task(task);
        }
        self.later(Duration::from_secs(1), super::Event::Tidy(task, life));
    }

    fn leads_in(&self, task: u32, life: u32) -> bool {
        let found = &self.tree.tasks[task as usize];
        found.process.life == life && found.leadership.is_some()
    }

    fn push(&mut self, task: u32, peer: Peer, down: Down) {
        let Some(&stream) = self.leadership(task).peers.get(peer) else { return };
        let code = self.streams.get(stream).map_or(0, |found| found.holder.actor.code());
        self.note(Actor::Task(task).who(), Happening::Sends, [code, peer.number(), 0]);
        match &down {
            Down::Grants(grants) => {
                self.consult(|oracle, facts| oracle.watch_grants(facts, task, grants));
                let site = self.tree.tasks[task as usize].site;
                self.tree.sites[site as usize].figures.grants += grants.len() as u64;
                if !grants.is_empty() {
                    self.watch_edition_of(task, peer, grants.len());
                }
                for grant in grants {
                    let (epoch, seq) = grant.order.map_or((0, 0), |order| (order.epoch.0, order.seq));
                    let numbers = [grant.capacity.as_micros(), epoch, seq];
                    self.note(Actor::Task(task).who(), Happening::Grants, numbers);
                }
            }
            Down::Welcome(welcome) => {
                let beat = u64::try_from(welcome.heartbeat.as_nanos()).unwrap_or(u64::MAX);
                self.note(Actor::Task(task).who(), Happening::Welcomes, [welcome.epoch.0, beat, 0]);
            }
            // How long they are on the way is not the grantor's doing.
            Down::Units { resource, units, .. } => {
                let index = self.resources.iter().position(|found| found.id == *resource);
                let index =
                    index.and_then(|index| u16::try_from(index).ok()).expect("a resource of the simulation");
                self.consult(|oracle, facts| oracle.watch_hits(facts, index, u64::from(*units)));
            }
            Down::Renewed { basis, grants } => {
                self.note(Actor::Task(task).who(), Happening::Renews, [basis.0, *grants, 0]);
            }
            _ => {}
        }
        self.watch_down(stream, &down);
        self.count_down(&down);
        let stalled = self.streams.get(stream).is_some_and(|found| found.stalled > self.now);
        let at = self.send_down(stream, ToHolder::Down { stream, down });
        if stalled {
            let delivery = Box::new(ToNode::Ready { stream });
            self.queue.put(at, super::Event::ToNode { task, delivery });
        } else {
            let now = self.local(Actor::Task(task));
            self.node(task).ready(now, peer);
        }
    }

    pub(super) fn node(&mut self, task: u32) -> &mut lessor_server::node::Node {
        &mut self.leadership(task).node
    }

    pub(super) fn leadership(&mut self, task: u32) -> &mut crate::site::Leadership {
        self.tree.tasks[task as usize].leadership.as_mut().expect("a task that leads")
    }

    /// The peer that the stream is to the node of a task.
    pub(super) fn peer(&self, task: u32, stream: StreamRef) -> Option<Peer> {
        let (epoch, peer) = self.streams.get(stream)?.peer?;
        let leadership = self.tree.tasks[task as usize].leadership.as_ref()?;
        (epoch == leadership.epoch && leadership.peers.contains(peer)).then_some(peer)
    }
}

// === streams ===

impl Simulation {
    /// A holder opens a stream.
    pub(super) fn connect(&mut self, holder: Sender, id: u64, task: u32, hello: Hello) {
        if let Some(before) = self.process_mut(holder.actor).stream.take() {
            panic!("a session opens stream {id} and has {before:?}");
        }
        let features = self.features(holder.actor);
        let stream = self.streams.open(holder, id, task, features);
        self.process_mut(holder.actor).stream = Some(stream);
        self.send_up(stream, task, ToNode::Open { stream, hello: Box::new(hello) });
    }

    fn welcome(&mut self, task: u32, stream: StreamRef, hello: Hello) {
        if self.is_cut(stream, true) {
            return;
        }
        if !self.knows_streams(task) {
            return self.unimplemented(stream);
        }
        let now = self.local(Actor::Task(task));
        let rights = match self.let_in(task, &hello).transpose() {
            Ok(rights) => rights,
            Err(denial) => {
                let failure = Failure::Refused(denial.to_string());
                self.send_down(stream, ToHolder::Closed { stream, failure, certain: false });
                return self.streams.node_left(stream);
            }
        };
        let epoch = self.leadership(task).epoch;
        let peer = self.node(task).connect(now, hello);
        self.leadership(task).rights.extend(rights.map(|rights| (peer, rights)));
        self.leadership(task).peers.insert(peer, stream);
        if let Some(found) = self.streams.get_mut(stream) {
            found.peer = Some((epoch, peer));
        }
        self.note(Actor::Task(task).who(), Happening::IsConnected, [peer.number(), 0, 0]);
    }

    /// The holder has no more to do with a stream. The node hears of it after everything sent before; or, if nobody
    /// says so, long after.
    pub(super) fn abandon(&mut self, stream: StreamRef, said: bool) {
        let Some(&found) = self.streams.get(stream) else { return };
        self.streams.holder_left(stream);
        if said {
            self.send_up(stream, found.task, ToNode::Gone { stream, certain: false });
        }
        if !said || found.up.cut != Time::MAX {
            self.dies_out(stream);
        }
    }

    /// Both ends give up a stream that is dead in silence at last.
    pub(super) fn dies_out(&mut self, stream: StreamRef) {
        let Some(&found) = self.streams.get(stream) else { return };
        let (least, most) = (Duration::from_secs(20), Duration::from_secs(60));
        let at = self.rng.time(least, most);
        let delivery = Box::new(ToNode::Gone { stream, certain: true });
        self.later(at, super::Event::ToNode { task: found.task, delivery });
        let at = self.rng.time(least, most);
        let failure = Failure::Unreachable("dead in silence".to_owned());
        let delivery = Box::new(ToHolder::Closed { stream, failure, certain: true });
        self.later(at, super::Event::ToHolder { holder: found.holder, delivery });
    }
}
