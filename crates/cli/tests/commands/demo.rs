//! `lessor demo`: what it tells while it goes on, and how it ends.

use std::io::Write;

use super::*;

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
    // Its feast lasts for seven seconds from the first leases on, which may be late where much else is done.
    let Outcome { code, out, err } = run(&["demo", "--for", "13s", "--plain"]).await;
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(err, "note: --for 13s leaves out the end of the root, which takes 29 s\n");
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
