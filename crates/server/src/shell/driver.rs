//! Clock and lock around the node: each call reads the clock once for the mind, takes the lock once, and calls it once.
//!
//! The output of the node then goes into the mailboxes of streams, which have room for it: the node gives out one
//! message a stream, and the next when that has been taken. So nobody waits under the lock, and whoever reads slowly
//! makes nothing grow.
//!
//! A task that stands for election has a node only while it leads, and calls it only while it has authority by the very
//! clock sample that the node is given. Otherwise it says who leads.

mod domains;
mod leader_state;
mod leadership;
mod mailbox;
mod turns;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lessor_client::session;
use lessor_client::shell::clock;
use lessor_proto::message::{
    Answer, Ask, Down, Hello, Leader, Limits, Refusal, Release, Up, WallClock, Whereabouts,
};
use lessor_proto::{Drift, Epoch, Time};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use self::domains::{DomainRoom, Notice};
use self::leader_state::{KnownLeader, LeaderState};
pub(super) use self::leader_state::{StreamKey, Upward};
pub(super) use self::mailbox::{Letter, Mailbox};
use self::turns::Turns;
use super::etcd::Authority;
use crate::node::{Node, NodeConfig, NodeStatus, Peer, StatusQuery};
use crate::repository::Repository;

/// A node with a clock.
pub struct Driver {
    leader_state: Mutex<LeaderState>,
    /// The leader, for those who do not wait for the lock.
    known: watch::Receiver<KnownLeader>,
    /// Beside it: what clients tell each other of domains.
    domains: DomainRoom,
    /// When the node is to be polled if nothing else happens.
    alarm: watch::Sender<Time>,
    /// The configuration of the node, kept outside the lock: it never changes.
    config: NodeConfig,
    /// The address that clients are told.
    advertise: String,
    /// Until when this task may act; absent: it is the only one.
    authority: Option<Arc<Authority>>,
    etcd_healthy: AtomicBool,
    /// The fault of the state directory, if it has one; absent: there is no directory.
    state: Mutex<Option<Option<String>>>,
    draining: AtomicBool,
    failed_reloads: AtomicU64,
    traffic: Traffic,
    turns: Turns,
}

/// The traffic through streams since the start.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) refused: AtomicU64,
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
    /// Another task of the node leads, or none that is known.
    #[error("this task does not lead its node{}", .0.address.as_ref().map_or(String::new(), |at| format!("; {at} does")))]
    NotLeading(Leader),
}

/// The least time between two looks at a node that nothing else happens to.
const TICK: Duration = Duration::from_millis(1);
/// The interval at which memory is given back. Anything that has ended stops counting when it is asked for,
/// whether or not this has run.
const CLEAN_UP: Duration = Duration::from_secs(1);

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
        (leader_state, notices): (LeaderState, mpsc::UnboundedReceiver<Notice>),
    ) -> Driver {
        Driver {
            known: leader_state.published(),
            leader_state: Mutex::new(leader_state),
            domains: DomainRoom::new(notices),
            alarm: watch::Sender::new(Time::MAX),
            config,
            advertise,
            authority,
            etcd_healthy: AtomicBool::new(true),
            state: Mutex::new(None),
            draining: AtomicBool::new(false),
            failed_reloads: AtomicU64::new(0),
            traffic: Traffic::default(),
            turns: Turns::default(),
        }
    }

    /// The limits on one request.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.config.message
    }

    /// The greatest error of clocks.
    pub(super) fn drift(&self) -> Drift {
        self.config.drift
    }

    /// The whereabouts of the leader. The lock of the node is not taken.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        let KnownLeader { leader, epoch } = self.known();
        let now = clock::now();
        let is_leader = epoch.is_some_and(|epoch| self.acts(epoch, now)) && self.is_at(&leader);
        let (node, clock) = (Some(self.config.name.clone()), is_leader.then_some(now));
        Whereabouts { leader, is_leader, epoch, node, clock }
    }

    /// Takes the reports of one holder, which came when the wall clock showed `wall`, and answers them.
    ///
    /// # Errors
    /// When the request is refused, or the node is broken.
    pub fn ask(&self, ask: &Ask, wall: WallClock) -> Result<Answer, Unanswered> {
        self.redirect()?;
        let answer = self.call(|node, now| {
            node.set_date(now, wall);
            node.ask(now, ask)
        })?;
        match &answer {
            Ok(answer) => debug!(holder = %ask.holder, grants = answer.grants.len(), "answered"),
            Err(refusal) => debug!(holder = %ask.holder, %refusal, "refused"),
        }
        Ok(answer?)
    }

    /// Frees what a holder gives back.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn release(&self, release: &Release) -> Result<(), Unanswered> {
        debug!(holder = %release.holder, resources = release.resources.len(), "released");
        self.redirect()?;
        self.call(|node, now| node.release(now, release))
    }

    /// Puts another repository in force: now, and when this task is elected.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn reload(&self, repository: Repository) -> Result<(), Unanswered> {
        info!(templates = repository.templates().len(), "repository in force");
        self.with_state(|leader_state, now| {
            leader_state.repository = repository.clone();
            if let Some(node) = &mut leader_state.node {
                node.reload(now, repository);
            }
            leader_state.warn_of_config();
        })
    }

    /// Counts a repository that could not be put in force; the old one stays.
    pub fn reload_failed(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of repositories that could not be put in force.
    #[must_use]
    pub fn failed_reloads(&self) -> u64 {
        self.failed_reloads.load(Ordering::Relaxed)
    }

    /// The status of all holders: as this task knows it if it leads, and nothing if it does not.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn status(&self, query: &StatusQuery) -> Result<NodeStatus, Unanswered> {
        let mut status = {
            let leader_state = self.leader_state()?;
            match &leader_state.node {
                Some(node) => node.status(clock::now(), query),
                None => NodeStatus::of_nobody(&self.config.name, leader_state.epoch().unwrap_or_default()),
            }
        };
        self.domains.describe(&mut status, query.holders);
        Ok(status)
    }

    /// The time for which this task may go on leading without hearing more, in seconds; absent: it is the only one.
    #[must_use]
    pub fn authority_seconds(&self) -> Option<f64> {
        let until = self.authority.as_ref()?.until();
        Some(until.map_or(0.0, |until| until.since(clock::now()).as_secs_f64()))
    }

    /// Whether it takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.leader_state.is_poisoned()
    }

    /// Why this node is served as without a parent, if it stands above itself.
    #[must_use]
    pub fn node_loop(&self) -> Option<String> {
        let query = StatusQuery { resource: None, resources: 0, holders: 0 };
        self.status(&query).ok()?.names.circle
    }

    /// From here on it is not ready, though it answers what still comes.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Gives back the memory of what has ended, once a second until stopped.
    pub(crate) async fn clean_up(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        let mut timer = tokio::time::interval(CLEAN_UP);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                _ = timer.tick() => {}
            }
            if self.call(Node::advance) == Err(Unanswered::Broken) {
                warn!("clean-up ends: the node is broken");
                return;
            }
        }
    }

    /// Sends away whoever asks a task that may not act, without the lock of the node. A task that may is asked under the lock
    /// whether it still does.
    fn redirect(&self) -> Result<(), Unanswered> {
        let KnownLeader { leader, epoch } = self.known();
        let may_act = epoch.is_some_and(|epoch| self.acts(epoch, clock::now()));
        match may_act || self.leader_state.is_poisoned() {
            true => Ok(()),
            false => Err(Unanswered::NotLeading(self.another(leader))),
        }
    }

    /// The leader as it was published last; nothing where the node is broken.
    fn known(&self) -> KnownLeader {
        match self.leader_state.is_poisoned() {
            true => KnownLeader::default(),
            false => self.known.borrow().clone(),
        }
    }

    /// One call of the node, and what comes out of it, if this task leads.
    fn call<R>(&self, call: impl FnOnce(&mut Node, Time) -> R) -> Result<R, Unanswered> {
        self.with_state(|leader_state, now| match &mut leader_state.node {
            Some(node) if self.acts(node.epoch(), now) => Ok(call(node, now)),
            _ => Err(Unanswered::NotLeading(self.another(leader_state.leader()))),
        })?
    }

    /// The same for a stream that was opened in this epoch.
    fn call_for<R>(
        &self,
        key: StreamKey,
        call: impl FnOnce(&mut Node, Time, Peer) -> R,
    ) -> Result<R, Unanswered> {
        self.with_state(|leader_state, now| self.with_stream(leader_state, now, key, call))?
    }

    fn with_stream<R>(
        &self,
        leader_state: &mut LeaderState,
        now: Time,
        key: StreamKey,
        call: impl FnOnce(&mut Node, Time, Peer) -> R,
    ) -> Result<R, Unanswered> {
        match (leader_state.peer(key), &mut leader_state.node) {
            (Some(peer), Some(node)) if self.acts(node.epoch(), now) => Ok(call(node, now, peer)),
            _ => Err(Unanswered::NotLeading(self.another(leader_state.leader()))),
        }
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

    fn is_at(&self, leader: &Leader) -> bool {
        leader.address.as_ref() == Some(&self.advertise)
    }

    /// The leader instead of this task, as far as it knows: not itself, when its authority has lapsed.
    fn another(&self, leader: Leader) -> Leader {
        if self.is_at(&leader) { Leader::default() } else { leader }
    }

    fn leader_state(&self) -> Result<MutexGuard<'_, LeaderState>, Unanswered> {
        self.leader_state.lock().map_err(|_| Unanswered::Broken)
    }
}

// === streams ===

impl Driver {
    /// Somebody has opened a stream. What is due to it comes out of the mailbox; each message of the node that has been
    /// taken out is to be followed by [`Driver::ready`], and news of domains by [`Driver::domains_ready`]. The mailbox ends
    /// when the node or a drain has closed the stream.
    pub(super) fn connect(&self, hello: &Hello) -> Result<(StreamKey, Arc<Mailbox>), Unanswered> {
        let connected = self.with_state(|leader_state, now| {
            // Looked at under the lock: a stream is closed by a drain, or not opened.
            if self.draining.load(Ordering::Relaxed) {
                return Err(Unanswered::Ending);
            }
            if !leader_state.node.as_ref().is_some_and(|node| self.acts(node.epoch(), now)) {
                return Err(Unanswered::NotLeading(self.another(leader_state.leader())));
            }
            leader_state.connect(now, hello.clone()).map_err(Unanswered::Refused)
        });
        let connected = connected??;
        let stream = connected.0;
        debug!(%stream, holder = %hello.holder, incarnation = hello.incarnation.0, "connected");
        Ok(connected)
    }

    /// Something came up a stream.
    pub(super) fn receive(&self, key: StreamKey, up: Up) -> Result<(), Unanswered> {
        self.call_for(key, |node, now, peer| node.receive(now, peer, up))
    }

    /// The same of a stream that takes a message at once. Returns the first one there is for it then; of that it need not
    /// be said that it was taken.
    pub(super) fn exchange(&self, key: StreamKey, up: Up) -> Result<Option<Down>, Unanswered> {
        let (result, down) = self.with_state_for(Some(key), |leader_state, now| {
            self.with_stream(leader_state, now, key, |node, now, peer| node.receive(now, peer, up))
        })?;
        result.map(|()| down)
    }

    /// A stream has ended. May be said twice.
    pub(super) fn disconnect(&self, key: StreamKey) {
        // Of a broken node nothing is expected.
        if let Ok(true) = self.with_state(|leader_state, now| leader_state.disconnect(now, key)) {
            debug!(stream = %key, "disconnected");
        }
    }

    /// Ends all streams, after what has come out for them. Whoever is draining opens no others.
    pub(super) fn close_streams(&self) {
        // Of a broken node nothing is expected.
        let _ = self.with_state(LeaderState::disconnect_all);
    }

    /// Streams that are open.
    pub(super) fn streams(&self) -> usize {
        self.leader_state().map_or(0, |leader_state| leader_state.streams())
    }

    /// The traffic through streams.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

// === the node above ===

impl Driver {
    /// The actions that the node wants of the one above, from here on.
    pub(super) fn parent_actions(&self) -> Result<mpsc::UnboundedReceiver<Upward>, Unanswered> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.with_state(|leader_state, _| leader_state.upward = Some(sender))?;
        Ok(receiver)
    }

    /// Something came from the node above in answer to the leader of `epoch`.
    pub(super) fn on_parent(&self, epoch: Epoch, event: session::Event) -> Result<(), Unanswered> {
        self.with_state(|leader_state, now| {
            let published = leader_state.epoch();
            if let Some(node) = leader_state.node.as_mut().filter(|_| published == Some(epoch)) {
                node.on_parent(now, event);
            }
        })
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("node", &self.config.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lessor_proto::message::{DomainReport, HolderKind, StreamReport};
    use lessor_proto::{Amount, ClientId, Incarnation, ReportId, ResourceId};

    use super::*;
    use crate::election::ClockBounds;
    use crate::record::Record;

    fn driver() -> Driver {
        let authority = Arc::new(Authority::default());
        authority.set(Some((Epoch(3), Time::MAX)));
        let config = NodeConfig::new("root", Epoch(0));
        Driver::standing(config, Repository::default(), "127.0.0.1:1".to_owned(), 10, authority)
    }

    fn hello(holder: &str) -> Hello {
        Hello {
            kind: HolderKind::Client,
            holder: ClientId::new(holder, 256).unwrap(),
            incarnation: Incarnation(7),
            line: None,
        }
    }

    #[test]
    fn who_resigns_says_what_is_out_and_who_does_not_lead_says_nothing() {
        let driver = driver();
        assert_eq!(driver.resign(), Ok(None));
        let orders = ResourceId::new("orders", 256).unwrap();
        let marks = BTreeMap::from([(orders, Amount::from_units(70))]);
        let longest_lease = Duration::from_secs(60);
        let record = Record { epoch: Epoch(2), longest_lease, marks: marks.clone(), ..Record::default() };
        driver.lead(Epoch(3), record, &ClockBounds::default()).unwrap();
        let (epoch, write) = driver.resign().unwrap().unwrap();
        // All of that may still be out: no lease of the epoch before has certainly ended.
        assert_eq!((epoch, write.change.marks), (Epoch(3), marks));
        driver.authority.as_ref().unwrap().set(None);
        assert_eq!(driver.resign(), Ok(None));
    }

    /// A stream, and what comes down it.
    fn connected(driver: &Driver, holder: &str) -> (StreamKey, Arc<Mailbox>) {
        let (key, mailbox) = driver.connect(&hello(holder)).unwrap();
        assert!(matches!(mailbox.take(), Letter::Down(Down::Welcome(_))));
        (key, mailbox)
    }

    fn heartbeat(epoch: Epoch) -> Up {
        Up::Report(StreamReport {
            id: ReportId(1),
            target_epoch: Some(epoch),
            renew_all: true,
            reports: Vec::new(),
        })
    }

    fn set_authority(driver: &Driver, of: Option<Epoch>) {
        driver.authority.as_ref().unwrap().set(of.map(|epoch| (epoch, Time::MAX)));
    }

    #[test]
    fn a_task_that_does_not_lead_redirects_while_the_node_is_locked() {
        let driver = Arc::new(driver());
        let elsewhere = Leader::at("10.0.0.9:1".to_owned());
        driver.follow(elsewhere.clone(), Some(Epoch(2))).unwrap();
        let held = driver.leader_state.lock().unwrap();
        let (done, answers) = std::sync::mpsc::channel();
        let asked = Arc::clone(&driver);
        let asking = std::thread::spawn(move || {
            let release = Release {
                holder: ClientId::new("early", 256).unwrap(),
                incarnation: None,
                report_id: None,
                resources: Vec::new(),
            };
            done.send((asked.whereabouts(), asked.release(&release))).unwrap();
        });
        let (whereabouts, released) =
            answers.recv_timeout(Duration::from_secs(20)).expect("no lock is waited for");
        drop(held);
        asking.join().unwrap();
        assert_eq!((whereabouts.leader, whereabouts.epoch), (elsewhere.clone(), Some(Epoch(2))));
        assert_eq!(released, Err(Unanswered::NotLeading(elsewhere)));
    }

    #[test]
    fn a_stream_of_an_earlier_epoch_has_no_part_in_a_later_one() {
        let driver = driver();
        driver.lead(Epoch(3), Record::default(), &ClockBounds::default()).unwrap();
        let before = driver.connect(&hello("early")).unwrap().0;
        driver.follow(Leader::default(), None).unwrap();
        set_authority(&driver, Some(Epoch(9)));
        driver.lead(Epoch(9), Record::default(), &ClockBounds::default()).unwrap();
        // The node numbers its streams from the beginning again.
        let (now, mailbox) = connected(&driver, "late");
        assert_eq!(before.to_string(), now.to_string());
        driver.receive(now, heartbeat(Epoch(9))).unwrap();
        driver.ready(before).unwrap();
        driver.turn().unwrap();
        assert!(matches!(mailbox.take(), Letter::None), "the later stream has not taken its welcome");
        assert!(matches!(driver.receive(before, heartbeat(Epoch(9))), Err(Unanswered::NotLeading(_))));
        driver.disconnect(before);
        assert_eq!(driver.streams(), 1);
        driver.ready(now).unwrap();
        driver.turn().unwrap();
        assert!(matches!(mailbox.take(), Letter::Down(_)), "the later stream goes on");
    }

    #[test]
    fn what_is_taken_while_a_task_may_not_act_counts_when_it_may_again() {
        let driver = driver();
        driver.lead(Epoch(3), Record::default(), &ClockBounds::default()).unwrap();
        let (key, mailbox) = connected(&driver, "reader");
        driver.receive(key, heartbeat(Epoch(3))).unwrap();
        set_authority(&driver, None);
        driver.ready(key).unwrap();
        assert_eq!(driver.turn(), Ok(false));
        assert!(matches!(mailbox.take(), Letter::None));
        set_authority(&driver, Some(Epoch(3)));
        driver.turn().unwrap();
        assert!(matches!(mailbox.take(), Letter::Down(_)), "the heartbeat is answered");
    }

    #[test]
    fn leases_and_domains_do_not_wait_for_each_other() {
        let driver = driver();
        driver.lead(Epoch(3), Record::default(), &ClockBounds::default()).unwrap();
        let (key, mailbox) = connected(&driver, "web");
        driver.ready(key).unwrap();
        let floor = driver.domains.floor();
        driver.receive(key, heartbeat(Epoch(3))).unwrap();
        assert!(
            matches!(mailbox.take(), Letter::Down(_)),
            "the heartbeat is answered while domains are looked at"
        );
        drop(floor);
        let leader_state = driver.leader_state().unwrap();
        let resource = ResourceId::new("orders", 256).unwrap();
        let report =
            DomainReport { resource, version: 1, id: 1, ask: true, below: None, domains: Vec::new() };
        driver.receive_domains(key, Box::new(report));
        driver.domains_ready(key);
        drop(leader_state);
    }

    #[test]
    fn the_authority_of_a_later_epoch_is_not_that_of_the_one_before() {
        let driver = driver();
        driver.lead(Epoch(3), Record::default(), &ClockBounds::default()).unwrap();
        let (key, _mailbox) = connected(&driver, "late");
        // The task was deposed and elected again, and has not been told either yet.
        set_authority(&driver, Some(Epoch(9)));
        assert!(matches!(driver.receive(key, heartbeat(Epoch(3))), Err(Unanswered::NotLeading(_))));
        assert!(matches!(driver.connect(&hello("next")), Err(Unanswered::NotLeading(_))));
        assert!(!driver.whereabouts().is_leader);
    }
}
