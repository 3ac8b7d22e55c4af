//! The world of an election: tasks and their clocks, an etcd, and the calls and answers between them.

mod faults;
mod judge;
mod task;

use std::time::Duration;

use lessor_proto::{Amount, Drift, ResourceId, Time};
use lessor_server::election::call::{Action, Answer, Call, Failure, Watched};
use lessor_server::election::mutation::ElectionRules;
use lessor_server::election::{Candidate, ElectionConfig, Event};
use lessor_server::record::RecordChange;
use lessor_sim::event_queue::EventQueue;
use lessor_sim::registry::{Outcome, Registry};
use lessor_sim::rng::Rng;

use self::task::{Books, DRIFT, Task, clock};

/// The only site.
const ROOT: u32 = 0;
const TASKS: usize = 3;
/// Faults come until then.
const CALM: Time = Time::from_nanos(30_000_000_000);
/// Events of one seed; more than that is a task that never rests.
const EVENTS: usize = 100_000;

/// Three tasks of one node, an etcd, and what is on its way between them.
pub(crate) struct World {
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

/// The counts of what has happened.
#[derive(Default, Debug)]
pub(crate) struct Counts {
    pub(crate) events: usize,
    pub(crate) elected: usize,
    pub(crate) lapsed: usize,
    pub(crate) resumed: usize,
    pub(crate) deposed: usize,
    pub(crate) written: usize,
    pub(crate) forced: usize,
    /// Calls that were carried out after whoever made them had given up on them.
    pub(crate) late: usize,
    /// Elections after a leader that had closed the record.
    pub(crate) closed: usize,
}

// === impl Counts ===

impl Counts {
    pub(crate) fn add(&mut self, other: &Counts) {
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
    pub(crate) fn new(seed: u64, rules: ElectionRules) -> World {
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

    pub(crate) fn run(mut self) -> Result<Counts, String> {
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
        at.wakes = at.clock.when(candidate.next_deadline()).max(now + Duration::from_nanos(1));
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

fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

/// The number of a task's watch at etcd.
fn watch(task: usize, life: u64, id: u64) -> u64 {
    (task as u64) << 60 | life << 40 | id
}
