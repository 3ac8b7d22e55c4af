//! The clients of `examples/`, in Go and TypeScript, that share one capacity at real servers, and use it all the time.
//!
//! `tools/languages` builds them. Where it has not been run on these sources the test fails under `CI`, and else says that it
//! was skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod house;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lessor_client::internals::clock;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::house::etcd::Etcd;
use crate::house::{AGES, House, eventually, repository_file, template};

/// The length of leases.
const LEASE: Duration = Duration::from_secs(8);

/// The burst that a template has which says nothing of it.
const BURST: Duration = Duration::from_millis(50);

/// The windows in which permits are counted, in milliseconds.
const WINDOWS: [u64; 5] = [10, 100, 500, 1000, 2000];

/// A moment of the wall clock, in microseconds: the clock by which permits are stamped.
type Stamp = u64;

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap()
}

fn now() -> Stamp {
    microseconds(clock::wall().since_epoch)
}

/// The place of what `tools/languages` has built.
fn built() -> PathBuf {
    repository_file("target/languages")
}

/// Whether the programs are there, and made from the sources that are here.
fn is_built() -> bool {
    let same = |source: &Path, copy: &Path| fs::read(source).ok() == fs::read(copy).ok();
    let proto = repository_file("proto/doorman.proto");
    let mut is_built = same(&proto, &built().join("doorman.proto"));
    for (folder, copies) in
        [("examples/go", "gopath/src/lessor/example"), ("examples/typescript", "typescript")]
    {
        for entry in fs::read_dir(repository_file(folder)).unwrap() {
            let source = entry.unwrap().path();
            let is_source = ["go", "ts", "json"].iter().any(|kind| source.extension() == Some(kind.as_ref()));
            is_built &= !is_source || same(&source, &built().join(copies).join(source.file_name().unwrap()));
        }
    }
    is_built && built().join("lease-go").exists() && built().join("typescript/out/main.js").exists()
}

/// Whether the test can run; if not it is said.
fn can_run() -> bool {
    if is_built() {
        return true;
    }
    assert!(std::env::var_os("CI").is_none(), "tools/languages has not been run");
    // Straight to standard error: what is printed by a test that passes is not shown.
    let line = b"SKIPPED: the clients in Go and TypeScript are built by tools/languages\n";
    std::io::stderr().write_all(line).unwrap();
    false
}

/// The client in Go, and the one in TypeScript.
fn programs() -> [Command; 2] {
    let mut typescript = Command::new("node");
    typescript.arg(built().join("typescript/out/main.js"));
    typescript.arg("--proto").arg(repository_file("proto/doorman.proto"));
    [Command::new(built().join("lease-go")), typescript]
}

/// The lines that a client has printed: permits, and what it was told where there was none.
#[derive(Default)]
struct Said {
    permits: Vec<Stamp>,
    denials: Vec<(Stamp, String)>,
}

/// A client in another language that takes one permit after the other.
struct Taker {
    child: Child,
    said: Arc<Mutex<Said>>,
}

// === impl Taker ===

impl Taker {
    fn start(mut command: Command, arguments: &[&str]) -> Taker {
        command.args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let said = Arc::new(Mutex::new(Said::default()));
        tokio::spawn(listen(child.stdout.take().unwrap(), Arc::clone(&said)));
        Taker { child, said }
    }

    /// One in Go, and one in TypeScript, that want everything and wait for each unit.
    fn both(resource: &str, servers: &str) -> [Taker; 2] {
        Taker::both_with(&["--resource", resource, "--wants", "100", "--servers", servers])
    }

    fn both_with(arguments: &[&str]) -> [Taker; 2] {
        programs().map(|command| Taker::start(command, arguments))
    }

    async fn wants(&mut self, units: u32) {
        let line = format!("wants {units}\n");
        self.child.stdin.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    fn permits(&self) -> Vec<Stamp> {
        self.said.lock().unwrap().permits.clone()
    }

    /// The permits taken since then.
    fn since(&self, begin: Stamp) -> usize {
        self.said.lock().unwrap().permits.iter().filter(|at| **at >= begin).count()
    }

    fn is_denied_since(&self, begin: Stamp) -> bool {
        self.said.lock().unwrap().denials.iter().any(|(at, _)| *at >= begin)
    }

    /// Whether it was denied with these words.
    fn is_told(&self, words: &str) -> bool {
        self.said.lock().unwrap().denials.iter().any(|(_, line)| line.contains(words))
    }

    /// Ends it in order.
    async fn stop(mut self) {
        drop(self.child.stdin.take());
        let status = timeout(AGES, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}");
    }
}

async fn listen(out: ChildStdout, said: Arc<Mutex<Said>>) {
    let mut lines = BufReader::new(out).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let (at, what) = line.split_once(' ').unwrap();
        let (at, mut said) = (at.parse().unwrap(), said.lock().unwrap());
        match what {
            "had" => said.permits.push(at),
            _ => said.denials.push((at, what.to_owned())),
        }
    }
}

/// Fails if in some window more was taken than `capacity` brings in that time and the burst. Each of the `loops` that take
/// permits may have one more in it, which it took before, as the system let it wait before it could look at the clock.
fn check(mut permits: Vec<Stamp>, capacity: f64, loops: usize) {
    permits.sort_unstable();
    for window in WINDOWS.map(Duration::from_millis) {
        let most = capacity * (window + BURST).as_secs_f64() + loops as f64;
        let counts = permits
            .iter()
            .enumerate()
            .map(|(before, begin)| permits.partition_point(|at| *at < begin + microseconds(window)) - before);
        let greatest = counts.max().unwrap();
        println!("{greatest} in {window:?}, at the most {most:.1}");
        assert!(greatest as f64 <= most, "{greatest} in {window:?}, wanted {most:.1} at the most");
    }
}

/// The permits of all of them together.
fn merged(takers: &[Taker]) -> Vec<Stamp> {
    takers.iter().flat_map(Taker::permits).collect()
}

/// Waits until there is a time in which each of both takes as much as its part brings, but for a tenth.
async fn each_has(takers: &[Taker], parts: [f64; 2], time: Duration) {
    let has_had =
        |taker: &Taker, part: f64, begin| taker.since(begin) as f64 >= 0.9 * part * time.as_secs_f64();
    let begin = now();
    eventually(&format!("{parts:?} a second in {time:?}"), async || {
        let from = now() - microseconds(time);
        from >= begin && takers.iter().zip(parts).all(|(taker, part)| has_had(taker, part, from))
    })
    .await;
}

fn configuration(capacity: f64, lease: Duration) -> String {
    let lease = lease.as_secs();
    let algorithm = format!(
        "{{kind: FAIR_SHARE, lease_length: {lease}, refresh_interval: 1, learning_mode_duration: 0}}"
    );
    template("db*", capacity, &algorithm).replace("safe_capacity: 5", "safe_capacity: 0")
}

const A_WHILE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn clients_in_go_and_typescript_share_a_rate_and_stop_when_their_leases_end() {
    if !can_run() {
        return;
    }
    let mut house = House::open(&configuration(100.0, LEASE)).await;
    let mut takers = Taker::both("db", &house.address().to_string());
    each_has(&takers, [50.0, 50.0], A_WHILE).await;

    // What one does not want the other has, until it is wanted again.
    for (taker, units, parts) in [(0, 20, [20.0, 80.0]), (1, 30, [70.0, 30.0])] {
        takers[taker].wants(units).await;
        each_has(&takers, parts, A_WHILE).await;
        takers[taker].wants(100).await;
        each_has(&takers, [50.0, 50.0], A_WHILE).await;
    }

    // Nobody renews their leases: they go on to the end of them, and no further.
    house.crash().await;
    let end = now() + microseconds(LEASE);
    eventually("both are denied", async || takers.iter().all(|taker| taker.is_denied_since(end))).await;
    for taker in &takers {
        let last = taker.permits().into_iter().max().unwrap();
        // One may have been taken before that, by one that the system let wait before it could look at the clock.
        assert!(taker.since(end) <= 1, "{} permits after the last lease", taker.since(end));
        // But for the time since the last report.
        assert!(last > end - microseconds(LEASE / 2), "nothing in the last {} us", end - last);
    }
    let house = house.start_again().await;
    each_has(&takers, [50.0, 50.0], A_WHILE).await;
    check(merged(&takers), 100.0, 2);

    for taker in takers {
        taker.stop().await;
    }
    assert!(
        house.resource("db").await.is_none_or(|db| db["holders"] == serde_json::json!([])),
        "all is given back"
    );
    house.stop().await;
}

#[tokio::test]
async fn each_client_in_go_and_typescript_saves_up_no_more_than_the_burst() {
    if !can_run() {
        return;
    }
    let house = House::open(&configuration(100.0, LEASE)).await;
    // They want no more than their half, so neither has ever more than that.
    let servers = house.address().to_string();
    let shared = ["--resource", "db", "--wants", "50", "--servers", &servers];
    let pickers = Taker::both_with(&[&shared[..], &["--pause", "250"]].concat());
    // What is there after a pause, of two units and a half.
    let part = 2.0 / 0.25;
    each_has(&pickers, [part, part], A_WHILE).await;
    for picker in pickers {
        check(picker.permits(), 50.0, 1);
        picker.stop().await;
    }
    let crowds = Taker::both_with(&[&shared[..], &["--workers", "8"]].concat());
    each_has(&crowds, [50.0, 50.0], A_WHILE).await;
    for crowd in crowds {
        check(crowd.permits(), 50.0, 8);
        crowd.stop().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn clients_in_go_and_typescript_have_units_of_a_small_lease_when_they_are_due() {
    if !can_run() {
        return;
    }
    let house = House::open(&configuration(2.0, LEASE)).await;
    let takers = Taker::both("db", &house.address().to_string());
    each_has(&takers, [1.0, 1.0], Duration::from_secs(6)).await;
    check(merged(&takers), 2.0, 2);
    for taker in takers {
        taker.stop().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn clients_in_go_and_typescript_that_are_absent_when_a_unit_is_due_lose_it() {
    if !can_run() {
        return;
    }
    let house = House::open(&configuration(2.0, LEASE)).await;
    let servers = house.address().to_string();
    // At each of two resources one comes now and then, and one waits: in Go and TypeScript, and the other way round.
    let (mut pickers, mut waiters) = (Vec::new(), Vec::new());
    let [go, typescript] = programs();
    let [other_go, other_typescript] = programs();
    for (resource, picks, waits) in [("db-1", go, typescript), ("db-2", other_typescript, other_go)] {
        let arguments = ["--resource", resource, "--wants", "100", "--servers", &servers];
        pickers.push(Taker::start(picks, &[&arguments[..], &["--pause", "730"]].concat()));
        waiters.push(Taker::start(waits, &arguments));
    }
    eventually("those who wait have leases", async || waiters.iter().all(|waiter| waiter.since(0) > 0)).await;
    let begin = now();
    eventually("those who wait have ten", async || waiters.iter().all(|waiter| waiter.since(begin) >= 10))
        .await;
    // They come thirteen times, to a second that is a unit's for a twentieth. One that saved it up would have six.
    for picker in &pickers {
        println!("{} when it comes now and then", picker.since(begin));
        assert!(picker.since(begin) <= 3, "{} were saved up", picker.since(begin));
    }
    for taker in pickers.into_iter().chain(waiters) {
        taker.stop().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn clients_in_go_and_typescript_say_in_the_words_of_the_server_why_they_have_nothing() {
    if !can_run() {
        return;
    }
    let house = House::open(&configuration(100.0, LEASE)).await;
    let takers = Taker::both("nobody-knows-this", &house.address().to_string());
    for taker in &takers {
        eventually("it is told why", async || taker.is_told("no template matches")).await;
    }
    for taker in takers {
        assert!(taker.permits().is_empty());
        taker.stop().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn clients_in_go_and_typescript_keep_their_leases_when_the_leader_dies() {
    if !can_run() {
        return;
    }
    let Some(etcd) = Etcd::started().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    fs::write(&key, "7f".repeat(32)).unwrap();
    let flags = ["--node", "root", "--etcd", &etcd.url(), "--token-key", key.to_str().unwrap()];
    let times = ["--ttl", "2s", "--authority", "1s", "--keep-alive", "300ms"];
    // Longer than a change of leaders takes on any machine.
    let config = configuration(100.0, LEASE * 3);
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.push(House::open_with(&config, &[&flags[..], &times].concat()).await);
    }
    let servers = tasks.iter().map(|task| task.address().to_string()).collect::<Vec<_>>().join(",");
    let takers = Taker::both("db", &servers);
    each_has(&takers, [50.0, 50.0], A_WHILE).await;

    let mut leader = 0;
    eventually("one leads", async || {
        for (number, task) in tasks.iter().enumerate() {
            if task.resource("db").await.is_some() {
                leader = number;
                return true;
            }
        }
        false
    })
    .await;
    tasks[leader].crash().await;
    let died = now();
    let other = tasks.swap_remove(1 - leader);
    eventually("another one grants", async || {
        other
            .resource("db")
            .await
            .is_some_and(|db| db["holders"].as_array().is_some_and(|all| all.len() == 2))
    })
    .await;
    each_has(&takers, [50.0, 50.0], A_WHILE).await;
    assert!(
        (other.metric("lessor_claims_honoured_total").await - 2.0).abs() < 0.5,
        "both have shown their leases"
    );
    for taker in &takers {
        assert!(!taker.is_denied_since(died), "nobody is without a permit for a second");
    }
    check(merged(&takers), 100.0, 2);
    for taker in takers {
        taker.stop().await;
    }
    other.stop().await;
}
