//! Clock and lock around the node: each call reads the clock once for the mind, takes the lock once, and calls it once.
//!
//! The output of the node then goes into the mailboxes of streams, which have room for it: the node gives out one
//! message a stream, and the next when that has been taken. So nobody waits under the lock, and whoever reads slowly
//! makes nothing grow.
//!
//! A task that stands for election has a node only while it leads, and calls it only while it has authority by the very
//! clock sample that the node is given. Otherwise it says who leads.

mod callers;
mod clean_up;
mod domains;
mod health;
mod hold_kind;
mod identity;
mod leader_state;
mod leadership;
mod liveness;
mod lookout;
mod looks;
mod mailbox;
mod operators;
mod parts;
mod plans;
mod readiness;
mod reloads;
mod stream_key;
mod streams;
#[cfg(test)]
mod tests;
mod traffic;
mod turns;
mod watchdog;

use std::fmt;
use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use arc_swap::ArcSwap;
use lessor_client::internals::clock;
use lessor_proto::message::{Answer, Ask, Leader, Limits, Refusal, Release, WallClock, Whereabouts};
use lessor_proto::{Epoch, Time};
use tracing::{debug, warn};

use self::callers::Callers;
use self::domains::DomainRoom;
use self::health::{BrokenNotice, Health};
use self::hold_kind::HoldKind;
use self::identity::TaskIdentity;
pub(super) use self::leader_state::Upward;
use self::leader_state::{KnownLeader, LeaderState, NoticeQueues};
pub(super) use self::liveness::LONGEST_PAUSE;
pub use self::liveness::NotAlive;
use self::lookout::Lookout;
pub use self::lookout::Summary;
use self::looks::LookRoom;
pub use self::looks::{FoundClient, FoundClients, TreeView};
pub(super) use self::mailbox::{Letter, Mailbox};
pub(in crate::shell) use self::parts::PART;
pub use self::plans::{NotPlanned, PlanRequest};
pub use self::readiness::NotReady;
use self::reloads::Reloads;
pub(super) use self::stream_key::StreamKey;
pub(super) use self::streams::Unheard;
use self::traffic::Traffic;
pub(super) use self::traffic::{Rpc, Side, StreamEnd};
use self::turns::Turns;
use super::build::Build;
use super::etcd::Authority;
use crate::node::{ConnectionMark, Node, NodeConfig};
use crate::repository::Repository;

/// A node with a clock.
pub struct Driver {
    leader_state: Mutex<LeaderState>,
    /// The leader, for those who do not wait for the lock.
    known: Arc<ArcSwap<KnownLeader>>,
    /// The status for those who do not wait for it either, and who has asked for it.
    lookout: Lookout,
    /// Beside it: what clients tell each other of domains.
    domains: DomainRoom,
    /// And what operators ask of the whole tree.
    looks: LookRoom,
    identity: TaskIdentity,
    /// Until when this task may act; absent: it is the only one.
    authority: Option<Arc<Authority>>,
    health: Health,
    reloads: Reloads,
    traffic: Traffic,
    turns: Turns,
    callers: Callers,
}

/// Why a request was not answered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unanswered {
    /// The request is at fault.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// An earlier request broke something that must hold, and the books cannot be trusted any more.
    #[error("the node has failed one of its own checks and answers nothing until it is started again")]
    Broken,
    /// No more streams are opened.
    #[error("the server is ending")]
    Ending,
    /// The status was not made in time.
    #[error("the status was not made in time")]
    Late,
    /// This task leads, and hears nothing of etcd: it may not act before it does, and nobody else can lead yet.
    #[error("this task leads its node, and waits for etcd before it goes on")]
    Lapsed,
    /// Another task of the node leads, or none that is known.
    #[error("this task does not lead its node{}", .0.address.as_ref().map_or(String::new(), |at| format!("; {at} does")))]
    NotLeading(Leader),
}

/// The moment of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moment {
    /// The time at which it had been made.
    pub time: Time,
    /// The date on which it is.
    pub wall: WallClock,
}

/// The least time between two looks at a node that nothing else happens to.
const TICK: Duration = Duration::from_millis(1);

/// The state of the leader under its lock. A panic before it is given back breaks the node.
struct HeldState<'a> {
    state: MutexGuard<'a, LeaderState>,
    /// Dropped after the lock, which is poisoned by then: whoever hears that the node is broken finds it so.
    _notice: BrokenNotice<'a>,
}

// === impl HeldState ===

impl Deref for HeldState<'_> {
    type Target = LeaderState;

    fn deref(&self) -> &LeaderState {
        &self.state
    }
}

impl DerefMut for HeldState<'_> {
    fn deref_mut(&mut self) -> &mut LeaderState {
        &mut self.state
    }
}

// === impl Driver ===

impl Driver {
    /// Starts the epoch of a node that tells clients it is at `advertise`. At most so many streams are open at a time.
    #[must_use]
    pub fn new(config: NodeConfig, repository: Repository, advertise: String, streams: usize) -> Driver {
        let node = Node::new(clock::now(), config.clone(), repository.clone());
        let leader_state = LeaderState::new(Some(node), Leader::at(advertise.clone()), repository, streams);
        leader_state.0.warn_of_learning();
        Driver::with(config, advertise, None, leader_state)
    }

    /// The same of one of several tasks of a node, which leads when it is elected, and while it has authority.
    #[must_use]
    pub(super) fn standing(
        config: NodeConfig,
        repository: Repository,
        advertise: String,
        streams: usize,
        authority: Arc<Authority>,
    ) -> Driver {
        let leader_state = LeaderState::new(None, Leader::default(), repository, streams);
        Driver::with(config, advertise, Some(authority), leader_state)
    }

    fn with(
        config: NodeConfig,
        advertise: String,
        authority: Option<Arc<Authority>>,
        (leader_state, notices): (LeaderState, NoticeQueues),
    ) -> Driver {
        Driver {
            known: leader_state.published(),
            lookout: Lookout::default(),
            leader_state: Mutex::new(leader_state),
            domains: DomainRoom::new(notices.domains),
            looks: LookRoom::new(notices.looks),

            health: Health::new(config.parent.is_some()),
            identity: TaskIdentity::new(config, advertise),
            authority,
            reloads: Reloads::default(),
            traffic: Traffic::default(),
            turns: Turns::default(),
            callers: Callers::default(),
        }
    }

    /// The program that this is, and the node with the servers above it.
    pub fn identity(&self) -> (&Build, &str, &[Arc<str>]) {
        self.identity.named()
    }

    /// Says what program this is.
    pub(super) fn set_build(&mut self, build: Build) {
        self.identity.build = build;
    }

    /// The limits on one request.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.identity.config.message
    }

    /// The resources that one stream may have.
    pub(super) fn resources_per_stream(&self) -> usize {
        self.identity.config.resources_per_stream
    }

    /// The whereabouts of the leader. The lock of the node is not taken.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        let node = Some(self.identity.config.name.clone());
        if self.leader_state.is_poisoned() {
            return Whereabouts {
                leader: Leader::default(),
                is_leader: false,
                epoch: None,
                node,
                clock: None,
            };
        }
        let (known, now) = (self.known.load(), clock::now());
        let is_leader =
            known.epoch.is_some_and(|epoch| self.acts(epoch, now)) && self.identity.is_at(&known.leader);
        let clock = is_leader.then_some(now);
        Whereabouts { leader: known.leader.clone(), is_leader, epoch: known.epoch, node, clock }
    }

    /// The mark of the connection from that address.
    pub(super) fn mark(&self, from: SocketAddr) -> ConnectionMark {
        self.callers.mark(from)
    }

    /// Takes the reports of one holder, whose connection has the mark `caller`, and answers them. Returns the moment of the
    /// answer as well.
    ///
    /// # Errors
    /// When the request is refused, or the node is broken.
    pub fn ask(&self, caller: Option<ConnectionMark>, ask: &Ask) -> Result<(Answer, Moment), Unanswered> {
        self.redirect()?;
        if ask.reports.len() > PART { self.ask_by_parts(caller, ask) } else { self.ask_at_once(caller, ask) }
    }

    fn ask_at_once(&self, caller: Option<ConnectionMark>, ask: &Ask) -> Result<(Answer, Moment), Unanswered> {
        let (answered, time) = self.call_dated(HoldKind::Ask, |node, now, wall| {
            node.set_date(now, wall);
            (node.ask_on(now, caller, ask), wall)
        })?;
        let (answer, wall) = answered;
        match &answer {
            Ok(answer) => debug!(holder = %ask.holder, grants = answer.grants.len(), "answered"),
            Err(refusal) => debug!(holder = %ask.holder, %refusal, "refused"),
        }
        Ok((answer?, Moment { time, wall }))
    }

    /// Frees what a holder gives back, whose connection has the mark `caller`.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn release(&self, caller: Option<ConnectionMark>, release: &Release) -> Result<(), Unanswered> {
        debug!(holder = %release.holder, resources = release.resources.len(), "released");
        self.redirect()?;
        for part in parts::of_release(release) {
            self.call(HoldKind::Release, |node, now| node.release_on(now, caller, &part))?;
        }
        Ok(())
    }

    /// The time for which this task may go on leading without hearing more, in seconds; absent: it is the only one.
    #[must_use]
    pub fn authority_seconds(&self) -> Option<f64> {
        let until = self.authority.as_ref()?.until();
        Some(until.map_or(0.0, |until| until.since(clock::now()).as_secs_f64()))
    }

    /// From here on it is not ready, though it answers what still comes.
    pub fn start_draining(&self) {
        self.health.drain();
    }

    /// Sends away whoever asks a task that does not lead, without the lock of the node. Of one that does it is looked at under
    /// the lock whether it may act, and whether the node is broken.
    fn redirect(&self) -> Result<(), Unanswered> {
        // The only task of its node leads it.
        if self.authority.is_none() {
            return Ok(());
        }
        let known = self.known.load();
        match known.is_here || self.leader_state.is_poisoned() {
            true => Ok(()),
            false => Err(Unanswered::NotLeading(self.identity.another(known.leader.clone()))),
        }
    }

    /// One call of the node, and what comes out of it, if this task leads.
    fn call<R>(&self, kind: HoldKind, call: impl FnOnce(&mut Node, Time) -> R) -> Result<R, Unanswered> {
        self.call_dated(kind, |node, now, _| call(node, now)).map(|(result, _)| result)
    }

    /// The same with the date, which has been read to look at the clocks. Returns the time at which it had been done as well.
    fn call_dated<R>(
        &self,
        kind: HoldKind,
        call: impl FnOnce(&mut Node, Time, WallClock) -> R,
    ) -> Result<(R, Time), Unanswered> {
        let held = self.with_state_for(kind, None, |leader_state, now| match &mut leader_state.node {
            Some(node) if self.acts(node.epoch(), now) => Ok(call(node, now, leader_state.clocks.wall())),
            _ => Err(Unanswered::NotLeading(self.identity.another(leader_state.leader()))),
        })?;
        held.outcome.map(|outcome| (outcome, held.ended))
    }

    /// Time that the clock did not show ends what this task holds and may do, before anything is done by it.
    fn look_at_clocks(&self, leader_state: &mut LeaderState, now: Time) {
        let lost = leader_state.clocks.lost_by(now);
        if lost.is_zero() {
            return;
        }
        warn!(
            lost_ms = lost.as_millis(),
            "the wall clock ran ahead; leases and authority end that much earlier"
        );
        if let Some(authority) = &self.authority {
            authority.lose_time(lost);
        }
        if let Some(node) = &mut leader_state.node {
            node.lose_time(now, lost);
        }
    }

    /// Lets the node know until when nobody else led for certain.
    fn confirm(&self, leader_state: &mut LeaderState, now: Time) {
        let Some(node) = leader_state.node.as_mut().filter(|node| self.acts(node.epoch(), now)) else {
            return;
        };
        let led = self.authority.as_ref().map_or(Some(Time::MAX), |authority| authority.led_in(node.epoch()));
        if let Some(led) = led {
            node.confirm(now, led);
        }
    }

    /// Whether this task may act at `now` in the epoch `epoch`, to which it has been elected.
    fn acts(&self, epoch: Epoch, now: Time) -> bool {
        let until = |authority: &Arc<Authority>| authority.until_in(epoch);
        self.authority.as_ref().is_none_or(|authority| until(authority).is_some_and(|until| now < until))
    }

    /// The node, if this task may act for it at `now`.
    ///
    /// # Errors
    /// [`Unanswered::Lapsed`] while it may not, and nobody else can lead yet; [`Unanswered::NotLeading`] if it does not lead.
    fn acting_node<'a>(
        &self,
        leader_state: &'a mut LeaderState,
        now: Time,
    ) -> Result<&'a mut Node, Unanswered> {
        let epoch = leader_state.node.as_ref().map(Node::epoch);
        let fault = match epoch {
            Some(epoch) if self.acts(epoch, now) => None,
            Some(epoch) if self.is_key_ours(epoch, now) => Some(Unanswered::Lapsed),
            _ => Some(Unanswered::NotLeading(self.identity.another(leader_state.leader()))),
        };
        match (fault, &mut leader_state.node) {
            (None, Some(node)) => Ok(node),
            (fault, _) => Err(fault.expect("there is a node")),
        }
    }

    /// Whether nobody else can lead yet at `now`, after this task was elected in the epoch `epoch`.
    fn is_key_ours(&self, epoch: Epoch, now: Time) -> bool {
        let until = |authority: &Arc<Authority>| authority.key_in(epoch);
        self.authority.as_ref().and_then(until).is_some_and(|until| now < until)
    }

    fn leader_state(&self) -> Result<HeldState<'_>, Unanswered> {
        let state = self.leader_state.lock().map_err(|_| Unanswered::Broken)?;
        Ok(HeldState { state, _notice: self.health.broken_notice() })
    }

    /// Whether the node has failed one of its own checks: it answers nothing any more.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.leader_state.is_poisoned()
    }

    /// Waits until the node has failed one of its own checks.
    pub async fn until_broken(&self) {
        self.health.until_broken().await;
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("node", &self.identity.config.name).finish_non_exhaustive()
    }
}
