//! A stranger's hour, as a script: a file of one's own is checked and served, a service in axum keeps its tenants to it, the
//! server is killed and comes back, and the service goes.
//!
//! Two counts at every step: the greedy tenant never has more than its policy says, in no window of a second; and nobody who
//! stays within it is refused. The same in Python, with a decorator, is `python/tests/test_limited.py`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is over the capacity comes out of the books, which are exact")]
#![expect(clippy::disallowed_methods, reason = "what is seen from outside goes by an ordinary clock")]

mod house;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::house::{AGES, House, eventually, run};

/// Twenty hits in any second for each tenant, where a search costs two; four at a time.
const CONFIGURATION: &str = "resources:
- identifier_glob: search/workers
  kind: gauge
  capacity: 4
  safe_capacity: 0
  algorithm: &usual {kind: FAIR_SHARE, lease_length: 30, refresh_interval: 1, learning_mode_duration: 0}
- identifier_glob: search/queries
  capacity: 400
  safe_fraction: 0.1
  algorithm: *usual
  domains:
    scope: client
    default: {tiers: [{limit: 20, window: 1s, active: 1s}]}
";
const SEARCHES_A_SECOND: usize = 10;
/// The time for which it is looked at what tenants have, at each step.
const STEP: Duration = Duration::from_secs(3);

/// The service of `crates/tower/examples/axum.rs`, in a process of its own.
struct Service {
    child: Child,
    address: SocketAddr,
    http: Client<HttpConnector, Empty<Bytes>>,
}

/// The answers that one tenant has had: when those came that found something, and how many were refused.
#[derive(Default)]
struct Answers {
    found: Vec<Instant>,
    refused: usize,
}

// === impl Service ===

impl Service {
    async fn start(server: SocketAddr) -> Service {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut child = Command::new(example().await)
            .args([server.to_string(), address.to_string()])
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually("the service listens", async || {
            assert!(child.try_wait().unwrap().is_none(), "the service has ended");
            TcpStream::connect(address).await.is_ok()
        })
        .await;
        Service { child, address, http: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Searches once, and reads all of the answer: then its worker is free again. Returns the status.
    async fn ask(&self, tenant: &str) -> u16 {
        let request = hyper::Request::get(format!("http://{}/search", self.address));
        let request = request.header("x-tenant", tenant).body(Empty::new()).unwrap();
        let answer = timeout(AGES, self.http.request(request)).await.expect("an answer in time").unwrap();
        let (status, fields) = (answer.status().as_u16(), answer.headers());
        let says_when = fields.contains_key("retry-after") && fields.contains_key("ratelimit");
        assert!(status != 429 || says_when, "{fields:?}");
        answer.into_body().collect().await.unwrap();
        status
    }

    /// Searches as `tenant` for a step, with so long between two searches, and until so many have found something; sees what
    /// comes of each.
    async fn search(&self, tenant: &str, pause: Duration, least: usize) -> Answers {
        let (begun, mut answers) = (Instant::now(), Answers::default());
        while begun.elapsed() < STEP || answers.found.len() < least {
            assert!(begun.elapsed() < AGES, "{tenant} has found {} of {least}", answers.found.len());
            match self.ask(tenant).await {
                200 => answers.found.push(Instant::now()),
                429 => answers.refused += 1,
                other => panic!("{tenant} is answered {other}"),
            }
            sleep(pause).await;
        }
        answers
    }

    /// Two tenants at once, one of which is greedy.
    async fn serves(&self, when: &str) {
        let least = SEARCHES_A_SECOND * (STEP.as_secs() as usize - 1);
        let (greedy, modest) = tokio::join!(
            self.search("greedy", Duration::from_millis(5), least),
            self.search("modest", Duration::from_millis(300), 3),
        );
        assert_eq!(modest.refused, 0, "{when}: who stays within the policy is never refused");
        assert!(greedy.refused > 0, "{when}: {} were found", greedy.found.len());
        // What is under way while a window ends is in the next one for the policy, and here in this.
        for (at, first) in greedy.found.iter().enumerate() {
            let second =
                greedy.found[at..].iter().take_while(|found| found.duration_since(*first).as_millis() < 1000);
            assert!(
                second.count() <= SEARCHES_A_SECOND + 1,
                "{when}: more than the policy allows in a second"
            );
        }
    }

    /// Ends as a terminal ends it.
    async fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        assert!(timeout(AGES, self.child.wait()).await.expect("it ends").unwrap().success());
    }
}

/// The example as it was built, or else is built now.
async fn example() -> PathBuf {
    let mut command = Command::new(env!("CARGO"));
    command.args(["build", "--locked", "--quiet", "-p", "lessor-tower", "--example", "axum"]);
    let built = timeout(AGES * 20, command.stdin(Stdio::null()).kill_on_drop(true).output()).await;
    let built = built.expect("a build in time").unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    PathBuf::from(env!("CARGO_BIN_EXE_lessor")).with_file_name("examples").join("axum")
}

#[tokio::test]
async fn a_service_of_ones_own_is_protected_within_the_hour_and_when_its_server_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    std::fs::write(&file, CONFIGURATION).unwrap();
    let checked = run(&["check", file.to_str().unwrap()]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");

    let memory = folder.path().join("memory");
    let mut server = House::open_with(CONFIGURATION, &["--state-dir", memory.to_str().unwrap()]).await;
    let service = Service::start(server.address()).await;
    // Its leases come in a moment, with nothing saved up; by the end of this there is.
    eventually("the first search is served", async || service.ask("stranger").await == 200).await;
    service.search("stranger", Duration::from_millis(50), 1).await;
    service.serves("from the start").await;

    server.crash().await;
    service.serves("while nobody leases anything").await;
    let server = server.start_again().await;
    eventually("the service has its lease again", async || {
        server
            .resource("search/queries")
            .await
            .is_some_and(|resource| resource["leased"].as_f64() > Some(0.0))
    })
    .await;
    service.serves("after the server has come back").await;
    assert_eq!(server.metric("lessor_overcommitment{resource=\"search/queries\"}").await, 0.0);

    service.stop().await;
    eventually("what it had is free", async || {
        server
            .resource("search/queries")
            .await
            .is_none_or(|resource| resource["leased"].as_f64() == Some(0.0))
    })
    .await;
    server.stop().await;
}
