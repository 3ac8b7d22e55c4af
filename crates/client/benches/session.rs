//! The processor time that a session takes for a message, by the number of keys that it holds: a grant, a key that is used, a
//! report of a key that wants more, and the answer to a heartbeat, which is about all of them.
//!
//! `cargo bench -p lessor-client --bench session`, or with the number of keys behind `--`.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::holding::{HoldingConfig, Surplus};
use lessor_client::internals::session::{Action, Event, Session, SessionConfig};
use lessor_client::{Fallback, Kind, Transport};
use lessor_proto::message::{Band, Bands, Down, Grant, Order, Up, Welcome};
use lessor_proto::{Amount, ClientId, Epoch, Features, Incarnation, ReportId, ResourceId, Time};

/// Messages of a kind that are measured.
const MESSAGES: usize = 2_000;
/// Answers to heartbeats that are.
const BEATS: usize = 10;
/// The time between two of them.
const PAUSE: Duration = Duration::from_millis(10);

/// A session on a stream that holds keys of a window.
struct Keys {
    session: Session,
    names: Vec<ResourceId>,
    now: Time,
    stream: u64,
    /// The last report.
    said: ReportId,
    grants: u64,
}

// === impl Keys ===

impl Keys {
    fn holding(keys: usize) -> Keys {
        let holder = ClientId::new("web-1", 256).expect("a name");
        let config = SessionConfig::new(holder, Incarnation(1), vec![Arc::from("a:1")]);
        let session = Session::new(SessionConfig { transport: Transport::Stream, ..config });
        let name = |number: usize| ResourceId::new(format!("rls/client|0:c{number}"), 256).expect("a name");
        let names = (0..keys).map(name).collect();
        let now = Time::from_nanos(1 << 40);
        let mut keys = Keys { session, names, now, stream: 0, said: ReportId::default(), grants: 0 };
        let config = HoldingConfig {
            bands: wants(1, 1),
            fallback: Fallback::Pessimistic,
            surplus: Surplus::Yield,
            ..HoldingConfig::new(Kind::Gauge, 1.0, 0)
        };
        for name in &keys.names {
            keys.session.add(keys.now, name.clone(), config.clone());
        }
        keys.act();
        let welcome = Welcome {
            epoch: Epoch(1),
            claims_open: true,
            claims_open_in: None,
            heartbeat: Duration::from_secs(3_600),
            features: Features::CURRENT,
        };
        keys.hear(Down::Welcome(welcome));
        for number in 0..keys.names.len() {
            keys.grant(number, 2);
        }
        keys
    }

    /// All that the driver of a session does.
    fn act(&mut self) {
        while let Some(action) = self.session.poll(self.now) {
            match action {
                Action::Connect { id, .. } => self.stream = id,
                Action::Send { up: Up::Report(report), .. } => self.said = report.id,
                Action::Change(change) => self.session.set_in_use(self.now, &change.resource, Amount::ZERO),
                _ => {}
            }
        }
        std::hint::black_box(self.session.next_deadline());
    }

    fn hear(&mut self, down: Down) {
        self.session.handle(self.now, Event::Down { id: self.stream, down });
        self.act();
    }

    fn grant(&mut self, number: usize, units: u64) {
        self.grants += 1;
        let grant = Grant {
            resource: self.names[number].clone(),
            capacity: Amount::from_units(units),
            length: Duration::from_secs(7_200),
            refresh_interval: Duration::from_secs(3_600),
            order: Some(Order { epoch: Epoch(1), seq: self.grants }),
            basis: Some(self.said),
            token: Vec::new(),
            ack_wanted: false,
            safe_leased: false,
            learning: false,
            learning_left: None,
            safe_capacity: None,
            burst: None,
            due: None,
            window: None,
            generation: None,
            sharing: None,
            domains: None,
            before: None,
            earlier: None,
            bound_by: None,
            unenforced: false,
            beside: false,
        };
        self.hear(Down::Grants(vec![grant]));
    }

    /// The key that is used next: they jump.
    fn next(&self, number: usize) -> usize {
        number.wrapping_mul(7_919) % self.names.len()
    }
}

fn wants(urgent: u32, reserve: u32) -> Bands {
    let band = |priority, wants: u32| Band { priority, subclients: 1, wants: wants.into() };
    [band(0, urgent), band(Band::RESERVE, reserve)].into_iter().collect()
}

/// The microseconds that each of so many calls takes.
fn measure(calls: usize, mut call: impl FnMut(usize)) -> f64 {
    let began = clock::now();
    (0..calls).for_each(&mut call);
    clock::now().since(began).as_secs_f64() * 1e6 / calls as f64
}

fn main() {
    let told: Option<usize> = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    println!(
        "{:>8} {:>10} {:>10} {:>10} {:>10} {:>14}",
        "keys", "new us", "grant us", "use us", "report us", "heartbeat us"
    );
    for count in told.map_or(vec![100, 1_000, 10_000, 100_000], |keys| vec![keys]) {
        let began = clock::now();
        let mut keys = Keys::holding(count);
        let new = clock::now().since(began).as_secs_f64() * 1e6 / count as f64;
        let grant = measure(MESSAGES, |number| keys.grant(keys.next(number), 3));
        let used = measure(MESSAGES, |number| {
            let name = keys.names[keys.next(number)].clone();
            keys.session.set_in_use(keys.now, &name, Amount::from_units(1));
            keys.session.set_bands(keys.now, &name, wants(1, 2));
            keys.act();
        });
        let report = measure(MESSAGES, |number| {
            let name = keys.names[keys.next(number)].clone();
            keys.now += PAUSE;
            keys.session.set_bands(keys.now, &name, wants(4 + number as u32, 2));
            keys.act();
        });
        let beat = measure(BEATS, |_| {
            keys.now += PAUSE;
            let (basis, grants) = (keys.said, keys.grants);
            keys.hear(Down::Renewed { basis, grants });
        });
        println!("{count:>8} {new:>10.1} {grant:>10.1} {used:>10.1} {report:>10.1} {beat:>14.0}");
    }
}
