//! The binary itself at work: a server on a port that the system chose, and commands that run to their end.
//!
//! Whatever is waited for is a condition, and gives up after [`AGES`] with what was waited for. Processes end with the
//! test that started them.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod certificates;
pub(crate) mod clients;
pub(crate) mod diary;
pub(crate) mod etcd;
pub(crate) mod holder;
pub(crate) mod page;
pub(crate) mod prometheus;
pub(crate) mod proxy;
pub(crate) mod relay;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lessor_proto::wire::capacity_client::CapacityClient;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use self::page::Page;

/// Longer than anything should take on any machine.
pub(crate) const AGES: Duration = Duration::from_secs(120);

/// The log of a server; printed when the test fails.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

/// A server that runs until it is stopped, killed or dropped.
pub(crate) struct House {
    child: Child,
    address: SocketAddr,
    http: SocketAddr,
    plain: Option<SocketAddr>,
    admin: Option<String>,
    config: PathBuf,
    log: Log,
    directory: TempDir,
    flags: Vec<String>,
}

// === impl House ===

impl House {
    /// A server of this configuration.
    pub(crate) async fn open(config: &str) -> House {
        House::open_with(config, &[]).await
    }

    /// A server of this configuration with more flags.
    pub(crate) async fn open_with(config: &str, flags: &[&str]) -> House {
        let directory = tempfile::tempdir().expect("a directory for a while");
        let path = directory.path().join("lessor.yaml");
        std::fs::write(&path, config).expect("the configuration is written");
        let flags = flags.iter().map(ToString::to_string).collect();
        House::start(directory, path, "127.0.0.1:0", flags).await
    }

    async fn start(directory: TempDir, config: PathBuf, listen: &str, flags: Vec<String>) -> House {
        let mut command =
            lessor(&["serve", "--listen", listen, "--http", "127.0.0.1:0", "--log-format", "json"]);
        command.arg("--config").arg(&config).args(&flags);
        House { config, directory, flags, ..House::run(command).await }
    }

    /// A server that this command starts, which has to ask for HTTP on a port of its own and for logs in JSON.
    pub(crate) async fn run(mut command: Command) -> House {
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the binary starts");
        let log = Log::default();
        let errors = child.stderr.take().expect("it is piped");
        let serving = follow(errors, log.clone());
        let line = timeout(AGES, serving).await.expect("it starts in time").expect("it says that it serves");
        let address = |field: &str| -> SocketAddr {
            let text = line["fields"][field].as_str().unwrap_or_else(|| panic!("no {field} in {line}"));
            text.parse().unwrap_or_else(|error| panic!("{field} {text:?}: {error}"))
        };
        let plain = line["fields"]["plain"].is_string().then(|| address("plain"));
        let (address, http) = (address("address"), address("http"));
        let admin = line["fields"]["admin"].as_str().map(str::to_owned);
        let directory = tempfile::tempdir().expect("a directory for a while");
        House {
            child,
            address,
            http,
            plain,
            admin,
            config: PathBuf::new(),
            log,
            directory,
            flags: Vec::new(),
        }
    }

    /// Where it serves gRPC and HTTP.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves HTTP alone.
    pub(crate) fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where it serves in plain what it serves over TLS elsewhere.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.plain.expect("it was asked to")
    }

    /// Where it serves gRPC in plain, which is the only place if nothing goes over TLS.
    pub(crate) fn in_plain(&self) -> SocketAddr {
        self.plain.unwrap_or(self.address)
    }

    /// Where it serves operators, as `lessor admin` is told; absent: nowhere.
    pub(crate) fn admin(&self) -> Option<&str> {
        self.admin.as_deref()
    }

    /// The lines of its log in which that occurs.
    pub(crate) fn logged_with(&self, part: &str) -> Vec<String> {
        let log = self.log.0.lock().unwrap();
        log.iter().filter(|line| line.contains(part)).cloned().collect()
    }

    /// A connection of its own.
    pub(crate) async fn connect(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("an address");
        timeout(AGES, endpoint.connect()).await.expect("it answers in time").expect("it takes connections")
    }

    /// Doorman's service over a connection of its own.
    pub(crate) async fn capacity(&self) -> CapacityClient<Channel> {
        CapacityClient::new(self.connect().await)
    }

    /// A page of the port that also serves gRPC.
    pub(crate) async fn page(&self, path: &str) -> Page {
        page::get(self.address, path).await
    }

    /// The status of one resource; none if nobody holds or wants it.
    pub(crate) async fn resource(&self, name: &str) -> Option<serde_json::Value> {
        let status = self.page("/status").await.json();
        let resources = status["status"]["resources"].as_array().expect("a list of resources");
        resources.iter().find(|resource| resource["resource"] == name).cloned()
    }

    /// The value of one line of `/metrics`: the name with its labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.page("/metrics").await.body;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().expect("a number")
    }

    /// The file that holds its configuration.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// Puts another configuration in the place of the one it was started with, in one step as editors do.
    pub(crate) fn configure(&self, config: &str) {
        let beside = self.directory.path().join("beside.yaml");
        std::fs::write(&beside, config).expect("the configuration is written");
        std::fs::rename(&beside, &self.config).expect("it takes the place");
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        let id = self.child.id().expect("it has not ended");
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("it has not ended");
    }

    /// The most memory that it has had at once, in bytes.
    pub(crate) fn most_memory(&self) -> usize {
        let id = self.child.id().expect("it has not ended");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("it has a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its memory");
        let kib = line.trim().strip_suffix(" kB").and_then(|kib| kib.parse::<usize>().ok());
        kib.expect("a number") << 10
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        timeout(AGES, self.child.wait()).await.expect("it ends in time").expect("it can be waited for")
    }

    /// Ends it as an operator would, which has to be in order: so it has lived until here.
    pub(crate) async fn stop(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert!(status.success(), "{status}");
    }

    /// Ends it as a crash would.
    pub(crate) async fn crash(&mut self) {
        timeout(AGES, self.child.kill()).await.expect("it ends in time").expect("it has not ended before");
    }

    /// Another one at the same address and with the same configuration file, after a crash.
    pub(crate) async fn start_again(self) -> House {
        let House { address, config, directory, flags, .. } = self;
        House::start(directory, config, &address.to_string(), flags).await
    }

    /// The same with other flags.
    pub(crate) async fn start_again_with(self, flags: &[&str]) -> House {
        let flags = flags.iter().map(ToString::to_string).collect();
        House { flags, ..self }.start_again().await
    }

    /// Whether it has logged a message that begins so.
    pub(crate) fn has_logged(&self, message: &str) -> bool {
        let begins = |line: &String| line.contains(&format!("\"message\":\"{message}"));
        self.log.0.lock().unwrap().iter().any(begins)
    }

    /// The first line of its log with that message.
    pub(crate) fn logged(&self, message: &str) -> Option<serde_json::Value> {
        let log = self.log.0.lock().unwrap();
        let mut lines = log.iter().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        lines.find(|line| line["fields"]["message"] == message)
    }

    /// Whether a line of its log contains that.
    pub(crate) fn has_logged_part(&self, part: &str) -> bool {
        self.log.0.lock().unwrap().iter().any(|line| line.contains(part))
    }

    /// Whether a line with that message says this as well.
    pub(crate) fn has_logged_of(&self, message: &str, what: &str) -> bool {
        let message = format!("\"message\":\"{message}\"");
        self.log.0.lock().unwrap().iter().any(|line| line.contains(&message) && line.contains(what))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the server has logged:\n{}", self.0.lock().unwrap().join("\n"));
        }
    }
}

/// Reads the log to its end, and gives back the line that says it serves.
fn follow(errors: ChildStderr, log: Log) -> tokio::sync::oneshot::Receiver<serde_json::Value> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut tell = Some(tell);
    tokio::spawn(async move {
        let mut lines = BufReader::new(errors).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let entry: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            log.0.lock().unwrap().push(line);
            if entry["fields"]["message"] == "serving"
                && let Some(tell) = tell.take()
            {
                // Nobody listens if the test has given up.
                let _ = tell.send(entry);
            }
        }
    });
    told
}

/// The binary, ended when dropped, with nothing in its environment that changes what it does.
pub(crate) fn lessor(arguments: &[&str]) -> Command {
    binary(Path::new(env!("CARGO_BIN_EXE_lessor")), arguments)
}

/// The same of another binary.
pub(crate) fn binary(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name == "RUST_LOG" || name.to_string_lossy().starts_with("LESSOR_") {
            command.env_remove(name);
        }
    }
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command to its end.
pub(crate) async fn run(arguments: &[&str]) -> Outcome {
    run_for(AGES, arguments).await
}

/// Runs a command to its end, which comes before so much time has passed.
pub(crate) async fn run_for(longest: Duration, arguments: &[&str]) -> Outcome {
    let output = timeout(longest, lessor(arguments).output()).await;
    let output = output.unwrap_or_else(|_| panic!("lessor {arguments:?} does not end"));
    Outcome::of(&output.expect("the binary starts"))
}

/// The outcome of a command.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

// === impl Outcome ===

impl Outcome {
    pub(crate) fn of(output: &Output) -> Outcome {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        Outcome { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut timer = tokio::time::interval(Duration::from_millis(20));
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let waiting = async {
        while !holds().await {
            timer.tick().await;
        }
    };
    assert!(timeout(AGES, waiting).await.is_ok(), "never: {what}");
}

/// A file of the repository.
pub(crate) fn repository_file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A configuration with one template for everything, leases of some seconds and nothing to learn.
pub(crate) fn everything(capacity: f64, lease_seconds: u32) -> String {
    template(
        "*",
        capacity,
        &format!(
            "{{kind: FAIR_SHARE, lease_length: {lease_seconds}, refresh_interval: 1, learning_mode_duration: 0}}"
        ),
    )
}

/// A configuration with one template.
pub(crate) fn template(glob: &str, capacity: f64, algorithm: &str) -> String {
    format!(
        "resources:\n- identifier_glob: \"{glob}\"\n  capacity: {capacity}\n  safe_capacity: 5\n  algorithm: {algorithm}\n"
    )
}
