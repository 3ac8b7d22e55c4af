//! The other commands as people and scripts run them: what they print, where, and how they end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

mod house;

use std::io::Write;
use std::net::TcpListener;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, Outcome, everything, lessor, repository_file, run, template};

/// Runs a command that is to succeed and to complain about nothing.
async fn succeed(arguments: &[&str]) -> String {
    let Outcome { code, out, err } = run(arguments).await;
    assert_eq!((code, err.as_str()), (Some(0), ""), "lessor {arguments:?} printed {out}");
    out
}

/// Runs a command that is to fail and to say why.
async fn fail(arguments: &[&str]) -> String {
    let Outcome { code, out, err } = run(arguments).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "lessor {arguments:?} complained {err}");
    err
}

#[tokio::test]
async fn help_names_every_command() {
    let help = succeed(&["--help"]).await;
    for command in ["serve", "demo", "get", "check", "status"] {
        assert!(help.contains(&format!("\n  {command} ")), "no {command} in\n{help}");
        let help = succeed(&[command, "--help"]).await;
        assert!(help.contains(&format!("Usage: lessor {command}")), "{help}");
    }
    assert!(succeed(&["--version"]).await.starts_with("lessor "));
    // A mistake is neither success nor what a failed command ends with.
    assert_eq!(run(&["frobnicate"]).await.code, Some(2));
}

#[tokio::test]
async fn every_configuration_of_the_repository_is_valid() {
    let mut count = 0;
    for entry in std::fs::read_dir(repository_file("configs")).unwrap() {
        let path = entry.unwrap().path();
        let Outcome { code, out, err } = run(&["check", path.to_str().unwrap()]).await;
        assert_eq!(code, Some(0), "{err}");
        assert!(err.lines().all(|line| line.starts_with("note: ")), "{err}");
        assert!(out.contains(": valid, "), "{out}");
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
async fn get_says_what_it_got_and_gives_it_back() {
    let gauge = everything(100.0, 60).replace("\"*\"", "db/slots\n  kind: gauge");
    let house = House::open(&(gauge + &everything(100.0, 60).replace("resources:\n", ""))).await;
    let server = house.address().to_string();
    let get = |resource: &'static str| ["get", resource, "--server", &server, "--wants"].map(str::to_owned);
    let with = async |resource, more: &[&str]| {
        let arguments = get(resource);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        succeed(&arguments).await
    };
    assert_eq!(with("db", &["80"]).await, "db: 80/s of 80/s wanted, for 60 s (leased)\n");
    assert_eq!(
        with("db", &["80", "--transport", "poll"]).await,
        "db: 80/s of 80/s wanted, for 60 s (leased)\n"
    );
    assert_eq!(
        with("db", &["180", "--id", "me", "--priority", "-3"]).await,
        "db: 100/s of 180/s wanted, for 60 s (leased)\n"
    );
    assert_eq!(with("db/slots", &["7", "--gauge"]).await, "db/slots: 7 of 7 wanted, for 60 s (leased)\n");
    let arguments: Vec<String> = get("db/slots").into_iter().chain(["7".to_owned()]).collect();
    let err = fail(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let why = "opens \"db/slots\" as a rate; wanted a gauge, as template \"db/slots\" says";
    assert!(err.contains(why), "{err}");
    for resource in ["db", "db/slots"] {
        assert_eq!(
            house.metric(&format!("lessor_leased{{resource=\"{resource}\"}}")).await,
            0.0,
            "{resource}"
        );
    }
    house.stop().await;
}

#[tokio::test]
async fn get_with_hold_prints_changes() {
    let house = House::open(&everything(100.0, 60)).await;
    let server = house.address().to_string();
    let mut holding = lessor(&["get", "db", "--wants", "80", "--hold", "--server", &server])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holding.stdout.take().unwrap()).lines();
    let mut line = async || timeout(AGES, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(line().await, "db: 80/s of 80/s wanted, for 60 s (leased)");
    let mut other = Holder::new("other", Nature::Knows, "db", 60.0);
    other.report(&mut house.capacity().await).await.unwrap();
    let changed = line().await;
    assert!(changed.starts_with("db: 50/s of 80/s wanted, for ") && changed.ends_with(" s"), "{changed}");

    signal(&holding, Signal::INT);
    let status = timeout(AGES, holding.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
    assert_eq!(house.metric("lessor_leased{resource=\"db\"}").await, 20.0, "what it held is given back");
    house.stop().await;
}

#[tokio::test]
async fn get_gives_back_what_it_holds_however_it_ends() {
    let house = House::open(&everything(100.0, 60)).await;
    let server = house.address().to_string();
    for end in [Some(Signal::TERM), Some(Signal::HUP), None] {
        let mut holding = lessor(&["get", "db", "--wants", "80", "--hold", "--server", &server])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(holding.stdout.take().unwrap()).lines();
        timeout(AGES, lines.next_line()).await.unwrap().unwrap().unwrap();
        assert_eq!(house.metric("lessor_leased{resource=\"db\"}").await, 80.0);
        match end {
            Some(end) => signal(&holding, end),
            // Nobody reads any more, which it notices with the next line.
            None => {
                drop(lines);
                let mut other = Holder::new("other", Nature::Knows, "db", 60.0);
                other.report(&mut house.capacity().await).await.unwrap();
            }
        }
        let ended = timeout(AGES, holding.wait_with_output()).await.unwrap().unwrap();
        assert!(ended.status.success(), "{end:?}: {}", ended.status);
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{end:?}");
        let left = if end.is_some() { 0.0 } else { 20.0 };
        assert_eq!(house.metric("lessor_leased{resource=\"db\"}").await, left, "{end:?}");
    }
    house.stop().await;
}

#[tokio::test]
async fn a_reader_who_has_had_enough_is_no_fault() {
    let mut printing = lessor(&["completions", "zsh"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // More than a pipe holds is never read.
    drop(printing.stdout.take());
    let ended = timeout(AGES, printing.wait_with_output()).await.unwrap().unwrap();
    assert!(ended.status.success(), "{}", ended.status);
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
}

#[tokio::test]
async fn shells_and_man_know_every_command() {
    let commands = ["serve", "demo", "get", "check", "status", "sim"];
    for shell in ["bash", "fish", "zsh"] {
        let text = succeed(&["completions", shell]).await;
        assert!(commands.iter().all(|command| text.contains(command)), "{shell}");
    }
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    succeed(&["man", pages.to_str().unwrap()]).await;
    for command in commands {
        let page = std::fs::read_to_string(pages.join(format!("lessor-{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains(command), "{page}");
    }
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

fn signal(process: &tokio::process::Child, signal: Signal) {
    let pid = i32::try_from(process.id().unwrap()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn get_tells_what_is_wrong() {
    let algorithm = "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1, learning_mode_duration: 0}";
    let house = House::open(&template("db", 100.0, algorithm)).await;
    let server = house.address().to_string();
    let err = fail(&["get", "bd", "--wants", "1", "--server", &server]).await;
    assert!(err.starts_with("error: bd: refused by the server: "), "{err}");
    assert!(err.contains("no template matches \"bd\""), "{err}");
    for wants in ["NaN", "inf"] {
        let err = fail(&["get", "db", "--wants", wants, "--server", &server]).await;
        assert!(err.contains("wanted a finite number of at least 0"), "{err}");
    }
    house.stop().await;
}

/// An address at which nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

#[tokio::test]
async fn without_a_server_commands_say_so() {
    let server = nobody();
    let err = fail(&["get", "db", "--wants", "1", "--server", &server]).await;
    assert!(err.starts_with("error: no server answers: ") && err.contains(&server), "{err}");
    let err = fail(&["status", "--server", &server]).await;
    assert!(err.starts_with(&format!("error: no answer from {server}")), "{err}");
}

#[tokio::test]
async fn status_shows_who_has_and_wants_what() {
    let house = House::open(&everything(100.0, 60)).await;
    let address = house.address().to_string();
    let empty = succeed(&["status", "--server", &address]).await;
    assert!(
        empty.starts_with("node root, ") && empty.contains("nobody holds or wants anything\n"),
        "{empty}"
    );

    let mut server = house.capacity().await;
    for (id, wants) in [("web-1", 33.25), ("web-2", 1000.0)] {
        Holder::new(id, Nature::Echoes, "db/orders", wants).report(&mut server).await.unwrap();
    }
    Holder::new("web-1", Nature::Echoes, "other", 1.0).report(&mut server).await.unwrap();
    for server in [address, house.http().to_string()] {
        let text = succeed(&["status", "--server", &server]).await;
        assert!(text.contains("\ndb/orders  (rate, FAIR_SHARE, template *)\n"), "{text}");
        assert!(text.contains("\n  leased 100 of 100/s, wanted 1033.25, 2 clients\n"), "{text}");
        assert!(text.contains("\nother  (rate, "), "{text}");
        let row = |id: &str| -> Vec<String> {
            let words =
                |line: &str| line.split_whitespace().filter(|word| *word != "│").map(str::to_owned).collect();
            let mut rows = text.lines().map(words);
            rows.find(|row: &Vec<String>| row.first().is_some_and(|first| first == id)).expect(id)
        };
        assert_eq!(row("client")[..3], ["client", "has", "wants"]);
        assert_eq!(row("web-1")[..3], ["web-1", "33.25", "33.25"]);
        assert_eq!(row("web-2")[..4], ["web-2", "66.75", "1000", "66.75"]);

        let one = succeed(&["status", "db/orders", "--holders", "1", "--server", &server]).await;
        assert!(!one.contains("\nother") && one.contains("… and 1 more\n"), "{one}");
        let json = succeed(&["status", "--json", "--server", &server]).await;
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["status"]["resources"][0]["holders"][0]["client"], "web-2");
        let err = fail(&["status", "nothing", "--server", &server]).await;
        assert_eq!(err, format!("error: {server}: nobody holds or wants \"nothing\"\n"));
    }
    house.stop().await;
}

#[tokio::test]
async fn demo_ends_by_itself_with_a_summary() {
    let directory = tempfile::tempdir().unwrap();
    let picture = directory.path().join("demo.svg");
    let outcome = run(&["demo", "--for", "5s", "--plain", "--svg", picture.to_str().unwrap()]).await;
    let Outcome { code, out, err } = outcome;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(
        err,
        "note: --for 5s leaves out the end of the root, which takes 29 s\n\
         note: --for 5s leaves out how the greedy tenant bursts and rests, which takes 9 s\n"
    );
    let picture = std::fs::read_to_string(&picture).unwrap();
    for words in ["<svg", "a target takes 500/s", "root: 480/s", "tenants of west-1 and west-2"] {
        assert!(picture.contains(words), "no {words:?} in {picture}");
    }
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() >= 5, "{out}");
    // The whole tree is told in each line, and what happens to it.
    assert!(lines.iter().any(|line| line.contains("east grows hungry")), "{out}");
    let told: Vec<&&str> = lines.iter().filter(|line| line.contains(" s  target ")).collect();
    assert!(told.len() >= 4, "{out}");
    for line in told {
        let parts: Vec<&str> = line.split(['>', '|']).collect();
        assert_eq!(parts.len(), 3, "{line}");
        assert!(parts[1].starts_with(" west ") && parts[2].starts_with(" east "), "{line}");
        let clients =
            parts[1..].iter().map(|part| part.split(':').nth(1).unwrap().split_whitespace().count());
        assert_eq!(clients.sum::<usize>(), 12, "{line}");
    }
    let summary: Vec<&str> = lines.last().unwrap().split(", ").collect();
    // What stands behind a word, up to the unit.
    let number = |begin: &str| -> f64 {
        let part = summary.iter().find_map(|part| part.strip_prefix(begin)?.strip_prefix(' '));
        let part = part.unwrap_or_else(|| panic!("no {begin:?} in {summary:?}"));
        part.split(['/', ' ']).next().unwrap().parse().expect(begin)
    };
    let limit = number("limit");
    let highest = number("highest second seen at the target");
    let used = number("share used");
    assert!(0.0 < highest && highest <= limit, "{summary:?}");
    assert!(used > 10.0 && used <= 105.0, "{summary:?}");
    assert_eq!(number("over-commitment"), 0.0, "{summary:?}");
    assert_eq!(number("refused"), 0.0, "{summary:?}");
}

#[tokio::test]
async fn the_greedy_tenant_of_the_demo_bursts_and_rests_while_others_are_never_refused() {
    let Outcome { code, out, err } = run(&["demo", "--for", "9s", "--plain"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(err, "note: --for 9s leaves out the end of the root, which takes 29 s\n");
    let (lines, summary) = out.trim_end().rsplit_once('\n').unwrap();
    let tenants: Vec<&str> = lines.lines().filter(|line| line.starts_with("         tenants ann ")).collect();
    assert!(tenants.len() >= 7, "{out}");
    let greedy =
        |does: &str| tenants.iter().position(|line| line.split(" greedy ").nth(1).unwrap().contains(does));
    let (bursts, rests) = (greedy(" bursts, tier 2 "), greedy(" rests "));
    assert!(bursts.is_some() && bursts < rests, "{out}");
    assert!(tenants.iter().all(|line| line.matches(" -0").count() >= 3), "{out}");
    let refused = |begin: &str| -> u64 {
        let part = summary.split(", ").find_map(|part| part.strip_prefix(begin));
        part.unwrap_or_else(|| panic!("no {begin:?} in {summary}")).parse().unwrap()
    };
    assert!(refused("greedy tenant refused ") > 0, "{summary}");
    assert_eq!(refused("other tenants "), 0, "{summary}");
}

#[tokio::test]
async fn demo_ends_with_its_summary_when_it_is_interrupted() {
    let demo = lessor(&["demo", "--for", "1h", "--plain"]).stdout(std::process::Stdio::piped()).spawn();
    let mut demo = demo.unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
    let mut line = async || timeout(AGES, lines.next_line()).await.unwrap().unwrap();
    while !line().await.expect("it goes on").contains(" s  target ") {}
    let pid = i32::try_from(demo.id().unwrap()).ok().and_then(rustix::process::Pid::from_raw).unwrap();
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    let mut last = String::new();
    while let Some(next) = line().await {
        last = next;
    }
    assert!(last.starts_with("limit 500/s, ") && last.ends_with("over-commitment 0"), "{last}");
    let status = timeout(AGES, demo.wait()).await.unwrap().unwrap();
    assert!(status.success(), "{status}");
}

/// In a terminal, which `script` makes.
#[tokio::test]
async fn demo_draws_in_a_terminal_and_gives_it_back() {
    let demo = format!("stty rows 24 cols 80; {} demo --for 3s", env!("CARGO_BIN_EXE_lessor"));
    let mut script = tokio::process::Command::new("script");
    script.args(["-q", "-e", "-c", &demo, "/dev/null"]).env("TERM", "xterm-256color");
    let Ok(output) = timeout(AGES, script.stdin(std::process::Stdio::null()).output()).await.unwrap() else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: script is not installed (Debian: bsdutils)");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    // The picture on the other screen, and after it, on the first one, the same as it was last, and the last line.
    let (_, drawn) = text.split_once("\u{1b}[?1049h").expect("another screen");
    let (drawn, last) = drawn.split_once("\u{1b}[?1049l").expect("the first screen again");
    for part in ["root: 480/s", "west: ", "east: ", "target: ", "west is busy and east is not"] {
        assert!(drawn.contains(part), "no {part:?} in {drawn:?}");
    }
    for part in ["root: 480/s", "west: ", "target: ", "3 of 3 s", "leaves out the end of the root"] {
        assert!(last.contains(part), "no {part:?} in {last:?}");
    }
    assert!(last.contains("limit 500/s, highest second seen at the target "), "{last:?}");
    assert!(last.trim_end().ends_with("over-commitment 0"), "{last:?}");
}
