//! Looks at a tree of servers: from the root everything is seen that streams lead to, and clients are found wherever they are.

use lessor_client::{Client, Rate, Rung};
use rustix::process::Signal;
use serde_json::Value;

use crate::crash;
use crate::house::{House, eventually, run, template};

/// Leases that last longer than the test.
const LONG: &str =
    "{kind: FAIR_SHARE, lease_length: 7200, refresh_interval: 3600, learning_mode_duration: 0}";

/// A root, a node below it and two leaves below that, and a third leaf of an earlier version below the root.
struct Tree {
    root: House,
    middle: House,
    leaves: [House; 2],
    older: House,
    clients: Vec<(Client, Rate)>,
}

// === impl Tree ===

impl Tree {
    async fn grow() -> Tree {
        let node = async |name: &str, above: &House, more: &[&str]| {
            let above = above.address().to_string();
            let flags = [&["--node", name, "--parent", &above][..], more].concat();
            House::open_with(&template("*", 100.0, LONG), &flags).await
        };
        let root = House::open(&template("*", 100.0, LONG)).await;
        let middle = node("europe", &root, &[]).await;
        let leaves = [node("paris", &middle, &[]).await, node("oslo", &middle, &[]).await];
        let older = node("lima", &root, &["--pretend-stream-features", "1"]).await;
        let mut clients = Vec::new();
        for (house, id) in [(&leaves[0], "web-1"), (&leaves[1], "web-2"), (&older, "web-3")] {
            let client = Client::builder(house.address().to_string()).id(id).connect().await.unwrap();
            let mut rate = client.rate("db").wants(20.0).open().unwrap();
            crash::until(&mut rate, "what it wants", |lease| crash::is(lease, Rung::Leased, 20)).await;
            clients.push((client, rate));
        }
        Tree { root, middle, leaves, older, clients }
    }

    async fn seen(&self) -> Value {
        let page = self.root.page("/v1/tree?resources=5").await;
        assert_eq!(page.code, 200, "{page:?}");
        page.json()
    }

    async fn end(self) {
        drop(self.clients);
        let [paris, oslo] = self.leaves;
        for house in [paris, oslo, self.older, self.middle, self.root] {
            house.stop().await;
        }
    }
}

fn below<'a>(node: &'a Value, name: &str) -> &'a Value {
    let found = node["below"].as_array().unwrap().iter().find(|below| below["node"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {node}"))
}

#[tokio::test]
async fn the_root_shows_the_whole_tree_and_says_who_cannot_be_asked_and_who_is_silent() {
    let tree = Tree::grow().await;
    let seen = tree.seen().await;
    assert_eq!((&seen["schema"], &seen["nodes"]["shown"]), (&1.into(), &4.into()), "{seen}");
    assert_eq!(seen["nodes"]["cannot_be_asked"], serde_json::json!(["root > lima"]), "{seen}");
    assert_eq!(seen["nodes"]["silent"], serde_json::json!([]), "{seen}");
    let root = &seen["tree"];
    assert_eq!(
        (&root["node"], &root["figures"]["address"]),
        (&"root".into(), &tree.root.address().to_string().into())
    );
    assert_eq!(below(root, "lima")["seen"], "cannot_be_asked");
    let paris = below(below(root, "europe"), "paris");
    let row = &paris["figures"]["resources"][0];
    assert_eq!(
        (&row["resource"], &row["out"], &row["wants"]),
        (&"db".into(), &20.0.into(), &20.0.into()),
        "{paris}"
    );
    assert!(row["lease_ends_in_seconds"].as_f64().unwrap() > 60.0, "{paris}");
    assert_eq!(root["figures"]["resources"][0]["lease_ends_in_seconds"], Value::Null, "{root}");

    // It stands still: its stream is open, and nothing comes of it.
    tree.leaves[1].signal(Signal::STOP);
    eventually("oslo is silent", async || {
        tree.seen().await["nodes"]["silent"] == serde_json::json!(["root > europe > oslo"])
    })
    .await;
    let text = run(&["status", "--tree", "--server", &tree.root.address().to_string()]).await.out;
    let line = |name: &str| text.lines().find(|line| line.trim_start().starts_with(name)).map(str::to_owned);
    assert!(line("oslo").is_some_and(|line| line.ends_with("silent")), "{text}");
    assert!(line("lima").is_some_and(|line| line.ends_with("cannot be asked")), "{text}");
    assert!(text.contains("3 nodes answered within "), "{text}");
    tree.leaves[1].signal(Signal::CONT);
    eventually("oslo answers again", async || tree.seen().await["nodes"]["shown"] == 4).await;
    for house in [&tree.root, &tree.middle] {
        assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
        assert_eq!(house.metric("lessor_unknown_messages_total{from=\"below\"}").await, 0.0);
    }
    for (_, rate) in &tree.clients {
        assert!(crash::is(&rate.lease(), Rung::Leased, 20), "{:?}", rate.lease());
    }
    tree.end().await;
}

#[tokio::test]
async fn a_client_is_found_from_above_and_explained_up_to_the_root() {
    let tree = Tree::grow().await;
    let (root, middle) = (tree.root.address().to_string(), tree.middle.address().to_string());
    for server in [&root, &middle] {
        let explained = run(&["explain", "db", "web-2", "--server", server]).await;
        assert_eq!((explained.code, explained.err.as_str()), (Some(0), ""), "{}", explained.out);
        assert!(explained.out.starts_with("web-2 at oslo has 20/s of 20/s"), "{}", explained.out);
        for node in ["at oslo", "at europe", "at root"] {
            assert!(
                explained.out.lines().any(|line| line.trim_start().starts_with(node)),
                "{}",
                explained.out
            );
        }
    }
    let found = tree.root.page("/v1/find?resource=db&client=web-1").await.json();
    assert_eq!(found["found"][0]["path"], serde_json::json!(["root", "europe", "paris"]), "{found}");
    let nobody = run(&["explain", "db", "nobody", "--server", &root]).await;
    assert_eq!(nobody.code, Some(1), "{}", nobody.out);
    let said = "nobody called \"nobody\" holds or wants \"db\" at the 4 nodes that were asked; not to be asked: root > lima";
    assert!(nobody.err.contains(said), "{}", nobody.err);
    for (path, fault) in [
        ("/v1/tree?resources=1001", "resources: 1001 is too many; wanted at most 1000"),
        ("/v1/tree?matching=%5B", "matching: "),
        ("/v1/find?resource=db&client=", "client: "),
    ] {
        let page = tree.root.page(path).await;
        assert!(page.code == 400 && page.body.starts_with(fault), "{path}: {page:?}");
    }
    tree.end().await;
}
