//! Findings about the tasks that follow the templates at etcd.

use std::collections::{BTreeMap, BTreeSet};

use lessor_server::revision::TaskReport;

use super::{Finding, Severity};

/// All that is found.
pub(super) fn findings(tasks: &[TaskReport]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut nodes = BTreeMap::<&str, BTreeSet<u64>>::new();
    for task in tasks {
        nodes.entry(&task.node).or_default().insert(task.in_force);
        if let Some(refused) = &task.refused {
            let why = refused.why.first().map_or("", String::as_str);
            let what = format!("It refuses revision {}: {why}", refused.number);
            let todo = "Push a revision that every task can read, or bring this task up to date.";
            found.push(Finding::new(Severity::Warning, "revision_refused", what, todo).about(&name(task)));
        }
        if !task.stands && !task.leads {
            let what = "It does not stand for election: another task has a later revision in force.";
            let todo = "Find out why it has not put that in force.";
            found.push(Finding::new(Severity::Warning, "stands_aside", what, todo).about(&name(task)));
        }
    }
    for (node, versions) in nodes.iter().filter(|(_, versions)| versions.len() > 1) {
        let numbers: Vec<String> = versions.iter().map(ToString::to_string).collect();
        let what = format!("Its tasks have different revisions in force: {}.", numbers.join(", "));
        let todo = "Wait a second after a push; else look which task is behind, and why.";
        found.push(Finding::new(Severity::Warning, "revisions_differ", what, todo).about(node));
    }
    let programs: BTreeSet<&str> = tasks.iter().map(|task| task.binary.as_str()).collect();
    if programs.len() > 1 {
        let names: Vec<&str> = programs.into_iter().collect();
        let what = format!("Tasks are of several versions: {}.", names.join(", "));
        found.push(Finding::new(Severity::Note, "versions_differ", what, "Bring the others up to date."));
    }
    found
}

fn name(task: &TaskReport) -> String {
    format!("{} at {}", task.node, task.address)
}

#[cfg(test)]
mod tests {
    use lessor_server::revision::RefusedRevision;

    use super::*;

    #[test]
    fn tasks_that_differ_refuse_or_stand_aside_are_found() {
        let task = |node: &str, in_force| TaskReport {
            node: node.to_owned(),
            address: format!("{node}:1"),
            stands: true,
            in_force,
            binary: "1".to_owned(),
            ..TaskReport::default()
        };
        assert_eq!(findings(&[task("root", 3), task("root", 3), task("paris", 2)]), []);
        let refused = RefusedRevision { number: 4, why: vec!["a:1:1: no".to_owned()] };
        let behind = TaskReport { refused: Some(refused), stands: false, ..task("root", 3) };
        let newer = TaskReport { binary: "2".to_owned(), ..task("root", 4) };
        let found = findings(&[behind, newer]);
        let kinds: Vec<&str> = found.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, ["revision_refused", "stands_aside", "revisions_differ", "versions_differ"]);
        assert_eq!(found[0].what, "It refuses revision 4: a:1:1: no");
    }
}
