//! Many small simulations in which everything goes wrong, each from its own seed.
//!
//! A seed decides the tree, the clients, the resources, the clocks, and which kinds of faults there are and how often:
//! each simulation has some of them, so that none hides another. Leases are short against the delays in half of the simulations, as
//! the rules about time are hardly ever put to the test otherwise. In the end the faults stop: after a while everybody
//! must have its share, and where all stream nobody must have anything to say.
//!
//! ```
//! use lessor_sim::swarm::{Options, run};
//!
//! let report = run(0..3, &Options::default());
//! assert!(report.violations.is_empty(), "{report}");
//! assert!(report.events > 1_000);
//! ```

mod draw;
mod picture;

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lessor_client::Transport;
use lessor_proto::Time;

pub use self::draw::plan;
pub use self::picture::svg;
use crate::faults::{Fault, Tally};
use crate::oracle::Violation;
use crate::plan::{Election, SimulationPlan, Way};
use crate::simulation::{Counts, Simulation};

/// The options of a swarm.
#[derive(Clone, Debug)]
pub struct Options {
    /// No further seed is begun after so many events.
    pub budget: u64,
    /// Go on after a violation.
    pub keep_going: bool,
    /// Sites have no parents.
    pub flat: bool,
    /// Nobody streams.
    pub polling: bool,
    /// The time for which things go wrong in each simulation.
    pub faulty: Duration,
    /// The fault that never happens.
    pub without: Vec<Fault>,
    /// Whether everybody must have its share when the faults are over; else a simulation ends with them.
    pub judged: bool,
    /// The number of lines that a violation shows of what happened before it.
    pub lines: usize,
    /// A rule of a mind that is broken on purpose.
    #[cfg(feature = "mutations")]
    pub mutation: Option<crate::mutation::Mutation>,
}

/// The outcome of a swarm.
#[derive(Clone, Default, Debug)]
pub struct SwarmReport {
    /// Seeds run.
    pub seeds: u64,
    /// Events in all of them.
    pub events: u64,
    /// The number of messages sent.
    pub messages: u64,
    /// Hits that limiters let through.
    pub hits: u64,
    /// Operations under permits of gauges.
    pub operations: u64,
    /// Leases of companions.
    pub companions: u64,
    /// Units that second limits were asked for, of which a root has heard.
    pub beside: u64,
    /// The faults that happened.
    pub faults: Tally,
    /// All hashes together.
    pub hash: u64,
    /// The violations of rules.
    pub violations: Vec<Violation>,
}

/// The outcome of one simulation.
#[derive(Clone, Debug)]
pub struct SwarmRun {
    /// Events in it.
    pub events: u64,
    /// The counts of what was sent.
    pub counts: Counts,
    /// The faults that happened.
    pub faults: Tally,
    /// Of everything that happened.
    pub hash: u64,
    /// The violation of a rule, if there was one.
    pub violation: Option<Violation>,
}

// === impl Options ===

impl Default for Options {
    fn default() -> Options {
        Options {
            budget: u64::MAX,
            keep_going: false,
            flat: false,
            polling: false,
            faulty: Duration::from_secs(60),
            without: Vec::new(),
            judged: true,
            lines: crate::trace::KEPT,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}

/// Runs the simulation of each seed.
#[must_use]
pub fn run(seeds: Range<u64>, options: &Options) -> SwarmReport {
    let mut report = SwarmReport::default();
    for seed in seeds {
        if report.events >= options.budget {
            break;
        }
        report.add(run_one(seed, options));
        if !report.violations.is_empty() && !options.keep_going {
            break;
        }
    }
    report
}

/// Runs the simulation of one seed.
#[must_use]
pub fn run_one(seed: u64, options: &Options) -> SwarmRun {
    let plan = plan(seed, options);
    let mut sim = Simulation::new(seed, &plan);
    sim.keep_trace(options.lines);
    // Whoever panics has broken a rule of its own.
    let outcome = catch_unwind(AssertUnwindSafe(|| live(&mut sim, &plan, options.judged)));
    let violation = match outcome {
        Ok(outcome) => outcome.err().map(|violation| *violation),
        Err(panic) => Some(sim.panicked(&*panic)),
    };
    SwarmRun { events: sim.events(), counts: sim.counts(), faults: *sim.tally(), hash: sim.hash(), violation }
}

/// First the faults, then what must be so without them.
///
/// # Errors
/// When a rule is broken.
pub fn live(sim: &mut Simulation, plan: &SimulationPlan, judged: bool) -> Result<(), Box<Violation>> {
    sim.run_until(Time::ZERO + plan.faults.until)?;
    // Two processes of one name are a mistake of whoever named them: who has heard of the later does not listen to the earlier.
    if !judged || plan.namesakes {
        return Ok(());
    }
    sim.end_twins();
    sim.pass(patience(sim, plan))?;
    sim.judge_following()?;
    sim.judge_shared()?;
    sim.judge()?;
    // The last report that is due to what went before has been heard.
    let longest = plan.sites.iter().map(|site| site.terms.lease_length).max().unwrap_or_default();
    let streams = plan.sites.iter().all(|site| site.streams && site.transport == Transport::Stream)
        && plan.clients.iter().all(|client| client.way == Way::Stream);
    if sim.has_turns() {
        if !sim.some_forget() {
            sim.judge_turns()?;
        }
    } else if streams && sim.facts().are_all_in() {
        let before = sim.counts();
        sim.pass(longest * 2)?;
        sim.judge_silence(&before)?;
    }
    sim.judge_domains()?;
    sim.judge_looks()?;
    for _ in 0..2 {
        sim.disturb();
        sim.pass(patience(sim, plan) / 2)?;
        sim.judge()?;
    }
    Ok(())
}

/// The time that it may take until everybody has its share.
fn patience(sim: &Simulation, plan: &SimulationPlan) -> Duration {
    // What a dead client had, or a ghost, ends with the longest lease; then it has to get to where it is wanted.
    let lease = plan.drift.stretch(sim.longest_lease());
    // A stream that is dead in silence is given up after a minute at the latest.
    let authority = plan.sites.iter().map(|site| site.authority).max().unwrap_or_default();
    let ttl = match (plan.election, plan.memory.etcd) {
        (Election::Etcd(etcd), _) | (Election::Alone, Some(etcd)) => etcd.ttl,
        (Election::Alone, None) => Duration::ZERO,
    };
    (authority + ttl) * 3
        + lease * 3
        + plan.settings.longest_back_off * 2
        + plan.settings.timeout * 2
        + Duration::from_secs(60)
        // The operator pushes after a restore when all have settled, and a follower whose watch is dead reads after a minute.
        + if plan.follows { Duration::from_secs(85) } else { Duration::ZERO }
}

impl SwarmReport {
    /// One simulation more.
    pub fn add(&mut self, run: SwarmRun) {
        self.seeds += 1;
        self.events += run.events;
        self.messages += run.counts.messages();
        self.hits += run.counts.hits;
        self.operations += run.counts.operations;
        self.companions += run.counts.companions;
        self.beside += run.counts.beside_heard;
        self.faults = self.faults.plus(&run.faults);
        self.hash = (self.hash ^ run.hash).rotate_left(7);
        self.violations.extend(run.violation);
    }
}

impl fmt::Display for SwarmReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>12}  seeds (hash {:016x})", self.seeds, self.hash)?;
        writeln!(f, "{:>12}  events", self.events)?;
        writeln!(f, "{:>12}  messages", self.messages)?;
        writeln!(f, "{:>12}  hits", self.hits)?;
        writeln!(f, "{:>12}  operations under permits", self.operations)?;
        writeln!(f, "{:>12}  leases of companions", self.companions)?;
        writeln!(f, "{:>12}  units asked of second limits", self.beside)?;
        write!(f, "{}", self.faults)?;
        writeln!(f, "{:>12}  violations", self.violations.len())?;
        self.violations.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}
