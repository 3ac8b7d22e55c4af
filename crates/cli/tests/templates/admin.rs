//! Pushes through the admin port of a task: whoever makes one is known, it is written down, and held against a plan.

use serde_json::{Value, json};

use crate::desk::Desk;
use crate::gate::{KEY, token};
use crate::house::{House, everything, run};
use crate::site::Site;

const RULES: &str = "default: deny\noperators:\n  - {identity: ann, may: [see, plan, push]}\n  - {identity: bob, may: [see]}\n";

/// A task with rules, an admin port and an audit log, which has revision 1 in force.
async fn guarded(site: &Site) -> House {
    site.push(&site.templates(100.0)).await;
    let (rules, key) = (site.file("access.yaml", RULES), site.file("auth.key", KEY));
    let audit = site.path("audit.log").display().to_string();
    let flags = ["--access", &rules, "--auth-key", &key, "--admin", "127.0.0.1:0", "--audit-log", &audit];
    site.alone("root", &flags).await
}

async fn token_of(site: &Site, identity: &str) -> String {
    let key = site.path("auth.key").display().to_string();
    let roles = ["see", "plan", "push"].map(|role| ["--role", role]);
    let flags = [&["--identity", identity, "--client-id", "*", "--ttl", "1h"], &roles.concat()[..]].concat();
    token(&key, &flags).await
}

fn audited(site: &Site) -> Vec<Value> {
    let text = std::fs::read_to_string(site.path("audit.log")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_push_through_a_task_has_an_author_who_was_verified_and_is_written_down() {
    let Some(site) = Site::started().await else { return };
    let task = guarded(&site).await;
    let (admin, ann) = (task.admin().unwrap().to_owned(), token_of(&site, "ann").await);
    let token_file = site.file("ann.token", &ann);
    let through = async |arguments: &[&str]| {
        run(&[arguments, &["--admin", &admin, "--token-file", &token_file]].concat()).await
    };
    let pushed = through(&["push", &site.templates(40.0), "-m", "a cut", "--yes", "--json"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed:?}");
    let said: Value = serde_json::from_str(&pushed.out).unwrap();
    assert_eq!(
        (&said["outcome"], &said["number"], &said["tasks"]),
        (&"in_force".into(), &2.into(), &1.into())
    );
    let history: Value = serde_json::from_str(&site.done(&["history", "--json"]).await).unwrap();
    assert_eq!(history[0]["revision"]["by"]["name"], "ann", "{history}");
    assert_eq!(history[0]["revision"]["by"]["verified"], true, "{history}");
    let again = through(&["push", &site.templates(40.0), "-m", "a cut", "--yes"]).await;
    assert!(again.out.contains("nothing to push: revision 2 has that content"), "{again:?}");

    let back = through(&["rollback", "1", "-m", "too much", "--yes"]).await;
    assert!(back.code == Some(0) && back.out.contains("~ * capacity: 40 -> 100"), "{back:?}");
    let set = through(&["set", "*", "capacity=70", "-m", "less", "--yes"]).await;
    assert!(set.code == Some(0) && set.out.contains("revision 4 is in force"), "{set:?}");
    let frozen = through(&["push-freeze", "--for", "1h", "-m", "the sale"]).await;
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    let told = through(&["push", &site.templates(1.0), "-m", "x", "--yes"]).await;
    assert!(told.code == Some(5) && told.err.contains("ann says: the sale"), "{told:?}");
    assert_eq!(through(&["push-freeze", "--lift"]).await.out, "everybody may push again\n");
    let history: Value = serde_json::from_str(&site.done(&["history", "--json"]).await).unwrap();
    assert_eq!(history[1]["revision"]["rollback_of"], 1, "{history}");

    let bob = site.file("bob.token", &token_of(&site, "bob").await);
    let refused =
        run(&["push", &site.templates(1.0), "-m", "x", "--yes", "--admin", &admin, "--token-file", &bob])
            .await;
    assert!(refused.code == Some(1) && refused.err.contains("403"), "{refused:?}");
    let lines = audited(&site);
    let of = |identity: &str, outcome: &str| {
        let is = |line: &&Value| {
            line["act"] == "push" && line["identity"] == identity && line["outcome"] == outcome
        };
        lines.iter().filter(is).cloned().collect::<Vec<Value>>()
    };
    assert!(of("ann", "begun").iter().any(|line| line["arguments"]["message"] == "a cut"), "{lines:?}");
    assert!(!of("ann", "done").is_empty() && !of("bob", "refused").is_empty(), "{lines:?}");
    assert!(
        lines.iter().all(|line| !line.to_string().contains("identifier_glob")),
        "a document is in the log"
    );
    task.stop().await;
}

#[tokio::test]
async fn who_is_slower_through_a_task_is_told_what_both_have_changed() {
    let Some(site) = Site::started().await else { return };
    let task = guarded(&site).await;
    let desk = Desk::with_token(task.admin().unwrap(), &token_of(&site, "ann").await);
    let head = desk.get("/admin/push").await.done();
    assert_eq!((&head["head"], &head["freeze"]), (&1.into(), &Value::Null));
    site.push(&site.templates(40.0)).await;
    let document = json!({"for": "*", "name": "mine.yaml", "text": everything(60.0, 60)});
    let body = json!({"documents": [document], "message": "mine", "base": 1});
    let lost = desk.call("POST", "/admin/push", Some(&body.to_string())).await.problem(409);
    assert_eq!(
        (&lost["outcome"], &lost["theirs"]["number"], &lost["conflicts"]),
        (&"faster".into(), &2.into(), &1.into())
    );
    let field = &lost["documents"][0]["fields"][0];
    assert_eq!(
        (&field["base"], &field["theirs"], &field["mine"]),
        (&"100".into(), &"40".into(), &"60".into())
    );
    assert!(
        lost["detail"].as_str().unwrap().contains("CONFLICT  * capacity: 100 -> theirs 40, mine 60"),
        "{lost}"
    );
    for (body, told) in [
        (json!({"message": "x"}), "documents: wanted documents, or rollback_of"),
        (json!({"message": " ", "rollback_of": 1}), "message: is missing"),
        (
            json!({"message": "x", "documents": [{"for": "*", "name": "a", "text": "resources: 7"}]}),
            "documents: ",
        ),
        (
            json!({"message": "x", "documents": [{"for": "*", "name": "a", "text": format!("version: 7\n{}", everything(1.0, 60))}]}),
            "documents: a: version: 7",
        ),
        (json!({"message": "x", "rollback_of": 1, "colour": 1}), "the body: unknown field `colour`"),
    ] {
        let detail = desk.call("POST", "/admin/push", Some(&body.to_string())).await.detail(400);
        assert!(detail.starts_with(told), "{body}: {detail}");
    }
    let gone = json!({"message": "x", "rollback_of": 9}).to_string();
    assert!(desk.call("POST", "/admin/push", Some(&gone)).await.detail(404).contains("no revision 9"));
    task.stop().await;
}

#[tokio::test]
async fn a_page_pushes_only_what_was_planned_and_only_that_of_the_port_itself() {
    let Some(site) = Site::started().await else { return };
    let task = guarded(&site).await;
    let (admin, token) = (task.admin().unwrap().to_owned(), token_of(&site, "ann").await);
    let host: &'static str = Box::leak(admin.clone().into_boxed_str());
    let page = |origin: &str, site: &str, name: &str| {
        Desk::with_token(&admin, &token)
            .with_host(host)
            .with_header(&format!("Origin: {origin}"))
            .with_header(&format!("Sec-Fetch-Site: {site}"))
            .with_header(&format!("Lessor-Page: {name}"))
    };
    let own = format!("http://{admin}");
    let documents = json!([{"for": "*", "name": "console.yaml", "text": everything(40.0, 60)}]);
    let asked = json!({"documents": documents}).to_string();
    let plan = Desk::with_token(&admin, &token).call("POST", "/v1/plan", Some(&asked)).await.done();
    let planned =
        json!({"digest": plan["digest"], "base": plan["base"], "at": plan["at"], "moved": plan["moved"]});
    let body = |plan: &Value| json!({"documents": documents, "message": "by page", "plan": plan}).to_string();
    for (origin, site, name) in [
        ("http://evil.example", "cross-site", "console"),
        ("http://evil.example", "same-origin", "console"),
        (&own, "same-site", "console"),
        (&own, "same-origin", "other"),
    ] {
        let refused = page(origin, site, name).call("POST", "/admin/push", Some(&body(&planned))).await;
        assert!(refused.detail(403).contains("comes from a page in a browser"), "{origin} {site} {name}");
    }
    let desk = page(&own, "same-origin", "console");
    // Nothing else is done for a page.
    assert!(desk.call("POST", "/admin/reload", Some("{}")).await.detail(403).contains("a page in a browser"));
    let unplanned = json!({"documents": documents, "message": "by page"}).to_string();
    let told = desk.call("POST", "/admin/push", Some(&unplanned)).await.detail(400);
    assert!(told.starts_with("plan: is missing; wanted the plan that was shown"), "{told}");
    for (field, value, told) in [
        ("digest", json!("b3:00"), "the plan is of other documents"),
        ("at", json!("2020-01-01T00:00:00Z"), "minutes old; wanted one of at most 15"),
        ("at", json!("2999-01-01T00:00:00Z"), "wanted the time at which the plan was made"),
    ] {
        let mut other = planned.clone();
        other[field] = value;
        let answer = desk.call("POST", "/admin/push", Some(&body(&other))).await;
        assert!(answer.detail(412).contains(told), "{field}: {answer:?}");
    }
    let pushed = desk.call("POST", "/admin/push", Some(&body(&planned))).await.done();
    assert_eq!((&pushed["outcome"], &pushed["number"]), (&"in_force".into(), &2.into()), "{pushed}");
    assert_eq!((&pushed["by"]["name"], &pushed["by"]["verified"]), (&"ann".into(), &true.into()));
    // It was planned against what is in force no more.
    let late = desk.call("POST", "/admin/push", Some(&body(&planned))).await.problem(409);
    assert_eq!(
        (&late["outcome"], &late["base"], &late["theirs"]["number"]),
        (&"faster".into(), &1.into(), &2.into())
    );
    task.stop().await;
}
