//! Files of the rate limit service: which rule a descriptor leads to, and faults in the words of the service.

use super::*;

const FILE: &str = r#"
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit: {unit: second, requests_per_unit: 500}
  - key: database
    value: "de*"
    share_threshold: true
    rate_limit: {unit: MINUTE, requests_per_unit: 7}
  - key: database
    value: "*x"
    rate_limit: {unit: week, requests_per_unit: 8}
  - key: database
    rate_limit: {name: any, unit: second, requests_per_unit: 20000}
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: {name: person, unit: day, requests_per_unit: 5, replaces: [{name: any}]}
        shadow_mode: true
        metadata: {x: [1]}
  - {key: plan, value: gold, rate_limit: {unlimited: true}}
  - key: all
    value: of.them
    rate_limit: {unit: second, requests_per_unit: 20000}
    x-lessor: {window: 1s, fail: closed}
  - key: burst
    rate_limit: {unit: second, requests_per_unit: 20}
    x-lessor: {kind: shared, capacity: 1000, tiers: [{limit: 20, window: 1s, active: 1s}]}
  - key: two
    rate_limit: {requests_per_unit: 5}
    x-lessor: {window: 30s, also: [100/1h], charge: after}
"#;

fn rules(text: &str) -> Result<RuleBook, Vec<String>> {
    join(DoorsFile::default(), &[("x.yaml".to_owned(), text.to_owned())])
}

#[test]
fn descriptors_lead_to_rules_by_their_names() {
    let book = rules(FILE).unwrap_or_else(|faults| panic!("{faults:?}"));
    let set = book.set("mongo_cps").unwrap();
    let Matcher::Tree(tree) = &set.matcher else { panic!("descriptors") };
    let find = |entries: &[(&str, &str)]| {
        let found = tree.find(entries.iter().copied())?;
        let rule = &set.rules[found.rule];
        let limits: Vec<String> = rule.limits.iter().map(ToString::to_string).collect();
        Some((rule.resource.to_string(), limits.join(" "), found.open))
    };
    let wanted = |resource: &str, limits: &str, open| Some((resource.to_owned(), limits.to_owned(), open));
    assert_eq!(find(&[("database", "users")]), wanted("rl/mongo_cps/database=users", "500/1s", 0));
    assert_eq!(find(&[("database", "default")]), wanted("rl/mongo_cps/database=de%2A", "7/1m", 0));
    assert_eq!(find(&[("database", "x")]), wanted("rl/mongo_cps/database=%2Ax", "8/1week", 1));
    assert_eq!(find(&[("database", "other")]), wanted("rl/mongo_cps/database", "20000/1s", 1));
    let number = wanted("rl/mongo_cps/message_type=marketing.to_number", "5/1day", 0b10);
    assert_eq!(find(&[("message_type", "marketing"), ("to_number", "2061111111")]), number);
    assert_eq!(find(&[("message_type", "marketing")]), None);
    assert_eq!(find(&[("plan", "gold")]), wanted("rl/mongo_cps/plan=gold", "", 0));
    assert_eq!(find(&[("two", "2")]), wanted("rl/mongo_cps/two", "5/30s 100/1h", 1));
    let rule = |resource: &str| set.rules.iter().find(|rule| rule.resource.ends_with(resource)).unwrap();
    assert_eq!(rule("of%2Ethem").limits[0].kind, LimitKind::Flow);
    assert_eq!(rule("database").limits[0].kind, LimitKind::Exact, "it has open values");
    assert!(matches!(rule("burst").limits[0].kind, LimitKind::Shared(_)));
    let person = rule("to_number");
    assert!(person.shadow && person.policy.as_deref() == Some("person") && *person.replaces[0] == *"any");
    assert!(rule("gold").unlimited);
}

#[track_caller]
fn fault(text: &str, wanted: &str) {
    let faults = rules(text).expect_err("it is faulty");
    assert_eq!(faults[0].lines().next(), Some(format!("x.yaml:{wanted}").as_str()), "{faults:?}");
}

#[test]
fn faults_are_told_in_the_words_of_the_service_with_their_places() {
    fault("descriptors: []", "1:1: config file cannot have empty domain; wanted domain: and its name");
    let of = |descriptor: &str, wanted: &str| {
        fault(&format!("domain: d\ndescriptors:\n- {descriptor}"), &format!("3:{wanted}"));
    };
    of("{value: x}", "3: descriptor has empty key; wanted key: and its name");
    of("a", "3: config error, yaml file contains list of type other than map: a");
    of("{key: k, ratelimit: {}}", "12: config error, unknown key 'ratelimit'; did you mean rate_limit?");
    of(
        "{key: k, 0.25: x}",
        "12: config error, key is not of type string: 0.25; wanted key, value, descriptors, rate_limit, shadow_mode, quota_mode, detailed_metric, value_to_metric, share_threshold, metadata or x-lessor",
    );
    of(
        "{key: k, rate_limit: {unit: foo, requests_per_unit: 5}}",
        "31: invalid rate limit unit 'foo'; wanted second, minute, hour, day, week, month or year",
    );
    of(
        "{key: k, rate_limit: {requests_per_unit: 5}}",
        "24: invalid rate limit unit ''; wanted second, minute, hour, day, week, month or year",
    );
    of(
        "{key: k, rate_limit: {unit: day, requests_per_unit: x}}",
        "55: requests_per_unit x is no number of hits; wanted a whole number of hits, as in 100",
    );
    of(
        "{key: k, rate_limit: {unlimited: true, unit: day}}",
        "48: should not specify rate limit unit when unlimited; wanted one of them",
    );
    of(
        "{key: k, rate_limit: {unit: day, replaces: [{name: ''}]}}",
        "47: should not have an empty replaces entry; wanted the name of another policy",
    );
    of(
        "{key: k, rate_limit: {unit: day, name: n, replaces: [{name: n}]}}",
        "56: replaces should not contain name of same descriptor; wanted that of another",
    );
    of(
        "{key: k, value: x, share_threshold: true}",
        "39: share_threshold can only be used with wildcard values, but found key 'k_x'; wanted a value with *",
    );
    of(
        "{key: k, rate_limit: {unit: minute, requests_per_unit: 5}, x-lessor: {kind: concurrency, charge: after}}",
        "100: charge after takes when all is over; wanted before or settle with kind concurrency",
    );
    let twice = "domain: d\ndescriptors:\n- {key: k, value: x}\n- {key: k, value: x}";
    fault(twice, "4:9: duplicate descriptor composite key 'd.k_x'");
}

#[test]
fn a_domain_is_in_one_file_unless_they_are_merged() {
    let file = |name: &str, key: &str| {
        (
            name.to_owned(),
            format!(
                "domain: d\ndescriptors: [{{key: {key}, rate_limit: {{unit: day, requests_per_unit: 1}}}}]"
            ),
        )
    };
    let files = [file("a.yaml", "k"), file("b.yaml", "l")];
    let faults = join(DoorsFile::default(), &files).unwrap_err();
    assert!(faults[0].starts_with("b.yaml:1:9: duplicate domain 'd' in config file; wanted"), "{faults:?}");
    let merged = DoorsFile::parse("x", "ratelimit: {files: [a.yaml, b.yaml], merge_domains: true}").unwrap();
    assert_eq!(join(merged.clone(), &files).unwrap().set("d").unwrap().rules.len(), 2);
    let faults = join(merged, &[file("a.yaml", "k"), file("b.yaml", "k")]).unwrap_err();
    assert!(faults[0].starts_with("b.yaml:2:21: duplicate descriptor composite key 'd.k'"), "{faults:?}");
}
