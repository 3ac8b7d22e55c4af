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
    answer: oneshot::Sender<Outcome>,
}

type Outcome = Result<Arc<Summary>, Unanswered>;
type Answered = oneshot::Receiver<Outcome>;

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
    async fn publish(&self, query: &StatusQuery) -> (Outcome, Duration) {
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
            if query.holders > 0 {
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
                    Some(NodeStatus::of_nobody(&self.config.name, epoch, leader_state.repository.version()))
                }
            };
            let streams = leader_state.streams();
            let older_streams = leader_state.node.as_ref().map_or(0, Node::older_streams);
            (status.map(|status| Summary { at, streams, older_streams, status }), clock::now().since(at))
        })
    }

    fn describe_domains(&self, row: &mut ResourceRow, query: &StatusQuery) {
        row.resource.domains = self.domains.status(&row.resource.resource, query.holders);
    }
}

#[cfg(test)]
mod tests {
    use lessor_proto::message::{Ask, Band, HolderKind, Report};
    use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId};

    use super::*;
    use crate::node::NodeConfig;
    use crate::repository::{Glob, Repository, Template};

    const SOON: Duration = Duration::from_secs(20);

    fn driver() -> Arc<Driver> {
        let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(100));
        let repository = Repository::new(vec![template]).unwrap();
        let address = "127.0.0.1:1".to_owned();
        Arc::new(Driver::new(NodeConfig::new("root", Epoch(1)), repository, address, 10))
    }

    /// One more client has something.
    fn admit(driver: &Driver, number: u64) {
        let report = Report::new(
            ResourceId::new("db", 256).unwrap(),
            [Band { priority: 0, subclients: 1, wants: 1.0 }],
        );
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(format!("client-{number}"), 256).unwrap(),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(1)),
            target_epoch: None,
            line: None,
            reports: vec![report],
        };
        driver.ask(None, &ask).unwrap();
    }

    fn clients(summary: &Summary) -> usize {
        summary.status.resources.iter().map(|row| row.resource.clients).sum()
    }

    #[tokio::test]
    async fn what_is_shown_was_so_after_it_was_asked_for() {
        let driver = driver();
        let stop = watch::Sender::new(false);
        let task = tokio::spawn(Arc::clone(&driver).keep_lookout(stop.subscribe()));
        assert!(driver.summary().is_none(), "nobody has looked");
        for number in 1..=5 {
            admit(&driver, number);
            let shown = driver.look(&StatusQuery::FIGURES).await.unwrap();
            assert_eq!(clients(&shown), number as usize);
            assert_eq!(driver.summary(), Some(shown), "it is published");
        }
        stop.send_replace(true);
        tokio::time::timeout(SOON, task).await.unwrap().unwrap();
        admit(&driver, 6);
        assert_eq!(clients(&driver.look(&StatusQuery::FIGURES).await.unwrap()), 6, "also while it ends");
    }

    #[tokio::test]
    async fn those_who_wait_for_the_same_share_one() {
        let driver = driver();
        driver.lookout.waiting().get_or_insert_default();
        let other = StatusQuery { resource: Some("db".to_owned()), ..StatusQuery::default() };
        let join = |query: &StatusQuery| driver.lookout.join(query).unwrap().unwrap();
        let (_first, gone) = (join(&StatusQuery::FIGURES), join(&other));
        let (_other, _third) = (join(&other), join(&StatusQuery::FIGURES));
        drop(gone);
        let (query, waiters) = driver.lookout.next().unwrap();
        assert_eq!((query, waiters.len()), (StatusQuery::FIGURES, 2));
        let (query, waiters) = driver.lookout.next().unwrap();
        assert_eq!((query, waiters.len()), (other, 1), "one has given up");
        assert!(driver.lookout.next().is_none());
    }

    #[tokio::test]
    async fn no_more_wait_than_there_is_room_for() {
        let driver = driver();
        driver.lookout.waiting().get_or_insert_default();
        let all: Vec<Answered> =
            (0..MOST_WAITING).map(|_| driver.lookout.join(&StatusQuery::FIGURES).unwrap().unwrap()).collect();
        assert_eq!(driver.look(&StatusQuery::FIGURES).await, Err(Unanswered::Late));
        drop(all);
        assert!(driver.lookout.next().is_none());
    }

    #[tokio::test]
    async fn who_only_wants_figures_that_were_published_does_not_wait_for_the_node() {
        let driver = driver();
        admit(&driver, 1);
        driver.look(&StatusQuery::FIGURES).await.unwrap();
        let held = driver.leader_state.lock().unwrap();
        let (done, answers) = std::sync::mpsc::channel();
        let asked = Arc::clone(&driver);
        let asking = std::thread::spawn(move || {
            let figures = crate::shell::metrics::Metrics::new(Arc::clone(&asked)).encode().unwrap();
            done.send((figures, asked.readiness(), asked.whereabouts().is_leader)).unwrap();
        });
        let (figures, readiness, leads) = answers.recv_timeout(SOON).expect("no lock is waited for");
        drop(held);
        asking.join().unwrap();
        assert!(figures.contains("lessor_clients{resource=\"db\"} 1.0\n"), "{figures}");
        assert_eq!((readiness, leads), (Ok(()), true));
    }

    #[tokio::test]
    async fn a_broken_node_has_no_figures() {
        let driver = driver();
        driver.look(&StatusQuery::FIGURES).await.unwrap();
        let breaks = Arc::clone(&driver);
        let broken =
            std::thread::spawn(move || breaks.hold::<()>(HoldKind::Turn, |_, _| panic!("a check failed")))
                .join();
        assert!(broken.is_err());
        assert_eq!(driver.look(&StatusQuery::FIGURES).await, Err(Unanswered::Broken));
        assert_eq!(driver.summary(), None);
        assert!(driver.is_broken());
        driver.until_broken().await;
    }
}
