//! Jobs of the resources of a node: what holders and the node above say and ask of them, passed on.

use std::time::Duration;

use lessor_client::internals::session::JobEvent;
use lessor_proto::message::JobNews;
use lessor_proto::{Features, ResourceId, Time};

use super::{Node, Peer};
use crate::jobs::{JobBoard, JobParty, JobWord};
use crate::mutation::Rule;

// === impl Node ===

impl Node {
    /// The holder at the other end of a stream speaks of jobs. Only that counts which is about something that it holds there.
    pub(super) fn on_jobs(&mut self, now: Time, peer: Peer, news: Vec<JobNews>) {
        for JobNews { resource, done, asks } in news {
            let Some(stream) = self.streams.peers.get(peer) else { return };
            if stream.attached.contains(&resource) && !stream.revoked.contains(&resource) {
                let at = |ago: Option<Duration>| ago.map(|ago| now.earlier(ago));
                self.hear_of_jobs(now, JobParty::Below(peer), &resource, (at(done), at(asks)));
            }
        }
    }

    /// Takes up what the node above has said of jobs.
    pub(super) fn take_up_jobs(&mut self, now: Time) {
        while let Some(event) = self.parent.as_mut().and_then(|above| above.session_mut().next_job()) {
            let (resource, said) = match event {
                JobEvent::Done { resource, at } => (resource, (Some(at), None)),
                JobEvent::Asked { resource, since } => (resource, (None, Some(since))),
            };
            self.hear_of_jobs(now, JobParty::Above, &resource, said);
        }
    }

    /// A holder has come to be granted a resource on a stream.
    pub(super) fn note_job_party(&mut self, now: Time, id: &ResourceId, peer: Peer) {
        if self.streams.jobs.contains_key(id) && self.may_speak_of_jobs(peer) {
            if let Some(board) = self.streams.jobs.get_mut(id) {
                board.join(JobParty::Below(peer));
            }
            self.say_jobs(now, id);
        }
    }

    /// A holder is not granted these any more on a stream.
    pub(super) fn forget_job_party<'a>(
        &mut self,
        peer: Peer,
        resources: impl Iterator<Item = &'a ResourceId>,
    ) {
        if self.streams.jobs.is_empty() {
            return;
        }
        for id in resources {
            let board = self.streams.jobs.get_mut(id);
            if board.is_some_and(|board| board.leave(JobParty::Below(peer))) {
                self.streams.jobs.remove(id);
            }
        }
    }

    /// A party has said when its last job was done, and since when it waits for one of another.
    fn hear_of_jobs(
        &mut self,
        now: Time,
        from: JobParty,
        id: &ResourceId,
        (done, asks): (Option<Time>, Option<Time>),
    ) {
        if asks.is_some() && !self.streams.jobs.contains_key(id) {
            let Some(resource) = self.resources.get(id) else { return };
            let below = resource.listening().into_iter().filter(|&peer| self.may_speak_of_jobs(peer));
            let above = self.parent.as_ref().map(|_| JobParty::Above);
            let board = JobBoard::new(below.map(JobParty::Below).chain(above), self.config.rules);
            self.streams.jobs.insert(id.clone(), board);
        }
        if let Some(board) = self.streams.jobs.get_mut(id) {
            board.hear(from, done, asks);
            self.say_jobs(now, id);
        }
    }

    fn may_speak_of_jobs(&self, peer: Peer) -> bool {
        let stream = self.streams.peers.get(peer);
        stream.is_some_and(|stream| self.config.features.and(stream.hello.features).covers(Features::JOBS))
    }

    /// Goes on with the words on the jobs of one resource.
    pub(super) fn work_jobs(&mut self, now: Time) {
        if let Some(id) = self.streams.job_words.pop() {
            self.say_slice(now, &id);
        }
    }

    /// Says what the board of a resource has to say. What it is about to say already is said in its turn.
    fn say_jobs(&mut self, now: Time, id: &ResourceId) {
        if self.streams.jobs.get(id).is_some_and(|board| !board.is_speaking()) {
            self.say_slice(now, id);
        }
    }

    /// Says a slice of that, so that nobody waits for a resource that very many hold.
    fn say_slice(&mut self, now: Time, id: &ResourceId) {
        let Some(board) = self.streams.jobs.get_mut(id) else { return };
        let words = board.take_words(self.config.heartbeat_slice);
        if board.is_speaking() {
            self.streams.job_words.push(id.clone());
        }
        for (party, word) in words {
            match (party, word) {
                (JobParty::Below(peer), word) => {
                    let (done, asks) = match word {
                        JobWord::Done(at) => (Some(now.since(at)), None),
                        JobWord::Asks(since) => (None, Some(now.since(since))),
                    };
                    self.streams.peers.tell_of_job(peer, JobNews { resource: id.clone(), done, asks });
                }
                (JobParty::Above, _) if !self.config.rules.keep(Rule::JobsAbove) => {}
                (JobParty::Above, word) => {
                    let Some(above) = &mut self.parent else { continue };
                    match word {
                        JobWord::Done(at) => above.session_mut().job_done(id, at),
                        JobWord::Asks(since) => above.session_mut().await_job(id, since),
                    }
                }
            }
        }
    }
}
