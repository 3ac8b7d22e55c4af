//! A server with the templates of some rules, and processes with doors before it.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use lessor_envoy_proto::rate_limit_service_client::RateLimitServiceClient;
use lessor_envoy_proto::{Entry, RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tonic::transport::Channel;

use crate::house::{AGES, House, Outcome, lessor, repository_file, run};

/// A server, and the files of its rules.
pub(crate) struct Front {
    pub(crate) server: House,
    rules: PathBuf,
    directory: TempDir,
}

/// A process with doors, ended when dropped.
pub(crate) struct Door {
    child: Child,
    /// Where it leases out, if it does.
    pub(crate) lease_out: Option<String>,
    pub(crate) rls: String,
    pub(crate) http: String,
    pub(crate) pool: String,
    log: tokio::task::JoinHandle<Vec<String>>,
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The header, in small letters.
    pub(crate) head: String,
    pub(crate) body: String,
}

// === impl Front ===

impl Front {
    /// A server with the templates that `lessor import` prints for these rules. It leases at once, as docs/doors.md says.
    pub(crate) async fn open(rules: &str, ratelimit: &str) -> Front {
        Front::start("127.0.0.1:0", rules, ratelimit, |templates| templates).await
    }

    /// The same at that address.
    pub(crate) async fn open_at(listen: &str, rules: &str, ratelimit: &str) -> Front {
        Front::start(listen, rules, ratelimit, |templates| templates).await
    }

    /// The same with those templates changed.
    pub(crate) async fn open_with(
        rules: &str,
        ratelimit: &str,
        alter: impl FnOnce(String) -> String,
    ) -> Front {
        Front::start("127.0.0.1:0", rules, ratelimit, alter).await
    }

    async fn start(
        listen: &str,
        rules: &str,
        ratelimit: &str,
        alter: impl FnOnce(String) -> String,
    ) -> Front {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("doors.yaml");
        std::fs::write(&path, rules).unwrap();
        std::fs::write(directory.path().join("ratelimit.yaml"), ratelimit).unwrap();
        let Outcome { code, out, err } = run(&["import", "--rules", path.to_str().unwrap()]).await;
        assert_eq!((code, &*err), (Some(0), ""));
        let templates = directory.path().join("templates.yaml");
        std::fs::write(&templates, alter(out)).unwrap();
        let state = directory.path().join("state");
        let serve = |config: &Path| {
            let mut command = lessor(&["serve", "--listen", listen, "--http", "127.0.0.1:0"]);
            command.args(["--log-format", "json", "--state-dir"]).arg(&state).arg("--config").arg(config);
            command
        };
        House::run(serve(&repository_file("configs/doors/first.yaml"))).await.stop().await;
        Front { server: House::run(serve(&templates)).await, rules: path, directory }
    }

    /// A server with the rules of configs/doors, where minutes are hours and waits are long, so that no test depends on how long it takes.
    pub(crate) async fn of_the_repository() -> Front {
        let text = |file: &str| {
            let text = std::fs::read_to_string(repository_file("configs/doors").join(file)).unwrap();
            text.replace("/1m", "/1h").replace("minute", "hour").replace("version: 1\n", "wait: 30s\n")
        };
        Front::open(&text("doors.yaml"), &text("ratelimit.yaml")).await
    }

    /// The file of its rules.
    pub(crate) fn rules(&self) -> &Path {
        &self.rules
    }

    /// Another process with doors, with more flags.
    pub(crate) async fn door(&self, flags: &[&str]) -> Door {
        let server = self.server.address().to_string();
        let mut command =
            lessor(&["doors", "--server", &server, "--rls", "127.0.0.1:0", "--http", "127.0.0.1:0"]);
        command.args(["--log-format", "json", "--rules"]).arg(&self.rules).args(flags);
        Door::run(command).await
    }

    /// A process that takes the place of envoyproxy/ratelimit, with its variables: its files are those of the server's templates.
    pub(crate) async fn ratelimit(&self, variables: &[(&str, &str)]) -> Door {
        let config = self.directory.path().join("current/shop/config");
        std::fs::create_dir_all(&config).unwrap();
        std::fs::copy(self.directory.path().join("ratelimit.yaml"), config.join("one.yaml")).unwrap();
        let server = self.server.address().to_string();
        let mut command = lessor(&["doors", "--as", "ratelimit", "--server", &server]);
        command
            .env("RUNTIME_ROOT", self.directory.path().join("current"))
            .env("RUNTIME_SUBDIRECTORY", "shop");
        command.envs([("HOST", "127.0.0.1"), ("PORT", "0"), ("GRPC_HOST", "127.0.0.1"), ("GRPC_PORT", "0")]);
        command.envs([("LOG_FORMAT", "json"), ("LOG_LEVEL", "INFO")]).envs(variables.iter().copied());
        Door::run(command).await
    }

    /// Puts other rules in the place of those there, in one step as editors do.
    pub(crate) fn replace(&self, rules: &str) {
        let beside = self.directory.path().join("beside.yaml");
        std::fs::write(&beside, rules).unwrap();
        std::fs::rename(&beside, &self.rules).unwrap();
    }
}

// === impl Door ===

impl Door {
    pub(crate) async fn run(mut command: Command) -> Door {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut log, mut lease_out) = (Vec::new(), None);
        let serving = loop {
            let line = timeout(AGES, lines.next_line()).await.expect("it starts in time").unwrap();
            let line = line.unwrap_or_else(|| panic!("it ended:\n{}", log.join("\n")));
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            log.push(line);
            if entry["fields"]["message"] == "serving" {
                match entry["fields"]["address"].as_str() {
                    Some(leaf) => lease_out = Some(leaf.to_owned()),
                    None => break entry,
                }
            }
        };
        let address = |field: &str| serving["fields"][field].as_str().unwrap().to_owned();
        let (rls, http, pool) = (address("rls"), address("http"), address("pool"));
        let log = tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                log.push(line);
            }
            log
        });
        Door { child, lease_out, rls, http, pool, log }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().expect("it has not ended")).ok().and_then(Pid::from_raw);
        kill_process(pid.unwrap(), signal).unwrap();
    }

    /// Ends it as a crash would.
    pub(crate) async fn crash(&mut self) {
        timeout(AGES, self.child.kill()).await.expect("it ends in time").expect("it has not ended before");
    }

    /// Ends it as an operator would, which has to be in order. Returns its log.
    pub(crate) async fn stop(mut self) -> String {
        self.signal(Signal::TERM);
        let status = timeout(AGES, self.child.wait()).await.expect("it ends in time").unwrap();
        assert!(status.success(), "{status}");
        self.log.await.unwrap().join("\n")
    }

    /// The rate limit service over a connection of its own.
    pub(crate) async fn service(&self) -> RateLimitServiceClient<Channel> {
        let endpoint = Channel::from_shared(format!("http://{}", self.rls)).unwrap();
        RateLimitServiceClient::new(timeout(AGES, endpoint.connect()).await.unwrap().unwrap())
    }

    /// The answer to a request over HTTP.
    pub(crate) async fn http(&self, line: &str, fields: &str, body: &str) -> Answer {
        http(&self.http, line, fields, body).await
    }
}

/// An address at a port that is free, or was a moment ago.
pub(crate) fn free_address() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// The answer of a service to hits of these descriptors, each of which is one entry.
pub(crate) async fn ask(
    service: &mut RateLimitServiceClient<Channel>,
    entries: &[(&str, &str)],
    hits: u32,
) -> Result<RateLimitResponse, tonic::Status> {
    let descriptor = |&(key, value): &(&str, &str)| RateLimitDescriptor {
        entries: vec![Entry { key: key.to_owned(), value: value.to_owned() }],
        ..RateLimitDescriptor::default()
    };
    let descriptors = entries.iter().map(descriptor).collect();
    let request = RateLimitRequest { domain: "shop".to_owned(), descriptors, hits_addend: hits };
    let answer = timeout(AGES, service.should_rate_limit(request)).await.expect("an answer in time");
    answer.map(tonic::Response::into_inner)
}

/// Sends a request of HTTP/1.1 with these fields, each with its line's end, and reads until the connection is closed.
pub(crate) async fn http(address: &str, line: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: front\r\nconnection: close\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
    );
    let answered = async {
        match address.strip_prefix("unix:") {
            Some(path) => exchange(UnixStream::connect(path).await.unwrap(), &request).await,
            None => exchange(TcpStream::connect(address).await.unwrap(), &request).await,
        }
    };
    let text = timeout(AGES, answered).await.expect("an answer in time");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no header in {text:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// Says that, and hears all that comes until the connection is closed.
async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, said: &str) -> String {
    stream.write_all(said.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    String::from_utf8(bytes).unwrap()
}
