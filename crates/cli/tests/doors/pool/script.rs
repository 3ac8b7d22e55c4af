//! One script, said to the real daemon where it is installed, and to a door.

use std::collections::BTreeMap;
use std::path::Path;

use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::Child;
use tokio::time::timeout;

use super::{Line, RULES, door};
use crate::front::Front;
use crate::house::etcd::said;
use crate::house::{AGES, binary, eventually};

const PROGRAM: &str = "/usr/bin/poolcounterd";
/// Its port, which no flag changes.
const PORT: u16 = 7531;

/// The lines that each connection says: `3! LINE` is answered at once, `3> LINE` later, and then it is `3<`; with `3.` it is gone.
/// `? N` is when N wait.
const SCRIPT: &str = "\
0! ACQ4ME a 1 5 0
0! RELEASE
0! RELEASE
0! ACQ4ANY a 1 5 0
0! RELEASEa
0! ACQ4ME   a    1   5
0! RELEASE a b
0! ACQ4ME a 1 5 0 and more
0! RELEASE
0! ACQ4ME
0! ACQ4ME\x20
0! ACQ4ME a
0! ACQ4ME a 1
0! ACQ4ME a 0 5 0
0! ACQ4ME a 1.5 5 0
0! ACQ4ME a 1 -5 0
0! acq4me a 1 5 0
0! ACQ4YOU a 1 5 0
0! release
0!\x20
0! STATS
0! STATS UPTIME
0! STATS Processed_Count\r
0! ACQ4ME b 1 5 0
0! ACQ4ME c 1 5 0
0! ACQ4ME d 1 5 0
0! ACQ4ME e 1 5 0
0! ACQ4ME f 1 5 0
1! ACQ4ME e 1 5 0
1! ACQ4ME e 1 5 soon
1! ACQ4ME e 1 5 1.5
1! ACQ4ANY e 1 5
1! ACQ4ME e 1 1 5
0! RELEASE
1! ACQ4ME e 1 1 0
0! ACQ4ME e 1 5 1
0! RELEASE
0! RELEASE
0! RELEASE
0! RELEASE
1! RELEASE
0! ACQ4ME g 1 9 9
1> ACQ4ANY g 1 9 600
? 1
2> ACQ4ME g 1 9 600
? 2
3> ACQ4ME g 1 9 600
? 3
1! ACQ4ME h 1 9 0
4! ACQ4ME g 1 4 600
0! RELEASE
1<
2<
1! RELEASE
2.
3<
0> ACQ4ANY g 1 9 600
? 1
1> ACQ4ANY g 1 9 600
? 2
3.
0<
4> ACQ4ME g 1 9 600
? 2
4.
? 1
0! RELEASE
1<
1! RELEASE
0! ACQ4ME n 1 9 0
1! ACQ4ME n 2 9 0
5! ACQ4ME n 1 9 0
5! ACQ4ME n 2 9 0
0! RELEASE
1! RELEASE
0! ACQ4ME t 2 9 0
0! ACQ4ME t 2 9 0
1! ACQ4ME t 2 9 0
0! RELEASE
1! ACQ4ME t 2 9 0
1! RELEASE
1> ACQ4ME u 1 9 600
1<
5> ACQ4ANY u 1 9 600
6> ACQ4ME u 1 9 600
? 2
6! RELEASE
5<
";

/// A daemon, ended when dropped.
struct Daemon {
    address: String,
    _child: Child,
}

// === impl Daemon ===

impl Daemon {
    /// At an address of loopback of its own, as its port is fixed.
    async fn open() -> Daemon {
        let number = std::process::id();
        for turn in 0..5_u32 {
            let [.., high, low] = (number + turn * 7919).to_be_bytes();
            let host = format!("127.77.{high}.{}", low.clamp(1, 254));
            let address = format!("{host}:{PORT}");
            if TcpStream::connect(&address).await.is_ok() {
                continue;
            }
            let mut child = binary(Path::new(PROGRAM), &["-l", &host]).spawn().unwrap();
            let mut has_ended = false;
            eventually("the daemon serves, or has ended", async || {
                has_ended = child.try_wait().unwrap().is_some();
                has_ended || TcpStream::connect(&address).await.is_ok()
            })
            .await;
            if !has_ended {
                return Daemon { address, _child: child };
            }
        }
        panic!("the daemon does not start");
    }
}

/// A text with figures that depend on the time taken out.
fn timeless(text: &str) -> String {
    let digits =
        |part: &str| part.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
    match text.starts_with("uptime: ") || text.contains(" time") {
        true => digits(text),
        false => text.to_owned(),
    }
}

/// The answers to the script, and the figures at its end.
async fn play(address: &str) -> (Vec<String>, Vec<String>) {
    let mut lines: BTreeMap<&str, Line> = BTreeMap::new();
    let mut watch = Line::open(address).await;
    let mut story = Vec::new();
    for step in SCRIPT.lines() {
        let (who, what) = step.split_at(1);
        if who == "?" {
            let wanted = format!("waiting_workers:{what}");
            eventually(step, async || watch.ask("STATS waiting_workers").await == wanted).await;
            continue;
        }
        let line = match lines.entry(who) {
            std::collections::btree_map::Entry::Occupied(line) => line.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => place.insert(Line::open(address).await),
        };
        let (how, text) = what.split_at(1);
        let text = text.strip_prefix(' ').unwrap_or(text);
        match how {
            "!" => {
                let answer = line.ask(text).await;
                story.push(format!("{step} -> {}", timeless(&answer)));
            }
            ">" => line.say(text).await,
            "<" => {
                let answer = line.hear().await;
                story.push(format!("{step} -> {answer}"));
            }
            "." => _ = lines.remove(who),
            _ => panic!("{step:?} is no step"),
        }
    }
    watch.say("STATS FULL").await;
    let mut figures = Vec::new();
    loop {
        match watch.hear().await {
            line if line.is_empty() => break,
            line => figures.push(timeless(&line)),
        }
    }
    (story, figures)
}

/// The bytes of an answer as they are.
async fn raw(address: &str, text: &[u8], wanted: &[u8]) {
    use tokio::io::AsyncWriteExt;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text).await.unwrap();
    let mut heard = vec![0; wanted.len()];
    timeout(AGES, stream.read_exact(&mut heard)).await.expect("an answer in time").unwrap();
    assert_eq!(heard, wanted, "{}", String::from_utf8_lossy(&heard));
}

#[tokio::test]
async fn a_door_answers_as_the_daemon_does() {
    let is_installed = Path::new(PROGRAM).exists();
    if !said(is_installed, PROGRAM, "poolcounter") {
        return;
    }
    let daemon = Daemon::open().await;
    let front = Front::open(RULES, "").await;
    let door = door(&front, &[]).await;
    let (theirs, mut their_figures) = play(&daemon.address).await;
    let (ours, mut our_figures) = play(&door.pool).await;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
    // One that gives up its wait waits for ever in its figures.
    let waiting = |figures: &mut Vec<String>| {
        let at = figures.iter().position(|line| line.starts_with("waiting_workers")).unwrap();
        figures.remove(at)
    };
    assert_eq!(waiting(&mut their_figures), "waiting_workers: 1");
    assert_eq!(waiting(&mut our_figures), "waiting_workers: 0");
    assert_eq!(our_figures, their_figures);

    // A fault without an end; a second line in a packet that is lost; a line that is too long.
    raw(&daemon.address, b"STATS nonsense\n", b"ERROR WRONG_STAT").await;
    raw(&door.pool, b"STATS nonsense\n", b"ERROR WRONG_STAT\n").await;
    let two = b"ACQ4ME x 1 1 0\nRELEASE\n";
    raw(&daemon.address, two, b"LOCKED\n").await;
    raw(&door.pool, two, b"LOCKED\nRELEASED\n").await;
    let long = [&[b'x'; 1_100][..], b"\nRELEASE\n"].concat();
    raw(&daemon.address, &long, b"ERROR BAD_COMMAND\n").await;
    raw(&door.pool, &long, b"ERROR BAD_COMMAND\nNOT_LOCKED\n").await;
    door.stop().await;
    front.server.stop().await;
}
