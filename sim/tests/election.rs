//! Elections under faults: three tasks of one node with clocks that drift, an etcd, and a network that delays and loses.
//!
//! What must hold is judged by an omniscient observer after every event: never two authorities at once, writes of the one
//! who leads only, and in the record never less than what a leader believes to be there; and after the last fault
//! somebody leads again.
//!
//! With the feature `mutations` rules are taken out one at a time, to see that this is noticed.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use lessor_proto::{Amount, Drift, ResourceId, Time};
use lessor_server::election::call::{Action, Answer, Call, Failure, Watched};
use lessor_server::election::mutation::ElectionRules;
use lessor_server::election::{Candidate, ElectionConfig, Event, Leader, Ticket};
use lessor_server::record::RecordChange;
use lessor_sim::clock::{Clock, PERFECT};
use lessor_sim::event_queue::EventQueue;
use lessor_sim::registry::{Outcome, Registry};
use lessor_sim::rng::Rng;

/// The only site.
const ROOT: u32 = 0;
const TASKS: usize = 3;
/// Clocks err by up to a twentieth.
const DRIFT: u32 = 50_000;
/// Faults come until then.
const CALM: Time = Time::from_nanos(30_000_000_000);
/// Events of one seed; more than that is a task that never rests.
const EVENTS: usize = 100_000;

#[test]
fn no_two_act_at_once_and_somebody_leads_after_the_faults() {
    let mut sum = Counts::default();
    for seed in 0..seeds() {
        let counts = World::new(seed, ElectionRules::default())
            .run()
            .unwrap_or_else(|found| panic!("seed {seed}: {found}"));
        sum.add(&counts);
    }
    println!("{sum:?}");
    // Nothing that goes wrong here is rare.
    assert!(
        sum.elected > 5_000 && sum.lapsed > 3_000 && sum.resumed > 1_500 && sum.written > 10_000,
        "{sum:?}"
    );
    assert!(sum.deposed > 2_000 && sum.late > 10_000 && sum.forced > 1_500 && sum.closed > 300, "{sum:?}");
}

/// 2,000, or as many as `SEEDS` says.
fn seeds() -> u64 {
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(2_000)
}

#[cfg(feature = "mutations")]
mod mutations {
    use lessor_server::election::mutation::ElectionRule;

    use super::*;

    /// Each is noticed within so many seeds; the number behind it is the first at which it was. The seeds change with every
    /// change of the world.
    const TAKEN: [(ElectionRule, u64); 5] = [
        (ElectionRule::AuthorityBelowTtl, 100), // 3
        (ElectionRule::FromQuestion, 5_000),    // 508
        (ElectionRule::ReadBack, 100),          // 5
        (ElectionRule::Guard, 100),             // 2
        (ElectionRule::Order, 1_000),           // 77
    ];

    #[test]
    fn no_rule_of_the_election_can_be_left_out() {
        for (mutation, seeds) in TAKEN {
            let found = (0..seeds).find_map(|seed| {
                World::new(seed, ElectionRules::without(mutation)).run().err().map(|found| (seed, found))
            });
            let (seed, found) = found.unwrap_or_else(|| panic!("{mutation:?}: nothing in {seeds} seeds"));
            println!("{mutation:?}: seed {seed}, {found}");
        }
    }
}

struct World {
    rng: Rng,
    queue: EventQueue<Happening>,
    etcd: Registry,
    /// Calls that wait for a frozen etcd.
    waiting: Vec<Happening>,
    config: ElectionConfig,
    tasks: Vec<Task>,
    /// The messages that are lost, in thousandths, and those that take long.
    losses: u32,
    slow: u32,
    counts: Counts,
}

struct Task {
    clock: Clock,
    candidate: Option<Candidate>,
    life: u64,
    /// The events that come while it is frozen.
    frozen: Option<VecDeque<Happening>>,
    /// Nothing gets to etcd or comes from it.
    is_cut: bool,
    /// When it will wake up next.
    wakes: Time,
    books: Option<Books>,
    leader: Option<Leader>,
    /// The watches that it believes to have.
    watching: BTreeSet<u64>,
    /// The time at which the latest news on a watch is seen: news comes in the order in which it was.
    seen_until: Time,
}

/// The beliefs of a leader.
struct Books {
    epoch: u64,
    /// The record says that at least so much is out.
    mark: u64,
    writing: Option<(Ticket, u64)>,
    /// The amount that may be out under one who was deposed by hand, and the time until which it may.
    floor: (u64, Time),
}

enum Happening {
    Wake { task: usize },
    Arrive { task: usize, life: u64, id: u64, sent: Time, call: Call },
    Answered { task: usize, life: u64, id: u64, result: Result<Answer, Failure> },
    Watched { task: usize, life: u64, id: u64, watched: Watched },
    LeaseEnds,
    Thaw { task: usize },
    ThawEtcd,
    Heal { task: usize },
    Begin { task: usize },
    Fault,
}

#[derive(Default, Debug)]
struct Counts {
    events: usize,
    elected: usize,
    lapsed: usize,
    resumed: usize,
    deposed: usize,
    written: usize,
    forced: usize,
    /// Calls that were carried out after whoever made them had given up on them.
    late: usize,
    /// Elections after a leader that had closed the record.
    closed: usize,
}

// === impl Counts ===

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.events += other.events;
        self.elected += other.elected;
        self.lapsed += other.lapsed;
        self.resumed += other.resumed;
        self.deposed += other.deposed;
        self.written += other.written;
        self.forced += other.forced;
        self.late += other.late;
        self.closed += other.closed;
    }
}

// === impl World ===

impl World {
    fn new(seed: u64, rules: ElectionRules) -> World {
        let mut rng = Rng::new(seed);
        let millis = Duration::from_millis;
        // Half of the worlds are as narrow as the rules allow, so that drift matters.
        let (ttl, authority) = if rng.chance(500) { (3_000, 2_700) } else { (10_000, 4_000) };
        let config = ElectionConfig {
            ttl: millis(ttl),
            authority: millis(authority),
            keep_alive: millis(500),
            call_timeout: millis(1_000),
            drift: Drift::from_parts_per_million(DRIFT),
            rules,
            ..ElectionConfig::new("root", "unknown", 0)
        };
        let etcd_clock = clock(&mut rng, Time::ZERO);
        let mut world = World {
            queue: EventQueue::small(),
            etcd: Registry::new(etcd_clock, &config.prefix, [config.node.clone()]),
            waiting: Vec::new(),
            config,
            tasks: (0..TASKS).map(|_| Task::new(&mut rng)).collect(),
            losses: [0, 20, 150][rng.index(3)],
            slow: [0, 50, 200][rng.index(3)],
            counts: Counts::default(),
            rng,
        };
        for task in 0..TASKS {
            let at = Time::ZERO + world.rng.time(Duration::ZERO, millis(500));
            world.queue.put(at, Happening::Begin { task });
        }
        world.queue.put(Time::ZERO + millis(1_000), Happening::Fault);
        world
    }

    fn run(mut self) -> Result<Counts, String> {
        // What has been missed on a watch is found after a ttl, what led then ends after another.
        let end = CALM + self.config.ttl * 3 + Duration::from_secs(5);
        while let Some((now, happening)) = self.queue.pop(end) {
            self.counts.events += 1;
            if self.counts.events > EVENTS {
                return Err(format!("{now}: more than {EVENTS} events"));
            }
            self.happen(now, happening)?;
            self.judge(now)?;
        }
        self.judge_calm(end)?;
        Ok(self.counts)
    }

    fn happen(&mut self, now: Time, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::Begin { task } => self.begin(now, task),
            Happening::Wake { task }
                if self.tasks[task].frozen.is_some() || self.tasks[task].wakes != now =>
            {
                Ok(())
            }
            Happening::Wake { task } => self.act(now, task),
            Happening::Arrive { task, life, id, sent, call } => {
                if self.etcd.is_frozen() {
                    self.waiting.push(Happening::Arrive { task, life, id, sent, call });
                    return Ok(());
                }
                self.counts.late += usize::from(now.since(sent) > self.config.call_timeout);
                self.arrive(now, task, life, id, &call)
            }
            Happening::Answered { task, .. } | Happening::Watched { task, .. } => {
                if let Some(waiting) = &mut self.tasks[task].frozen {
                    waiting.push_back(happening);
                    return Ok(());
                }
                self.hear(now, happening);
                self.act(now, task)
            }
            Happening::LeaseEnds => {
                if !self.etcd.is_frozen() {
                    self.etcd.advance(now, ROOT);
                    self.show(now);
                }
                Ok(())
            }
            Happening::Thaw { task } => {
                let Some(waiting) = self.tasks[task].frozen.take() else { return Ok(()) };
                // Sometimes it looks at its clock before it hears of anything.
                if self.rng.chance(500) {
                    self.act(now, task)?;
                }
                waiting.into_iter().for_each(|happening| self.hear(now, happening));
                self.act(now, task)
            }
            Happening::ThawEtcd => {
                self.etcd.thaw(now);
                for happening in std::mem::take(&mut self.waiting) {
                    let at = now + self.rng.time(Duration::ZERO, Duration::from_millis(5));
                    self.queue.put(at, happening);
                }
                self.queue.put(now + Duration::from_millis(2), Happening::LeaseEnds);
                Ok(())
            }
            Happening::Heal { task } => {
                self.tasks[task].is_cut = false;
                Ok(())
            }
            Happening::Fault => self.gaps(now),
        }
    }

    fn begin(&mut self, now: Time, task: usize) -> Result<(), String> {
        let at = &mut self.tasks[task];
        at.life += 1;
        at.leader = None;
        let config = ElectionConfig {
            address: format!("task-{task}:1"),
            nonce: self.rng.number(),
            ..self.config.clone()
        };
        at.candidate = Some(Candidate::new(at.clock.at(now), config).map_err(|bad| bad.to_string())?);
        self.act(now, task)
    }

    /// Lets a task do what is due.
    fn act(&mut self, now: Time, task: usize) -> Result<(), String> {
        for _ in 0..1_000 {
            let at = &mut self.tasks[task];
            let local = at.clock.at(now);
            let Some(candidate) = &mut at.candidate else { return Ok(()) };
            let action = candidate.poll(local);
            let events: Vec<Event> = std::iter::from_fn(|| candidate.next_event()).collect();
            for event in events {
                self.tell(now, task, event)?;
            }
            match action {
                Some(action) => self.perform(now, task, action),
                None if self.write(now, task) => {}
                None => break,
            }
        }
        let at = &mut self.tasks[task];
        let Some(candidate) = &at.candidate else { return Ok(()) };
        // A moment that has passed is no reason to wake up in the same again.
        at.wakes = at.clock.when(candidate.deadline()).max(now + Duration::from_nanos(1));
        if at.wakes < Time::MAX {
            self.queue.put(at.wakes, Happening::Wake { task });
        }
        Ok(())
    }

    fn tell(&mut self, now: Time, task: usize, event: Event) -> Result<(), String> {
        match event {
            Event::Elected { epoch, record } => {
                self.counts.elected += 1;
                self.counts.closed += usize::from(record.closed);
                let mark = record.marks.get(&resource()).map_or(0, |mark| mark.as_micros());
                for (other, at) in self.tasks.iter().enumerate().filter(|(other, _)| *other != task) {
                    let Some(books) = at.books.as_ref().filter(|_| at.may_act(now)) else { continue };
                    if record.closed {
                        return Err(format!(
                            "{now}: task {other} acts, and the record is closed for task {task}"
                        ));
                    }
                    if books.mark > mark {
                        return Err(format!(
                            "{now}: task {task} reads {mark}, task {other} has {}",
                            books.mark
                        ));
                    }
                }
                let wait = self.config.drift.stretch(record.authority);
                let floor = (mark, self.tasks[task].clock.at(now) + wait);
                self.tasks[task].books = Some(Books { epoch: epoch.0, mark, writing: None, floor });
            }
            Event::Lapsed => self.counts.lapsed += 1,
            Event::Resumed => self.counts.resumed += 1,
            Event::Deposed => {
                self.counts.deposed += 1;
                self.tasks[task].books = None;
            }
            Event::Written(ticket) => {
                self.counts.written += 1;
                if let Some(books) = &mut self.tasks[task].books
                    && let Some((_, mark)) = books.writing.take_if(|(writing, _)| *writing == ticket)
                {
                    books.mark = mark;
                }
            }
            Event::Resigned => {
                self.tasks[task].end();
                let again = now + self.rng.time(Duration::ZERO, Duration::from_secs(2));
                self.queue.put(again, Happening::Begin { task });
            }
            Event::Leader(leader) => self.tasks[task].leader = leader,
            Event::Faulty(_) | Event::Healthy => {}
        }
        Ok(())
    }

    fn perform(&mut self, now: Time, task: usize, action: Action) {
        let life = self.tasks[task].life;
        match action {
            Action::Call { id, call } => {
                if !self.is_lost(task) {
                    let at = now + self.delay();
                    self.queue.put(at, Happening::Arrive { task, life, id, sent: now, call });
                }
            }
            // Watches begin at once, or not at all.
            Action::Watch { id, key, from_revision } => {
                if self.is_lost(task) || self.etcd.is_frozen() {
                    let at = now + self.delay();
                    let watched = Watched::Ended(Failure::Timeout);
                    self.queue.put(at, Happening::Watched { task, life, id, watched });
                } else {
                    self.etcd.store(ROOT).watch(watch(task, life, id), &key, from_revision);
                    self.tasks[task].watching.insert(id);
                    self.show(now);
                }
            }
            Action::Unwatch { id } => {
                self.tasks[task].watching.remove(&id);
                self.etcd.store(ROOT).unwatch(watch(task, life, id));
            }
        }
    }

    /// A leader raises or lowers its mark every now and then.
    fn write(&mut self, now: Time, task: usize) -> bool {
        let wanted = self.rng.chance(50);
        let at = &mut self.tasks[task];
        let may_act = at.may_act(now);
        let (Some(books), Some(candidate)) = (&mut at.books, &mut at.candidate) else { return false };
        if !may_act || !wanted || books.writing.is_some() {
            return false;
        }
        let local = at.clock.at(now);
        let mark = self.rng.below(1_000).max(if local < books.floor.1 { books.floor.0 } else { 0 });
        let marks = [(resource(), Amount::from_micros(mark))].into();
        let Some(ticket) = candidate.write(local, None, RecordChange { marks, ..RecordChange::default() })
        else {
            return false;
        };
        // What is lowered is let go before.
        books.mark = books.mark.min(mark);
        books.writing = Some((ticket, mark));
        true
    }

    fn arrive(&mut self, now: Time, task: usize, life: u64, id: u64, call: &Call) -> Result<(), String> {
        let Outcome { result, written, .. } = self.etcd.carry_out(now, ROOT, call);
        self.queue.put(self.etcd.next_end(ROOT).max(now), Happening::LeaseEnds);
        if let Some((epoch, leader)) = written.filter(|(epoch, leader)| epoch.is_none() || epoch != leader) {
            return Err(format!("{now}: a write of epoch {epoch:?} in that of {leader:?}"));
        }
        self.show(now);
        if !self.is_lost(task) {
            let at = now + self.delay();
            self.queue.put(at, Happening::Answered { task, life, id, result });
        }
        Ok(())
    }

    /// Sends what is to be seen to those who watch.
    fn show(&mut self, now: Time) {
        for task in 0..TASKS {
            let life = self.tasks[task].life;
            for id in self.tasks[task].watching.clone() {
                for watched in self.etcd.store(ROOT).watched(watch(task, life, id)) {
                    if self.tasks[task].is_cut {
                        continue;
                    }
                    let at = (now + self.delay()).max(self.tasks[task].seen_until);
                    self.tasks[task].seen_until = at;
                    self.queue.put(at, Happening::Watched { task, life, id, watched });
                }
            }
        }
    }

    fn hear(&mut self, now: Time, happening: Happening) {
        match happening {
            Happening::Answered { task, life, id, result } => {
                let at = &mut self.tasks[task];
                let local = at.clock.at(now);
                if let Some(candidate) = at.candidate.as_mut().filter(|_| at.life == life) {
                    candidate.on_answer(local, id, result);
                }
            }
            Happening::Watched { task, life, id, watched } => {
                let at = &mut self.tasks[task];
                let local = at.clock.at(now);
                if let Some(candidate) = at.candidate.as_mut().filter(|_| at.life == life) {
                    candidate.on_watched(local, id, watched);
                }
            }
            _ => {}
        }
    }
}

// === what goes wrong ===

impl World {
    fn gaps(&mut self, now: Time) -> Result<(), String> {
        if now >= CALM {
            self.calm();
            return Ok(());
        }
        let next = now + self.rng.exponential(Duration::from_secs(2));
        self.queue.put(next.min(CALM), Happening::Fault);
        let task = self.rng.index(TASKS);
        let while_it_lasts = self.rng.time(Duration::from_millis(100), self.config.ttl * 3 / 2);
        let until = (now + while_it_lasts).min(CALM);
        match self.rng.below(11) {
            0 | 1 if self.tasks[task].frozen.is_none() => {
                self.tasks[task].frozen = Some(VecDeque::new());
                self.queue.put(until, Happening::Thaw { task });
            }
            2 if !self.etcd.is_frozen() => {
                self.etcd.freeze(until);
                self.queue.put(until, Happening::ThawEtcd);
            }
            3 => self.restart_etcd(now),
            4 => self.etcd.compact(),
            5 => {
                self.tasks[task].end();
                self.queue.put(until, Happening::Begin { task });
            }
            6 if self.tasks[task].frozen.is_none() => {
                let at = &mut self.tasks[task];
                at.books = None;
                if let Some(candidate) = &mut at.candidate {
                    candidate.resign(at.clock.at(now));
                }
                self.act(now, task)?;
            }
            7 => {
                self.tasks[task].is_cut = true;
                self.queue.put(until, Happening::Heal { task });
            }
            8 => self.change_rates(now),
            9 if !self.etcd.is_frozen() && self.etcd.depose(now, ROOT) => {
                self.counts.forced += 1;
                self.show(now);
            }
            // The watch of a task dies, and nobody tells it.
            10 => {
                let life = self.tasks[task].life;
                for &id in &self.tasks[task].watching {
                    self.etcd.store(ROOT).unwatch(watch(task, life, id));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn restart_etcd(&mut self, now: Time) {
        self.etcd.restart(now);
        for task in 0..TASKS {
            let life = self.tasks[task].life;
            for id in std::mem::take(&mut self.tasks[task].watching) {
                let watched = Watched::Ended(Failure::Unavailable("restarted".to_owned()));
                let at = now + self.rng.time(Duration::ZERO, Duration::from_millis(50));
                self.queue.put(at, Happening::Watched { task, life, id, watched });
            }
        }
    }

    fn change_rates(&mut self, now: Time) {
        let rate = rate(&mut self.rng);
        self.etcd.set_rate(now, rate);
        self.queue.put(self.etcd.next_end(ROOT).max(now), Happening::LeaseEnds);
        for task in 0..TASKS {
            let rate = self::rate(&mut self.rng);
            let at = &mut self.tasks[task];
            at.clock.set_rate(now, rate);
            if let Some(candidate) = &at.candidate {
                at.wakes = at.clock.when(candidate.deadline()).max(now + Duration::from_nanos(1));
                if at.wakes < Time::MAX {
                    self.queue.put(at.wakes, Happening::Wake { task });
                }
            }
        }
    }

    fn calm(&mut self) {
        self.losses = 0;
        self.slow = 0;
        self.tasks.iter_mut().for_each(|task| task.is_cut = false);
    }

    fn is_lost(&mut self, task: usize) -> bool {
        self.tasks[task].is_cut || self.rng.chance(self.losses)
    }

    fn delay(&mut self) -> Duration {
        let usual = self.rng.time(Duration::from_micros(200), Duration::from_millis(20));
        if self.rng.chance(self.slow) { usual + self.rng.exponential(Duration::from_secs(1)) } else { usual }
    }
}

// === what must hold ===

impl World {
    fn judge(&self, now: Time) -> Result<(), String> {
        let acting: Vec<(usize, &Books)> = self
            .tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.may_act(now))
            .filter_map(|(number, task)| Some((number, task.books.as_ref()?)))
            .collect();
        let newest = acting.iter().map(|(_, books)| books.epoch).max();
        for (task, books) in &acting {
            if Some(books.epoch) != newest && !self.was_just_forced(now, books.epoch) {
                return Err(format!(
                    "{now}: task {task} acts in epoch {}, and {newest:?} has begun",
                    books.epoch
                ));
            }
            if self.etcd.leads(ROOT) == Some(books.epoch) {
                let mark = self.etcd.record(ROOT).marks.get(&resource()).map_or(0, |mark| mark.as_micros());
                if mark < books.mark {
                    return Err(format!("{now}: task {task} has {}, the record says {mark}", books.mark));
                }
            } else if !self.was_just_forced(now, books.epoch) {
                return Err(format!(
                    "{now}: task {task} acts in epoch {}, and its key has gone",
                    books.epoch
                ));
            }
        }
        Ok(())
    }

    /// Whether a leader was deposed by hand so short a time ago that it may still go on for the authority that it
    /// has, on the slowest clock.
    fn was_just_forced(&self, now: Time, epoch: u64) -> bool {
        let slowest = self.config.authority.mul_f64(1.0 / (1.0 - f64::from(DRIFT) / 1e6));
        self.etcd.forced(ROOT, epoch).is_some_and(|at| now.since(at) <= slowest)
    }

    fn judge_calm(&self, now: Time) -> Result<(), String> {
        let leaders: Vec<usize> = (0..TASKS).filter(|&task| self.tasks[task].may_act(now)).collect();
        let [leader] = leaders[..] else { return Err(format!("{now}: {leaders:?} lead after the faults")) };
        let address = format!("task-{leader}:1");
        for (task, at) in self.tasks.iter().enumerate().filter(|(task, _)| *task != leader) {
            let known = at.leader.as_ref().map(|leader| leader.address.as_str());
            if known != Some(&address) {
                return Err(format!("{now}: task {task} knows of {known:?}, and {address} leads"));
            }
        }
        Ok(())
    }
}

// === impl Task ===

impl Task {
    fn new(rng: &mut Rng) -> Task {
        Task {
            clock: clock(rng, Time::ZERO),
            candidate: None,
            life: 0,
            frozen: None,
            is_cut: false,
            wakes: Time::MAX,
            books: None,
            leader: None,
            watching: BTreeSet::new(),
            seen_until: Time::ZERO,
        }
    }

    /// Whether it would act if it did anything at this moment. Frozen or not: it may go on at any.
    fn may_act(&self, now: Time) -> bool {
        let until = self.candidate.as_ref().and_then(Candidate::authority_until);
        until.is_some_and(|until| self.clock.at(now) < until)
    }

    fn end(&mut self) {
        self.candidate = None;
        self.books = None;
        self.leader = None;
        self.watching.clear();
    }
}

fn rate(rng: &mut Rng) -> u64 {
    let (least, most) = (PERFECT - u64::from(DRIFT) * 1_000, PERFECT + u64::from(DRIFT) * 1_000);
    // Mostly at the edges.
    match rng.below(3) {
        0 => least,
        1 => most,
        _ => rng.between(least, most),
    }
}

fn clock(rng: &mut Rng, now: Time) -> Clock {
    let shown = Time::from_nanos(rng.below(1_000_000_000_000_000));
    let rate = rate(rng);
    Clock::new(now, shown, rate)
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

/// The number of a task's watch at etcd.
fn watch(task: usize, life: u64, id: u64) -> u64 {
    (task as u64) << 60 | life << 40 | id
}
