//! Envoy's rate limit service, asked in its own messages: what is granted over several processes, and what is refused.

use lessor_envoy_proto::Code;
use rustix::process::Signal;
use tonic::Code as Status;

use crate::front::{Front, ask};
use crate::house::eventually;

const RULES: &str = "ratelimit: [ratelimit.yaml]";
const HOURLY: &str = "domain: shop\ndescriptors:\n\
                      - {key: tenant, rate_limit: {unit: hour, requests_per_unit: 10}}\n\
                      - {key: path, value: /export, rate_limit: {unit: hour, requests_per_unit: 3}}\n";

#[tokio::test]
async fn a_limit_is_kept_over_two_processes_and_what_is_refused_takes_nothing() {
    let front = Front::open(RULES, HOURLY).await;
    let doors = [front.door(&[]).await, front.door(&[]).await];
    let mut services = [doors[0].service().await, doors[1].service().await];
    let mut granted = 0;
    let mut turns = 0_usize;
    eventually("ten are granted", async || {
        let answer = ask(&mut services[turns % 2], &[("tenant", "acme")], 1).await;
        turns += 1;
        // While the first lease is on its way nobody knows.
        granted += usize::from(answer.is_ok_and(|answer| answer.overall_code() == Code::Ok));
        granted == 10
    })
    .await;
    for turn in 0..20 {
        let answer = ask(&mut services[turn % 2], &[("tenant", "acme")], 1).await.unwrap();
        assert_eq!((answer.overall_code(), answer.statuses[0].limit_remaining), (Code::OverLimit, 0));
    }
    // The export is refused for the tenant that is over, or for hits that nobody ever has, and takes nothing of its own limit.
    let export = ("path", "/export");
    let service = &mut services[0];
    eventually("an export is granted", async || {
        ask(service, &[export], 1).await.is_ok_and(|answer| answer.overall_code() == Code::Ok)
    })
    .await;
    for (entries, hits) in [(&[export, ("tenant", "acme")][..], 1), (&[export], 4), (&[export], u32::MAX)] {
        assert_eq!(ask(service, entries, hits).await.unwrap().overall_code(), Code::OverLimit, "{hits}");
    }
    eventually("the two that are left are granted", async || {
        ask(service, &[export], 2).await.is_ok_and(|answer| answer.overall_code() == Code::Ok)
    })
    .await;
    assert_eq!(ask(service, &[export], 1).await.unwrap().overall_code(), Code::OverLimit);
    drop(services);
    for door in doors {
        door.stop().await;
    }
    front.server.stop().await;
}

#[tokio::test]
async fn in_the_place_of_ratelimit_its_variables_say_where_and_how() {
    let front = Front::open(RULES, HOURLY).await;
    let fields = [("LIMIT_RESPONSE_HEADERS_ENABLED", "true"), ("LIMIT_REMAINING_HEADER", "X-Left")];
    let door = front.ratelimit(&[fields[0], fields[1], ("REDIS_URL", "redis:6379")]).await;
    let mut service = door.service().await;
    eventually("it is granted", async || {
        ask(&mut service, &[("path", "/export")], 1)
            .await
            .is_ok_and(|answer| answer.overall_code() == Code::Ok)
    })
    .await;
    let answer = ask(&mut service, &[("path", "/export")], 3).await.unwrap();
    assert_eq!(answer.overall_code(), Code::OverLimit, "three of an hour, of which one is used");
    let names: Vec<_> = answer.response_headers_to_add.iter().map(|header| &*header.key).collect();
    assert_eq!(names, ["retry-after", "ratelimit-limit", "x-left", "ratelimit-reset"]);
    drop(service);
    let log = door.stop().await;
    let is_said = log.lines().any(|line| line.contains("passed over") && line.contains("REDIS_URL"));
    assert!(is_said, "{log}");

    let shadow = front.ratelimit(&[("SHADOW_MODE", "true")]).await;
    let mut service = shadow.service().await;
    for _ in 0..5 {
        let answer = ask(&mut service, &[("path", "/export")], 3).await.unwrap();
        assert_eq!((answer.overall_code(), answer.response_headers_to_add.len()), (Code::Ok, 0));
    }
    drop(service);
    shadow.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn without_a_server_it_is_unavailable_and_in_shadow_nothing_is_refused() {
    let mut front = Front::open(RULES, HOURLY).await;
    let door = front.door(&["--shadow"]).await;
    let mut service = door.service().await;
    eventually("what would be refused is counted", async || {
        for _ in 0..5 {
            assert_eq!(ask(&mut service, &[("path", "/export")], 1).await.unwrap().overall_code(), Code::Ok);
        }
        let page = door.http("GET /metrics", "", "").await;
        page.body.lines().any(|line| {
            line.starts_with(
                "lessor_rule_hits_total{set=\"shop\",rule=\"shop/path=%2Fexport\",verdict=\"Shadow\"} ",
            ) && !line.ends_with(" 0")
        })
    })
    .await;
    drop(service);
    door.stop().await;
    front.server.crash().await;
    // It starts all the same, and says that nobody knows.
    let door = front.door(&[]).await;
    let mut service = door.service().await;
    let fault = ask(&mut service, &[("tenant", "acme")], 1).await.unwrap_err();
    assert_eq!((fault.code(), fault.message()), (Status::Unavailable, "nothing is leased"));
    drop(service);
    door.stop().await;
}

#[tokio::test]
async fn rules_that_have_changed_are_in_force_and_faulty_ones_are_not() {
    let front = Front::open(RULES, HOURLY).await;
    let door = front.door(&[]).await;
    front.replace("ratelimit: [ratelimit.yaml]\nsets: {edge: {rules: [{limit: 0/1m}]}}");
    // Nobody says so: the files are looked at.
    eventually("the set is there", async || {
        let answer = door.http("GET /check/edge", "", "").await;
        assert!(matches!(answer.status, 404 | 429), "{answer:?}");
        answer.status == 429
    })
    .await;
    front.replace("sets: {edge: {rules: [{limit: many}]}}");
    door.signal(Signal::HUP);
    eventually("the fault is counted", async || {
        let page = door.http("GET /metrics", "", "").await;
        page.body.contains("lessor_door_rules_loads_total{outcome=\"Faulty\"} ")
    })
    .await;
    assert_eq!(door.http("GET /check/edge", "", "").await.status, 429, "the old rules stay in force");
    let log = door.stop().await;
    assert!(log.contains("the old rules stay in force") && log.contains("wanted hits and a window"), "{log}");
    front.server.stop().await;
}
