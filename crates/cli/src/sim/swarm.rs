//! `lessor sim swarm`: one small simulated tree a seed, each with other faults, until a rule is broken.

use std::io::IsTerminal as _;
use std::path::Path;

use anyhow::bail;
use lessor_client::internals::clock;
use lessor_sim::swarm::{self, Options, SwarmReport, run_one};
use serde_json::json;

/// The number of seeds after which a terminal is told again how far it has come.
const NEWS: u64 = 50;

/// Runs the simulation of each seed and prints what went wrong in them. Fails at the first that breaks a rule, with its story; or
/// where it is to keep going, in the end.
pub(super) fn run(
    seeds: impl Iterator<Item = u64>,
    options: &Options,
    json: bool,
    out: Option<&Path>,
) -> anyhow::Result<()> {
    let (begun, mut report) = (clock::now(), SwarmReport::default());
    let terminal = std::io::stderr().is_terminal();
    for seed in seeds {
        if report.events >= options.budget {
            break;
        }
        report.add(run_one(seed, options));
        if !report.violations.is_empty() && !options.keep_going {
            break;
        }
        if terminal && report.seeds % NEWS == 0 {
            eprint!("\r{} seeds, {} events", report.seeds, report.events);
        }
    }
    if terminal {
        eprint!("\r\x1b[K");
    }
    if let Some(directory) = out {
        super::output::write(directory, "swarm.svg", &swarm::svg(&report))?;
    }
    let wall_s = clock::now().since(begun).as_secs_f64();
    match json {
        true => println!("{}", line(&report, wall_s)),
        false => println!("{report}took {wall_s:.1} s"),
    }
    match &report.violations[..] {
        [] => Ok(()),
        [one] => bail!("seed {} breaks a rule; see it again: lessor sim swarm --seed {0}", one.seed),
        many => {
            let seeds: Vec<String> = many.iter().map(|violation| violation.seed.to_string()).collect();
            bail!("{} seeds break a rule: {}", many.len(), seeds.join(", "))
        }
    }
}

fn line(report: &SwarmReport, wall_s: f64) -> serde_json::Value {
    let faults: serde_json::Map<_, _> =
        report.faults.counts().map(|(name, count)| (name.to_owned(), count.into())).collect();
    json!({
        "scenario": "swarm",
        "seeds": report.seeds,
        "events": report.events,
        "messages": report.messages,
        "faults": faults,
        "violations": report.violations.len(),
        "trace_hash": format!("{:016x}", report.hash),
        "wall_s": wall_s,
    })
}
