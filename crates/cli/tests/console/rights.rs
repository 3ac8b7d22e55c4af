//! The rights of those who look: with rules of access `/v1` is for who may see, and the page itself holds nothing.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::api::FAIR;
use crate::gate::Gate;
use crate::house::{AGES, House};

pub(crate) const TEAMS: &str = r#"
default: deny
operators:
  - {identity: oncall, may: [see, explain]}
  - {identity: team, may: [see], resources: ["db*"]}
"#;

/// The status code of an answer.
async fn code(gate: &Gate, method: &str, path: &str, token: Option<&str>) -> u16 {
    let bearer = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
    let head = format!("{method} {path} HTTP/1.1\r\nHost: lessor\r\nContent-Length: 0\r\n{bearer}");
    code_of(gate.house.http(), &head).await
}

/// The status code of the answer to a request with that head.
async fn code_of(address: SocketAddr, head: &str) -> u16 {
    let asking = async {
        let mut stream = TcpStream::connect(address).await.expect("it takes connections");
        let request = format!("{head}Connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it is read");
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.expect("an answer");
        std::str::from_utf8(&head[9..]).expect("text").parse().expect("a number")
    };
    timeout(AGES, asking).await.expect("an answer in time")
}

#[tokio::test]
async fn what_is_known_is_for_who_may_see_it_and_the_page_for_everybody() {
    let gate = Gate::open(TEAMS).await;
    let role = |identity: &'static str| ["--identity", identity, "--role", "see"];
    let (oncall, team) = (gate.token(&role("oncall")).await, gate.token(&role("team")).await);
    let tokens = [None, Some(oncall.as_str()), Some(team.as_str()), Some("nonsense")];
    for (method, path, wanted) in [
        ("GET", "/", [200, 200, 200, 200]),
        ("GET", "/console.js", [200, 200, 200, 200]),
        ("GET", "/plain", [403, 200, 403, 401]),
        ("GET", "/v1/node", [403, 200, 403, 401]),
        ("GET", "/v1/tasks", [403, 200, 403, 401]),
        ("GET", "/v1/resources", [403, 200, 403, 401]),
        ("GET", "/v1/findings", [403, 200, 403, 401]),
        ("GET", "/v1/overrides", [403, 200, 403, 401]),
        ("GET", "/v1/history", [403, 200, 403, 401]),
        ("GET", "/v1/events", [403, 200, 403, 401]),
        ("GET", "/v1/domains", [403, 200, 403, 401]),
        ("GET", "/v1/domains?resource=db1", [403, 200, 200, 401]),
        // Nobody holds any of it, which is for the team to know.
        ("GET", "/v1/holders?resource=db1", [403, 404, 404, 401]),
        ("GET", "/v1/holders?resource=api", [403, 404, 403, 401]),
        ("GET", "/v1/series?resource=db1", [403, 404, 404, 401]),
        ("GET", "/v1/series", [403, 200, 403, 401]),
        ("POST", "/v1/tiers", [403, 400, 403, 401]),
        ("POST", "/v1/check", [403, 200, 403, 401]),
    ] {
        for (token, wanted) in tokens.into_iter().zip(wanted) {
            assert_eq!(code(&gate, method, path, token).await, wanted, "{method} {path} with {token:?}");
        }
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn a_page_of_another_that_was_led_here_by_its_name_reads_nothing() {
    let names = ["--advertise", "root.lessor.example:15000", "--page-hosts", "console.example,other.example"];
    let house = House::open_with(FAIR, &names).await;
    for address in [house.http(), house.address()] {
        for path in [
            "/",
            "/console.js",
            "/plain",
            "/status",
            "/v1/node",
            "/v1/events",
            "/v1/tree",
            "/v1/explain?resource=db",
        ] {
            for (host, is_taken) in [
                ("evil.example", false),
                ("evil.example:15001", false),
                ("127.0.0.1.evil.example", false),
                ("127.0.0.1:15001", true),
                ("[::1]:15001", true),
                ("localhost", true),
                ("paris-1:15001", true),
                ("console.example", true),
                ("Other.example:80", true),
                ("root.lessor.example:15001", true),
            ] {
                let browser = "Accept: */*\r\nAccept-Encoding: gzip, deflate\r\n";
                let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{browser}");
                assert_eq!(code_of(address, &head).await != 403, is_taken, "{path} of {host}");
            }
        }
        // A command is led by nobody, and a monitor reads figures by whatever name it knows.
        for head in [
            "GET /v1/tree HTTP/1.1\r\nHost: evil.example\r\n",
            "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nAccept-Encoding: gzip\r\n",
        ] {
            assert_eq!(code_of(address, head).await, 200, "{head}");
        }
    }
    house.stop().await;
}
