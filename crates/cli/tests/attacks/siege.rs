//! A siege: a server under attack, the honest one that renews there, and the same at a server that nobody attacks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tonic::transport::Endpoint;

use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, eventually};

/// Of everything there is this much; of "witness" a hundred, for which nobody has priority and nobody stands for many.
pub(crate) const CONFIG: &str = "resources:\n\
- {identifier_glob: witness, capacity: 100, most_priority: 0, most_clients: 1, algorithm: &usual {kind: FAIR_SHARE, \
                                 lease_length: 60, refresh_interval: 1, learning_mode_duration: 0}}\n\
- {identifier_glob: \"*\", capacity: 1000, algorithm: *usual}\n";

/// The amount of "witness" that the honest one wants and has. Two others may come, and it is still its fair share.
pub(crate) const OWN: f64 = 30.0;

/// The longest disturbance. What is not optimised takes five to ten times as long.
pub(crate) const LONGEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });
const RENEWAL: Duration = Duration::from_millis(50);
/// The renewals of a round, which ends with probes and a newcomer.
const ROUND: u32 = 5;
/// The rounds that must come to an end after an attack, at one server and at the other: the second of them began after it.
const LATER_ROUNDS: u32 = 2;
/// The place of the siege that goes on. What would be measured of two at once is how they share the processors.
static FIELD: Semaphore = Semaphore::const_new(1);
/// The most memory that a server may have had at once: the budget of unfinished requests, what is free in each of them, what a few
/// messages take while they are decoded, holdings up to their limit, and what it has anyway.
const MOST_MEMORY: usize = 400 << 20;

/// A server that is about to be attacked.
pub(crate) struct Siege {
    pub(crate) house: House,
    calm: House,
    /// Taken for as long as it goes on.
    _field: SemaphorePermit<'static>,
}

/// The lot of those who come in a siege.
#[derive(Clone, Copy)]
pub(crate) enum Newcomers {
    /// They are served within this time.
    After(Duration),
    /// There is no place left for anybody, and those who are there go on.
    Refused,
}

/// The honest one at one server, on a thread of its own.
struct Witness {
    /// Rounds that are over.
    rounds: Arc<AtomicU32>,
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Waits>,
}

/// The longest times that were waited.
#[derive(Clone, Copy, Default, Debug)]
struct Waits {
    renewals: u32,
    renewal: Duration,
    probe: Duration,
    newcomer: Duration,
}

// === impl Siege ===

impl Siege {
    pub(crate) async fn open(flags: &[&str]) -> Siege {
        let field = FIELD.acquire().await.unwrap();
        Siege { house: House::open_with(CONFIG, flags).await, calm: House::open(CONFIG).await, _field: field }
    }

    /// Holds out against `attack`, which may take any time, and as long beyond it as a disturbance may be: at the least for a round that
    /// began after it.
    pub(crate) async fn hold(self, attack: impl AsyncFnOnce(&House)) {
        self.hold_with(Newcomers::After(LONGEST), attack).await;
    }

    /// The same where it is otherwise with newcomers.
    pub(crate) async fn hold_with(self, newcomers: Newcomers, attack: impl AsyncFnOnce(&House)) {
        let (they_come, served) = match newcomers {
            Newcomers::After(served) => (true, served),
            Newcomers::Refused => (false, LONGEST),
        };
        let here = Witness::of(&self.house, they_come);
        let beside = Witness::of(&self.calm, they_come);
        here.has_ended(1).await;
        beside.has_ended(1).await;
        attack(&self.house).await;
        let (rounds, calm) = (here.rounds(), beside.rounds());
        clock::sleep_until(clock::now() + LONGEST).await;
        here.has_ended(rounds + LATER_ROUNDS).await;
        beside.has_ended(calm + LATER_ROUNDS).await;
        let (here, beside) = (here.end().await, beside.end().await);
        println!("attacked: {here:?}\ncalm:     {beside:?}");
        assert!(here.renewals >= 3, "{here:?}");
        for (what, waited, calm, most) in [
            ("a renewal", here.renewal, beside.renewal, LONGEST),
            ("a probe", here.probe, beside.probe, LONGEST),
            ("a newcomer", here.newcomer, beside.newcomer, served),
        ] {
            assert!(waited < most + calm, "{what} took {waited:?}, and {calm:?} where nobody attacks");
        }
        let memory = self.house.most_memory();
        println!("memory: {} MiB", memory >> 20);
        assert!(memory < MOST_MEMORY, "{memory} bytes");
        self.house.stop().await;
        self.calm.stop().await;
    }
}

// === impl Witness ===

impl Witness {
    fn of(house: &House, newcomers_come: bool) -> Witness {
        let (address, ends) = (house.in_plain(), Arc::new(AtomicBool::new(false)));
        // Where there is TLS, it is spoken at the port of pages too.
        let pages = if address == house.address() { house.http() } else { address };
        let rounds = Arc::new(AtomicU32::new(0));
        let (told, over) = (Arc::clone(&ends), Arc::clone(&rounds));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let ends = || told.load(Ordering::Relaxed);
            runtime.block_on(renew([address, pages], newcomers_come, &over, ends))
        });
        Witness { rounds, ends, thread }
    }

    fn rounds(&self) -> u32 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Waits until so many rounds are over.
    async fn has_ended(&self, rounds: u32) {
        let what = format!("{rounds} rounds are over");
        eventually(&what, async || self.rounds() >= rounds || self.thread.is_finished()).await;
    }

    async fn end(self) -> Waits {
        self.ends.store(true, Ordering::Relaxed);
        let ended = tokio::task::spawn_blocking(move || self.thread.join());
        timeout(AGES, ended).await.expect("it ends in time").unwrap().expect("nothing was taken from it")
    }
}

/// Renews until it ends.
async fn renew(
    [address, pages]: [SocketAddr; 2],
    newcomers_come: bool,
    rounds: &AtomicU32,
    ends: impl Fn() -> bool,
) -> Waits {
    let mut waits = Waits::default();
    let mut server = CapacityClient::new(connect(address).await);
    let mut own = Holder::new("honest", Nature::Knows, "witness", OWN);
    let mut next = clock::now();
    while !ends() {
        clock::sleep_until(next).await;
        next = clock::now() + RENEWAL;
        let before = clock::now();
        assert_eq!(own.report(&mut server).await.unwrap(), OWN, "renewal {}", waits.renewals);
        waits.renewal = waits.renewal.max(clock::now().since(before));
        waits.renewals += 1;
        if waits.renewals % ROUND == 0 {
            for page in ["/healthz", "/readyz"] {
                waits.probe = waits.probe.max(probe(pages, page).await);
            }
            if newcomers_come {
                waits.newcomer = waits.newcomer.max(come(address).await);
            }
            rounds.fetch_add(1, Ordering::Relaxed);
        }
    }
    own.release(&mut server).await.unwrap();
    waits
}

async fn connect(address: SocketAddr) -> tonic::transport::Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    timeout(AGES, endpoint.connect()).await.expect("it connects in time").unwrap()
}

/// The time that a probe takes, which has to be good.
async fn probe(pages: SocketAddr, path: &str) -> Duration {
    let before = clock::now();
    let mut said = Vec::new();
    let asked = async {
        let mut socket = TcpStream::connect(pages).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        socket.read_to_end(&mut said).await.unwrap();
    };
    timeout(AGES, asked).await.unwrap_or_else(|_| panic!("{path}: no answer in time"));
    let said = String::from_utf8_lossy(&said);
    assert!(said.starts_with("HTTP/1.1 200 "), "{path}: {said}");
    clock::now().since(before)
}

/// The time until somebody new, on a connection of its own, has what it wants of something that is there.
async fn come(address: SocketAddr) -> Duration {
    let before = clock::now();
    let mut server = CapacityClient::new(connect(address).await);
    let mut newcomer = Holder::new("newcomer", Nature::Knows, "plenty", 1.0);
    assert_eq!(newcomer.report(&mut server).await.unwrap(), 1.0);
    let waited = clock::now().since(before);
    newcomer.release(&mut server).await.unwrap();
    waited
}
