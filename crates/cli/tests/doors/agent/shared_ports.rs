//! Agents that share a port: one is replaced while callers ask all the time, and one that does not share is refused.

use super::callers::{CALLERS, Callers};
use super::{agent, check, id, rules};
use crate::front::{Door, Front};

/// Starts an agent at that address which shares its ports.
async fn beside(front: &Front, address: &str) -> Door {
    let mut command = agent("shared", &front.server.address().to_string(), front.rules());
    command.args(["--http", address, "--share-ports", "--drain", "5s"]);
    Door::run(command).await
}

#[tokio::test]
async fn an_agent_is_replaced_at_a_port_that_both_share() {
    const LIMIT: usize = 12_000;
    // Longer than units are on their way, and as long as the last answers take.
    let front = Front::open(&rules(&format!("{LIMIT}/1h")).replace("wait: 30s", "wait: 10s"), "").await;
    let mut serving = beside(&front, "127.0.0.1:0").await;
    let address = serving.http.clone();
    // One that comes in just as the old one ends may be closed unanswered, and asks again.
    let mut callers = Callers::begin(&address, 2);
    callers.answered(200).await;
    for _ in 0..2 {
        let next = beside(&front, &address).await;
        assert_eq!(next.http, address);
        // By either, as the system divides them.
        callers.answered_within(LIMIT, 200).await;
        let log = std::mem::replace(&mut serving, next).stop().await;
        assert!(log.contains("released but for what was used in windows"), "{log}");
        callers.answered_within(LIMIT, 200).await;
    }
    callers.use_up(LIMIT).await;
    callers.end().await;
    assert_eq!(callers.passed(), LIMIT, "all three count together");
    assert!(callers.cut_off() <= 2 * CALLERS, "{} were cut off", callers.cut_off());
    let before = callers.before_refusal().expect("the limit is used up");
    assert!(before + CALLERS > LIMIT, "refused behind {before} of {LIMIT}, where others may be under way");
    serving.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn a_port_that_one_of_both_does_not_share_is_refused() {
    let front = Front::open(&rules("3/1h"), "").await;
    let server = front.server.address().to_string();
    let start = |name: &str, address: &str, flags: &[&str]| {
        let mut command = agent(name, &server, front.rules());
        command.args(["--http", address]).args(flags);
        command
    };
    let alone = Door::run(start("unshared", "127.0.0.1:0", &[])).await;
    let shared = Door::run(start("sharing", "127.0.0.1:0", &["--share-ports"])).await;
    let of_both = "somebody listens there who does not share the port, or is of another user; wanted their end, or one user and \
                   --share-ports of both";
    let of_one = "somebody listens there; wanted their end, or --share-ports of both";
    for (name, address, flags, wanted) in [
        ("unshared", &alone.http, &["--share-ports"][..], of_both),
        ("another", &shared.http, &[], of_one),
        ("another", &alone.http, &[], of_one),
    ] {
        let outcome = start(name, address, flags).output().await.unwrap();
        let said = String::from_utf8(outcome.stderr).unwrap();
        let wanted = format!("--http: {address}: {wanted}");
        assert!(outcome.status.code() == Some(1) && said.contains(&wanted), "{said}");
    }
    // One of the same id is refused wherever it would listen.
    let outcome = start("sharing", &shared.http, &[]).output().await.unwrap();
    let said = String::from_utf8(outcome.stderr).unwrap();
    let wanted = format!("another agent with the id {:?} runs on this host; wanted its end, ", id("sharing"));
    assert!(outcome.status.code() == Some(1) && said.contains(&wanted), "{said}");
    for agent in [alone, shared] {
        assert_eq!(check(&agent.http).await.status, 200, "it serves on");
        agent.stop().await;
    }
    front.server.stop().await;
}
