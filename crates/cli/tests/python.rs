//! Clients and servers in another language, written against Doorman's service as it was and on another gRPC: nothing in
//! them is ours.
//!
//! It takes `/usr/bin/python3` with grpcio and protobuf, and protoc (on Debian: python3-grpcio, python3-protobuf,
//! protobuf-compiler). Where those are missing the test fails if it runs under `CI`, and else says that it was skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

mod house;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use lessor_client::{Client, Rate};
use lessor_proto::Amount;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::house::etcd::Etcd;
use crate::house::{AGES, House, Outcome, repository_file, template};

const PYTHON: &str = "/usr/bin/python3";

/// Runs a program to its end; nothing if there is no such program.
async fn try_run(program: &str, arguments: &[&str]) -> Option<Outcome> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
    let output =
        timeout(AGES * 2, command.output()).await.unwrap_or_else(|_| panic!("{program} does not end"));
    Some(Outcome::of(&output.ok()?))
}

/// Whether all that the client needs is installed; what is missing if not.
async fn missing() -> Option<&'static str> {
    let import = try_run(PYTHON, &["-c", "import grpc, google.protobuf"]).await;
    if import.is_none_or(|outcome| outcome.code != Some(0)) {
        return Some("/usr/bin/python3 with grpcio and protobuf");
    }
    let protoc = try_run("protoc", &["--version"]).await;
    protoc.is_none_or(|outcome| outcome.code != Some(0)).then_some("protoc")
}

/// The configuration as Doorman's servers read it, with nothing to learn, so that clients are served from the start.
fn configuration() -> String {
    let text = std::fs::read_to_string(repository_file("configs/doorman.yaml")).unwrap();
    let algorithm = "      kind: FAIR_SHARE\n";
    assert_eq!(text.matches(algorithm).count(), 1, "doorman.yaml has changed");
    text.replace(algorithm, &format!("{algorithm}      learning_mode_duration: 0\n"))
}

/// The compiled messages, and the directory of the scripts; nothing where it cannot run.
async fn prepare() -> Option<(TempDir, PathBuf)> {
    if let Some(missing) = missing().await {
        assert!(std::env::var_os("CI").is_none(), "{missing} is missing");
        // Straight to standard error: what is printed by a test that passes is not shown.
        let line = format!("SKIPPED: Doorman in Python needs {missing}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    }
    let messages = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let out = format!("--python_out={}", messages.path().display());
    let compiled =
        try_run("protoc", &["-I", sources.to_str().unwrap(), &out, "doorman.proto"]).await.unwrap();
    assert_eq!(compiled.code, Some(0), "{}", compiled.err);
    Some((messages, sources))
}

/// Runs a script to its good end, which it says with `end`.
async fn run(script: &Path, arguments: &[&str], end: &str) {
    let arguments: Vec<&str> =
        std::iter::once(script.to_str().unwrap()).chain(arguments.iter().copied()).collect();
    let outcome = try_run(PYTHON, &arguments).await.unwrap();
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.out, outcome.err);
    // It has done what it is for: a script that did nothing would have said nothing.
    assert!(outcome.out.ends_with(end), "{}\n{}", outcome.out, outcome.err);
}

async fn check(memory: &str) {
    let Some((messages, sources)) = prepare().await else { return };
    let house = House::open(&configuration()).await;
    let seed = std::env::var("LESSOR_TEST_SEED").unwrap_or_else(|_| rand::random::<u32>().to_string());
    println!("LESSOR_TEST_SEED={seed}");
    let arguments = [messages.path().to_str().unwrap(), &house.address().to_string(), memory, &seed];
    run(&sources.join("client.py"), &arguments, "400 steps, shares exact\n").await;
    assert_eq!(house.metric("lessor_overcommitment{resource=\"fair-1\"}").await, 0.0);
    house.stop().await;
}

#[tokio::test]
async fn a_client_that_keeps_unknown_fields_never_holds_too_much_and_gets_its_exact_share() {
    check("echoes").await;
}

#[tokio::test]
async fn a_client_that_forgets_unknown_fields_never_holds_too_much_and_gets_its_exact_share() {
    check("forgets").await;
}

#[tokio::test]
async fn servers_of_doormans_get_as_much_as_their_clients_would() {
    let Some((messages, sources)) = prepare().await else { return };
    let house = House::open(&configuration()).await;
    let arguments = [messages.path().to_str().unwrap(), &house.address().to_string()];
    run(&sources.join("children.py"), &arguments, "shares exact\n").await;
    house.stop().await;
}

/// The length of the parent's leases.
const LEASE: Duration = Duration::from_secs(6);

/// A server of Doorman's, and what it has been asked.
struct Parent {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl Parent {
    async fn start(script: &Path, messages: &Path) -> Parent {
        let lease = LEASE.as_secs().to_string();
        let child = Command::new(PYTHON)
            .args([script, messages])
            .args(["120", &lease])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = child.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = timeout(AGES, lines.next_line()).await.unwrap().unwrap().unwrap();
        Parent { child, lines, address: format!("127.0.0.1:{port}") }
    }

    /// Reads the requests that it has been asked, from the first one on to the one that is as wanted.
    async fn asked(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) {
        let mut seen = Vec::new();
        let waiting = timeout(AGES, async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                seen.push(serde_json::from_str(&line).unwrap());
                if seen.last().is_some_and(&wanted) {
                    return;
                }
            }
        });
        assert!(waiting.await.is_ok(), "never {what}: {seen:#?}");
    }
}

/// Waits until a client may use so much.
async fn until_it_has(resource: &mut Rate, units: u64) {
    let waiting = timeout(AGES, async {
        while resource.lease().capacity != Some(Amount::from_units(units)) {
            resource.changed().await.unwrap();
        }
    });
    assert!(waiting.await.is_ok(), "{units} wanted, found {:?}", resource.lease());
}

#[tokio::test]
async fn a_leaf_leases_out_what_a_server_of_doormans_leases_to_it_and_for_no_longer() {
    let Some((messages, sources)) = prepare().await else { return };
    let mut parent = Parent::start(&sources.join("parent.py"), messages.path()).await;
    let algorithm = "{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 1}";
    let template = template("db", 999.0, algorithm).replace("safe_capacity: 5", "safe_capacity: 0");
    let leaf = House::open_with(&template, &["--node", "leaf", "--parent", &parent.address]).await;

    let client = Client::builder(leaf.address().to_string()).build().unwrap();
    let other = Client::builder(leaf.address().to_string()).build().unwrap();
    let mut hungry = client.rate("db").wants(100.0).open().unwrap();
    until_it_has(&mut hungry, 100).await;
    let mut modest = other.rate("db").wants(40.0).open().unwrap();
    until_it_has(&mut modest, 40).await;
    until_it_has(&mut hungry, 80).await;
    let renewed = |asked: &Value| asked["server"] == "leaf" && asked["has"] == 120.0;
    let both = |asked: &Value| asked["wants"] == json!([[0, 2, 140.0]]);
    parent.asked("renewed for both clients", |asked| renewed(asked) && both(asked)).await;
    assert!(
        hungry.lease().remaining() <= Some(LEASE),
        "{:?} under a lease of {LEASE:?}",
        hungry.lease().remaining()
    );

    // Nobody renews the lease of the leaf: what it granted under it ends with it.
    parent.child.kill().await.unwrap();
    until_it_has(&mut hungry, 0).await;
    until_it_has(&mut modest, 0).await;
    drop((hungry, modest));
    for client in [client, other] {
        timeout(AGES, client.close()).await.unwrap();
    }
    leaf.stop().await;
}

#[tokio::test]
async fn clients_that_echo_their_leases_keep_them_when_the_leader_dies() {
    fail_over(&DOORMANS, End::Crash).await;
}

#[tokio::test]
async fn clients_that_echo_their_leases_keep_them_when_the_leader_resigns() {
    fail_over(&DOORMANS, End::Resignation).await;
}

#[tokio::test]
async fn clients_of_the_python_file_keep_their_leases_when_the_leader_dies() {
    fail_over(&OF_THE_FILE, End::Crash).await;
}

#[tokio::test]
async fn clients_of_the_python_file_keep_their_leases_when_the_leader_resigns() {
    fail_over(&OF_THE_FILE, End::Resignation).await;
}

/// The file that a client in Python is.
fn wire() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/lessor"))
}

#[tokio::test]
async fn clients_of_the_python_file_never_hold_too_much_and_get_their_exact_shares() {
    let Some((_, sources)) = prepare().await else { return };
    let algorithm = "{kind: FAIR_SHARE, lease_length: 20, refresh_interval: 1, learning_mode_duration: 0}";
    let pool =
        template("pool", 6.0, algorithm).replace("safe_capacity: 5", "kind: gauge\n  safe_capacity: 0");
    let pool = pool.strip_prefix("resources:\n").unwrap();
    let rates = template("rate*", 100.0, algorithm).replace("safe_capacity: 5", "safe_capacity: 0");
    let house = House::open(&format!("{rates}{pool}")).await;
    let arguments = [wire().to_str().unwrap(), "shares", &house.address().to_string()];
    run(&sources.join("leases.py"), &arguments, "5 clients, shares exact\n").await;
    for resource in ["rate", "pool"] {
        assert_eq!(house.metric(&format!("lessor_overcommitment{{resource=\"{resource}\"}}")).await, 0.0);
    }
    house.stop().await;
}

/// Clients that poll while the leader goes.
struct Pollers {
    script: &'static str,
    resource: &'static str,
    capacity: f64,
    /// The last line that they print.
    kept: &'static str,
}

const DOORMANS: Pollers =
    Pollers { script: "fail_over.py", resource: "shared", capacity: 300.0, kept: "5 kept what they had" };
const OF_THE_FILE: Pollers =
    Pollers { script: "leases.py", resource: "rate", capacity: 100.0, kept: "5 clients kept their leases" };

/// The way in which a leader ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// A task that may succeed it knows its clock, which is asked for as soon as somebody is known to lead.
    Crash,
    /// It leaves behind what its clock showed.
    Resignation,
}

/// Of two tasks of one node the one that leads ends, while clients poll in another language.
async fn fail_over(pollers: &Pollers, end: End) {
    let Some((messages, sources)) = prepare().await else { return };
    let Some(etcd) = Etcd::started().await else { return };
    let key = messages.path().join("key");
    std::fs::write(&key, "7f".repeat(32)).unwrap();
    let (url, key) = (etcd.url(), key.to_str().unwrap().to_owned());
    let flags = ["--node", "root", "--etcd", &url, "--token-key", &key];
    let times = ["--ttl", "4s", "--authority", "1500ms", "--keep-alive", "300ms"];
    let algorithm = "{kind: FAIR_SHARE, lease_length: 30, refresh_interval: 2, learning_mode_duration: 0}";
    let config = template(pollers.resource, pollers.capacity, algorithm);
    let mut tasks = Vec::new();
    for _ in 0..2 {
        tasks.push(House::open_with(&config, &[&flags[..], &times].concat()).await);
    }
    let addresses: Vec<String> = tasks.iter().map(|task| task.address().to_string()).collect();

    let mut command = Command::new(PYTHON);
    command.arg(sources.join(pollers.script));
    match pollers.script {
        "fail_over.py" => command.arg(messages.path()),
        _ => command.arg(wire()).arg("fail_over"),
    };
    let mut child = command
        .arg(addresses.join(","))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let said = async |lines: &mut Lines<BufReader<ChildStdout>>| {
        timeout(AGES * 2, lines.next_line()).await.unwrap().unwrap().expect("it says why on standard error")
    };
    let first = said(&mut lines).await;
    let leader = addresses.iter().position(|address| first == format!("led by {address}"));
    let leader = leader.unwrap_or_else(|| panic!("{first}, and not one of {addresses:?}"));
    match end {
        End::Crash => tasks[leader].crash().await,
        End::Resignation => {
            tasks[leader].signal(Signal::TERM);
            assert!(tasks[leader].ended().await.success());
        }
    }
    assert_eq!(said(&mut lines).await, pollers.kept);
    assert!(timeout(AGES, child.wait()).await.unwrap().unwrap().success());

    let other = &tasks[1 - leader];
    assert_eq!(other.metric("lessor_claims_honoured_total").await, 5.0);
    let overcommitment = format!("lessor_overcommitment{{resource=\"{}\"}}", pollers.resource);
    assert_eq!(other.metric(&overcommitment).await, 0.0);
    tasks.swap_remove(1 - leader).stop().await;
}

/// All there is of "db", for eight seconds at a time.
fn short(learning: &str) -> String {
    let algorithm = format!("{{kind: FAIR_SHARE, lease_length: 8, refresh_interval: 1{learning}}}");
    template("*", 100.0, &algorithm)
}

const NOTHING_BEFORE: &str = ", learning_mode_duration: 0";

/// Clients in another language that poll at these servers.
async fn movers(at: &[&House], nature: &str, messages: &Path, sources: &Path) -> Child {
    let addresses: Vec<String> = at.iter().map(|house| house.address().to_string()).collect();
    let mut command = Command::new(PYTHON);
    command.arg(sources.join("moves.py")).arg(messages).args([&addresses.join(","), "100", nature]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap()
}

/// A server is killed under clients that poll, and another one with other flags and another configuration begins there.
async fn is_moved(mut house: House, nature: &str, to: (&str, &[&str]), (messages, sources): (&Path, &Path)) {
    let mut child = movers(&[&house], nature, messages, sources).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = timeout(AGES * 2, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(ready.as_deref(), Some("ready"), "{to:?} {nature}");
    house.crash().await;
    house.configure(to.0);
    let house = house.start_again_with(to.1).await;
    child.stdin.take().unwrap().write_all(b"back\n").await.unwrap();
    let last = timeout(AGES * 3, lines.next_line()).await.unwrap().unwrap();
    assert_eq!(last.as_deref(), Some("3 share it"), "{to:?} {nature}");
    assert!(timeout(AGES, child.wait()).await.unwrap().unwrap().success());
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    house.stop().await;
}

/// From a server alone to one that remembers, to etcd, and back, and below another one.
async fn moves(nature: &str) {
    let Some((messages, sources)) = prepare().await else { return };
    let Some(etcd) = Etcd::started().await else { return };
    let (url, places) = (etcd.url(), (messages.path(), &*sources));
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [first, second] = directories.each_ref().map(|directory| directory.path().to_str().unwrap());
    let election = ["--etcd", &url, "--ttl", "2s", "--authority", "1s", "--keep-alive", "200ms"];
    let (before, learns) = (short(NOTHING_BEFORE), short(""));
    let shorter = learns.replace("lease_length: 8", "lease_length: 4");
    let root = House::open(&before).await;
    let parent = root.address().to_string();
    let below = ["--node", "leaf", "--parent", &parent];
    let (first, second) = (["--state-dir", first], ["--state-dir", second]);
    let move_to = async |from: &[&str], config: &str, to: &[&str]| {
        is_moved(House::open_with(&before, from).await, nature, (config, to), places).await;
    };
    tokio::join!(
        move_to(&[], &learns, &[]),
        move_to(&[], &shorter, &[]),
        move_to(&[], &learns, &first),
        move_to(&second, &before, &second),
        move_to(&[], &learns, &election),
        move_to(&below, &before, &below),
    );
    root.stop().await;
}

#[tokio::test]
async fn clients_that_echo_are_safe_and_served_wherever_their_server_remembers() {
    moves("echoes").await;
}

#[tokio::test]
async fn clients_that_forget_are_safe_and_served_wherever_their_server_remembers() {
    moves("forgets").await;
}

#[tokio::test]
async fn clients_below_two_leaves_of_one_name_share_what_there_is() {
    let Some((messages, sources)) = prepare().await else { return };
    let root = House::open(&short(NOTHING_BEFORE)).await;
    let parent = root.address().to_string();
    let flags = ["--node", "leaf", "--parent", &parent];
    let one = House::open_with(&short(NOTHING_BEFORE), &flags).await;
    let other = House::open_with(&short(NOTHING_BEFORE), &flags).await;
    let child = movers(&[&one, &other], "echoes", messages.path(), &sources).await;
    let output = timeout(AGES * 3, child.wait_with_output()).await.unwrap().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2 share it\n");
    assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    for house in [one, other, root] {
        house.stop().await;
    }
}
