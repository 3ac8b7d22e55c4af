//! The shelf of revisions: what is read at etcd by a thread of its own, over the connections that the task has anyway, and kept for
//! a moment. However many look, etcd is asked once in a while, and nobody else waits for it.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::StatusCode;
use lessor_client::internals::clock;
use lessor_proto::Time;
use lessor_server::revision::{Revision, TaskReport};
use lessor_server::shell::etcd::{RevisionStore, StoreFault};
use serde::Serialize;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};

use crate::diff::ReadDocument;
use crate::problem::ApiProblem;

/// The shelf.
#[derive(Debug)]
pub(crate) struct Shelf {
    prefix: String,
    orders: mpsc::Sender<ShelfOrder>,
    tasks: Arc<Kept<Vec<TaskReport>>>,
    newest: Arc<Kept<Vec<RevisionLine>>>,
}

/// Something to be read.
#[derive(Debug)]
enum ShelfOrder {
    Tasks(Reply<Arc<Vec<TaskReport>>>),
    Newest(Reply<Arc<Vec<RevisionLine>>>),
    Whole(u64, Reply<WholeRevision>),
}

type Reply<T> = oneshot::Sender<Result<T, ApiProblem>>;

/// Something that was read, and when.
#[derive(Debug)]
struct Kept<T>(Mutex<Option<(Time, Arc<T>)>>);

/// A revision in a list.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RevisionLine {
    #[serde(flatten)]
    pub(crate) revision: Revision,
    digest: String,
}

/// A revision with its documents.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WholeRevision {
    #[serde(flatten)]
    line: RevisionLine,
    texts: Vec<String>,
}

/// The age up to which what was read is shown once more.
const FRESH: Duration = Duration::from_secs(2);
/// Revisions that are listed.
const MOST: usize = 200;
/// Orders that wait.
const ORDERS: usize = 64;

// === impl Kept ===

impl<T> Kept<T> {
    /// The value as it was read last, however old, and whether it is fresh.
    fn last(&self) -> Option<(Arc<T>, bool)> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(|(at, value)| (Arc::clone(value), clock::now().since(*at) < FRESH))
    }

    fn fresh(&self) -> Option<Arc<T>> {
        self.last().filter(|(_, is_fresh)| *is_fresh).map(|(value, _)| value)
    }

    /// The value, which is read if it is not fresh.
    async fn get(&self, read: impl Future<Output = Result<T, StoreFault>>) -> Result<Arc<T>, ApiProblem> {
        if let Some(value) = self.fresh() {
            return Ok(value);
        }
        let value = Arc::new(read.await.map_err(|fault| unread(&fault))?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((clock::now(), Arc::clone(&value)));
        Ok(value)
    }
}

// === impl Shelf ===

impl Shelf {
    /// The shelf of what stands in a store, which its thread reads until the shelf is gone or the server ends. Absent where there
    /// can be no thread.
    pub(crate) fn open(store: Arc<RevisionStore>, mut stopped: watch::Receiver<bool>) -> Option<Shelf> {
        let (orders, ordered) = mpsc::channel(ORDERS);
        let (tasks, newest) = (Arc::new(Kept(Mutex::new(None))), Arc::new(Kept(Mutex::new(None))));
        let prefix = store.keys().prefix().to_owned();
        let librarian = Librarian { store, tasks: Arc::clone(&tasks), newest: Arc::clone(&newest) };
        let thread = std::thread::Builder::new().name("revisions".to_owned());
        // The connections belong to the runtime of the server, which this thread only waits on.
        let runtime = Handle::try_current().ok()?;
        let serve = async move {
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => {}
                () = librarian.serve(ordered) => {}
            }
        };
        thread.spawn(move || runtime.block_on(serve)).ok()?;
        Some(Shelf { prefix, orders, tasks, newest })
    }

    /// The beginning of the keys.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The reports of all tasks.
    pub(crate) async fn tasks(&self) -> Result<Arc<Vec<TaskReport>>, ApiProblem> {
        match self.tasks.fresh() {
            Some(tasks) => Ok(tasks),
            None => self.order(ShelfOrder::Tasks).await,
        }
    }

    /// The reports of all tasks as they were read last, if they were: nobody waits for etcd. They are read again meanwhile.
    pub(crate) fn known_tasks(&self) -> Option<Arc<Vec<TaskReport>>> {
        let last = self.tasks.last();
        if !last.as_ref().is_some_and(|(_, is_fresh)| *is_fresh) {
            // Where too many wait, it is read for one of those.
            let _ = self.orders.try_send(ShelfOrder::Tasks(oneshot::channel().0));
        }
        last.map(|(tasks, _)| tasks)
    }

    /// The last revisions, the newest first.
    pub(crate) async fn newest(&self) -> Result<Arc<Vec<RevisionLine>>, ApiProblem> {
        match self.newest.fresh() {
            Some(newest) => Ok(newest),
            None => self.order(ShelfOrder::Newest).await,
        }
    }

    /// A revision with its documents.
    pub(crate) async fn whole(&self, number: u64) -> Result<WholeRevision, ApiProblem> {
        self.order(|reply| ShelfOrder::Whole(number, reply)).await
    }

    async fn order<T>(&self, order: impl FnOnce(Reply<T>) -> ShelfOrder) -> Result<T, ApiProblem> {
        let busy = |_| ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, "etcd is asked for too much already");
        let (reply, replied) = oneshot::channel();
        self.orders.try_send(order(reply)).map_err(busy)?;
        let gone = |_| ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, "the server is ending");
        replied.await.map_err(gone)?
    }
}

fn unread(fault: &StoreFault) -> ApiProblem {
    ApiProblem::new(StatusCode::BAD_GATEWAY, format!("etcd: {fault}"))
}

/// The one who reads at etcd.
struct Librarian {
    store: Arc<RevisionStore>,
    tasks: Arc<Kept<Vec<TaskReport>>>,
    newest: Arc<Kept<Vec<RevisionLine>>>,
}

// === impl Librarian ===

impl Librarian {
    async fn serve(self, mut ordered: mpsc::Receiver<ShelfOrder>) {
        while let Some(order) = ordered.recv().await {
            // Whoever ordered it may not wait any more.
            match order {
                ShelfOrder::Tasks(reply) => _ = reply.send(self.tasks.get(self.read_tasks()).await),
                ShelfOrder::Newest(reply) => _ = reply.send(self.newest.get(self.read_newest()).await),
                ShelfOrder::Whole(number, reply) => _ = reply.send(self.read_whole(number).await),
            }
        }
    }

    async fn read_tasks(&self) -> Result<Vec<TaskReport>, StoreFault> {
        let (mut tasks, _) = self.store.tasks().await?;
        tasks.sort_by(|one, other| (&one.node, &one.address).cmp(&(&other.node, &other.address)));
        Ok(tasks)
    }

    async fn read_newest(&self) -> Result<Vec<RevisionLine>, StoreFault> {
        let found = self.store.revisions(MOST).await?;
        let lines = found.into_iter().filter_map(Result::ok);
        Ok(lines.map(|(revision, digest)| RevisionLine { revision, digest: digest.to_string() }).collect())
    }

    async fn read_whole(&self, number: u64) -> Result<WholeRevision, ApiProblem> {
        let found = self.store.revision(number).await.map_err(|fault| unread(&fault))?;
        let (revision, digest) =
            found.ok_or_else(|| ApiProblem::missing(format!("there is no revision {number}")))?;
        let mut texts = Vec::with_capacity(revision.documents.len());
        for document in &revision.documents {
            texts.push(self.store.document(document).await.map_err(|fault| unread(&fault))?);
        }
        Ok(WholeRevision { line: RevisionLine { revision, digest: digest.to_string() }, texts })
    }
}

// === impl WholeRevision ===

impl WholeRevision {
    /// Its documents with their texts.
    pub(crate) fn documents(&self) -> Vec<ReadDocument<'_>> {
        let documents = self.line.revision.documents.iter().zip(&self.texts);
        documents
            .map(|(document, text)| ReadDocument { nodes: &document.nodes, name: &document.name, text })
            .collect()
    }
}
