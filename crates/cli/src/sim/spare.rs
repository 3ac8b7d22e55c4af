//! `lessor sim spare`: what is lost when clients that say nothing of what they want share a capacity by leases.

use std::io::{self, Write as _};

use anyhow::ensure;
use lessor_sim::spare::{SpareReport, SpareRun, SpareTraffic};

use super::range::Seeds;

/// The numbers of clients that share, if none is given.
const CLIENTS: [usize; 3] = [10, 100, 1_000];
/// For how long, in seconds, if no number is given.
const SECONDS: u64 = 30;
/// The longest that can be said: a day.
const MOST_SECONDS: u64 = 86_400;

/// As many servers as can be put between.
const MOST_LEAVES: usize = 1_000;

/// The legend of the columns.
const KEY: &str = "\
lost: refused, less what one limiter of the whole capacity refuses of the same requests; grants, reports: a client and second, those of
leaves among them; over: events after which more was believed than there is
";

/// The options of a comparison; absent: the usual ones.
pub(super) struct SpareComparison {
    pub(super) clients: Option<usize>,
    pub(super) leaves: Option<usize>,
    pub(super) seconds: Option<u64>,
    pub(super) seeds: Seeds,
    pub(super) json: bool,
}

// === impl SpareComparison ===

impl SpareComparison {
    /// Runs every traffic with every number of clients, and prints each row when it is there.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        let leaves = self.leaves.unwrap_or_default();
        ensure!(self.clients != Some(0), "--clients: found 0, wanted at least 1");
        ensure!(leaves <= MOST_LEAVES, "--leaves: found {leaves}, wanted a number from 0 to {MOST_LEAVES}");
        ensure!(
            (1..=MOST_SECONDS).contains(&seconds),
            "--seconds: found {seconds}, wanted a number from 1 to {MOST_SECONDS}"
        );
        let mut out = io::stdout();
        if !self.json {
            let Seeds { first, last } = self.seeds;
            writeln!(out, "{seconds} s with each of the seeds {first} to {last}, added up; {leaves} leaves")?;
            let columns = ["clients", "asked", "refused", "by one", "lost", "grants", "reports", "over"];
            writeln!(out, "{}", line("traffic", &columns.map(str::to_owned)))?;
        }
        for clients in self.clients.map_or(CLIENTS.to_vec(), |clients| vec![clients]) {
            for traffic in SpareTraffic::ALL {
                self.row(&mut out, &SpareRun { seconds, ..SpareRun::of(clients, traffic) }.below(leaves))?;
            }
        }
        if !self.json {
            write!(out, "{KEY}")?;
        }
        Ok(())
    }

    /// One traffic, with every seed.
    fn row(&self, out: &mut impl io::Write, run: &SpareRun) -> io::Result<()> {
        let reports = self.seeds.iter().map(|seed| run.play(seed));
        if self.json {
            for (seed, report) in self.seeds.iter().zip(reports) {
                writeln!(out, "{}", json_line(run, seed, &report))?;
            }
            return Ok(());
        }
        let sum = reports.fold(SpareReport::default(), plus);
        writeln!(out, "{}", row(run, &sum, self.seeds.count()))
    }
}

fn plus(one: SpareReport, other: SpareReport) -> SpareReport {
    SpareReport {
        asked: one.asked + other.asked,
        refused: one.refused + other.refused,
        refused_by_one: one.refused_by_one + other.refused_by_one,
        grants: one.grants + other.grants,
        repeated: one.repeated + other.repeated,
        reports: one.reports + other.reports,
        over: one.over + other.over,
    }
}

fn row(run: &SpareRun, sum: &SpareReport, seeds: u64) -> String {
    let client_seconds = run.clients as f64 * run.seconds as f64 * seeds as f64;
    let cells = [
        run.clients.to_string(),
        sum.asked.to_string(),
        sum.refused.to_string(),
        sum.refused_by_one.to_string(),
        format!("{:.2} %", 100.0 * sum.lost()),
        format!("{:.2}", sum.grants as f64 / client_seconds),
        format!("{:.2}", sum.reports as f64 / client_seconds),
        sum.over.to_string(),
    ];
    line(&run.traffic.to_string(), &cells)
}

fn json_line(run: &SpareRun, seed: u64, report: &SpareReport) -> serde_json::Value {
    serde_json::json!({
        "traffic": run.traffic.to_string(), "clients": run.clients, "leaves": run.leaves, "seconds": run.seconds, "seed": seed,
        "asked": report.asked, "refused": report.refused, "refused_by_one": report.refused_by_one,
        "lost": report.lost(), "grants": report.grants, "repeated": report.repeated, "reports": report.reports,
        "over": report.over,
    })
}

fn line(traffic: &str, figures: &[String; 8]) -> String {
    let figures: String = figures.iter().map(|figure| format!("{figure:>11}")).collect();
    format!("{traffic:<9}{figures}")
}
