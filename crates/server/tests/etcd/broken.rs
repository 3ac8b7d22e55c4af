//! A server whose node breaks: it says so, goes, and leaves its key to another task.

use std::backtrace::Backtrace;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::{Ask, Band, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::etcd::EtcdOptions;
use lessor_server::shell::{ElectionOptions, Server, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::server::Etcd;
use super::task::{AUTHORITY, LONG, TTL, Task, elapsed};

/// Set when whatever is done under the lock is to panic.
static BREAKS: AtomicBool = AtomicBool::new(false);

/// Set when what the task that stands for election does under the lock is to panic, and nothing else.
static BREAKS_STANDING: AtomicBool = AtomicBool::new(false);

/// A clock that is read under the lock.
fn meter() -> Duration {
    assert!(!BREAKS.load(Ordering::Relaxed), "the books do not add up");
    Duration::ZERO
}

/// A clock that is read under the lock by whoever stands for election, too.
fn standing_meter() -> Duration {
    if BREAKS_STANDING.load(Ordering::Relaxed) {
        let callers = Backtrace::force_capture().to_string();
        assert!(!callers.contains("shell::standing::"), "the books of this very task do not add up");
    }
    Duration::ZERO
}

/// The request of a client that has nothing.
fn first_ask() -> Ask {
    let resource = ResourceId::new("db", 64).unwrap();
    Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("c", 64).unwrap(),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: None,
        reports: vec![Report::new(resource, [Band { priority: 0, subclients: 1, wants: 10.0 }])],
    }
}

/// The status of a page and what it says.
async fn page(server: &Server, path: &str) -> String {
    let asked = async {
        let mut socket = TcpStream::connect(server.http_address().unwrap()).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut said = String::new();
        socket.read_to_string(&mut said).await.unwrap();
        said
    };
    timeout(LONG, asked).await.expect("an answer in time")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_under_the_lock_gives_the_key_to_another_task() {
    gives_the_key_to_another(meter, &BREAKS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_task_that_holds_the_key_gives_it_to_another() {
    gives_the_key_to_another(standing_meter, &BREAKS_STANDING).await;
}

/// A leader whose node breaks as soon as `breaks` is set goes, and leaves its key to another task at once.
async fn gives_the_key_to_another(meter: fn() -> Duration, breaks: &AtomicBool) {
    let Some(etcd) = Etcd::started().await else { return };
    let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    options.http = Some(([127, 0, 0, 1], 0).into());
    options.meter = Some(meter);
    options.election = Some(ElectionOptions {
        ttl: TTL,
        authority: AUTHORITY,
        keep_alive: Duration::from_millis(400),
        ..ElectionOptions::new(EtcdOptions::new(&[etcd.url()]))
    });
    let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(100));
    let repository = Repository::new(vec![template]).unwrap();
    let server = Server::start(options, NodeConfig::new("root", Epoch(0)), repository).await.unwrap();
    let leads = async {
        while !page(&server, "/readyz?leads").await.starts_with("HTTP/1.1 200 ") {
            clock::sleep_until(clock::now() + Duration::from_millis(20)).await;
        }
    };
    timeout(LONG, leads).await.expect("it leads in time");
    let mut other = Task::start("b", &[etcd.url()]);
    assert_eq!(other.follows().await, server.address().to_string());

    breaks.store(true, Ordering::Relaxed);
    // What is granted is written, and the task that stands hears that it is.
    let driver = Arc::clone(server.driver());
    let _ = tokio::spawn(async move { driver.ask(None, &first_ask()) }).await;
    timeout(LONG, server.broken()).await.expect("it breaks at the next turn");
    let why = "the node has failed one of its own checks";
    for path in ["/healthz", "/readyz"] {
        let said = page(&server, path).await;
        assert!(said.starts_with("HTTP/1.1 503 ") && said.contains(why), "{path}: {said}");
    }
    let left = clock::now();
    server.abandon().await;
    other.elected().await;
    // Its key went with it, and not when it had not been heard of for long enough.
    assert!(elapsed(left) < TTL / 2, "{:?}", elapsed(left));
}
