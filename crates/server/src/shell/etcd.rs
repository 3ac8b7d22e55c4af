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

mod authority;
mod calls;
mod endpoints;
mod examination;
mod fault;
mod options;
mod push;
mod secret_follower;
mod secrets;
mod store;
mod task;
mod templates;
mod tls;
mod traffic;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Epoch, Time};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

pub use self::authority::Authority;
use self::endpoints::Endpoints;
pub use self::examination::{MemberHealth, MemberReport, RoleRights, examine};
pub use self::fault::ElectionStartError;
pub use self::options::EtcdOptions;
pub use self::push::{JudgedPush, LostPush, PushFault, PushOrder};
use self::secret_follower::SecretFollower;
pub use self::secrets::{EtcdSecrets, SecretSource};
pub use self::store::{CommitOutcome, OverrideOutcome, RevisionStore, StoreFault, StoredHead, Swept};
pub use self::task::NotWritten;
pub(in crate::shell) use self::task::Request;
use self::task::Task;
pub use self::templates::{EtcdTemplates, FollowedChange, TemplateOptions, TemplateStatus, TemplateWatch};
pub use self::tls::{BadTls, EtcdTls};
pub(in crate::shell) use self::traffic::EtcdTraffic;
use crate::election::record::RecordKeys;
use crate::election::{Candidate, ElectionConfig, Event};
use crate::record::RecordChange;

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

    /// An election at no etcd, for tests, and the requests that it gets.
    #[cfg(test)]
    pub(in crate::shell) fn unheard() -> (Election, mpsc::UnboundedReceiver<Request>) {
        let (requests, requested) = mpsc::unbounded_channel();
        let (_, events) = mpsc::unbounded_channel();
        let (authority, ttl) = (Arc::new(Authority::default()), Duration::from_secs(10));
        let task = tokio::spawn(std::future::ready(()));
        (Election { requests, events, authority, ttl, task, renewal: None }, requested)
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

    /// The leader that this task follows, in the epoch `epoch`, was asked at `asked` what its clock shows, and that was `shown`.
    pub fn hear_clock(&self, epoch: Epoch, asked: Time, shown: Time) {
        // A task that has ended stands for nothing any more.
        let _ = self.requests.send(Request::HearClock { epoch, asked, shown });
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
