//! The acts: what each does, and what becomes of calls that make no sense.

use crate::desk::Desk;
use crate::gate::Gate;
use crate::house::{House, eventually, everything, run};

/// A server that everybody on this machine may act on.
async fn open() -> (House, Desk) {
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(house.admin().unwrap());
    (house, desk)
}

#[tokio::test]
async fn what_is_in_the_files_is_in_force_when_a_reload_is_answered() {
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(house.admin().unwrap());
    house.configure(&format!("version: 7\n{}", everything(300.0, 60)));
    let read = desk.call("POST", "/admin/reload", Some("{}")).await.done();
    let templates = &read["read"][0];
    assert_eq!((&templates["what"], &templates["version"]), (&"templates".into(), &7.into()), "{read}");
    assert_eq!((&templates["in_force"], read["read"].as_array().unwrap().len()), (&true.into(), 1));
    let got = run(&["get", "db", "--wants", "300", "--server", &house.address().to_string()]).await;
    assert!(got.out.contains("db: 300/s of 300/s wanted"), "{got:?}");

    house.configure("resources:\n- identifier_glob: \"*\"\n  capacity: many\n");
    let refused = desk.call("POST", "/admin/reload", Some("{}")).await;
    let problem = refused.problem(422);
    let fault = problem["read"][0]["fault"].as_str().unwrap();
    assert!(
        fault.contains("lessor.yaml:3:13") && fault.contains("many"),
        "its place, and what was found: {fault}"
    );
    assert_eq!(problem["read"][0]["in_force"], false);
    let got =
        run(&["get", "db", "--wants", "300", "--server", &house.address().to_string(), "--id", "b"]).await;
    assert!(got.out.contains("of 300/s wanted"), "what was in force stays so: {got:?}");
    house.stop().await;
}

#[tokio::test]
async fn rules_and_keys_are_read_again_too() {
    let rules = "version: 2\ndefault: deny\noperators:\n  - {identity: plain, may: [all]}\n";
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(gate.house.admin().unwrap());
    let access = desk.get("/admin/access").await.done();
    assert_eq!(
        (&access["in_force"], &access["version"], &access["default"]),
        (&true.into(), &2.into(), &"deny".into())
    );
    assert_eq!((&access["rules"]["operators"], &access["denied"]["role"]), (&1.into(), &0.into()));
    gate.replace("access.yaml", &rules.replace("version: 2", "version: 3"));
    let read = desk.call("POST", "/admin/reload", Some("{}")).await.done();
    let what: Vec<_> =
        read["read"].as_array().unwrap().iter().map(|file| file["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["templates", "access", "token keys"]);
    assert_eq!(read["read"][1]["version"], 3);
    assert_eq!(desk.get("/admin/access").await.done()["version"], 3);
    // One who takes the right away from himself has it no more with the next call.
    gate.replace("access.yaml", &rules.replace("[all]", "[push]"));
    desk.call("POST", "/admin/reload", Some("{}")).await.done();
    let refused = desk.get("/admin/access").await.problem(403);
    assert!(refused["rule"].as_str().unwrap().starts_with("operators[0] on line 4"), "{refused}");
    gate.house.stop().await;
}

#[tokio::test]
async fn a_log_filter_is_for_a_time_and_the_one_of_before_comes_back() {
    let (house, desk) = open().await;
    assert_eq!(desk.get("/admin/log").await.done()["filter"], "info");
    let debug = r#"{"filter":"info,lessor_server=debug","for":"24h"}"#;
    let changed = desk.call("PUT", "/admin/log", Some(debug)).await.done();
    assert_eq!(
        (&changed["filter"], &changed["former"]),
        (&"info,lessor_server=debug".into(), &"info".into())
    );
    let ends = changed["ends_in_seconds"].as_f64().unwrap();
    assert!(86_000.0 < ends && ends <= 86_400.0, "{ends}");
    house.capacity().await.discovery(lessor_proto::wire::DiscoveryRequest::default()).await.unwrap();
    run(&["get", "db", "--wants", "3", "--server", &house.address().to_string()]).await;
    eventually("it logs more", async || house.has_logged_part("\"level\":\"DEBUG\"")).await;
    // Another in its place goes back to the one of the start.
    desk.call("PUT", "/admin/log", Some(r#"{"filter":"warn","for":"1s"}"#)).await.done();
    eventually("it is back by itself", async || {
        let log = desk.get("/admin/log").await.done();
        log["filter"] == "info" && log["former"].is_null()
    })
    .await;
    eventually("it says so", async || house.has_logged_part("the log filter of before is back")).await;
    desk.call("PUT", "/admin/log", Some(debug)).await.done();
    assert_eq!(desk.call("DELETE", "/admin/log", Some("{}")).await.done()["filter"], "info");
    for (filter, found) in [
        ("debgu", "filter: found \"debgu\", which is no level; wanted off, error, warn"),
        ("lessor=loud", "filter: found \"lessor=loud\": "),
        ("", "filter: found nothing; wanted off"),
    ] {
        let body = serde_json::json!({"filter": filter, "for": "10m"}).to_string();
        let detail = desk.call("PUT", "/admin/log", Some(&body)).await.detail(400);
        assert!(detail.starts_with(found), "{filter}: {detail}");
    }
    assert_eq!(desk.get("/admin/log").await.done()["filter"], "info", "what is none changes nothing");
    house.stop().await;
}

#[tokio::test]
async fn who_is_connected_is_listed_with_its_streams() {
    let (house, desk) = open().await;
    let client = lessor_client::Client::builder(house.address().to_string()).build().unwrap();
    let _rate = client.rate("db").wants(1.0).open().unwrap();
    let mut listed = serde_json::Value::Null;
    eventually("it has a stream", async || {
        listed = desk.get("/admin/connections").await.done();
        let rows = listed["connections"].as_array().unwrap();
        rows.iter().any(|row| row["port"] == "main" && row["streams"] == 1)
    })
    .await;
    let rows = listed["connections"].as_array().unwrap();
    let main = rows.iter().find(|row| row["port"] == "main").unwrap();
    assert_eq!(main["identity"], "plain");
    assert!(main["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{main}");
    assert!(
        main["since"].as_str().unwrap().ends_with('Z') && main["open_seconds"].as_f64() >= Some(0.0),
        "{main}"
    );
    assert!(rows.iter().any(|row| row["port"] == "admin"), "this call itself: {listed}");
    let one = desk.get("/admin/connections?limit=1").await.done();
    assert_eq!(one["connections"].as_array().unwrap().len(), 1);
    assert!(one["in_all"].as_u64() > Some(1));
    drop((_rate, client));
    eventually("it is gone", async || {
        let listed = desk.get("/admin/connections").await.done();
        listed["connections"].as_array().unwrap().iter().all(|row| row["port"] != "main")
    })
    .await;
    house.stop().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_with_what_was_found_and_wanted() {
    let (house, desk) = open().await;
    let recall = |body: &'static str| ("POST", "/admin/recall", body);
    for ((method, path, body), code, told) in [
        (("GET", "/admin/nothing", ""), 404, "there is no \"/admin/nothing\"; wanted one of /admin/whoami, "),
        (("GET", "/status", ""), 404, "there is no \"/status\""),
        (("DELETE", "/admin/reload", "{}"), 405, "/admin/reload is not called by DELETE; wanted POST"),
        (("GET", "/admin/whoami?verbose", ""), 400, "query: found \"verbose\"; wanted none"),
        (
            ("PUT", "/admin/log?for=1m", "{\"filter\":\"info\",\"for\":\"1m\"}"),
            400,
            "query: found \"for=1m\"; wanted none",
        ),
        (("GET", "/admin/connections?limit=all", ""), 400, "query: found \"limit=all\"; wanted limit=N"),
        (("POST", "/admin/reload", "{\"now\":true}"), 400, "the body: unknown field `now`"),
        (("PUT", "/admin/log", "{\"filter\":\"info\"}"), 400, "the body: missing field `for`"),
        (("PUT", "/admin/log", "not json"), 400, "the body: "),
        (
            ("PUT", "/admin/log", "{\"filter\":\"info\",\"for\":\"25h\"}"),
            400,
            "for: found \"25h\"; wanted a time from 1s to 24h",
        ),
        (recall("{\"resource\":\"\",\"holder\":\"a\",\"for\":\"1m\"}"), 400, "resource: "),
        (recall("{\"resource\":\"db\",\"holder\":\"a\\u0007\",\"for\":\"1m\"}"), 400, "holder: "),
        (
            recall("{\"resource\":\"db\",\"holder\":\"nobody\",\"for\":\"1m\"}"),
            404,
            "nobody called \"nobody\" holds or wants \"db\"",
        ),
    ] {
        let answer = desk.call(method, path, (!body.is_empty()).then_some(body)).await;
        let detail = answer.detail(code);
        assert!(detail.starts_with(told), "{method} {path} {body}: {detail}");
        assert_eq!(answer.head.contains("allow: post"), code == 405, "{answer:?}");
    }
    let large = format!("{{\"filter\":\"{}\",\"for\":\"1m\"}}", "a".repeat(100_000));
    desk.call("PUT", "/admin/log", Some(&large)).await.problem(413);
    house.stop().await;
}

#[tokio::test]
async fn a_page_in_a_browser_acts_for_nobody() {
    let (house, desk) = open().await;
    // A form, or a script without leave, can say these kinds only, and whoever can say more says where it comes from.
    for kind in ["", "Content-Type: text/plain\r\n", "Content-Type: application/x-www-form-urlencoded\r\n"] {
        let refused = desk.say("POST", "/admin/reload", kind, "{}").await;
        assert!(refused.detail(415).contains("wanted \"application/json\""), "{kind}");
    }
    let page = Desk::new(house.admin().unwrap()).with_header("Origin: http://evil.example");
    assert!(page.call("POST", "/admin/reload", Some("{}")).await.detail(403).contains("a page in a browser"));
    assert_eq!(house.metric("lessor_reloads_total").await, 0.0);
    house.stop().await;
}
