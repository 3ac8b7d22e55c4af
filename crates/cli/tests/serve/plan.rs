//! Plans of a tree of servers, held against what then happens: five changes, each planned and then made.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lessor_client::{Client, Rate, Rung};
use serde_json::Value;
use tempfile::TempDir;

use crate::crash;
use crate::house::{House, eventually, run};

const CAPACITY: f64 = 300.0;

/// A root and two leaves, with three clients each, of one configuration.
struct Tree {
    houses: Vec<House>,
    /// The house and the id of each client.
    clients: Vec<(usize, String, Client, Rate)>,
    files: TempDir,
}

/// A configuration of two resources.
fn config(capacity: f64, more: &str, kind: &str) -> String {
    format!(
        "resources:\n- identifier_glob: db\n  capacity: {capacity}\n{more}  algorithm: {{kind: {kind}, lease_length: 60, refresh_interval: 5, \
         learning_mode_duration: 0}}\n- identifier_glob: other\n  capacity: 10\n  algorithm: {{kind: FAIR_SHARE, lease_length: 60, \
         refresh_interval: 5, learning_mode_duration: 0}}\n"
    )
}

// === impl Tree ===

impl Tree {
    async fn grow() -> Tree {
        let text = config(CAPACITY, "", "FAIR_SHARE");
        let root = House::open(&text).await;
        let above = root.address().to_string();
        let mut houses = vec![root];
        for name in ["paris", "oslo"] {
            houses.push(House::open_with(&text, &["--node", name, "--parent", &above]).await);
        }
        let mut clients = Vec::new();
        for (place, house) in houses.iter().enumerate() {
            for number in 0..3_u8 {
                let id = format!("web-{place}-{number}");
                let client = Client::builder(house.address().to_string()).id(&id).connect().await.unwrap();
                let wants = f64::from(20 + 25 * number) + place as f64;
                let rate = client.rate("db").wants(wants).priority(i64::from(number == 2)).open().unwrap();
                clients.push((place, id, client, rate));
            }
        }
        for (_, _, _, rate) in &mut clients {
            crash::until(rate, "something", |lease| lease.rung == Rung::Leased).await;
        }
        Tree { houses, clients, files: tempfile::tempdir().unwrap() }
    }

    fn file(&self, text: &str) -> PathBuf {
        let path = self.files.path().join("next.yaml");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The plan of a configuration for all.
    async fn plan(&self, text: &str) -> Value {
        let (file, server) = (self.file(text).display().to_string(), self.houses[0].address().to_string());
        let planned = run(&["plan", &file, "--json", "--all-nodes", "--server", &server]).await;
        assert_eq!((planned.code, planned.err.as_str()), (Some(0), ""), "{}", planned.out);
        serde_json::from_str(&planned.out).unwrap()
    }

    /// The share of each client as its node says it.
    async fn shares(&self) -> BTreeMap<String, f64> {
        let mut shares = BTreeMap::new();
        for house in &self.houses {
            let Some(resource) = house.resource("db").await else { continue };
            for holder in resource["holders"].as_array().unwrap() {
                if holder["kind"] == "client" {
                    shares.insert(
                        holder["client"].as_str().unwrap().to_owned(),
                        holder["share"].as_f64().unwrap(),
                    );
                }
            }
        }
        shares
    }

    /// Whether demand has got to the root and the shares have come to rest: they sum up to what there is.
    async fn rests(&self, sum: f64) -> bool {
        let shares = self.shares().await;
        (shares.values().sum::<f64>() - sum).abs() < 1e-3
    }
}

/// The shares that a plan says, of those of now.
fn planned(plan: &Value, now: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let mut shares = now.clone();
    for resource in plan["resources"].as_array().unwrap() {
        for movers in ["losers", "gainers"] {
            for mover in resource[movers]["worst"].as_array().unwrap() {
                let client = mover["client"].as_str().unwrap().to_owned();
                shares.insert(client, mover["share"][1].as_f64().unwrap());
            }
        }
    }
    shares
}

#[tokio::test]
async fn five_changes_become_what_was_planned_of_them() {
    let tree = Tree::grow().await;
    let wanted: f64 = (0..3).map(|place| 20.0 + 45.0 + 70.0 + 3.0 * f64::from(place)).sum();
    eventually("everybody has its share", async || tree.rests(wanted.min(CAPACITY)).await).await;
    for (capacity, more, kind) in [
        (150.0, "", "FAIR_SHARE"),
        (240.0, "", "PROPORTIONAL_SHARE"),
        (240.0, "  most_priority: 0\n", "FAIR_SHARE"),
        (1_000.0, "", "FAIR_SHARE"),
        (33.0, "", "FAIR_SHARE"),
    ] {
        let text = config(capacity, more, kind);
        let now = tree.shares().await;
        let plan = tree.plan(&text).await;
        assert_eq!(plan["nodes"]["asked"], serde_json::json!(["oslo", "paris", "root"]), "{plan}");
        assert_eq!(plan["refused"], serde_json::json!([]), "{plan}");
        let planned = planned(&plan, &now);
        assert!(planned != now && planned.values().sum::<f64>() > 0.0, "{plan}");
        tree.houses.iter().for_each(|house| house.configure(&text));
        let most = capacity.max(CAPACITY) * 0.002;
        let is_so = async || {
            let shares = tree.shares().await;
            let misses = |(client, share): (&String, &f64)| (planned[client] - share).abs() > most;
            shares.len() == planned.len() && !shares.iter().any(misses)
        };
        eventually(&format!("{capacity} {kind} is as planned: {plan} {planned:?}"), is_so).await;
    }
    let server = tree.houses[0].address().to_string();

    let gone = "resources:\n- identifier_glob: other\n  capacity: 10\n  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}\n";
    let plan = tree.plan(gone).await;
    let refused: f64 =
        plan["refused"].as_array().unwrap().iter().map(|it| it["count"].as_f64().unwrap()).sum();
    assert_eq!(refused, 11.0, "nine clients and two nodes: {plan}");
    let file = tree.file(gone).display().to_string();
    let text = run(&["plan", &file, "--server", &server]).await.out;
    assert!(text.contains("- db: no template"), "{text}");
    assert!(text.contains("asked 3 of 3 nodes"), "{text}");
    for (gate, code) in [("refused>10", Some(5)), ("refused>11", Some(0)), ("client:web-1-*.loss>1", Some(5))]
    {
        let outcome = run(&["plan", &file, "--server", &server, "--fail-if", gate]).await;
        assert_eq!(outcome.code, code, "{gate}: {}{}", outcome.out, outcome.err);
    }
    let detailed = run(&["plan", &file, "--server", &server, "--detailed-exitcode"]).await;
    assert_eq!(detailed.code, Some(2), "{}", detailed.err);
    let faulty = tree.file("resources: nothing\n").display().to_string();
    assert_eq!(run(&["plan", &faulty, "--server", &server]).await.code, Some(1));

    drop(tree.clients);
    for house in tree.houses.into_iter().rev() {
        house.stop().await;
    }
}
