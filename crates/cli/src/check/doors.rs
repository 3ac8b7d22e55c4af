//! `lessor check --doors`: how each limit of doors is kept, and whether the templates of servers have what it needs.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use lessor_doors::rules::kept::Kept;
use lessor_doors::rules::templates::{POOL_GLOB, glob};
use lessor_doors::rules::{Limit, LimitKind, Matcher, RuleBook, RuleSet};
use lessor_doors::shell::KeyBounds;
use lessor_proto::{Amount, ResourceId};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Kind, Repository, Template};
use lessor_server::shell::source;

use super::{is_standard_input, name};
use crate::doors::{Counted, RuleFiles};

/// The rules of doors to check.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Doors")]
pub(super) struct DoorChecks {
    /// A file with rules of doors: it says of each limit how it is kept. With FILE besides, each has to have its template there
    #[arg(long, value_name = "FILE")]
    doors: Option<PathBuf>,
    /// A file of envoyproxy/ratelimit, or a directory of them, in the same way
    #[arg(long, value_name = "PATH")]
    ratelimit: Vec<PathBuf>,
    /// The number of processes with doors for which that is said
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    door_count: u32,
}

// === impl DoorChecks ===

impl DoorChecks {
    /// Checks the rules, if there are any, against the templates of these files.
    pub(super) fn run(&self, configurations: &[PathBuf]) -> Option<anyhow::Result<()>> {
        let is_any = self.doors.is_some() || !self.ratelimit.is_empty();
        is_any.then(|| self.check(configurations))
    }

    fn check(&self, configurations: &[PathBuf]) -> anyhow::Result<()> {
        let files = RuleFiles {
            doors: self.doors.clone(),
            ratelimit: self.ratelimit.clone(),
            ..RuleFiles::default()
        };
        let book = files.load()?;
        for set in book.sets() {
            for (never, before) in never_met(set) {
                eprintln!("note: {never} is never met: {before} takes all of it, and stops there");
            }
            for (rule, limit) in set.limits() {
                let kept = Kept::new(limit, self.door_count, book.wait);
                println!("{rule}: {limit}, {}, of {}", kept.kind, glob(limit));
                kept.to_string().lines().for_each(|line| println!("    {line}"));
            }
        }
        if let Some(most) = book.pool {
            println!("pool: up to {most} workers of a key, as requests name them, of {POOL_GLOB}");
            println!(
                "    never more work at a time over all doors; a queue is bounded at each door by itself"
            );
        }
        if has_keys(&book) {
            let (door, server) = (KeyBounds::default().most, NodeConfig::RESOURCES_PER_STREAM);
            println!(
                "keys: with the defaults a process remembers {door} of a limit at a time, and its server takes {server}"
            );
            println!(
                "    of all its limits (--max-keys and --max-resources-per-stream); others are as without a lease"
            );
        }
        let mut wrong = Vec::new();
        for file in configurations {
            if is_standard_input(file) {
                bail!("FILE is -, which is read already; wanted a file beside --doors");
            }
            // What is wrong with a configuration is said where that is checked.
            if let Ok(repository) = source::load(file) {
                wrong.extend(unfit(&book, &repository, file));
            }
        }
        println!("{}: valid, {}, at {} doors", files.names(), Counted(&book), self.door_count);
        match wrong.len() {
            0 => Ok(()),
            1 => bail!("{}", wrong[0]),
            count => {
                wrong.iter().for_each(|fault| eprintln!("error: {fault}"));
                bail!("{count} limits have no template that fits; lessor import prints those that do")
            }
        }
    }
}

/// Whether each key of some limit is a resource of its own.
fn has_keys(book: &RuleBook) -> bool {
    let by_keys = |limit: &Limit| matches!(limit.kind, LimitKind::Exact | LimitKind::Concurrency);
    book.pool.is_some() || book.sets().iter().flat_map(RuleSet::limits).any(|(_, limit)| by_keys(limit))
}

/// The rules that no request meets, each with the one before it that takes its requests.
fn never_met(set: &RuleSet) -> Vec<(&str, &str)> {
    let name = |rule: usize| &*set.rules[rule].name;
    match &set.matcher {
        Matcher::Tree(_) => Vec::new(),
        Matcher::Table(table) => {
            table.shadowed().into_iter().map(|(never, before)| (name(never), name(before))).collect()
        }
    }
}

/// The faults of templates for the limits of a book.
fn unfit(book: &RuleBook, repository: &Repository, file: &Path) -> Vec<String> {
    let mut wrong = Vec::new();
    let limits = book.sets().iter().flat_map(RuleSet::limits);
    for (rule, limit) in limits.filter(|(_, limit)| limit.units > 0) {
        let resource = match limit.kind {
            LimitKind::Exact | LimitKind::Concurrency => format!("{}key", limit.resource),
            LimitKind::Flow | LimitKind::Shared(_) => limit.resource.to_string(),
        };
        let template = ResourceId::new(resource.as_str(), 256).ok().and_then(|id| repository.find(&id));
        let fault = match template {
            None => Some(format!("has no template; wanted one for \"{}\"", glob(limit))),
            Some(template) => misfit(limit, &template),
        };
        wrong.extend(fault.map(|fault| format!("{}: {limit} of {rule} {fault}", name(file))));
    }
    let fault = book.pool.and_then(|most| pool_misfit(most, repository));
    wrong.extend(fault.map(|fault| format!("{}: pool {fault}", name(file))));
    wrong
}

/// The reason why no template keeps PoolCounter's keys, of up to so many workers.
fn pool_misfit(most: u32, repository: &Repository) -> Option<String> {
    let id = |workers: u32| ResourceId::new(format!("pool|w:{workers}|key"), 256).ok();
    let find = |workers| id(workers).and_then(|id| repository.find(&id));
    let wanted =
        format!("wanted one for \"{POOL_GLOB}\" with kind: gauge, workers: in_name and a capacity of {most}");
    match (find(1), find(most)) {
        (None, _) => Some(format!("has no template; {wanted}")),
        (Some(template), _) if template.kind != Kind::Gauge || !template.workers_in_name => Some(format!(
            "has template \"{}\", which is no gauge whose names say how many workers there are; {wanted}",
            template.glob
        )),
        (Some(template), None) => {
            Some(format!("has template \"{}\" with a capacity below {most}; {wanted}", template.glob))
        }
        (Some(_), Some(_)) => None,
    }
}

/// The reason why a template does not keep a limit.
fn misfit(limit: &Limit, template: &Template) -> Option<String> {
    let wrong = |field: &str, found: String, wanted: String| {
        Some(format!("has template \"{}\" with {field} {found}; wanted {wanted}", template.glob))
    };
    let (kind, window, capacity) = match &limit.kind {
        LimitKind::Exact | LimitKind::Concurrency => (Kind::Gauge, Some(limit.window.length()), limit.units),
        LimitKind::Flow => (Kind::Rate, None, limit.units),
        LimitKind::Shared(shared) => (Kind::Rate, None, shared.capacity),
    };
    let shown = |window: Option<std::time::Duration>| {
        window.map_or_else(|| "none".to_owned(), |window| humantime::format_duration(window).to_string())
    };
    if template.kind != kind {
        return wrong(
            "kind",
            format!("{:?}", template.kind).to_lowercase(),
            format!("{kind:?}").to_lowercase(),
        );
    }
    if template.window != window {
        return wrong("window", shown(template.window), shown(window));
    }
    if template.capacity != Amount::from_units(capacity.into()) {
        return wrong("capacity", template.capacity.to_string(), capacity.to_string());
    }
    if matches!(limit.kind, LimitKind::Shared(_)) && template.domains.is_none() {
        return wrong("domains", "none".to_owned(), "those of the rule".to_owned());
    }
    None
}
