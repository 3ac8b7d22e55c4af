//! Pushes, and the commands around them.

use std::collections::BTreeSet;

use crate::house::everything;
use crate::site::Site;

#[tokio::test]
async fn what_is_pushed_stands_in_the_history_and_can_be_taken_back() {
    let Some(site) = Site::started().await else { return };
    assert_eq!(site.done(&["history"]).await, "nothing has been pushed yet\n");
    let (first, second) = (site.templates(100.0), site.templates(40.0));
    let out = site.done(&["push", &first, "-m", "the first", "--yes", "--first-number", "8"]).await;
    assert!(out.contains("+ *: a template of 100") && out.contains("revision 8 is in force"), "{out}");
    let out = site.done(&["push", &second, "-m", "a cut", "--ticket", "OPS-3", "--yes"]).await;
    assert!(out.contains("~ * capacity: 100 -> 40") && out.contains("revision 9 is in force"), "{out}");
    assert_eq!(site.push(&second).await, "nothing to push: revision 9 has that content\n");

    let history = site.done(&["history"]).await;
    let lines: Vec<&str> = history.lines().collect();
    assert!(lines[1].contains("(unverified)") && lines[1].trim_end().ends_with("a cut [OPS-3]"), "{history}");
    assert!(
        lines[2].trim_start().starts_with('8') && lines[2].trim_end().ends_with("the first"),
        "{history}"
    );
    let json: serde_json::Value = serde_json::from_str(&site.done(&["history", "--json"]).await).unwrap();
    assert_eq!(
        (&json[0]["revision"]["parent"], &json[0]["revision"]["by"]["verified"]),
        (&8.into(), &false.into())
    );

    assert_eq!(site.done(&["show", "8", "--for", "paris"]).await, everything(100.0, 60));
    assert_eq!(site.done(&["diff", "8"]).await, "for *\n  ~ * capacity: 100 -> 40\n");
    assert_eq!(site.done(&["diff", "8", &first]).await, "no field differs\n");
    let lines = site.done(&["diff", "8", "9", "--text"]).await;
    assert!(lines.contains("\n-  capacity: 100\n+  capacity: 40\n"), "{lines}");
    assert_eq!(site.fails(2, &["diff", "8", "9", "--detailed-exitcode"]).await, "");
    let told = site.fails(1, &["show", "7"]).await;
    assert!(told.contains("revision 7 is not there: wanted one that `lessor history` lists"), "{told}");

    let out = site.done(&["rollback", "8", "-m", "it was too much", "--yes"]).await;
    assert!(out.contains("revision 10 is in force"), "{out}");
    assert_eq!(site.done(&["show", "10", "--for", "paris"]).await, everything(100.0, 60));
    let out =
        site.done(&["set", "*", "capacity=70", "algorithm.refresh_interval=2", "-m", "x", "--yes"]).await;
    assert!(out.contains("~ * capacity: 100 -> 70") && out.contains("refresh_interval: 1 -> 2"), "{out}");
    let told = site.fails(1, &["set", "*", "capcity=7", "-m", "x", "--yes"]).await;
    assert!(told.contains("template \"*\" has no capcity; it has identifier_glob, capacity"), "{told}");

    let directory = site.path("out").display().to_string();
    site.done(&["export", "8", &directory]).await;
    assert_eq!(std::fs::read_to_string(site.path("out/100.yaml")).unwrap(), everything(100.0, 60));
    assert!(std::fs::read_to_string(site.path("out/manifest.json")).unwrap().contains("\"the first\""));
    assert!(site.fails(1, &["export", "8", &directory]).await.contains("cannot write"));

    assert_eq!(
        site.done(&["history", "--verify"]).await,
        "4 revisions are as they were made, from 11 down\n"
    );
    assert_eq!(site.done(&["prune", "--keep", "2"]).await, "removed: revisions 2, documents 1\n");
    assert_eq!(
        site.done(&["history", "--verify"]).await,
        "2 revisions are as they were made, from 11 down\n"
    );
    assert_eq!(site.done(&["show", "10", "--for", "paris"]).await, everything(100.0, 60));
}

#[tokio::test]
async fn a_second_limit_that_is_promoted_is_the_one_in_force() {
    let Some(site) = Site::started().await else { return };
    let tried = everything(100.0, 60)
        .replace("  capacity: 100\n", "  capacity: 100\n  beside: # since May\n    capacity: 80\n");
    site.done(&["push", &site.file("tried.yaml", &tried), "-m", "a trial", "--yes"]).await;
    let promote = ["promote", "db/orders", "-m", "80 was enough", "--ticket", "OPS-318"];
    assert!(site.fails(1, &promote).await.contains("nobody is there to ask; wanted --yes"));
    let out = site.done(&[&promote[..], &["--yes"]].concat()).await;
    assert!(out.contains("~ * capacity: 100 -> 80") && out.contains("- * beside.capacity: 80"), "{out}");
    assert_eq!(site.done(&["show", "2", "--for", "paris"]).await, everything(80.0, 60));
    let told = site.fails(1, &["promote", "db/orders", "-m", "again", "--yes"]).await;
    assert!(told.contains("no second limit is tried beside \"db/orders\""), "{told}");
}

#[tokio::test]
async fn faulty_input_is_told_and_nothing_is_pushed() {
    let Some(site) = Site::started().await else { return };
    let good = site.templates(100.0);
    let bad = site.file("bad.yaml", "resources:\n- capacity: many\n  colour: red\n");
    let told = site.fails(1, &["push", &bad, "-m", "x", "--yes"]).await;
    assert!(
        told.contains("bad.yaml:2:") && told.contains("bad.yaml:3:") && told.contains("nothing was pushed"),
        "{told}"
    );
    let counted = site.file("counted.yaml", &format!("version: 7\n{}", everything(1.0, 60)));
    let told = site.fails(1, &["push", &counted, "-m", "x", "--yes"]).await;
    assert!(told.contains("counted.yaml: version: 7; wanted none"), "{told}");
    let told = site.fails(1, &["push", &good, "-m", "x"]).await;
    assert!(told.contains("nobody is there to ask; wanted --yes"), "{told}");
    for (arguments, wanted) in [
        (&["push", &good, "--yes"][..], "--message <TEXT>"),
        (&["push", &good, "-m", " ", "--yes"], "wanted a message that says why"),
        (&["push", "--for", "paris", "-m", "x"], "wanted GLOB=FILE"),
        (&["push", &good, "--for", "paris=x", "-m", "x"], "cannot be used with"),
        (&["set", "*", "capacity", "-m", "x"], "wanted FIELD=VALUE"),
        (&["push-freeze"], "--message <TEXT>"),
    ] {
        let told = site.fails(2, arguments).await;
        assert!(told.contains(wanted), "{arguments:?}: {told}");
    }
    let twice = format!("paris={good}");
    let told = site.fails(1, &["push", "--for", &twice, "--for", &twice, "-m", "x", "--yes"]).await;
    assert!(told.contains("two documents for \"paris\""), "{told}");
    assert_eq!(site.done(&["history"]).await, "nothing has been pushed yet\n");
    let nowhere = crate::house::run(&["history", "--config", "etcd:t", "--etcd", "http://127.0.0.1:9"]).await;
    assert!(
        nowhere.code == Some(1) && nowhere.err.contains("no answer from etcd: http://127.0.0.1:9"),
        "{nowhere:?}"
    );
}

#[tokio::test]
async fn while_pushes_are_frozen_nobody_pushes() {
    let Some(site) = Site::started().await else { return };
    site.push(&site.templates(100.0)).await;
    site.done(&["push-freeze", "--for", "1h", "-m", "the sale"]).await;
    let told = site.fails(5, &["push", &site.templates(1.0), "-m", "x", "--yes"]).await;
    assert!(told.contains("nobody may push until") && told.contains("the sale"), "{told}");
    assert_eq!(site.done(&["push-freeze", "--lift"]).await, "everybody may push again\n");
    site.push(&site.templates(1.0)).await;
    assert_eq!(site.done(&["push-freeze", "--lift"]).await, "nobody had forbidden it\n");
}

/// Pushers at once, and how often each of them tries.
const PUSHERS: usize = 6;
const PUSHES: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_those_who_push_at_once_one_is_the_first_and_the_others_are_told() {
    let Some(site) = Site::started().await else { return };
    let site = std::sync::Arc::new(site);
    site.push(&site.templates(1.0)).await;
    let pushers = (0..PUSHERS).map(|pusher| {
        let site = std::sync::Arc::clone(&site);
        tokio::spawn(async move {
            let mut won = Vec::new();
            for push in 0..PUSHES {
                let file = site.templates((pusher * 100 + push + 2) as f64);
                let outcome = site.run(&["push", &file, "-m", "race", "--yes", "--wait", "0s"]).await;
                match outcome.code {
                    Some(0) => won.push(outcome.out.clone()),
                    Some(3) => {
                        assert!(outcome.err.contains("somebody was faster: revision "), "{outcome:?}");
                        assert!(outcome.err.contains("nothing of yours was pushed"), "{outcome:?}");
                    }
                    _ => panic!("{outcome:?}"),
                }
            }
            won
        })
    });
    let mut won = Vec::new();
    for pusher in pushers.collect::<Vec<_>>() {
        won.extend(pusher.await.unwrap());
    }
    let numbers: BTreeSet<&str> =
        won.iter().filter_map(|out| out.lines().find(|line| line.starts_with("revision "))).collect();
    assert!(numbers.len() == won.len() && !won.is_empty(), "a number has two winners: {won:?}");
    let verified = site.done(&["history", "--verify"]).await;
    let all = won.len() + 1;
    assert_eq!(verified, format!("{all} revisions are as they were made, from {all} down\n"));
    println!("{} of {} pushes were the first", won.len(), PUSHERS * PUSHES);
}
