//! The task that owns a candidate: it reads the clock, does what the candidate says, and tells it what came of that.

use lessor_proto::{Epoch, Time};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lessor_client::internals::clock;
use tokio::sync::{mpsc, oneshot};
use tracing::{debug, info, warn};

use super::authority::Authority;
use super::calls;
use super::endpoints::Endpoints;
use super::traffic::CallKind;
use super::watcher::Watcher;
use crate::election::call::{Action, Answer, Failure, Watched};
use crate::election::{Candidate, Event, Ticket};
use crate::record::{EtcdCluster, Record, RecordChange};

/// The failure of a write, as far as is known: this task does not lead, or not any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this task does not lead, or not any more")]
pub struct NotWritten;

/// A request to the task.
pub(in crate::shell) enum Request {
    Write { epoch: Option<Epoch>, change: Box<RecordChange>, done: oneshot::Sender<Result<(), NotWritten>> },
    HearClock { epoch: Epoch, asked: Time, shown: Time },
    Aside(Duration),
    HandOver(Duration),
    Stand,
    Resign,
}

/// The outcome of a call.
struct Outcome {
    id: u64,
    kind: CallKind,
    took: Duration,
    endpoint: usize,
    result: Result<Answer, Failure>,
}

/// The task.
pub(super) struct Task {
    candidate: Candidate,
    endpoints: Endpoints,
    requests: mpsc::UnboundedReceiver<Request>,
    events: mpsc::UnboundedSender<Event>,
    authority: Arc<Authority>,
    /// Calls under way.
    calls: FuturesUnordered<Pin<Box<dyn Future<Output = Outcome> + Send>>>,
    watcher: Option<Watcher>,
    /// The guard that shows time that the clock did not.
    clocks: clock::ClockWatch,
    /// The waiters for writes, by ticket.
    writing: BTreeMap<Ticket, oneshot::Sender<Result<(), NotWritten>>>,
}

// === impl Task ===

impl Task {
    pub(super) fn new(
        candidate: Candidate,
        endpoints: Endpoints,
        requests: mpsc::UnboundedReceiver<Request>,
        events: mpsc::UnboundedSender<Event>,
        authority: Arc<Authority>,
    ) -> Task {
        Task {
            candidate,
            endpoints,
            requests,
            events,
            authority,
            calls: FuturesUnordered::new(),
            watcher: None,
            clocks: clock::ClockWatch::start(),
            writing: BTreeMap::new(),
        }
    }

    /// Until the candidate has resigned, or nobody holds the handle any more.
    pub(super) async fn run(mut self) {
        while self.settle() {
            let deadline = self.candidate.next_deadline();
            tokio::select! {
                () = clock::sleep_until(deadline) => {}
                Some(outcome) = self.calls.next() => self.on_outcome(outcome),
                (id, watched) = watched(&mut self.watcher) => self.on_watched(id, watched),
                request = self.requests.recv() => match request {
                    Some(request) => self.on_request(request),
                    None => return,
                },
            }
        }
    }

    /// Publishes what the candidate has become, tells what has happened, and then does what it says. Whether there is
    /// more to come.
    fn settle(&mut self) -> bool {
        loop {
            // Read before anything that is done leaves.
            let now = clock::now();
            let lost = self.clocks.lost_by(now);
            if !lost.is_zero() {
                self.candidate.lose_time(now, lost);
            }
            let action = self.candidate.poll(now);
            let until = self.candidate.authority_until();
            self.authority.set(self.candidate.epoch().zip(until));
            self.authority.set_led(self.candidate.led_at());
            self.authority.set_key(self.candidate.epoch().zip(self.candidate.key_until()));
            while let Some(event) = self.candidate.next_event() {
                let is_last = event == Event::Resigned;
                self.tell(event);
                if is_last {
                    return false;
                }
            }
            match action {
                Some(action) => self.perform(action),
                None => return true,
            }
        }
    }

    fn tell(&mut self, event: Event) {
        match &event {
            Event::Written(ticket) => {
                if let Some(done) = self.writing.remove(ticket) {
                    // Whoever wrote need not wait for it.
                    let _ = done.send(Ok(()));
                }
                return;
            }
            Event::Deposed | Event::Resigned => self.fail_writes(),
            _ => {}
        }
        match &event {
            Event::Elected { epoch, record } => {
                self.authority.traffic.elections.fetch_add(1, Ordering::Relaxed);
                info!(epoch = epoch.0, marks = record.marks.len(), "elected");
                if record.is_copy {
                    warn_of_copy(record);
                }
            }
            Event::Lapsed => warn!("authority has lapsed"),
            Event::Resumed => info!("authority resumed"),
            Event::Deposed => warn!("deposed"),
            Event::Resigned => info!("resigned"),
            Event::Leader(Some(leader)) => {
                info!(address = %leader.address, revision = leader.revision, "another leads");
            }
            Event::Leader(None) => info!("nobody is known to lead"),
            Event::Written(_) => {}
            Event::Faulty(why) => warn!(%why, "etcd fails"),
            Event::Healthy => info!("etcd serves"),
        }
        // Nobody listens when the handle has gone; then the task ends anyway.
        let _ = self.events.send(event);
    }

    fn perform(&mut self, action: Action) {
        let timeout = self.candidate.config().call_timeout;
        match action {
            Action::Call { id, call } => {
                debug!(id, ?call, "calling etcd");
                let endpoint = self.endpoints.current();
                let (kind, began) = (CallKind::of(&call), clock::now());
                self.calls.push(Box::pin(async move {
                    let result = calls::make(&endpoint, call, timeout).await;
                    Outcome { id, kind, took: clock::now().since(began), endpoint: endpoint.number(), result }
                }));
            }
            Action::Watch { id, key, from_revision } => {
                debug!(id, key, from_revision, "watching");
                self.watcher = Some(Watcher::new(id, self.endpoints.current(), key, from_revision, timeout));
            }
            Action::Unwatch { id } => drop(self.watcher.take_if(|watcher| watcher.id == id)),
        }
    }

    fn on_outcome(&mut self, outcome: Outcome) {
        let Outcome { id, kind, took, endpoint, result } = outcome;
        debug!(id, ?result, "etcd answered");
        self.authority.traffic.note(kind, took, result.is_err());
        if let Some(cluster) = self.endpoints.cluster(endpoint) {
            self.authority.set_electorate(electorate(cluster, &self.candidate.config().prefix));
        }
        if let Err(Failure::Timeout | Failure::Unavailable(_)) = &result {
            self.endpoints.failed(endpoint);
        }
        self.candidate.set_date(clock::wall().since_epoch);
        self.candidate.on_answer(clock::now(), id, result);
    }

    fn on_watched(&mut self, id: u64, watched: Watched) {
        debug!(id, ?watched, "seen");
        if let (Watched::Ended(_), Some(watcher)) = (&watched, &self.watcher) {
            self.authority.traffic.failures.add(CallKind::Watch);
            self.endpoints.failed(watcher.endpoint().number());
        }
        self.candidate.on_watched(clock::now(), id, watched);
    }

    fn on_request(&mut self, request: Request) {
        match request {
            Request::Write { epoch, change, done } => {
                match self.candidate.write(clock::now(), epoch, *change) {
                    Some(ticket) => drop(self.writing.insert(ticket, done)),
                    None => drop(done.send(Err(NotWritten))),
                }
            }
            Request::HearClock { epoch, asked, shown } => self.candidate.hear_clock(epoch, asked, shown),
            Request::Aside(time) => {
                self.note_resignation();
                self.candidate.stand_aside(clock::now(), time);
            }
            Request::HandOver(time) => {
                self.note_resignation();
                self.candidate.hand_over(clock::now(), time);
            }
            Request::Stand => self.candidate.stand_again(clock::now()),
            Request::Resign => {
                self.note_resignation();
                self.candidate.resign(clock::now());
            }
        }
    }

    /// Counts that this task leaves it to another to lead, if it leads.
    fn note_resignation(&self) {
        if self.candidate.epoch().is_some() {
            self.authority.traffic.resignations.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn fail_writes(&mut self) {
        for done in std::mem::take(&mut self.writing).into_values() {
            // Whoever wrote need not wait for it.
            let _ = done.send(Err(NotWritten));
        }
    }
}

/// Says that a record is not believed, and why.
fn warn_of_copy(record: &Record) {
    let name = |cluster: Option<EtcdCluster>| cluster.map_or("unknown".to_owned(), |it| it.to_string());
    warn!(
        written_at = name(record.written_at),
        read_at = name(record.read_at),
        last_epoch = record.epoch.0,
        "the record at etcd is not believed: it was written at another cluster, or at a later state of this one"
    );
}

/// One cluster, and one prefix in it. (FNV-1a: all tasks have to agree.)
fn electorate(cluster: u64, prefix: &str) -> u64 {
    let bytes = cluster.to_le_bytes().into_iter().chain(prefix.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

async fn watched(watcher: &mut Option<Watcher>) -> (u64, Watched) {
    match watcher {
        Some(watcher) => (watcher.id, watcher.next().await),
        None => std::future::pending().await,
    }
}
