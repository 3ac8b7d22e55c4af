//! The walks of `docs/doors.md`, as the page has them: each line of a block, with ports that are free in the place of its own.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::house::{AGES, Outcome, eventually, repository_file};

/// The ports of the page.
const PORTS: [&str; 5] = ["15000", "8080", "8081", "15080", "7531"];

/// Somebody who does what the page says.
struct Walker {
    directory: TempDir,
    /// A port of the page, and one that is free here.
    ports: Vec<(&'static str, String)>,
    /// The processes that were left in the background, which end with the walk.
    background: Vec<Child>,
}

/// The lines of the first block for a console below a heading.
fn walk(heading: &str) -> Vec<String> {
    let page = std::fs::read_to_string(repository_file("docs/doors.md")).unwrap();
    let (_, after) = page.split_once(&format!("\n{heading}\n")).unwrap();
    let lines = after.lines().take_while(|line| !line.starts_with('#'));
    let commands: Vec<String> = lines.filter_map(|line| line.strip_prefix("$ ").map(str::to_owned)).collect();
    assert!(!commands.is_empty(), "{heading} has none");
    commands
}

// === impl Walker ===

impl Walker {
    fn new() -> Walker {
        let directory = tempfile::tempdir().unwrap();
        // All at once, so that they differ.
        let listeners = PORTS.map(|port| (port, TcpListener::bind("127.0.0.1:0").unwrap()));
        let free = |listener: TcpListener| listener.local_addr().unwrap().port().to_string();
        let ports = listeners.map(|(port, listener)| (port, free(listener))).into();
        Walker { directory, ports, background: Vec::new() }
    }

    fn here(&self, port: &str) -> &str {
        &self.ports.iter().find(|(there, _)| *there == port).expect("a port of the page").1
    }

    /// The shell with a line, where `lessor` is the program that is tested and listens where it may.
    fn shell(&self, line: &str) -> Command {
        let mut text = line.replace("/tmp/", &format!("{}/", self.directory.path().display()));
        for (there, here) in &self.ports {
            text = text.replace(&format!("127.0.0.1:{there}"), &format!("127.0.0.1:{here}"));
            text = text.replace(&format!("\"127.0.0.1\", {there}"), &format!("\"127.0.0.1\", {here}"));
        }
        let program = Path::new(env!("CARGO_BIN_EXE_lessor")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("sh");
        let server = format!("127.0.0.1:{}", self.here("15000"));
        command.arg("-c").arg(text).current_dir(repository_file("")).env("PATH", path);
        command.env("LESSOR_LISTEN", &server).env("LESSOR_HTTP", "127.0.0.1:0").env("LESSOR_SERVER", &server);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a line to its end.
    async fn run(&self, line: &str) -> String {
        let output = timeout(AGES, self.shell(line).output()).await.expect("it ends in time").unwrap();
        let Outcome { code, out, err } = Outcome::of(&output);
        assert_eq!(code, Some(0), "{line}: {out}{err}");
        out
    }

    /// Starts a line, and waits until something listens at that port of the page.
    async fn start(&self, line: &str, port: &str) -> Child {
        let mut child = self.shell(&format!("exec {line}")).stderr(Stdio::null()).spawn().unwrap();
        let address = format!("127.0.0.1:{}", self.here(port));
        eventually("it listens", async || {
            assert!(child.try_wait().unwrap().is_none(), "{line} has ended");
            TcpStream::connect(&address).await.is_ok()
        })
        .await;
        child
    }

    /// Does what a line says, as a reader of the page does. Returns what it printed.
    async fn follow(&mut self, line: &str) -> String {
        let waits_at = match line {
            _ if line.contains("lessor serve") => Some("15000"),
            _ if line.contains("lessor agent") => Some("15080"),
            _ if line.contains("--pool") => Some("7531"),
            _ if line.contains("lessor doors") => Some("8080"),
            _ => None,
        };
        match (line.strip_suffix(" &"), waits_at) {
            (Some(line), Some(port)) => {
                let child = self.start(line, port).await;
                self.background.push(child);
                String::new()
            }
            // It is ended by Ctrl-C.
            (None, Some(port)) => {
                let mut child = self.start(line, port).await;
                let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)).unwrap();
                kill_process(pid, Signal::INT).unwrap();
                let status = timeout(AGES, child.wait()).await.expect("it ends in time").unwrap();
                assert!(status.success(), "{line}: {status}");
                String::new()
            }
            (_, None) => self.run(line).await,
        }
    }
}

#[tokio::test]
async fn the_five_minutes_and_those_with_an_agent_end_as_the_page_says() {
    let mut walker = Walker::new();
    for line in walk("## Five minutes") {
        walker.follow(&line).await;
    }
    let check = "curl -si -H 'x-forwarded-uri: /api/x' http://127.0.0.1:8080/check/front";
    eventually("the doors of the walk let pass", async || walker.run(check).await.contains("200 OK")).await;
    let lines = walk("### Five minutes with an agent");
    let [agent, by_socket, ready, status] = &lines[..] else { panic!("{lines:?}") };
    walker.follow(agent).await;
    eventually("the agent lets pass", async || walker.run(by_socket).await.contains("200 OK")).await;
    eventually("it is ready", async || walker.run(ready).await == "ready\n").await;
    let said = walker.run(status).await;
    assert!(said.contains(": ready\n") && said.contains("edge/0|0:"), "{said}");
}

#[tokio::test]
async fn the_walk_of_poolcounter_ends_with_a_lock() {
    let mut walker = Walker::new();
    let mut said = String::new();
    for line in walk("### PoolCounter") {
        said = walker.follow(&line).await;
    }
    assert_eq!(said, "b'LOCKED\\n'\n");
}
