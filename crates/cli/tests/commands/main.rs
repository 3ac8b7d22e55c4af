//! The other commands as people and scripts run them: what they print, where, and how they end.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

#[path = "../house/mod.rs"]
mod house;

mod check;
mod demo;

use std::net::TcpListener;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
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
    for command in ["serve", "demo", "doors", "agent", "import", "get", "check", "status"] {
        assert!(help.contains(&format!("\n  {command} ")), "no {command} in\n{help}");
        let help = succeed(&[command, "--help"]).await;
        assert!(help.contains(&format!("Usage: lessor {command}")), "{help}");
    }
    assert!(succeed(&["--version"]).await.starts_with("lessor "));
    // A mistake is neither success nor what a failed command ends with.
    assert_eq!(run(&["frobnicate"]).await.code, Some(2));
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
            // Nobody reads any more, which it notices at once, without a line to write.
            None => drop(lines),
        }
        let ended = timeout(AGES, holding.wait_with_output()).await.unwrap().unwrap();
        assert!(ended.status.success(), "{end:?}: {}", ended.status);
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "", "{end:?}");
        assert_eq!(house.metric("lessor_leased{resource=\"db\"}").await, 0.0, "{end:?}");
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
    let commands = ["serve", "demo", "doors", "import", "get", "check", "status", "sim"];
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
        let text = succeed(&["status", "--holders", "20", "--server", &server]).await;
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
