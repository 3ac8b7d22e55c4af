//! `lessor sim domains`: how well the clients that a domain reaches keep to its tiers together, scope by scope.

use std::io::{self, Write as _};
use std::path::PathBuf;

use anyhow::ensure;
use lessor_client::internals::clock;
use lessor_sim::tenants::{self, TenantsLine, TenantsReport, TenantsRun, TenantsTraffic, TenantsWay};

use super::range::Seeds;

/// The numbers of clients that a domain reaches, if no number is given.
const CLIENTS: [usize; 2] = [4, 16];
/// The levels of servers of the deepest tree.
const LEVELS: u32 = 3;
/// For how long requests come, in seconds, if no number is given.
const SECONDS: u64 = 600;
/// The longest that can be said: a year.
const MOST_SECONDS: u64 = 31_536_000;

/// The legend of the columns.
const KEY: &str = "\
levels: of servers, with two leaves below a root, or with four below two nodes; over: granted beyond one who is asked for
every hit; incorrect: refused, where whoever knew all hits would have granted it; unexcused: those of them that no message
explains that was still under way; messages: of all kinds, those for leases among them, up and down, a client and second
";

/// The options of a comparison.
#[derive(Clone, Debug)]
pub(super) struct DomainsComparison {
    /// Only so many clients.
    pub(super) clients: Option<usize>,
    /// For how long requests come.
    pub(super) seconds: Option<u64>,
    /// The seeds, which people see added up.
    pub(super) seeds: Seeds,
    /// A line for each seed instead.
    pub(super) json: bool,
    /// The directory for a picture of the rows.
    pub(super) out: Option<PathBuf>,
}

// === impl DomainsComparison ===

impl DomainsComparison {
    /// Runs every scope with every traffic, and prints each row when it is there.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        ensure!(self.clients != Some(0), "--clients: found 0, wanted at least 1");
        ensure!(
            (1..=MOST_SECONDS).contains(&seconds),
            "--seconds: found {seconds}, wanted a number from 1 to {MOST_SECONDS}"
        );
        let rows = if self.json { self.lines(seconds)? } else { self.table(seconds)? };
        if let Some(directory) = &self.out {
            super::output::write(directory, "domains.svg", &tenants::svg(&rows, &self.about(seconds)))?;
        }
        Ok(())
    }

    /// Returns the rows: the sums over the seeds.
    fn lines(&self, seconds: u64) -> anyhow::Result<Vec<(TenantsRun, TenantsReport)>> {
        let mut rows = Vec::new();
        for run in self.runs(seconds) {
            let mut sum = TenantsReport::default();
            for seed in self.seeds.iter() {
                let begun = clock::now();
                let report = run.play(seed);
                let line = TenantsLine::new(&run, seed, report, clock::now().since(begun));
                writeln!(io::stdout(), "{}", line.json())?;
                sum = sum.plus(report);
            }
            rows.push((run, sum));
        }
        Ok(rows)
    }

    /// Returns the rows as well.
    fn table(&self, seconds: u64) -> anyhow::Result<Vec<(TenantsRun, TenantsReport)>> {
        let (mut out, mut rows) = (io::stdout(), Vec::new());
        writeln!(out, "{}\n{}", self.title(seconds), head())?;
        for run in self.runs(seconds) {
            let sum = self
                .seeds
                .iter()
                .map(|seed| run.play(seed))
                .fold(TenantsReport::default(), TenantsReport::plus);
            writeln!(out, "{}", row(&run, &sum, self.seeds.count()))?;
            rows.push((run, sum));
        }
        write!(out, "{KEY}")?;
        Ok(rows)
    }

    fn runs(&self, seconds: u64) -> impl Iterator<Item = TenantsRun> + use<> {
        let counts = self.clients.map_or(CLIENTS.to_vec(), |clients| vec![clients]);
        TenantsWay::SCOPES.into_iter().flat_map(move |way| {
            let counts = counts.clone();
            // Only clients that tell each other what they do depend on where they meet.
            let levels = if matches!(way, TenantsWay::Shared(_)) { 1..=LEVELS } else { 1..=1 };
            levels.flat_map(move |levels| {
                let counts = counts.clone();
                TenantsTraffic::ALL.into_iter().flat_map(move |traffic| {
                    let run = TenantsRun {
                        traffic,
                        way,
                        levels,
                        seconds,
                        contract: way.contract(),
                        ..TenantsRun::default()
                    };
                    counts.clone().into_iter().map(move |clients| TenantsRun { clients, ..run.clone() })
                })
            })
        })
    }

    fn title(&self, seconds: u64) -> String {
        let TenantsRun { rate, delay, .. } = TenantsRun::default();
        let [usual, strict] = [TenantsRun::default().way, TenantsWay::Strict].map(|way| {
            let run = TenantsRun { contract: way.contract(), ..TenantsRun::default() };
            run.policy()
        });
        format!(
            "policy {usual}; strict, as a lease does not burst and rest: {strict}\n\
             {rate} requests a second of all clients together while the domain is busy, for {seconds} s; {} ms from \
             one to the next; {}",
            delay.as_millis(),
            self.which_seeds()
        )
    }

    /// The line below the title of the picture.
    fn about(&self, seconds: u64) -> String {
        let TenantsRun { rate, .. } = TenantsRun::default();
        format!(
            "{rate} requests a second of all clients together while the domain is busy, for {seconds} s; {}; strict has \
             another policy, without bursts",
            self.which_seeds()
        )
    }

    fn which_seeds(&self) -> String {
        let Seeds { first, last } = self.seeds;
        if first == last { format!("seed {first}") } else { format!("seeds {first} to {last} added up") }
    }
}

fn head() -> String {
    line(
        "scope",
        "traffic",
        &["levels", "clients", "asked", "granted", "over", "refused", "incorrect", "unexcused", "messages"],
    )
}

/// The row for the sum of some runs, which differ by their seeds.
fn row(run: &TenantsRun, sum: &TenantsReport, seeds: u64) -> String {
    let client_seconds = run.clients as f64 * run.seconds as f64 * seeds as f64;
    let cells = [
        run.levels.to_string(),
        run.clients.to_string(),
        sum.asked.to_string(),
        sum.granted.to_string(),
        format!("{:+.1} %", 100.0 * sum.over()),
        sum.refused.to_string(),
        sum.incorrect.to_string(),
        sum.unexcused.to_string(),
        format!("{:.1}", sum.messages as f64 / client_seconds),
    ];
    line(&run.way.to_string(), &run.traffic.to_string(), &cells.each_ref().map(String::as_str))
}

/// Columns of one width, as rows come before the last of them is known.
fn line(scope: &str, traffic: &str, figures: &[&str; 9]) -> String {
    let figures: String = figures.iter().map(|figure| format!("{figure:>11}")).collect();
    format!("{scope:<19}{traffic:<7}{figures}")
}
