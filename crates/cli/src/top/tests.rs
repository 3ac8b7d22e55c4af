//! The pages that boards and pictures are tried with, and the interval.

use serde_json::{Value, json};

use super::*;

/// A page of a node that leads, with these resources.
pub(super) fn page(resources: &[Value]) -> Option<NodePage> {
    let status = json!({
        "node": "root", "epoch": 71, "leading_seconds": 10_920.0, "config_version": 3, "later_config": null,
        "resources_in_all": resources.len(), "resources": resources,
    });
    let page = json!({"ready": true, "leads": true, "leader": null, "status": status});
    Some(serde_json::from_value(page).unwrap())
}

/// A resource: what is out of its capacity, what is wanted, and what holders miss of their shares.
pub(super) fn resource(name: &str, (out, capacity): (f64, f64), wants: f64, short: f64) -> Value {
    json!({
        "resource": name, "template": "*", "kind": "rate", "algorithm": "FAIR_SHARE", "capacity": capacity,
        "lease_ends_in_seconds": null, "leased": out, "ghost": 0.0, "ghost_ends_in_seconds": 0.0, "wants": wants,
        "short": short, "outstanding": out, "clients": 2, "learning": false, "learning_ends_in_seconds": 0.0,
        "in_debt": false, "overcommitment": (out - capacity).max(0.0), "domains": null, "holders": [],
    })
}

/// A holder: what it has, wants and is due.
pub(super) fn holder(client: &str, has: f64, wants: f64, share: f64) -> Value {
    json!({
        "client": client, "kind": "client", "has": has, "wants": wants, "share": share, "state": "settled",
        "priority": 0, "subclients": 1, "ends_in_seconds": 58.0, "heard_seconds_ago": 1.5, "superseded": false,
    })
}

/// The board hears a page of the node.
pub(super) fn hear(board: &mut Board, page: Option<NodePage>, now: Moment) {
    board.on_news(TopNews::Node(page), now);
}

/// The moment so many seconds past seven in the morning.
pub(super) fn at(seconds: u64) -> Moment {
    let passed = Duration::from_secs(seconds);
    Moment { at: lessor_proto::Time::ZERO + passed, date: Duration::from_secs(7 * 3_600) + passed }
}

#[test]
fn an_interval_is_from_a_second_to_an_hour() {
    assert_eq!(interval("1s"), Ok(Duration::from_secs(1)));
    assert_eq!(interval("1h"), Ok(Duration::from_secs(3_600)));
    for wrong in ["0s", "999ms", "2h"] {
        assert_eq!(interval(wrong), Err("wanted a duration from 1s to 1h".to_owned()), "{wrong}");
    }
    assert!(interval("soon").unwrap_err().ends_with("; wanted a duration from 1s to 1h"));
}
