//! Findings about a task and its node.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_server::node::NodeStatus;
use lessor_server::shell::driver::Summary;
use lessor_server::shell::etcd::TemplateStatus;

use super::{Finding, Severity, in_words, until};
use crate::desk::Desk;

/// A task, as far as findings go by it.
pub(super) struct SeenNode<'a> {
    status: &'a NodeStatus,
    older_streams: usize,
    leads: bool,
    leader: Option<String>,
    /// Why it is not ready: one word, and a sentence.
    not_ready: Option<(&'static str, String)>,
    has_reached_above: Option<bool>,
    etcd_healthy: Option<bool>,
    state_fault: Option<String>,
    is_last_reload_in_force: bool,
    templates: Option<TemplateStatus>,
    /// The certificates in force: the use of each, and the seconds until it ends.
    certificates: Vec<(&'static str, f64)>,
}

/// The age of what was read of the templates from which on somebody should know.
const LONG_UNREAD: Duration = Duration::from_secs(120);
const DAY: f64 = 86_400.0;

// === impl SeenNode ===

impl SeenNode<'_> {
    pub(super) fn new<'a>(desk: &Desk, summary: &'a Summary) -> SeenNode<'a> {
        let driver = &desk.parts.driver;
        let whereabouts = driver.whereabouts();
        SeenNode {
            status: &summary.status,
            older_streams: summary.older_streams,
            leads: whereabouts.is_leader,
            leader: whereabouts.leader.address,
            not_ready: driver.readiness().err().map(|why| (why.reason(), why.to_string())),
            has_reached_above: driver.has_reached_parent(),
            etcd_healthy: driver.is_etcd_healthy(),
            state_fault: driver.state_fault().flatten(),
            is_last_reload_in_force: driver.last_reload().0,
            templates: driver.template_status(),
            certificates: desk
                .parts
                .certificate_ends()
                .into_iter()
                .map(|(name, end)| (name, until(end)))
                .collect(),
        }
    }

    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        self.of_the_task(&mut found);
        self.of_configuration(&mut found);
        self.of_names(&mut found);
        self.of_certificates(&mut found);
        found
    }

    fn of_the_task(&self, found: &mut Vec<Finding>) {
        if let Some((reason, why)) = self.not_ready.as_ref().filter(|(reason, _)| *reason != "loop") {
            let todo = match *reason {
                "broken" => "Start the process again, and send its log to whoever looks after Lessor.",
                "unreached" => "Look whether the addresses in --parent are right and the node above runs.",
                "no-templates" => {
                    "Look with `lessor history` whether anything has been pushed, and whether etcd answers."
                }
                _ => "Wait until it has ended; its clients go to another task.",
            };
            let severity = if *reason == "ending" { Severity::Note } else { Severity::Fault };
            found.push(Finding::new(severity, "not_ready", format!("This task is not ready: {why}."), todo));
        }
        match &self.leader {
            None if !self.leads => found.push(Finding::new(
                Severity::Fault,
                "nobody_leads",
                "No task leads this node, so nobody is granted anything; holders live on their leases.",
                "Look whether etcd answers, and whether a task of the node can stand for election.",
            )),
            Some(leader) if !self.leads => found.push(Finding::new(
                Severity::Note,
                "follows",
                format!("This task does not lead its node: {leader} does. Its resources are seen there."),
                "Open the console of the task that leads.",
            )),
            _ => {}
        }
        if self.etcd_healthy == Some(false) {
            found.push(Finding::new(
                Severity::Warning,
                "etcd_unhealthy",
                "etcd does not do what this task asks of it; without it leadership ends soon.",
                "Look at etcd, and at the network between.",
            ));
        }
        if let Some(fault) = &self.state_fault {
            found.push(Finding::new(
                Severity::Fault,
                "state_fault",
                format!("The state directory fails: {fault}. After a crash it is not known what was out."),
                "Mend the disk or the rights of the directory.",
            ));
        }
        if self.has_reached_above == Some(false) && self.not_ready.is_none() {
            found.push(Finding::new(
                Severity::Warning,
                "above_unreached",
                "No server of the node above answers.",
                "Look whether it runs; holders live on the lease that is left.",
            ));
        }
        if self.older_streams > 0 {
            let count = self.older_streams;
            found.push(Finding::new(
                Severity::Note,
                "older_streams",
                format!("{count} streams are of holders of an earlier version."),
                "Bring those programs up to date some time.",
            ));
        }
        let (distrusted, forged) = (self.status.tally.records_distrusted, self.status.tally.claims.forged);
        if distrusted > 0 {
            found.push(Finding::new(
                Severity::Warning,
                "record_distrusted",
                format!("{distrusted} records were not believed: they had been restored from a copy."),
                "Delete the record when etcd is restored (docs/operations.md).",
            ));
        }
        if forged > 0 {
            found.push(Finding::new(
                Severity::Warning,
                "claims_forged",
                format!("{forged} claims had a seal that does not fit: tasks of this node have different --token-key files, or somebody lies."),
                "Give all tasks of the node the same keys.",
            ));
        }
    }

    fn of_configuration(&self, found: &mut Vec<Finding>) {
        let (version, later) = (self.status.config_version, self.status.later_config);
        if let Some(later) = later {
            found.push(Finding::new(
                Severity::Fault,
                "config_outdated",
                format!("Version {later} of the configuration was in force before and this task has {version}: it grants nothing."),
                "Give it the later configuration, or a number above it.",
            ));
        }
        if !self.is_last_reload_in_force {
            found.push(Finding::new(
                Severity::Warning,
                "reload_failed",
                "The configuration that was read last is not in force; the one before stays.",
                "Look at the log, or run `lessor check` on the file.",
            ));
        }
        let Some(templates) = &self.templates else { return };
        if let Some(refused) = &templates.refused {
            let why = refused.why.first().map_or("", String::as_str);
            found.push(Finding::new(
                Severity::Warning,
                "revision_refused",
                format!("This task refuses revision {}: {why}", refused.number),
                "Push a revision that every task can read, or bring this task up to date.",
            ));
        }
        if templates.is_in_conflict {
            found.push(Finding::new(
                Severity::Fault,
                "revision_conflict",
                format!(
                    "Revision {} stands at etcd with another content than what is in force.",
                    templates.in_force
                ),
                "Somebody has rewritten the history: push a new revision.",
            ));
        }
        let unread = templates.read_at.map(|at| clock::now().since(at)).filter(|age| *age > LONG_UNREAD);
        if let Some(age) = unread {
            found.push(Finding::new(
                Severity::Warning,
                "templates_unread",
                format!(
                    "Whether there are new templates has not been read for {}.",
                    in_words(age.as_secs_f64())
                ),
                "Look at the etcd of the templates; what is in force stays so.",
            ));
        }
    }

    fn of_names(&self, found: &mut Vec<Finding>) {
        let names = &self.status.names;
        if let Some(circle) = &names.circle {
            found.push(Finding::new(
                Severity::Fault,
                "loop",
                format!("The node stands above itself: {circle}"),
                "Give one node of the loop another --parent.",
            ));
        }
        if names.name_taken {
            found.push(Finding::new(
                Severity::Fault,
                "name_taken",
                format!("Another process holds the name {:?} at the node above.", self.status.node),
                "Give one of them another --node.",
            ));
        }
        for name in &names.duplicates {
            let what = format!("Two processes below say that they are the node {name:?}.");
            found.push(
                Finding::new(Severity::Warning, "duplicate_nodes", what, "Give one of them another --node.")
                    .about(name),
            );
        }
    }

    fn of_certificates(&self, found: &mut Vec<Finding>) {
        for (name, seconds) in &self.certificates {
            let severity = match *seconds {
                ..=DAY => Severity::Fault,
                seconds if seconds <= 7.0 * DAY => Severity::Warning,
                _ => continue,
            };
            let what = match *seconds > 0.0 {
                true => format!("The certificate for {name} ends in {}.", in_words(*seconds)),
                false => format!("The certificate for {name} ended {} ago.", in_words(-seconds)),
            };
            found.push(
                Finding::new(
                    severity,
                    "certificate",
                    what,
                    "Replace its files; they are read when they change.",
                )
                .about(name),
            );
        }
    }
}
