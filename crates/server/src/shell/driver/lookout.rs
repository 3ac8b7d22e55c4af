//! The status of the node for those who look at it: pages and figures, none of which takes the lock of the node.
//!
//! They ask a task of the driver, which makes a status a slice at a time and lets go of the lock in between. Those who ask
//! for the same while it is busy share one, which begins after all of them have asked: so nobody is shown what was so
//! before he asked. Then the task rests for as long as keeps its part of the time under the lock small, however many ask.
//!
//! The figures are published as well, for those to whom old ones are better than none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::sync::{Notify, oneshot, watch};

use super::hold_kind::HoldKind;
use super::{Driver, Unanswered};
use crate::node::{Node, NodeStatus, ResourceRow, StatusQuery, StatusScan};

/// The figures of a node, as they were published.
#[derive(Clone, PartialEq, Debug)]
pub struct Summary {
    /// When the last of it was looked at.
    pub at: Time,
    /// Streams that are open.
    pub streams: usize,
    /// Those of them whose holders are of an earlier version.
    pub older_streams: usize,
    /// The node and its first thousand resources, without holders; of a task that does not lead, nobody's.
    pub status: NodeStatus,
}

/// Those who wait for a status, and what was published last.
#[derive(Debug, Default)]
pub(super) struct Lookout {
    /// Absent until somebody has asked for it, and when the node is broken.
    published: ArcSwapOption<Summary>,
    /// Those who wait; absent while there is no task for them.
    waiting: Mutex<Option<Vec<Waiter>>>,
    /// There is one more.
    asked: Notify,
}

/// Somebody who waits for a status.
#[derive(Debug)]
struct Waiter {
    query: StatusQuery,
    answer: oneshot::Sender<ScanOutcome>,
}

type ScanOutcome = Result<Arc<Summary>, Unanswered>;
type Answered = oneshot::Receiver<ScanOutcome>;

/// The longest time for which anybody waits for a status.
const PATIENCE: Duration = Duration::from_secs(2);
/// Those who wait at a time.
const MOST_WAITING: usize = 1_000;
/// The rest after a status, as a multiple of the time for which the lock was held for it, and the longest.
const REST: u32 = 19;
const LONGEST_REST: Duration = Duration::from_secs(1);

// === impl Lookout ===

impl Lookout {
    /// Locks the list, also after a panic: nothing is left half done to it.
    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Waiter>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who wait for the task; nothing if there is none. Fails if too many wait already.
    fn join(&self, query: &StatusQuery) -> Result<Option<Answered>, Unanswered> {
        let mut waiting = self.waiting();
        let Some(waiting) = waiting.as_mut() else { return Ok(None) };
        if waiting.len() >= MOST_WAITING {
            return Err(Unanswered::Late);
        }
        let (answer, answered) = oneshot::channel();
        waiting.push(Waiter { query: query.clone(), answer });
        self.asked.notify_one();
        Ok(Some(answered))
    }

    /// The first who still waits, and all who wait for the same.
    fn next(&self) -> Option<(StatusQuery, Vec<Waiter>)> {
        let mut waiting = self.waiting();
        let all = waiting.as_mut()?;
        all.retain(|waiter| !waiter.answer.is_closed());
        let query = all.first()?.query.clone();
        let (same, others) = std::mem::take(all).into_iter().partition(|waiter| waiter.query == query);
        *all = others;
        Some((query, same))
    }
}

// === impl Driver ===

impl Driver {
    /// The status of all holders: as this task knows it if it leads, and nothing if it does not. It is made by the caller's
    /// thread, which takes the lock of the node for a slice at a time.
    ///
    /// # Errors
    /// When the node is broken.
    pub fn status(&self, query: &StatusQuery) -> Result<NodeStatus, Unanswered> {
        let mut scan = StatusScan::new(query.clone());
        let mut status = loop {
            if let (Some(summary), _) = self.scan(&mut scan)? {
                break summary.status;
            }
        };
        status.resources.iter_mut().for_each(|row| self.describe_domains(row, query));
        Ok(status)
    }

    /// The same with what is beside it. It is made after the call, by the driver's own task: the lock is not taken here.
    ///
    /// # Errors
    /// When the node is broken, or the status was not made in time.
    pub async fn look(&self, query: &StatusQuery) -> Result<Arc<Summary>, Unanswered> {
        if let Some(answered) = self.lookout.join(query)? {
            match tokio::time::timeout(PATIENCE, answered).await {
                Ok(Ok(outcome)) => return outcome,
                Err(_) => return Err(Unanswered::Late),
                // The task has been stopped.
                Ok(Err(_)) => {}
            }
        }
        self.publish(query).await.0
    }

    /// The figures that were published last, those of [`StatusQuery::FIGURES`]. Absent where nobody has looked at them, and
    /// when the node was broken as somebody did.
    #[must_use]
    pub fn summary(&self) -> Option<Arc<Summary>> {
        self.lookout.published.load_full()
    }

    /// Makes the status for those who look at it, until stopped.
    pub(crate) async fn keep_lookout(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        self.lookout.waiting().get_or_insert_default();
        loop {
            let rest = match self.lookout.next() {
                Some((query, waiters)) => {
                    let (outcome, held) = self.publish(&query).await;
                    for waiter in waiters {
                        // Some have given up meanwhile.
                        let _ = waiter.answer.send(outcome.clone());
                    }
                    (held * REST).min(LONGEST_REST)
                }
                None => tokio::select! {
                    _ = stopped.wait_for(|&stop| stop) => break,
                    () = self.lookout.asked.notified() => continue,
                },
            };
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => break,
                () = clock::sleep_until(clock::now() + rest) => {}
            }
        }
        // From here on everybody makes it for himself, and so do those who wait.
        *self.lookout.waiting() = None;
    }

    /// Makes a status, and publishes it if it is that of the figures. Returns for how long the lock was held as well.
    async fn publish(&self, query: &StatusQuery) -> (ScanOutcome, Duration) {
        let mut held = Duration::ZERO;
        let outcome = self.make(query, &mut held).await.map(Arc::new);
        if *query == StatusQuery::FIGURES {
            self.lookout.published.store(outcome.as_ref().ok().map(Arc::clone));
        }
        (outcome, held)
    }

    async fn make(&self, query: &StatusQuery, held: &mut Duration) -> Result<Summary, Unanswered> {
        let mut scan = StatusScan::new(query.clone());
        let mut summary = loop {
            let (summary, took) = self.scan(&mut scan)?;
            *held += took;
            if let Some(summary) = summary {
                break summary;
            }
            tokio::task::yield_now().await;
        };
        for row in &mut summary.status.resources {
            self.describe_domains(row, query);
            if query.domains > 0 {
                // Many domains may have been looked at.
                tokio::task::yield_now().await;
            }
        }
        Ok(summary)
    }

    /// One slice of a status, and for how long the lock was held for it.
    fn scan(&self, scan: &mut StatusScan) -> Result<(Option<Summary>, Duration), Unanswered> {
        self.hold(HoldKind::Status, |leader_state, at| {
            let status = match &leader_state.node {
                Some(node) => scan.step(at, node),
                None => {
                    let epoch = leader_state.epoch().unwrap_or_default();
                    Some(NodeStatus::of_nobody(
                        &self.identity.config.name,
                        epoch,
                        leader_state.begins_with.repository.version(),
                    ))
                }
            };
            let streams = leader_state.streams();
            let older_streams = leader_state.node.as_ref().map_or(0, Node::older_streams);
            (status.map(|status| Summary { at, streams, older_streams, status }), clock::now().since(at))
        })
    }

    fn describe_domains(&self, row: &mut ResourceRow, query: &StatusQuery) {
        row.resource.domains = self.domains.status(&row.resource.resource, query.domains);
    }
}

#[cfg(test)]
mod tests;
