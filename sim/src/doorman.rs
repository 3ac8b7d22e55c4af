//! Doorman's own simulated system, as a system to compare with on the same workload.
//!
//! The model follows the simulation by which its authors judged it, not its Go server: masters that learn for a minute,
//! polling in lock step, a proportional share granted out of what nobody else has on record, and new masters that ask
//! under a new name while the old one's lease still counts. Its clients can believe more than there is; that is the
//! point.
//!
//! Time goes by whole seconds. A second begins with its faults, wants and samples; then whoever is due has a turn, one
//! after the other in an order drawn from the seed, and again as long as anybody is due in the same second. No call takes
//! time and none is lost.

mod lease;
mod log;
mod server;
#[cfg(test)]
mod tests;
mod turn;

use std::time::Duration;

use lessor_proto::Time;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use self::lease::DoormanLease;
use self::log::EventLog;
use self::server::DoormanServer;
use crate::measure::{Level, Recorder, Recording};
use crate::workload::{FaultEvent, ScheduledFault, Workload};

/// The tree of a workload, run by Doorman's rules.
#[derive(Debug)]
struct DoormanRun<'a> {
    workload: &'a Workload,
    now: u64,
    rng: Pcg64,
    clients: Vec<Asker>,
    /// The tasks of all jobs, those of one job beside each other.
    tasks: Vec<DoormanTask>,
    /// Of every job, its master's position among the tasks.
    masters: Vec<Option<usize>>,
    /// The clients and tasks with the times at which they are due, in the order of the turns.
    threads: Vec<Thread>,
    /// The share that each client should hold in this second.
    fair: Vec<f64>,
    recorder: Recorder,
    log: EventLog,
}

/// A client or a server, as it asks a job for capacity.
#[derive(Clone, Copy, Debug, Default)]
struct Asker {
    lease: Option<DoormanLease>,
    /// The task that it takes for the master of the job it asks.
    master: Option<usize>,
}

/// One server of a job.
#[derive(Clone, Debug, Default)]
struct DoormanTask {
    /// The state that it has while it is master.
    server: Option<DoormanServer>,
    /// The task that it takes for its parent's master, which it remembers whether it is master or not.
    parent: Option<usize>,
}

/// Somebody who does something at times.
#[derive(Clone, Copy, Debug)]
struct Thread {
    who: DoormanActor,
    due_seconds: u64,
}

#[derive(Clone, Copy, Debug)]
enum DoormanActor {
    Client(usize),
    DoormanTask(usize),
}

/// Runs `workload` by Doorman's rules. Its seed also decides the order of turns and who wins an election, which no trace
/// tells.
#[must_use]
pub fn run(workload: &Workload) -> Recording {
    DoormanRun::new(workload).run()
}

// === impl DoormanRun ===

impl<'a> DoormanRun<'a> {
    fn new(workload: &'a Workload) -> DoormanRun<'a> {
        let plan = &workload.plan;
        let (clients, tasks) = (plan.clients.len(), plan.jobs.len() * plan.tasks_per_job);
        // Not the numbers that the workload was drawn from.
        let mut rng = Pcg64::seed_from_u64(!workload.seed);
        let who = (0..clients).map(DoormanActor::Client).chain((0..tasks).map(DoormanActor::DoormanTask));
        let mut threads: Vec<Thread> = who.map(|who| Thread { who, due_seconds: 0 }).collect();
        threads.shuffle(&mut rng);
        let mut run = DoormanRun {
            workload,
            now: 0,
            rng,
            clients: vec![Asker::default(); clients],
            tasks: vec![DoormanTask::default(); tasks],
            masters: vec![None; plan.jobs.len()],
            threads,
            fair: Vec::new(),
            recorder: Recorder::new(plan.capacity, clients, plan.seconds),
            log: EventLog::new(),
        };
        for job in 0..plan.jobs.len() {
            let winner = run.any_task(job);
            run.install(job, winner);
        }
        run
    }

    fn run(mut self) -> Recording {
        for now in 0..=self.workload.plan.seconds {
            self.now = now;
            let late = self.befall();
            self.fair = fair_shares(self.workload.wants_at(now), self.workload.plan.capacity);
            // Wants may have changed, and leases ended.
            self.happened();
            self.sample();
            self.turns();
            late.into_iter().for_each(|job| self.restore(job));
            while self.threads.iter().any(|thread| thread.due_seconds <= now) {
                self.turns();
            }
        }
        self.recorder.finish(Some(self.log.hash()))
    }

    /// The faults of this second. Elections after losses of the same second are returned: they come after those who are
    /// due have found no master.
    fn befall(&mut self) -> Vec<usize> {
        let (workload, mut late, mut lost) = (self.workload, Vec::new(), Vec::new());
        for ScheduledFault { event, .. } in workload.faults_at(self.now) {
            let (kind, target) = (event.kind(), event.target(&workload.plan));
            self.recorder.fault(self.now, kind, target);
            self.note(format_args!("{kind} {target}"));
            match *event {
                FaultEvent::Lose { job } => {
                    if self.depose(job).is_some() {
                        lost.push(job);
                    }
                }
                FaultEvent::Restore { job } if lost.contains(&job) => late.push(job),
                FaultEvent::Restore { job } => self.restore(job),
                FaultEvent::Elect { job } => self.elect(job),
                FaultEvent::Spike { .. } | FaultEvent::NoElect { .. } => {}
            }
        }
        late
    }

    /// One turn of everybody who is due.
    fn turns(&mut self) {
        for index in 0..self.threads.len() {
            let Thread { who, due_seconds } = self.threads[index];
            if due_seconds <= self.now {
                let pause = match who {
                    DoormanActor::Client(client) => self.client_turn(client),
                    DoormanActor::DoormanTask(task) => self.task_turn(task),
                };
                self.threads[index].due_seconds = self.now + pause;
            }
        }
    }

    /// Any task wins, its last master included: then nothing happens.
    fn restore(&mut self, job: usize) {
        let winner = self.any_task(job);
        if self.masters[job] != Some(winner) {
            self.depose(job);
            self.install(job, winner);
        }
    }

    /// Any task but the master wins.
    fn elect(&mut self, job: usize) {
        let loser = self.depose(job);
        let winner = loop {
            let winner = self.any_task(job);
            if Some(winner) != loser {
                break winner;
            }
        };
        self.install(job, winner);
    }

    /// The master, if there is one, loses all it knows.
    fn depose(&mut self, job: usize) -> Option<usize> {
        let loser = self.masters[job].take();
        if let Some(loser) = loser {
            self.tasks[loser].server = None;
        }
        loser
    }

    fn install(&mut self, job: usize, winner: usize) {
        let level = self.workload.plan.jobs[job].level;
        self.tasks[winner].server = Some(DoormanServer::elected(self.now, level));
        self.masters[job] = Some(winner);
        self.wake(winner);
        self.note(format_args!("task {winner} leads job {job}"));
    }

    /// A task that was just elected has a turn in the same second.
    fn wake(&mut self, task: usize) {
        let now = self.now;
        let its = self
            .threads
            .iter_mut()
            .filter(|thread| matches!(thread.who, DoormanActor::DoormanTask(who) if who == task));
        its.for_each(|thread| thread.due_seconds = now);
    }

    fn any_task(&mut self, job: usize) -> usize {
        let tasks = self.workload.plan.tasks_per_job;
        job * tasks + self.rng.random_range(0..tasks)
    }

    /// Tells the recorder what the clients want and believe.
    fn happened(&mut self) {
        let wants = self.workload.wants_at(self.now);
        let believes: Vec<f64> = self.clients.iter().map(|client| client.believes(self.now)).collect();
        self.recorder.event(self.now as f64, wants, &believes, &self.fair);
    }

    fn sample(&mut self) {
        let (now, plan) = (self.now, &self.workload.plan);
        let mut levels = vec![Level::default(); plan.depth() + 1];
        let has = self.clients.iter().map(|client| client.believes(now)).sum();
        levels[plan.depth()] = Level { wants: self.workload.wants_at(now).iter().sum(), has, capacity: has };
        for (job, master) in plan.jobs.iter().zip(&self.masters) {
            if let Some(server) = master.and_then(|master| self.tasks[master].server.as_ref()) {
                let level = &mut levels[job.level];
                level.wants += server.wants().unwrap_or(0.0);
                level.has += server.leased(now);
                level.capacity += server.capacity(now);
            }
        }
        self.recorder.sample(now, levels);
    }

    fn note(&mut self, line: impl std::fmt::Display) {
        self.log.add(Time::ZERO + Duration::from_secs(self.now), line);
    }
}

// === impl Asker ===

impl Asker {
    fn believes(&self, now: u64) -> f64 {
        self.lease.map_or(0.0, |lease| lease.worth(now))
    }
}

/// The share that Doorman's own policy gives each client if everybody asks at once: all they want, or the same
/// part of it.
#[must_use]
pub fn fair_shares(wants: &[f64], capacity: f64) -> Vec<f64> {
    let sum: f64 = wants.iter().sum();
    let part = if sum > capacity { capacity / sum } else { 1.0 };
    wants.iter().map(|wants| wants * part).collect()
}
