//! `lessor sim raise`: how soon a client that comes to want its share has it where nothing is free, and what that costs.

use std::io::{self, Write as _};

use anyhow::ensure;
use lessor_sim::raise::{RaiseReport, RaiseRun};

use super::range::Seeds;

/// The numbers of clients, if none is given.
const CLIENTS: [usize; 4] = [100, 1_000, 10_000, 100_000];
/// The most servers that can be put between.
const MOST_LEAVES: usize = 1_000;

/// The legend of the columns.
const KEY: &str = "\
time: until it has 98 % of its share, in the median of the seeds and at the most; trips: that in round trips to the root; grants: of all
servers within a second, the most; steps: of them those to the client; allowed: the most recalls that such a gain is worth; least: the
least part of what is due to it that anybody has in the end; rough: messages take up to half as long again, one in a hundred is lost and
comes 200 ms later
";

/// The options of a comparison; absent: the usual ones.
pub(super) struct RaiseComparison {
    pub(super) clients: Option<usize>,
    pub(super) leaves: Option<usize>,
    pub(super) seeds: Seeds,
    pub(super) json: bool,
}

// === impl RaiseComparison ===

impl RaiseComparison {
    /// Runs every number of clients over a network that is calm, and one that is rough, and prints each row when it is there.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let leaves = self.leaves.unwrap_or_default();
        ensure!(
            self.clients.is_none_or(|clients| clients >= 2),
            "--clients: found {}, wanted at least 2",
            self.clients.unwrap_or_default()
        );
        ensure!(leaves <= MOST_LEAVES, "--leaves: found {leaves}, wanted a number from 0 to {MOST_LEAVES}");
        let mut out = io::stdout();
        if !self.json {
            let Seeds { first, last } = self.seeds;
            writeln!(out, "each of the seeds {first} to {last}; {leaves} leaves")?;
            let columns =
                ["clients", "time ms", "most ms", "trips", "most", "grants", "steps", "allowed", "least"];
            writeln!(out, "{}", line("network", &columns.map(str::to_owned)))?;
        }
        for clients in self.clients.map_or(CLIENTS.to_vec(), |clients| vec![clients]) {
            let calm = RaiseRun::even(clients).below(leaves);
            self.row(&mut out, "calm", &calm)?;
            self.row(&mut out, "rough", &calm.rough())?;
        }
        if !self.json {
            write!(out, "{KEY}")?;
        }
        Ok(())
    }

    /// One network, with every seed.
    fn row(&self, out: &mut impl io::Write, network: &str, run: &RaiseRun) -> anyhow::Result<()> {
        let mut reports = Vec::new();
        for seed in self.seeds.iter() {
            let report = run.play(seed)?;
            if self.json {
                writeln!(out, "{}", json_line(run, network, seed, &report))?;
            }
            reports.push(report);
        }
        if !self.json {
            writeln!(out, "{}", row(run, network, &reports))?;
        }
        Ok(())
    }
}

fn row(run: &RaiseRun, network: &str, reports: &[RaiseReport]) -> String {
    // Who has not come to it has waited for ever.
    let mut trips: Vec<f64> =
        reports.iter().map(|report| report.round_trips().unwrap_or(f64::INFINITY)).collect();
    trips.sort_by(f64::total_cmp);
    let (median, most) = (trips[trips.len() / 2], trips[trips.len() - 1]);
    let trip = reports[0].round_trip.as_secs_f64() * 1e3;
    let most_of = |count: fn(&RaiseReport) -> u64| reports.iter().map(count).max().unwrap_or_default();
    let least = reports.iter().map(|report| report.least).fold(f64::INFINITY, f64::min);
    let cells = [
        run.book.len().to_string(),
        format!("{:.0}", median * trip),
        format!("{:.0}", most * trip),
        format!("{median:.2}"),
        format!("{most:.2}"),
        most_of(RaiseReport::sent).to_string(),
        most_of(|report| report.steps).to_string(),
        format!("{:.0}", reports[0].most()),
        format!("{:.2} %", 100.0 * least),
    ];
    line(network, &cells)
}

fn json_line(run: &RaiseRun, network: &str, seed: u64, report: &RaiseReport) -> serde_json::Value {
    serde_json::json!({
        "network": network, "clients": run.book.len(), "leaves": run.leaves, "seed": seed,
        "took_s": report.took.map(|took| took.as_secs_f64()), "round_trips": report.round_trips(),
        "grants": report.sent(), "steps": report.steps, "allowed": report.most(),
        "had": report.had, "due": report.due, "least": report.least,
    })
}

fn line(network: &str, figures: &[String; 9]) -> String {
    let figures: String = figures.iter().map(|figure| format!("{figure:>10}")).collect();
    format!("{network:<8}{figures}")
}
