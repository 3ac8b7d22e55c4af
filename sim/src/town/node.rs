//! Nodes: what reaches a task, what the one that leads does, and streams from their opening to their end.

use std::time::Duration;

use lessor_client::session::Failure;
use lessor_proto::message::{Answer, Down, Hello, Leader};
use lessor_server::node::{Output, Peer};

use super::{ENDLESS, ToHolder, ToNode, Town};
use crate::process::{Party, Sender};
use crate::story::What;
use crate::stream::StreamRef;

// === what reaches a task ===

impl Town {
    /// Something arrives at a task.
    pub(super) fn at_node(&mut self, place: u32, task: u8, mail: ToNode) {
        let found = &self.places[place as usize];
        let leads = found.leader.as_ref().is_some_and(|leader| leader.task == task);
        if leads {
            self.at_leader(place, mail);
        } else if found.tasks[usize::from(task)].up {
            let leader = found.rumoured();
            self.send_on(place, &mail, leader);
        } else {
            self.refuse(place, &mail);
        }
    }

    fn at_leader(&mut self, place: u32, mail: ToNode) {
        let now = self.local(Party::Place(place));
        match mail {
            ToNode::Ask { from, id, ask } => match self.node(place).ask(now, &ask) {
                Ok(answer) => {
                    self.watch_grants(place, &answer.grants);
                    self.note(Party::Place(place).who(), What::Answers, [from.party.code(), id, 0]);
                    for grant in &answer.grants {
                        let (epoch, seq) = grant.order.map_or((0, 0), |order| (order.epoch, order.seq));
                        let numbers = [grant.capacity.as_micros(), epoch, seq];
                        self.note(Party::Place(place).who(), What::Grants, numbers);
                    }
                    self.post_down(place, from, ToHolder::Answered { id, answer: Box::new(answer) });
                }
                Err(refusal) => {
                    self.note(Party::Place(place).who(), What::Refuses, [from.party.code(), id, 0]);
                    let failure = Failure::Refused(refusal.to_string());
                    self.post_down(place, from, ToHolder::Failed { id, failure });
                }
            },
            ToNode::Release { from, id, release } => {
                self.node(place).release(now, &release);
                self.note(Party::Place(place).who(), What::Answers, [from.party.code(), id, 1]);
                self.post_down(place, from, ToHolder::Released { id, redirect: None });
            }
            ToNode::Open { stream, hello } => self.welcome(place, stream, *hello),
            ToNode::Up { stream, up } => {
                if self.is_cut(stream, true) {
                    return;
                }
                let Some(peer) = self.peer(place, stream) else { return };
                self.node(place).receive(now, peer, up);
            }
            ToNode::Gone { stream, certain } => {
                if !certain && self.is_cut(stream, true) {
                    return;
                }
                let peer = self.peer(place, stream);
                self.streams.node_left(stream);
                let Some(peer) = peer else { return };
                self.note(Party::Place(place).who(), What::IsDisconnected, [peer_number(peer), 0, 0]);
                self.leader(place).peers.remove(&peer);
                self.node(place).disconnect(now, peer);
            }
            ToNode::Ready { stream } => {
                let Some(peer) = self.peer(place, stream) else { return };
                self.node(place).ready(now, peer);
            }
        }
        self.drive_place(place);
    }

    /// A task that does not lead names the one that does.
    fn send_on(&mut self, place: u32, mail: &ToNode, leader: Leader) {
        match *mail {
            ToNode::Ask { from, id, .. } => {
                let answer = Answer { redirect: Some(leader), ..Answer::default() };
                self.post_down(place, from, ToHolder::Answered { id, answer: Box::new(answer) });
            }
            ToNode::Release { from, id, .. } => {
                self.post_down(place, from, ToHolder::Released { id, redirect: Some(leader) });
            }
            ToNode::Open { stream, .. } if !self.is_cut(stream, true) => {
                if !self.places[place as usize].streams {
                    return self.unimplemented(stream);
                }
                let down = Down::Redirect(leader);
                self.send_down(stream, ToHolder::Down { stream, down });
                self.close_down(stream, "not the leader");
            }
            ToNode::Open { .. } => {}
            ToNode::Up { stream, .. } | ToNode::Gone { stream, .. } | ToNode::Ready { stream } => {
                self.streams.node_left(stream);
            }
        }
    }

    fn unimplemented(&mut self, stream: StreamRef) {
        let failure = Failure::Unimplemented;
        self.send_down(stream, ToHolder::Closed { stream, failure, certain: false });
        self.streams.node_left(stream);
    }

    /// Nobody is there.
    fn refuse(&mut self, place: u32, mail: &ToNode) {
        match *mail {
            ToNode::Ask { from, id, .. } | ToNode::Release { from, id, .. } => {
                self.fail(place, from, id, "connection refused");
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

impl Town {
    /// Does all that the leader of a place wants done.
    pub(super) fn drive_place(&mut self, place: u32) {
        let now = self.local(Party::Place(place));
        if !self.is_led(place) {
            return;
        }
        let mut outputs = 0;
        loop {
            let Some(output) = self.node(place).poll(now) else {
                // What is written changes what can be said.
                let Some(write) = self.node(place).next_marks(now) else { break };
                self.write_record(place, write);
                continue;
            };
            outputs += 1;
            assert!(outputs < ENDLESS, "place {place} never comes to rest:\n{}", self.story());
            match output {
                Output::Send { peer, down } => self.push(place, peer, down),
                Output::Close { peer } => {
                    if let Some(stream) = self.leader(place).peers.remove(&peer) {
                        self.close_down(stream, "closed by the server");
                    }
                }
                Output::Parent(action) => self.act(Party::Place(place), action),
            }
        }
        self.watch_node(place);
        if let Some(deadline) = self.node(place).deadline() {
            self.wake_at(Party::Place(place), deadline);
        }
    }

    /// The leader gives back the memory of what has ended, once a second.
    pub(super) fn tidy(&mut self, place: u32, reign: u32) {
        if self.places[place as usize].process.life != reign || !self.is_led(place) {
            return;
        }
        let now = self.local(Party::Place(place));
        self.node(place).advance(now);
        self.check_debts(place);
        self.drive_place(place);
        self.later(Duration::from_secs(1), super::Event::Tidy(place, reign));
    }

    fn push(&mut self, place: u32, peer: Peer, down: Down) {
        let Some(&stream) = self.leader(place).peers.get(&peer) else { return };
        let code = self.streams.get(stream).map_or(0, |found| found.holder.party.code());
        self.note(Party::Place(place).who(), What::Sends, [code, peer_number(peer), 0]);
        match &down {
            Down::Grants(grants) => {
                self.watch_grants(place, grants);
                for grant in grants {
                    let (epoch, seq) = grant.order.map_or((0, 0), |order| (order.epoch, order.seq));
                    let numbers = [grant.capacity.as_micros(), epoch, seq];
                    self.note(Party::Place(place).who(), What::Grants, numbers);
                }
            }
            Down::Welcome(welcome) => {
                let beat = u64::try_from(welcome.heartbeat.as_nanos()).unwrap_or(u64::MAX);
                self.note(Party::Place(place).who(), What::Welcomes, [welcome.epoch, beat, 0]);
            }
            Down::Renewed { basis, grants } => {
                self.note(Party::Place(place).who(), What::Renews, [*basis, *grants, 0]);
            }
            _ => {}
        }
        self.count_down(&down);
        let stalled = self.streams.get(stream).is_some_and(|found| found.stalled > self.now);
        let at = self.send_down(stream, ToHolder::Down { stream, down });
        let task = self.leader(place).task;
        if stalled {
            let mail = ToNode::Ready { stream };
            self.agenda.put(at, super::Event::ToNode { place, task, mail });
        } else {
            let now = self.local(Party::Place(place));
            self.node(place).ready(now, peer);
        }
    }

    pub(super) fn node(&mut self, place: u32) -> &mut lessor_server::node::Node {
        &mut self.leader(place).node
    }

    fn leader(&mut self, place: u32) -> &mut crate::place::Leader {
        self.places[place as usize].leader.as_mut().expect("a place that has a leader")
    }

    /// How the reigning leader calls the stream.
    fn peer(&self, place: u32, stream: StreamRef) -> Option<Peer> {
        let (reign, peer) = self.streams.get(stream)?.peer?;
        let leads = reign == self.places[place as usize].process.life;
        (leads && self.places[place as usize].leader.as_ref()?.peers.contains_key(&peer)).then_some(peer)
    }
}

/// A number that tells it from others of the same node.
fn peer_number(peer: Peer) -> u64 {
    peer.to_string().parse().unwrap_or(0)
}

// === streams ===

impl Town {
    /// A holder opens a stream.
    pub(super) fn connect(&mut self, holder: Sender, id: u64, (place, task): (u32, u8), hello: Hello) {
        if let Some(before) = self.process_mut(holder.party).stream.take() {
            panic!("a session opens stream {id} and has {before:?}");
        }
        let stream = self.streams.open(holder, id, (place, task));
        self.process_mut(holder.party).stream = Some(stream);
        self.send_up(stream, (place, task), ToNode::Open { stream, hello: Box::new(hello) });
    }

    fn welcome(&mut self, place: u32, stream: StreamRef, hello: Hello) {
        if self.is_cut(stream, true) {
            return;
        }
        if !self.places[place as usize].streams {
            return self.unimplemented(stream);
        }
        let now = self.local(Party::Place(place));
        let reign = self.places[place as usize].process.life;
        let peer = self.node(place).connect(now, hello);
        self.leader(place).peers.insert(peer, stream);
        if let Some(found) = self.streams.get_mut(stream) {
            found.peer = Some((reign, peer));
        }
        self.note(Party::Place(place).who(), What::IsConnected, [peer_number(peer), 0, 0]);
    }

    /// The holder has no more to do with a stream. The node hears of it after everything sent before; or, if nobody
    /// says so, long after.
    pub(super) fn abandon(&mut self, stream: StreamRef, said: bool) {
        let Some(&found) = self.streams.get(stream) else { return };
        self.streams.holder_left(stream);
        if said {
            self.send_up(stream, (found.place, found.task), ToNode::Gone { stream, certain: false });
        }
        if !said || found.up_cut != lessor_proto::Time::MAX {
            self.dies_out(stream);
        }
    }

    /// Both ends give up a stream that is dead in silence at last.
    pub(super) fn dies_out(&mut self, stream: StreamRef) {
        let Some(&found) = self.streams.get(stream) else { return };
        let (least, most) = (Duration::from_secs(20), Duration::from_secs(60));
        let at = self.dice.time(least, most);
        let mail = ToNode::Gone { stream, certain: true };
        self.later(at, super::Event::ToNode { place: found.place, task: found.task, mail });
        let at = self.dice.time(least, most);
        let failure = Failure::Unreachable("dead in silence".to_owned());
        let mail = ToHolder::Closed { stream, failure, certain: true };
        self.later(at, super::Event::ToHolder { holder: found.holder, mail });
    }
}
