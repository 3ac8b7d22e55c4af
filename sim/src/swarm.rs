//! Many small towns in which everything goes wrong, each from its own seed.
//!
//! A seed decides the tree, the clients, the resources, the clocks, and which kinds of faults there are and how often:
//! each town has some of them, so that none hides another. Leases are short against the delays in half of the towns, as
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

use std::fmt;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lessor_client::session::Transport;
use lessor_proto::{Amount, Drift, Time};
use lessor_server::node::Claims;
use lessor_server::repository::{Kind, Policy};

use crate::dice::Dice;
use crate::faults::{Faults, Mischief, Tally};
use crate::oracle::Violation;
use crate::plan::{ClientPlan, Hold, Link, Manners, PlacePlan, ResourcePlan, Terms, TownPlan, Watch, Way};
use crate::town::{Counts, Town};

/// What a swarm is like.
#[derive(Clone, Debug)]
pub struct Options {
    /// No further seed is begun after so many events.
    pub budget: u64,
    /// Go on after a violation.
    pub keep_going: bool,
    /// Places have no parents.
    pub flat: bool,
    /// Nobody streams.
    pub polling: bool,
    /// How long things go wrong in each town.
    pub faulty: Duration,
    /// What never goes wrong.
    pub without: Vec<Mischief>,
    /// Whether everybody must have its share when the faults are over; else a town ends with them.
    pub judged: bool,
    /// A rule of a mind that is broken on purpose.
    #[cfg(feature = "mutations")]
    pub mutation: Option<crate::mutation::Mutation>,
}

/// How it went.
#[derive(Clone, Default, Debug)]
pub struct SwarmReport {
    /// Seeds run.
    pub seeds: u64,
    /// Events in all of them.
    pub events: u64,
    /// What was sent.
    pub messages: u64,
    /// What went wrong.
    pub faults: Tally,
    /// All hashes together.
    pub hash: u64,
    /// What should not have been.
    pub violations: Vec<Violation>,
}

/// How one town went.
#[derive(Clone, Debug)]
pub struct Run {
    /// Events in it.
    pub events: u64,
    /// What was sent.
    pub counts: Counts,
    /// What went wrong.
    pub faults: Tally,
    /// Of everything that happened.
    pub hash: u64,
    /// What should not have been.
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
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}

/// Runs the town of each seed.
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

/// Runs the town of one seed.
#[must_use]
pub fn run_one(seed: u64, options: &Options) -> Run {
    let plan = plan(seed, options);
    let mut town = Town::new(seed, &plan);
    // Whoever panics has broken a rule of its own.
    let outcome = catch_unwind(AssertUnwindSafe(|| live(&mut town, &plan, options.judged)));
    let violation = match outcome {
        Ok(outcome) => outcome.err().map(|violation| *violation),
        Err(panic) => Some(town.panicked(&*panic)),
    };
    Run { events: town.events(), counts: town.counts(), faults: *town.tally(), hash: town.hash(), violation }
}

/// First the faults, then what must be so without them.
///
/// # Errors
/// When a rule is broken.
pub fn live(town: &mut Town, plan: &TownPlan, judged: bool) -> Result<(), Box<Violation>> {
    town.run_until(Time::ZERO + plan.faults.until)?;
    if !judged {
        return Ok(());
    }
    town.end_twins();
    town.pass(patience(town, plan))?;
    town.judge()?;
    // The last report that is due to what went before has been heard.
    let longest = plan.places.iter().map(|place| place.terms.lease_length).max().unwrap_or_default();
    let streams = plan.places.iter().all(|place| place.streams && place.transport == Transport::Stream)
        && plan.clients.iter().all(|client| client.way == Way::Stream);
    // Units of a gauge go round.
    let gauges = plan.resources.iter().any(|resource| resource.kind == Kind::Gauge);
    if streams && !gauges {
        let before = town.counts();
        town.pass(longest * 2)?;
        town.judge_silence(&before)?;
    }
    for _ in 0..2 {
        town.disturb();
        town.pass(patience(town, plan) / 2)?;
        town.judge()?;
    }
    Ok(())
}

/// How long it may take until everybody has its share.
fn patience(town: &Town, plan: &TownPlan) -> Duration {
    // What a dead client had, or a ghost, ends with the longest lease; then it has to get to where it is wanted.
    let lease = plan.drift.stretch(town.longest_lease());
    // A stream that is dead in silence is given up after a minute at the latest.
    let authority = plan.places.iter().map(|place| place.authority).max().unwrap_or_default();
    authority * 3
        + lease * 3
        + plan.manners.longest_back_off * 2
        + plan.manners.timeout * 2
        + Duration::from_secs(60)
}

/// The town of a seed.
#[must_use]
pub fn plan(seed: u64, options: &Options) -> TownPlan {
    let mut dice = Dice::new(seed ^ 0x005e_ed0f_7077);
    let short = dice.chance(500);
    let drift = Drift::from_parts_per_million([0, 1_000, 10_000, 50_000, 50_000][dice.index(5)]);
    let mut faults = Faults::draw(&mut dice, options.faulty);
    if short && dice.chance(800) {
        // The bias of section 13: a fifth of all messages later than a lease lasts.
        (faults.slow, faults.slow_mean) = (200, Duration::from_secs(2));
    }
    options.without.iter().for_each(|&kind| faults.mischief[kind as usize] = None);
    let resources = resources(&mut dice);
    let mut places = places(&mut dice, options, short);
    let mut record = Dice::new(seed ^ 0x7ec0_7d00);
    // Most leaders may go on for longer than the shortest leases last.
    let authority = if record.chance(850) { record.between(1_000, 3_000) } else { 0 };
    places.iter_mut().for_each(|place| place.authority = Duration::from_millis(authority));
    let clients = clients(&mut dice, options, short, &places, &resources);
    faults.mischief[Mischief::Twin as usize] =
        faults.mischief[Mischief::Twin as usize].map(|every| every.max(Duration::from_secs(8)));
    TownPlan {
        places,
        clients,
        resources,
        drift,
        odd_clocks: dice.chance(800),
        manners: Manners {
            timeout: Duration::from_secs(dice.between(1, 5)),
            // A lease of a second is to be renewed before it ends.
            spacing: Duration::from_millis(if short {
                dice.between(100, 250)
            } else {
                dice.between(50, 1_000)
            }),
            longest_back_off: Duration::from_secs(dice.between(2, 10)),
            eager: dice.chance(800),
        },
        faults,
        watch: Watch::Close,
        tokens: record.chance(500),
        claims: if record.chance(200) { Claims::Deferred } else { Claims::Freed },
        #[cfg(feature = "mutations")]
        mutation: options.mutation,
    }
}

fn resources(dice: &mut Dice) -> Vec<ResourcePlan> {
    let count = if dice.chance(700) { 1 } else { 2 };
    let one = |number: usize| {
        let gauge = dice.chance(300);
        let capacity = dice.between(5, 500);
        ResourcePlan {
            name: format!("r{number}"),
            kind: if gauge { Kind::Gauge } else { Kind::Rate },
            policy: if dice.chance(850) { Policy::FairShare } else { Policy::ProportionalShare },
            capacity: Amount::from_units(capacity),
        }
    };
    (0..count).map(one).collect()
}

fn places(dice: &mut Dice, options: &Options, short: bool) -> Vec<PlacePlan> {
    let depth = if options.flat { 1 } else { dice.between(1, 3) };
    let mut places: Vec<PlacePlan> = Vec::new();
    let mut level: Vec<Option<u32>> = vec![None];
    for number in 0..depth {
        let mut next = Vec::new();
        for &parent in &level {
            let children = if number == 0 { 1 } else { dice.between(1, 3) };
            for _ in 0..children {
                let name = format!("p{}", places.len());
                next.push(Some(places.len() as u32));
                places.push(place(dice, options, name, parent, short, depth));
            }
        }
        level = next;
    }
    places
}

/// In a tree of `depth` levels, with leases that are short or not: as a lease gets shorter from level to level, and a node
/// that polls asks once a second, or after two thirds of it, they must not be too short to be renewed.
fn place(
    dice: &mut Dice,
    options: &Options,
    name: String,
    parent: Option<u32>,
    short: bool,
    depth: u64,
) -> PlacePlan {
    let polls = options.polling || dice.chance(150);
    let lease = match (short, depth) {
        (true, 1) => dice.between(1, 3),
        (true, depth) => dice.between(depth + 1, depth + 3),
        (false, depth) => dice.between(1 + 3 * depth, 30),
    };
    let refresh = dice.between(1, (lease / 2).clamp(1, 8));
    PlacePlan {
        tasks: dice.between(1, 3) as u8,
        link: link(dice, short),
        transport: if polls { Transport::Poll } else { Transport::Stream },
        streams: !dice.chance(50),
        terms: Terms {
            lease_length: Duration::from_secs(lease),
            refresh_interval: Duration::from_secs(refresh),
        },
        ..PlacePlan::new(name, parent)
    }
}

fn clients(
    dice: &mut Dice,
    options: &Options,
    short: bool,
    places: &[PlacePlan],
    resources: &[ResourcePlan],
) -> Vec<ClientPlan> {
    let all_stream = !options.polling && dice.chance(400);
    let shortest = places.iter().map(|place| place.terms.lease_length).min().unwrap_or_default();
    let mut clients = Vec::new();
    for place in 0..places.len() as u32 {
        let is_leaf = places.iter().all(|other| other.parent != Some(place));
        let most = if places.len() > 4 { 4 } else { 12 };
        let count = if is_leaf { dice.between(2, most) } else { dice.below(3) };
        for number in 0..count {
            let way = match dice.below(10) {
                _ if all_stream => Way::Stream,
                0..=4 if !options.polling => Way::Stream,
                // One that asks once a second at most, and counts whole seconds, cannot keep a lease of one; and one of
                // a few is no longer below other nodes.
                9 if shortest >= Duration::from_secs(if place == 0 { 3 } else { 8 }) => Way::Legacy,
                _ => Way::Poll,
            };
            let link = link(dice, short);
            let holds = holds(dice, resources);
            clients.push(ClientPlan { name: format!("c{place}-{number}"), place, link, way, holds });
        }
    }
    clients
}

fn holds(dice: &mut Dice, resources: &[ResourcePlan]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        if holds.is_empty() && index + 1 == resources.len() || dice.chance(800) {
            let wants = (resource.capacity.as_f64() * dice.fraction() / 4.0).ceil();
            let priority = if dice.chance(200) { 1 } else { 0 };
            holds.push(Hold { resource: index as u16, wants, priority });
        }
    }
    holds
}

/// A way that is short where leases are: a session that sees its lease end waits a third of the rest for an answer.
fn link(dice: &mut Dice, short: bool) -> Link {
    let latency = Duration::from_micros(dice.between(100, if short { 10_000 } else { 50_000 }));
    Link { latency, jitter: latency.mul_f64(dice.fraction()) }
}

impl SwarmReport {
    /// One town more.
    pub fn add(&mut self, run: Run) {
        self.seeds += 1;
        self.events += run.events;
        self.messages += run.counts.messages();
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
        write!(f, "{}", self.faults)?;
        writeln!(f, "{:>12}  violations", self.violations.len())?;
        self.violations.first().map_or(Ok(()), |first| write!(f, "{first}"))
    }
}
