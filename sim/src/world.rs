//! One node, its clients, and what happens between them, in the order of one clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::allowance::Allowance;
use lessor_client::holding::{Fallback, HoldingConfig, Kind, Surplus};
use lessor_client::session::{Action, Failure, Session, SessionConfig};
use lessor_proto::message::{Answer, Ask, Band, Bands, Refusal, Release};
use lessor_proto::{Amount, ClientId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::repository::{BadTemplates, Glob, Repository, SafeCapacity, Template};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use crate::network::Network;
use crate::oracle::{Oracle, Overshoot};
use crate::trace::Trace;

/// What the town is like.
#[derive(Clone, PartialEq, Debug)]
pub struct TownPlan {
    /// How many clients.
    pub clients: usize,
    /// What there is of the one resource, in units a second.
    pub capacity: f64,
    /// What a client wants on average, as a multiple of its equal share.
    pub load: f64,
    /// How long it goes on.
    pub minutes: u64,
    /// The wires.
    pub network: Network,
}

/// How it went.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Of the whole trace.
    pub trace_hash: u64,
    /// Lines in the trace.
    pub events: u64,
    /// The mean of what clients believed, as a fraction of the capacity.
    pub utilisation: f64,
    /// The highest of it.
    pub highest: f64,
    /// Clients that died and came back.
    pub restarts: u64,
}

/// The law was broken: which seed, how, and what led to it.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("seed {seed}, event {event}: {overshoot}\n{story}")]
pub struct Violation {
    /// The seed.
    pub seed: u64,
    /// The number of the event.
    pub event: u64,
    /// What was seen.
    pub overshoot: Overshoot,
    /// The last lines of the trace.
    pub story: String,
}

/// One node and its clients.
#[derive(Debug)]
pub struct World {
    seed: u64,
    plan: TownPlan,
    now: Time,
    end: Time,
    dice: Pcg64,
    node: Node,
    clients: Vec<Client>,
    agenda: BinaryHeap<Reverse<Due>>,
    /// Events at one moment happen in the order in which they were put on the agenda.
    numbered: u64,
    oracle: Oracle,
    trace: Trace,
    restarts: u64,
}

#[derive(Debug)]
struct Client {
    session: Session,
    allowance: Allowance,
    life: u64,
}

#[derive(Debug)]
struct Due {
    at: Time,
    number: u64,
    event: Event,
}

#[derive(Debug)]
enum Event {
    /// A client's deadline, perhaps one that has moved since.
    Wake { client: usize },
    /// A client wants something else.
    Wants { client: usize },
    /// A client dies, and another process begins in its place.
    Restart { client: usize },
    /// A request reaches the node.
    Asked { client: usize, life: u64, id: u64, ask: Ask },
    /// A release reaches the node.
    Released { client: usize, life: u64, id: u64, release: Release },
    /// An answer reaches the client.
    Answered { client: usize, life: u64, id: u64, answer: Result<Answer, Refusal> },
    /// The answer to a release does.
    Freed { client: usize, life: u64, id: u64 },
}

// === impl TownPlan ===

impl Default for TownPlan {
    fn default() -> TownPlan {
        TownPlan { clients: 8, capacity: 500.0, load: 1.2, minutes: 10, network: Network::default() }
    }
}

// === impl World ===

impl World {
    /// The town of `plan` at its beginning. The seed decides everything else.
    #[must_use]
    pub fn new(seed: u64, plan: &TownPlan) -> World {
        let capacity = Amount::from_f64(plan.capacity);
        let repository = repository(capacity).expect("one template that holds together");
        let mut world = World {
            seed,
            plan: plan.clone(),
            now: Time::ZERO,
            end: Time::ZERO + Duration::from_secs(60 * plan.minutes),
            dice: Pcg64::seed_from_u64(seed),
            node: Node::new(Time::ZERO, NodeConfig::new("root", 1), repository),
            clients: Vec::new(),
            agenda: BinaryHeap::new(),
            numbered: 0,
            oracle: Oracle::new(capacity),
            trace: Trace::new(),
            restarts: 0,
        };
        for client in 0..plan.clients {
            let first = world.begin(client, 0);
            world.clients.push(first);
            world.later(Duration::ZERO, Event::Wake { client });
            let pause = world.pause(10.0);
            world.later(pause, Event::Wants { client });
            let pause = world.pause(120.0);
            world.later(pause, Event::Restart { client });
        }
        world
    }

    /// Until the end of the plan.
    ///
    /// # Errors
    /// When clients believe more than there is.
    pub fn run(mut self) -> Result<Report, Violation> {
        while let Some(Reverse(due)) = self.agenda.pop() {
            if due.at > self.end {
                break;
            }
            self.now = due.at;
            self.happen(due.event);
            let allowances = self.clients.iter().map(|client| &client.allowance);
            self.oracle.look(self.now, allowances).map_err(|overshoot| Violation {
                seed: self.seed,
                event: self.trace.events(),
                overshoot,
                story: self.trace.story(),
            })?;
        }
        Ok(Report {
            trace_hash: self.trace.hash(),
            events: self.trace.events(),
            utilisation: self.oracle.utilisation(),
            highest: self.oracle.highest(),
            restarts: self.restarts,
        })
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake { client } => {
                if self.clients[client].session.deadline() <= self.now {
                    self.drive(client);
                }
            }
            Event::Wants { client } => {
                let wants = self.plan.load * 2.0 * self.dice.random::<f64>() * self.equal_share();
                self.trace.add(self.now, format_args!("c{client} wants {wants:.3}"));
                self.clients[client].session.set_wants(self.now, &resource(), wants);
                self.drive(client);
                let pause = self.pause(10.0);
                self.later(pause, Event::Wants { client });
            }
            Event::Restart { client } => self.restart(client),
            Event::Asked { client, life, id, ask } => {
                self.node.advance(self.now);
                let answer = self.node.ask(self.now, &ask);
                self.trace.add(self.now, format_args!("node answers c{client} #{id} {}", outcome(&answer)));
                self.travel(Event::Answered { client, life, id, answer });
            }
            Event::Released { client, life, id, release } => {
                self.node.release(self.now, &release);
                self.trace.add(self.now, format_args!("node frees c{client} #{id}"));
                self.travel(Event::Freed { client, life, id });
            }
            Event::Answered { client, life, id, answer } if self.lives(client, life) => {
                let (now, session) = (self.now, &mut self.clients[client].session);
                match answer {
                    Ok(answer) => session.on_answer(now, id, answer),
                    Err(refusal) => session.on_failure(now, id, Failure::Refused(refusal.to_string())),
                }
                self.drive(client);
            }
            Event::Freed { client, life, id } if self.lives(client, life) => {
                self.clients[client].session.on_released(self.now, id, None);
                self.drive(client);
            }
            Event::Answered { client, .. } | Event::Freed { client, .. } => {
                self.trace.add(self.now, format_args!("c{client} is not there any more"));
            }
        }
    }

    /// Does all that a client's session asks for.
    fn drive(&mut self, client: usize) {
        while let Some(action) = self.clients[client].session.poll(self.now) {
            let life = self.clients[client].life;
            match action {
                Action::Change(change) => {
                    let capacity = change.allowance.capacity.unwrap_or(Amount::MAX);
                    self.trace.add(
                        self.now,
                        format_args!(
                            "c{client} may use {capacity} until {} ({})",
                            change.allowance.until,
                            change.rung.name()
                        ),
                    );
                    self.clients[client].allowance = change.allowance;
                }
                Action::Ask { id, ask, .. } => {
                    self.trace.add(self.now, format_args!("c{client} asks #{id}"));
                    self.travel(Event::Asked { client, life, id, ask });
                }
                Action::Release { id, release, .. } => {
                    self.trace.add(self.now, format_args!("c{client} releases #{id}"));
                    self.travel(Event::Released { client, life, id, release });
                }
            }
        }
        let deadline = self.clients[client].session.deadline();
        self.put(deadline.max(self.now), Event::Wake { client });
    }

    fn restart(&mut self, client: usize) {
        self.restarts += 1;
        self.trace.add(self.now, format_args!("c{client} dies and comes back"));
        let life = self.clients[client].life + 1;
        self.clients[client] = self.begin(client, life);
        self.drive(client);
        let pause = self.pause(120.0);
        self.later(pause, Event::Restart { client });
    }

    fn begin(&mut self, client: usize, life: u64) -> Client {
        let id = ClientId::new(format!("c{client}"), 256).expect("a name");
        let mut session = Session::new(SessionConfig::new(id, self.dice.random(), vec![Arc::from("root:1")]));
        let wants = self.plan.load * self.equal_share();
        session.add(self.now, resource(), holding(wants));
        Client { session, allowance: Allowance::NOTHING, life }
    }

    fn lives(&self, client: usize, life: u64) -> bool {
        self.clients[client].life == life
    }

    fn equal_share(&self) -> f64 {
        self.plan.capacity / self.plan.clients as f64
    }

    /// Between half and one and a half times so many seconds.
    fn pause(&mut self, seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds * (0.5 + self.dice.random::<f64>()))
    }

    fn travel(&mut self, event: Event) {
        match self.plan.network.fate(&mut self.dice) {
            Some(delay) => self.later(delay, event),
            None => self.trace.add(self.now, "a message is lost"),
        }
    }

    fn later(&mut self, delay: Duration, event: Event) {
        self.put(self.now + delay, event);
    }

    fn put(&mut self, at: Time, event: Event) {
        self.numbered += 1;
        self.agenda.push(Reverse(Due { at, number: self.numbered, event }));
    }
}

// === impl Due ===

impl PartialEq for Due {
    fn eq(&self, other: &Due) -> bool {
        self.number == other.number
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Due) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Due) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

fn outcome(answer: &Result<Answer, Refusal>) -> String {
    match answer {
        Ok(answer) => answer.grants.iter().map(|grant| format!("{} ", grant.capacity)).collect(),
        Err(refusal) => refusal.to_string(),
    }
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

fn holding(wants: f64) -> HoldingConfig {
    HoldingConfig {
        kind: Kind::Rate,
        bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants }, 1),
        // Nothing is reserved for other rungs, so only this one keeps to the law.
        fallback: Fallback::Pessimistic,
        surplus: Surplus::Return,
    }
}

fn repository(capacity: Amount) -> Result<Repository, BadTemplates> {
    Repository::new(vec![Template {
        glob: Glob::new("*").expect("a glob"),
        capacity,
        safe_capacity: SafeCapacity::Dynamic,
        description: String::new(),
        kind: lessor_server::repository::Kind::Rate,
        policy: lessor_algorithms::Policy::FairShare,
        lease_length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        learning: Duration::ZERO,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(seed: u64) -> Report {
        World::new(seed, &TownPlan::default()).run().unwrap_or_else(|violation| panic!("{violation}"))
    }

    #[test]
    fn the_same_seed_gives_the_same_trace() {
        assert_eq!(run(1), run(1));
        assert_ne!(run(1).trace_hash, run(2).trace_hash);
    }

    #[test]
    fn clients_never_believe_more_than_there_is_and_use_most_of_it() {
        for seed in 0..100 {
            let report = run(seed);
            assert!(report.highest <= 1.0 && report.utilisation > 0.5, "seed {seed}: {report:?}");
            assert!(report.restarts > 10);
        }
    }
}
