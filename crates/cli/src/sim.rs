//! `lessor sim`: one of the seven scenarios, by our nodes and sessions or by Doorman's rules, and how it went; or a swarm of
//! small trees in which everything goes wrong, or a large one in which nothing does. Or burst tiers by themselves, or how well several clients keep to them.

mod big;
mod domains;
mod output;
mod raise;
mod range;
mod spare;
mod summary;
mod swarm;
mod tiers;
mod what;
mod windows;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lessor_client::internals::clock;
use lessor_sim::big::BigTree;
use lessor_sim::measure::Recording;
use lessor_sim::report::{self, ReportLine, ReportRun};
use lessor_sim::scenario::{self, Mode};
use lessor_sim::swarm::Options;
use lessor_sim::workload::{Scenario, Workload, trace};

use self::big::BigRun;
use self::domains::DomainsComparison;
use self::output::write;
use self::range::Seeds;
use self::what::What;
use self::windows::WindowsComparison;

/// Runs one of Doorman's seven scenarios in simulated time and prints its figures; or hunts for broken rules; or shows burst
/// tiers at work, by themselves or where several clients keep to them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Sim {
    #[command(subcommand)]
    alone: Option<Alone>,
    /// one, two, three (one server, whose master is lost), four (two levels), five, six, seven (three levels: calm, with two
    /// clients that want very much, with a fault a minute for an hour); swarm (small trees in which everything goes wrong,
    /// one a seed, with every rule looked at after every event); tree (many clients below three levels of servers); million (a
    /// million of them, while leaders die at every level); domains (one domain that reaches several clients: how well they
    /// keep to its tiers together, by each scope); spare (clients that say nothing of what they want: what is lost of what
    /// one limiter of the whole capacity would grant them); raise (one client that comes to want its share where nothing is
    /// free: how soon it has it, and how many grants that costs); windows (limits on the uses in any window, kept by ten
    /// holders together: how much of them is granted, and for how many messages)
    #[arg(value_name = "SCENARIO", required = true)]
    what: Option<What>,
    /// The seed of everything that is drawn
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// A run for each of these seeds, the last one included: 1..8 is 1 to 8
    #[arg(long, value_name = "A..B", conflicts_with = "seed")]
    seeds: Option<Seeds>,
    /// Take the wants from this file, X.trace.csv or X.trace.csv.gz, and the mishaps from X.mishaps.csv beside it; the seed
    /// then draws only what a trace leaves open
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// The system that shares the capacity: stream and poll are our nodes and sessions, doorman is Doorman's own
    /// simulated system
    #[arg(long, value_name = "stream|poll|doorman", default_value_t = Mode::Stream)]
    mode: Mode,
    /// Another system on the same wants and mishaps: it is run as well, and --out draws both into one picture, with what is
    /// believed beyond the capacity in red
    #[arg(long, value_name = "stream|poll|doorman", requires = "out")]
    beside: Option<Mode>,
    /// One line of JSON for each run: shares as fractions of 1, times in seconds
    #[arg(long)]
    json: bool,
    /// Write a table of every second and a picture of each run here, as SCENARIO_SEED_MODE.csv and .svg, and of two systems
    /// SCENARIO_SEED_MODE_MODE.svg; of a swarm swarm.svg, and of domains domains.svg
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Begin no further seed of a swarm after so many events
    #[arg(long, value_name = "N")]
    events: Option<u64>,
    /// Go on with the next seed of a swarm after one that breaks a rule, and name all of them in the end
    #[arg(long)]
    keep_going: bool,
    /// Lines of what happened before a rule was broken in a simulation of a swarm, 80 without it
    #[arg(long, value_name = "N")]
    lines: Option<usize>,
    /// Clients of a tree, 100000 or a million without it; or that a domain reaches, 4 and then 16 without it; or
    /// that share what is spare, 10, 100 and then 1000; or of a raise, 100 to 100000; or
    /// holders of windows, 10 without it
    #[arg(long, value_name = "N")]
    clients: Option<usize>,
    /// Simulated minutes of a tree; 10 without it
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Simulated seconds of domains, 600 without it; or of what is spare, 30
    #[arg(long, value_name = "N")]
    seconds: Option<u64>,
    /// Servers between the root and the clients that share what is spare, or of which one comes to want more, or that keep to
    /// windows; none without it
    #[arg(long, value_name = "N")]
    leaves: Option<usize>,
}

/// A subcommand with flags of its own.
#[derive(Debug, Subcommand)]
enum Alone {
    Tiers(Box<tiers::Tiers>),
}

// === impl Sim ===

impl Sim {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        match (&self.alone, self.what) {
            (Some(Alone::Tiers(tiers)), _) => tiers.run(),
            (None, Some(what)) => self.play(what),
            (None, None) => anyhow::bail!("SCENARIO: found none, wanted one; see lessor sim --help"),
        }
    }

    fn play(&self, what: What) -> anyhow::Result<()> {
        self.check(what)?;
        match what {
            What::Scenario(scenario) => self.scenario(scenario),
            What::Swarm => self.swarm(),
            What::Simulation | What::Million => self.settle(what),
            What::Domains => self.compare(),
            What::Spare => {
                let Sim { clients, seconds, leaves, json, .. } = *self;
                spare::SpareComparison { clients, leaves, seconds, seeds: self.seeds(), json }.run()
            }
            What::Raise => {
                let Sim { clients, leaves, json, .. } = *self;
                raise::RaiseComparison { clients, leaves, seeds: self.seeds(), json }.run()
            }
            What::Windows => {
                let Sim { clients: holders, leaves, json, .. } = *self;
                WindowsComparison { holders, leaves, seeds: self.seeds(), json }.run()
            }
        }
    }

    fn swarm(&self) -> anyhow::Result<()> {
        let mut options = Options { keep_going: self.keep_going, ..Options::default() };
        options.budget = self.events.unwrap_or(options.budget);
        options.lines = self.lines.unwrap_or(options.lines);
        swarm::run(self.seeds().iter(), &options, self.json, self.out.as_deref())
    }

    /// Whether every flag means something for what is to be run.
    fn check(&self, what: What) -> anyhow::Result<()> {
        let is_scenario = matches!(what, What::Scenario(_));
        let is_large = matches!(what, What::Simulation | What::Million);
        let is_shared = matches!(what, What::Domains | What::Spare);
        let is_of_leaves = matches!(what, What::Raise | What::Windows);
        let flags = [
            ("--trace", self.trace.is_some(), is_scenario),
            ("--out", self.out.is_some(), is_scenario || matches!(what, What::Swarm | What::Domains)),
            ("--beside", self.beside.is_some(), is_scenario),
            ("--mode", self.mode != Mode::Stream, is_scenario || is_large),
            ("--events", self.events.is_some(), what == What::Swarm),
            ("--keep-going", self.keep_going, what == What::Swarm),
            ("--lines", self.lines.is_some(), what == What::Swarm),
            ("--seeds", self.seeds.is_some(), !is_large),
            ("--clients", self.clients.is_some(), is_large || is_shared || is_of_leaves),
            ("--minutes", self.minutes.is_some(), is_large),
            ("--seconds", self.seconds.is_some(), is_shared),
            ("--leaves", self.leaves.is_some(), is_of_leaves || what == What::Spare),
        ];
        for (flag, given, meant) in flags {
            anyhow::ensure!(!given || meant, "{flag} means nothing for {what}");
        }
        anyhow::ensure!(
            self.beside != Some(self.mode),
            "--beside: found {}, wanted another one than --mode",
            self.mode
        );
        Ok(())
    }

    /// A large tree.
    fn settle(&self, what: What) -> anyhow::Result<()> {
        let usual = if what == What::Million { BigTree::million() } else { BigTree::default() };
        let tree = BigTree {
            clients: self.clients.unwrap_or(usual.clients),
            minutes: self.minutes.unwrap_or(usual.minutes),
            way: big::way(self.mode, what)?,
            ..usual
        };
        BigRun { tree: &tree, what, seed: self.seed, mode: self.mode }.run(self.json)
    }

    /// Clients that a domain reaches.
    fn compare(&self) -> anyhow::Result<()> {
        let Sim { clients, seconds, json, .. } = *self;
        DomainsComparison { clients, seconds, seeds: self.seeds(), json, out: self.out.clone() }.run()
    }

    fn scenario(&self, scenario: Scenario) -> anyhow::Result<()> {
        let modes: Vec<Mode> = [self.mode].into_iter().chain(self.beside).collect();
        let mut lines = vec![Vec::new(); modes.len()];
        for seed in self.seeds().iter() {
            let workload = self.workload(scenario, seed)?;
            let mut runs = Vec::new();
            for (&mode, lines) in modes.iter().zip(&mut lines) {
                let begun = clock::now();
                let recording = scenario::run(&workload, mode)?;
                let wall = clock::now().since(begun);
                let run = ReportRun { scenario, plan: &workload.plan, seed, mode };
                let line = ReportLine::new(&run, &recording, &recording.figures(), wall);
                if self.json {
                    println!("{}", line.json());
                }
                lines.push(line);
                runs.push((run, recording));
            }
            if let Some(directory) = &self.out {
                plot(directory, &runs)?;
            }
        }
        if !self.json {
            lines.iter().for_each(|lines| print!("{}", summary::text(lines)));
        }
        Ok(())
    }

    fn seeds(&self) -> Seeds {
        self.seeds.unwrap_or(Seeds { first: self.seed, last: self.seed })
    }

    fn workload(&self, scenario: Scenario, seed: u64) -> anyhow::Result<Workload> {
        match &self.trace {
            Some(path) => Ok(trace::open(path, scenario, seed)?),
            None => Ok(Workload::draw(scenario, seed)),
        }
    }
}

/// A table and a picture of each run, and one picture of several of the same workload.
fn plot(directory: &Path, runs: &[(ReportRun<'_>, Recording)]) -> anyhow::Result<()> {
    for (run, recording) in runs {
        let name = format!("{}_{}_{}", run.scenario, run.seed, run.mode);
        write(directory, &format!("{name}.csv"), &report::csv(run, recording))?;
        write(directory, &format!("{name}.svg"), &report::svg(run, recording))?;
    }
    if let [(run, _), (other, _)] = runs {
        let name = format!("{}_{}_{}_{}.svg", run.scenario, run.seed, run.mode, other.mode);
        write(directory, &name, &report::beside(runs))?;
    }
    Ok(())
}
