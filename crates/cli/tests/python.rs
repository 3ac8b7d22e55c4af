//! A client in another language, written against Doorman's service as it was and on another gRPC: nothing in it is ours.
//!
//! It takes `/usr/bin/python3` with grpcio and protobuf, and protoc (on Debian: python3-grpcio, python3-protobuf,
//! protobuf-compiler). Where those are missing the test fails if it runs under `CI`, and else says that it was skipped.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::float_cmp, reason = "what is given comes out of the books, which are exact")]

mod house;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use tokio::time::timeout;

use crate::house::{AGES, House, Outcome, repository_file};

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

async fn check(memory: &str) {
    if let Some(missing) = missing().await {
        assert!(std::env::var_os("CI").is_none(), "{missing} is missing");
        // Straight to standard error: what is printed by a test that passes is not shown.
        let line = format!("SKIPPED: the Python client needs {missing}\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    }
    let messages = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/python");
    let sources = sources.to_str().unwrap();
    let out = format!("--python_out={}", messages.path().display());
    let compiled = try_run("protoc", &["-I", sources, &out, "doorman.proto"]).await.unwrap();
    assert_eq!(compiled.code, Some(0), "{}", compiled.err);

    let house = House::open(&configuration()).await;
    let script = format!("{sources}/client.py");
    let seed = std::env::var("LESSOR_TEST_SEED").unwrap_or_else(|_| rand::random::<u32>().to_string());
    println!("LESSOR_TEST_SEED={seed}");
    let arguments = [&script, messages.path().to_str().unwrap(), &house.address().to_string(), memory, &seed];
    let outcome = try_run(PYTHON, &arguments).await.unwrap();
    assert_eq!(outcome.code, Some(0), "{}\n{}", outcome.out, outcome.err);
    // It has done what it is for: a client that did nothing would have said nothing.
    assert!(outcome.out.ends_with("400 steps, shares exact\n"), "{}\n{}", outcome.out, outcome.err);
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
