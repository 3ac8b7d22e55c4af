//! Draws a workload from a seed.
//!
//! The order of the draws is part of what a seed means: second by second, first the fault of the second, then one number
//! a client for its step, in the order of the plan.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{FaultEvent, Scenario, ScheduledFault, WantsChange, Workload};

/// Seconds between two steps of the wants.
const STEP_SECONDS: u64 = 10;
/// The furthest that one step goes, as a fraction of the want.
const STEP: f64 = 0.1;
/// Seconds between two faults of scenario seven.
const FAULT_SECONDS: u64 = 60;
/// The amount that a client wants more after a fault.
const SPIKE: f64 = 100.0;
/// When two clients of scenario six begin to want much.
const BOTH_AT_SECONDS: u64 = 150;
/// The amount that they want then.
const BOTH: f64 = 1000.0;
/// The longest that a job has no master.
const LONGEST_LOSS_SECONDS: u64 = 60;

/// The state of a drawing so far.
#[derive(Debug)]
struct Drawing {
    workload: Workload,
    rng: Pcg64,
    wants: Vec<f64>,
    /// Of every job, whether it has a master: a job without one cannot lose it.
    led: Vec<bool>,
    /// Elections after losses: the second, the job.
    pending: Vec<(u64, usize)>,
}

/// The workload of `scenario` and `seed`.
pub(super) fn draw(scenario: Scenario, seed: u64) -> Workload {
    let plan = scenario.plan();
    let mut drawing = Drawing {
        rng: Pcg64::seed_from_u64(seed),
        wants: vec![plan.first_wants; plan.clients.len()],
        led: vec![true; plan.jobs.len()],
        pending: Vec::new(),
        workload: Workload { scenario, plan, seed, changes: Vec::new(), faults: Vec::new() },
    };
    for now in 0..=drawing.workload.plan.seconds {
        drawing.second(now);
    }
    drawing.workload
}

// === impl Drawing ===

impl Drawing {
    fn second(&mut self, now: u64) {
        match self.workload.scenario {
            Scenario::Two if now == 120 => self.lose(now, 0, 20),
            Scenario::Three if now == 120 => self.lose(now, 0, 70),
            Scenario::Six if now == BOTH_AT_SECONDS => self.both(now),
            Scenario::Seven if now > 0 && now.is_multiple_of(FAULT_SECONDS) => self.fault(now),
            _ => {}
        }
        self.restore(now);
        if now.is_multiple_of(STEP_SECONDS) {
            for wants in &mut self.wants {
                let step = 1.0 + STEP * (1.0 - 2.0 * self.rng.random::<f64>());
                *wants = (*wants * step).max(0.0);
            }
            self.workload.changes.push(WantsChange { at_seconds: now, wants: self.wants.clone() });
        }
    }

    /// Two different clients want much. Both faults fall on a step, which carries them.
    fn both(&mut self, now: u64) {
        let clients = self.wants.len();
        let first = self.rng.random_range(0..clients);
        let second = (first + self.rng.random_range(1..clients)) % clients;
        for client in [first, second] {
            self.wants[client] = BOTH;
            self.note(now, FaultEvent::Spike { client });
        }
    }

    /// One of fifteen: an election, ten spikes, four losses.
    fn fault(&mut self, now: u64) {
        match self.rng.random_range(0..15) {
            0 => self.elect(now),
            1..=10 => {
                let client = self.rng.random_range(0..self.wants.len());
                self.wants[client] += SPIKE;
                self.note(now, FaultEvent::Spike { client });
            }
            _ => {
                let job = self.rng.random_range(0..self.led.len());
                let seconds = self.rng.random_range(0..=LONGEST_LOSS_SECONDS);
                self.lose(now, job, seconds);
            }
        }
    }

    /// Any task of a job wins: of three, one is the master already. A job without master gets one in any case.
    fn elect(&mut self, now: u64) {
        let job = self.rng.random_range(0..self.led.len());
        let same = self.rng.random_range(0..self.workload.plan.tasks_per_job) == 0;
        let event =
            if same && self.led[job] { FaultEvent::NoElect { job } } else { FaultEvent::Elect { job } };
        self.led[job] = true;
        self.note(now, event);
    }

    fn lose(&mut self, now: u64, job: usize, seconds: u64) {
        if std::mem::replace(&mut self.led[job], false) {
            self.note(now, FaultEvent::Lose { job });
            self.pending.push((now + seconds, job));
        }
    }

    /// The elections of this second, in the order of the losses, so the one that was due longest comes first.
    fn restore(&mut self, now: u64) {
        let due: Vec<usize> = self.pending.extract_if(.., |(at, _)| *at == now).map(|(_, job)| job).collect();
        for job in due {
            self.led[job] = true;
            self.note(now, FaultEvent::Restore { job });
        }
    }

    fn note(&mut self, at_seconds: u64, event: FaultEvent) {
        self.workload.faults.push(ScheduledFault { at_seconds, event });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(mut numbers: Vec<f64>) -> f64 {
        numbers.sort_by(f64::total_cmp);
        numbers[numbers.len() / 2]
    }

    fn last_wants(scenario: Scenario) -> f64 {
        let sum = |seed| Workload::draw(scenario, seed).wants_at(3600).iter().sum();
        median((0..100).map(sum).collect())
    }

    #[test]
    fn the_same_seed_gives_the_same_workload() {
        assert_eq!(Workload::draw(Scenario::Seven, 5), Workload::draw(Scenario::Seven, 5));
        assert_ne!(Workload::draw(Scenario::Seven, 5), Workload::draw(Scenario::Seven, 6));
    }

    #[test]
    fn a_step_is_at_most_a_tenth_and_all_step_at_once() {
        let workload = Workload::draw(Scenario::Five, 1);
        assert_eq!(workload.changes.len(), 31);
        let mut before = vec![15.0; 45];
        for (index, change) in workload.changes.iter().enumerate() {
            assert_eq!(change.at_seconds, 10 * index as u64);
            for (new, old) in change.wants.iter().zip(&before) {
                assert!((0.9..=1.1).contains(&(new / old)), "{old} to {new}");
            }
            before.clone_from(&change.wants);
        }
    }

    #[test]
    fn wants_end_where_the_originals_do() {
        // The medians of a hundred seeds of the original.
        for (scenario, wanted) in [
            (Scenario::One, 555.0),
            (Scenario::Four, 501.0),
            (Scenario::Five, 669.0),
            (Scenario::Six, 2600.0),
            (Scenario::Seven, 4570.0),
        ] {
            let found = last_wants(scenario);
            assert!((found / wanted - 1.0).abs() < 0.1, "{scenario}: {found}, wanted {wanted}");
        }
    }

    #[test]
    fn six_raises_two_different_clients() {
        for seed in 0..100 {
            let workload = Workload::draw(Scenario::Six, seed);
            let [first, second] = workload.faults_at(150) else { panic!("{:?}", workload.faults) };
            assert_ne!(first, second);
            let raised = workload.wants_at(150).iter().filter(|wants| **wants >= 900.0);
            assert_eq!(raised.count(), 2);
        }
    }

    #[test]
    fn faults_come_as_often_as_in_the_original() {
        let mut counts = std::collections::BTreeMap::new();
        for seed in 0..200 {
            let workload = Workload::draw(Scenario::Seven, seed);
            for fault in &workload.faults {
                let kind = fault.event.kind();
                assert!(kind == "restore" || fault.at_seconds.is_multiple_of(60));
                *counts.entry(kind).or_insert(0.0) += 1.0 / 200.0;
            }
        }
        for (kind, wanted) in [("spike", 40.4), ("elect", 2.6), ("noelect", 1.3), ("lose", 15.4)] {
            let found: f64 = counts[kind];
            assert!((found / wanted - 1.0).abs() < 0.15, "{kind}: {found}, wanted {wanted}");
        }
    }

    #[test]
    fn a_job_without_a_master_loses_none() {
        for seed in 0..500 {
            let mut led = [true; 13];
            for fault in Workload::draw(Scenario::Seven, seed).faults {
                match fault.event {
                    FaultEvent::Lose { job } => assert!(std::mem::replace(&mut led[job], false)),
                    FaultEvent::Restore { job } | FaultEvent::Elect { job } => led[job] = true,
                    FaultEvent::NoElect { job } => assert!(led[job]),
                    FaultEvent::Spike { .. } => {}
                }
            }
        }
    }
}
