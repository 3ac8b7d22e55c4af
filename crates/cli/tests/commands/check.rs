//! `lessor check`: what it says of configurations.

use super::*;

#[tokio::test]
async fn every_configuration_of_the_repository_is_valid() {
    let mut count = 0;
    for entry in std::fs::read_dir(repository_file("configs")).unwrap() {
        let path = entry.unwrap().path();
        // Those of doors have a test of their own.
        if path.is_dir() {
            continue;
        }
        let is_access = path.file_name().is_some_and(|name| name == "access.yaml");
        let flags: &[&str] = if is_access { &["--access"] } else { &[] };
        let arguments = [&["check"], flags, &[path.to_str().unwrap()]].concat();
        let Outcome { code, out, err } = run(&arguments).await;
        assert_eq!(code, Some(0), "{err}");
        assert!(err.lines().all(|line| line.starts_with("note: ")), "{err}");
        assert!(out.contains(": valid"), "{out}");
        count += 1;
    }
    assert!(count >= 3, "only {count} configurations");
}

#[tokio::test]
async fn check_says_every_fault_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("faulty.yaml");
    let text = r#"resources:
  - identifier_glob: "db-[a"
    capacity: -5
    algorithm:
      kind: FAIRISH
      lease_length: 5
      refresh_interval: 8
  - identifier_glob: "*"
    capcity: 10
    algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}
"#;
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let err = fail(&["check", path]).await;
    let found: Vec<&str> =
        err.lines().filter_map(|line| line.strip_prefix(path)?.strip_prefix(':')).collect();
    let wanted = [
        ("2:22", "malformed"),
        ("3:15", "capacity -5 is negative"),
        ("5:13", "kind FAIRISH is not an algorithm"),
        ("6:21", "lease_length 5 is shorter than refresh_interval 8"),
        ("8:5", "capacity is missing"),
        ("9:5", "did you mean capacity?"),
    ];
    assert_eq!(found.len(), wanted.len(), "{err}");
    for (line, (place, message)) in found.into_iter().zip(wanted) {
        assert!(
            line.starts_with(&format!("{place}: ")) && line.contains(message),
            "{place}, {message}: {line}"
        );
    }
    assert!(err.contains("\n3 |     capacity: -5\n"), "no snippet in\n{err}");
    assert!(err.ends_with(&format!("error: {path}: 6 faults\n")), "{err}");

    // A server does not start with it, and says the same.
    let outcome = run(&["serve", "--config", path, "--listen", "127.0.0.1:0"]).await;
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.err.contains(":3:15: ") && outcome.err.contains(":9:5: "), "{}", outcome.err);
}

#[tokio::test]
async fn check_says_what_was_made_of_policies_and_what_they_do_not_do() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tenants.yaml");
    let text = r#"resources:
  - identifier_glob: "db"
    capacity: 10
    algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}
    domains:
      scope: client
      default: {tiers: [{limit: 5, window: 10s, active: 1m}, {limit: 9, window: 10s, active: 25s}]}
"#;
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let Outcome { code, out, err } = run(&["check", path]).await;
    assert_eq!((code, out), (Some(0), format!("{path}: valid, 1 template\n")));
    let notes: Vec<&str> = err.lines().collect();
    let trimmed =
        "note: template \"db\": domains: default: tier 2: active time 25s is trimmed to whole windows, 20s";
    assert_eq!((notes.len(), notes[0]), (2, trimmed), "{err}");
    assert!(notes[1].contains("scope client: each client counts for itself"), "{err}");

    std::fs::write(path, text.replace("client", "shared")).unwrap();
    let Outcome { code, err, .. } = run(&["check", path]).await;
    assert_eq!((code, err.lines().count()), (Some(0), 2), "{err}");
    assert!(
        err.contains("scope shared: clients tell each other through servers that have the same domains"),
        "{err}"
    );

    let strict = "scope: strict\n      default: {hard_limit: 80}\n";
    let (before, _) = text.split_once("scope").unwrap();
    std::fs::write(path, format!("{before}{strict}")).unwrap();
    let Outcome { code, err, .. } = run(&["check", path]).await;
    let leased = "note: template \"db\": domains: default: 71.999991 a second are leased for each domain, in 9 parts\n";
    assert_eq!((code, err.as_str()), (Some(0), leased));

    std::fs::write(path, text.replace("client", "shard")).unwrap();
    let err = fail(&["check", path]).await;
    let wanted = ":6:14: template \"db\": domains: scope shard means nothing; did you mean shared?";
    assert!(err.contains(wanted), "{err}");
}

#[tokio::test]
async fn check_says_what_may_pass_at_once_where_small_leases_save_units() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("small.yaml");
    let path = path.to_str().unwrap();
    let text = everything(10.0, 60);
    std::fs::write(path, &text).unwrap();
    assert_eq!(run(&["check", path]).await.err, "");
    std::fs::write(path, text.replace("\n  capacity", "\n  small_leases: save\n  capacity")).unwrap();
    let Outcome { code, err, .. } = run(&["check", path]).await;
    assert_eq!((code, err.lines().count()), (Some(0), 1), "{err}");
    assert!(
        err.contains("small_leases save: a unit of each client with less than one in the burst"),
        "{err}"
    );
    std::fs::write(path, text.replace("\n  capacity", "\n  kind: gauge\n  small_leases: save\n  capacity"))
        .unwrap();
    assert!(fail(&["check", path]).await.contains("small_leases is about rates, and this is a gauge"));
}

#[tokio::test]
async fn check_tells_a_file_that_is_not_there() {
    let err = fail(&["check", "no/such/file.yaml"]).await;
    assert!(err.starts_with("error: no/such/file.yaml: "), "{err}");
}

#[tokio::test]
async fn check_looks_at_each_file_and_notes_what_was_perhaps_not_meant() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let odd = write(
        "odd.yaml",
        r#"resources:
  - identifier_glob: "db"
    capacity: 10
    safe_capacity: 20
    safe_lease: 3days
    algorithm: {kind: FAIR_SHARE, lease_length: 172800, refresh_interval: 5}
    domains:
      overrides:
        - domain: "t"
          policy: {tiers: [{limit: 20, window: 1s, active: 1s}, {limit: 100, window: 10s, active: 1m, cooldown: 2m}]}
        - domain: "u"
          policy: {windows: reset, tiers: [{limit: 20, window: 1s, active: 1s}]}
        - domain: "v"
          policy: {windows: reset, tiers: [{limit: 20, window: 1s, active: 1s, cooldown: 1s}]}
"#,
    );
    let faulty = write("faulty.yaml", "resources: 7\n");
    let good = repository_file("configs/quickstart.yaml");
    let outcome = run(&["check", &odd, &faulty, good.to_str().unwrap()]).await;
    let Outcome { code, out, err } = outcome;
    assert_eq!(code, Some(1), "{err}");
    assert_eq!(out.lines().filter(|line| line.contains(": valid, 1 template")).count(), 2, "{out}\n{err}");
    for wanted in [
        "safe_capacity: 20 is more than all of the capacity, 10",
        "safe_lease: without safe_fraction nothing is reserved",
        "lease_length: what a client has that dies is nobody's for 2days",
        "there is no default: a domain that no override is for is refused",
        "100 in 10 s after 20 in 1 s is no burst: 10 a second where there were 20",
        "override \"u\": windows reset: of a tier that is entered again earlier hits are forgotten, so up to 40 may lie in a window of 1 s",
        "override \"v\": windows reset means nothing: each tier rests for a window at least",
        "error: 1 of 3 files are not valid",
    ] {
        assert!(err.contains(wanted), "{wanted}, found {err}");
    }
}

/// Checks what comes through a pipe.
async fn check_piped(arguments: &[&str], text: &str) -> Outcome {
    let mut checking = lessor(arguments)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    checking.stdin.take().unwrap().write_all(text.as_bytes()).await.unwrap();
    Outcome::of(&timeout(AGES, checking.wait_with_output()).await.unwrap().unwrap())
}

#[tokio::test]
async fn check_reads_standard_input_and_what_another_command_says() {
    let good = everything(100.0, 60);
    for file in ["-", "/dev/stdin", "/proc/self/fd/0"] {
        let shown = if file == "-" { "<stdin>" } else { file };
        let Outcome { code, out, err } = check_piped(&["check", file], &good).await;
        assert_eq!((code, out), (Some(0), format!("{shown}: valid, 1 template\n")), "{err}");
        let Outcome { code, err, .. } = check_piped(&["check", file], &good.replace("100", "-1")).await;
        assert!(code == Some(1) && err.starts_with(&format!("{shown}:3:13: ")), "{err}");
        assert!(err.ends_with(&format!("error: {shown}: 1 fault\n")), "{err}");
    }
    let Outcome { out, .. } = check_piped(&["check", "--access", "-"], "default: deny\n").await;
    assert!(out.starts_with("<stdin>: valid rules of access, "), "{out}");
}

#[tokio::test]
async fn a_file_of_the_other_kind_is_told_from_a_misspelt_one() {
    let rules = repository_file("configs/access.yaml");
    let err = fail(&["check", rules.to_str().unwrap()]).await;
    for field in ["default", "nodes", "clients", "operators", "revoked"] {
        let hint =
            format!("{field} belongs into rules of access, a file of its own: it is given by --access FILE");
        assert!(err.contains(&hint), "{field}: {err}");
    }
    let resources = repository_file("configs/quickstart.yaml");
    let err = fail(&["check", "--access", resources.to_str().unwrap()]).await;
    assert!(err.contains("resources belongs into a configuration; this is read as rules of access"), "{err}");
}
