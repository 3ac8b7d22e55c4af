//! Requests of Envoy: which claims they make, every malformed one, and what is answered.

use smallvec::smallvec;

use super::*;
use crate::claim::{Answered, CallAnswer, Mode, Overall, Standing, Verdict};
use crate::rules::document::DoorsFile;
use crate::rules::ratelimit::join;
use crate::shown::NOBODY;
use lessor_envoy_proto::{
    Code, DescriptorStatus, Entry, RateLimit, RateLimitDescriptor, RateLimitOverride, RateLimitUnit, Unit,
};

const DOORS: &str = r#"
sets:
  edge:
    overrides: [1000/1m, 5/30s]
    body: none
    rules:
      - {match: {path: "/api/*"}, key: [remote_address/24, header.x-tenant], limit: [100/1m, 1000/1h], name: perip}
      - {match: {method: PUT}, key: entry.user, limit: 50MiB/1s, cost: content_length}
"#;
const SERVICE: &str = r#"
domain: mongo
descriptors:
  - {key: database, value: users, rate_limit: {unit: second, requests_per_unit: 5, name: users}}
  - {key: database, rate_limit: {name: any, unit: week, requests_per_unit: 100}}
  - {key: plan, value: gold, rate_limit: {unlimited: true}}
  - {key: best, rate_limit: {unit: day, requests_per_unit: 7, replaces: [{name: any}]}}
  - key: shadow
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 7}
"#;

fn book() -> RuleBook {
    let doors = DoorsFile::parse("doors.yaml", DOORS).unwrap_or_else(|faults| panic!("{faults}"));
    join(doors, &[("mongo.yaml".to_owned(), SERVICE.to_owned())])
        .unwrap_or_else(|faults| panic!("{faults:?}"))
}

fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |&(key, value): &(&str, &str)| Entry { key: key.to_owned(), value: value.to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

fn request(domain: &str, descriptors: &[RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest { domain: domain.to_owned(), descriptors: descriptors.to_vec(), hits_addend: 0 }
}

/// The claims of a request: resource, key, hits and mode.
fn claims(request: &RateLimitRequest) -> Vec<(String, u64, Mode)> {
    let book = book();
    let heard = read(request, &NOBODY, &book, Bounds::default()).unwrap_or_else(|fault| panic!("{fault}"));
    let claims = heard.call.map(|call| call.claims).unwrap_or_default();
    claims
        .iter()
        .map(|claim| (format!("{}{}", claim.limit.resource, claim.key), claim.hits, claim.mode))
        .collect()
}

#[test]
fn descriptors_make_claims_on_names_that_no_client_can_choose() {
    let users = descriptor(&[("database", "users")]);
    let other = descriptor(&[("database", "a/b,c|0:d")]);
    assert_eq!(
        claims(&request("mongo", &[users.clone(), other])),
        [
            ("rl/mongo/database=users|0:".to_owned(), 1, Mode::Firm),
            ("rl/mongo/database|0:a%2Fb%2Cc%7C0:d".to_owned(), 1, Mode::Firm)
        ]
    );
    let edge = descriptor(&[("path", "/api/x"), ("remote_address", "10.1.2.3"), ("header.x-tenant", "acme")]);
    assert_eq!(
        claims(&request("edge", &[edge])),
        [
            ("edge/0|0:10.1.2.0,acme".to_owned(), 1, Mode::Firm),
            ("edge/0|1:10.1.2.0,acme".to_owned(), 1, Mode::Firm)
        ]
    );
    assert_eq!(claims(&request("unknown", &[users])), []);
}

#[test]
fn hits_are_those_of_the_descriptor_or_else_of_the_request() {
    let users = descriptor(&[("database", "users")]);
    let with = |hits_addend, of: RateLimitDescriptor| {
        let found = claims(&RateLimitRequest { hits_addend, ..request("mongo", &[of]) });
        (found[0].1, found[0].2)
    };
    assert_eq!(with(3, users.clone()), (3, Mode::Firm));
    let own = |hits| RateLimitDescriptor { hits_addend: Some(hits), ..users.clone() };
    assert_eq!(with(3, own(2)), (2, Mode::Firm));
    assert_eq!(with(3, own(0)), (0, Mode::Look));
    assert_eq!(with(3, own(1 << 63)), (1 << 63, Mode::Firm));
    assert_eq!(with(3, RateLimitDescriptor { is_negative_hits: true, ..own(2) }), (2, Mode::GiveBack));
    assert_eq!(with(1, descriptor(&[("shadow", "x")])), (1, Mode::Shadow));
    let put = descriptor(&[("method", "PUT"), ("content_length", "1000"), ("user", "u")]);
    assert_eq!(claims(&request("edge", &[put])), [("edge/1|0:u".to_owned(), 1_000, Mode::Firm)]);
}

#[test]
fn a_policy_that_is_replaced_is_not_asked() {
    let both = request("mongo", &[descriptor(&[("database", "x")]), descriptor(&[("best", "y")])]);
    assert_eq!(claims(&both), [("rl/mongo/best|0:y".to_owned(), 1, Mode::Firm)]);
    let book = book();
    let heard = read(&both, &NOBODY, &book, Bounds::default()).unwrap();
    assert_eq!(heard.met, [Met::Nothing, Met::Limits]);
}

#[test]
fn a_limit_that_a_request_brings_has_to_be_allowed() {
    let with = |requests_per_unit, unit: RateLimitUnit, multiplier| {
        let limit = RateLimitOverride { requests_per_unit, unit: unit.into(), unit_multiplier: multiplier };
        request("edge", &[RateLimitDescriptor { limit: Some(limit), ..descriptor(&[("k", "v"), ("l", "")]) }])
    };
    assert_eq!(
        claims(&with(1_000, RateLimitUnit::Minute, None)),
        [("rl/edge|o:1000/60:k,v,l,".to_owned(), 1, Mode::Firm)]
    );
    assert_eq!(claims(&with(5, RateLimitUnit::Second, Some(30)))[0].0, "rl/edge|o:5/30:k,v,l,");
    let book = book();
    let fault = |request| read(&request, &NOBODY, &book, Bounds::default()).unwrap_err().to_string();
    assert_eq!(
        fault(with(6, RateLimitUnit::Hour, None)),
        "descriptors[0].limit is 6 in 1h; wanted 1000/1m or 5/30s"
    );
    assert_eq!(
        fault(with(6, RateLimitUnit::Unknown, None)),
        "descriptors[0].limit has unit 0; wanted 1000/1m or 5/30s"
    );
    let elsewhere =
        |domain: &str| RateLimitRequest { domain: domain.to_owned(), ..with(6, RateLimitUnit::Hour, None) };
    assert_eq!(
        fault(elsewhere("mongo")),
        "descriptors[0].limit is 6 in 1h; wanted no limit of its own, as the set has no overrides"
    );
    assert_eq!(
        fault(elsewhere("none")),
        "descriptors[0].limit is brought by a request of a domain that has no rules; wanted a domain whose overrides allow it"
    );
}

#[test]
fn what_is_malformed_is_refused_with_what_was_found_and_what_is_wanted() {
    let book = book();
    let users = || descriptor(&[("database", "users")]);
    let long = |bytes| "x".repeat(bytes);
    for (request, wanted) in [
        (request("", &[users()]), "domain is empty; wanted the name of a set of rules"),
        (request(&long(257), &[users()]), "domain is of 257 bytes; wanted at most 256"),
        (request("mongo", &[]), "descriptors is empty; wanted 1 to 64"),
        (request("mongo", &vec![users(); 65]), "descriptors has 65 descriptors; wanted 1 to 64"),
        (request("mongo", &[users(), descriptor(&[])]), "descriptors[1].entries is empty; wanted 1 to 16"),
        (
            request("mongo", &[descriptor(&[("k", "v"); 17])]),
            "descriptors[0].entries has 17 entries; wanted 1 to 16",
        ),
        (
            request("mongo", &[descriptor(&[("", "v")])]),
            "descriptors[0].entries[0].key is empty; wanted 1 to 256 bytes",
        ),
        (
            request("mongo", &[descriptor(&[("k", "v"), (&long(257), "v")])]),
            "descriptors[0].entries[1].key is of 257 bytes; wanted at most 256",
        ),
        (
            request("mongo", &[descriptor(&[("k", &long(1_025))])]),
            "descriptors[0].entries[0].value is of 1025 bytes; wanted at most 1024",
        ),
        (
            request("edge", &[descriptor(&[("method", "PUT"), ("content_length", "nan")])]),
            "content_length is \"nan\"; wanted a whole number",
        ),
    ] {
        assert_eq!(read(&request, &NOBODY, &book, Bounds::default()).unwrap_err().to_string(), wanted);
    }
    let widest = request("mongo", &vec![descriptor(&[(&long(256)[..], &long(1_024)[..]); 16]); 64]);
    assert!(read(&widest, &NOBODY, &book, Bounds::default()).is_ok());
}

fn answered(verdict: Verdict, remaining: u32, millis: u64) -> Answered {
    Answered { verdict, standing: Standing { remaining, reset: Duration::from_millis(millis) } }
}

#[test]
fn an_answer_has_a_status_for_each_descriptor_and_says_which_limit_is_nearest() {
    let book = book();
    let over = Verdict::Over { retry_after: Some(Duration::from_millis(1_200)) };
    let ask = request(
        "mongo",
        &[
            descriptor(&[("database", "users")]),
            descriptor(&[("nothing", "")]),
            descriptor(&[("plan", "gold")]),
            descriptor(&[("shadow", "x")]),
        ],
    );
    let heard = read(&ask, &NOBODY, &book, Bounds::default()).unwrap();
    let answer = CallAnswer {
        overall: Overall::Refused,
        claims: smallvec![answered(over, 0, 1_200), answered(over, 0, 900)],
    };
    let response = heard.response(&answer).unwrap();
    assert_eq!(response.overall_code(), Code::OverLimit);
    let status = |place: usize| {
        let status: &DescriptorStatus = &response.statuses[place];
        let reset = status.duration_until_reset.as_ref().map(|reset| (reset.seconds, reset.nanos));
        (status.code(), status.limit_remaining, reset, status.current_limit.clone())
    };
    let users = RateLimit {
        name: "users".into(),
        requests_per_unit: 5,
        unit: Unit::Second.into(),
        unit_multiplier: None,
    };
    assert_eq!(status(0), (Code::OverLimit, 0, Some((2, 0)), Some(users)));
    assert_eq!(status(1), (Code::Ok, 0, None, None));
    assert_eq!(status(2), (Code::Ok, u32::MAX, None, None));
    assert_eq!((status(3).0, status(3).1), (Code::Ok, 0), "a shadow is OK with nothing left");
    let headers: Vec<(&str, &str)> =
        response.response_headers_to_add.iter().map(|header| (&*header.key, &*header.value)).collect();
    assert_eq!(headers, [("retry-after", "2")]);
    let unknown = CallAnswer { overall: Overall::NoLease, ..answer };
    assert_eq!(heard.response(&unknown), None);

    let edge = request("edge", &[descriptor(&[("path", "/api/"), ("remote_address", "::1")])]);
    let heard = read(&edge, &NOBODY, &book, Bounds::default()).unwrap();
    let within = smallvec![answered(Verdict::Within, 90, 1), answered(Verdict::Within, 7, 60_000)];
    let response = heard.response(&CallAnswer { overall: Overall::Granted, claims: within }).unwrap();
    let limit = response.statuses[0].current_limit.clone().unwrap();
    assert_eq!(
        (limit.requests_per_unit, limit.unit(), response.statuses[0].limit_remaining),
        (1_000, Unit::Hour, 7)
    );
    let headers: Vec<(&str, &str)> =
        response.response_headers_to_add.iter().map(|header| (&*header.key, &*header.value)).collect();
    let policy = "\"perip-1\";q=1000;w=3600, \"perip\";q=100;w=60";
    assert_eq!(headers, [("ratelimit-policy", policy), ("ratelimit", "\"perip-1\";r=7;t=60")]);
}

#[test]
fn messages_are_read_from_json_and_written_as_such() {
    let text = r#"{"domain":"mongo","descriptors":[{"entries":[{"key":"database","value":"users"}],"hits_addend":"9223372036854775808",
        "limit":{"requestsPerUnit":5,"unit":"SECOND","unit_multiplier":30}}],"hitsAddend":2}"#;
    let read = json::request(text.as_bytes()).unwrap();
    let limit = RateLimitOverride { requests_per_unit: 5, unit: 1, unit_multiplier: Some(30) };
    let wanted = RateLimitDescriptor {
        hits_addend: Some(1 << 63),
        limit: Some(limit),
        ..descriptor(&[("database", "users")])
    };
    assert_eq!(read, RateLimitRequest { hits_addend: 2, ..request("mongo", &[wanted]) });
    for (text, wanted) in [
        ("{", "EOF while parsing an object at line 1 column 1"),
        (
            r#"{"domein":1}"#,
            "unknown field `domein`, expected one of `domain`, `descriptors`, `hitsAddend`, `hits_addend` at line 1 column 9",
        ),
        (r#"{"hitsAddend":"x"}"#, "\"x\" is no number; wanted a whole number from 0 at line 1 column 18"),
        (
            r#"{"hitsAddend":4294967296}"#,
            "4294967296 is too large; wanted at most 4294967295 at line 1 column 25",
        ),
    ] {
        assert_eq!(json::request(text.as_bytes()).unwrap_err().to_string(), wanted);
    }
    let book = book();
    let ask = request("mongo", &[descriptor(&[("database", "users")]), descriptor(&[("x", "")])]);
    let heard = super::read(&ask, &NOBODY, &book, Bounds::default()).unwrap();
    let over = Verdict::Over { retry_after: Some(Duration::from_secs(34)) };
    let answer = CallAnswer { overall: Overall::Refused, claims: smallvec![answered(over, 0, 34_000)] };
    assert_eq!(
        json::response(&heard.response(&answer).unwrap()),
        r#"{"overallCode":"OVER_LIMIT","responseHeadersToAdd":[{"key":"retry-after","value":"34"}],"statuses":[{"code":"OVER_LIMIT","currentLimit":{"name":"users","requestsPerUnit":5,"unit":"SECOND"},"durationUntilReset":"34s"},{"code":"OK"}]}"#
    );
}

#[test]
fn what_was_decided_is_said_as_metadata_where_the_set_says_so() {
    let file = "sets: {own: {metadata: true, rules: [{match: {entry.k: v}, limit: [3/1h, 50/1d]}]}}";
    let doors = DoorsFile::parse("doors.yaml", file).unwrap_or_else(|faults| panic!("{faults}"));
    let book = join(doors, &[]).unwrap();
    let ask = request("own", &[descriptor(&[("k", "v")])]);
    let heard = read(&ask, &NOBODY, &book, Bounds::default()).unwrap();
    let said = |verdict, overall| {
        let claims = smallvec![answered(verdict, 0, 34_000), answered(Verdict::Within, 20, 90_000)];
        json::response(&heard.response(&CallAnswer { overall, claims }).unwrap())
    };
    let over = Verdict::Over { retry_after: Some(Duration::from_secs(34)) };
    let of = r#""kind":"exact","limit":3,"policy":"hour","remaining":0,"reset":34"#;
    let refused = format!(
        r#""dynamicMetadata":{{"lessor":{{{of},"retry_after":34,"violated":["hour"],"window":3600}}}}"#
    );
    assert!(said(over, Overall::Refused).contains(&refused), "{}", said(over, Overall::Refused));
    let passes = format!(r#""dynamicMetadata":{{"lessor":{{{of},"violated":[],"window":3600}}}}"#);
    assert!(
        said(Verdict::Within, Overall::Granted).contains(&passes),
        "{}",
        said(Verdict::Within, Overall::Granted)
    );
}

#[test]
fn a_request_that_passes_gets_fields_on_its_way_where_the_set_says_so() {
    let file = "sets: {own: {headers: [], request_headers: [ietf, x-ratelimit], rules: [{name: api, match: {entry.k: v}, limit: 3/1h}]}}";
    let doors = DoorsFile::parse("doors.yaml", file).unwrap_or_else(|faults| panic!("{faults}"));
    let book = join(doors, &[]).unwrap();
    let said = |key: &str, verdict, overall| {
        let ask = request("own", &[descriptor(&[(key, "v")])]);
        let heard = read(&ask, &NOBODY, &book, Bounds::default()).unwrap();
        let count = heard.call.as_ref().map_or(0, |call| call.claims.len());
        let claims = (0..count).map(|_| answered(verdict, 2, 34_000)).collect();
        let response = heard.response(&CallAnswer { overall, claims }).unwrap();
        assert!(
            json::response(&response).contains("requestHeadersToAdd")
                != response.request_headers_to_add.is_empty()
        );
        let fields = response
            .request_headers_to_add
            .into_iter()
            .map(|field| format!("{}: {}", field.key, field.value));
        (fields.collect::<Vec<_>>(), response.response_headers_to_add.len())
    };
    let wanted = [
        "ratelimit-policy: \"api\";q=3;w=3600",
        "ratelimit: \"api\";r=1;t=34",
        "x-ratelimit-limit: 3, 3;w=3600",
        "x-ratelimit-remaining: 2",
        "x-ratelimit-reset: 34",
    ];
    assert_eq!(said("k", Verdict::Within, Overall::Granted), (wanted.map(str::to_owned).to_vec(), 0));
    let over = Verdict::Over { retry_after: Some(Duration::from_secs(34)) };
    // It goes nowhere: a body of a problem has a type, and that is all.
    assert_eq!(said("k", over, Overall::Refused), (Vec::new(), 1));
    assert_eq!(
        said("other", Verdict::Within, Overall::Granted),
        (Vec::new(), 0),
        "nothing is said where no rule is met"
    );
}

#[test]
fn the_time_that_a_caller_waits_is_read() {
    assert_eq!(timeout("20000u"), Some(Duration::from_millis(20)));
    assert_eq!(timeout("20m"), Some(Duration::from_millis(20)));
    assert_eq!(timeout("1H"), Some(Duration::from_secs(3_600)));
    for text in ["", "m", "20", "-1m", "123456789m", "2ö"] {
        assert_eq!(timeout(text), None, "{text}");
    }
}
