//! The rate limit service over gRPC and as JSON: what is granted, refused, given back, and said.

use lessor_envoy_proto::{Code, RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use tonic::Code as Status;

use crate::house::{House, PATIENT, connect, descriptor, http, request, rules, soon};

const MONGO: &str = r#"
domain: mongo
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 5, name: per-user}}
  - {key: all, rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: closed, rate_limit: {unit: hour, requests_per_unit: 0}}
"#;

async fn ask(house: &mut House, request: RateLimitRequest) -> RateLimitResponse {
    soon(house.rls.should_rate_limit(request)).await.expect("an answer").into_inner()
}

async fn code(house: &mut House, descriptors: &[RateLimitDescriptor]) -> Code {
    ask(house, request("mongo", descriptors)).await.overall_code()
}

/// Leases a unit of a key, and gives back what that took.
async fn warm(house: &mut House, of: &RateLimitDescriptor) {
    assert_eq!(code(house, std::slice::from_ref(of)).await, Code::Ok);
    let back = RateLimitDescriptor { hits_addend: Some(1), is_negative_hits: true, ..of.clone() };
    assert_eq!(code(house, &[back]).await, Code::Ok);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_granted_as_a_whole_or_takes_nothing() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    let (user, all) = (descriptor(&[("user", "u/1")]), descriptor(&[("all", "x")]));
    warm(&mut house, &user).await;
    warm(&mut house, &all).await;
    for _ in 0..3 {
        assert_eq!(code(&mut house, &[user.clone(), all.clone()]).await, Code::Ok);
    }
    let response = ask(&mut house, request("mongo", &[user.clone(), all.clone()])).await;
    assert_eq!(response.overall_code(), Code::OverLimit);
    let codes: Vec<Code> = response.statuses.iter().map(lessor_envoy_proto::DescriptorStatus::code).collect();
    assert_eq!(codes, [Code::Ok, Code::OverLimit]);
    let reset = response.statuses[1].duration_until_reset.as_ref().expect("a time").seconds;
    assert!((1..=3_700).contains(&reset), "{reset}");
    assert_eq!(response.statuses[0].limit_remaining, 2, "the refused call took nothing of the other");
    let retry =
        response.response_headers_to_add.iter().find(|header| header.key == "retry-after").expect("it");
    assert_eq!(retry.value, reset.to_string());
    // Two of one key are added up, and a look takes nothing.
    assert_eq!(code(&mut house, &[user.clone(), user.clone(), user.clone()]).await, Code::OverLimit);
    let look = RateLimitDescriptor { hits_addend: Some(0), ..user.clone() };
    assert_eq!(code(&mut house, std::slice::from_ref(&look)).await, Code::Ok);
    assert_eq!(code(&mut house, &[user.clone(), user.clone()]).await, Code::Ok);
    assert_eq!(code(&mut house, &[look]).await, Code::OverLimit);
    assert_eq!(code(&mut house, std::slice::from_ref(&user)).await, Code::OverLimit);
    let back = RateLimitDescriptor { hits_addend: Some(2), is_negative_hits: true, ..user.clone() };
    assert_eq!(code(&mut house, &[back]).await, Code::Ok);
    let two = RateLimitDescriptor { hits_addend: Some(2), ..user.clone() };
    assert_eq!(code(&mut house, &[two]).await, Code::Ok);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_hits_are_over_the_limit_and_shadows_refuse_nothing() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    let user = descriptor(&[("user", "u")]);
    warm(&mut house, &user).await;
    for hits in [6, u64::from(u32::MAX), 1 << 63, u64::MAX] {
        let hostile = RateLimitDescriptor { hits_addend: Some(hits), ..user.clone() };
        assert_eq!(code(&mut house, &[hostile]).await, Code::OverLimit, "{hits}");
    }
    let five = RateLimitDescriptor { hits_addend: Some(5), ..user };
    assert_eq!(code(&mut house, &[five]).await, Code::Ok, "they took nothing");
    assert_eq!(code(&mut house, &[descriptor(&[("closed", "x")])]).await, Code::OverLimit);
    let shadow = descriptor(&[("shadow", "x")]);
    for _ in 0..50 {
        assert_eq!(code(&mut house, std::slice::from_ref(&shadow)).await, Code::Ok);
    }
    let page = house.doors.metrics();
    assert!(
        page.contains(r#"lessor_rule_hits_total{set="mongo",rule="mongo/shadow",verdict="Shadow"}"#),
        "{page}"
    );
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_limits_passes_and_what_is_malformed_is_said() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    let response = ask(&mut house, request("elsewhere", &[descriptor(&[("k", "v")])])).await;
    assert_eq!((response.overall_code(), response.statuses.len()), (Code::Ok, 1));
    assert_eq!(response.statuses[0].current_limit, None);
    let none = ask(&mut house, request("mongo", &[descriptor(&[("k", "v")])])).await;
    assert_eq!((none.overall_code(), none.statuses[0].current_limit.clone()), (Code::Ok, None));
    let fault = soon(house.rls.should_rate_limit(request("mongo", &[]))).await.expect_err("it is malformed");
    assert_eq!(
        (fault.code(), fault.message()),
        (Status::InvalidArgument, "descriptors is empty; wanted 1 to 64")
    );
    let long = "x".repeat(70_000);
    let fault = soon(house.rls.should_rate_limit(request("mongo", &[descriptor(&[("k", &long)])]))).await;
    assert_eq!(fault.expect_err("it is too long").code(), Status::OutOfRange);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_lease_it_is_an_error_and_no_limit() {
    const SHARED: &str = "domain: shared\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}, \
                          x-lessor: {kind: shared, capacity: 100}}]";
    let book = rules("ratelimit: [service.yaml]", &[MONGO, SHARED]);
    let directory = tempfile::tempdir().expect("a directory");
    let server = crate::house::server(
        directory.path(),
        "resources: [{identifier_glob: none, capacity: 0, algorithm: \
        {kind: FAIR_SHARE, lease_length: 1, refresh_interval: 1, learning_mode_duration: 0}}]",
    )
    .await;
    let client = lessor_client::Client::builder(server.address().to_string()).build().expect("a client");
    let doors = std::sync::Arc::new(lessor_doors::shell::Doors::new(client, book));
    let mut listening = lessor_doors::shell::Listening::new(doors, 100);
    let port = listening.open_rls(&"127.0.0.1:0".parse().expect("it")).await.expect("a port");
    let mut rls = connect(&port.to_string()).await;
    for domain in ["mongo", "mongo", "shared", "shared"] {
        let fault = soon(rls.should_rate_limit(request(domain, &[descriptor(&[("user", "u")])]))).await;
        assert_eq!(fault.expect_err("nothing is leased").code(), Status::Unavailable, "{domain}");
    }
    drop(rls);
    assert!(soon(listening.drain(std::time::Duration::from_secs(20))).await);
    soon(server.drain()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_is_asked_as_json() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    warm(&mut house, &descriptor(&[("all", "x")])).await;
    let body = r#"{"domain":"mongo","descriptors":[{"entries":[{"key":"all","value":"x"}]}],"hitsAddend":3}"#;
    let granted = http(&house.http, "POST /json", "", body).await;
    let wanted = r#"{"overallCode":"OK","statuses":[{"code":"OK","currentLimit":{"requestsPerUnit":3,"unit":"HOUR"},"durationUntilReset":""#;
    assert!(granted.status == 200 && granted.body.starts_with(wanted), "{granted:?}");
    assert!(granted.head.contains("content-type: application/json"), "{granted:?}");
    let refused = http(&house.http, "POST /json", "", body).await;
    assert!(refused.status == 429 && refused.body.contains(r#""overallCode":"OVER_LIMIT""#), "{refused:?}");
    for (body, wanted) in [
        ("{", "EOF while parsing an object at line 1 column 1\n"),
        (r#"{"domain":"mongo"}"#, "descriptors is empty; wanted 1 to 64\n"),
    ] {
        let fault = http(&house.http, "POST /json", "", body).await;
        assert_eq!((fault.status, &*fault.body), (400, wanted));
    }
    let health = http(&house.http, "GET /healthcheck", "", "").await;
    assert_eq!((health.status, &*health.body), (200, "OK"));
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_which_units_are_on_their_way_is_not_said_to_refuse() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    let all = descriptor(&[("all", "x")]);
    warm(&mut house, &all).await;
    let three = RateLimitDescriptor { hits_addend: Some(3), ..all.clone() };
    assert_eq!(code(&mut house, &[three]).await, Code::Ok);
    // Each user is new here, and nothing of its limit is leased yet, or one unit.
    for user in ["a", "b", "c", "d"] {
        let user = descriptor(&[("user", user)]);
        warm(&mut house, &user).await;
        let five = RateLimitDescriptor { hits_addend: Some(5), ..user };
        let response = ask(&mut house, request("mongo", &[five, all.clone()])).await;
        let codes: Vec<Code> =
            response.statuses.iter().map(lessor_envoy_proto::DescriptorStatus::code).collect();
        assert_eq!((response.overall_code(), codes), (Code::OverLimit, vec![Code::Ok, Code::OverLimit]));
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_a_shared_limit_are_limited_each_by_itself() {
    const SHARED: &str = "domain: shared\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 5}, \
                          x-lessor: {kind: shared, capacity: 1000}}]";
    let mut house = House::open(rules(PATIENT, &[SHARED])).await;
    for user in ["a", "b"] {
        let user = descriptor(&[("user", user)]);
        let mut granted = 0;
        // The first lease is on its way for a moment.
        for _ in 0..200 {
            match soon(house.rls.should_rate_limit(request("shared", std::slice::from_ref(&user)))).await {
                Ok(response) if response.get_ref().overall_code() == Code::Ok => granted += 1,
                Ok(_) => break,
                Err(status) => assert_eq!((status.code(), granted), (Status::Unavailable, 0)),
            }
        }
        assert_eq!(granted, 5, "{user:?}");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_used_counts_under_other_rules_as_well() {
    let mut house = House::open(rules(PATIENT, &[MONGO])).await;
    let all = descriptor(&[("all", "x")]);
    let three = RateLimitDescriptor { hits_addend: Some(3), ..all.clone() };
    assert_eq!(code(&mut house, &[three]).await, Code::Ok);
    let other = MONGO.replace("requests_per_unit: 5", "requests_per_unit: 6");
    house.doors.replace(rules(PATIENT, &[&other]));
    assert_eq!(code(&mut house, std::slice::from_ref(&all)).await, Code::OverLimit);
    house.close().await;
}
