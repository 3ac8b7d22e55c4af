//! Pushes that lose: whoever was slower is told who was faster, and how what both have changed goes together.

use rustix::process::Signal;
use serde_json::Value;

use crate::site::{Site, has};

/// Templates of `a`, `b` and `c` with these capacities.
fn three(capacities: [u32; 3]) -> String {
    let algorithm = "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1}";
    let template = |(name, capacity)| {
        format!("- identifier_glob: {name}\n  capacity: {capacity}\n  algorithm: {algorithm}\n")
    };
    let templates: String = ["a", "b", "c"].into_iter().zip(capacities).map(template).collect();
    format!("resources:\n{templates}")
}

/// The sides that have changed the capacity of a template, and what each has.
fn field<'a>(told: &'a Value, template: &str) -> [&'a str; 4] {
    let fields = told["documents"][0]["fields"].as_array().expect("fields");
    let found = fields.iter().find(|field| field["template"] == template && field["field"] == "capacity");
    let found = found.unwrap_or_else(|| panic!("no {template}: {told}"));
    ["changed_by", "base", "theirs", "mine"].map(|name| found[name].as_str().unwrap_or_default())
}

#[tokio::test]
async fn who_loses_is_told_what_they_have_changed_what_is_ones_own_and_what_does_not_go_together() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.file("base.yaml", &three([1, 2, 3]))).await;
    let task = site.alone("root", &[]).await;
    has(&task, 1.0).await;
    // Both wait for a task that says nothing, and so both begin with the same revision.
    task.signal(Signal::STOP);
    let push = |name: &str, capacities| {
        let file = site.file(name, &three(capacities));
        let rest = ["-m", name, "--yes", "--json", "--wait", "0s", "--despite", "127.0.0.1:0"];
        [&["push", &file][..], &rest].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let (one, other) = (push("one", [10, 20, 3]), push("other", [11, 2, 30]));
    let [one, other] = [&one, &other].map(|line| line.iter().map(String::as_str).collect::<Vec<_>>());
    let (one, other) = tokio::join!(site.run(&one), site.run(&other));
    let ((winner, loser), (theirs, mine), capacities) = match (one.code, other.code) {
        (Some(0), Some(3)) => ((one, other), ("one", "other"), ["10", "11"]),
        (Some(3), Some(0)) => ((other, one), ("other", "one"), ["11", "10"]),
        _ => panic!("{one:?} {other:?}"),
    };
    let won: Value = serde_json::from_str(&winner.out).unwrap();
    assert_eq!((&won["outcome"], &won["number"]), (&"in_force".into(), &2.into()), "{won}");

    let told: Value = serde_json::from_str(&loser.out).unwrap();
    assert_eq!(
        (&told["outcome"], &told["base"], &told["conflicts"]),
        (&"faster".into(), &1.into(), &1.into())
    );
    assert_eq!((&told["theirs"]["number"], &told["theirs"]["message"]), (&2.into(), &theirs.into()));
    assert!(told["age_seconds"].as_u64().is_some_and(|age| age < 120), "{told}");
    let [theirs_of_a, mine_of_a] = capacities;
    assert_eq!(field(&told, "a"), ["conflict", "1", theirs_of_a, mine_of_a]);
    let only = |side: &str| if side == theirs { "theirs" } else { "mine" };
    assert_eq!(field(&told, "b")[..2], [only("one"), "2"]);
    assert_eq!(field(&told, "c")[..2], [only("other"), "3"]);

    let words = &loser.err;
    assert!(
        words.contains("somebody was faster: revision 2, by ") && words.contains(&format!(" ago: {theirs}")),
        "{words}"
    );
    let conflict = format!("  CONFLICT  a capacity: 1 -> theirs {theirs_of_a}, mine {mine_of_a}\n");
    assert!(words.contains(&conflict) && words.contains("1 field was changed by both"), "{words}");
    let (of_b, of_c) = (
        format!("  {:<9} ~ b capacity: 2 -> 20\n", only("one")),
        format!("  {:<9} ~ c capacity: 3 -> 30\n", only("other")),
    );
    assert!(words.contains(&of_b) && words.contains(&of_c), "{words}");
    assert!(words.contains("nothing of yours was pushed") && !mine.is_empty(), "{words}");
    // Nothing is merged for anybody.
    let newest = site.done(&["show", "2", "--for", "root"]).await;
    let of_winner = if theirs == "one" { three([10, 20, 3]) } else { three([11, 2, 30]) };
    assert_eq!(newest, of_winner);
    task.signal(Signal::CONT);
    has(&task, 2.0).await;
    task.stop().await;
}

#[tokio::test]
async fn a_plan_that_was_overtaken_says_what_both_have_changed_as_well() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.file("base.yaml", &three([1, 2, 3]))).await;
    let task = site.alone("root", &[]).await;
    has(&task, 1.0).await;
    let mine = site.file("mine.yaml", &three([9, 2, 3]));
    let (path, server) = (site.path("plan.json").display().to_string(), task.address().to_string());
    let planned = crate::house::run(&["plan", &mine, "--out", &path, "--server", &server]).await;
    assert_eq!(planned.code, Some(0), "{planned:?}");
    site.push(&site.file("theirs.yaml", &three([1, 8, 3]))).await;
    let told = site.fails(3, &["push", &mine, "-m", "x", "--yes", "--plan", &path]).await;
    for part in [
        "the plan is against revision 1, and 2 is in force by now",
        "  mine      ~ a capacity: 1 -> 9\n  theirs    ~ b capacity: 2 -> 8\n",
        "no field was changed by both to something else",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    task.stop().await;
}
