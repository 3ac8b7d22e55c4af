//! `lessor sim tree` and `lessor sim million`: very many clients below three levels of servers, to see how fast that goes,
//! and that nobody is given too much while leaders die.

use anyhow::ensure;
use lessor_client::internals::clock;
use lessor_sim::big::{BigReport, BigTree};
use lessor_sim::plan::Way;
use lessor_sim::scenario::Mode;
use serde_json::json;

use super::what::What;

/// One run of a large tree, as the command describes it.
pub(super) struct BigRun<'a> {
    pub(super) tree: &'a BigTree,
    /// The scenario, by which the tree is known.
    pub(super) what: What,
    pub(super) seed: u64,
    pub(super) mode: Mode,
}

/// The way in which the clients of a large tree ask.
pub(super) fn way(mode: Mode, what: What) -> anyhow::Result<Way> {
    match mode {
        Mode::Stream => Ok(Way::Stream),
        Mode::Poll => Ok(Way::Poll),
        Mode::Doorman => anyhow::bail!("--mode doorman means nothing for {what}; wanted stream or poll"),
    }
}

// === impl BigRun ===

impl BigRun<'_> {
    /// Runs it and prints how it went. The sum of what clients believe is looked at after every event.
    pub(super) fn run(&self, json: bool) -> anyhow::Result<()> {
        let (tree, mode) = (self.tree, self.mode);
        ensure!(tree.clients > 0, "--clients: found 0, wanted at least 1");
        ensure!(tree.minutes > 0, "--minutes: found 0, wanted at least 1");
        let begun = clock::now();
        let report = tree.run(self.seed)?;
        let wall_s = clock::now().since(begun).as_secs_f64();
        if json {
            println!("{}", self.line(&report, wall_s));
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

    fn line(&self, report: &BigReport, wall_s: f64) -> serde_json::Value {
        json!({
            "scenario": self.what.to_string(),
            "seed": self.seed,
            "mode": self.mode.name(),
            "clients": self.tree.clients,
            "simulated_s": 60 * self.tree.minutes,
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
}
