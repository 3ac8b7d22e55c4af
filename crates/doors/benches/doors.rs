//! Answers a second of both doors, beside a bare service of the same protocol on the same thread: calls from a bounded number of
//! callers at a time, at as many keys as are told, all of them with units at hand and used before.
//!
//! `cargo bench -p lessor-doors --bench doors`, or with the number of keys, one of the doors and the uses of each key before it is
//! measured behind `--`, as in `10000 check used=1000`. The doors and the bare services have one thread between them, callers
//! another, and the server that leases a third. What stands there is the median of rounds that take turns, with the processor time
//! of each of those threads for an answer, and the allocator of the program.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::routing::any;
use lessor_client::Client;
use lessor_client::internals::clock;
use lessor_doors::rules::RuleBook;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::ratelimit::join;
use lessor_doors::rules::templates::templates;
use lessor_doors::shell::{DoorAddress, Doors, KeyBounds, Listening};
use lessor_envoy_proto::rate_limit_service_client::RateLimitServiceClient;
use lessor_envoy_proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use lessor_envoy_proto::{Code, Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use lessor_proto::Epoch;
use lessor_server::node::NodeConfig;
use lessor_server::shell::{Server, ServerOptions, source};
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keys of a limit, and resources of a server and of one client at it, at the most: 20,000 if nothing else is said.
const MOST: usize = 1_000_000;
/// Calls under way at a time.
const CALLERS: usize = 32;
const ROUNDS: usize = 7;
const ROUND: Duration = Duration::from_secs(2);
/// The hits of each key before it is measured, if nothing else is told.
const USED: u32 = 64;
/// Every key is used before it is measured in so many parts, after each of which it is told how far that is, if it has taken so
/// long; and not for longer than that.
const PARTS: usize = 10;
const TOLD: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(300);
/// Nobody gets there in the time of the bench.
const RULES: &str = "
wait: 30s
sets:
  bench:
    headers: []
    rules:
    - {match: {header.X-Key: '*'}, key: [header.X-Key], limit: 900000/1h, kind: exact, cost: header.X-Hits}
";
const SERVICE: &str = "
domain: rls
descriptors:
- {key: client, rate_limit: {unit: hour, requests_per_unit: 900000}}
";

/// A service that answers what it is asked with nothing behind it.
struct Bare;

#[tonic::async_trait]
impl RateLimitService for Bare {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        std::hint::black_box(request.get_ref().descriptors.len());
        Ok(Response::new(RateLimitResponse { overall_code: Code::Ok.into(), ..RateLimitResponse::default() }))
    }
}

/// A runtime of one thread that goes on by itself.
fn thread(name: &str) -> Handle {
    let runtime: Runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let handle = runtime.handle().clone();
    let forever = move || runtime.block_on(std::future::pending::<()>());
    std::thread::Builder::new().name(name.to_owned()).spawn(forever).expect("a thread");
    handle
}

fn book() -> RuleBook {
    let doors = DoorsFile::parse("doors.yaml", RULES).unwrap_or_else(|faults| panic!("{faults}"));
    let files = [("service.yaml".to_owned(), SERVICE.to_owned())];
    join(doors, &files).unwrap_or_else(|faults| panic!("{}", faults.join("\n")))
}

/// A server that leases at once, as one before it has left a record in which nothing is out.
async fn server(state: &std::path::Path, book: &RuleBook) -> Server {
    let nothing = "resources: [{identifier_glob: none, capacity: 0, algorithm: {kind: FAIR_SHARE, lease_length: 1, \
                   refresh_interval: 1, learning_mode_duration: 0}}]";
    let start = async |text: &str| {
        let options =
            ServerOptions { state: Some(state.to_owned()), ..ServerOptions::new(([127, 0, 0, 1], 0).into()) };
        let repository = source::parse("templates.yaml", text).unwrap_or_else(|faults| panic!("{faults}"));
        let config = NodeConfig::new("root", Epoch(1));
        // One process has them all here.
        let config = NodeConfig { resources: MOST, resources_per_stream: MOST, ..config };
        Server::start(options, config, repository).await.expect("a server")
    };
    start(nothing).await.drain().await;
    start(&templates(book)).await
}

/// The threads whose processor time is told: that of the services, of whoever leases to the doors, and of the callers.
struct Threads {
    serving: Handle,
    leasing: Handle,
}

// === impl Threads ===

impl Threads {
    /// The processor time of each.
    async fn times(&self) -> [Duration; 3] {
        let read = || {
            let time = clock_gettime(ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
        };
        let of = async |handle: &Handle| handle.spawn(async move { read() }).await.expect("a time");
        [of(&self.serving).await, of(&self.leasing).await, read()]
    }
}

/// The services of one kind, the bare one first.
struct Pair {
    name: &'static str,
    addresses: [String; 2],
    is_grpc: bool,
}

/// Keys that are used before they are measured: which, and the hits of each.
#[derive(Clone)]
struct FirstUse {
    keys: Range<usize>,
    hits: u32,
}

/// Calls a service for a round, or for some keys once. Returns the calls a second.
async fn round(pair: &Pair, place: usize, keys: usize, used: Option<FirstUse>) -> f64 {
    let first = used.as_ref().map_or(0, |used| used.keys.start);
    let (next, end) = (Arc::new(AtomicUsize::new(first)), clock::now() + ROUND);
    let began = clock::now();
    let mut callers = tokio::task::JoinSet::new();
    let channel = match pair.is_grpc {
        true => Some(connect(&pair.addresses[place]).await),
        false => None,
    };
    for _ in 0..CALLERS {
        let (next, address, channel) = (Arc::clone(&next), pair.addresses[place].clone(), channel.clone());
        let used = used.clone();
        callers.spawn(async move {
            let hits = used.as_ref().map_or(1, |used| used.hits);
            let go_on = || {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let is_more = used.as_ref().map_or_else(|| clock::now() < end, |used| number < used.keys.end);
                is_more.then(|| number.wrapping_mul(7_919) % keys)
            };
            match channel {
                Some(client) => call_grpc(client, hits, go_on).await,
                None => call_http(&address, hits, go_on).await,
            }
        });
    }
    let done: usize = callers.join_all().await.into_iter().sum();
    done as f64 / clock::now().since(began).as_secs_f64()
}

async fn connect(address: &str) -> RateLimitServiceClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
    RateLimitServiceClient::new(endpoint.connect().await.expect("a connection"))
}

async fn call_grpc(
    mut client: RateLimitServiceClient<Channel>,
    hits: u32,
    mut go_on: impl FnMut() -> Option<usize>,
) -> usize {
    let mut done = 0;
    while let Some(key) = go_on() {
        let entry = Entry { key: "client".to_owned(), value: format!("c{key}") };
        let descriptor = RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() };
        let request =
            RateLimitRequest { domain: "rls".to_owned(), descriptors: vec![descriptor], hits_addend: hits };
        let answer = client.should_rate_limit(request).await.expect("an answer");
        assert_eq!(answer.get_ref().overall_code(), Code::Ok, "key {key}");
        done += 1;
    }
    done
}

async fn call_http(address: &str, hits: u32, mut go_on: impl FnMut() -> Option<usize>) -> usize {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let (mut done, mut request, mut answer) = (0, String::new(), vec![0; 4_096]);
    while let Some(key) = go_on() {
        request.clear();
        let _ = write!(
            request,
            "GET /check/bench HTTP/1.1\r\nHost: here\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Host: shop\r\nX-Forwarded-Uri: \
             /a\r\nX-Key: c{key}\r\n"
        );
        if hits > 1 {
            let _ = write!(request, "X-Hits: {hits}\r\n");
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes()).await.expect("it takes it");
        let read = stream.read(&mut answer).await.expect("an answer");
        let head = &answer[..read];
        assert!(
            head.starts_with(b"HTTP/1.1 200") && head.ends_with(b"\r\n\r\n"),
            "{}",
            String::from_utf8_lossy(head)
        );
        done += 1;
    }
    done
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Uses every key, so that each has units. Returns whether that was done in time.
async fn prepare(pair: &Pair, keys: usize, hits: u32) -> bool {
    let began = clock::now();
    for part in 1..=PARTS {
        let keys_of_part = (part - 1) * keys / PARTS..part * keys / PARTS;
        round(pair, 1, keys, Some(FirstUse { keys: keys_of_part, hits })).await;
        let took = clock::now().since(began);
        if took > TOLD {
            eprintln!("{}: {} of {keys} keys used after {:.0?}", pair.name, part * keys / PARTS, took);
        }
        if took > LONGEST && part < PARTS {
            return false;
        }
    }
    true
}

async fn compare(pair: &Pair, keys: usize, used: u32, threads: &Threads) {
    if !prepare(pair, keys, used).await {
        return println!("{:>8} {keys:>8} were not all used within {LONGEST:?}", pair.name);
    }
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut spent: [[Vec<f64>; 3]; 2] = Default::default();
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        for place in [0, 1] {
            let before = threads.times().await;
            let rate = round(pair, place, keys, None).await;
            rates[place].push(rate);
            for (thread, time) in threads.times().await.into_iter().enumerate() {
                let micros = (time - before[thread]).as_secs_f64() * 1e6;
                spent[place][thread].push(micros / (rate * ROUND.as_secs_f64()));
            }
        }
        ratios.push(rates[1][rates[1].len() - 1] / rates[0][rates[0].len() - 1]);
    }
    let [bare, door] = rates.map(median);
    let [[bare_cpu, _, bare_callers], [door_cpu, leasing, callers]] = spent.map(|of| of.map(median));
    println!(
        "{:>8} {keys:>8} {bare:>10.0} {door:>10.0} {:>7.2} {bare_cpu:>9.1} {door_cpu:>9.1} {bare_callers:>12.1} {callers:>12.1} \
         {leasing:>10.1}",
        pair.name,
        median(ratios)
    );
}

fn main() {
    let told: Option<usize> = std::env::args().skip(1).find_map(|argument| argument.parse().ok());
    let only = ["rls", "check"].into_iter().find(|name| std::env::args().any(|argument| argument == **name));
    let used =
        std::env::args().find_map(|argument| argument.strip_prefix("used=")?.parse().ok()).unwrap_or(USED);
    let (leasing, serving) = (thread("server"), thread("doors"));
    let state = tempfile::tempdir().expect("a folder");
    let callers = Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!(
        "{:>8} {:>8} {:>10} {:>10} {:>7} {:>9} {:>9} {:>12} {:>12} {:>10}",
        "door",
        "keys",
        "bare/s",
        "door/s",
        "ratio",
        "bare us",
        "door us",
        "its callers",
        "its callers",
        "leasing us"
    );
    let path = state.path().to_owned();
    callers.block_on(async {
        let server = leasing.spawn(async move { server(&path, &book()).await }).await.expect("a server");
        let address = server.address().to_string();
        let opened = serving.spawn(async move {
            let client = Client::builder(address).id("doors").build().expect("a client");
            let anywhere: DoorAddress = "127.0.0.1:0".parse().expect("an address");
            let bounds = KeyBounds { most: MOST, ..KeyBounds::default() };
            let mut listening = Listening::new(Arc::new(Doors::bounded(client, book(), bounds)), 1_000);
            let rls = listening.open_rls(&anywhere).await.expect("a port").to_string();
            let http = listening.open_http(&anywhere).await.expect("a port").to_string();
            let bare = [TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await];
            let [grpc, pages] = bare.map(|bound| bound.expect("a port"));
            let addresses = [&grpc, &pages].map(|bound| bound.local_addr().expect("an address").to_string());
            let echo = tonic::transport::Server::builder().add_service(RateLimitServiceServer::new(Bare));
            tokio::spawn(echo.serve_with_incoming(TcpListenerStream::new(grpc)));
            let router = Router::new().route("/check/{set}", any(async || ""));
            tokio::spawn(async { axum::serve(pages, router).await });
            (listening, rls, http, addresses)
        });
        let (_listening, rls, http, [bare_rls, bare_http]) = opened.await.expect("doors");
        let pairs = [
            Pair { name: "rls", addresses: [bare_rls, rls], is_grpc: true },
            Pair { name: "check", addresses: [bare_http, http], is_grpc: false },
        ];
        let threads = Threads { serving, leasing };
        for keys in told.map_or(vec![1_000, 10_000, 100_000], |keys| vec![keys]) {
            for pair in pairs.iter().filter(|pair| only.is_none_or(|only| only == pair.name)) {
                compare(pair, keys, used, &threads).await;
            }
        }
    });
}
