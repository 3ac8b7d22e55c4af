//! The task that follows the templates at etcd: it carries out what a [`TemplateFollower`] says, and publishes what is in force.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{debug, error, info, warn};

use super::calls;
use super::endpoints::Endpoints;
use super::fault::ElectionStartError;
use super::options::EtcdOptions;
use super::secret_follower::SecretFollower;
use super::store::RevisionStore;
use super::watcher::Watcher;
use crate::election::call::{Answer, Failure, Watched};
use crate::election::files;
use crate::follower::{
    FollowerAction, FollowerConfig, FollowerEvent, RevisionCheck, TaskStanding, TemplateFollower,
};
use crate::overrides::Overrides;
use crate::repository::Repository;
use crate::revision::{LastGood, RefusedRevision};
use crate::shell::source;
use crate::shell::state::disk::Disk;

/// Where the templates are, and how they are followed.
#[derive(Clone, Debug)]
pub struct TemplateOptions {
    /// The etcd.
    pub etcd: EtcdOptions,
    /// The settings of the follower.
    pub follower: FollowerConfig,
    /// The directory in which the last good revision is kept; absent: nowhere.
    pub directory: Option<PathBuf>,
}

/// The templates at etcd, as a task follows them.
#[derive(Debug)]
pub struct EtcdTemplates {
    in_force: watch::Receiver<Option<Repository>>,
    overrides: watch::Receiver<Overrides>,
    store: Arc<RevisionStore>,
    status: watch::Receiver<TemplateStatus>,
    standing: watch::Sender<TaskStanding>,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    /// The task that follows secrets that are replaced, if there is one.
    renewal: Option<JoinHandle<()>>,
}

/// The state of following, for those who watch it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct TemplateStatus {
    /// The number of the revision in force; 0: none.
    pub in_force: u64,
    /// The revision that is refused, if one is.
    pub refused: Option<RefusedRevision>,
    /// Whether the number in force stands at etcd with another content.
    pub is_in_conflict: bool,
    /// When the head was read last.
    pub read_at: Option<Time>,
    /// Whether this task should stand for election.
    pub stands: bool,
}

/// Something that is put in force.
#[derive(Clone, PartialEq, Debug)]
pub enum FollowedChange {
    /// These templates.
    Templates(Repository),
    /// These overrides, and no others.
    Overrides(Overrides),
}

/// The state of following, and a way to say how the task stands in its election.
#[derive(Clone, Debug)]
pub struct TemplateWatch {
    pub(in crate::shell) status: watch::Receiver<TemplateStatus>,
    pub(in crate::shell) standing: watch::Sender<TaskStanding>,
    /// The overrides that were read last.
    pub(in crate::shell) overrides: watch::Receiver<Overrides>,
    /// The same etcd, for what operators do there through this task.
    pub(in crate::shell) store: Arc<RevisionStore>,
}

/// A call or a check that has come to an end.
enum Done {
    Call { id: u64, endpoint: usize, result: Result<Answer, Failure> },
    Check { id: u64, outcome: Result<Repository, Vec<String>> },
}

/// The task.
struct FollowerTask {
    follower: TemplateFollower,
    endpoints: Endpoints,
    directory: Option<PathBuf>,
    in_force: watch::Sender<Option<Repository>>,
    overrides: watch::Sender<Overrides>,
    status: watch::Sender<TemplateStatus>,
    standing: watch::Receiver<TaskStanding>,
    /// The calls and checks under way.
    work: FuturesUnordered<Pin<Box<dyn Future<Output = Done> + Send>>>,
    watcher: Option<Watcher>,
}

/// The file with the last good revision.
pub(crate) const LAST_GOOD: &str = "templates.json";
/// The longest time for which a task that ends waits for etcd to hear of it.
const LEAVING: Duration = Duration::from_secs(1);

// === impl EtcdTemplates ===

impl EtcdTemplates {
    /// Begins to follow, whether etcd can be reached or not: with the last good revision, if one is kept.
    ///
    /// # Errors
    /// When what is configured cannot work.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer.
    pub fn start(options: TemplateOptions) -> Result<EtcdTemplates, ElectionStartError> {
        let TemplateOptions { etcd, follower: config, directory } = options;
        let (secrets, source) = (etcd.secrets.clone(), etcd.source.clone());
        let endpoints = Endpoints::new(etcd, config.call_timeout)?;
        let (head, store) = (config.keys.head(), RevisionStore::at(&endpoints, config.keys.clone()));
        let renewal = source.map(|source| SecretFollower::new(source, &secrets, &endpoints, head));
        let renewal = renewal.map(|renewal| tokio::spawn(renewal.run()));
        let last = directory.as_deref().and_then(|directory| recall(directory, &config));
        let repository = last.as_ref().map(|(_, repository)| repository.clone());
        let follower = match last {
            Some((last, repository)) => TemplateFollower::resumed(clock::now(), config, &last, repository),
            None => TemplateFollower::new(clock::now(), config),
        };
        let (sender, in_force) = watch::channel(repository);
        let (overrule, overrides) = watch::channel(Overrides::default());
        let (tell, status) = watch::channel(status_of(&follower, clock::now()));
        let (standing, told) = watch::channel(TaskStanding::default());
        let (stop, stopped) = oneshot::channel();
        let task = FollowerTask {
            follower,
            endpoints,
            directory,
            in_force: sender,
            overrides: overrule,
            status: tell,
            standing: told,
            work: FuturesUnordered::new(),
            watcher: None,
        };
        let task = tokio::spawn(task.run(stopped));
        let (store, stop) = (Arc::new(store), Some(stop));
        Ok(EtcdTemplates { in_force, overrides, store, status, standing, stop, task, renewal })
    }

    /// The templates in force, once some are; nothing, if there are none within that time.
    pub async fn first(&mut self, patience: Duration) -> Option<Repository> {
        let waiting = self.in_force.wait_for(Option::is_some);
        tokio::time::timeout(patience, waiting).await.ok()?.ok()?.clone()
    }

    /// The overrides that were read last.
    #[must_use]
    pub fn overrides(&self) -> Overrides {
        self.overrides.borrow().clone()
    }

    /// The next thing that is put in force. Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> FollowedChange {
        loop {
            let changed = tokio::select! {
                changed = self.in_force.changed() => changed.map(|()| true),
                changed = self.overrides.changed() => changed.map(|()| false),
            };
            match changed {
                // The task has ended, and nothing comes any more.
                Err(_) => return std::future::pending().await,
                Ok(true) => {
                    if let Some(repository) = self.in_force.borrow_and_update().clone() {
                        return FollowedChange::Templates(repository);
                    }
                }
                Ok(false) => return FollowedChange::Overrides(self.overrides.borrow_and_update().clone()),
            }
        }
    }

    /// The state of following, for a server.
    #[must_use]
    pub fn watch(&self) -> TemplateWatch {
        let (status, standing) = (self.status.clone(), self.standing.clone());
        TemplateWatch { status, standing, overrides: self.overrides.clone(), store: Arc::clone(&self.store) }
    }

    /// Ends, and lets it be known at etcd.
    pub async fn leave(mut self) {
        if let Some(stop) = self.stop.take() {
            // It may have ended.
            let _ = stop.send(());
        }
        let _ = tokio::time::timeout(LEAVING * 2, &mut self.task).await;
    }
}

impl Drop for EtcdTemplates {
    fn drop(&mut self) {
        self.task.abort();
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}

// === impl FollowerTask ===

impl FollowerTask {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) {
        loop {
            self.settle().await;
            let deadline = self.follower.next_deadline();
            tokio::select! {
                () = clock::sleep_until(deadline) => {}
                Some(done) = self.work.next() => self.on_done(done),
                (id, watched) = watched(&mut self.watcher) => self.on_watched(id, watched),
                Ok(()) = self.standing.changed() => {
                    self.follower.set_standing(*self.standing.borrow_and_update());
                }
                _ = &mut stopped => break,
            }
        }
        if let Some(call) = self.follower.leave() {
            // Its report ends with its lease in any case.
            let _ = calls::make(&self.endpoints.current(), call, LEAVING).await;
        }
    }

    /// Does all that is to be done.
    async fn settle(&mut self) {
        while let Some(action) = self.follower.poll(clock::now()) {
            self.perform(action).await;
        }
        while let Some(event) = self.follower.next_event() {
            tell(event);
        }
        self.publish_status();
    }

    fn publish_status(&self) {
        let status = status_of(&self.follower, clock::now());
        self.status.send_if_modified(|before| {
            let is_news = *before != status;
            *before = status;
            is_news
        });
    }

    async fn perform(&mut self, action: FollowerAction) {
        let timeout = self.follower.config().call_timeout;
        match action {
            FollowerAction::Call { id, call } => {
                debug!(id, "calling the etcd of the templates");
                let endpoint = self.endpoints.current();
                self.work.push(Box::pin(async move {
                    let result = calls::make(&endpoint, call, timeout).await;
                    Done::Call { id, endpoint: endpoint.number(), result }
                }));
            }
            FollowerAction::Watch { id, prefix, from_revision } => {
                let endpoint = self.endpoints.current();
                self.watcher = Some(Watcher::of_prefix(id, endpoint, prefix, from_revision, timeout));
            }
            FollowerAction::Unwatch { id } => drop(self.watcher.take_if(|watcher| watcher.id == id)),
            FollowerAction::Check(RevisionCheck { id, name, text }) => {
                // Where it holds nobody up: a document may be large.
                let checking = tokio::task::spawn_blocking(move || check(&name, &text));
                self.work.push(Box::pin(async move {
                    let outcome = checking.await.unwrap_or_else(|fault| Err(vec![fault.to_string()]));
                    Done::Check { id, outcome }
                }));
            }
            FollowerAction::Override(overrides) => {
                for (it, _) in overrides.iter() {
                    info!(id = it.id, by = it.by.name, reason = it.reason, "override: {}", it.act);
                }
                info!(overrides = overrides.len(), "overrides in force");
                self.overrides.send_replace(overrides);
            }
            FollowerAction::PutInForce { repository, last_good } => {
                info!(
                    revision = last_good.head.number,
                    document = last_good.document.name,
                    "revision in force"
                );
                // Whoever starts with them looks there whether it may stand for election.
                self.publish_status();
                self.in_force.send_replace(Some(repository));
                if let Some(directory) = self.directory.clone() {
                    keep(directory, *last_good).await;
                }
            }
        }
    }

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Call { id, endpoint, result } => {
                if let Err(Failure::Timeout | Failure::Unavailable(_)) = &result {
                    self.endpoints.failed(endpoint);
                }
                self.follower.on_answer(clock::now(), id, result);
            }
            Done::Check { id, outcome } => self.follower.on_checked(id, outcome),
        }
    }

    fn on_watched(&mut self, id: u64, watched: Watched) {
        if let (Watched::Ended(_), Some(watcher)) = (&watched, &self.watcher) {
            self.endpoints.failed(watcher.endpoint().number());
        }
        self.follower.on_watched(clock::now(), id, watched);
    }
}

fn tell(event: FollowerEvent) {
    match event {
        FollowerEvent::Refused(RefusedRevision { number, why }) => {
            error!(
                revision = number,
                "a revision is refused, and the templates in force stay\n{}",
                why.join("\n")
            );
        }
        FollowerEvent::Behind { found, in_force } => {
            error!(
                found,
                in_force, "the head at etcd is below the revision in force, which stays: was it restored?"
            );
        }
        FollowerEvent::NoHead => error!("the head at etcd has gone; the revision in force stays"),
        FollowerEvent::BadOverride(fault) => error!(%fault, "an override is not in force"),
        FollowerEvent::Faulty(why) => warn!(%why, "the etcd of the templates fails"),
        FollowerEvent::Healthy => info!("the etcd of the templates serves"),
    }
}

fn status_of(follower: &TemplateFollower, now: Time) -> TemplateStatus {
    TemplateStatus {
        in_force: follower.in_force().map_or(0, |head| head.number),
        refused: follower.refused().cloned(),
        is_in_conflict: follower.is_in_conflict(),
        read_at: follower.read_at(),
        stands: follower.stands(now),
    }
}

fn check(name: &str, text: &str) -> Result<Repository, Vec<String>> {
    source::parse(name, text).map_err(|faults| faults.to_string().lines().map(str::to_owned).collect())
}

/// Keeps a revision for a start without etcd.
async fn keep(directory: PathBuf, last: LastGood) {
    let path = directory.clone();
    let keeping = tokio::task::spawn_blocking(move || {
        std::fs::create_dir_all(&directory)?;
        files::replace(&mut Disk, &directory, LAST_GOOD, last.encode().as_bytes())
    });
    if let Err(fault) = keeping.await.map_err(std::io::Error::other).flatten() {
        error!(directory = %path.display(), %fault, "the revision in force is not kept: a start without etcd finds an older one, or none");
    }
}

/// The last good revision that is kept there, if it is one of this node that can be put in force.
fn recall(directory: &Path, config: &FollowerConfig) -> Option<(LastGood, Repository)> {
    let path = directory.join(LAST_GOOD);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return None,
        Err(fault) => {
            error!(file = %path.display(), %fault, "the last good revision cannot be read");
            return None;
        }
    };
    let decoded = LastGood::decode(&path.display().to_string(), config.keys.prefix(), &config.node, &bytes);
    let checked = decoded.map_err(|fault| vec![fault.to_string()]).and_then(|last| {
        let repository = check(&last.document.name, &last.text)?;
        Ok((repository.at_version(last.head.number), last))
    });
    match checked {
        Ok((repository, last)) => {
            info!(revision = last.head.number, file = %path.display(), "the last good revision is in force until etcd is heard of");
            Some((last, repository))
        }
        Err(faults) => {
            error!(file = %path.display(), "the last good revision cannot be put in force\n{}", faults.join("\n"));
            None
        }
    }
}

async fn watched(watcher: &mut Option<Watcher>) -> (u64, Watched) {
    match watcher {
        Some(watcher) => (watcher.id, watcher.next().await),
        None => std::future::pending().await,
    }
}
