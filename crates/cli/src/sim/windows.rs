//! `lessor sim windows`: limits on the uses in any window that ten holders keep together, and how full they get.

use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::ensure;
use lessor_sim::windows::{WindowsReport, WindowsRun, WindowsTraffic};

use super::range::Seeds;

/// The limits, each with its window in seconds.
const LIMITS: [(u32, u64); 3] = [(100, 60), (10_000, 1), (5, 3_600)];
const TRAFFICS: [WindowsTraffic; 6] = [
    WindowsTraffic::Even(90),
    WindowsTraffic::Even(200),
    WindowsTraffic::One(200),
    WindowsTraffic::Moving(90),
    WindowsTraffic::Moving(200),
    WindowsTraffic::Bursts,
];
/// The most holders, and servers between.
const MOST: usize = 1_000;

/// The legend of the columns.
const KEY: &str = "\
granted: of the limit, in a window; at once: of what is granted, without a wait; wrong: refused while a unit was unspent anywhere, of all
requests; messages: of holders and leaves but heartbeats, for each use; over: uses beyond the limit in any window. Requests wait for
100 ms at the most; a message takes 1 to 20 ms; clocks are 1 % too fast or too slow
";

/// The options of a comparison; absent: the usual ones.
pub(super) struct WindowsComparison {
    pub(super) holders: Option<usize>,
    pub(super) leaves: Option<usize>,
    pub(super) seeds: Seeds,
    pub(super) json: bool,
}

// === impl WindowsComparison ===

impl WindowsComparison {
    /// Runs each limit with each traffic, and prints each row when it is there.
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let (holders, leaves) = (self.holders.unwrap_or(10), self.leaves.unwrap_or_default());
        ensure!(
            (1..=MOST).contains(&holders),
            "--clients: found {holders}, wanted a number from 1 to {MOST}"
        );
        ensure!(leaves <= MOST, "--leaves: found {leaves}, wanted a number from 0 to {MOST}");
        let mut out = io::stdout();
        if !self.json {
            let Seeds { first, last } = self.seeds;
            writeln!(
                out,
                "{holders} holders below {leaves} leaves, 12 windows with each of the seeds {first} to {last}"
            )?;
            let columns = ["asked", "granted", "at once", "wrong", "messages", "most", "over"];
            writeln!(out, "{}", line("limit", "requests", &columns.map(str::to_owned)))?;
        }
        for (limit, seconds) in LIMITS {
            for traffic in TRAFFICS {
                let run = WindowsRun { holders, leaves, ..WindowsRun::of(limit, seconds, traffic) };
                self.row(&mut out, &run)?;
            }
        }
        if !self.json {
            write!(out, "{KEY}")?;
        }
        Ok(())
    }

    /// One limit and traffic, with every seed.
    fn row(&self, out: &mut impl io::Write, run: &WindowsRun) -> io::Result<()> {
        let mut sum = WindowsReport::default();
        for seed in self.seeds.iter() {
            let report = run.play(seed);
            if self.json {
                writeln!(out, "{}", json_line(run, seed, &report))?;
            }
            sum = plus(sum, report);
        }
        if self.json {
            return Ok(());
        }
        let limit = format!("{} in {}", run.limit, seconds(run.window));
        let cells = [
            sum.asked.to_string(),
            format!("{:.1} %", 100.0 * sum.share / self.seeds.count() as f64),
            format!("{:.1} %", 100.0 * sum.at_once as f64 / sum.granted.max(1) as f64),
            format!("{:.2} %", 100.0 * sum.wrong()),
            format!("{:.2}", sum.messages_a_use()),
            sum.most.to_string(),
            sum.over.to_string(),
        ];
        writeln!(out, "{}", line(&limit, &run.traffic.to_string(), &cells))
    }
}

/// Both together; of shares the sum.
fn plus(one: WindowsReport, other: WindowsReport) -> WindowsReport {
    WindowsReport {
        asked: one.asked + other.asked,
        granted: one.granted + other.granted,
        at_once: one.at_once + other.at_once,
        wrongly_refused: one.wrongly_refused + other.wrongly_refused,
        most: one.most.max(other.most),
        over: one.over + other.over,
        share: one.share + other.share,
        messages: one.messages + other.messages,
        ..one
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

fn json_line(run: &WindowsRun, seed: u64, report: &WindowsReport) -> serde_json::Value {
    serde_json::json!({
        "limit": run.limit, "window_s": run.window.as_secs_f64(), "requests": run.traffic.to_string(),
        "holders": run.holders, "leaves": run.leaves, "seed": seed,
        "asked": report.asked, "granted": report.granted, "at_once": report.at_once, "share": report.share,
        "wrong": report.wrong(), "messages_a_use": report.messages_a_use(), "most": report.most, "over": report.over,
    })
}

fn line(limit: &str, traffic: &str, figures: &[String; 7]) -> String {
    let figures: String = figures.iter().map(|figure| format!("{figure:>10}")).collect();
    format!("{limit:<14}{traffic:<15}{figures}")
}
