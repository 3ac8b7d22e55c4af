//! `lessor sim tiers`: a policy and a pattern of arrivals in, a picture of what the tiers do out.

mod policy;
mod summary;

use std::fs::{self, File};
use std::io::{BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::{ArgGroup, Args};
use lessor_client::internals::clock;
use lessor_sim::tiers::{
    Arrival, COLUMNS, History, Pattern, TextStyle, TierLine, TiersFigures, arrivals, csv, read_arrivals, run,
    svg, text,
};

use self::policy::Follows;

/// Shows what burst tiers make of requests: which tier is current, what cools down, what is granted and what is refused.
///
/// Five a second, or fifty in five seconds and then not again for fifteen; asked by somebody who wants twenty a second:
///
///   lessor sim tiers --tier 5/1s --tier 50/5s:5s:15s --arrive 20/s
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("requests").args(["arrive", "arrivals"]).required(true).multiple(true))]
pub(crate) struct Tiers {
    #[command(flatten)]
    follows: Follows,
    /// When requests come: 5/s, 300/min, poisson 5/s, burst 60@3s, every 15s: 50; behind any but a burst from when until when,
    /// 5/s@10s..20s, and for how long in turn, 5/s on 2s off 8s. Several add up
    #[arg(long, value_name = "PATTERN")]
    arrive: Vec<Pattern>,
    /// Requests from a table as well: a row each, of the second, the copies and the least of use; the last two may be absent
    #[arg(long, value_name = "FILE.csv")]
    arrivals: Option<PathBuf>,
    /// Each request asks for so many hits
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    copies: u32,
    /// The least that is of use to it, or else it takes none
    #[arg(long, value_name = "N", default_value_t = 1)]
    min: u32,
    /// When other domains of the same resource make one hit each; a global limit counts them
    #[arg(long, value_name = "PATTERN")]
    others: Vec<Pattern>,
    /// For how long
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = positive)]
    time: Duration,
    /// Requests at random are drawn from this number
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// One line of JSON: times in seconds
    #[arg(long)]
    json: bool,
    /// Write a table of every request and a picture here, as tiers.csv and tiers.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Of what is no terminal.
const WIDTH: usize = 80;

// === impl Tiers ===

impl Tiers {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        ensure!(
            self.min <= self.copies,
            "--min: found {}, wanted at most --copies, {}",
            self.min,
            self.copies
        );
        let contract = self.follows.contract()?;
        ensure!(
            self.others.is_empty() || contract.global_limit().is_some(),
            "--others means nothing without a global limit"
        );
        let end = u64::try_from(self.time.as_nanos()).unwrap_or(u64::MAX);
        let asked = self.requests(end)?;
        let others = arrivals(&self.others, 1, 1, end, self.seed.wrapping_add(1)).context("--others")?;
        let begun = clock::now();
        let history = run(&contract, &asked, &others, end);
        let wall = clock::now().since(begun);
        if let Some(directory) = &self.out {
            write(directory, &history)?;
        }
        match self.json {
            true => println!("{}", TierLine::new(&history, self.seed, wall).json()),
            false => print!("{}\n{}", text(&history, look()), summary::text(&TiersFigures::new(&history))),
        }
        Ok(())
    }

    /// All requests, in the order of their times.
    fn requests(&self, end: u64) -> anyhow::Result<Vec<Arrival>> {
        let mut asked = arrivals(&self.arrive, self.copies, self.min, end, self.seed).context("--arrive")?;
        if let Some(path) = &self.arrivals {
            let name = path.display();
            let file = File::open(path).with_context(|| name.to_string())?;
            let rows = read_arrivals(BufReader::new(file), self.copies, self.min)
                .map_err(|error| anyhow::anyhow!("{name}:{error}"))?;
            let late = rows.iter().filter(|row| row.at >= end).count();
            if late > 0 {
                let time = humantime::format_duration(self.time);
                eprintln!("note: {name}: {late} of {} rows are later than --for {time}", rows.len());
            }
            asked.extend(rows);
            asked.sort_by_key(|arrival| arrival.at);
        }
        Ok(asked)
    }
}

fn look() -> TextStyle {
    let is_terminal = std::io::stdout().is_terminal();
    let has_colours = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let width = match ratatui::crossterm::terminal::size() {
        Ok((columns, _)) if is_terminal => usize::from(columns).min(COLUMNS),
        _ => WIDTH,
    };
    TextStyle { width, has_colours }
}

fn write(directory: &Path, history: &History) -> anyhow::Result<()> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    for (name, text) in [("tiers.csv", csv(history)), ("tiers.svg", svg(history))] {
        let path = directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn positive(text: &str) -> anyhow::Result<Duration> {
    let time = humantime::parse_duration(text)?;
    let is_known = !time.is_zero() && time.as_nanos() <= u128::from(u64::MAX);
    ensure!(is_known, "found {text:?}, wanted a time from 1ns to 584 years");
    Ok(time)
}
