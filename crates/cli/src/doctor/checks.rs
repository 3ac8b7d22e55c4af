//! The checks of tasks that run: pure, over what they have said.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::finding::{CheckOutcome, Finding};
use super::task::TaskFacts;

/// A check of tasks.
struct TaskCheck {
    name: &'static str,
    look: fn(&[TaskFacts]) -> Vec<Finding>,
}

/// The checks of tasks that answer.
const CHECKS: [TaskCheck; 11] = [
    TaskCheck { name: "healthy and ready", look: healthy },
    TaskCheck { name: "each node is led", look: led },
    TaskCheck { name: "one program", look: one_program },
    TaskCheck { name: "one configuration", look: one_configuration },
    TaskCheck { name: "clocks", look: clocks },
    TaskCheck { name: "etcd and state", look: memory },
    TaskCheck { name: "names", look: names },
    TaskCheck { name: "lease from above", look: lease_above },
    TaskCheck { name: "promise kept", look: promise },
    TaskCheck { name: "enough for all", look: enough },
    TaskCheck { name: "certificates and files", look: bounds },
];

const DAY: f64 = 86_400.0;
/// The dates of tasks, which are read to the second, differ for certain from here on.
const MOST_APART: f64 = 2.0;
/// The part of a resource from which on it counts as full, and the part of what is wanted that may be missing.
const FULL: f64 = 0.98;
const MISSING: f64 = 0.05;
/// The part of open files that may be in use.
const FILES: f64 = 0.8;
/// Resources that are named in one finding.
const NAMED: usize = 3;

/// Whether all tasks answer, and all checks of those that do.
pub(super) fn run(tasks: &[TaskFacts]) -> Vec<CheckOutcome> {
    let there: Vec<TaskFacts> = tasks.iter().filter(|task| task.answers()).cloned().collect();
    let outcome = |name: &str, findings| CheckOutcome { check: name.to_owned(), findings };
    let checked = CHECKS.iter().map(|TaskCheck { name, look }| outcome(name, look(&there)));
    std::iter::once(outcome("tasks answer", answering(tasks))).chain(checked).collect()
}

fn answering(tasks: &[TaskFacts]) -> Vec<Finding> {
    let away = tasks.iter().filter_map(|task| Some((&task.server, task.away.as_ref()?)));
    away.map(|(server, why)| {
        Finding::fault(
            format!("{server}: {why}"),
            "start it, or mend the way there; see `--server` and `--ca`",
        )
    })
    .collect()
}

fn healthy(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks {
        if let Some(why) = &task.sick {
            findings.push(Finding::fault(format!("{}: {why}", task.server), "read its log, and restart it"));
        } else if let Some(why) = &task.unready {
            let remedy = "wait if it drains; otherwise look at its log and at the node above";
            findings.push(Finding::fault(format!("{}: not ready: {why}", task.server), remedy));
        }
    }
    findings
}

fn by_node(tasks: &[TaskFacts]) -> BTreeMap<&str, Vec<&TaskFacts>> {
    let mut nodes: BTreeMap<&str, Vec<&TaskFacts>> = BTreeMap::new();
    tasks.iter().for_each(|task| nodes.entry(task.node()).or_default().push(task));
    nodes
}

fn led(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (node, tasks) in by_node(tasks) {
        let leaders: Vec<&str> =
            tasks.iter().filter(|task| task.leads()).map(|task| task.server.as_str()).collect();
        let is_known = tasks.iter().any(|task| task.status["leader"].is_string());
        if leaders.len() > 1 {
            let what = format!("node {node}: {} each say that they lead", leaders.join(" and "));
            findings.push(Finding::fault(what, "tasks of one node need one --etcd and one --etcd-prefix"));
        } else if leaders.is_empty() && !is_known {
            let what = format!("node {node}: nobody leads, so nothing is granted or renewed");
            findings.push(Finding::fault(what, "look whether the tasks reach etcd, and at their logs"));
        }
    }
    findings
}

fn one_program(tasks: &[TaskFacts]) -> Vec<Finding> {
    let builds: BTreeSet<&str> =
        tasks.iter().flat_map(|task| task.labelled("lessor_build_info")).map(|(build, _)| build).collect();
    match builds.len() {
        0 | 1 => Vec::new(),
        _ => {
            let what =
                format!("{} programs: {}", builds.len(), builds.into_iter().collect::<Vec<_>>().join("; "));
            vec![Finding::warning(what, "finish the upgrade: what only the later one knows is not used")]
        }
    }
}

fn one_configuration(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks {
        if let Some(later) = task.status["status"]["later_config"].as_u64() {
            let here = &task.status["status"]["config_version"];
            let what =
                format!("{}: grants nothing: version {here} is here, and {later} was in force", task.server);
            findings.push(Finding::fault(what, format!("give it version {later} or a later one")));
        }
        if task.figure("lessor_config_last_reload_successful") == Some(0.0) {
            let what = format!("{}: the configuration that was read last is not in force", task.server);
            findings
                .push(Finding::warning(what, "run `lessor check` on its file: the old one stays in force"));
        }
    }
    for (node, tasks) in by_node(tasks) {
        let versions: BTreeSet<u64> =
            tasks.iter().filter_map(|task| task.status["status"]["config_version"].as_u64()).collect();
        if versions.len() > 1 {
            let versions: Vec<_> = versions.iter().map(u64::to_string).collect();
            let what = format!("node {node}: its tasks have versions {}", versions.join(" and "));
            findings.push(Finding::warning(
                what,
                "give all of them the latest: one that lacks it grants nothing when it leads",
            ));
        }
    }
    findings
}

fn clocks(tasks: &[TaskFacts]) -> Vec<Finding> {
    let dates = || tasks.iter().filter_map(|task| Some((task.ahead_seconds?, task)));
    let order = |one: &(f64, &TaskFacts), other: &(f64, &TaskFacts)| one.0.total_cmp(&other.0);
    let (Some(first), Some(last)) = (dates().min_by(order), dates().max_by(order)) else { return Vec::new() };
    let apart = last.0 - first.0;
    if apart <= MOST_APART {
        return Vec::new();
    }
    let what = format!("{} is {apart:.0} s ahead of {}", last.1.server, first.1.server);
    vec![Finding::warning(what, "synchronise their clocks to within a second (NTP)")]
}

fn memory(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (node, tasks) in by_node(tasks) {
        let is_cut_off = |task: &&&TaskFacts| task.figure("lessor_etcd_healthy") == Some(0.0);
        let cut_off: Vec<&str> = tasks.iter().filter(is_cut_off).map(|task| task.server.as_str()).collect();
        if cut_off.is_empty() {
            continue;
        }
        let what = format!("node {node}: etcd does not answer {}", cut_off.join(", "));
        let remedy = "look at etcd, and at the way there: whoever leads stops after --authority";
        findings.push(match cut_off.len() == tasks.len() {
            true => Finding::fault(what, remedy),
            false => Finding::warning(what, remedy),
        });
    }
    for task in tasks {
        if let Some(fault) = task.status["state_fault"].as_str() {
            let what = format!("{}: the state directory fails: {fault}", task.server);
            findings.push(Finding::fault(what, "free space on its disk, or mend its rights"));
        }
    }
    findings
}

fn names(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks {
        let names = &task.status["status"]["names"];
        if let Some(circle) = names["loop"].as_str() {
            let what = format!("{}: stands above itself: {circle}", task.server);
            findings.push(Finding::fault(what, "point --parent at a node above, and not below"));
        }
        if names["name_taken"] == Value::Bool(true) {
            let what = format!("{}: another process holds the name of node {:?}", task.server, task.node());
            findings.push(Finding::fault(what, "give each node a --node of its own"));
        }
        for name in names["duplicates"].as_array().into_iter().flatten() {
            let what = format!("{}: two processes below claim to be node {name}", task.server);
            findings.push(Finding::warning(what, "give each node a --node of its own"));
        }
        let twice = named(task, |row| row["duplicate_client_ids"].as_u64().unwrap_or(0) > 0);
        if let Some(resources) = twice {
            let what = format!("{}: two processes have used one client id, of {resources}", task.server);
            findings.push(Finding::warning(what, "give each process an id of its own"));
        }
    }
    findings
}

fn lease_above(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks.iter().filter(|task| task.leads()) {
        let has_none = |row: &Value| {
            row["lease_ends_in_seconds"].as_f64().is_some_and(|seconds| seconds <= 0.0) && is_wanted(row)
        };
        if let Some(resources) = named(task, has_none) {
            let what = format!("{}: no lease from the node above, of {resources}", task.server);
            findings
                .push(Finding::fault(what, "look at the node above, and whether it has a template for that"));
        }
        if task.figure("lessor_parent_up") == Some(0.0) {
            let what = format!("{}: the node above does not answer", task.server);
            findings
                .push(Finding::fault(what, "look at the node above: leases here end with that from there"));
        }
    }
    findings
}

fn promise(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks {
        let is_over = |row: &Value| row["overcommitment"].as_f64().unwrap_or(0.0) > 0.0;
        if let Some(resources) = named(task, is_over) {
            let what = format!("{}: more is out than may be, of {resources}", task.server);
            findings.push(Finding::fault(what, "this is a mistake of ours: keep its log, and restart it"));
        }
        if task.figure("lessor_claims_forged_total").unwrap_or(0.0) > 0.0 {
            let what = format!("{}: leases were shown with seals that do not fit", task.server);
            findings.push(Finding::warning(
                what,
                "all tasks of a node need one --token-key; otherwise somebody lies",
            ));
        }
        if let Some(resources) = named(task, |row| row["template"].is_null()) {
            let what = format!("{}: no template covers any more {resources}", task.server);
            findings
                .push(Finding::warning(what, "write one, or let its clients go: they are granted nothing"));
        }
    }
    findings
}

fn enough(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks.iter().filter(|task| task.leads()) {
        let is_short = |row: &Value| {
            let number = |name: &str| row[name].as_f64().unwrap_or(0.0);
            let (capacity, wants) = (number("capacity"), number("wants"));
            // Of what is reserved everybody wants all that there is, and what is tried lacks nobody anything.
            let is_apart = |name: &str| name.ends_with("|safe") || name.ends_with("|beside");
            !row["resource"].as_str().is_some_and(is_apart)
                && number("outstanding") >= capacity * FULL
                && wants > capacity * (1.0 + MISSING)
        };
        if let Some(resources) = named(task, is_short) {
            let what = format!("{}: full, and more is wanted, of {resources}", task.server);
            findings.push(Finding::warning(
                what,
                "`lessor explain RESOURCE` says how it is divided; raise its capacity if it has more",
            ));
        }
    }
    findings
}

fn bounds(tasks: &[TaskFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for task in tasks {
        for (labels, end) in task.labelled("lessor_certificate_expiry_timestamp_seconds") {
            let days = (end - task.asked_at) / DAY;
            let what = format!("{}: the certificate {labels} ends in {days:.1} days", task.server);
            let remedy = "renew it: it is read again without a restart";
            if days < 1.0 {
                findings.push(Finding::fault(what, remedy));
            } else if days < 7.0 {
                findings.push(Finding::warning(what, remedy));
            }
        }
        if let (Some(open), Some(most)) = (task.figure("process_open_fds"), task.figure("process_max_fds"))
            && open > most * FILES
        {
            let what = format!("{}: {open:.0} of {most:.0} files and sockets are open", task.server);
            findings.push(Finding::warning(what, "raise LimitNOFILE of the service, or ulimit -n"));
        }
    }
    findings
}

fn is_wanted(row: &Value) -> bool {
    row["wants"].as_f64().unwrap_or(0.0) > 0.0
}

/// The names of the resources of a task that are so, the first of them and how many more; nothing if none is.
fn named(task: &TaskFacts, is_so: impl Fn(&Value) -> bool) -> Option<String> {
    let names: Vec<&str> =
        task.resources().iter().filter(|row| is_so(row)).filter_map(|row| row["resource"].as_str()).collect();
    let (first, others) = names.split_at(names.len().min(NAMED));
    let text = first.join(", ");
    match others.len() {
        _ if names.is_empty() => None,
        0 => Some(text),
        more => Some(format!("{text} and {more} more")),
    }
}

#[cfg(test)]
mod tests;
