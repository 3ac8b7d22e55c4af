//! Our own clients, commands and nodes, which are known by tokens.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{BearerToken, Client, Fallback, Rung};
use tokio::time::timeout;

use crate::gate::Gate;
use crate::house::{AGES, House, eventually, everything, run};

const RULES: &str = r#"
default: deny
clients:
  - {identity: web, client_id: "web-*", resources: [db]}
operators:
  - {identity: oncall, may: [see]}
"#;
const WEB: &[&str] = &["--identity", "web", "--client-id", "*"];

#[tokio::test]
async fn a_command_shows_its_token_and_is_told_what_it_lacks_without_one() {
    let gate = Gate::open(RULES).await;
    let server = gate.house.address().to_string();
    let write = |name: &str, token: String| {
        std::fs::write(gate.path(name), token).unwrap();
        gate.path(name).display().to_string()
    };
    let web = write("web.token", gate.token(WEB).await);
    let oncall = write("oncall.token", gate.token(&["--identity", "oncall", "--role", "see"]).await);

    let get = ["get", "db", "--wants", "10", "--id", "web-1", "--server", &server];
    let refused = run(&get).await;
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains(r#""plain" may not hold leases; wanted a rule for it"#), "{}", refused.err);
    let granted = run(&[&get[..], &["--token-file", &web]].concat()).await;
    assert_eq!(granted.code, Some(0), "{}", granted.err);
    assert!(granted.out.contains("10"), "{}", granted.out);

    let status = ["status", "--server", &gate.house.http().to_string()].map(str::to_owned);
    let status: Vec<&str> = status.iter().map(String::as_str).collect();
    let refused = run(&status).await;
    assert!(refused.err.contains(r#""plain" may not see"#), "{}", refused.err);
    let refused = run(&[&status[..], &["--token-file", &web]].concat()).await;
    assert!(refused.err.contains(r#"does not let "web" see; it may []"#), "{}", refused.err);
    let shown = run(&[&status[..], &["--token-file", &oncall]].concat()).await;
    assert_eq!(shown.code, Some(0), "{}", shown.err);

    // To see is not to explain.
    let (explain, token) = (["explain", "db", "web-1", "--server", &server], ["--token-file", &oncall]);
    let refused = run(&[&explain[..], &token].concat()).await;
    assert!(refused.err.contains(r#"does not let "oncall" explain"#), "{}", refused.err);
    let explains = gate.token(&["--identity", "helper", "--role", "explain", "--resource", "db"]).await;
    let explains = write("helper.token", explains);
    let told = run(&[&explain[..], &["--token-file", &explains]].concat()).await;
    assert!(
        told.err.contains("nobody") && told.code == Some(1),
        "it may ask, and nobody holds any: {}",
        told.err
    );
    let other = ["explain", "other", "--server", &server, "--token-file", &explains];
    let refused = run(&other).await;
    assert!(
        refused.err.contains("may not explain") || refused.err.contains("does not let"),
        "{}",
        refused.err
    );
    gate.house.stop().await;
}

#[tokio::test]
async fn a_node_joins_with_its_token_and_no_other_name() {
    let rules = format!("{RULES}nodes:\n  - {{identity: leaf, node: paris, most_clients: 50}}\n");
    let gate = Gate::open(&rules).await;
    let token = gate.token(&["--identity", "leaf", "--node", "*"]).await;
    std::fs::write(gate.path("join.token"), token).unwrap();
    let (token, root) = (gate.path("join.token"), gate.house.address().to_string());
    let up = ["--parent", &root, "--parent-token-file", token.to_str().unwrap()];
    let paris = House::open_with(&everything(1000.0, 20), &[&up[..], &["--node", "paris"]].concat()).await;
    let tokyo = House::open_with(&everything(1000.0, 20), &[&up[..], &["--node", "tokyo"]].concat()).await;
    let wants = async |server: &House, id: &str| {
        let address = server.address().to_string();
        run(&["get", "db", "--wants", "10", "--id", id, "--server", &address]).await.out
    };
    eventually("the capacity of the root comes through the one that may be a node", async || {
        wants(&paris, "a").await.contains("10")
    })
    .await;
    eventually("the other has nothing, and says why", async || {
        wants(&tokyo, "a").await;
        tokyo.has_logged_part("the node above does not serve") && tokyo.has_logged_part("call itself")
    })
    .await;
    for server in [paris, tokyo] {
        server.stop().await;
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn a_token_that_is_renewed_in_its_file_keeps_the_lease() {
    let gate = Gate::open(RULES).await;
    let path = gate.path("web.token");
    let brief = [WEB, &["--ttl", "3s"]].concat();
    std::fs::write(&path, gate.token(&brief).await).unwrap();
    let server = gate.house.address().to_string();
    let client = Client::builder(&server).id("web-1").token(BearerToken::file(&path)).build().unwrap();
    let opening = client.rate("db").wants(50.0).fallback(Fallback::Pessimistic);
    let mut rate = opening.open().unwrap();
    let state = timeout(AGES, rate.changed()).await.expect("an answer in time").unwrap();
    assert_eq!(state.rung, Rung::Leased, "{state:?}");
    let end = clock::now() + Duration::from_secs(8);
    while clock::now() < end {
        std::fs::write(&path, gate.token(&brief).await).unwrap();
        clock::sleep_until(clock::now() + Duration::from_millis(500)).await;
        assert!(rate.try_acquire(1).is_ok(), "the lease is lost");
    }
    client.close().await;
    gate.house.stop().await;
}
