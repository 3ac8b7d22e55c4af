//! Files of doors: what they mean, and every fault with its place.

use super::*;
use crate::attribute::{Attribute, Attributes};
use std::borrow::Cow;

struct Request(&'static [(&'static str, &'static str)]);

impl Attributes for Request {
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        let entry = attribute.entry();
        let (_, value) = self.0.iter().find(|(name, _)| *name == entry)?;
        Some(attribute.of_entry(value))
    }
}

const FILE: &str = r#"
version: 3
wait: 20ms
sets:
  edge:
    fail: open
    deny_status: 403
    headers: [ietf, kong]
    overrides: [1000/1m]
    rules:
      - match: {path: "/api/*", method: [GET, POST], header.x-plan: {not: gold}}
        key: [header.x-tenant, remote_address/24]
        limit: [100/1m, 1000/1h]
        name: perip
      - match: {path: "/upload/*", content_length: {at_most: 1e6}}
        key: header.x-tenant
        resource: uploads/bytes
        limit: 50MiB/1s
        cost: content_length
        charge: settle
      - {limit: 20000/1s, kind: flow, stop: true}
      - {key: entry.user, limit: 20/1s, kind: shared, capacity: 500, hard_limit: 30}
"#;

#[test]
fn a_set_is_its_rules_with_their_limits() {
    let book = DoorsFile::parse("doors.yaml", FILE).unwrap_or_else(|faults| panic!("{faults}")).into_rules();
    let set = book.set("edge").unwrap();
    assert_eq!((book.version, book.wait.as_millis(), set.manner.deny_status), (3, 20, 403));
    let names: Vec<(&str, &str, String)> =
        set.limits().map(|(rule, limit)| (rule, &*limit.resource, limit.to_string())).collect();
    let wanted = [
        ("edge/0", "edge/0|0:", "100/1m"),
        ("edge/0", "edge/0|1:", "1000/1h"),
        ("edge/1", "uploads/bytes|0:", "52428800/1s"),
        ("edge/2", "edge/2", "20000/1s"),
        ("edge/3", "edge/3", "20/1s"),
        ("a limit that requests bring", "rl/edge|o:1000/60:", "1000/1m"),
    ];
    assert_eq!(names, wanted.map(|(rule, resource, limit)| (rule, resource, limit.to_owned())));
    let Matcher::Table(table) = &set.matcher else { panic!("attributes") };
    let request = Request(&[("path", "/api/x"), ("method", "GET"), ("remote_address", "10.1.2.3")]);
    let values = table.values(&request);
    assert_eq!(table.find(&values).to_vec(), [0, 2]);
    let key: Vec<Option<&str>> = table.rows()[0].key.iter().map(|&slot| values[slot].as_deref()).collect();
    assert_eq!(key, [None, Some("10.1.2.0")]);
}

/// The first fault of a text.
fn first_fault(text: &str) -> String {
    let faults = DoorsFile::parse("x", text).expect_err("it is faulty");
    let first = faults.iter().next().unwrap();
    format!("{}:{}: {}", first.line, first.column, first.message)
}

#[test]
fn a_fault_says_where_it_is_what_was_found_and_what_is_wanted() {
    let wrong = std::cell::RefCell::new(Vec::new());
    let fault = |text: &str, wanted: &str| {
        let found = first_fault(text);
        if found != wanted {
            wrong.borrow_mut().push((found, wanted.to_owned()));
        }
    };
    fault("sets: {}", "1:1: no rules; wanted sets: with rules, ratelimit: with files, or pool: with workers");
    fault("", "1:1: nothing in it; wanted sets: with rules, ratelimit: with files, or pool: with workers");
    fault("sets: []", "1:7: sets is a list; wanted a mapping of names to sets");
    fault("set: {}", "1:1: unknown field \"set\"; did you mean sets?");
    fault(
        "domain: x",
        "1:1: domain is of a file of the rate limit service: it is named under ratelimit: files, or given to --ratelimit",
    );
    fault("sets: {e: {}}", "1:11: set \"e\": rules is missing; wanted a list of rules");
    fault("sets: {a/b: {rules: []}}", "1:8: the name of a set is \"a/b\"; wanted text without a slash");
    fault("sets:\n  e: {rules: []}\n  e: {rules: []}", "3:3: set \"e\" stands twice; first on line 2");
    let rule = |fields: &str, wanted: &str| {
        fault(&format!("sets: {{e: {{rules: [\n{{{fields}}}]}}}}"), &format!("2:{wanted}"));
    };
    let within = |column: usize, message: &str| format!("{column}: set \"e\": rules[0]: {message}");
    rule(
        "key: path",
        &within(1, "limit is missing; wanted hits and a window, as in 100/1m, or a list of them"),
    );
    rule(
        "limit: 5",
        &within(9, "limit \"5\" has no window; wanted hits and a window, as in 100/1m or 50MiB/1s"),
    );
    rule("limit: 5/1m, limits: 5", &within(15, "unknown field \"limits\" in a rule; did you mean limit?"));
    rule(
        "limit: 5/1m, match: {metod: GET}",
        &within(23, &format!("match: {}", Attribute::new("metod").unwrap_err())),
    );
    rule("limit: 5/1m, key: [x]", &within(21, &format!("key: {}", Attribute::new("x").unwrap_err())));
    rule(
        "limit: 5/1m, match: {path: []}",
        &within(
            29,
            "a condition is empty; wanted a value, a pattern with *, a list of them, present, absent, or {not: ...}, {below: N}, {at_most: N}",
        ),
    );
    rule("limit: 5/1m, kind: flow", &within(21, "kind flow is a rate; wanted one limit with a window of 1s"));
    rule(
        "limit: 5/1s, key: path, kind: flow",
        &within(32, "kind flow has no keys; wanted exact or shared, or a rule without open values"),
    );
    rule(
        "limit: 5/1s, kind: shared",
        &within(1, "capacity is missing; wanted the hits of all keys in a second, as in 5000"),
    );
    rule(
        "limit: 5/1s, hard_limit: 7",
        &within(27, "hard_limit is of limits that doors tell each other of; wanted kind: shared"),
    );
    rule(
        "limit: 5/1s, resource: a|b",
        &within(25, "resource a|b is none; wanted 1 to 100 letters, digits and any of / - _ . : @"),
    );
    rule(
        "limit: 5/1s, cost: -1",
        &within(
            21,
            "cost -1 is none; wanted a whole number, an attribute such as content_length, or a mapping of methods to numbers",
        ),
    );
    rule(
        "limit: 5/1s, name: größe",
        &within(21, "name größe is none; wanted 1 to 100 printable characters of ASCII"),
    );
    rule("limit: 5/1s, charge: later", &within(23, "charge later means nothing; did you mean after?"));
    fault(
        "sets: {e: {deny_status: 200, rules: []}}",
        "1:25: set \"e\": deny_status 200 is out of bounds; wanted a status from 400 to 599, as in 429",
    );
    fault(
        "sets: {e: {headers: [x], rules: []}}",
        "1:22: set \"e\": headers x means nothing; wanted ietf, ietf03, x-ratelimit, kong or retry-after",
    );
    let fields = |fields: &str, column: usize, message: &str| {
        let wanted = "ietf, ietf03, x-ratelimit";
        fault(
            &format!("sets: {{e: {{request_headers: {fields}, rules: []}}}}"),
            &format!("1:{column}: set \"e\": request_headers {}", message.replace("KINDS", wanted)),
        );
    };
    fields("[retry-after]", 30, "retry-after means nothing; wanted KINDS or kong");
    fields("ietf", 29, "is a single value; wanted a list of KINDS and kong");
    fields("[kong, kong]", 36, "says kong twice; wanted a list of KINDS and kong, each once");
    fault(
        "sets: {e: {headers: [kong, ietf, kong], rules: []}}",
        "1:34: set \"e\": headers says kong twice; wanted a list of ietf, ietf03, x-ratelimit, kong and retry-after, each once",
    );
    fault("ratelimit: {merge_domains: true}", "1:12: files is missing; wanted a list of files");
    let two = "sets: {e: {rules: [\n{limit: 5/1s, resource: a},\n{limit: 5/1s, resource: a}]}}";
    fault(two, "3:25: set \"e\": rules[1]: resource a is that of the rule on line 2 already");
    assert!(wrong.borrow().is_empty(), "{:#?}", wrong.borrow());
}
