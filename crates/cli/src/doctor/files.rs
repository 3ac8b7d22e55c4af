//! The checks of configuration files: each by itself, and those of the nodes below beside that of the root.

use std::path::{Path, PathBuf};

use lessor_server::access::Access;
use lessor_server::repository::{Kind, Repository, Template};

use super::finding::{CheckOutcome, Finding};
use crate::check::load;

/// The configurations of a tree: that of the root first.
pub(super) fn run(configurations: &[PathBuf], access: &[PathBuf]) -> Vec<CheckOutcome> {
    let mut outcomes = Vec::new();
    let mut loaded: Vec<(&Path, Repository)> = Vec::new();
    for file in configurations {
        let (findings, repository) = validate::<Repository>(file);
        loaded.extend(repository.map(|repository| (file.as_path(), repository)));
        outcomes.push(CheckOutcome { check: format!("{} is valid", file.display()), findings });
    }
    for file in access {
        let (findings, _) = validate::<Access>(file);
        outcomes.push(CheckOutcome { check: format!("{} is valid", file.display()), findings });
    }
    if let [(root, of_root), below @ ..] = &loaded[..]
        && !below.is_empty()
    {
        let findings = below.iter().flat_map(|(file, of_leaf)| {
            let names = (root.display().to_string(), file.display().to_string());
            disagreements((&names.0, of_root), (&names.1, of_leaf))
        });
        outcomes.push(CheckOutcome { check: "files agree".to_owned(), findings: findings.collect() });
    }
    outcomes
}

fn validate<D: lessor_server::shell::source::Document>(file: &Path) -> (Vec<Finding>, Option<D>) {
    match load::<D>(file) {
        Ok(document) => (Vec::new(), Some(document)),
        Err(error) => {
            (vec![Finding::fault(format!("{error:#}"), "mend what `lessor check` prints of it")], None)
        }
    }
}

/// Where the configuration of a node below does not fit that of the root.
fn disagreements((root, of_root): (&str, &Repository), (leaf, of_leaf): (&str, &Repository)) -> Vec<Finding> {
    let mut findings = Vec::new();
    for template in of_leaf.templates() {
        let glob = template.glob.as_str();
        let Some(above) = of_root.templates().iter().find(|above| covers(above, template)) else {
            let what = format!("{glob:?} of {leaf} has no template in {root}");
            findings.push(Finding::fault(what, "write one there: the root refuses what it does not know"));
            continue;
        };
        if above.kind != template.kind {
            let [here, there] = [template.kind, above.kind].map(kind_name);
            let what = format!("{glob:?} is a {here} in {leaf} and a {there} in {root}");
            findings.push(Finding::fault(what, "make it the same kind in both"));
        }
        if template.lease_length * 2 > above.lease_length {
            let what = format!(
                "leases of {glob:?} are {:?} in {leaf}, and {:?} in {root}",
                template.lease_length, above.lease_length
            );
            let remedy =
                "make those below half as long at the most: they end before the lease from above does";
            findings.push(Finding::warning(what, remedy));
        }
        if above.domains.is_some() != template.domains.is_some() {
            let what = format!("only one of {leaf} and {root} has policies of domains for {glob:?}");
            findings
                .push(Finding::warning(what, "write the same in both: clients follow those of their node"));
        }
        if above.beside.is_some() != template.beside.is_some() {
            let what = format!("only one of {leaf} and {root} tries a second limit beside {glob:?}");
            findings
                .push(Finding::warning(what, "write beside in both: it is leased as the limit in force is"));
        }
    }
    findings
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Rate => "rate",
        Kind::Gauge => "gauge",
    }
}

/// Whether what `below` names finds its template in `above`: by the same glob, or by one that its plain name matches.
fn covers(above: &Template, below: &Template) -> bool {
    above.glob == below.glob
        || above.glob.is_everything()
        || below.glob.is_plain() && above.glob.matches(below.glob.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    const ROOT: &str = "resources:
- identifier_glob: \"slots\"
  kind: gauge
  capacity: 4
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}
- identifier_glob: \"db/*\"
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}
";

    /// The findings about a leaf whose file differs by that.
    fn found(from: &str, to: &str) -> Vec<(Severity, String)> {
        let parse = |text: &str| lessor_server::shell::source::parse("a.yaml", text).expect("it is valid");
        let leaf = ROOT.replace("lease_length: 60", "lease_length: 30").replace(from, to);
        let findings = disagreements(("root.yaml", &parse(ROOT)), ("leaf.yaml", &parse(&leaf)));
        findings.into_iter().map(|finding| (finding.severity, finding.what)).collect()
    }

    #[test]
    fn files_that_fit_have_no_findings_and_others_are_named() {
        assert_eq!(found("", ""), []);
        assert_eq!(found("\"db/*\"", "\"db/orders\""), [], "a plain name finds the glob of the root");
        let is = |from, to, severity, says: &str| {
            let found = found(from, to);
            assert!(found.len() == 1 && found[0].0 == severity && found[0].1.contains(says), "{found:?}");
        };
        is("\"db/*\"", "\"search/*\"", Severity::Fault, "has no template in root.yaml");
        is("  kind: gauge\n", "", Severity::Fault, "is a rate in leaf.yaml and a gauge");
        is(
            "4\n  algorithm: {kind: FAIR_SHARE, lease_length: 30",
            "4\n  algorithm: {kind: FAIR_SHARE, lease_length: 40",
            Severity::Warning,
            "are 40s in leaf.yaml",
        );
        is(
            "capacity: 100\n",
            "capacity: 100\n  domains: {default: {tiers: [{limit: 10, window: 1h, active: 1h}]}}\n",
            Severity::Warning,
            "policies of domains",
        );
        is(
            "capacity: 100\n",
            "capacity: 100\n  beside: {capacity: 80}\n",
            Severity::Warning,
            "tries a second limit",
        );
    }
}
