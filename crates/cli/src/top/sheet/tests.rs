//! Sheets as they are made of pages, and the lines of them that are in sight.

use serde_json::json;

use super::*;

#[test]
fn domains_are_lines_under_the_names_of_columns() {
    let row = json!({
        "resource": "api", "domain": "acme", "used": 0.905, "clients": 3, "hits_in_second": 12, "tier": 2,
        "hits_in_tier": 181, "tier_limit": 200, "cooling_seconds": 4.5, "refused_by": "tiers",
        "refused_seconds": 1.25, "tiers": [],
    });
    let text = SheetKind::Domains.read(&json!({"schema": 1, "exchanges": [], "rows": [row]}).to_string());
    let mut sheet = Sheet::new(SheetKind::Domains);
    sheet.hear(text.unwrap());
    let (heads, lines) = sheet.lines();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(heads[0]), "resource domain used tier hits of a second clients");
    let [line] = lines[..] else { panic!("{lines:?}") };
    assert_eq!(words(line), "api acme 90% 2 181 200 12 3 refused by tiers for 1.25 s, rests for 4.5 s");

    let none = SheetKind::Domains.read(r#"{"rows": []}"#).unwrap();
    assert!(none.ends_with("no domain is hot that clients tell each other of\n"), "{none}");
}

#[test]
fn findings_say_how_bad_what_and_what_to_do() {
    let page = json!({"rows": [
        {"severity": "warning", "kind": "full", "about": "orders", "what": "it is full", "todo": "Ask for less."},
        {"severity": "note", "kind": "learning", "about": null, "what": "it learns", "todo": "Wait."},
    ]});
    assert_eq!(
        SheetKind::Findings.read(&page.to_string()).unwrap(),
        "WARNING full: orders: it is full\n    Ask for less.\nNOTE learning: it learns\n    Wait.\n"
    );
    let none = SheetKind::Findings.read(r#"{"rows": []}"#).unwrap();
    assert_eq!(none, "nothing is wrong that this node can see\n");
    assert!(SheetKind::Findings.read(r#"{"lines": []}"#).is_err());
}

#[test]
fn revisions_say_where_they_are_in_force() {
    let page = json!({"prefix": "/lessor", "next": null, "rows": [{
        "number": 7, "at": "2026-11-27T04:00:00Z", "by": {"name": "anna", "verified": false},
        "message": "less\nfor the migration", "ticket": "T-1", "rollback_of": 5, "tasks_in_force": 2, "tasks": 3,
    }]});
    let text = SheetKind::History.read(&page.to_string()).unwrap();
    let line = text.lines().nth(1).unwrap();
    for part in ["7 ", "anna (unverified)", "2 of 3 tasks", "less (as 5) [T-1]"] {
        assert!(line.contains(part), "{part} in {line}");
    }
    assert!(!text.contains("for the migration"), "{text}");
    let file = SheetKind::History.read(r#"{"prefix": null, "rows": [], "next": null}"#).unwrap();
    assert_eq!(file, "the templates come from a file, and nothing is kept of earlier ones\n");
}

#[test]
fn a_filter_leaves_the_names_of_columns_and_steps_stay_within_the_lines() {
    let mut sheet = Sheet::new(SheetKind::History);
    assert_eq!(sheet.lines(), (vec![], vec![]), "nothing has been heard");
    sheet.hear("revision\n3 Orders\n2 mail\n1 orders\n".to_owned());
    sheet.filter = "ORDERS".to_owned();
    assert_eq!(sheet.lines(), (vec!["revision"], vec!["3 Orders", "1 orders"]));
    sheet.step(isize::MAX);
    assert_eq!(sheet.offset, 1);
    sheet.step(-1);
    sheet.step(-1);
    assert_eq!(sheet.offset, 0);
    sheet.filter.clear();
    sheet.step(2);
    sheet.hear("revision\n3 Orders\n".to_owned());
    assert_eq!(sheet.offset, 0, "there are fewer now");
}
