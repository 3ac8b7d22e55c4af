//! The body of a candidate: a task that carries its calls out at a real etcd.
//!
//! [`Election::start`] begins to stand for election, and [`Election::event`] says what becomes of it.
//! [`Election::authority_until`] needs no answer of etcd, and is to be compared with [`clock::now`] in every step that
//! grants anything. A handle that is dropped leaves the election as a crash does: etcd lets the key go when its lease ends.
//!
//! ```no_run
//! # use lessor_server::election::{BadConfig, ElectionConfig, Event};
//! # use lessor_server::shell::etcd::{Election, ElectionStartError, EtcdOptions};
//! # async fn run() -> Result<(), ElectionStartError> {
//! let options = EtcdOptions::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379"]);
//! let mut election = Election::start(options, ElectionConfig::new("root", "10.0.0.7:5101", 0xa1))?;
//! while let Some(event) = election.event().await {
//!     match event {
//!         Event::Elected { epoch, record } => println!("{epoch} begins with {} marks", record.marks.len()),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod calls;
mod endpoints;
mod secret_follower;
mod secrets;
mod task;
mod tls;
mod traffic;
mod watcher;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Epoch, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use self::endpoints::Endpoints;
use self::secret_follower::SecretFollower;
pub use self::secrets::{EtcdSecrets, SecretSource};
use self::task::{Request, Task};
pub use self::tls::{BadTls, EtcdTls};
pub(in crate::shell) use self::traffic::EtcdTraffic;
use crate::election::record::RecordKeys;
use crate::election::{BadConfig, Candidate, ElectionConfig, Event};
use crate::record::RecordChange;

/// Where etcd is, and how to speak to it.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Members, as `http://host:port` or `https://host:port`; at least one. Each call goes to one of them, and to the next
    /// after a failure.
    pub endpoints: Vec<String>,
    /// The secrets at first: the caller, and the authorities that are believed.
    pub secrets: EtcdSecrets,
    /// Where these are read again while the task stands; absent: they stay as they are.
    pub source: Option<SecretSource>,
}

/// A task of a node that stands for election.
#[derive(Debug)]
pub struct Election {
    requests: mpsc::UnboundedSender<Request>,
    events: mpsc::UnboundedReceiver<Event>,
    authority: Arc<Authority>,
    /// The time for which etcd is asked to keep the key of a leader.
    pub(in crate::shell) ttl: Duration,
    task: JoinHandle<()>,
    /// The task that follows secrets that are replaced, if there is one.
    renewal: Option<JoinHandle<()>>,
}

/// Until when a task may act, and in which epoch, for everybody in the process to read.
#[derive(Debug, Default)]
pub struct Authority {
    acting: Mutex<Acting>,
    /// Which cluster elects here, and under which prefix; 0 before that is known.
    electorate: AtomicU64,
    /// The calls that were made on the way.
    pub(in crate::shell) traffic: EtcdTraffic,
}

#[derive(Clone, Copy, Debug, Default)]
struct Acting {
    /// The epoch, and until when.
    until: Option<(Epoch, Time)>,
    /// When nobody else led yet for certain.
    led: Option<Time>,
    /// Set when the task has resigned: it gets no authority any more.
    resigned: bool,
}

/// Why a task cannot stand for election.
#[derive(Debug, thiserror::Error)]
pub enum ElectionStartError {
    /// It is set up in a way that cannot work.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// No member of etcd is named.
    #[error("no etcd endpoint is given, at least one is wanted")]
    NoEndpoint,
    /// A member is at no address.
    #[error("etcd endpoint {found:?} is not like http://host:port or https://host:port")]
    Endpoint {
        /// The endpoint.
        found: String,
    },
    /// Nobody at a member would be believed.
    #[error("etcd endpoint {found:?} is https, and there is no certificate of an authority to know it by")]
    NoAuthority {
        /// The endpoint.
        found: String,
    },
    /// A member would be spoken to without certificates, though there are some.
    #[error("etcd endpoint {found:?} is http, and there are certificates: wanted https")]
    NotEncrypted {
        /// The endpoint.
        found: String,
    },
}

/// The failure of a write, as far as is known: this task does not lead, or not any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this task does not lead, or not any more")]
pub struct NotWritten;

// === impl EtcdOptions ===

impl EtcdOptions {
    /// Members without certificates and passwords.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> EtcdOptions {
        let endpoints = endpoints.into_iter().map(Into::into).collect();
        EtcdOptions { endpoints, secrets: EtcdSecrets::default(), source: None }
    }
}

// === impl Election ===

impl Election {
    /// Begins to stand for election, whether etcd can be reached or not.
    ///
    /// # Errors
    /// When what is configured cannot work.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer.
    pub fn start(options: EtcdOptions, config: ElectionConfig) -> Result<Election, ElectionStartError> {
        let (secrets, source) = (options.secrets.clone(), options.source.clone());
        let endpoints = Endpoints::new(options, config.call_timeout)?;
        let (ttl, key) = (config.ttl, RecordKeys::new(&config.prefix, &config.node).leader);
        let candidate = Candidate::new(clock::now(), config)?;
        let (requests, requested) = mpsc::unbounded_channel();
        let (happened, events) = mpsc::unbounded_channel();
        let authority = Arc::new(Authority::default());
        let renewal = source.map(|source| SecretFollower::new(source, &secrets, &endpoints, key));
        let task = Task::new(candidate, endpoints, requested, happened, Arc::clone(&authority));
        let renewal = renewal.map(|renewal| tokio::spawn(renewal.run()));
        Ok(Election { requests, events, authority, ttl, task: tokio::spawn(task.run()), renewal })
    }

    /// The next event; nothing more after [`Event::Resigned`]. [`Event::Written`] is told to the one who wrote
    /// instead. Nothing is lost when the future is dropped.
    pub async fn event(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// Until when this task may act as the leader, if it may.
    #[must_use]
    pub fn authority_until(&self) -> Option<Time> {
        self.authority.until()
    }

    /// The same for others in the process.
    #[must_use]
    pub fn authority(&self) -> Arc<Authority> {
        Arc::clone(&self.authority)
    }

    /// The leader that this task follows has said what its clock shows.
    pub fn hear_clock(&self) {
        // A task that has ended stands for nothing any more.
        let _ = self.requests.send(Request::HearClock);
    }

    /// Lets the record be changed in `epoch`, or in whichever is on, behind what was asked for before. The receiver says when it is; it may be dropped.
    pub fn write(
        &self,
        epoch: Option<Epoch>,
        change: RecordChange,
    ) -> oneshot::Receiver<Result<(), NotWritten>> {
        let (done, receiver) = oneshot::channel();
        // A task that has ended drops it, and the receiver says so.
        let _ = self.requests.send(Request::Write { epoch, change: Box::new(change), done });
        receiver
    }

    /// Leaves it to others to lead for so long, or until [`Election::stand_again`]: [`Event::Deposed`] says when this task
    /// leads no more.
    pub fn stand_aside(&self, time: Duration) {
        // A task that has ended stands no more.
        let _ = self.requests.send(Request::Aside(time));
    }

    /// Gives up the epoch that is on, behind what was asked for before, and stands again after so long: [`Event::Deposed`] comes
    /// at once, and another task need not wait for anything that this one did.
    pub fn hand_over(&self, time: Duration) {
        // A task that has ended stands no more.
        let _ = self.requests.send(Request::HandOver(time));
    }

    /// Stands for election from here on, as everybody does.
    pub fn stand_again(&self) {
        let _ = self.requests.send(Request::Stand);
    }

    /// Gives up for good: there is no authority any more when this returns, and [`Event::Resigned`] says when another may
    /// lead.
    pub fn resign(&self) {
        self.authority.resign();
        // A task that has ended has given up already.
        let _ = self.requests.send(Request::Resign);
    }
}

impl Drop for Election {
    fn drop(&mut self) {
        self.authority.resign();
        self.task.abort();
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}

// === impl Authority ===

impl Authority {
    /// Until when this task may act as the leader, if it may.
    #[must_use]
    pub fn until(&self) -> Option<Time> {
        self.acting().until.map(|(_, until)| until)
    }

    /// The same of the epoch `epoch` only. Whoever was deposed and is elected again may hear of that later than this changes;
    /// what it did in the epoch before must end with that.
    #[must_use]
    pub fn until_in(&self, epoch: Epoch) -> Option<Time> {
        self.acting().until.filter(|&(acting_epoch, _)| acting_epoch == epoch).map(|(_, until)| until)
    }

    /// The line of succession of the leaders that are elected here and go on from a record of `line`, if etcd has answered.
    /// Clusters that were set up alike have one id, and a record that is copied into another cluster has the line of the
    /// first: it takes both to tell them apart.
    pub(in crate::shell) fn line_of(&self, line: u64) -> Option<u64> {
        let electorate = Some(self.electorate.load(Ordering::Relaxed)).filter(|&it| it != 0)?;
        Some(electorate.rotate_left(32) ^ line)
    }

    pub(super) fn set_electorate(&self, electorate: u64) {
        self.electorate.store(electorate, Ordering::Relaxed);
    }

    pub(super) fn set(&self, until: Option<(Epoch, Time)>) {
        let mut acting = self.acting();
        acting.until = until.filter(|_| !acting.resigned);
    }

    pub(super) fn set_led(&self, led: Option<Time>) {
        self.acting().led = led;
    }

    /// When nobody else led yet for certain, if this task leads in the epoch `epoch`.
    pub(in crate::shell) fn led_in(&self, epoch: Epoch) -> Option<Time> {
        let acting = self.acting();
        acting.led.filter(|_| acting.until.is_some_and(|(of, _)| of == epoch))
    }

    /// Time has passed that the clock did not show, and this task may act for that much less. The task that stands for
    /// election finds the same by itself: should both, it may act for twice as much less until etcd has answered again.
    pub(in crate::shell) fn lose_time(&self, lost: Duration) {
        let mut acting = self.acting();
        acting.until = acting.until.map(|(epoch, until)| (epoch, until.earlier(lost)));
        acting.led = acting.led.map(|led| led.earlier(lost));
    }

    fn resign(&self) {
        *self.acting() = Acting { resigned: true, ..Acting::default() };
    }

    fn acting(&self) -> MutexGuard<'_, Acting> {
        // Nothing that is done with it can fail half way.
        self.acting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_resigned_gets_no_authority_any_more() {
        let authority = Authority::default();
        assert_eq!(authority.until(), None);
        authority.set(Some((Epoch(3), Time::from_nanos(7))));
        assert_eq!(authority.until(), Some(Time::from_nanos(7)));
        authority.resign();
        authority.set(Some((Epoch(3), Time::from_nanos(9))));
        assert_eq!(authority.until(), None);
    }

    #[test]
    fn authority_is_that_of_one_epoch() {
        let authority = Authority::default();
        authority.set(Some((Epoch(3), Time::from_nanos(7))));
        assert_eq!(
            (authority.until_in(Epoch(3)), authority.until_in(Epoch(2))),
            (Some(Time::from_nanos(7)), None)
        );
    }

    #[test]
    fn what_cannot_work_is_refused_at_the_start() {
        let start = |endpoints: &[&str]| {
            let options = EtcdOptions::new(endpoints.iter().copied());
            Endpoints::new(options, Duration::from_secs(1)).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(start(&[]), "no etcd endpoint is given, at least one is wanted");
        for bad in ["::", "http://a", "a:1", "ftp://a:1"] {
            let told = format!("etcd endpoint {bad:?} is not like http://host:port or https://host:port");
            assert_eq!(start(&["http://a:1", bad]), told);
        }
        assert_eq!(
            start(&["https://a:1"]),
            "etcd endpoint \"https://a:1\" is https, and there is no certificate of an authority to know it by"
        );
    }
}
