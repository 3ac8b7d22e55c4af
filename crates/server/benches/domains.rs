//! The work for one hot domain of scope `shared` that all clients of a node use, of whom each reports ten times a second:
//! the processor time of a second of reports, and of the longest turn; also of those after all have said everything anew, and
//! after other policies are in force.
//!
//! `cargo bench -p lessor-server --bench domains [-- CLIENTS...]`; it prints a line for each number of clients.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_proto::message::{DomainEntry, DomainHits, DomainReport, Hello, HolderKind};
use lessor_proto::{ClientId, Incarnation, ResourceId, Time};
use lessor_server::domain_sync::{DomainEvent, DomainOutput, DomainSync};
use lessor_server::node::Peer;
use rustix::time::{ClockId, clock_gettime};

/// Messages that are sent while the lock is held.
const TURN: usize = 16;
const DOMAIN: &str = "tenant";
/// The hits that it may make in ten seconds.
const LIMIT: u32 = 1_000_000;
/// Each client reports so often.
const CADENCE: Duration = Duration::from_millis(100);
/// The seconds that are measured, after one that is not.
const SECONDS: u64 = 3;
/// The goal of a second of reports of a thousand clients, and of a turn.
const GOALS: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(2)];

/// The figures that were measured.
#[derive(Default)]
struct Measured {
    total: Duration,
    turn: Duration,
    news: u64,
    entries: u64,
}

/// The synchronisation, those that it serves, and a clock that goes as fast as they are served.
struct Square {
    now: Time,
    sync: DomainSync,
    clients: Vec<(Peer, u64)>,
    version: u32,
    measured: Measured,
}

fn main() {
    let named: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let counts = if named.is_empty() { vec![250, 500, 1_000] } else { named };
    let [goal, turn] = GOALS;
    println!("goal at 1000 clients: {goal:?} for a second of reports, {turn:?} for the longest turn");
    for count in counts {
        let mut square = Square::new(count);
        square.second();
        let Measured { total, turn, news, entries } = square.measured_of(|square| {
            (0..SECONDS).for_each(|_| square.second());
        });
        println!(
            "{count} clients: {:.3} s for a second of reports, longest turn {:.2} ms; {} news a second with {:.1} entries each",
            total.as_secs_f64() / SECONDS as f64,
            turn.as_secs_f64() * 1e3,
            news / SECONDS,
            entries as f64 / news.max(1) as f64,
        );
        let one = square.measured_of(|square| {
            square.report(1, true, 1);
            square.rest();
        });
        let all = square.measured_of(Square::all_anew);
        let other = square.measured_of(Square::follow);
        for (what, measured) in
            [("one says everything anew", one), ("all of them do", all), ("other policies", other)]
        {
            let (total, turn) = (measured.total.as_secs_f64() * 1e3, measured.turn.as_secs_f64() * 1e3);
            println!("  {what}: {total:.1} ms, longest turn {turn:.2} ms; {} news", measured.news);
        }
    }
}

/// The time that this thread has been on a processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).expect("less than a second"))
}

impl Square {
    /// The figures of what `act` does.
    fn measured_of(&mut self, act: impl FnOnce(&mut Square)) -> Measured {
        self.measured = Measured::default();
        act(self);
        std::mem::take(&mut self.measured)
    }

    /// Everybody says everything anew within a second.
    fn all_anew(&mut self) {
        for number in 0..self.clients.len() {
            self.now += Duration::from_secs(1) / u32::try_from(self.clients.len()).expect("few clients");
            self.report(number, true, 1);
            self.turn();
        }
        self.rest();
    }

    /// Other policies are in force.
    fn follow(&mut self) {
        let policies = Some(policies(LIMIT * 2));
        let serves = DomainEvent::Serves { resource: resource(), policies };
        self.measure(|square| square.sync.handle(square.now, serves));
        self.rest();
    }

    /// Half a second in which nobody says anything.
    fn rest(&mut self) {
        let end = self.now + Duration::from_millis(500);
        while let Some(due) = self.sync.next_deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.turn();
        }
    }

    fn new(count: usize) -> Square {
        let policies = policies(LIMIT);
        let mut square = Square {
            now: Time::ZERO + Duration::from_secs(1),
            sync: DomainSync::default(),
            clients: Vec::new(),
            version: policies.version(),
            measured: Measured::default(),
        };
        let serves = DomainEvent::Serves { resource: resource(), policies: Some(policies) };
        square.sync.handle(square.now, serves);
        (0..count).for_each(|number| square.join(number));
        square
    }

    fn join(&mut self, number: usize) {
        let holder = ClientId::new(format!("web-{number}"), 256).expect("a name");
        let hello = Hello::new(HolderKind::Client, holder, Incarnation(1));
        let peer = Peer::from(number as u64);
        self.sync.handle(self.now, DomainEvent::Opened { peer, hello });
        self.clients.push((peer, 0));
        let first = if number == 0 { 600_000 } else { 1 };
        self.report(number, true, first);
    }

    /// A second in which each client reports what it did in a tenth of it, ten times.
    fn second(&mut self) {
        let count = self.clients.len();
        let rounds = Duration::from_secs(1).as_millis() / CADENCE.as_millis();
        for _ in 0..rounds {
            for number in 0..count {
                self.now += CADENCE / u32::try_from(count).expect("few clients");
                self.report(number, false, 1);
                self.turn();
            }
        }
    }

    fn report(&mut self, number: usize, all: bool, hits: u32) {
        let (peer, id) = &mut self.clients[number];
        *id += 1;
        let (peer, id) = (*peer, *id);
        let at = Time::from_nanos(self.now.as_nanos() - 30_000_000);
        let entry = DomainEntry { policy: 0, tier: 1, at, hits, is_entered: all };
        let later = DomainEntry { at: self.now, is_entered: false, ..entry };
        let hits = DomainHits { domain: DOMAIN.into(), all, others: 0, entries: vec![entry, later] };
        let (resource, version) = (resource(), self.version);
        let report =
            Box::new(DomainReport { resource, version, id, ask: all, below: None, domains: vec![hits] });
        self.measure(|square| square.sync.handle(square.now, DomainEvent::Reported { peer, report }));
    }

    /// As much as is sent while the lock is held.
    fn turn(&mut self) {
        self.measure(|square| {
            for _ in 0..TURN {
                let Some(DomainOutput::News { news, .. }) = square.sync.poll(square.now, |_| true) else {
                    break;
                };
                square.measured.news += 1;
                square.measured.entries +=
                    news.domains.iter().map(|hits| hits.entries.len() as u64).sum::<u64>();
            }
        });
    }

    fn measure(&mut self, act: impl FnOnce(&mut Square)) {
        let begun = thread_time();
        act(self);
        let spent = thread_time() - begun;
        self.measured.total += spent;
        self.measured.turn = self.measured.turn.max(spent);
    }
}

/// A limit of hits in ten seconds, for a minute at a time.
fn policies(limit: u32) -> Arc<Policies> {
    let (window, active, cooldown) = (Duration::from_secs(10), Duration::from_secs(60), Duration::ZERO);
    let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
    let policy = TierPolicy::new(vec![tier], None, None).expect("it holds together");
    let rules = Rules { default: Some(Contract::from(policy)), ..Rules::default() };
    Arc::new(Policies::new(rules).expect("nothing stands twice"))
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}
