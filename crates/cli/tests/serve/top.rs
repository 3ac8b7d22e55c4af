//! `lessor top` in a terminal, which tmux makes, and as plain lines.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::house::holder::{Holder, Nature};
use crate::house::{House, eventually, run};

const ORDERS_AND_OTHERS: &str = "resources:
- identifier_glob: orders
  capacity: 500
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
- identifier_glob: \"*\"
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5, learning_mode_duration: 0}
";

/// A terminal of a tmux of its own, ended when dropped.
struct TmuxTerminal {
    socket: PathBuf,
    _directory: TempDir,
}

// === impl TmuxTerminal ===

impl TmuxTerminal {
    /// A terminal in which `lessor` runs, and after it a shell says how that has ended. None where there is no tmux.
    fn open(arguments: &str, (columns, rows): (u16, u16)) -> Option<TmuxTerminal> {
        let directory = tempfile::tempdir().unwrap();
        let terminal = TmuxTerminal { socket: directory.path().join("tmux"), _directory: directory };
        let program = env!("CARGO_BIN_EXE_lessor");
        let shell = format!("'{program}' {arguments}; echo \"it has ended with $?\"; read -r line");
        let size = [columns.to_string(), rows.to_string()];
        let begun = terminal.tmux(&["new-session", "-d", "-x", &size[0], "-y", &size[1], &shell]);
        let Ok(begun) = begun else {
            let _ = writeln!(std::io::stderr(), "SKIPPED: tmux is not installed (Debian: tmux)");
            return None;
        };
        assert!(begun.status.success(), "{begun:?}");
        Some(terminal)
    }

    fn tmux(&self, arguments: &[&str]) -> std::io::Result<Output> {
        tmux(&self.socket, arguments)
    }

    /// The lines that are seen.
    fn seen(&self) -> String {
        String::from_utf8(self.tmux(&["capture-pane", "-p"]).unwrap().stdout).unwrap()
    }

    fn press(&self, keys: &[&str]) {
        let sent = self.tmux(&[&["send-keys"], keys].concat()).unwrap();
        assert!(sent.status.success(), "{sent:?}");
    }

    /// Waits until all of that is seen.
    async fn shows(&self, parts: &[&str]) -> String {
        let mut seen = String::new();
        eventually(&format!("{parts:?}"), async || {
            seen = self.seen();
            parts.iter().all(|part| seen.contains(part))
        })
        .await;
        seen
    }
}

impl Drop for TmuxTerminal {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the terminal shows:\n{}", self.seen());
        }
        // Where it does not run any more there is nothing to end.
        let _ = self.tmux(&["kill-server"]);
    }
}

fn tmux(socket: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new("tmux");
    for name in ["TMUX", "LESSOR_SERVER", "NO_COLOR"] {
        command.env_remove(name);
    }
    command
        .env("LC_ALL", "C.UTF-8")
        .args(["-u", "-f", "/dev/null", "-S"])
        .arg(socket)
        .args(arguments)
        .output()
}

/// Two clients want more of `orders` than there is, and one a part of `mail`.
async fn busy() -> House {
    let house = House::open(ORDERS_AND_OTHERS).await;
    let mut server = house.capacity().await;
    for (client, resource, wants) in
        [("web-1", "orders", 500.0), ("web-2", "orders", 300.0), ("web-1", "mail", 37.0)]
    {
        Holder::new(client, Nature::Echoes, resource, wants).report(&mut server).await.unwrap();
    }
    house
}

#[tokio::test]
async fn top_shows_what_is_full_and_who_has_it_and_goes_on_when_the_server_is_back() {
    let mut house = busy().await;
    // A task that is away is passed over, as by other commands.
    let server = format!("--server 127.0.0.1:1,{} --interval 1s", house.address());
    let Some(terminal) = TmuxTerminal::open(&format!("top {server}"), (100, 20)) else { return };
    let seen = terminal.shows(&["lessor top  node root", "orders ", "mail ", "q leave"]).await;
    let row = |text: &str, name: &str| text.lines().position(|line| line.starts_with(name));
    assert!(row(&seen, "orders") < row(&seen, "mail"), "the fullest is first:\n{seen}");
    let orders = seen.lines().find(|line| line.starts_with("orders")).unwrap();
    assert!(orders.contains("██████████  100%     500    500/s     800"), "{seen}");
    assert!(seen.contains("███░░░░░░") && seen.contains("37%"), "{seen}");

    terminal.press(&["/", "m", "a", "Enter"]);
    terminal.shows(&["1 with \"ma\"", "37 "]).await;
    terminal.press(&["Escape"]);
    terminal.shows(&["orders "]).await;
    terminal.press(&["Enter"]);
    let seen =
        terminal.shows(&["leased 500 of 500/s, wanted 800, 2 clients", "web-1 ", "web-2 ", " waits "]).await;
    assert!(seen.contains("Esc all resources"), "{seen}");
    terminal.press(&["e"]);
    terminal.shows(&["why web-", "of orders", "bound by ", "Esc back"]).await;
    terminal.press(&["t"]);
    terminal.shows(&["the tree", "1 node answered within "]).await;
    terminal.press(&["f"]);
    terminal.shows(&["findings"]).await;
    terminal.press(&["Escape"]);
    terminal.shows(&["leased 500 of 500/s", "web-1 "]).await;

    let date = |text: &str| {
        let heading = text.lines().next().and_then(|line| line.trim_end().strip_suffix(" UTC"));
        heading.map(|line| line[line.len() - 8..].to_owned()).unwrap_or_else(|| panic!("no date in\n{text}"))
    };
    house.crash().await;
    let seen = terminal.shows(&["NO NEWS since ", "s: no answer from 127.0.0.1:1", "web-1 "]).await;
    let gone = date(&seen);
    assert!(seen.contains(&format!("NO NEWS since {gone} UTC")), "{seen}");
    let house = house.start_again().await;
    eventually("it is heard again", async || {
        let seen = terminal.seen();
        !seen.contains("NO NEWS") && date(&seen) != gone && seen.contains("nobody holds or wants it")
    })
    .await;

    terminal.tmux(&["resize-window", "-x", "38", "-y", "10"]).unwrap();
    terminal.shows(&["the terminal has 38×10 cells;"]).await;
    terminal.press(&["q"]);
    let seen = terminal.shows(&["it has ended with 0"]).await;
    assert!(!seen.contains("wanted 40×8"), "the terminal is given back:\n{seen}");
    house.stop().await;
}

#[tokio::test]
async fn top_gives_the_terminal_back_when_it_is_told_to_end() {
    let Some(terminal) = TmuxTerminal::open("top --server 127.0.0.1:1", (80, 12)) else { return };
    terminal.shows(&["asks who leads", "NO NEWS since "]).await;
    let pane = terminal.tmux(&["display-message", "-p", "#{pane_pid}"]).unwrap().stdout;
    let shell = String::from_utf8(pane).unwrap().trim().to_owned();
    let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
    let child = children.split_whitespace().next().unwrap().parse().unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_raw(child).unwrap(), Signal::TERM).unwrap();
    let seen = terminal.shows(&["it has ended with 0"]).await;
    assert!(!seen.contains("NO NEWS"), "{seen}");
}

#[tokio::test]
async fn top_writes_plain_lines_and_says_what_it_cannot_do() {
    let house = busy().await;
    let server = house.address().to_string();
    let once = run(&["top", "--once", "--server", &server]).await;
    assert_eq!((once.code, once.err.as_str()), (Some(0), ""), "{}", once.out);
    let lines: Vec<&str> = once.out.lines().collect();
    assert!(lines[0].starts_with("node root, epoch "), "{}", once.out);
    assert_eq!(lines[1], "2 resources · 1 full · 0 short · 3 clients");
    assert!(lines[3].starts_with("orders ") && lines[4].starts_with("mail "), "{}", once.out);
    assert_eq!(lines.len(), 5, "{}", once.out);
    let batch =
        run(&["top", "--batch", "2", "--interval", "1s", "--resource", "m*", "--server", &server]).await;
    assert_eq!(batch.out.matches("node root").count(), 2, "{}", batch.out);
    assert!(batch.out.contains("1 resource ") && !batch.out.contains("orders"), "{}", batch.out);

    let json = run(&["top", "--batch", "2", "--interval", "1s", "--json", "--server", &server]).await;
    let pages: Vec<serde_json::Value> =
        json.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(pages.len(), 2, "{}", json.out);
    assert_eq!(pages[1]["status"]["resources"].as_array().map(Vec::len), Some(2), "{}", json.out);
    for (view, parts) in [
        ("tree", &["node ", "root", "orders", "1 node answered"][..]),
        ("domains", &["resource ", "no domain is hot"]),
        ("findings", &["orders"]),
        ("history", &["the templates come from a file"]),
    ] {
        let sheet = run(&["top", "--once", "--view", view, "--server", &server]).await;
        assert_eq!((sheet.code, sheet.err.as_str()), (Some(0), ""), "{view}: {}", sheet.out);
        assert!(parts.iter().all(|part| sheet.out.contains(part)), "{view}: {}", sheet.out);
    }
    let tree = run(&["top", "--once", "--json", "--view", "tree", "--server", &server]).await;
    let page: serde_json::Value = serde_json::from_str(&tree.out).unwrap();
    assert_eq!(page["tree"]["node"], "root", "{}", tree.out);

    for (arguments, fault) in [
        (&["top", "--json"][..], "error: --json is of plain lines; wanted --once or --batch N with it"),
        (
            &["top"][..],
            "error: standard output is no terminal; wanted one, or --once or --batch N for plain lines",
        ),
        (&["top", "--once", "--resource", "["], "error: resource \"[\": "),
        (&["top", "--once", "--server", "127.0.0.1:1"], "error: no answer from 127.0.0.1:1"),
        (&["top", "--once", "--server", "127.0.0.1"], "error: server \"127.0.0.1\": wanted HOST:PORT"),
    ] {
        let wrong = run(arguments).await;
        assert_eq!((wrong.code, wrong.out.as_str()), (Some(1), ""), "{arguments:?}: {}", wrong.err);
        assert!(wrong.err.starts_with(fault), "{arguments:?}: {}", wrong.err);
    }
    house.stop().await;
}
