//! Answers to operators: why a client gets what it gets, which resources are full, and what is wrong.

use lessor_client::{BoundBy, Client, ShortBy};
use serde_json::Value;

use crate::crash;
use crate::house::holder::{Holder, Nature};
use crate::house::{House, eventually, run};

const BOTH: &str = "resources:
- identifier_glob: wide
  capacity: 1000
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
- identifier_glob: \"*\"
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
";

/// The output of a command that succeeds.
async fn told(arguments: &[&str]) -> String {
    let outcome = run(arguments).await;
    assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{arguments:?}: {}", outcome.out);
    outcome.out
}

/// The line of a text that begins so, but for spaces.
fn line<'a>(text: &'a str, beginning: &str) -> &'a str {
    let found = text.lines().find(|line| line.trim_start().starts_with(beginning));
    found.unwrap_or_else(|| panic!("no {beginning:?} in\n{text}"))
}

#[tokio::test]
async fn a_client_of_a_leaf_is_explained_up_to_the_root_and_counts_what_it_is_short_by() {
    let root = House::open(BOTH).await;
    let leaf = House::open_with(
        &BOTH.replace("lease_length: 60", "lease_length: 30"),
        &["--node", "paris", "--parent", &root.address().to_string()],
    )
    .await;
    let client = Client::builder(leaf.address().to_string()).id("web-1").connect().await.unwrap();
    let mut queries = client.rate("db").wants(90.0).open().unwrap();
    let rival = Client::builder(root.address().to_string()).id("first").connect().await.unwrap();
    let first = rival.rate("db").wants(60.0).priority(5).open().unwrap();
    crash::until(&mut queries, "what priority 5 leaves", |lease| {
        lease.capacity == Some(lessor_client::Amount::from_units(40))
            && lease.bound_by == Some(BoundBy::Level)
    })
    .await;
    assert_eq!(queries.lease().short_by(), Some(ShortBy::Bound(BoundBy::Level)));
    let counts = async || {
        let metrics = client.metrics();
        let short = &metrics.resources[0].short;
        short.get(&ShortBy::Bound(BoundBy::Level)).is_some_and(|time| !time.is_zero())
    };
    eventually("time is counted for the level", counts).await;

    let server = leaf.address().to_string();
    let knows = async || run(&["explain", "db", "web-1", "--server", &server]).await.out.contains("60/s");
    eventually("the root has heard of both", async || !knows().await).await;
    let text = told(&["explain", "db", "web-1", "--server", &server]).await;
    assert!(text.starts_with("web-1 at paris has 40/s of 90/s that it wants of db, for "), "{text}");
    assert!(line(&text, "would get").contains("40/s if it asked now"), "{text}");
    assert!(line(&text, "bound by").contains("the level"), "{text}");
    assert!(line(&text, "with it").contains("the lease of this node from the one above"), "{text}");
    assert!(line(&text, "where").contains("at root: paris has 40/s of 90/s there, bound by level"), "{text}");
    assert!(line(&text, "at paris").contains("lease of 40/s from root"), "{text}");
    assert!(line(&text, "at root").contains("capacity 100/s (template *"), "{text}");
    assert!(text.contains("priority 5: 100/s left; priority 0: 40/s left"), "{text}");

    let json = told(&["explain", "db", "web-1", "--json", "--server", &server]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    let [paris, above] = [0, 1].map(|level| &json["chain"][level]);
    assert_eq!((&paris["node"], &above["node"]), (&"paris".into(), &"root".into()), "{json}");
    assert_eq!(paris["lives"][0]["bound_by"], "level", "{json}");
    assert_eq!(above["lives"][0]["also"], serde_json::json!(["band"]), "{json}");
    let has_secret = json.to_string().contains("incarnation") || json.to_string().contains("token");
    assert!(!has_secret, "who knew a life by its number could give back what it has: {json}");

    let all = told(&["explain", "db", "--server", &root.address().to_string()]).await;
    assert!(all.starts_with("db at root: 100/s of 100/s out, 150 wanted by 2 clients\n"), "{all}");
    for (arguments, why) in [
        (
            ["explain", "db", "nobody"],
            "nobody called \"nobody\" holds or wants \"db\" at the one node that was asked",
        ),
        (["explain", "other", "web-1"], "nobody called \"web-1\" holds or wants \"other\" at the one"),
    ] {
        let outcome = run(&[&arguments[..], &["--server", &server]].concat()).await;
        assert_eq!(outcome.code, Some(1), "{}", outcome.out);
        assert!(outcome.err.contains(why), "{}", outcome.err);
    }

    drop((queries, first));
    client.close().await;
    rival.close().await;
    leaf.stop().await;
    root.stop().await;
}

#[tokio::test]
async fn the_status_has_a_line_for_each_resource_and_the_fullest_first() {
    let house = House::open(BOTH).await;
    let mut server = house.capacity().await;
    for (resource, wants) in [("db/a", 50.0), ("db/b", 300.0), ("wide", 10.0)] {
        Holder::new("web-1", Nature::Echoes, resource, wants).report(&mut server).await.unwrap();
    }
    let address = house.address().to_string();
    let words = |text: &str| -> Vec<Vec<String>> {
        text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
    };
    let lines = words(&told(&["status", "--server", &address]).await);
    assert_eq!(lines[1], ["resource", "full", "out", "of", "wanted", "short", "clients"]);
    assert_eq!(lines[2], ["db/b", "100%", "100", "100/s", "300", "-", "1"]);
    assert_eq!(lines[3], ["db/a", "50%", "50", "100/s", "50", "-", "1"]);
    assert_eq!(lines[4], ["wide", "1%", "10", "1000/s", "10", "-", "1"]);
    assert_eq!(lines.len(), 5);

    let some = words(&told(&["status", "db/*", "--server", &address]).await);
    assert_eq!(some[2..].iter().map(|line| &line[0]).collect::<Vec<_>>(), ["db/b", "db/a"]);
    let two = words(&told(&["status", "w*", "db/a", "--server", &address]).await);
    assert_eq!(two[2..].iter().map(|line| &line[0]).collect::<Vec<_>>(), ["db/a", "wide"]);
    let none = told(&["status", "x*", "--server", &address]).await;
    assert!(none.ends_with("no resource has such a name\n"), "{none}");
    let wrong = run(&["status", "[", "--server", &address]).await;
    assert!(wrong.code == Some(1) && wrong.err.starts_with("error: resource \"[\": "), "{}", wrong.err);

    // The first that is named is away.
    let other = told(&["status", "--server", &format!("127.0.0.1:1,{address}")]).await;
    assert!(other.contains("db/b"), "{other}");
    house.stop().await;
}

#[tokio::test]
async fn the_doctor_says_what_is_wrong_and_how_bad_that_is() {
    let house = House::open(BOTH).await;
    let address = house.address().to_string();
    let config = house.config().display().to_string();
    let well = told(&["doctor", "--server", &address, "--config", &config]).await;
    assert!(well.lines().count() > 10 && well.lines().all(|line| line.starts_with("ok  ")), "{well}");

    let mut server = house.capacity().await;
    Holder::new("web-1", Nature::Echoes, "db/a", 300.0).report(&mut server).await.unwrap();
    let full = run(&["doctor", "--server", &address]).await;
    assert_eq!(full.code, Some(2), "{}{}", full.out, full.err);
    assert!(line(&full.out, "warning").contains("full, and more is wanted, of db/a"), "{}", full.out);

    let away = run(&["doctor", "--json", "--server", &format!("{address},127.0.0.1:1")]).await;
    assert_eq!(away.code, Some(1), "{}{}", away.out, away.err);
    let json: Value = serde_json::from_str(&away.out).unwrap();
    assert_eq!(json["worst"], "fault", "{json}");
    let what = json["checks"][0]["findings"][0]["what"].as_str().unwrap_or_default().to_owned();
    assert!(what.starts_with("127.0.0.1:1: "), "{json}");

    std::fs::write(house.config(), "resources: nothing\n").unwrap();
    let faulty = run(&["doctor", "--offline", "--config", &config]).await;
    assert_eq!(faulty.code, Some(1), "{}{}", faulty.out, faulty.err);
    assert!(faulty.out.starts_with("fault    "), "{}", faulty.out);
    house.stop().await;
}
