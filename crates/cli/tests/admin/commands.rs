//! `lessor admin`, as people call it.

use rustix::process::getuid;

use crate::gate::Gate;
use crate::house::{House, everything, run};

#[tokio::test]
async fn each_act_has_a_command_that_people_can_read() {
    let directory = tempfile::tempdir().unwrap();
    let at = format!("unix:{}", directory.path().join("a.sock").display());
    let house = House::open_with(&format!("version: 3\n{}", everything(100.0, 60)), &["--admin", &at]).await;
    let server = house.address().to_string();
    let held = run(&["get", "db", "--wants", "10", "--id", "web-1", "--server", &server]).await;
    assert_eq!(held.code, Some(0), "{held:?}");
    let say = async |arguments: &[&str]| {
        let outcome = run(&[&["admin"], arguments, &["--admin", &at]].concat()).await;
        assert_eq!((outcome.code, outcome.err.as_str()), (Some(0), ""), "{arguments:?}: {outcome:?}");
        outcome.out
    };
    let uid = getuid().as_raw();
    assert_eq!(
        say(&["whoami"]).await,
        format!("uid:{uid}, as uid {uid} at a socket\nmay: all (there are no rules of access)\n")
    );
    assert_eq!(
        say(&["reload"]).await,
        format!("templates in force, version 3: {}\n", house.config().display())
    );
    assert_eq!(say(&["log"]).await, "info\n");
    let changed = say(&["log", "warn,lessor_server=debug", "--for", "10m"]).await;
    assert_eq!(changed, "warn,lessor_server=debug, for 10m; then info\n");
    assert_eq!(say(&["log", "--reset"]).await, "info\n");
    assert_eq!(say(&["recall"]).await, "no recall is in force\n");
    let connections = say(&["connections"]).await;
    assert!(
        connections.contains("admin") && connections.contains(&format!("uid {uid} pid ")),
        "{connections}"
    );
    let access = say(&["access"]).await;
    assert_eq!(
        access,
        "no rules of access: everybody may everything\ndenied: nothing\nwould have been denied: nothing\n"
    );
    let json: serde_json::Value = serde_json::from_str(&say(&["whoami", "--json"]).await).unwrap();
    assert_eq!(json["identity"], format!("uid:{uid}"));
    house.stop().await;
}

#[tokio::test]
async fn a_recall_is_said_in_words() {
    let gate = Gate::open_with("default: audit\n", &["--admin", "127.0.0.1:0"]).await;
    let at = gate.house.admin().unwrap();
    let mut cron = gate.stranger().await;
    cron.get("cron", "db", 5.0).await.unwrap();
    let recalled = run(&["admin", "recall", "db", "cron", "--for", "1h", "--admin", at]).await;
    assert_eq!(recalled.code, Some(0), "{recalled:?}");
    assert!(recalled.out.starts_with("cron gets nothing of db for 1h\n  a client without a stream, told so when it asks again; 5.0 stay charged for "), "{recalled:?}");
    let listed = run(&["admin", "recall", "--admin", at]).await.out;
    assert!(listed.contains("cron") && listed.contains("db"), "{listed}");
    let lifted = run(&["admin", "recall", "db", "cron", "--lift", "--admin", at]).await;
    assert_eq!(lifted.out, "cron may have of db what is due to it\n");
    gate.house.stop().await;
}

#[tokio::test]
async fn what_a_person_does_wrong_says_what_to_do() {
    let rules = "default: deny\noperators:\n  - {identity: plain, may: [see]}\n";
    let gate = Gate::open_with(rules, &["--admin", "127.0.0.1:0"]).await;
    let (at, main) = (gate.house.admin().unwrap(), gate.house.address().to_string());
    let nowhere = format!("unix:{}", gate.path("nowhere.sock").display());
    for (arguments, code, told) in [
        (&["whoami"][..], 2, "--admin <HOST:PORT|unix:PATH>"),
        (&["whoami", "--admin", "here"], 1, "--admin \"here\": wanted HOST:PORT or unix:PATH"),
        (
            &["whoami", "--admin", &nowhere],
            1,
            "there is no such socket; is the server running, with --state-dir or --admin",
        ),
        (
            &["whoami", "--admin", &main],
            1,
            "that is no admin port: it answers 404; wanted what the server's --admin says",
        ),
        (
            &["reload", "--admin", at],
            1,
            "403: operators[0] on line 3 does not let \"plain\" push; it may [see]\nwhat the rules say of it: lessor can \"plain\" push --access FILE",
        ),
        (&["resign", "--admin", at], 1, "does not let \"plain\" override"),
        (&["recall", "db", "a", "--admin", at], 1, "wanted --for DURATION, as 10m, or --lift"),
        (&["recall", "db", "--for", "1m", "--admin", at], 2, "HOLDER"),
        (&["log", "debug", "--admin", at], 2, "--for <DURATION>"),
    ] {
        let outcome = run(&[&["admin"], arguments].concat()).await;
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert!(outcome.err.contains(told), "{arguments:?}: {outcome:?}");
    }
    // And with a token that says who it is.
    let token = gate.path("op.token");
    std::fs::write(&token, gate.token(&["--identity", "op", "--role", "push"]).await).unwrap();
    let flags = ["--admin", at, "--token-file", token.to_str().unwrap()];
    let me = run(&[&["admin", "whoami"], &flags[..]].concat()).await;
    assert_eq!(me.out, "op, by its token\nmay: push\n", "{me:?}");
    let read = run(&[&["admin", "reload"], &flags[..]].concat()).await;
    assert!(read.code == Some(0) && read.out.contains("token keys in force: "), "{read:?}");
    std::fs::write(gate.house.config(), "resources: 5\n").unwrap();
    let faulty = run(&[&["admin", "reload"], &flags[..]].concat()).await;
    assert!(
        faulty.code == Some(1) && faulty.err.contains("422: ") && faulty.err.contains("lessor.yaml:1:12"),
        "{faulty:?}"
    );
    gate.house.stop().await;
}
