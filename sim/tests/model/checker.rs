//! The steps that can follow a state, and the model that a checker explores.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

#[cfg(feature = "mutations")]
use lessor_sim::mutation::AskedRules;
use stateright::{Model, Property};

use super::bounds::{Bounds, CAPACITY, TICK};
use super::parts::{Actor, Delivery, Kept};
use super::rules::{FACTS, Past};
use super::world::{ClientStart, World, repository, resource};

/// A step that can happen.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Step {
    /// A message arrives, and is on its way no more.
    Deliver(u64),
    /// A message arrives, and may arrive once more.
    Repeat(u64),
    /// The next message up a stream arrives.
    Up(Actor, u64),
    /// The next message down a stream arrives.
    Down(Actor, u64),
    /// A stream breaks, as its holder finds.
    Break(Actor, u64),
    /// A stream breaks, as its grantor finds.
    BreakBelow(Actor, u64),
    /// Time passes.
    Tick,
    /// A client wants so many units.
    Want(usize, u64),
    /// A client leaves the resource.
    Leave(usize),
    /// It comes back.
    Join(usize),
    /// A client is started once more; the old process lives on.
    Twin(usize),
    /// A client dies.
    Die(usize),
    /// Half of the capacity is taken away.
    Cut,
    /// The leader of a site dies and is succeeded.
    Succeed(usize),
}

/// The model: everything that can happen within some bounds.
#[derive(Debug)]
pub(crate) struct Simulation {
    pub(crate) bounds: Bounds,
    /// The facts that any step so far has reached. A property that holds `sometimes` asks this, because what a step
    /// shows cannot always be seen in the state after it.
    pub(crate) facts: AtomicU32,
    /// The rules for which any step so far has asked.
    #[cfg(feature = "mutations")]
    asked: Mutex<AskedRules>,
}

// === impl Simulation ===

impl Simulation {
    pub(crate) fn new(bounds: Bounds) -> Simulation {
        Simulation {
            bounds,
            facts: AtomicU32::new(0),
            #[cfg(feature = "mutations")]
            asked: Mutex::default(),
        }
    }

    /// Notes the rules for which this thread has asked.
    #[cfg(feature = "mutations")]
    fn note_asked(&self) {
        let mut asked = self.asked.lock().expect("nobody panics here");
        *asked = asked.and(AskedRules::take());
    }

    #[cfg(not(feature = "mutations"))]
    fn note_asked(&self) {}

    fn act(&self, world: &mut World, step: &Step) {
        match *step {
            Step::Deliver(print) => world.deliver(world.mail_at(print), false),
            Step::Repeat(print) => {
                world.left.repeats -= 1;
                world.deliver(world.mail_at(print), true);
            }
            Step::Up(actor, id) => world.arrive_up(world.stream_at(actor, id)),
            Step::Down(actor, id) => world.arrive_down(world.stream_at(actor, id)),
            Step::Break(actor, id) => {
                world.left.breaks -= 1;
                world.lost(world.stream_at(actor, id));
            }
            Step::BreakBelow(actor, id) => {
                world.left.breaks -= 1;
                world.lost_below(world.stream_at(actor, id));
            }
            Step::Tick => world.tick(),
            Step::Succeed(site) => {
                match site {
                    0 => world.left.successions -= 1,
                    _ => world.left.successions_below -= 1,
                }
                world.succeed(&self.bounds, site);
            }
            Step::Cut => world.cut(),
            Step::Twin(client) => {
                world.left.twins -= 1;
                let before = &world.clients[client];
                let (name, rate, home, wants) = (before.name, before.rate, before.home, before.wants);
                world.start(&self.bounds, ClientStart { name, life: 2, rate, home, wants });
                world.pump_client(world.clients.len() - 1);
            }
            Step::Die(client) => {
                world.left.deaths -= 1;
                world.estate = world.clients[client].uses(world.real);
                Kept::change(&mut world.clients[client]).alive = false;
            }
            Step::Want(..) | Step::Leave(_) | Step::Join(_) => world.decide(step),
        }
    }
}

impl Model for Simulation {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let worlds = self.bounds.clocks.iter().map(|clocks| {
            let mut world = World::begin(&self.bounds, clocks);
            world.seal();
            world
        });
        let worlds = worlds.collect();
        self.note_asked();
        worlds
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.broken.is_none() {
            world.mail_steps(steps);
            world.stream_steps(steps);
            world.other_steps(steps, self.bounds.steady);
        }
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        world.facts = 0;
        // A machine that finds itself wrong ends the run there.
        if catch_unwind(AssertUnwindSafe(|| self.act(&mut world, &step))).is_err() {
            world = before.clone();
            world.panicked();
            self.note_asked();
            return Some(world);
        }
        world.judge(before);
        self.note_asked();
        self.facts.fetch_or(world.facts, Ordering::Relaxed);
        world.seal();
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Simulation>> {
        vec![Property::always("no rule is broken", |_, world: &World| world.broken.is_none())]
    }
}

// === impl World ===

impl World {
    /// Brings all fingerprints up to date.
    pub(crate) fn seal(&mut self) {
        let mut paper = String::new();
        self.clients.iter_mut().for_each(|part| Kept::seal(part, &mut paper));
        self.sites.iter_mut().for_each(|part| Kept::seal(part, &mut paper));
        self.delivery.iter_mut().for_each(|part| Kept::seal(part, &mut paper));
        self.streams.iter_mut().for_each(|part| Kept::seal(part, &mut paper));
    }

    fn mail_at(&self, print: u64) -> usize {
        self.delivery.iter().position(|delivery| delivery.print() == print).expect("it is on its way")
    }

    fn stream_at(&self, actor: Actor, id: u64) -> usize {
        self.line_of(actor, id).expect("it is there")
    }

    fn mail_steps(&self, steps: &mut Vec<Step>) {
        for delivery in &self.delivery {
            let step = Step::Deliver(delivery.print());
            let dead = |actor: Actor| matches!(actor, Actor::Client(number) if !self.clients[number].alive);
            match &***delivery {
                Delivery::Answer { to, .. } | Delivery::Released { to, .. } if dead(*to) => {}
                // An answer that arrives again is passed over: it is taken once.
                Delivery::Answer { .. } | Delivery::Released { .. } => steps.push(step),
                Delivery::Ask { .. } | Delivery::Release { .. } => {
                    steps.push(step);
                    if self.left.repeats > 0 {
                        steps.push(Step::Repeat(delivery.print()));
                    }
                }
            }
        }
    }

    fn stream_steps(&self, steps: &mut Vec<Step>) {
        for stream in &self.streams {
            let (actor, id) = (stream.holder, stream.id);
            let alive = !matches!(actor, Actor::Client(number) if !self.clients[number].alive);
            if !stream.up.is_empty() {
                steps.push(Step::Up(actor, id));
            }
            if alive && stream.heard && !stream.down.is_empty() {
                steps.push(Step::Down(actor, id));
            }
            if self.left.breaks > 0 && alive && stream.heard {
                steps.push(Step::Break(actor, id));
                if stream.peer.is_some() {
                    steps.push(Step::BreakBelow(actor, id));
                }
            }
        }
    }

    fn other_steps(&self, steps: &mut Vec<Step>, steady: bool) {
        let left = &self.left;
        if self.ticks < left.ticks {
            steps.push(Step::Tick);
        }
        for (number, client) in self.clients.iter().enumerate().filter(|(_, client)| client.alive) {
            if left.changes > 0 && (number == 0 || !steady) {
                let others = (0..=CAPACITY).filter(|&wants| wants != client.wants);
                steps.extend(others.map(|wants| Step::Want(number, wants)));
            }
            if left.moves > 0 && number == 0 {
                steps.push(if client.joined { Step::Leave(number) } else { Step::Join(number) });
            }
            if left.twins > 0 && client.incarnation == 1 && number == 0 {
                steps.push(Step::Twin(number));
            }
            if left.deaths > 0 && number == 0 {
                steps.push(Step::Die(number));
            }
        }
        if left.cuts > 0 {
            steps.push(Step::Cut);
        }
        if left.successions > 0 {
            steps.push(Step::Succeed(0));
        }
        if left.successions_below > 0 && self.sites.len() > 1 {
            steps.push(Step::Succeed(1));
        }
    }

    fn tick(&mut self) {
        self.ticks += 1;
        self.real = u64::from(self.ticks) * TICK;
        self.pump_all();
    }

    fn decide(&mut self, step: &Step) {
        let (real, number) = (
            self.real,
            match *step {
                Step::Want(number, _) | Step::Leave(number) | Step::Join(number) => number,
                _ => return,
            },
        );
        let client = Kept::change(&mut self.clients[number]);
        match *step {
            Step::Want(_, wants) => {
                self.left.changes -= 1;
                client.wants = wants;
                if client.joined {
                    client.session.set_wants(client.rate.at(real), &resource(), wants as f64);
                }
            }
            Step::Leave(_) => {
                self.left.moves -= 1;
                client.leave(real);
                (client.order, client.promised) = (None, None);
            }
            _ => {
                self.left.moves -= 1;
                client.came_back = true;
                client.join(real);
            }
        }
        self.pump_client(number);
    }

    fn cut(&mut self) {
        self.left.cuts -= 1;
        self.past = Past::begin(self.real);
        let now = self.sites[0].rate.at(self.real);
        Kept::change(&mut self.sites[0]).node.reload(now, repository(CAPACITY / 2));
        self.pump_site(0);
    }
}

/// The findings of an exploration.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) unique: usize,
    pub(crate) depth: usize,
    /// Whether every state within the bounds was seen.
    pub(crate) exhausted: bool,
    pub(crate) facts: u32,
    /// The rules for which anything has asked.
    #[cfg(feature = "mutations")]
    pub(crate) asked: AskedRules,
    /// The shortest way to a broken rule, as a story.
    pub(crate) broken: Option<Story>,
}

/// The way in which a rule was broken.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) rule: &'static str,
    pub(crate) steps: Vec<String>,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} after {} steps:", self.rule, self.steps.len())?;
        self.steps.iter().enumerate().try_for_each(|(number, step)| writeln!(f, "{:3} {step}", number + 1))
    }
}

/// Explores what can happen within `bounds`, breadth first, up to about `most` states. By one thread, so that what is
/// found first is nearest.
pub(crate) fn explore(bounds: &Bounds, most: usize) -> Found {
    use stateright::{Checker, HasDiscoveries};
    let checker = Simulation::new(bounds.clone())
        .checker()
        .threads(1)
        .target_state_count(most)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let broken = checker.discoveries().into_values().next().map(|path| {
        let steps = path.into_vec();
        let last = steps.last().and_then(|(world, _)| world.broken);
        let told = steps.iter().filter_map(|(world, step)| Some(tell(world, step.as_ref()?)));
        Story { rule: last.unwrap_or("nothing"), steps: told.collect() }
    });
    Found {
        states: checker.state_count(),
        unique: checker.unique_state_count(),
        depth: checker.max_depth(),
        exhausted: broken.is_none() && checker.state_count() < most,
        facts: checker.model().facts.load(Ordering::Relaxed),
        #[cfg(feature = "mutations")]
        asked: *checker.model().asked.lock().expect("nobody panics there"),
        broken,
    }
}

/// The same, which tests of the same bounds do once between them.
pub(crate) fn explore_once(bounds: &Bounds, most: usize) -> Arc<Found> {
    static FOUND: Mutex<BTreeMap<String, Arc<OnceLock<Arc<Found>>>>> = Mutex::new(BTreeMap::new());
    let key = format!("{bounds:?} {most}");
    let found = Arc::clone(FOUND.lock().expect("nobody panics here").entry(key).or_default());
    Arc::clone(found.get_or_init(|| Arc::new(explore(bounds, most))))
}

/// Tells what a step does in a state, in words.
fn tell(world: &World, step: &Step) -> String {
    let uses: Vec<String> = world.clients.iter().map(|client| client.uses(world.real).to_string()).collect();
    let what = match step {
        Step::Deliver(print) | Step::Repeat(print) => {
            format!("{:?}", **world.delivery[world.mail_at(*print)])
        }
        Step::Up(actor, id) => format!("{:?}", world.streams[world.stream_at(*actor, *id)].up.front()),
        Step::Down(actor, id) => format!("{:?}", world.streams[world.stream_at(*actor, *id)].down.front()),
        _ => String::new(),
    };
    let seconds = world.real as f64 / 1e9;
    format!("{seconds:.3}s [{}] {step:?} {what}", uses.join(" "))
}

impl Found {
    /// One line of a table.
    pub(crate) fn line(&self, name: &str) -> String {
        let Found { states, unique, depth, .. } = self;
        let end = if self.exhausted { "exhausted" } else { "not exhausted" };
        format!("{name:34} {unique:>9} unique states of {states:>9}, depth {depth:>2}, {end}")
    }

    /// The number of steps to the broken rule; `-` if none is broken.
    #[cfg(feature = "mutations")]
    pub(crate) fn steps(&self) -> String {
        self.broken.as_ref().map_or_else(|| "-".to_owned(), |story| story.steps.len().to_string())
    }

    /// The names of what was reached.
    pub(crate) fn reached(&self) -> Vec<&'static str> {
        let reached = FACTS.iter().enumerate().filter(|(bit, _)| self.facts & 1 << bit != 0);
        reached.map(|(_, &name)| name).collect()
    }
}
