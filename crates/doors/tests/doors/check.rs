//! The check of proxies and the calls of programs, over HTTP: what is granted, refused, settled, and said, and to whom.

use crate::house::{Answer, House, http, raw, rules};

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
