//! An agent that is replaced while a caller asks all the time, and one that is killed under load.

use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::Signal;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::callers::Callers;
use super::{ASKED, agent, rules};
use crate::front::{Door, Front};
use crate::house::eventually;

/// A supervisor, as systemd is one: it has a socket in the file system, hands it over, and is told how agents fare.
struct Supervisor {
    listener: UnixListener,
    path: PathBuf,
    notified: UnixDatagram,
    folder: tempfile::TempDir,
}

// === impl Supervisor ===

impl Supervisor {
    fn new() -> Supervisor {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("http.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let notified = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        notified.set_nonblocking(true).unwrap();
        Supervisor { listener, path, notified, folder }
    }

    fn address(&self) -> String {
        format!("unix:{}", self.path.display())
    }

    /// The same command with the socket as descriptor 3. A shell knows the number of the process that it becomes.
    fn with_socket(&self, command: &Command) -> Command {
        let mut shell = Command::new("sh");
        shell.args(["-c", "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$0\" \"$@\""]);
        shell.arg(command.as_std().get_program()).args(command.as_std().get_args()).kill_on_drop(true);
        let socket = self.listener.try_clone().unwrap();
        shell.stdin(Stdio::from(std::os::fd::OwnedFd::from(socket)));
        shell.env("NOTIFY_SOCKET", self.folder.path().join("notify")).env_remove("RUST_LOG");
        shell
    }

    /// All that it was told since it was last asked.
    fn told(&self) -> String {
        let (mut told, mut bytes) = (String::new(), [0; 4096]);
        while let Ok(count) = self.notified.recv(&mut bytes) {
            told.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
        }
        told
    }
}

#[tokio::test]
async fn an_agent_is_replaced_and_nobody_is_refused() {
    const LIMIT: usize = 4_000;
    let front = Front::open(&rules(&format!("{LIMIT}/1h")).replace("wait: 30s", "wait: 10ms"), "").await;
    let supervisor = Supervisor::new();
    let server = front.server.address().to_string();
    let start = async || {
        let mut command = agent("replaced", &server, front.rules());
        command.args(["--http", &supervisor.address(), "--drain", "5s"]);
        Door::run(supervisor.with_socket(&command)).await
    };
    let old = start().await;
    eventually("the supervisor is told", async || supervisor.told().starts_with("READY=1\n")).await;
    let mut callers = Callers::begin(&supervisor.address(), 1);
    callers.answered(200).await;
    // Neighbours under one id.
    let new = start().await;
    callers.answered(200).await;
    let by_both = callers.passed();
    let log = old.stop().await;
    assert!(log.contains("released but for what was used in windows"), "{log}");
    let told = supervisor.told();
    assert!(told.contains("STOPPING=1\n") && told.contains("STATUS=ready\n"), "{told}");
    callers.answered(200).await;
    assert!(by_both > 0 && supervisor.path.exists());
    // And one after the other: who comes meanwhile waits.
    let log = new.stop().await;
    assert!(log.contains("drained"), "{log}");
    let last = start().await;
    callers.answered(200).await;
    callers.use_up(LIMIT).await;
    callers.answered(200).await;
    callers.end().await;
    assert_eq!(callers.passed(), LIMIT, "both counts together");
    last.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn a_socket_without_a_door_is_named() {
    let supervisor = Supervisor::new();
    let front = Front::open(&rules("3/1h"), "").await;
    let mut command = agent("elsewhere", &front.server.address().to_string(), front.rules());
    command.args(["--http", "127.0.0.1:0"]);
    let outcome = supervisor.with_socket(&command).output().await.unwrap();
    let said = String::from_utf8(outcome.stderr).unwrap();
    let wanted =
        format!("handed over a socket at {}; wanted --rls, --http or --pool there", supervisor.address());
    assert!(!outcome.status.success() && said.contains(&wanted), "{said}");
    front.server.stop().await;
}

#[tokio::test]
async fn an_agent_that_is_killed_under_load_passes_nothing_over_the_limit() {
    const LIMIT: usize = 400;
    let front = Front::open(&rules(&format!("{LIMIT}/1h")).replace("wait: 30s", "wait: 10ms"), "").await;
    let supervisor = Supervisor::new();
    let server = front.server.address().to_string();
    let start = async || {
        let mut command = agent("killed", &server, front.rules());
        command.args(["--http", &supervisor.address()]);
        Door::run(supervisor.with_socket(&command)).await
    };
    let mut first = start().await;
    let passed = Arc::new(AtomicUsize::new(0));
    let mut asking = JoinSet::new();
    for _ in 0..8 {
        let (passed, path) = (Arc::clone(&passed), supervisor.path.clone());
        asking.spawn(async move {
            loop {
                let Ok(mut stream) = UnixStream::connect(&path).await else { return };
                let request =
                    format!("GET /check/edge HTTP/1.1\r\nhost: here\r\nconnection: close\r\n{ASKED}\r\n");
                let mut text = String::new();
                // One that is cut off has not passed, whatever was charged for it.
                let heard = async {
                    stream.write_all(request.as_bytes()).await?;
                    stream.read_to_string(&mut text).await
                };
                if heard.await.is_ok() && text.starts_with("HTTP/1.1 200") {
                    passed.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
    }
    let count = || passed.load(Ordering::Relaxed);
    eventually("something passes", async || count() >= 20).await;
    first.signal(Signal::KILL);
    first.crash().await;
    let before = count();
    // What the dead one had along is nobody's, and the rest is for its next life.
    let second = start().await;
    eventually("the next life is used up", async || {
        assert!(count() <= LIMIT, "{} of {LIMIT}", count());
        let mut stream = UnixStream::connect(&supervisor.path).await.unwrap();
        let request = format!("GET /check/edge HTTP/1.1\r\nhost: here\r\nconnection: close\r\n{ASKED}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text.starts_with("HTTP/1.1 429") && count() > before
    })
    .await;
    asking.abort_all();
    assert!(count() <= LIMIT, "{} of {LIMIT}", count());
    second.stop().await;
    front.server.stop().await;
}
