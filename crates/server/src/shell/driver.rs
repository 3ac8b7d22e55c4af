//! Clock and lock around the node: each call reads the clock once, takes the lock once, and calls the mind once.
//!
//! What comes out of the node then goes into the outboxes of streams, which have room for it: the node gives out one
//! message a stream, and the next when that has been taken. So nobody waits under the lock, and whoever reads slowly
//! makes nothing grow.

mod house;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use lessor_client::session::Action;
use lessor_client::shell::clock;
use lessor_proto::Time;
use lessor_proto::message::{Answer, Ask, Down, Hello, Leader, Limits, Refusal, Release, Up, Whereabouts};
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use self::house::House;
use crate::node::{FromParent, Node, NodeConfig, NodeStatus, Peer, StatusQuery};
use crate::repository::Repository;

/// A node with a clock.
pub struct Driver {
    house: Mutex<House>,
    /// When the node is to be polled if nothing else happens.
    alarm: watch::Sender<Time>,
    /// What never changes is kept outside the lock.
    limits: Limits,
    whereabouts: Whereabouts,
    draining: AtomicBool,
    failed_reloads: AtomicU64,
    traffic: Traffic,
}

/// What has passed through streams since the start.
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
}

/// The least time between two looks at a node that nothing else happens to.
const TICK: Duration = Duration::from_millis(1);
/// How often memory is given back. What has ended stops counting when it is asked for, whether or not this has run.
const CLEAN_UP: Duration = Duration::from_secs(1);

// === impl Driver ===

impl Driver {
    /// Starts the reign of a node that tells clients it is at `advertise`. At most so many streams are open at a time.
    #[must_use]
    pub fn new(config: NodeConfig, repository: Repository, advertise: String, streams: usize) -> Driver {
        let whereabouts = Whereabouts {
            leader: Leader::at(advertise),
            is_leader: true,
            epoch: Some(config.epoch),
            node: Some(config.name.clone()),
        };
        let limits = config.message.clone();
        Driver {
            house: Mutex::new(House::new(Node::new(clock::now(), config, repository), streams)),
            alarm: watch::Sender::new(Time::MAX),
            limits,
            whereabouts,
            draining: AtomicBool::new(false),
            failed_reloads: AtomicU64::new(0),
            traffic: Traffic::default(),
        }
    }

    /// How much one request may hold.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Who leads.
    #[must_use]
    pub fn whereabouts(&self) -> &Whereabouts {
        &self.whereabouts
    }

    /// Takes the reports of one holder and answers them.
    ///
    /// # Errors
    /// When the request is refused, or the node is broken.
    pub fn ask(&self, ask: &Ask) -> Result<Answer, Unanswered> {
        let answer = self.call(|node, now| node.ask(now, ask))?;
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
        self.call(|node, now| node.release(now, release))
    }

    /// Puts another repository in force.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn reload(&self, repository: Repository) -> Result<(), Unanswered> {
        info!(templates = repository.templates().len(), "repository in force");
        self.call(|node, now| node.reload(now, repository))
    }

    /// Counts a repository that could not be put in force; the old one stays.
    pub fn reload_failed(&self) {
        self.failed_reloads.fetch_add(1, Ordering::Relaxed);
    }

    /// How many repositories could not be put in force.
    #[must_use]
    pub fn failed_reloads(&self) -> u64 {
        self.failed_reloads.load(Ordering::Relaxed)
    }

    /// Who has what.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn status(&self, query: &StatusQuery) -> Result<NodeStatus, Unanswered> {
        Ok(self.house()?.node.status(clock::now(), query))
    }

    /// Whether it takes requests.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.draining.load(Ordering::Relaxed) && !self.house.is_poisoned()
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
            if self.call(Node::advance).is_err() {
                warn!("clean-up ends: the node is broken");
                return;
            }
        }
    }

    /// Polls the node when it is time to, until stopped.
    pub(crate) async fn keep_time(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        let mut alarm = self.alarm.subscribe();
        loop {
            let at = *alarm.borrow_and_update();
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                // It never errs: the sender is ours.
                _ = alarm.changed() => continue,
                () = clock::sleep_until(at) => {}
            }
            if self.call(|_, _| ()).is_err() {
                warn!("nothing comes out any more: the node is broken");
                return;
            }
        }
    }

    /// One call of the node, and what comes out of it.
    fn call<R>(&self, call: impl FnOnce(&mut Node, Time) -> R) -> Result<R, Unanswered> {
        self.visit(|house, now| call(&mut house.node, now))
    }

    fn visit<R>(&self, visit: impl FnOnce(&mut House, Time) -> R) -> Result<R, Unanswered> {
        let mut house = self.house()?;
        let now = clock::now();
        let result = visit(&mut house, now);
        house.hand_out(now);
        // A deadline that has passed must not keep a processor busy.
        let deadline = house.node.deadline().map_or(Time::MAX, |deadline| deadline.max(now + TICK));
        // Under the lock, or an older deadline could take the place of this one.
        self.alarm.send_if_modified(|at| std::mem::replace(at, deadline) > deadline);
        Ok(result)
    }

    fn house(&self) -> Result<MutexGuard<'_, House>, Unanswered> {
        self.house.lock().map_err(|_| Unanswered::Broken)
    }
}

// === streams ===

impl Driver {
    /// Somebody has opened a stream. What is due to it comes out of the receiver; each message that has been taken out is
    /// to be followed by [`Driver::ready`]. The receiver ends when the node or a drain has closed the stream.
    pub(super) fn connect(&self, hello: &Hello) -> Result<(Peer, mpsc::Receiver<Down>), Unanswered> {
        let connected = self.visit(|house, now| {
            // Looked at under the lock: a stream is closed by a drain, or not opened.
            if self.draining.load(Ordering::Relaxed) {
                return Err(Unanswered::Ending);
            }
            house.connect(now, hello.clone()).map_err(Unanswered::Refused)
        });
        let (peer, outbox) = connected??;
        debug!(stream = %peer, holder = %hello.holder, incarnation = hello.incarnation, "connected");
        Ok((peer, outbox))
    }

    /// Something came up a stream.
    pub(super) fn receive(&self, peer: Peer, up: Up) -> Result<(), Unanswered> {
        self.call(|node, now| node.receive(now, peer, up))
    }

    /// The message that came out last for a stream has been taken.
    pub(super) fn ready(&self, peer: Peer) -> Result<(), Unanswered> {
        self.call(|node, now| node.ready(now, peer))
    }

    /// A stream has ended. May be said twice.
    pub(super) fn disconnect(&self, peer: Peer) {
        // Of a broken node nothing is expected.
        if let Ok(true) = self.visit(|house, now| house.disconnect(now, peer)) {
            debug!(stream = %peer, "disconnected");
        }
    }

    /// Ends all streams, after what has come out for them. Whoever is draining opens no others.
    pub(super) fn close_streams(&self) {
        // Of a broken node nothing is expected.
        let _ = self.visit(House::disconnect_all);
    }

    /// Streams that are open.
    pub(super) fn streams(&self) -> usize {
        self.house().map_or(0, |house| house.streams())
    }

    /// What has passed through streams.
    pub(super) fn traffic(&self) -> &Traffic {
        &self.traffic
    }
}

// === the node above ===

impl Driver {
    /// What the node wants of the one above, from here on.
    pub(super) fn parent_actions(&self) -> Result<mpsc::UnboundedReceiver<Action>, Unanswered> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.visit(|house, _| house.upward = Some(sender))?;
        Ok(receiver)
    }

    /// Something came from the node above.
    pub(super) fn on_parent(&self, event: FromParent) -> Result<(), Unanswered> {
        self.call(|node, now| node.on_parent(now, event))
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").field("whereabouts", &self.whereabouts).finish_non_exhaustive()
    }
}
