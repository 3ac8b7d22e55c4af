//! One raise: how soon a client that comes to want more has its share where nothing is free, and how many grants that costs.
//!
//! The real nodes and sessions on one clock, in a tree that has come to rest: everything is out, and nobody is granted anything
//! any more. Then one client wants more. What it lacks is recalled from others, who acknowledge that, and so it takes two round
//! trips at the least: the demand goes to a server, from there to those who have most, back, and to the client.
//!
//! ```
//! use lessor_sim::raise::RaiseRun;
//!
//! let report = RaiseRun::even(100).play(1).expect("no rule is broken");
//! assert!(report.round_trips().expect("it has its share") < 2.5, "{report:?}");
//! ```

use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::{Amount, Time};

use crate::oracle::Violation;
use crate::plan::{Hold, Link, Scrutiny, SimulationPlan, Terms};
use crate::rng::Rng;
use crate::simulation::{News, Observer, Simulation};

/// The time by which it has its share, or has not come to it.
const END: Duration = Duration::from_secs(5);
/// The time for which grants are counted. Those of heartbeats that come meanwhile count as well.
const COUNTED: Duration = Duration::from_secs(1);
/// The time for which nobody is granted anything before: everybody has sent a heartbeat.
const QUIET: Duration = Duration::from_secs(10);
/// The time until which the tree comes to rest, or never.
const RESTLESS: Duration = Duration::from_secs(300);
/// The part of a share by which it may move untold, for each listener, and at most: [`lessor_server::node::Node`] goes by it.
const TOLERANCE_PER_LISTENER: f64 = 1e-5;
const MOST_TOLERANCE: f64 = 0.01;

/// A tree at rest, and the client of it that comes to want more.
#[derive(Clone, PartialEq, Debug)]
pub struct RaiseRun {
    /// The demand of each client.
    pub book: Vec<Hold>,
    /// Units a second.
    pub capacity: f64,
    /// The number of servers between the root and the clients; none: clients ask the root.
    pub leaves: usize,
    /// The way from a client to its server.
    pub link: Link,
    /// The way from a leaf to the root.
    pub link_above: Link,
    /// The messages of a thousand that are lost and come again, all that was sent after them on the same stream behind them.
    pub lost: u32,
    /// The time until they come again, on average.
    pub again: Duration,
    /// The client, by its index.
    pub who: usize,
    /// The amount that it comes to want.
    pub wants: f64,
    /// The part of its share that it waits for.
    pub part: f64,
}

/// The outcome of a raise.
#[derive(Clone, PartialEq, Debug)]
pub struct RaiseReport {
    /// The time that a message takes from the client to the root and back, if nothing holds it up.
    pub round_trip: Duration,
    /// The amount that the client had before.
    pub had: f64,
    /// The amount that is due to it from then on.
    pub due: f64,
    /// The time until it had the part of that which it waits for; absent: it has not come to that within five seconds.
    pub took: Option<Duration>,
    /// The steps in which it came to have that.
    pub steps: u64,
    /// The grants that each server made within a second, the root first: all of them, those to the client as well.
    pub grants: Vec<u64>,
    /// The most recalls that each may make for it.
    pub allowed: Vec<f64>,
    /// The least part of what is due to it that a client has in the end.
    pub least: f64,
}

/// An observer that waits for a client to have so much.
struct Waiter {
    client: u32,
    amount: Amount,
    has_it: Option<Time>,
    /// The number of times that it came to have something else.
    steps: u64,
}

impl Observer for Waiter {
    fn hear(&mut self, now: Time, news: News) {
        if news.client == self.client {
            self.steps += 1;
            if news.amount >= self.amount {
                self.has_it.get_or_insert(now);
            }
        }
    }
}

// === impl RaiseRun ===

impl RaiseRun {
    /// A book of clients that want twice what there is, but for the first, which has a tenth of its share and comes to want twice
    /// of it: a message takes 10 ms.
    #[must_use]
    pub fn even(clients: usize) -> RaiseRun {
        let mut book = vec![Hold::new(0, 2.0); clients];
        book[0].wants = 0.1;
        RaiseRun {
            book,
            capacity: clients as f64,
            leaves: 0,
            link: Link::fixed(Duration::from_millis(10)),
            link_above: Link::fixed(Duration::from_millis(20)),
            lost: 0,
            again: Duration::from_millis(200),
            who: 0,
            wants: 2.0,
            part: 0.98,
        }
    }

    /// A book of 20 to 400 clients that want something at random, some of greater weight, of up to three priorities; there is less
    /// than they want. One of them comes to want more.
    #[must_use]
    pub fn draw(seed: u64) -> RaiseRun {
        let mut rng = Rng::new(seed);
        let (clients, bands) = (rng.between(20, 400) as usize, rng.between(1, 3));
        let mut hold = || Hold {
            weight: if rng.chance(250) { rng.between(2, 5) as u32 } else { 1 },
            priority: rng.below(bands) as i64,
            ..Hold::new(0, 1.0 + 39.0 * rng.fraction())
        };
        let book: Vec<Hold> = std::iter::repeat_with(&mut hold).take(clients).collect();
        let wanted: f64 = book.iter().map(|hold| hold.wants).sum();
        let capacity = wanted * (0.2 + 0.6 * rng.fraction());
        let first = rng.index(clients);
        let mut run = RaiseRun { book, capacity, ..RaiseRun::even(1) };
        // One that could have something, whatever it wants.
        let entitled = |index: usize| {
            let all = Hold { wants: wanted, ..run.book[index] };
            let of = |other| if other == index { all } else { run.book[other] };
            run.shares(of).share(&demand(&all))
        };
        let mut candidates = (first..clients).chain(0..first).map(|index| (index, entitled(index)));
        let (who, share) = candidates.find(|&(_, share)| share > 0.1).expect("somebody is served");
        run.who = who;
        run.book[who].wants = share * (0.1 + 0.8 * rng.fraction());
        run.wants = run.book[who].wants + share * (0.2 + 2.8 * rng.fraction());
        run
    }

    /// The same below so many servers, which are a millisecond away from their clients.
    #[must_use]
    pub fn below(self, leaves: usize) -> RaiseRun {
        let near = if leaves > 0 { Duration::from_millis(1) } else { self.link.latency };
        RaiseRun { leaves, link: Link { latency: near, ..self.link }, ..self }
    }

    /// The same over a network where each message takes up to half as long again, and one in a hundred is lost.
    #[must_use]
    pub fn rough(self) -> RaiseRun {
        let jitter = |link: Link| Link { jitter: link.latency / 2, ..link };
        RaiseRun { link: jitter(self.link), link_above: jitter(self.link_above), lost: 10, ..self }
    }

    /// Plays it: the tree comes to rest, and then the client wants more.
    ///
    /// # Errors
    /// When a rule is broken: more is believed than there is.
    ///
    /// # Panics
    /// When the tree never comes to rest.
    pub fn play(&self, seed: u64) -> Result<RaiseReport, Box<Violation>> {
        let mut sim = Simulation::new(seed, &self.plan());
        rest(&mut sim)?;
        let (start, client) = (sim.now(), u32::try_from(self.who).expect("so many clients"));
        let shares = self.shares(|index| self.hold_after(index));
        let due = |index: usize| shares.share(&demand(&self.hold_after(index)));
        let (had, grants) = (sim.believed(client).as_f64(), counts(&sim));
        let amount = Amount::from_f64(due(self.who) * self.part);
        let mut waiter = Waiter { client, amount, has_it: None, steps: 0 };
        sim.set_wants(client, self.wants);
        sim.run_until_heard(start + COUNTED, &mut waiter)?;
        let (steps, after) = (waiter.steps, counts(&sim));
        sim.run_until_heard(start + END, &mut waiter)?;
        let part = |index: usize| {
            let has = sim.believed(u32::try_from(index).expect("so many clients")).as_f64();
            if due(index) > 0.0 { has / due(index) } else { 1.0 }
        };
        Ok(RaiseReport {
            round_trip: 2
                * (self.link.latency
                    + if self.leaves > 0 { self.link_above.latency } else { Duration::ZERO }),
            had,
            due: due(self.who),
            took: waiter.has_it.map(|at| at.since(start)),
            steps,
            grants: after.iter().zip(grants).map(|(after, before)| after - before).collect(),
            allowed: self.allowed(due(self.who) - had),
            least: (0..self.book.len()).map(part).fold(f64::INFINITY, f64::min),
        })
    }

    fn plan(&self) -> SimulationPlan {
        let fan_out = if self.leaves > 0 { vec![self.leaves] } else { Vec::new() };
        let each = self.book.len().div_ceil(self.leaves.max(1));
        let mut plan = SimulationPlan::tree(&fan_out, each, self.capacity, 0.0);
        plan.clients.truncate(self.book.len());
        plan.watch = Scrutiny::Loose(5_000_000);
        plan.faults.slow = self.lost;
        plan.faults.slow_mean = self.again;
        plan.faults.until = 2 * RESTLESS;
        for site in &mut plan.sites {
            site.terms = Terms::default();
            site.link = self.link_above;
        }
        for (client, hold) in plan.clients.iter_mut().zip(&self.book) {
            (client.link, client.holds) = (self.link, vec![*hold]);
        }
        plan
    }

    /// The demand of a client once the one wants more.
    fn hold_after(&self, index: usize) -> Hold {
        let hold = self.book[index];
        if index == self.who { Hold { wants: self.wants, ..hold } } else { hold }
    }

    /// The shares of all, as of one server that knows every client.
    fn shares(&self, hold: impl Fn(usize) -> Hold) -> Shares {
        let mut shares = Shares::new(SharePolicy::FairShare, self.capacity);
        (0..self.book.len()).for_each(|index| shares.insert(&demand(&hold(index))));
        shares
    }
}

// === impl RaiseRun: what it may cost ===

impl RaiseRun {
    /// The most grants that each server may make, the root first: those who hold more than their share by then are recalled,
    /// or so many of them that each gives half of the tolerance of its share, and nobody else.
    fn allowed(&self, gain: f64) -> Vec<f64> {
        if self.leaves == 0 {
            return vec![self.most_grants(&(0..self.book.len()).collect::<Vec<_>>(), gain)];
        }
        let each = self.book.len().div_ceil(self.leaves);
        let (before, after) =
            (self.shares(|index| self.book[index]), self.shares(|index| self.hold_after(index)));
        let lost = |index: usize| {
            let before = before.share(&demand(&self.book[index]));
            (before - after.share(&demand(&self.hold_after(index)))).max(0.0)
        };
        let leaf = |number: usize| {
            let clients: Vec<usize> = (number * each..self.book.len().min((number + 1) * each)).collect();
            let lost = clients.iter().map(|&index| lost(index)).sum::<f64>();
            self.most_grants(&clients, if clients.contains(&self.who) { gain } else { lost })
        };
        std::iter::once(self.leaves as f64).chain((0..self.leaves).map(leaf)).collect()
    }

    /// The bound where those of the numbers `clients` share what one server has, and one of them, or another server, gains so much.
    fn most_grants(&self, clients: &[usize], gain: f64) -> f64 {
        let count = clients.len() as f64;
        let tolerance = (count * TOLERANCE_PER_LISTENER).min(MOST_TOLERANCE);
        let (shares, priority) = (self.shares(|index| self.hold_after(index)), self.book[self.who].priority);
        // Of those below it, who lose what they have first.
        let bands = clients.iter().map(|&index| self.book[index].priority).filter(|&band| band <= priority);
        let level = bands.filter_map(|band| shares.level(band)).fold(f64::INFINITY, f64::min);
        (2.0 * gain / (tolerance * level) + 1.0).min(count)
    }
}

// === impl RaiseReport ===

impl RaiseReport {
    /// The time that it took, in round trips; absent: it has not come to its share.
    #[must_use]
    pub fn round_trips(&self) -> Option<f64> {
        Some(self.took?.as_secs_f64() / self.round_trip.as_secs_f64())
    }

    /// The grants of all servers.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.grants.iter().sum()
    }

    /// The most recalls of all servers.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.allowed.iter().sum()
    }
}

/// Waits until nobody is granted anything any more.
fn rest(sim: &mut Simulation) -> Result<(), Box<Violation>> {
    let grants = |sim: &Simulation| counts(sim).iter().sum::<u64>();
    while sim.now() < Time::ZERO + RESTLESS {
        let before = grants(sim);
        sim.pass(QUIET)?;
        if before > 0 && grants(sim) <= before + sim.clients() as u64 / 100 {
            return Ok(());
        }
    }
    panic!("the tree never comes to rest");
}

fn counts(sim: &Simulation) -> Vec<u64> {
    (0..u32::try_from(sim.sites()).expect("so many sites")).map(|site| sim.grants(site)).collect()
}

fn demand(hold: &Hold) -> Demand {
    Demand { priority: hold.priority, weight: hold.weight, wants: hold.wants }
}
