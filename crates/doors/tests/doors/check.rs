//! The check of proxies and the calls of programs, over HTTP: what is granted, refused, settled, and said, and to whom.

use lessor_envoy_proto::{Code, RateLimitDescriptor};

use crate::house::{Answer, House, descriptor, http, raw, raw_beside, request, rules};

const EDGE: &str = r#"
wait: 30s
sets:
  edge:
    rules:
      - {name: tenant, match: {path: "/api/*"}, key: [header.x-tenant], limit: [5/1h, 8/1day]}
      - {name: all, match: {path: "/api/*", method: POST}, limit: 2/1h}
  gate:
    deny_status: 403
    headers: [ietf03, x-ratelimit, kong]
    forwarded: x-original
    rules:
      - {name: gate, key: [remote_address], limit: 1/1h}
  paid:
    rules:
      - {name: paid, key: [header.x-tenant], limit: 10/1h, charge: settle}
  busy:
    rules:
      - {name: busy, key: [header.x-tenant], limit: 2/5m, kind: concurrency}
  host:
    rules:
      - {name: user, key: [peer.uid, peer.exe], limit: 1/1h}
"#;

const TENANT: &str = "x-forwarded-uri: /api/x\r\nx-tenant: acme\r\n";

async fn check(house: &House, set: &str, fields: &str) -> Answer {
    http(&house.http, &format!("GET /check/{set}"), fields, "").await
}

async fn granted(house: &House, set: &str, fields: &str) -> Answer {
    let answer = check(house, set, fields).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer
}

fn field<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let begins = format!("{name}: ");
    answer.head.lines().find_map(|line| line.strip_prefix(&*begins))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_says_what_is_left_and_a_denial_when_to_come_again() {
    let house = House::open(rules(EDGE, &[])).await;
    let first = granted(&house, "edge", TENANT).await;
    assert_eq!(field(&first, "ratelimit-policy"), Some("\"tenant\";q=5;w=3600, \"tenant-1\";q=8;w=86400"));
    assert!(field(&first, "ratelimit").unwrap_or_default().starts_with("\"tenant\";r=4;t="), "{first:?}");
    assert_eq!((field(&first, "retry-after"), &*first.body), (None, ""));
    for left in (0..4).rev() {
        let answer = check(&house, "edge", TENANT).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.head.contains(&format!("\"tenant\";r={left};t=")), "{answer:?}");
    }
    let over = check(&house, "edge", TENANT).await;
    assert_eq!((over.status, field(&over, "content-type")), (429, Some("application/problem+json")));
    let after: u64 = field(&over, "retry-after").and_then(|after| after.parse().ok()).expect("a number");
    assert!((3_000..=3_700).contains(&after), "{after}");
    assert_eq!(
        over.body,
        "{\"type\":\"https://iana.org/assignments/http-problem-types#quota-exceeded\",\"title\":\"Too many requests\",\
         \"status\":429,\"violated-policies\":[\"tenant\"]}"
    );
    // A post is refused by the limit of the tenant, and takes nothing of the other, which has two.
    let post = |tenant: &str| {
        format!("x-forwarded-uri: /api/x\r\nx-forwarded-method: POST\r\nx-tenant: {tenant}\r\n")
    };
    for _ in 0..5 {
        assert_eq!(check(&house, "edge", &post("acme")).await.status, 429);
    }
    granted(&house, "edge", &post("b")).await;
    assert_eq!(check(&house, "edge", &post("b")).await.status, 200);
    let third = check(&house, "edge", &post("b")).await;
    assert!(third.status == 429 && third.body.contains("\"violated-policies\":[\"all\"]"), "{third:?}");
    assert_eq!(check(&house, "edge", "x-forwarded-uri: /free\r\n").await.status, 200, "no rule is for it");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_fields_and_a_status_are_as_the_set_says() {
    let house = House::open(rules(EDGE, &[])).await;
    let nginx = "x-real-ip: 192.0.2.1\r\n";
    let first = granted(&house, "gate", nginx).await;
    assert_eq!(field(&first, "x-ratelimit-limit"), Some("1, 1;w=3600"));
    assert_eq!(field(&first, "ratelimit-limit"), Some("1"), "two kinds have it, and the later one counts");
    assert_eq!(field(&first, "x-ratelimit-remaining"), Some("0"));
    assert_eq!(field(&first, "x-ratelimit-limit-hour"), Some("1"));
    let over = check(&house, "gate", nginx).await;
    assert_eq!((over.status, &*over.body), (403, "{\"message\":\"API rate limit exceeded\"}"));
    // Another client behind the same proxy.
    granted(&house, "gate", "x-real-ip: 192.0.2.2\r\n").await;
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_client_writes_into_its_request_is_a_way_round() {
    let house = House::open(rules(EDGE, &[])).await;
    for _ in 0..5 {
        granted(&house, "edge", TENANT).await;
    }
    for (line, path) in [
        ("GET /check/edge", "/api/%2e/x"),
        ("GET /check/edge", "//api//y"),
        ("GET /check/edge", "/free/..%2fapi/x"),
        ("GET /check/edge?path=/free&cost=0&hits=0", "/api/x?path=/free"),
        ("HEAD /check/edge", "/%61pi/x"),
        ("PURGE /check/edge", "/api/x"),
    ] {
        let fields = format!("x-forwarded-uri: {path}\r\nx-tenant: acme\r\nx-original-uri: /free\r\n");
        assert_eq!(http(&house.http, line, &fields, "").await.status, 429, "{line} of {path}");
    }
    for (fields, wanted) in [
        (
            "x-forwarded-uri: /free\r\nx-forwarded-uri: /api/x\r\n",
            "x-forwarded-uri stands there twice; wanted one field",
        ),
        ("x-lessor-timeout: soon\r\n", "x-lessor-timeout is \"soon\"; wanted milliseconds, as in 20"),
    ] {
        let answer = check(&house, "edge", fields).await;
        assert!(answer.status == 400 && answer.body.contains(wanted), "{answer:?}");
    }
    let long = format!("x-forwarded-uri: /{}\r\n", "a".repeat(8_192));
    let answer = check(&house, "edge", &long).await;
    assert_eq!(
        (answer.status, &*answer.body),
        (400, "x-forwarded-uri is of 8193 bytes; wanted at most 8192\n")
    );
    let unknown = check(&house, "edges", "").await;
    assert_eq!((unknown.status, &*unknown.body), (404, "there is no set \"edges\"\n"));
    // A header of 64 KiB and more is no request at all, and the next one is answered.
    let huge =
        format!("GET /check/edge HTTP/1.1\r\nhost: doors\r\nx-tenant: {}\r\n\r\n", "a".repeat(500_000));
    assert_eq!(raw(&house.http, huge.as_bytes()).await.status, 431);
    let old = raw(&house.http, b"GET /check/edge HTTP/1.0\r\nx-forwarded-uri: /free\r\n\r\n").await;
    assert_eq!(old.status, 200, "{old:?}");
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_asks_for_several_hits_and_settles_what_it_used() {
    let house = House::open(rules(EDGE, &[])).await;
    let ask = async |set: &str, body: &str| {
        http(&house.http, &format!("POST /v1/{set}"), "content-type: application/json\r\n", body).await
    };
    let first = ask("paid", r#"{"attributes": {"header.x-tenant": "acme"}, "hits": 7}"#).await;
    assert!(
        first.status == 200 && first.body.starts_with("{\"granted\":7,\"limits\":[{\"policy\":\"paid\""),
        "{first:?}"
    );
    let grant: serde_json::Value = serde_json::from_str(&first.body).expect("an answer");
    let grant = grant["grant"].as_str().expect("a grant").to_owned();
    let over = ask("paid", r#"{"attributes": {"header.x-tenant": "acme"}, "hits": 4}"#).await;
    assert!(
        over.status == 429 && over.body.contains("\"granted\":0") && over.body.contains("\"retry_ms\":"),
        "{over:?}"
    );
    let fewer = ask("paid", r#"{"attributes": {"header.x-tenant": "acme"}, "hits": 9, "min": 1}"#).await;
    assert!(fewer.status == 200 && fewer.body.starts_with("{\"granted\":3,"), "{fewer:?}");
    let settle = async |grant: &str, cost: u32| {
        let body = format!("{{\"grant\": \"{grant}\", \"cost\": {cost}}}");
        http(&house.http, "POST /v1/settle", "content-type: application/json\r\n", &body).await.status
    };
    assert_eq!(settle("AAAA", 1).await, 410, "it is forged");
    assert_eq!((settle(&grant, 2).await, settle(&grant, 0).await), (204, 410), "once");
    let look = ask("paid", r#"{"attributes": {"header.x-tenant": "acme"}, "look": true}"#).await;
    assert!(look.status == 200 && look.body.contains("\"remaining\":5"), "{look:?}");
    for (body, wanted) in [
        ("{", "EOF while parsing"),
        (r#"{"hits": -1}"#, "invalid value: integer `-1`, expected u64"),
        (r#"{"hit": 1}"#, "unknown field `hit`, expected one of `attributes`, `hits`, `min`, `look`"),
    ] {
        let answer = ask("paid", body).await;
        assert!(answer.status == 400 && answer.body.contains(wanted), "{answer:?}");
    }
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_counted_until_it_has_ended() {
    let mut house = House::open(rules(EDGE, &[])).await;
    let first = granted(&house, "busy", TENANT).await;
    assert_eq!(field(&first, "ratelimit-policy"), Some("\"busy\";q=2;qu=\"concurrent-requests\""));
    assert_eq!(field(&first, "ratelimit"), Some("\"busy\";r=1"));
    let grant = field(&first, "x-lessor-grant").expect("a grant").to_owned();
    granted(&house, "busy", TENANT).await;
    let third = check(&house, "busy", TENANT).await;
    assert_eq!((third.status, field(&third, "retry-after")), (429, Some("1")), "{third:?}");
    // The case of letters counts in a grant, and those of the answer's head are small here.
    let ask = r#"{"attributes": {"header.x-tenant": "other"}}"#;
    let program = http(&house.http, "POST /v1/busy", "content-type: application/json\r\n", ask).await;
    let answer: serde_json::Value = serde_json::from_str(&program.body).expect("an answer");
    assert_eq!(
        (&answer["granted"], &answer["limits"][0]["remaining"]),
        (&1.into(), &1.into()),
        "{program:?}"
    );
    assert!(!grant.is_empty());
    let ended = format!("{{\"grant\": {}, \"cost\": 0}}", answer["grant"]);
    let settled = http(&house.http, "POST /v1/settle", "content-type: application/json\r\n", &ended).await;
    assert_eq!(settled.status, 204);
    let look = r#"{"attributes": {"header.x-tenant": "other"}, "look": true}"#;
    let look = http(&house.http, "POST /v1/busy", "content-type: application/json\r\n", look).await;
    assert!(look.body.contains("\"remaining\":2"), "{look:?}");
    // Envoy says the end of a request with hits that are negative.
    let tenant = descriptor(&[("header.x-tenant", "acme")]);
    let ask = async |house: &mut House, descriptor: &RateLimitDescriptor| {
        let answer = house.rls.should_rate_limit(request("busy", std::slice::from_ref(descriptor))).await;
        answer.expect("an answer").into_inner()
    };
    assert_eq!(ask(&mut house, &tenant).await.overall_code(), Code::OverLimit);
    let end = RateLimitDescriptor { hits_addend: Some(1), is_negative_hits: true, ..tenant.clone() };
    // It says so also of the one that was refused.
    ask(&mut house, &end).await;
    assert_eq!(ask(&mut house, &tenant).await.overall_code(), Code::OverLimit);
    ask(&mut house, &end).await;
    ask(&mut house, &end).await;
    let next = ask(&mut house, &tenant).await;
    let limit = next.statuses[0].current_limit.as_ref().expect("a limit");
    assert_eq!((next.overall_code(), limit.requests_per_unit, limit.unit), (Code::Ok, 2, 0));
    assert_eq!(ask(&mut house, &tenant).await.overall_code(), Code::OverLimit);
    house.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_known_by_its_connection_whatever_it_says() {
    let mut house = House::open(rules(EDGE, &[])).await;
    let socket = house.open_beside().await;
    let ask = |user: u32| {
        let body = format!("{{\"attributes\": {{\"peer.uid\": \"{user}\", \"peer.exe\": \"/bin/{user}\"}}}}");
        format!(
            "POST /v1/host HTTP/1.1\r\nhost: doors\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    assert_eq!(raw_beside(&socket, ask(1).as_bytes()).await.status, 200);
    assert_eq!(raw_beside(&socket, ask(2).as_bytes()).await.status, 429, "it is the same program");
    assert_eq!(raw(&house.http, ask(1).as_bytes()).await.status, 200, "nothing is known of one at a port");
    assert_eq!(raw(&house.http, ask(2).as_bytes()).await.status, 429);
    let own = std::env::current_exe().expect("a path");
    let own = own.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    let page = http(&house.http, "GET /status", "", "").await.body;
    assert!(page.contains(&own), "{page}");
    house.close().await;
}
