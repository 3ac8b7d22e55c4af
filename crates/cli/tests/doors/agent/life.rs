//! The life of an agent without its server, and what is leased through it on its host.

use lessor_client::Client;

use super::{agent, check, id, readiness, rules};
use crate::front::{Door, Front, free_address, http};
use crate::house::{House, eventually, lessor, run};

#[tokio::test]
async fn an_agent_starts_before_its_server_and_says_so() {
    let (server, folder) = (free_address(), tempfile::tempdir().unwrap());
    let file = folder.path().join("doors.yaml");
    let text = rules("3/1h").replace("wait: 30s", "wait: 10ms");
    std::fs::write(&file, &text).unwrap();
    let mut command = agent("early", &server, &file);
    command.args(["--http", "127.0.0.1:0"]);
    let agent = Door::run(command).await;
    eventually("it says why it is degraded", async || {
        let (status, said) = readiness(&agent.http).await;
        assert_eq!(status, 200, "{said}");
        said.starts_with(&format!("degraded: no server answers: {server}: "))
    })
    .await;
    assert_eq!(check(&agent.http).await.status, 503, "nothing is leased");
    let status = async || -> serde_json::Value {
        serde_json::from_str(&http(&agent.http, "GET /status", "", "").await.body).unwrap()
    };
    // A check waits for 10 ms, and the call that it has begun may fail after that.
    eventually("the call has failed", async || !status().await["last_error"].is_null()).await;
    let page = status().await;
    assert_eq!((&page["state"], &page["id"]), (&"degraded".into(), &id("early").into()), "{page}");
    assert_eq!((&page["rules"]["limits"][0]["limit"], &page["keys"]), (&"3/1h".into(), &1.into()), "{page}");
    assert!(page["last_error"]["fault"].as_str().unwrap().contains("no answer"), "{page}");

    let front = Front::open_at(&server, &text, "").await;
    eventually("a server answers", async || readiness(&agent.http).await == (200, "ready".to_owned())).await;
    eventually("something is leased", async || check(&agent.http).await.status == 200).await;
    let page = http(&agent.http, "GET /status?format=text", "", "").await.body;
    for said in [": ready\n", "edge edge/0: 3/1h, exact\n", "edge/0|0:: 1 of 3, leased ", "free in 36"] {
        assert!(page.contains(said), "no {said:?} in\n{page}");
    }
    let wrong = http(&agent.http, "GET /status?format=xml", "", "").await;
    assert_eq!((wrong.status, &*wrong.body), (400, "wanted no query, or format=json or format=text\n"));
    let log = agent.stop().await;
    let said = "released but for what was used in windows: that stays charged until its lease ends";
    assert!(log.contains(said) && log.contains("\"keys\":1,\"uses\":1"), "{log}");
    front.server.stop().await;
}

#[tokio::test]
async fn a_lease_ends_without_its_server_and_comes_back_with_it() {
    // Shorter leases than those of import, so that one ends within the test.
    let config = "resources: [{identifier_glob: 'edge/0|0:*', kind: gauge, capacity: 2, window: 1s, algorithm: {kind: \
                  FAIR_SHARE, lease_length: 4, refresh_interval: 1, learning_mode_duration: 4}}]";
    let mut server = House::open(config).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doors.yaml");
    std::fs::write(&file, rules("2/1s").replace("wait: 30s", "wait: 10ms")).unwrap();
    let mut command = agent("alone", &server.address().to_string(), &file);
    command.args(["--http", "127.0.0.1:0"]);
    let agent = Door::run(command).await;
    eventually("something is leased", async || check(&agent.http).await.status == 200).await;
    server.crash().await;
    eventually("the lease has ended", async || check(&agent.http).await.status == 503).await;
    eventually("it is degraded", async || readiness(&agent.http).await.1.starts_with("degraded: ")).await;
    let server = server.start_again().await;
    eventually("something is leased again", async || check(&agent.http).await.status == 200).await;
    eventually("it is ready", async || readiness(&agent.http).await.1 == "ready").await;
    agent.stop().await;
    server.stop().await;
}

#[tokio::test]
async fn doors_and_programs_of_a_host_have_one_lease() {
    const RESOURCE: &str = "edge/0|0:";
    let front = Front::open(&rules("10/1h"), "").await;
    let mut command = agent("leaf", &front.server.address().to_string(), front.rules());
    command.args(["--http", "127.0.0.1:0", "--lease-out", "127.0.0.1:0"]);
    let agent = Door::run(command).await;
    let leaf = agent.lease_out.clone().expect("it leases out");

    let program = Client::builder(&leaf).id("a-program").build().unwrap();
    let uses = program.windows(RESOURCE).max_wait(crate::house::AGES).open().unwrap();
    for _ in 0..4 {
        uses.acquire("", 1).await.unwrap();
    }
    let mut passed = 0;
    eventually("the rest passes through the door", async || {
        let status = check(&agent.http).await.status;
        passed += usize::from(status == 200);
        assert!(passed <= 6, "4 and {passed} of 10");
        status == 429 && passed == 6
    })
    .await;
    assert!(uses.try_acquire("", 1).is_err());
    let above = front.server.resource(RESOURCE).await.expect("it is leased");
    let holders = above["holders"].as_array().unwrap();
    let clients: Vec<_> = holders.iter().map(|holder| holder["client"].as_str().unwrap()).collect();
    assert_eq!(clients, [id("leaf")], "one lease for the host: {above}");
    let unknown = run(&["get", "other", "--wants", "1", "--server", &leaf]).await;
    assert!(unknown.err.contains("no template"), "{}", unknown.err);
    program.close().await;
    agent.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn a_leaf_that_remembers_goes_on_after_a_restart() {
    let front = Front::open(&rules("10/1h"), "").await;
    let folder = tempfile::tempdir().unwrap();
    let start = async || {
        let mut command = agent("again", &front.server.address().to_string(), front.rules());
        command.args(["--http", "127.0.0.1:0", "--lease-out", "127.0.0.1:0"]);
        command.arg("--state-dir").arg(folder.path());
        Door::run(command).await
    };
    let first = start().await;
    for _ in 0..4 {
        assert_eq!(check(&first.http).await.status, 200);
    }
    first.stop().await;
    let second = start().await;
    for passed in 4..10 {
        assert_eq!(check(&second.http).await.status, 200, "behind {passed}");
    }
    eventually("the limit is reached", async || match check(&second.http).await.status {
        200 => panic!("11 of 10"),
        status => status == 429,
    })
    .await;
    second.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn one_agent_of_an_id_runs_on_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("doors.yaml");
    std::fs::write(&file, rules("3/1h")).unwrap();
    let mut command = agent("only", "127.0.0.1:1", &file);
    command.args(["--http", "127.0.0.1:0"]);
    let first = Door::run(command).await;
    let name = file.to_str().unwrap();
    let again =
        ["agent", "--server", "127.0.0.1:1", "--id", &id("only"), "--doors", name, "--http", "127.0.0.1:0"];
    let second = run(&again).await;
    assert_eq!(second.code, Some(1));
    let wanted = format!("another agent with the id {:?} runs on this host; wanted its end", id("only"));
    assert!(second.err.contains(&wanted), "{}", second.err);
    first.stop().await;
    let mut command = lessor(&again);
    command.args(["--log-format", "json"]);
    Door::run(command).await.stop().await;
}
