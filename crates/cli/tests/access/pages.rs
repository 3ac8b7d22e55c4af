//! Pages: those that say who has what are for who may see them, and probes are for everybody.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::gate::Gate;
use crate::house::AGES;

const TEAMS: &str = r#"
default: deny
operators:
  - {identity: oncall, may: [see]}
  - {identity: team, may: [see], resources: ["db*"]}
  - {identity: robot, may: [push]}
"#;

/// The status code of a page.
async fn code(gate: &Gate, path: &str, token: Option<&str>) -> u16 {
    let asking = async {
        let mut stream = TcpStream::connect(gate.house.http()).await.unwrap();
        let bearer = token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        let request = format!("GET {path} HTTP/1.1\r\nHost: lessor\r\nConnection: close\r\n{bearer}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    };
    timeout(AGES, asking).await.expect("an answer in time")
}

#[tokio::test]
async fn a_page_is_for_who_may_see_it_and_a_probe_for_everybody() {
    let gate = Gate::open(TEAMS).await;
    let role = |identity: &'static str, role: &'static str| ["--identity", identity, "--role", role];
    let oncall = gate.token(&role("oncall", "see")).await;
    let team = gate.token(&role("team", "see")).await;
    let robot = gate.token(&role("robot", "push")).await;
    let tokens = [None, Some(oncall.as_str()), Some(team.as_str()), Some(robot.as_str()), Some("nonsense")];
    for (path, wanted) in [
        ("/healthz", [200, 200, 200, 200, 200]),
        ("/readyz", [200, 200, 200, 200, 200]),
        ("/status", [403, 200, 403, 403, 401]),
        ("/metrics", [403, 200, 403, 403, 401]),
        // Nobody holds any of it, which is for the team to know.
        ("/status?resource=db1", [403, 404, 404, 403, 401]),
        ("/status?resource=api", [403, 404, 403, 403, 401]),
    ] {
        for (token, wanted) in tokens.into_iter().zip(wanted) {
            assert_eq!(code(&gate, path, token).await, wanted, "{path} with {token:?}");
        }
    }
    gate.house.stop().await;
}
