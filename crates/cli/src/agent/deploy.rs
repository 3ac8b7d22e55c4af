//! Tests of the agent in `deploy/`: its command lines are ones that the binary takes, its sockets are those that proxies ask at, and
//! it is given time to end.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::Agent;
use crate::serve::deploy::{parse, repository, setting, text, unit, words};

const SERVICE: &str = "lessor-agent.service";
/// The time in which a client gives its leases back.
const RELEASE: Duration = Duration::from_secs(2);

/// An agent, whose rules are those of `configs/doors`, and whose end is waited for.
fn agent(words: &[String], waited_for: Duration) -> Agent {
    let crate::Command::Agent(agent) = parse(words) else { panic!("{words:?} is no agent") };
    let rules = agent.doors.rules.rules.as_ref().expect("rules");
    let name = rules.strip_prefix("/etc/lessor").expect("it is installed");
    assert!(repository("configs/doors").join(name).is_file(), "{rules:?}");
    assert!(waited_for > agent.doors.drain + RELEASE, "{words:?} is killed after {waited_for:?}");
    *agent
}

/// The documents of a manifest.
fn documents(name: &str) -> Vec<Value> {
    let text = text(&format!("deploy/kubernetes/{name}"));
    let documents = serde_saphyr::from_multiple(&text);
    documents.unwrap_or_else(|fault| panic!("{name}: {fault}"))
}

/// The agent among the containers of a pod.
fn container<'a>(pod: &'a Value, kind: &str, name: &str) -> &'a Value {
    let containers = pod[kind].as_array().expect("containers");
    containers.iter().find(|container| container["name"] == name).expect("the agent")
}

/// The agent of a pod, which has what it needs there.
fn agent_of(pod: &Value, container: &Value) -> Agent {
    let variables: BTreeMap<&str, ()> = container["env"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|variable| (variable["name"].as_str().unwrap(), ()))
        .collect();
    let words = container["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned());
    let words: Vec<String> = words.collect();
    for word in &words {
        if let Some((_, name)) = word.split_once("$(") {
            assert!(variables.contains_key(name.trim_end_matches(')')), "{word}");
        }
    }
    let waited_for = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
    let agent = agent(&words, Duration::from_secs(waited_for));
    let mounts = container["volumeMounts"].as_array().unwrap();
    let volumes = pod["volumes"].as_array().unwrap();
    for path in ["/etc/lessor", "/run/lessor"] {
        let mount = mounts.iter().find(|mount| mount["mountPath"] == path).expect(path);
        assert!(volumes.iter().any(|volume| volume["name"] == mount["name"]), "{mount}");
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(asked) = container[probe]["httpGet"].as_object() {
            assert!(["/healthz", "/readyz"].contains(&asked["path"].as_str().unwrap()), "{probe}");
            assert!(agent.doors.http.iter().any(|door| door.to_string() == "0.0.0.0:15080"), "{probe}");
        }
    }
    agent
}

#[test]
fn the_unit_of_an_agent_has_the_sockets_that_are_handed_over() {
    let service = unit(SERVICE);
    let waited_for = humantime::parse_duration(setting(&service, "TimeoutStopSec")).unwrap();
    let agent = agent(&words(&service)[1..], waited_for);
    assert_eq!(setting(&service, "Type"), "notify");
    assert_eq!(setting(&service, "ExecReload"), "/bin/kill -HUP $MAINPID");
    let socket = unit("lessor-agent.socket");
    let handed = socket.lines().filter_map(|line| line.strip_prefix("ListenStream="));
    let handed: Vec<String> = handed.map(|path| format!("unix:{path}")).collect();
    let doors = agent.doors.http.iter().chain(&agent.doors.rls);
    assert_eq!(handed, doors.map(ToString::to_string).collect::<Vec<_>>());
    // The boot of the machine is read there.
    assert!(!service.contains("\nProcSubset="), "{service}");
}

#[test]
fn the_agent_of_a_machine_is_ready_when_it_says_so() {
    let [manifest] = &documents("lessor-agent.yaml")[..] else { panic!("one document") };
    assert_eq!(manifest["kind"], "DaemonSet");
    let (labels, pod) = (&manifest["spec"]["selector"]["matchLabels"], &manifest["spec"]["template"]);
    assert_eq!(labels, &pod["metadata"]["labels"]);
    let agent = agent_of(&pod["spec"], container(&pod["spec"], "containers", "agent"));
    assert_eq!(agent.doors.id.as_deref(), Some("agent/$(MACHINE)"));
}

#[test]
fn the_sidecar_is_where_envoy_asks() {
    let [pod, configuration] = &documents("envoy-sidecar.yaml")[..] else { panic!("two documents") };
    let sidecar = container(&pod["spec"], "initContainers", "lessor");
    assert_eq!(sidecar["restartPolicy"], "Always");
    let agent = agent_of(&pod["spec"], sidecar);
    let cluster: Value =
        serde_saphyr::from_str(configuration["data"]["doors.yaml"].as_str().unwrap()).unwrap();
    let pipe = &cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"]["pipe"];
    let asked = format!("unix:{}", pipe["path"].as_str().unwrap());
    assert_eq!(agent.doors.rls.iter().map(ToString::to_string).collect::<Vec<_>>(), [asked]);
}

#[test]
fn an_agent_with_nothing_but_a_server_has_what_is_usual() {
    let parsed = |words: &[&str]| {
        let words: Vec<String> =
            ["agent", "--server", "paris:15000"].iter().chain(words).map(ToString::to_string).collect();
        let crate::Command::Agent(mut agent) = parse(&words) else { panic!("{words:?}") };
        agent.take_usual(&[]);
        let named = |doors: &[super::DoorAddress]| doors.iter().map(ToString::to_string).collect::<Vec<_>>();
        (named(&agent.doors.http), named(&agent.doors.rls))
    };
    assert_eq!(parsed(&[]), (vec!["127.0.0.1:15080".to_owned()], vec!["127.0.0.1:15081".to_owned()]));
    let one = parsed(&["--rls", "unix:/run/lessor/rls.sock,127.0.0.1:1"]);
    assert_eq!(one, (vec![], vec!["unix:/run/lessor/rls.sock".to_owned(), "127.0.0.1:1".to_owned()]));
    assert_eq!(parsed(&["--as", "ratelimit"]), (vec![], vec![]));
}
