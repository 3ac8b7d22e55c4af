//! `lessor check`: everything that is wrong with a configuration, with its place.

mod doors;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use lessor_client::internals::domain::Scope;
use lessor_proto::wire::{DomainPolicies, DomainPolicy, DomainTier, DomainWindows};
use lessor_server::access::{Access, Stance};
use lessor_server::repository::{Domains, Repository, SafeCapacity, SharePolicy, SmallLeases, Template};
use lessor_server::shell::source::{self, Document, LoadError};

use self::doors::DoorChecks;

/// Leases from this length on are longer than most who run servers would wait.
const LONG_LEASE: Duration = Duration::from_secs(86_400);

/// Validates configurations. Exit 0: they are valid; exit 1: every fault is printed with its file, line and column. What is
/// valid and perhaps not what was meant is noted.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The files, each by itself; - is standard input
    #[arg(required_unless_present_any = ["access", "doors", "ratelimit"])]
    file: Vec<PathBuf>,
    /// A file with rules of access, which is validated as well
    #[arg(long, value_name = "FILE")]
    access: Vec<PathBuf>,
    #[command(flatten)]
    doors: DoorChecks,
}

// === impl Check ===

impl Check {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut outcomes: Vec<_> = self.file.iter().map(|file| check(file)).collect();
        outcomes.extend(self.access.iter().map(|file| check_access(file)));
        outcomes.extend(self.doors.run(&self.file));
        let all = outcomes.len();
        if all == 1 {
            return outcomes.remove(0);
        }
        let faulty: Vec<anyhow::Error> = outcomes.into_iter().filter_map(Result::err).collect();
        faulty.iter().for_each(|fault| eprintln!("error: {fault:#}"));
        match faulty.len() {
            0 => Ok(()),
            count => bail!("{count} of {all} files are not valid"),
        }
    }
}

/// Reads a document, or prints all that is wrong with it.
pub(crate) fn load<D: Document>(file: &Path) -> anyhow::Result<D> {
    let loaded = match std::fs::metadata(file) {
        _ if is_standard_input(file) => read_whole(file, io::stdin())?,
        // What another command says: a server would not wait for that, and a person does.
        Ok(found) if !found.is_file() && !found.is_dir() => {
            read_whole(file, File::open(file).with_context(|| name(file))?)?
        }
        _ => source::load_document(file),
    };
    loaded.map_err(|error| match error {
        LoadError::Faulty(faults) => {
            eprintln!("{faults}");
            let count = faults.count();
            anyhow!("{}: {count} fault{}", name(file), if count == 1 { "" } else { "s" })
        }
        error => error.into(),
    })
}

/// Reads a document to the end of what comes.
fn read_whole<D: Document>(file: &Path, from: impl Read) -> anyhow::Result<Result<D, LoadError>> {
    let mut text = String::new();
    let read = from.take(source::MAX_BYTES + 1).read_to_string(&mut text);
    if read.with_context(|| name(file))? as u64 > source::MAX_BYTES {
        return Ok(Err(LoadError::TooLarge { path: name(file).into() }));
    }
    Ok(D::parse(&name(file), &text).map_err(LoadError::from))
}

fn is_standard_input(file: &Path) -> bool {
    file == Path::new("-")
}

/// The name of a file in messages.
fn name(file: &Path) -> String {
    if is_standard_input(file) { "<stdin>".to_owned() } else { file.display().to_string() }
}

fn check_access(file: &Path) -> anyhow::Result<()> {
    let access: Access = load(file)?;
    if access.stance == Stance::Audit {
        eprintln!(
            "note: default: audit: everything is allowed, and what deny would refuse is counted and logged"
        );
    }
    let (nodes, clients, operators) = (access.nodes.len(), access.clients.len(), access.operators.len());
    println!(
        "{}: valid rules of access, {nodes} for nodes, {clients} for clients, {operators} for operators",
        name(file)
    );
    Ok(())
}

fn check(file: &Path) -> anyhow::Result<()> {
    let repository: Repository = load(file)?;
    for template in repository.shadowed() {
        eprintln!("note: template \"{}\" is never used: \"*\" stands before it", template.glob);
    }
    for template in repository.templates() {
        for remark in remarks(template) {
            eprintln!("note: template \"{}\": {remark}", template.glob);
        }
        if let Some(domains) = &template.domains {
            note_domains(template, domains);
        }
    }
    let count = repository.templates().len();
    println!("{}: valid, {count} template{}", name(file), if count == 1 { "" } else { "s" });
    Ok(())
}

/// Remarks on what is valid in a template, and perhaps not what was meant.
fn remarks(template: &Template) -> Vec<String> {
    let mut remarks = Vec::new();
    if template.small_leases == Some(SmallLeases::Save) {
        remarks.push(
            "small_leases save: a unit of each client with less than one in the burst may pass at once"
                .to_owned(),
        );
    }
    if let Some(beside) = template.beside.filter(|&beside| beside > template.capacity) {
        remarks.push(format!(
            "beside: {beside} is more than the capacity, {}, and what that refuses is never asked of it",
            template.capacity
        ));
    }
    let is_shared = matches!(template.policy, SharePolicy::ProportionalShare | SharePolicy::FairShare);
    if let SafeCapacity::Fixed(safe) = template.safe_capacity
        && is_shared
        && safe > template.capacity
    {
        remarks.push(format!(
            "safe_capacity: {safe} is more than all of the capacity, {}, and one client that is cut off may use its whole \
             last lease for ever",
            template.capacity
        ));
    }
    if template.safe_lease.is_some() && !template.reserves() {
        remarks
            .push("safe_lease: without safe_fraction nothing is reserved, and it means nothing".to_owned());
    }
    if template.lease_length >= LONG_LEASE {
        remarks.push(format!(
            "lease_length: what a client has that dies is nobody's for {}",
            humantime::format_duration(template.lease_length)
        ));
    }
    remarks
}

/// Prints what was made of policies, and what they do not do.
fn note_domains(template: &Template, domains: &Domains) {
    let glob = &template.glob;
    for change in &domains.changes {
        eprintln!("note: template \"{glob}\": {change}");
    }
    for remark in remarks_on_policies(&domains.policies.to_wire()) {
        eprintln!("note: template \"{glob}\": domains: {remark}");
    }
    for (which, share) in domains.policies.shares() {
        let Some(share) = share else { continue };
        let (capacity, parts) = (share.capacity(), share.parts());
        eprintln!(
            "note: template \"{glob}\": domains: {which}: {capacity} a second are leased for each domain, in {parts} part{}",
            if parts == 1 { "" } else { "s" }
        );
    }
    let reach = match domains.policies.scope() {
        Scope::Client => {
            "scope client: each client counts for itself, so a domain that reaches several clients may use as many \
             times as much"
        }
        Scope::Shared => {
            "scope shared: clients tell each other through servers that have the same domains, and may pass a limit by what \
             is still under way"
        }
        Scope::Strict => return,
    };
    eprintln!("note: template \"{glob}\": domains: {reach}");
}

/// Remarks on what is valid in policies of domains, and perhaps not what was meant.
fn remarks_on_policies(policies: &DomainPolicies) -> Vec<String> {
    let mut remarks = Vec::new();
    if policies.default.is_none() && !policies.r#override.is_empty() {
        remarks.push("there is no default: a domain that no override is for is refused".to_owned());
    }
    let default = policies.default.iter().map(|contract| ("default".to_owned(), contract));
    let overrides = policies.r#override.iter().map(|of| (format!("override \"{}\"", of.glob), &of.contract));
    for (which, contract) in default.chain(overrides) {
        for policy in &contract.policy {
            if policy.tier.is_empty() && policy.hard_limit.is_some() {
                remarks.push(format!("{which}: without tiers it is closed, and hard_limit means nothing"));
            }
            remarks.extend(remark_on_windows(policy).map(|remark| format!("{which}: {remark}")));
            for pair in policy.tier.windows(2) {
                let [rate, next] = [&pair[0], &pair[1]].map(per_second);
                if next < rate {
                    remarks.push(format!(
                        "{which}: {} in {} s after {} in {} s is no burst: {next} a second where there were {rate}",
                        pair[1].limit,
                        seconds(&pair[1]),
                        pair[0].limit,
                        seconds(&pair[0])
                    ));
                }
            }
        }
    }
    remarks
}

/// A remark on windows that are reset: what that lets through.
fn remark_on_windows(policy: &DomainPolicy) -> Option<String> {
    if policy.windows() == DomainWindows::Keep {
        return None;
    }
    // What has rested for a window has an empty one anyway.
    let resets = |tier: &&DomainTier| tier.cooldown_nanos.unwrap_or(0) < tier.window_nanos;
    Some(match policy.tier.iter().find(resets) {
        Some(tier) => format!(
            "windows reset: of a tier that is entered again earlier hits are forgotten, so up to {} may lie in a window of {} s",
            2 * u64::from(tier.limit),
            seconds(tier)
        ),
        None => "windows reset means nothing: each tier rests for a window at least".to_owned(),
    })
}

fn seconds(tier: &DomainTier) -> f64 {
    tier.window_nanos as f64 / 1e9
}

fn per_second(tier: &DomainTier) -> f64 {
    f64::from(tier.limit) / seconds(tier)
}
