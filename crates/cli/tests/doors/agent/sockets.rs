//! Sockets of the file system: their rights, those of others, and many programs at one.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::{ASKED, agent, check, readiness, rules};
use crate::front::{Door, Front};
use crate::house::{eventually, run};

#[tokio::test]
async fn a_live_socket_is_not_taken_and_a_stale_one_is() {
    let front = Front::open(&rules("3/1h"), "").await;
    let server = front.server.address().to_string();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let address = format!("unix:{}", path.display());
    let start = async |name: &str| {
        let mut command = agent(name, &server, front.rules());
        command.args(["--http", &address, "--socket-mode", "0600"]);
        Door::run(command).await
    };
    let mut first = start("owner").await;
    assert_eq!(first.http, address);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let rules = front.rules().to_str().unwrap();
    let thief =
        run(&["agent", "--server", &server, "--id", "thief", "--doors", rules, "--http", &address]).await;
    assert_eq!(thief.code, Some(1));
    assert!(thief.err.contains(&format!("--http: {address}: somebody listens there")), "{}", thief.err);
    assert_eq!(check(&address).await.status, 200);
    first.crash().await;
    assert!(path.exists(), "it has left it behind");
    let second = start("owner").await;
    assert_eq!(readiness(&address).await.0, 200);
    second.stop().await;
    assert!(!path.exists());
    front.server.stop().await;
}

#[tokio::test]
async fn two_hundred_programs_share_one_socket_and_one_limit() {
    const PROGRAMS: usize = 200;
    const LIMIT: usize = 150;
    let front = Front::open(&rules(&format!("{LIMIT}/1h")), "").await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("http.sock");
    let mut command = agent("busy", &front.server.address().to_string(), front.rules());
    command.arg("--http").arg(format!("unix:{}", path.display()));
    let agent = Door::run(command).await;
    let mut programs = JoinSet::new();
    for _ in 0..PROGRAMS {
        let path = path.clone();
        programs.spawn(async move {
            let mut stream = BufReader::new(UnixStream::connect(path).await.unwrap());
            let mut passed = 0;
            // Each keeps its connection.
            for _ in 0..3 {
                let request = format!("GET /check/edge HTTP/1.1\r\nhost: here\r\n{ASKED}\r\n");
                stream.write_all(request.as_bytes()).await.unwrap();
                match answer(&mut stream).await {
                    200 => passed += 1,
                    429 => {}
                    status => panic!("{status}"),
                }
            }
            passed
        });
    }
    let passed: usize = programs.join_all().await.into_iter().sum();
    assert_eq!(passed, LIMIT);
    agent.stop().await;
    front.server.stop().await;
}

/// The status of an answer, which is read to its end.
async fn answer(stream: &mut BufReader<UnixStream>) -> u16 {
    let (mut status, mut length) = (0, 0);
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        let line = line.trim_end().to_lowercase();
        if let Some(rest) = line.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().unwrap();
        } else if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.parse().unwrap();
        } else if line.is_empty() {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    status
}

#[tokio::test]
async fn a_program_that_asks_for_ever_new_keys_is_told_so_and_others_are_not() {
    let rules =
        "wait: 30s\nsets: {edge: {rules: [{match: {path: '*'}, key: [path], limit: 5/1h, kind: exact}]}}";
    let front = Front::open(rules, "").await;
    let folder = tempfile::tempdir().unwrap();
    let mut command = agent("greedy", &front.server.address().to_string(), front.rules());
    // Ten at once, and then none for as long as this test takes.
    command.args(["--max-new-keys", "1", "--http", "127.0.0.1:0", "--http"]);
    command.arg(format!("unix:{}", folder.path().join("http.sock").display()));
    let agent = Door::run(command).await;
    let (port, socket) = agent.http.split_once(',').unwrap();
    let ask = async |address: &str, path: &str| {
        let fields = ASKED.replace("uri: /", &format!("uri: /{path}"));
        crate::front::http(address, "GET /check/edge", &fields, "").await
    };
    let mut number = 0;
    eventually("it asks for too many", async || {
        number += 1;
        let answer = ask(socket, &number.to_string()).await;
        assert!(number > 10 || answer.status == 200, "{number}: {answer:?}");
        let told = "asks for more new keys than 1 a second\r\n";
        answer.status == 503 && answer.head.contains("x-lessor-reason: user ") && answer.head.contains(told)
    })
    .await;
    assert_eq!(ask(socket, "1").await.status, 200, "a key that is known");
    assert_eq!(ask(port, "new").await.status, 200, "another peer");
    agent.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn health_says_first_that_there_is_an_end() {
    let front = Front::open(&rules("3/1h"), "").await;
    let mut command = agent("leaving", &front.server.address().to_string(), front.rules());
    // A tenth of it is for those who are told, a second at the most.
    command.args(["--http", "127.0.0.1:0", "--drain", "60s"]);
    let agent = Door::run(command).await;
    assert_eq!(check(&agent.http).await.status, 200);
    let mut kept = BufReader::new(tokio::net::TcpStream::connect(&agent.http).await.unwrap());
    // It is read before the signal comes, and answered behind it.
    kept.write_all(b"GET /readyz HTTP/1.1\r\nhost: here\r\n\r\nGET /readyz HTTP/1.1\r\n").await.unwrap();
    let mut line = String::new();
    kept.read_line(&mut line).await.unwrap();
    assert_eq!(line, "HTTP/1.1 200 OK\r\n");
    agent.signal(Signal::TERM);
    eventually("it says so and still serves", async || {
        let Ok(mut stream) = tokio::net::TcpStream::connect(&agent.http).await else {
            panic!("connections are refused before anybody was told");
        };
        let asked = "GET /readyz HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n";
        stream.write_all(asked.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text.starts_with("HTTP/1.1 503 ") && text.ends_with("\r\n\r\ndraining\n")
    })
    .await;
    kept.write_all(b"host: here\r\n\r\n").await.unwrap();
    let mut text = String::new();
    kept.read_to_string(&mut text).await.unwrap();
    assert!(
        text.contains("HTTP/1.1 503 ") && text.ends_with("draining\n"),
        "what is under way is answered: {text}"
    );
    agent.stop().await;
    front.server.stop().await;
}
