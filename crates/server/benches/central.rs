//! A decision by a lease beside a decision by a central counter, in one run: a rate that is open at a server of ours, and a
//! token bucket in a Redis on the same machine, in a script that it runs for each request. Everything is over loopback: a
//! network between callers and Redis is added to its figures, and not to ours.
//!
//! `cargo bench -p lessor-server --bench central`; it takes `redis-server` (on Debian: redis-server).

#![expect(clippy::disallowed_methods, reason = "a bench measures with the clock that benches use")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lessor_client::{Client, Rate, Rung};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::{Server, ServerOptions};

/// A rate in units a second that nobody uses up: the answer is always yes.
const PLENTY: u64 = 1_000_000_000;
const RUN: Duration = Duration::from_secs(6);
const CALLERS: [usize; 2] = [1, 8];
/// Decisions of ours between two looks at the clock, which costs more than one of them.
const BATCH: u32 = 1_000;

/// The bucket as a time: that at which it would be full again. One key, and one round trip for each decision.
const SCRIPT: &str = "local now = redis.call('TIME')
now = now[1] + now[2] / 1000000
local full = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + 1 / tonumber(ARGV[1])
if full - now > tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], string.format('%.6f', full), 'PX', 60000)
return 1";

/// A Redis of this program, ended with it.
struct Redis {
    child: Child,
    address: SocketAddr,
}

/// A caller's connection to it.
struct Caller {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

/// The outcome of the calls of all callers.
#[derive(Default)]
struct Seen {
    granted: u64,
    failed: u64,
    /// Of each decision, or of ours the mean of each batch.
    times: Vec<Duration>,
}

// === impl Redis ===

impl Redis {
    /// Nothing where there is no such program.
    fn start() -> Option<Redis> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.expect("a free port");
        let port = address.port().to_string();
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .spawn()
            .ok()?;
        let redis = Redis { child, address };
        for _ in 0..500 {
            if TcpStream::connect(address).is_ok() {
                return Some(redis);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("redis-server does not listen at {address}");
    }

    /// The processor time that it has used.
    fn processor(&self) -> Duration {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).expect("it runs");
        let fields: Vec<u64> = stat.split_whitespace().filter_map(|field| field.parse().ok()).collect();
        // User and system time, in hundredths of a second; the name and the state of the process are no numbers.
        Duration::from_millis((fields[11] + fields[12]) * 10)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have been ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

// === impl Caller ===

impl Caller {
    fn new(redis: SocketAddr) -> Caller {
        let stream = TcpStream::connect(redis).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        let mut caller =
            Caller { stream: BufReader::new(stream), request: command(&["SCRIPT", "LOAD", SCRIPT]) };
        let length = caller.ask().expect("it takes the script");
        assert!(length.starts_with("$40"), "{length}");
        let mut sha = String::new();
        caller.stream.read_line(&mut sha).expect("its hash");
        let rate = PLENTY.to_string();
        caller.request = command(&["EVALSHA", sha.trim_end(), "1", "db-orders", &rate, "1"]);
        caller
    }

    /// The first line of the answer.
    fn ask(&mut self) -> std::io::Result<String> {
        self.stream.get_mut().write_all(&self.request)?;
        let mut line = String::new();
        match self.stream.read_line(&mut line)? {
            0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(line),
        }
    }

    fn run(&mut self) -> Seen {
        let (begun, mut seen) = (Instant::now(), Seen::default());
        while begun.elapsed() < RUN {
            let asked = Instant::now();
            match self.ask() {
                Ok(answer) if answer == ":1\r\n" => seen.granted += 1,
                Ok(answer) => panic!("{answer:?} for an answer"),
                Err(_) => {
                    seen.failed += 1;
                    // A program tries to connect anew, and finds nobody.
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
            seen.times.push(asked.elapsed());
        }
        seen
    }
}

fn command(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    for word in words {
        text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    text.into_bytes()
}

// === ours ===

fn use_up(rate: &Rate) -> Seen {
    let (begun, mut seen) = (Instant::now(), Seen::default());
    while begun.elapsed() < RUN {
        let asked = Instant::now();
        for _ in 0..BATCH {
            match rate.try_acquire(1) {
                Ok(()) => seen.granted += 1,
                Err(_) => seen.failed += 1,
            }
        }
        seen.times.push(asked.elapsed() / BATCH);
    }
    seen
}

async fn open() -> (Server, Client, Rate) {
    let template = Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        lease_length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        learning: Duration::ZERO,
        ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(PLENTY))
    };
    let repository = Repository::new(vec![template]).expect("it holds together");
    let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    let server = Server::start(options, NodeConfig::new("root", Epoch(1)), repository).await.expect("a port");
    let client = Client::builder(server.address().to_string()).connect().await.expect("it serves");
    let mut rate = client.rate("db-orders").wants(PLENTY as f64).open().expect("a name");
    while rate.lease().rung != Rung::Leased || rate.lease().capacity.is_none_or(|has| has == Amount::ZERO) {
        rate.changed().await.expect("the client is open");
    }
    // Until something is saved up.
    rate.acquire(1).await.expect("it is leased");
    (server, client, rate)
}

// === the run ===

/// The same by so many threads at once.
fn together<T: Send>(callers: Vec<T>, run: impl Fn(T) -> Seen + Sync) -> Seen {
    std::thread::scope(|scope| {
        let threads: Vec<_> = callers.into_iter().map(|caller| scope.spawn(|| run(caller))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no caller fails")).fold(
            Seen::default(),
            |all, seen| Seen {
                granted: all.granted + seen.granted,
                failed: all.failed + seen.failed,
                times: [all.times, seen.times].concat(),
            },
        )
    })
}

fn say(name: &str, callers: usize, mut seen: Seen, messages: &str) {
    seen.times.sort_unstable();
    let at = |part: f64| seen.times[((seen.times.len() - 1) as f64 * part) as usize].as_nanos() as f64 / 1e3;
    let rate = (seen.granted + seen.failed) as f64 / RUN.as_secs_f64();
    println!(
        "{name:<10} {callers:>7} {rate:>13.0} {:>10.3} {:>10.3} {:>9.1} %   {messages}",
        at(0.5),
        at(0.99),
        100.0 * seen.failed as f64 / (seen.granted + seen.failed) as f64,
    );
}

#[tokio::main]
async fn main() {
    let Some(mut redis) = Redis::start() else {
        println!("redis-server is not installed");
        return;
    };
    let (server, client, rate) = open().await;
    let sent = || {
        let counts = client.metrics().counts;
        counts.asks + counts.sent
    };
    println!(
        "{:<10} {:>7} {:>13} {:>10} {:>10} {:>11}",
        "", "callers", "decisions/s", "p50 us", "p99 us", "failed"
    );
    for callers in CALLERS {
        let before = redis.processor();
        let connections = (0..callers).map(|_| Caller::new(redis.address)).collect();
        let seen = together(connections, |mut caller| caller.run());
        let busy = (redis.processor() - before).as_secs_f64() / RUN.as_secs_f64();
        let messages = format!("{} round trips, {:.0} % of a processor in Redis", seen.granted, 100.0 * busy);
        say("redis", callers, seen, &messages);

        let before = sent();
        let seen = together(vec![rate.clone(); callers], |rate| use_up(&rate));
        say("lease", callers, seen, &format!("{} messages to the server", sent() - before));
    }

    println!("\nafter both servers were killed:");
    let connections: Vec<_> = (0..2).map(|_| Caller::new(redis.address)).collect();
    redis.child.kill().expect("it runs");
    drop(server);
    say("redis", 2, together(connections, |mut caller| caller.run()), "");
    say("lease", 2, together(vec![rate.clone(); 2], |rate| use_up(&rate)), "");
    let left = rate.lease().remaining().unwrap_or_default();
    println!("the lease lasts for another {:.0} s", left.as_secs_f64());
}
