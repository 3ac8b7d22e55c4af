//! Faults in files and flags: each names the field, what was found, and what was wanted.

use crate::house::{Outcome, repository_file, run};

/// The words of a command that is to fail with that code.
async fn fault(code: i32, arguments: &[&str]) -> String {
    let outcome = run(arguments).await;
    assert_eq!((outcome.code, &*outcome.out), (Some(code), ""), "lessor {arguments:?}: {}", outcome.err);
    outcome.err
}

#[tokio::test]
async fn what_is_wrong_with_rules_is_said_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("doors.yaml");
    let name = path.to_str().unwrap();
    for (text, wanted) in [
        (
            "sets: {edge: {rules: [{limit: 5}]}}",
            ":1:31: set \"edge\": rules[0]: limit \"5\" has no window; wanted hits and a window, as in 100/1m or 50MiB/1s",
        ),
        ("sets: {edge: {rule: []}}", "unknown field \"rule\" in a set; did you mean rules?"),
        ("resources: []", "belongs into a configuration of servers; this is read as rules of doors"),
        ("domain: d", "is of a file of the rate limit service: it is named under ratelimit: files"),
        ("ratelimit: [none.yaml]", "/none.yaml: No such file or directory"),
        (
            "pool: {workers: 0}",
            ":1:17: workers 0 is out of bounds; wanted a whole number from 1 to 1000000, as in 500",
        ),
        ("pool: {}", "workers is missing; wanted a whole number from 1 to 1000000, as in 500"),
        ("pool: {workers: 2000000}", "workers 2000000 is too large; wanted a whole number from 1 to 1000000"),
        ("{}", "no rules; wanted sets: with rules, ratelimit: with files, or pool: with workers"),
    ] {
        std::fs::write(&path, text).unwrap();
        for arguments in [
            &["doors", "--rules", name, "--http", "127.0.0.1:0"][..],
            &["import", "--rules", name],
            &["check", "--doors", name],
        ] {
            let said = fault(1, arguments).await;
            assert!(said.contains(wanted), "{arguments:?} of {text}:\n{said}");
        }
    }
}

#[tokio::test]
async fn flags_say_what_they_want() {
    let rules = repository_file("configs/doors/doors.yaml");
    let rules = rules.to_str().unwrap();
    let wrong = fault(2, &["doors", "--rules", rules, "--rls", "here"]).await;
    assert!(wrong.contains("\"here\" is no address; wanted HOST:PORT"), "{wrong}");
    let nothing = fault(2, &["doors", "--rules", rules]).await;
    assert!(nothing.contains("--rls <HOST:PORT>") && nothing.contains("--http <HOST:PORT>"), "{nothing}");
    let without = fault(2, &["doors", "--http", "127.0.0.1:0"]).await;
    assert!(without.contains("--rules <FILE>") && without.contains("--ratelimit <PATH>"), "{without}");
    let pool = fault(1, &["doors", "--rules", rules, "--pool", "127.0.0.1:0"]).await;
    assert!(pool.contains("--pool: the rules say nothing of it; wanted pool: {workers: N}"), "{pool}");
    let both = fault(2, &["doors", "--as", "ratelimit", "--rules", rules]).await;
    assert!(both.contains("--as <SERVICE>") && both.contains("--rules <FILE>"), "{both}");
    let other = fault(2, &["doors", "--as", "limitador"]).await;
    assert!(other.contains("[possible values: ratelimit]"), "{other}");
    let none = fault(2, &["check", "--doors", rules, "--door-count", "0"]).await;
    assert!(none.contains("--door-count"), "{none}");
}

#[tokio::test]
async fn check_says_how_each_limit_is_kept_and_which_has_no_template() {
    let rules = repository_file("configs/doors/doors.yaml");
    let rules = rules.to_str().unwrap();
    let Outcome { code, out, err } = run(&["check", "--doors", rules, "--door-count", "10"]).await;
    assert_eq!((code, &*err), (Some(0), ""));
    let wanted = "edge/0: 5/1m, exact, of edge/0|0:*\n    passes at most 5 in any window; when the limit is cut the old one may \
                  pass for 1m 36s\n    refuses wrongly: after a wait of 100ms, ";
    assert!(out.starts_with(wanted), "{out}");
    assert!(out.ends_with("doors.yaml: valid, 3 sets, 7 limits, version 1, at 10 doors\n"), "{out}");
    // What a newcomer gets who sets nothing is no more than a server takes.
    let keys = "keys: with the defaults a process remembers 20000 of a limit at a time, and its server takes 20000\n";
    assert!(out.contains(keys), "{out}");

    let imported = run(&["import", "--rules", rules]).await.out;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("templates.yaml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, &imported).unwrap();
    let Outcome { code, err, .. } = run(&["check", name, "--doors", rules]).await;
    assert_eq!((code, &*err), (Some(0), ""));
    std::fs::write(
        &path,
        imported.replace("edge/0|", "other|").replacen("capacity: 10\n", "capacity: 9\n", 1),
    )
    .unwrap();
    let Outcome { code, err, .. } = run(&["check", name, "--doors", rules]).await;
    assert_eq!(code, Some(1));
    for wanted in [
        "5/1m of edge/0 has no template; wanted one for \"edge/0|0:*\"\n",
        "10/1m of shop/remote_address has template \"rl/shop/remote_address|0:*\" with capacity 9; wanted 10\n",
        "2 limits have no template that fits; lessor import prints those that do\n",
    ] {
        assert!(err.contains(wanted), "{err}");
    }
}

#[tokio::test]
async fn check_says_which_template_locks_need() {
    let rules = repository_file("configs/doors/pool.yaml");
    let rules = rules.to_str().unwrap();
    let imported = run(&["import", "--rules", rules]).await.out;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("templates.yaml");
    let name = path.to_str().unwrap();
    std::fs::write(&path, &imported).unwrap();
    let Outcome { code, out, err } = run(&["check", name, "--doors", rules]).await;
    assert_eq!((code, &*err), (Some(0), ""));
    assert!(out.contains("pool: up to 500 workers of a key, as requests name them, of pool|*\n"), "{out}");
    let wanted = "wanted one for \"pool|*\" with kind: gauge, workers: in_name and a capacity of 500";
    for (text, said) in [
        (imported.replace("pool|*", "other|*"), "pool has no template; "),
        (
            imported.replace("capacity: 500", "capacity: 7"),
            "pool has template \"pool|*\" with a capacity below 500; ",
        ),
        (
            imported.replace("    workers: in_name\n", ""),
            "pool has template \"pool|*\", which is no gauge whose names say how many workers there are; ",
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        let err = run(&["check", name, "--doors", rules]).await.err;
        assert!(err.contains(&format!("{said}{wanted}")), "{err}");
    }
}
