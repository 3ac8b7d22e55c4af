//! A server whose node breaks: it says so, goes, and leaves its key to another task.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Amount, Epoch};
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

/// A clock that is read under the lock.
fn meter() -> Duration {
    assert!(!BREAKS.load(Ordering::Relaxed), "the books do not add up");
    Duration::ZERO
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

    BREAKS.store(true, Ordering::Relaxed);
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
