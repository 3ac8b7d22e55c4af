//! A stranger's first hour: `tools/hour` from this checkout, and the example in axum as its header says to run it.
//!
//! The script builds a service of the two files that `docs/rust.md` shows, outside of the workspace, and counts what passes and
//! what is refused while the server is there, killed and there again. Then it does the same with the service in Python of
//! `docs/python.md`, whose limits are decorators.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "a flag is exactly one or nothing")]

mod house;

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustix::process::{Pid, Signal, kill_process};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::house::{AGES, House, eventually, repository_file};

/// Longer than a build of what the service and the example need takes.
const BUILD: Duration = Duration::from_secs(1200);

/// The example in a process of its own.
struct Service {
    child: Child,
    address: SocketAddr,
    http: Client<HttpConnector, Empty<Bytes>>,
}

/// An answer of the service.
#[derive(Debug)]
struct Answered {
    status: u16,
    retry_after: Option<u64>,
    body: String,
}

/// The commands of an example's header.
struct Header {
    serve: Vec<String>,
    run: Vec<String>,
    curl: String,
}

// === impl Service ===

impl Service {
    async fn start(program: &Path, server: SocketAddr) -> Service {
        let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let mut child = Command::new(program)
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

    /// Asks for `path` with the header `field`, and reads all of the answer.
    async fn ask(&self, path: &str, field: (&str, &str)) -> Answered {
        let request = hyper::Request::get(format!("http://{}{path}", self.address));
        let request = request.header(field.0, field.1).body(Empty::new()).unwrap();
        let answer = timeout(AGES, self.http.request(request)).await.expect("an answer in time").unwrap();
        let status = answer.status().as_u16();
        let retry_after =
            answer.headers().get("retry-after").map(|after| after.to_str().unwrap().parse().unwrap());
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        Answered { status, retry_after, body: String::from_utf8(body.to_vec()).unwrap() }
    }

    /// Ends as a terminal ends it.
    async fn stop(mut self) {
        let pid = Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        assert!(timeout(AGES, self.child.wait()).await.expect("it ends").unwrap().success());
    }
}

// === impl Header ===

impl Header {
    fn of(source: &Path) -> Header {
        let text = std::fs::read_to_string(source).unwrap();
        let commands: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//! $ ")).collect();
        let [serve, run, curl] = commands[..] else { panic!("three commands, and not {commands:?}") };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect();
        Header { serve: words(serve), run: words(run), curl: curl.to_owned() }
    }

    /// The value of an option of the server.
    fn option(&self, name: &str) -> &str {
        let at = self.serve.iter().position(|word| word == name);
        &self.serve[at.unwrap_or_else(|| panic!("no {name} in {:?}", self.serve)) + 1]
    }
}

/// The target folder of this build.
fn target() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_lessor")).ancestors().nth(2).unwrap()
}

/// A command that builds with what the build around this test has built, as that would do it.
///
/// Some build scripts, that of `ring` for one, run again where anything has changed that Cargo tells a test of its package: then
/// most of the workspace would be built anew, over what other tests are just using.
fn building(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let told =
        |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_", "OUT_DIR"].iter().any(|start| name.starts_with(start));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(told)) {
        command.env_remove(name);
    }
    command.env("CARGO_TARGET_DIR", target()).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// The example, built with what a test of the workspace has built: with that nothing is left to do.
async fn example() -> PathBuf {
    let mut command = building(env!("CARGO"));
    command.args(["build", "--workspace", "--locked", "--quiet", "--example", "axum"]);
    let built = timeout(BUILD, command.output()).await.expect("a build in time").unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target().join("debug/examples/axum")
}

#[tokio::test]
async fn a_service_of_ones_own_is_protected_within_the_hour_and_when_its_server_is_gone() {
    let mut command = building(repository_file("tools/hour"));
    command.arg("--here").env("LESSOR_BINARY", env!("CARGO_BIN_EXE_lessor"));
    let ended = timeout(BUILD, command.output()).await;
    let ended = ended.expect("it ends in time").unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    println!("{}", text(&ended.stdout));
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

#[tokio::test]
async fn the_example_in_axum_does_what_its_header_says() {
    let header = Header::of(&repository_file("crates/tower/examples/axum.rs"));
    assert_eq!(header.serve[..2], ["lessor", "serve"]);
    assert_eq!(header.run[..7], ["cargo", "run", "-p", "lessor-tower", "--example", "axum", "--"]);
    let (listen, url) = (header.option("--listen"), header.curl.rsplit(' ').next().unwrap());
    assert_eq!(header.run[7], listen, "the service asks the server of the header");
    let path = url.strip_prefix(&format!("http://{}", header.run[8])).expect("curl asks the service");
    let field = header.curl.split('\'').nth(1).and_then(|field| field.split_once(": ")).unwrap();
    assert!(header.option("--state-dir").starts_with("/tmp/"));

    let config = std::fs::read_to_string(repository_file(header.option("--config"))).unwrap();
    // A build may take longer than the server learns.
    let program = example().await;
    // Ten seconds of learning are as good as sixty.
    let config = config.replace("lease_length: 60", "lease_length: 10");
    let memory = tempfile::tempdir().unwrap();
    let mut server = House::open_with(&config, &["--state-dir", memory.path().to_str().unwrap()]).await;
    let service = Service::start(&program, server.address()).await;
    let first = service.ask(path, field).await;
    assert_eq!(first.status, 503, "{first:?}");
    eventually("the service knows why it has nothing", async || {
        service.ask(path, field).await.body.contains("the server is learning what is out for another ")
    })
    .await;
    let told = service.ask(path, field).await;
    let after = told.retry_after.expect("when to come again");
    assert!(told.status == 503 && (1..=11).contains(&after), "{told:?}");
    eventually("it is served", async || service.ask(path, field).await.status == 200).await;

    // In the first hour a start learns floors, and finds written down what leases are out.
    server.crash().await;
    let server = server.start_again().await;
    eventually("it is served by the next one", async || {
        let queries = server.resource("search/queries").await;
        queries.is_some_and(|queries| queries["leased"].as_f64() > Some(0.0))
    })
    .await;
    assert_eq!(server.metric("lessor_learning{resource=\"search/queries\"}").await, 0.0);
    assert!(server.has_logged("learning what floors are out"));
    eventually("it is served as before", async || service.ask(path, field).await.status == 200).await;
    service.stop().await;
    server.stop().await;
}
