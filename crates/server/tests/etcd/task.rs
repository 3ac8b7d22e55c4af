//! A task of a node that stands for election, as a test sees it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Amount, ResourceId, Time};
use lessor_server::election::{ElectionConfig, Event};
use lessor_server::record::{Record, RecordChange, Terms, Unknown};
use lessor_server::shell::etcd::{Election, EtcdOptions};

pub(super) const TTL: Duration = Duration::from_secs(5);
pub(super) const AUTHORITY: Duration = Duration::from_secs(2);
/// Longer than anything may take on the slowest machine.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// The nonce of the next task: each has another.
static LIVES: AtomicU64 = AtomicU64::new(1);

/// A task.
pub(super) struct Task {
    pub(super) election: Election,
    name: String,
}

// === impl Task ===

impl Task {
    pub(super) fn start(name: &str, endpoints: &[String]) -> Task {
        let config = ElectionConfig {
            ttl: TTL,
            authority: AUTHORITY,
            keep_alive: Duration::from_millis(400),
            call_timeout: Duration::from_secs(1),
            ..ElectionConfig::new("root", format!("{name}:1"), LIVES.fetch_add(1, Ordering::Relaxed))
        };
        let election = Election::start(EtcdOptions::new(endpoints), config).unwrap();
        Task { election, name: name.to_owned() }
    }

    /// The next event, which must come.
    pub(super) async fn event(&mut self) -> Event {
        let event = tokio::time::timeout(LONG, self.election.event()).await;
        let event = event.unwrap_or_else(|_| panic!("{}: nothing happens", self.name));
        let event = event.unwrap_or_else(|| panic!("{}: the task has ended", self.name));
        match &event {
            Event::Elected { epoch, record } => {
                println!("{} {}: elected, {epoch} after {}", clock::now(), self.name, record.epoch);
            }
            other => println!("{} {}: {other:?}", clock::now(), self.name),
        }
        event
    }

    /// Waits for an event and passes over others.
    pub(super) async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Event {
        for _ in 0..100 {
            let event = self.event().await;
            if wanted(&event) {
                return event;
            }
        }
        panic!("{}: a hundred events, and none is it", self.name);
    }

    /// Waits for its election.
    pub(super) async fn elected(&mut self) -> (u64, Record) {
        match self.until(|event| matches!(event, Event::Elected { .. })).await {
            Event::Elected { epoch, record } => (epoch.0, *record),
            other => panic!("{other:?} is no election"),
        }
    }

    /// Waits until it knows of a leader elsewhere.
    pub(super) async fn follows(&mut self) -> String {
        match self.until(|event| matches!(event, Event::Leader(Some(_)))).await {
            Event::Leader(Some(leader)) => leader.address,
            other => panic!("{other:?} names no leader"),
        }
    }

    pub(super) fn may_act(&self) -> bool {
        self.election.authority_until().is_some_and(|until| clock::now() < until)
    }

    /// Writes, and waits until it is done.
    pub(super) async fn write(&self, change: RecordChange) {
        let written = tokio::time::timeout(LONG, self.election.write(None, change)).await;
        written.expect("in time").expect("the task runs").expect("it leads");
    }
}

pub(super) fn marks(marks: &[(&str, u64)]) -> RecordChange {
    let marks = marks.iter().map(|&(name, units)| (resource(name), Amount::from_units(units)));
    RecordChange { marks: marks.collect(), ..RecordChange::default() }
}

pub(super) fn terms(longest_lease: Duration, config_version: u64) -> RecordChange {
    let terms = Terms {
        longest_lease,
        longest_safe_lease: Duration::ZERO,
        authority: AUTHORITY,
        config_version,
        unknown: Unknown::Nothing,
        rest_over: None,
    };
    RecordChange { terms: Some(terms), ..RecordChange::default() }
}

pub(super) fn resource(name: &str) -> ResourceId {
    ResourceId::new(name, 256).unwrap()
}

/// Lets time pass.
pub(super) async fn pass(time: Duration) {
    clock::sleep_until(clock::now() + time).await;
}

pub(super) fn elapsed(since: Time) -> Duration {
    clock::now().since(since)
}
