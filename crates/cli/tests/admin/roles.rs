//! Roles: every act with every role, and who has none.

use crate::desk::Desk;
use crate::gate::Gate;
use crate::house::eventually;

const ROLES: [&str; 8] = ["see", "explain", "plan", "override", "push", "seize", "access", "all"];

/// The ways to call each act, with the role that it takes; nothing where whoever is let in may.
const ACTS: [(&str, &str, &str, Option<&str>); 15] = [
    ("GET", "/admin/whoami", "", None),
    ("GET", "/admin/connections", "", Some("see")),
    ("GET", "/admin/log", "", Some("see")),
    ("GET", "/admin/recall", "", Some("see")),
    ("GET", "/admin/access", "", Some("access")),
    ("PUT", "/admin/log", "{\"filter\":\"info\",\"for\":\"1h\"}", Some("override")),
    ("DELETE", "/admin/log", "{}", Some("override")),
    ("POST", "/admin/resign", "{}", Some("override")),
    ("POST", "/admin/recall", "{\"resource\":\"db\",\"holder\":\"nobody\",\"for\":\"1m\"}", Some("override")),
    ("DELETE", "/admin/recall", "{\"resource\":\"db\",\"holder\":\"nobody\"}", Some("override")),
    ("POST", "/admin/reload", "{}", Some("push")),
    ("GET", "/admin/override", "", Some("see")),
    (
        "POST",
        "/admin/override",
        "{\"kind\":\"freeze\",\"resource\":\"db\",\"reason\":\"x\",\"for\":\"1s\"}",
        Some("override"),
    ),
    ("DELETE", "/admin/override", "{\"id\":\"nothing\"}", Some("override")),
    (
        "POST",
        "/admin/seize",
        "{\"resource\":\"db\",\"client\":\"nobody\",\"i_have_fenced_it\":true}",
        Some("seize"),
    ),
];

#[tokio::test]
async fn every_role_does_its_own_acts_and_no_other() {
    let rules = "default: deny\noperators:\n  - {identity: plain, may: [see]}\n";
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let at = gate.house.admin().unwrap();
    let (mut allowed, mut refused) = (0, 0);
    for role in ROLES {
        let token = gate.token(&["--identity", &format!("op-{role}"), "--role", role]).await;
        let desk = Desk::with_token(at, &token);
        for (method, path, body, needed) in ACTS {
            let answer = desk.call(method, path, (!body.is_empty()).then_some(body)).await;
            if needed.is_none_or(|needed| role == needed || role == "all") {
                // There is no election, and nobody to recall from.
                assert!([200, 404, 409].contains(&answer.code), "{method} {path} as {role}: {answer:?}");
                allowed += 1;
                continue;
            }
            let problem = answer.problem(403);
            let needed = needed.unwrap();
            let told = format!("the token does not let \"op-{role}\" {needed}; it may [{role}]");
            assert_eq!(problem["detail"], told.as_str(), "{method} {path}");
            assert_eq!(
                (&problem["role"], &problem["identity"]),
                (&needed.into(), &format!("op-{role}").into())
            );
            refused += 1;
        }
    }
    assert_eq!((allowed, refused), (8 + 4 * 2 + 2 + 7 * 2 + 2 + 2, 120 - 36));
    let counted = gate.house.metric("lessor_denied_total{why=\"role\"}").await;
    assert_eq!(counted, f64::from(refused));
    gate.house.stop().await;
}

#[tokio::test]
async fn who_has_no_role_is_told_which_rule_is_missing_and_knows_who_it_is() {
    let rules = "default: deny\noperators:\n  - {identity: other, may: [all]}\n";
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(gate.house.admin().unwrap());
    for (method, path, body, needed) in ACTS {
        let answer = desk.call(method, path, (!body.is_empty()).then_some(body)).await;
        match needed {
            Some(needed) => {
                let told = format!("\"plain\" may not {needed}; wanted a rule for it under operators");
                assert_eq!(answer.detail(403), told, "{method} {path}");
            }
            None => {
                let me = answer.done();
                assert_eq!((&me["identity"], &me["roles"]), (&"plain".into(), &serde_json::json!([])));
            }
        }
    }
    // A token that cannot be taken is worse than none.
    for token in ["nonsense", "lessor1.AAAA"] {
        let stranger = Desk::with_token(gate.house.admin().unwrap(), token);
        stranger.get("/admin/whoami").await.problem(401);
        stranger.call("POST", "/admin/reload", Some("{}")).await.problem(401);
    }
    gate.house.stop().await;
}

#[tokio::test]
async fn a_team_recalls_what_is_its_own() {
    let rules =
        "default: deny\noperators:\n  - {identity: plain, may: [override], resources: [\"team/*\"]}\n";
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(gate.house.admin().unwrap());
    let recall = async |resource: &str| {
        let body = format!("{{\"resource\":\"{resource}\",\"holder\":\"a\",\"for\":\"1m\"}}");
        desk.call("POST", "/admin/recall", Some(&body)).await
    };
    recall("team/db").await.problem(404);
    let refused = recall("db").await.detail(403);
    assert!(refused.contains("\"db\"; wanted \"team/*\""), "{refused}");
    // What is about everything is not for who is for some of it.
    desk.call("POST", "/admin/resign", Some("{}")).await.problem(403);
    gate.house.stop().await;
}

#[tokio::test]
async fn what_is_only_noted_is_done_and_counted() {
    let gate = Gate::open_with("default: audit\n", &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(gate.house.admin().unwrap());
    desk.get("/admin/connections").await.done();
    eventually("it is noted", async || {
        gate.house.metric("lessor_audited_total{why=\"no_rule\"}").await >= 1.0
    })
    .await;
    gate.house.stop().await;
}
