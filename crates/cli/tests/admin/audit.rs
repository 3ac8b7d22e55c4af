//! The audit log: every call, whether it was refused or not, and no act without its record.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use crate::desk::Desk;
use crate::gate::{Gate, KEY};
use crate::house::{House, eventually, everything, run};

/// A file for the audit log of a server.
struct AuditFile {
    path: PathBuf,
    _directory: TempDir,
}

// === impl AuditFile ===

impl AuditFile {
    fn new() -> AuditFile {
        let directory = tempfile::tempdir().unwrap();
        AuditFile { path: directory.path().join("audit.log"), _directory: directory }
    }

    /// The flags of a server that writes it.
    fn flags(&self) -> [&str; 4] {
        ["--admin", "127.0.0.1:0", "--audit-log", self.path.to_str().unwrap()]
    }

    /// Moves it away, as whoever rotates it does. Returns where it is.
    fn move_away(&self) -> PathBuf {
        let moved = self.path.with_extension("log.1");
        std::fs::rename(&self.path, &moved).unwrap();
        moved
    }
}

/// The lines of a file, each of which is JSON.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.is_empty() || text.ends_with('\n'), "{text:?}");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}")))
        .collect()
}

/// The lines of the audit in the log, once there are `count`.
async fn logged(gate: &Gate, count: usize) -> Vec<Value> {
    // Denials have lines of that target too, and are no calls.
    let of_calls = || -> Vec<Value> {
        let lines = gate.house.logged_with("\"target\":\"lessor::audit\"");
        let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter_map(|line| serde_json::from_str(line["fields"]["message"].as_str()?).ok()).collect()
    };
    eventually("all of it is in the log", async || of_calls().len() >= count).await;
    of_calls()
}

const FILTER: &str = r#"{"filter":"info","for":"1h"}"#;

#[tokio::test]
async fn every_call_has_its_lines_in_the_file_and_in_the_log() {
    let file = AuditFile::new();
    let rules = "default: deny\noperators:\n  - {identity: plain, may: [see]}\n";
    let gate = Gate::open_with(rules, &file.flags()).await;
    assert_eq!(std::fs::metadata(&file.path).unwrap().permissions().mode() & 0o777, 0o600);
    let at = gate.house.admin().unwrap();
    let token = gate.token(&["--identity", "oncall", "--role", "override"]).await;
    let (oncall, nobody) = (Desk::with_token(at, &token), Desk::new(at));
    oncall.call("PUT", "/admin/log", Some(FILTER)).await.done();
    nobody.call("PUT", "/admin/log", Some(FILTER)).await.problem(403);
    oncall.get("/admin/whoami").await.done();
    nobody.call("POST", "/admin/nothing", None).await.problem(404);
    Desk::with_token(at, "lessor1.AAAA").get("/admin/access").await.problem(401);
    oncall.call("PUT", "/admin/log", Some(r#"{"filter":"debgu","for":"1h"}"#)).await.problem(400);

    let lines = lines(&file.path);
    let told = |line: &Value| {
        let text = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
        (
            line["call"].as_u64().unwrap(),
            text("identity"),
            text("act"),
            text("outcome"),
            line["status"].as_u64(),
        )
    };
    let wanted = [
        (1, "oncall", "log", "begun", None),
        (1, "oncall", "log", "done", None),
        (2, "plain", "log", "refused", Some(403)),
        (3, "oncall", "whoami", "done", None),
        (4, "plain", "unknown", "failed", Some(404)),
        (5, "plain", "access", "refused", Some(401)),
        (6, "oncall", "log", "begun", None),
        (6, "oncall", "log", "failed", Some(400)),
    ];
    let wanted = wanted.map(|(call, who, act, outcome, status)| {
        (call, who.to_owned(), act.to_owned(), outcome.to_owned(), status)
    });
    assert_eq!(lines.iter().map(told).collect::<Vec<_>>(), wanted);
    let arguments = serde_json::json!({"filter": "info", "for": "1h"});
    assert_eq!((&lines[0]["arguments"], &lines[0]["port"]), (&arguments, &"admin".into()));
    for line in &lines {
        assert!(line["address"].as_str().unwrap().starts_with("127.0.0.1:"), "{line}");
        humantime::parse_rfc3339(line["time"].as_str().unwrap()).unwrap();
    }
    let told = "operators[0] on line 3 does not let \"plain\" override; it may [see]";
    assert_eq!(lines[2]["detail"], told);
    assert_eq!(logged(&gate, lines.len()).await, lines, "the log has the same");
    assert_eq!(gate.house.metric("lessor_admin_calls_total{act=\"log\",outcome=\"done\"}").await, 1.0);
    assert_eq!(gate.house.metric("lessor_admin_calls_total{act=\"log\",outcome=\"refused\"}").await, 1.0);
    gate.house.stop().await;
}

#[tokio::test]
async fn who_may_nothing_does_not_fill_the_audit_log() {
    let file = AuditFile::new();
    let gate = Gate::open_with("default: deny\n", &file.flags()).await;
    let at = gate.house.admin().unwrap();
    let token = gate.token(&["--identity", "oncall", "--role", "see"]).await;
    let (oncall, nobody) = (Desk::with_token(at, &token), Desk::new(at));
    let (mut recorded, mut limited) = (0, 0);
    for call in 0..400 {
        // Whatever it asks for, and whoever it says it is.
        let answer = match call % 4 {
            0 => nobody.get("/admin/connections").await,
            1 => nobody.get("/admin/whoami").await,
            2 => nobody.call("POST", "/admin/nothing", None).await,
            _ => Desk::with_token(at, "lessor1.AAAA").get("/admin/access").await,
        };
        match answer.code {
            429 => limited += 1,
            _ => recorded += 1,
        }
    }
    assert!(recorded >= 20 && limited > 0, "{recorded} {limited}");
    assert_eq!(lines(&file.path).len(), recorded);
    for _ in 0..40 {
        oncall.get("/admin/connections").await.done();
    }
    assert_eq!(lines(&file.path).len(), recorded + 40, "others have lines of their own");
    // The next one that is recorded says how many are not.
    let more = std::cell::Cell::new(0);
    eventually("it is recorded again", async || match nobody.get("/admin/connections").await.code {
        429 => {
            more.set(more.get() + 1);
            false
        }
        code => code == 403,
    })
    .await;
    limited += more.get();
    let told: u64 = lines(&file.path).iter().filter_map(|line| line["left_out"].as_u64()).sum();
    assert_eq!(told, limited);
    let page = Desk::with_token(&gate.house.http().to_string(), &token).get("/metrics").await.body;
    let counted = ["connections", "whoami", "unknown", "access"].map(|act| {
        let name = format!("lessor_admin_calls_total{{act=\"{act}\",outcome=\"limited\"}} ");
        let value = page.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("no {name} in\n{page}")).parse::<u64>().unwrap()
    });
    assert_eq!(counted.iter().sum::<u64>(), limited);
    gate.house.stop().await;
}

#[tokio::test]
async fn no_log_filter_keeps_the_audit_log_silent() {
    let house = House::open_with(&everything(100.0, 60), &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(house.admin().unwrap());
    for filter in ["off", "lessor::audit=off", "off,lessor::audit[{message}]=off", "error,lessor=off"] {
        let before = house.logged_with("lessor::audit").len();
        let body = serde_json::json!({"filter": filter, "for": "1h"}).to_string();
        desk.call("PUT", "/admin/log", Some(&body)).await.done();
        desk.get("/admin/whoami").await.done();
        let logged = async || house.logged_with("lessor::audit").len() >= before + 3;
        eventually(&format!("{filter}: both calls are there"), logged).await;
    }
    house.stop().await;
}

#[tokio::test]
async fn no_secret_and_no_line_of_its_own_gets_into_the_audit_log() {
    let file = AuditFile::new();
    let gate = Gate::open_with("default: deny\n", &file.flags()).await;
    let at = gate.house.admin().unwrap();
    let token = gate.token(&["--identity", "oncall", "--role", "all"]).await;
    let desk = Desk::with_token(at, &token);
    desk.get("/admin/whoami").await.done();
    // Somebody puts it where it does not belong.
    desk.get(&format!("/admin/{token}")).await.problem(404);
    desk.get(&format!("/admin/whoami?token={token}")).await.problem(400);
    for filter in [format!("info,{token}=debug"), "info".to_owned(), format!("{token}=debug")] {
        let body = serde_json::json!({"filter": filter, "for": "1h"}).to_string();
        desk.call("PUT", "/admin/log", Some(&body)).await.done();
        desk.call("DELETE", "/admin/log", Some("{}")).await.done();
    }
    let body = serde_json::json!({"resource": "db", "holder": token, "for": "1h"}).to_string();
    desk.call("POST", "/admin/recall", Some(&body)).await.problem(404);
    // And somebody would write a line of his own.
    let holder = "x\u{202e}\u{2028}{\"outcome\":\"done\",\"identity\":\"root\"}";
    let body = serde_json::json!({"resource": "db", "holder": holder, "for": "1h"}).to_string();
    desk.call("POST", "/admin/recall", Some(&body)).await.problem(404);
    let body = serde_json::json!({"filter": "in\u{1b}[2Jfo\n{}", "for": "1h"}).to_string();
    desk.call("PUT", "/admin/log", Some(&body)).await.problem(400);

    let text = std::fs::read_to_string(&file.path).unwrap();
    let (_, secret) = token.split_once('.').unwrap();
    for secret in [secret, &secret[..40], KEY.trim()] {
        assert!(!text.contains(secret), "the file has a secret in it");
        assert!(!gate.house.has_logged_part(secret), "the log has a secret in it");
    }
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    let lines = lines(&file.path);
    assert_eq!(lines.len(), 1 + 1 + 1 + 3 * (2 + 2) + 2 + 2 + 2, "{lines:#?}");
    assert!(lines.iter().all(|line| line["identity"] == "oncall"), "{lines:#?}");
    gate.house.stop().await;
}

#[tokio::test]
async fn an_act_whose_record_cannot_be_written_is_not_done() {
    let file = AuditFile::new();
    let house = House::open_with(&everything(100.0, 60), &file.flags()).await;
    let desk = Desk::new(house.admin().unwrap());
    desk.get("/admin/whoami").await.done();
    // It is moved away, and something else takes its place before it is opened anew.
    let moved = file.move_away();
    std::fs::create_dir(&file.path).unwrap();
    house.signal(Signal::HUP);
    eventually("it says so", async || {
        house.has_logged_part("the audit log cannot be written: acts are refused")
    })
    .await;
    let refused = desk.call("PUT", "/admin/log", Some(r#"{"filter":"debug","for":"1h"}"#)).await.detail(503);
    assert!(
        refused.contains("no act is done without its record") && refused.contains("is a directory"),
        "{refused}"
    );
    desk.get("/admin/whoami").await.problem(503);
    std::fs::remove_dir(&file.path).unwrap();
    assert_eq!(desk.get("/admin/log").await.done()["filter"], "info", "nothing was changed");
    assert_eq!(lines(&moved).len(), 1);
    assert_eq!(lines(&file.path).len(), 1, "it is there again");
    house.stop().await;
}

#[tokio::test]
async fn the_audit_log_is_opened_anew_when_a_signal_says_so() {
    let file = AuditFile::new();
    let house = House::open_with(&everything(100.0, 60), &file.flags()).await;
    let desk = Desk::new(house.admin().unwrap());
    desk.get("/admin/whoami").await.done();
    let moved = file.move_away();
    house.signal(Signal::HUP);
    eventually("there is another", async || file.path.exists()).await;
    desk.get("/admin/whoami").await.done();
    assert_eq!((lines(&moved).len(), lines(&file.path).len()), (1, 1));
    house.stop().await;
}

#[tokio::test]
async fn an_audit_log_that_cannot_be_one_is_told_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lessor.yaml");
    std::fs::write(&config, everything(100.0, 60)).unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let missing = directory.path().join("nowhere/audit.log");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let config = path(&config);
    let start = ["serve", "--listen", "127.0.0.1:0", "--config", config.as_str()];
    for (log, told) in [
        (path(directory.path()), "is a directory; wanted a regular file"),
        (path(&pipe), "is a named pipe; wanted a regular file"),
        (path(&missing), "No such file or directory"),
    ] {
        let outcome = run(&[&start[..], &["--admin", "127.0.0.1:0", "--audit-log", &log]].concat()).await;
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.err.contains(&format!("--audit-log {log}: {told}")), "{outcome:?}");
    }
    let outcome = run(&[&start[..], &["--audit-log", "x"]].concat()).await;
    assert!(
        outcome.code == Some(1) && outcome.err.contains("wanted --admin or --state-dir besides"),
        "{outcome:?}"
    );
}
