//! Calls without a stream: what each may, and what becomes of the others.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::ReleaseCapacityRequest;
use tokio::time::timeout;
use tonic::Code;
use tonic_types::StatusExt as _;

use crate::gate::{Gate, OTHER_KEY, token};
use crate::house::{AGES, eventually};

const SHOP: &str = r#"
default: deny
nodes:
  - {identity: paris, node: paris, most_clients: 100, priority: {most: 5}}
clients:
  - {identity: web, client_id: "{last}-*", resources: [db], priority: {most: 3}, max_wants: 300}
  - {identity: batch, client_id: "batch-*", weight: 3}
"#;
/// The rule by which whoever comes without a token sees the figures.
const SEEN: &str = "operators:\n  - {identity: plain, may: [see]}\n";

const WEB: &[&str] = &["--identity", "web", "--client-id", "*"];

#[tokio::test]
async fn a_stranger_gets_nothing_and_is_told_which_rule_is_missing() {
    let gate = Gate::open(SHOP).await;
    let mut stranger = gate.stranger().await;
    let refused = stranger.get("web-1", "db", 10.0).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert_eq!(refused.message(), r#""plain" may not hold leases; wanted a rule for it under clients"#);
    let details = refused.get_details_error_info().expect("details");
    assert_eq!((details.reason.as_str(), details.domain.as_str()), ("no_rule", "lessor"));

    let refused = stranger.get_as_node("paris", i64::from(u32::MAX), 1e9).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    let release = ReleaseCapacityRequest {
        client_id: Some("web-1".to_owned()),
        resource_id: vec!["db".to_owned()],
        ..ReleaseCapacityRequest::default()
    };
    let release = stranger.request(release);
    let refused = stranger.capacity.release_capacity(release).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    // It holds for whoever is known, too.
    assert_eq!(gate.visitor(WEB).await.get("web-1", "db", 10.0).await.unwrap(), 10.0);
    gate.house.stop().await;
}

#[tokio::test]
async fn whoever_is_known_gets_what_its_rule_says_under_its_own_names() {
    let gate = Gate::open(SHOP).await;
    let mut web = gate.visitor(WEB).await;
    assert_eq!(web.get("web-1", "db", 50.0).await.unwrap(), 50.0);
    for (id, resource, priority, wanted, rule) in [
        ("cron-1", "db", 0, r#"call itself "cron-1"; wanted "{last}-*""#, "holder"),
        ("web-1", "users", 0, r#"hold "users"; wanted "db""#, "resource"),
        ("web-1", "db", 4, "ask with priority 4; wanted at most 3", "priority"),
    ] {
        let refused = web.get_at(id, resource, 50.0, priority).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        let message = refused.message();
        assert!(message.starts_with(r#"clients[0] on line 6 does not let "web" "#), "{message}");
        assert!(message.ends_with(wanted), "{message}");
        let details = refused.get_details_error_info().expect("details");
        assert_eq!(details.reason, rule);
        assert_eq!(details.metadata["rule"], "clients[0] on line 6");
    }
    assert_eq!(web.get("web-1", "db", 1e300).await.unwrap(), 300.0, "more counts as the most it may want");
    gate.house.stop().await;
}

#[tokio::test]
async fn a_false_node_takes_nothing_and_a_true_one_counts_for_what_it_may() {
    let gate = Gate::open(SHOP).await;
    let mut web = gate.visitor(WEB).await;
    let refused = web.get_as_node("paris", 1, 1.0).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");

    let mut paris = gate.visitor(&["--identity", "paris", "--node", "paris"]).await;
    let refused = paris.get_as_node("tokyo", 1, 1.0).await.unwrap_err();
    assert!(refused.message().contains(r#"call itself "tokyo"; wanted "paris""#), "{refused}");
    // A hundred and one share: it counts for a hundred, whatever it says.
    paris.get_as_node("paris", i64::from(u32::MAX), 1e9).await.unwrap();
    let batch = &["--identity", "batch", "--client-id", "*"];
    let mut batch = gate.visitor(batch).await;
    eventually("the share of three in a hundred and three", async || {
        paris.get_as_node("paris", i64::from(u32::MAX), 1e9).await.unwrap();
        let got = batch.get("batch-1", "db", 1e9).await.unwrap();
        (got - 1000.0 * 3.0 / 103.0).abs() < 0.001
    })
    .await;
    gate.house.stop().await;
}

#[tokio::test]
async fn a_token_that_cannot_be_taken_is_refused_with_its_reason() {
    let gate = Gate::open(SHOP).await;
    std::fs::write(gate.path("other.key"), OTHER_KEY).unwrap();
    let foreign = token(gate.path("other.key").to_str().unwrap(), WEB).await;
    let brief = gate.token(&[WEB, &["--ttl", "1s"]].concat()).await;
    for (token, wanted) in [
        ("nonsense", "does not begin with lessor1."),
        ("lessor1.!", "is not base64"),
        ("lessor1.AAAA", "is cut off"),
        (foreign.as_str(), "the token's seal does not fit"),
    ] {
        let refused = gate.with(token).await.get("web-1", "db", 1.0).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unauthenticated);
        assert!(refused.message().contains(wanted), "{refused}");
    }
    let mut over = gate.with(brief).await;
    eventually("the token has ended", async || match over.get("web-1", "db", 1.0).await {
        Ok(_) => false,
        Err(refused) => refused.code() == Code::Unauthenticated && refused.message().contains("ended at"),
    })
    .await;
    // A key that is changed is believed beside the one after it, and then no more.
    let mut web = gate.visitor(WEB).await;
    gate.replace("auth.key", &format!("{OTHER_KEY}{}", crate::gate::KEY));
    let mut other = gate.with(&foreign).await;
    eventually("both keys are believed", async || other.get("web-1", "db", 1.0).await.is_ok()).await;
    web.get("web-2", "db", 1.0).await.unwrap();
    gate.replace("auth.key", OTHER_KEY);
    eventually("the key before is not", async || web.get("web-2", "db", 1.0).await.is_err()).await;
    other.get("web-1", "db", 1.0).await.unwrap();
    for secret in [&foreign[..], OTHER_KEY.trim(), crate::gate::KEY.trim()] {
        assert!(!gate.house.has_logged_part(secret), "a secret is in the log");
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn a_token_is_revoked_by_its_date() {
    let shop = format!("{SHOP}{SEEN}");
    let gate = Gate::open(&shop).await;
    let mut web = gate.visitor(WEB).await;
    web.get("web-1", "db", 1.0).await.unwrap();
    gate.replace(
        "access.yaml",
        &format!("{shop}revoked:\n  - {{identity: web, before: \"2222-01-01T00:00:00Z\"}}\n"),
    );
    eventually("it is refused", async || match web.get("web-1", "db", 1.0).await {
        Ok(_) => false,
        Err(refused) => refused.message().contains("is revoked"),
    })
    .await;
    assert_eq!(gate.outstanding().await, 1.0, "what it has is charged until its lease is over");
    gate.house.stop().await;
}

#[tokio::test]
async fn audit_lets_everybody_in_and_counts_what_deny_would_refuse() {
    let shop = format!("{SHOP}{SEEN}");
    let gate = Gate::open(&shop.replace("default: deny", "default: audit")).await;
    let mut stranger = gate.stranger().await;
    assert_eq!(stranger.get("web-1", "db", 10.0).await.unwrap(), 10.0);
    assert_eq!(stranger.get_at("web-1", "users", 10.0, 99).await.unwrap(), 10.0);
    stranger.get_as_node("paris", 500, 10.0).await.unwrap();
    assert_eq!(
        gate.visitor(WEB).await.get("web-2", "db", 400.0).await.unwrap(),
        400.0,
        "nothing is cut down"
    );
    gate.with("nonsense").await.get("web-1", "db", 10.0).await.unwrap();
    assert!(gate.house.has_logged_part(r#""target":"lessor::audit""#));
    assert!(gate.house.has_logged_part("may not hold leases; wanted a rule for it under clients"));
    assert_eq!(gate.house.metric("lessor_audited_total{why=\"wants\"}").await, 1.0);
    let noted = |why: &str| format!("lessor_audited_total{{why=\"{why}\"}}");
    assert_eq!(gate.house.metric(&noted("no_rule")).await, 4.0);
    assert_eq!(gate.house.metric(&noted("token")).await, 1.0);
    assert_eq!(gate.house.metric("lessor_denied_total{why=\"no_rule\"}").await, 0.0);
    gate.replace("access.yaml", &shop);
    eventually("it is closed", async || stranger.get("web-1", "db", 10.0).await.is_err()).await;
    assert!(gate.house.metric("lessor_denied_total{why=\"no_rule\"}").await >= 1.0);
    gate.house.stop().await;
}

#[tokio::test]
async fn faulty_rules_leave_those_before_in_force() {
    let gate = Gate::open(SHOP).await;
    let mut web = gate.visitor(WEB).await;
    gate.replace("access.yaml", "default: open\n");
    eventually("it is said", async || gate.house.has_logged("the old rules of access stay in force")).await;
    web.get("web-1", "db", 1.0).await.unwrap();
    assert!(gate.stranger().await.get("web-1", "db", 1.0).await.is_err());
    gate.house.stop().await;
}

#[tokio::test]
async fn who_asks_more_often_than_its_budget_waits_and_nobody_else_does() {
    let rules = format!("{SHOP}  - {{identity: flood, budget: {{reports: 20/s}}}}\n");
    let gate = Gate::open(&rules).await;
    let mut flood = gate.visitor(&["--identity", "flood", "--client-id", "*"]).await;
    let mut web = gate.visitor(WEB).await;
    let start = clock::now();
    let flooding = async {
        // Two seconds' worth of them come at once, and then twenty a second.
        for _ in 0..60 {
            flood.get("flood-1", "db", 1.0).await.unwrap();
        }
        clock::now()
    };
    let witness = async {
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let before = clock::now();
            web.get("web-1", "db", 1.0).await.unwrap();
            slowest = slowest.max(clock::now().since(before));
            clock::sleep_until(before + Duration::from_millis(50)).await;
        }
        slowest
    };
    let (end, slowest) = timeout(AGES, async { tokio::join!(flooding, witness) }).await.unwrap();
    assert!(end.since(start) > Duration::from_millis(900), "sixty in {:?}", end.since(start));
    assert!(slowest < Duration::from_secs(1), "the witness waited for {slowest:?}");
    gate.house.stop().await;
}
