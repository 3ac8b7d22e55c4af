//! `lessor sim tree` and `lessor sim million`: very many clients below three levels of servers, to see how fast that goes,
//! and that nobody is given too much while leaders die.

use anyhow::ensure;
use lessor_client::internals::clock;
use lessor_sim::big::{BigReport, BigTree};
use lessor_sim::plan::Way;
use lessor_sim::scenario::Mode;
use serde_json::json;

use super::what::What;

/// The way in which the clients of a large tree ask.
pub(super) fn way(mode: Mode, what: What) -> anyhow::Result<Way> {
    match mode {
        Mode::Stream => Ok(Way::Stream),
        Mode::Poll => Ok(Way::Poll),
        Mode::Doorman => anyhow::bail!("--mode doorman means nothing for {what}; wanted stream or poll"),
    }
}

/// Runs it and prints how it went. The sum of what clients believe is looked at after every event.
pub(super) fn run(tree: &BigTree, what: What, seed: u64, mode: Mode, json: bool) -> anyhow::Result<()> {
    ensure!(tree.clients > 0, "--clients: found 0, wanted at least 1");
    ensure!(tree.minutes > 0, "--minutes: found 0, wanted at least 1");
    let begun = clock::now();
    let report = tree.run(seed)?;
    let wall_s = clock::now().since(begun).as_secs_f64();
    if json {
        println!("{}", line(tree, &report, what, seed, mode, wall_s));
        return Ok(());
    }
    println!(
        "{} clients below {} servers in {} levels, {} simulated minutes, {mode}",
        tree.clients,
        tree.sites(),
        tree.levels(),
        tree.minutes
    );
    println!(
        "{} events and {} messages in {wall_s:.1} s: {:.0} events a second",
        report.events,
        report.counts.messages(),
        report.events as f64 / wall_s
    );
    println!(
        "{} leaders died; never more than the capacity; in the end {:.2} % of what there is to have, after a minute never \
         less than {:.2} %",
        report.deaths,
        100.0 * report.believed,
        100.0 * report.least_believed
    );
    Ok(())
}

fn line(
    tree: &BigTree,
    report: &BigReport,
    what: What,
    seed: u64,
    mode: Mode,
    wall_s: f64,
) -> serde_json::Value {
    json!({
        "scenario": what.to_string(),
        "seed": seed,
        "mode": mode.name(),
        "clients": tree.clients,
        "simulated_s": 60 * tree.minutes,
        "events": report.events,
        "messages": report.counts.messages(),
        "leaders_died": report.deaths,
        // A run that breaks a rule ends with it.
        "overshoot_events": 0,
        "used_in_the_end": report.believed,
        "used_at_least": report.least_believed,
        "trace_hash": format!("{:016x}", report.hash),
        "wall_s": wall_s,
    })
}
