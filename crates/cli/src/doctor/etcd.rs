//! The checks of the etcd that elects: pure, over what an examination of its members has found.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use lessor_server::shell::etcd::{MemberHealth, MemberReport, examine};

use super::finding::{CheckOutcome, Finding};
use crate::office::EtcdSecretFlags;

/// The etcd that elects, as tasks are told.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd")]
pub(super) struct DoctorEtcd {
    /// The members of the etcd that elects; without it etcd is not asked
    #[arg(long, env = "LESSOR_ETCD", value_name = "URL,...", value_delimiter = ',')]
    etcd: Vec<String>,
    /// With what the keys in etcd begin
    #[arg(long, env = "LESSOR_ETCD_PREFIX", value_name = "PREFIX", default_value = "lessor")]
    etcd_prefix: String,
    /// The --ttl that tasks are given
    #[arg(long, env = "LESSOR_TTL", value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    ttl: Duration,
    #[command(flatten)]
    secrets: EtcdSecretFlags,
}

/// A read that takes this long, in the median, leaves a leader little time to keep what it leads with.
const SLOW: Duration = Duration::from_millis(200);

// === impl DoctorEtcd ===

impl DoctorEtcd {
    /// The checks; none where no etcd is named.
    pub(super) async fn run(&self) -> anyhow::Result<Vec<CheckOutcome>> {
        if self.etcd.is_empty() {
            return Ok(Vec::new());
        }
        let members = examine(self.secrets.options(&self.etcd)?, &self.etcd_prefix).await?;
        let mut outcomes = checks(&members, &self.etcd_prefix, self.secrets.show_somebody());
        outcomes
            .push(CheckOutcome { check: "leases of etcd".to_owned(), findings: leases(&members, self.ttl) });
        Ok(outcomes)
    }
}

/// The checks of the members, and of what whoever asks may do: `is_somebody` says whether it shows who it is.
fn checks(members: &[MemberReport], prefix: &str, is_somebody: bool) -> Vec<CheckOutcome> {
    let outcome = |check: &str, findings| CheckOutcome { check: check.to_owned(), findings };
    vec![
        outcome("etcd answers", answers(members)),
        outcome("one etcd", one(members)),
        outcome("etcd in time", in_time(members)),
        outcome("rights at etcd", rights(members, prefix, is_somebody)),
    ]
}

fn healthy(members: &[MemberReport]) -> impl Iterator<Item = (&str, &MemberHealth)> {
    members.iter().filter_map(|member| Some((member.url.as_str(), member.health.as_ref().ok()?)))
}

fn answers(members: &[MemberReport]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let away = members.iter().filter(|member| member.health.is_err()).count();
    for member in members {
        if let Err(why) = &member.health {
            let what = format!("{}: {why}", member.url);
            let remedy = "look at that member, and at the way there";
            findings.push(match away == members.len() {
                true => Finding::fault(what, remedy),
                false => Finding::warning(what, remedy),
            });
        }
    }
    for (url, health) in healthy(members) {
        if health.leader == 0 {
            let remedy = "more than half of the members have to reach each other";
            findings.push(Finding::fault(format!("{url}: its cluster has no leader"), remedy));
        }
        for alarm in &health.alarms {
            let remedy = "compact and defragment it, then `etcdctl alarm disarm`";
            findings.push(Finding::fault(format!("{url}: {alarm}"), remedy));
        }
    }
    findings
}

fn one(members: &[MemberReport]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let clusters: BTreeSet<u64> = healthy(members).map(|(_, health)| health.cluster).collect();
    if clusters.len() > 1 {
        let what = format!("the members are of {} clusters", clusters.len());
        let remedy = "name members of one cluster: each would elect a leader of its own";
        findings.push(Finding::fault(what, remedy));
    }
    let versions: BTreeSet<&str> = healthy(members).map(|(_, health)| health.version.as_str()).collect();
    if versions.len() > 1 {
        let versions = versions.into_iter().collect::<Vec<_>>().join(" and ");
        findings.push(Finding::warning(format!("members of versions {versions}"), "finish the upgrade"));
    }
    findings
}

fn in_time(members: &[MemberReport]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (url, health) in healthy(members) {
        let Ok(times) = &health.reads else { continue };
        let Some(&median) = times.get(times.len() / 2) else { continue };
        if median > SLOW {
            let what = format!("{url}: half of its reads take {} ms or more", median.as_millis());
            let remedy =
                "look at its disk and at the way there: a leader stops that cannot keep its lease in time";
            findings.push(Finding::warning(what, remedy));
        }
    }
    findings
}

/// Etcd keeps no key for less than one and a half of its election timeouts, whatever it is asked for.
fn leases(members: &[MemberReport], ttl: Duration) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (url, health) in healthy(members) {
        let Some(shortest) = health.shortest_lease else {
            findings.push(Finding::fault(
                format!("{url}: it grants no lease"),
                "look at its log: nobody can lead",
            ));
            continue;
        };
        // It counts whole seconds, and so do tasks when they ask.
        let asked = Duration::from_secs(ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0));
        if shortest > asked {
            let (shortest, ttl) = (shortest.as_secs(), humantime::format_duration(ttl));
            let what = format!(
                "{url}: it keeps the key of a leader for {shortest} s at the least, and tasks ask for {ttl} (--ttl): nobody leads \
                 for that long after a crash"
            );
            let remedy =
                format!("--ttl {shortest}s, which is what it is, or a shorter --election-timeout of etcd");
            findings.push(Finding::warning(what, remedy));
        }
    }
    findings
}

fn rights(members: &[MemberReport], prefix: &str, is_somebody: bool) -> Vec<Finding> {
    let prefix = prefix.trim_end_matches('/');
    let mut findings = Vec::new();
    for (url, health) in healthy(members) {
        let Some(rights) = health.rights else {
            let why = health.reads.as_ref().err().map_or("no read", String::as_str);
            findings.push(Finding::fault(format!("{url}: {why}"), "look at the user and its password"));
            continue;
        };
        let lacks = [(rights.reads, "read"), (rights.writes, "write")];
        for (_, right) in lacks.into_iter().filter(|(is_there, _)| !is_there) {
            let what = format!("{url}: the role may not {right} below {prefix}/");
            let remedy = format!("etcdctl role grant-permission ROLE readwrite --prefix {prefix}/");
            findings.push(Finding::fault(what, remedy));
        }
        if rights.writes_elsewhere && is_somebody {
            let what = format!("{url}: the role may write outside of {prefix}/");
            let remedy = format!("give tasks a role that has no more than readwrite --prefix {prefix}/");
            findings.push(Finding::warning(what, remedy));
        }
    }
    findings
}

#[cfg(test)]
mod tests;
