//! The door for PoolCounter, over lines of text.

mod crowd;
mod script;
mod two;

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::front::{Door, Front};
use crate::house::{AGES, eventually};

/// Rules by which no answer depends on how long it takes: what lies elsewhere is waited for.
const RULES: &str = "wait: 30s\npool: {workers: 500}";

/// A connection on which lines are said and heard.
struct Line(BufReader<TcpStream>);

// === impl Line ===

impl Line {
    async fn open(address: &str) -> Line {
        Line(BufReader::new(TcpStream::connect(address).await.unwrap()))
    }

    async fn say(&mut self, line: &str) {
        self.tell(line).await.unwrap();
    }

    /// Says a line to one that may be gone.
    async fn tell(&mut self, line: &str) -> std::io::Result<()> {
        self.0.get_mut().write_all(format!("{line}\n").as_bytes()).await
    }

    /// The next line; nothing once the other side has closed.
    async fn heard(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = timeout(AGES, self.0.read_line(&mut line)).await.expect("an answer in time");
        read.is_ok_and(|count| count > 0).then(|| line.trim_end_matches('\n').to_owned())
    }

    /// Whether something has come that was not read.
    async fn is_told(&mut self) -> bool {
        let told = timeout(Duration::from_millis(20), self.0.fill_buf()).await;
        told.is_ok_and(|bytes| bytes.is_ok_and(|bytes| !bytes.is_empty()))
    }

    async fn hear(&mut self) -> String {
        self.heard().await.expect("it is open")
    }

    async fn ask(&mut self, line: &str) -> String {
        self.say(line).await;
        self.hear().await
    }
}

/// A process with a door for PoolCounter, with more flags.
async fn door(front: &Front, flags: &[&str]) -> Door {
    front.door(&[&["--pool", "127.0.0.1:0"], flags].concat()).await
}

#[tokio::test]
async fn without_a_server_nobody_knows_and_an_open_door_lets_in() {
    let mut front = Front::open("pool: {workers: 5}", "").await;
    front.server.crash().await;
    let shut = door(&front, &[]).await;
    let mut line = Line::open(&shut.pool).await;
    // It is said soon, however long the caller would wait.
    assert_eq!(line.ask("ACQ4ME key 1 9 3600").await, "ERROR NO_LEASE");
    assert_eq!(line.ask("ACQ4ME key 6 9 0").await, "ERROR BAD_SYNTAX");
    let open = door(&front, &["--pool-open"]).await;
    let (mut one, mut other) = (Line::open(&open.pool).await, Line::open(&open.pool).await);
    assert_eq!(one.ask("ACQ4ME key 1 9 0").await, "LOCKED");
    assert_eq!(other.ask("ACQ4ME key 1 9 0").await, "TIMEOUT", "what is known here holds");
    let page = open.http("GET /metrics", "", "").await.body;
    for wanted in [
        "lessor_pool_opened_total 1\n",
        "lessor_pool_working 1\n",
        "lessor_door_requests_total{door=\"Pool\",set=\"\",answer=\"Granted\"} 1\n",
        "lessor_door_requests_total{door=\"Pool\",set=\"\",answer=\"Refused\"} 1\n",
    ] {
        assert!(page.contains(wanted), "no {wanted:?} in {page}");
    }
    drop((line, one, other));
    shut.stop().await;
    open.stop().await;
}

#[tokio::test]
async fn a_door_that_ends_waits_for_the_work_that_is_under_way() {
    let front = Front::open(RULES, "").await;
    let door = door(&front, &["--drain", "100s"]).await;
    let (mut worker, mut waiter) = (Line::open(&door.pool).await, Line::open(&door.pool).await);
    let mut idle = Line::open(&door.pool).await;
    assert_eq!(worker.ask("ACQ4ME key 1 9 0").await, "LOCKED");
    waiter.say("ACQ4ME key 1 9 3600").await;
    eventually("it waits", async || worker.ask("STATS waiting_workers").await == "waiting_workers: 1").await;
    let address = door.pool.clone();
    let ended = tokio::spawn(door.stop());
    assert_eq!(idle.heard().await, None, "nothing keeps it");
    eventually("nobody is let in", async || TcpStream::connect(&address).await.is_err()).await;
    assert_eq!(worker.ask("RELEASE").await, "RELEASED");
    assert_eq!(worker.heard().await, None);
    assert_eq!(waiter.hear().await, "LOCKED");
    drop(waiter);
    assert!(ended.await.unwrap().contains("drained"));
    front.server.stop().await;
}
