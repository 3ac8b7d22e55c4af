//! Tests of `deploy/`: every command line in it is one that the binary takes, and every file that it names is there.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use lessor_server::shell::source;
use serde::Deserialize;

use super::Serve;
use super::templates::ConfigPlace;
use crate::Lessor;

/// The longest time for which a task that resigns waits for etcd.
const RESIGNATION: Duration = Duration::from_secs(3);
/// Where configurations are installed.
const INSTALLED: &str = "/etc/lessor";

pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub(crate) fn text(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A command line of `lessor`, as the binary reads it.
pub(crate) fn parse(words: &[String]) -> crate::Command {
    match Lessor::try_parse_from([&["lessor".to_owned()], words].concat()) {
        Ok(parsed) => parsed.command,
        Err(error) => panic!("{words:?}: {error}"),
    }
}

/// A task, whose configuration is there and whose end is waited for.
fn task(words: &[String], waited_for: Duration) -> Serve {
    let crate::Command::Serve(serve) = parse(words) else { panic!("{words:?} is no server") };
    let ConfigPlace::File(config) = &serve.config else { panic!("{words:?} has no file") };
    let name = config.strip_prefix(INSTALLED).expect("it is installed");
    let repository = source::load(repository("configs").join(name)).expect("it is there");
    assert!(!repository.templates().is_empty());
    assert!(waited_for > serve.drain + RESIGNATION, "{words:?} is killed after {waited_for:?}");
    assert!(serve.tasks.token_key.is_some() && serve.tasks.election().unwrap().is_some());
    *serve
}

// === docker compose ===

#[derive(Debug, Deserialize)]
struct Compose {
    services: BTreeMap<String, Service>,
    secrets: BTreeMap<String, Secret>,
}

#[derive(Debug, Deserialize)]
struct Service {
    command: Vec<String>,
    #[serde(default)]
    build: Option<Build>,
    #[serde(default)]
    volumes: Vec<String>,
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    ports: Vec<String>,
    #[serde(default)]
    depends_on: Vec<String>,
    #[serde(default)]
    stop_grace_period: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Build {
    context: PathBuf,
    dockerfile: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Secret {
    file: String,
}

/// The host in `host:port` and in `http://host:port`.
fn host(address: &str) -> &str {
    address.trim_start_matches("http://").split(':').next().unwrap_or(address)
}

#[test]
fn the_compose_file_is_a_tree_that_hangs_together() {
    let compose: Compose = serde_saphyr::from_str(&text("deploy/docker-compose.yml")).unwrap();
    let mut nodes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut published = Vec::new();
    for (name, service) in &compose.services {
        let Some(build) = &service.build else { continue };
        let context = repository("deploy").join(&build.context);
        assert!(context.join(&build.dockerfile).is_file(), "{name}: {build:?}");
        let waited_for = humantime::parse_duration(service.stop_grace_period.as_ref().unwrap()).unwrap();
        let serve = task(&service.command, waited_for);
        assert_eq!(serve.advertise.as_deref(), Some(format!("{name}:15000").as_str()));
        assert_eq!(serve.listen.to_string(), "0.0.0.0:15000");
        assert_eq!(service.volumes, [format!("../configs:{INSTALLED}:ro")]);
        for other in
            serve.parent.iter().map(|parent| host(parent)).chain(serve.tasks.etcd.iter().map(|url| host(url)))
        {
            assert!(compose.services.contains_key(other), "{name} asks {other}, which is not there");
        }
        assert!(service.depends_on.contains(&"etcd".to_owned()), "{name}");
        let secret = serve.tasks.token_key.as_ref().unwrap().strip_prefix("/run/secrets").unwrap();
        assert_eq!(service.secrets, [secret.to_str().unwrap()]);
        assert_eq!(compose.secrets[&service.secrets[0]].file, format!("./{}.key", serve.node), "{name}");
        published.extend(service.ports.clone());
        nodes.entry(serve.node.clone()).or_default().extend(serve.parent.iter().map(ToString::to_string));
    }
    let parents = |node: &str| nodes[node].len();
    // Two leaves, whose two tasks each know the three of the root.
    assert_eq!(nodes.keys().collect::<Vec<_>>(), ["paris", "root", "tokyo"]);
    assert_eq!([parents("root"), parents("paris"), parents("tokyo")], [0, 6, 6]);
    let count = published.len();
    published.sort();
    published.dedup();
    assert_eq!((published.len(), count), (7, 7), "each task has a port of its own");
    assert!(published.iter().all(|port| port.starts_with("127.0.0.1:")), "{published:?}");
}

#[test]
fn commands_in_the_comments_of_the_compose_file_are_taken() {
    let text = text("deploy/docker-compose.yml").replace("\\\n#", "");
    let shown = text.lines().filter_map(|line| Some(line.strip_prefix('#')?.split_once("lessor get ")?.1));
    let shown: Vec<&str> = shown.collect();
    assert_eq!(shown.len(), 1, "{shown:?}");
    let words = ["get"].into_iter().chain(shown[0].split_whitespace()).map(str::to_owned);
    assert!(matches!(parse(&words.collect::<Vec<_>>()), crate::Command::Get(_)));
}

#[test]
fn the_image_is_built_with_the_rust_that_the_code_wants() {
    let manifest = text("Cargo.toml");
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let version = version.unwrap().trim_matches('"');
    assert!(text("deploy/Dockerfile").contains(&format!("FROM rust:{version}-")), "{version}");
}

// === systemd ===

const UNITS: [&str; 2] = ["lessor-root.service", "lessor-leaf.service"];
/// A server that is the only one of its node.
const ALONE: &str = "lessor.service";

pub(crate) fn unit(name: &str) -> String {
    text(&format!("deploy/systemd/{name}")).replace("\\\n", "")
}

/// The value of a setting of a unit.
pub(crate) fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    let found = unit.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    found.unwrap_or_else(|| panic!("no {name} in\n{unit}"))
}

/// The variables of the environment: set in the unit, or shown in its comments.
fn environment(unit: &str) -> BTreeMap<&str, &str> {
    let set = unit.lines().filter_map(|line| line.strip_prefix("Environment="));
    let shown = unit.lines().filter_map(|line| line.strip_prefix("#   "));
    let assigned = set.chain(shown).filter_map(|line| line.split_once('='));
    assigned.filter(|(name, _)| name.starts_with("LESSOR_")).collect()
}

/// The words of the command, with what systemd puts in, and with what is left of the environment as flags.
pub(crate) fn words(unit: &str) -> Vec<String> {
    let mut line = setting(unit, "ExecStart").replace("%H", "here.example");
    line = line.replace("${CREDENTIALS_DIRECTORY}", "/run/credentials");
    let mut flags = Vec::new();
    for (name, value) in environment(unit) {
        let used = format!("${{{name}}}");
        if line.contains(&used) {
            line = line.replace(&used, value);
        } else {
            let flag = name.trim_start_matches("LESSOR_").to_lowercase().replace('_', "-");
            flags.extend([format!("--{flag}"), value.to_owned()]);
        }
    }
    assert!(!line.contains(['$', '%']), "{line}");
    line.split_whitespace().map(str::to_owned).chain(flags).collect()
}

#[test]
fn the_units_start_tasks_that_are_given_time_to_end() {
    for name in UNITS {
        let unit = unit(name);
        let words = words(&unit);
        assert_eq!(words[0], "/usr/local/bin/lessor");
        let waited_for = humantime::parse_duration(setting(&unit, "TimeoutStopSec")).unwrap();
        let serve = task(&words[1..], waited_for);
        assert_eq!(serve.parent.is_empty(), name == "lessor-root.service", "{name}");
        assert_eq!(setting(&unit, "ExecReload"), "/bin/kill -HUP $MAINPID");
        let (credential, file) = setting(&unit, "LoadCredential").split_once(':').unwrap();
        assert!(serve.tasks.token_key.unwrap().ends_with(credential));
        assert!(unit.contains(&format!(".key {file}")), "{name} does not say where {file} comes from");
        let connections: usize = setting(&unit, "LimitNOFILE").parse().unwrap();
        assert!(connections > serve.limits.max_connections + 1_000);
    }
}

#[test]
fn the_unit_of_a_server_that_is_alone_has_a_state_directory() {
    let unit = unit(ALONE);
    let crate::Command::Serve(serve) = parse(&words(&unit)[1..]) else { panic!("{unit}") };
    let directory = Path::new("/var/lib").join(setting(&unit, "StateDirectory"));
    assert_eq!(serve.state_dir.as_deref(), Some(&*directory));
    assert_eq!((serve.node.as_str(), serve.tasks.election().unwrap().is_none()), ("root", true));
    let waited_for = humantime::parse_duration(setting(&unit, "TimeoutStopSec")).unwrap();
    assert!(waited_for > serve.drain);
    // The start of the machine is read there.
    assert!(!unit.contains("\nProcSubset="), "{unit}");
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let directory = tempfile::tempdir().unwrap();
    let here = std::env::current_exe().unwrap();
    let names = UNITS.into_iter().chain([ALONE, "lessor-agent.service", "lessor-agent.socket"]);
    let paths: Vec<PathBuf> = names
        .map(|name| {
            let path = directory.path().join(name);
            let text = text(&format!("deploy/systemd/{name}"));
            std::fs::write(&path, text.replace("/usr/local/bin/lessor", here.to_str().unwrap())).unwrap();
            path
        })
        .collect();
    let Ok(outcome) = Command::new("systemd-analyze").arg("verify").args(&paths).output() else {
        // Past the harness, which would show it only if the test failed.
        let _ = writeln!(std::io::stderr(), "SKIPPED: systemd-analyze is not installed (Debian: systemd)");
        return;
    };
    let complaints = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success() && complaints.is_empty(), "{complaints}");
}
