//! A workload for a tree of servers and its clients, second by second: who wants how much, and what goes wrong.
//!
//! A workload knows nothing of whoever shares the capacity, so the same one can be given to several systems and they can
//! be compared client by client. It is drawn from a seed or read from a trace; the rules are those of the seven scenarios
//! by which the authors of Doorman judged their design.
//!
//! Inside one second this is the order: faults as they stand in the list, then the change of wants, then samples, then
//! requests.
//!
//! ```
//! use lessor_sim::workload::{Scenario, Workload};
//!
//! let workload = Workload::draw(Scenario::Seven, 1);
//! assert_eq!(workload.plan.clients.len(), 45);
//! assert!(workload.wants_at(3600).iter().sum::<f64>() > workload.plan.capacity);
//! ```

mod draw;
mod plan;
pub mod trace;

pub use self::plan::{Job, Plan, Scenario, UnknownScenario, WorkloadClient};

/// The events in one tree.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// The scenario whose tree it is.
    pub scenario: Scenario,
    /// The tree, its clients and how long it goes on.
    pub plan: Plan,
    /// The seed that the workload was drawn from; of a trace, the seed that the system that runs it draws from.
    pub seed: u64,
    /// One entry for every second in which a want changes, the first at 0, in the order of time.
    pub changes: Vec<WantsChange>,
    /// In the order in which they happen.
    pub faults: Vec<ScheduledFault>,
}

/// The wants of all clients from one second on.
#[derive(Clone, PartialEq, Debug)]
pub struct WantsChange {
    /// The second.
    pub at_seconds: u64,
    /// Of every client in the order of the plan, in units of capacity, after all changes of that second.
    pub wants: Vec<f64>,
}

/// Something that goes wrong, or right again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScheduledFault {
    /// The second.
    pub at_seconds: u64,
    /// The event.
    pub event: FaultEvent,
}

/// The kind of a fault, and the one that it happens to, as a position in the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultEvent {
    /// A client wants much more; how much more is in the change of the same second.
    Spike {
        /// The client.
        client: usize,
    },
    /// The master of a job and all it knows is gone. Nothing happens if the job has none.
    Lose {
        /// The job.
        job: usize,
    },
    /// A job elects any of its tasks, after it had no master. All tasks begin empty.
    Restore {
        /// The job.
        job: usize,
    },
    /// A job elects another task than its master, which loses all it knows.
    Elect {
        /// The job.
        job: usize,
    },
    /// A job elects its master again, so nothing changes.
    NoElect {
        /// The job.
        job: usize,
    },
}

// === impl Workload ===

impl Workload {
    /// The workload of this seed: the same on every machine.
    #[must_use]
    pub fn draw(scenario: Scenario, seed: u64) -> Workload {
        draw::draw(scenario, seed)
    }

    /// The amounts that the clients want after all changes of this second, in the order of the plan.
    #[must_use]
    pub fn wants_at(&self, at_seconds: u64) -> &[f64] {
        let until = self.changes.partition_point(|change| change.at_seconds <= at_seconds);
        until.checked_sub(1).map_or(&[], |last| &self.changes[last].wants)
    }

    /// The faults of this second, in the order in which they happen.
    #[must_use]
    pub fn faults_at(&self, at_seconds: u64) -> &[ScheduledFault] {
        let from = self.faults.partition_point(|fault| fault.at_seconds < at_seconds);
        let until = self.faults.partition_point(|fault| fault.at_seconds <= at_seconds);
        &self.faults[from..until]
    }
}

// === impl FaultEvent ===

impl FaultEvent {
    /// `spike`, `lose`, `restore`, `elect` or `noelect`.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            FaultEvent::Spike { .. } => "spike",
            FaultEvent::Lose { .. } => "lose",
            FaultEvent::Restore { .. } => "restore",
            FaultEvent::Elect { .. } => "elect",
            FaultEvent::NoElect { .. } => "noelect",
        }
    }

    /// The name of the client or job.
    #[must_use]
    pub fn target(self, plan: &Plan) -> &str {
        match self {
            FaultEvent::Spike { client } => &plan.clients[client].name,
            FaultEvent::Lose { job }
            | FaultEvent::Restore { job }
            | FaultEvent::Elect { job }
            | FaultEvent::NoElect { job } => &plan.jobs[job].name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wants_hold_from_their_second_until_the_next_change() {
        let workload = Workload::draw(Scenario::One, 3);
        assert_eq!(workload.wants_at(0), workload.changes[0].wants);
        assert_eq!(workload.wants_at(9), workload.changes[0].wants);
        assert_eq!(workload.wants_at(10), workload.changes[1].wants);
        assert_eq!(workload.wants_at(9_999), workload.changes.last().unwrap().wants);
    }

    #[test]
    fn faults_are_found_by_their_second() {
        let workload = Workload::draw(Scenario::Two, 3);
        let [lost] = workload.faults_at(120) else { panic!("{:?}", workload.faults) };
        assert_eq!((lost.event.kind(), lost.event.target(&workload.plan)), ("lose", "root"));
        let [back] = workload.faults_at(140) else { panic!("{:?}", workload.faults) };
        assert_eq!((back.event.kind(), back.event.target(&workload.plan)), ("restore", "root"));
        assert!(workload.faults_at(121).is_empty());
    }
}
