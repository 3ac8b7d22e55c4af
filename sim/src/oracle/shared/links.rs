//! The links between clients that share a domain: the stream of each client and of each server to the one above, and whether
//! anything on it is late, lost or held back.

use std::time::Duration;

use lessor_proto::{Epoch, Time};

use super::{DomainJudge, SETTLING};
use crate::actor::Actor;
use crate::client::Mind;
use crate::oracle::Facts;
use crate::shared_domain::DOMAIN;
use crate::stream::StreamRef;

/// A message is late that takes so much longer than its way.
const LATE: Duration = Duration::from_millis(100);
/// A stream to the one above, as it was seen last.
#[derive(Clone, Copy, Debug)]
pub(super) struct DomainLink {
    stream: StreamRef,
    /// Something was late or lost on it.
    is_flawed: bool,
    /// Where it leads, and by which policies both ends go, while it is clear.
    clear: Option<(u32, Epoch, u32)>,
    /// Since when that is so.
    since: Time,
}

/// The servers that a client has reached by links that were clear all the time, and since when each was.
pub(super) type Path = Vec<(u32, Time, bool)>;

// === impl DomainJudge ===

impl DomainJudge {
    /// Looks at all links, after each event.
    pub(in crate::oracle) fn watch_links(&mut self, facts: &Facts<'_>) {
        let Some(shared) = facts.domain else { return };
        self.watch_hot(facts);
        let clients = shared.users.keys().map(|&client| Actor::Client(client));
        let leads = |task: &u32| facts.tasks[*task as usize].leadership.is_some();
        let tasks = (0..facts.tasks.len() as u32).filter(leads);
        for actor in clients.chain(tasks.map(Actor::Task)) {
            self.watch_link(facts, actor);
        }
    }

    /// Looks at the stream of an actor to the one above.
    fn watch_link(&mut self, facts: &Facts<'_>, actor: Actor) {
        let Some(stream) = facts.process(actor).stream else {
            self.links.remove(&actor);
            return;
        };
        let is_clear = facts.is_clear(actor);
        let clear = facts.leads(actor).filter(|_| is_clear);
        let fresh = DomainLink { stream, is_flawed: false, clear: None, since: facts.now };
        let link = self.links.entry(actor).or_insert(fresh);
        if link.stream != stream {
            *link = fresh;
        }
        link.is_flawed |= !is_clear;
        if link.clear != clear || clear.is_none() {
            (link.clear, link.since) = (clear, facts.now);
        }
    }

    /// Looks at which leaders the domain is hot.
    fn watch_hot(&mut self, facts: &Facts<'_>) {
        let resource = &facts.resources[0].id;
        for (number, task) in (0_u32..).zip(facts.tasks) {
            let led = task.leadership.as_ref();
            if led.is_some_and(|led| led.node.is_domain_hot(resource, DOMAIN)) {
                self.hot.entry(number).or_insert(facts.now);
            } else {
                self.hot.remove(&number);
            }
        }
    }

    /// The servers that a client has reached since `before` at the latest.
    pub(super) fn path(&self, facts: &Facts<'_>, client: u32, before: impl Fn(usize) -> Time) -> Path {
        let (mut path, mut actor) = (Path::new(), Actor::Client(client));
        let (mut since, mut is_flawed) = (Time::ZERO, false);
        while let Some(link) = self.links.get(&actor)
            && let Some((task, ..)) = link.clear
            && path.len() < facts.sites.len()
        {
            (since, is_flawed) = (since.max(link.since), is_flawed || link.is_flawed);
            if since > before(path.len() + 1) {
                break;
            }
            path.push((task, since, is_flawed));
            actor = Actor::Task(task);
        }
        path
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Whether nothing on the stream of an actor is late, lost or held back.
    fn is_clear(&self, actor: Actor) -> bool {
        let process = self.process(actor);
        let Some(found) = process.stream.and_then(|stream| self.streams.get(stream)) else { return false };
        let task = &self.tasks[found.task as usize];
        let late = self.now + process.link.latency + process.link.jitter + LATE;
        let acts = match actor {
            Actor::Client(_) => true,
            Actor::Task(below) => self.tasks[below as usize].acts(self.now),
        };
        let is_open = found.holder_open && found.node_open && found.holder.life == process.life;
        let is_whole = found.up.cut == Time::MAX && found.down.cut == Time::MAX && found.stalled <= self.now;
        let is_timely = found.up.clear <= late && found.down.clear <= late;
        let is_reached = !self.is_closed(actor, found.task);
        let runs = process.frozen.is_none() && task.process.frozen.is_none() && acts && task.acts(self.now);
        is_open && is_whole && is_timely && is_reached && runs
    }

    /// Where the link of an actor leads, and by which policies both ends go, if they tell each other of domains on it.
    fn leads(&self, actor: Actor) -> Option<(u32, Epoch, u32)> {
        let found = self.streams.get(self.process(actor).stream?)?;
        let resource = &self.resources[0].id;
        let (granted, version) = match actor {
            Actor::Client(client) => {
                let Mind::Ours(session) = &self.clients[client as usize].mind else { return None };
                let user = self.domain?.users.get(&client)?;
                (session.stream_of(resource)?, user.domains.policies()?.version())
            }
            Actor::Task(task) => {
                let node = &self.tasks[task as usize].leadership.as_ref()?.node;
                (node.domain_stream(resource)?, node.domain_version(resource)?)
            }
        };
        let above = self.tasks[found.task as usize].leadership.as_ref()?;
        let (epoch, _) = found.peer?;
        let agrees = above.node.domain_version(resource) == Some(version) && above.epoch == epoch;
        (agrees && granted == found.id).then_some((found.task, epoch, version))
    }

    /// The time within which all clients know of each other, when nothing goes wrong any more.
    pub(crate) fn settling(&self) -> Duration {
        SETTLING * self.levels()
    }
}
