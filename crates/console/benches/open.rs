//! The cost of a console that somebody has open, at a root with a thousand resources: `cargo bench -p lessor-console --bench open`.
//!
//! The server is this process, and everybody who looks is another: this program again. A tenth of all holders want something else in
//! every second, whether anybody looks or not. Then the same is measured without figures that are kept and without anybody who
//! looks, with the figures, and with one and ten consoles at the list of resources and at one resource.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_console::Console;
use lessor_proto::message::Ask;
use lessor_proto::wire::{GetCapacityRequest, ResourceRequest};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::driver::Driver;
use lessor_server::shell::{Server, ServerOptions};
use rustix::time::{ClockId, clock_gettime};

const RESOURCES: usize = 1_000;
/// Clients of each.
const CLIENTS: usize = 10;
/// The time that each part is measured for.
const PART: Duration = Duration::from_secs(20);
/// The first argument of a process that looks; then comes the address of the server, and what it looks at.
const LOOKS: &str = "looks";

/// One of the cases that are measured.
struct Case {
    what: &'static str,
    /// The time for which figures are kept, in seconds.
    history: u64,
    /// Consoles at the list of resources.
    lists: usize,
    /// Consoles at one resource.
    resources: usize,
}

const CASES: [Case; 5] = [
    Case { what: "nothing kept, nobody looks", history: 0, lists: 0, resources: 0 },
    Case { what: "figures kept, nobody looks", history: 900, lists: 0, resources: 0 },
    Case { what: "one console at the list", history: 900, lists: 1, resources: 0 },
    Case { what: "one console at a resource", history: 900, lists: 0, resources: 1 },
    Case { what: "ten consoles", history: 900, lists: 5, resources: 5 },
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match &arguments[1..] {
        [role, address, view] if role == LOOKS => look(address, view),
        _ => tokio::runtime::Runtime::new().expect("a runtime").block_on(measure()),
    }
}

async fn measure() {
    println!("{RESOURCES} resources with {CLIENTS} clients each, parts of {} s", PART.as_secs());
    println!("{:<44} {:>10} {:>9} {:>9} {:>9}", "", "processor", "turns", "> 1 ms", "> 2 ms");
    for Case { what, history, lists, resources } in CASES {
        let server = start(history).await;
        crowd(server.driver(), 0);
        let views = std::iter::repeat_n("list", lists).chain(std::iter::repeat_n("resource", resources));
        let lookers: Vec<Looker> = views.map(|view| Looker::start(server.address(), view)).collect();
        // What comes once, at the beginning.
        live(server.driver(), Duration::from_secs(3)).await;
        let before = (processor(ClockId::ProcessCPUTime), turns(server.address()).await);
        live(server.driver(), PART).await;
        let after = (processor(ClockId::ProcessCPUTime), turns(server.address()).await);
        let used = (after.0 - before.0).as_secs_f64() / PART.as_secs_f64();
        let [all, one, two] = [0, 1, 2].map(|index| after.1[index] - before.1[index]);
        println!("{what:<44} {:>8.2} % {all:>9} {one:>9} {two:>9}", 100.0 * used);
        drop(lookers);
        server.drain().await;
    }
}

async fn start(history: u64) -> Server {
    let console = Console { history: Duration::from_secs(history) };
    let options = ServerOptions {
        pages: Some(console.pages()),
        meter: Some(|| processor(ClockId::ThreadCPUTime)),
        ..ServerOptions::new(([127, 0, 0, 1], 0).into())
    };
    let template = Template {
        lease_length: Duration::from_secs(300),
        ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(100))
    };
    let config = NodeConfig::new("root".to_owned(), Epoch(1));
    let repository = Repository::new(vec![template]).expect("templates");
    Server::start(options, config, repository).await.expect("a server")
}

/// Every second a tenth of all want something else, for so long.
async fn live(driver: &Driver, time: Duration) {
    let end = clock::now() + time;
    for round in 1.. {
        let next = clock::now() + Duration::from_secs(1);
        crowd(driver, round);
        if next > end {
            break;
        }
        clock::sleep_until(next).await;
    }
}

/// All holders report in the first round, and a tenth of them in each other.
fn crowd(driver: &Driver, round: usize) {
    let client = |number: usize| {
        let resource = (0..RESOURCES).map(|index| ResourceRequest {
            resource_id: Some(format!("resource-{index:04}")),
            priority: Some(0),
            wants: Some(5.0 + ((index + number * 7 + round) % 20) as f64),
            ..ResourceRequest::default()
        });
        let request = GetCapacityRequest {
            client_id: Some(format!("client-{number}")),
            incarnation: Some(number as u64 + 1),
            report_id: Some(round as u64 + 1),
            resource: resource.collect(),
            ..GetCapacityRequest::default()
        };
        let ask = Ask::from_client(request, driver.limits()).expect("it makes sense");
        driver.ask(None, &ask).expect("it is served");
    };
    match round {
        0 => (0..CLIENTS).for_each(client),
        _ => client(round % CLIENTS),
    }
}

fn processor(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanos.unwrap_or_default())
}

/// The turns under the lock until now: all, and those that took longer than one and two milliseconds of processor.
async fn turns(server: SocketAddr) -> [u64; 3] {
    let page =
        tokio::task::spawn_blocking(move || page(server, "/metrics")).await.expect("it does not panic");
    let name = "lessor_turn_metered_seconds";
    let count = |line: &str| {
        line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok()).unwrap_or(0.0) as u64
    };
    let lines: Vec<&str> = page.lines().filter(|line| line.starts_with(name)).collect();
    let all: u64 = lines.iter().filter(|line| line.contains("_count")).map(|line| count(line)).sum();
    let within = |bound: &str| -> u64 {
        let part = format!("le=\"{bound}\"");
        lines.iter().filter(|line| line.contains(&part)).map(|line| count(line)).sum()
    };
    [all, all - within("0.001"), all - within("0.002")]
}

fn page(server: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(server).expect("it takes connections");
    let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is read");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

/// A process that looks, until it is dropped.
struct Looker(Child);

// === impl Looker ===

impl Looker {
    fn start(server: SocketAddr, view: &str) -> Looker {
        let program = std::env::current_exe().expect("this program");
        let child =
            Command::new(program).args([LOOKS, &server.to_string(), view]).stdin(Stdio::null()).spawn();
        Looker(child.expect("it starts"))
    }
}

impl Drop for Looker {
    fn drop(&mut self) {
        // It may have ended with the server.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks as the page does: listens, and asks again and again for what its view shows.
fn look(address: &str, view: &str) {
    let server: SocketAddr = address.parse().expect("an address");
    std::thread::spawn(move || {
        let mut stream = TcpStream::connect(server).expect("it takes connections");
        let request = "GET /v1/events HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("it is read");
        let heard: usize = BufReader::new(stream).lines().map_while(Result::ok).map(|line| line.len()).sum();
        std::process::exit(i32::from(heard == 0));
    });
    let asked: &[(&str, u64)] = match view {
        "list" => &[
            ("/v1/holders?resource=resource-0000&where=kind%3Dnode&limit=1000", 2),
            ("/v1/tree?resources=1&matching=resource-0000", 2),
            ("/v1/series?field=outstanding&points=90", 5),
            ("/v1/series?field=wants&points=90", 5),
        ],
        _ => &[
            ("/v1/holders?resource=resource-0000&sort=-wants&limit=50", 1),
            ("/v1/holders?resource=resource-0000&sort=-wants_per_weight&limit=1000", 2),
            ("/v1/explain?resource=resource-0000", 2),
            ("/v1/series?resource=resource-0000", 3),
        ],
    };
    for second in 0_u64.. {
        for (path, every) in asked {
            if second % every == 0 {
                page(server, path);
            }
        }
        std::thread::park_timeout(Duration::from_secs(1));
    }
}
