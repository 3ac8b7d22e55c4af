//! Turns of clients and servers. Each turn returns the seconds until the next one of the same thread, 0 for another in
//! the same second.

use super::lease::{DoormanLease, RETRY_SECONDS};
use super::server::ChildId;
use super::{Asker, DoormanRun};

/// The outcome of a request.
enum TurnOutcome {
    /// With another lease.
    Granted(DoormanLease),
    /// Unanswered, as it came too soon after the last.
    TooSoon,
    /// The job has no master.
    NoMaster,
    /// The task that was asked is not the master any more.
    WrongMaster,
}

/// Longer than any run: whoever is not master has nothing to do until it is elected.
const NEVER: u64 = 1 << 32;

// === impl DoormanRun ===

impl DoormanRun<'_> {
    /// A client asks its job.
    pub(super) fn client_turn(&mut self, client: usize) -> u64 {
        let Asker { lease, mut master } = self.clients[client];
        let wants = self.workload.wants_at(self.now)[client];
        let job = self.workload.plan.clients[client].job;
        let outcome = self.ask(job, &mut master, ChildId::Client(client), wants, lease);
        self.clients[client].master = master;
        if let TurnOutcome::Granted(lease) = outcome {
            self.clients[client].lease = Some(lease);
            self.happened();
            self.note(format_args!("client {client} has {:.6}", lease.capacity));
        }
        self.pause(&outcome, self.clients[client].lease)
    }

    /// A server asks the job above it, if it is master and there is something to ask for; a root has what it has.
    pub(super) fn task_turn(&mut self, task: usize) -> u64 {
        let plan = &self.workload.plan;
        let Some(server) = &mut self.tasks[task].server else { return NEVER };
        let Some(wants) = server.wants() else { return RETRY_SECONDS };
        let Some(parent) = plan.jobs[task / plan.tasks_per_job].parent else {
            let lease = DoormanLease::of_root(self.now, plan.capacity);
            server.lease = Some(lease);
            return lease.interval_seconds.unwrap_or(RETRY_SECONDS);
        };
        let has = server.lease;
        let mut master = self.tasks[task].parent;
        let outcome = self.ask(parent, &mut master, ChildId::DoormanTask(task), wants, has);
        self.tasks[task].parent = master;
        let Some(server) = &mut self.tasks[task].server else { return RETRY_SECONDS };
        if let TurnOutcome::Granted(lease) = outcome {
            server.lease = Some(lease);
        }
        let lease = server.lease;
        if let TurnOutcome::Granted(lease) = outcome {
            self.note(format_args!("task {task} has {:.6}", lease.capacity));
        }
        self.pause(&outcome, lease)
    }

    /// Asks the master of `job`, which is looked up if `master` does not know it.
    fn ask(
        &mut self,
        job: usize,
        master: &mut Option<usize>,
        id: ChildId,
        wants: f64,
        has: Option<DoormanLease>,
    ) -> TurnOutcome {
        let Some(asked) = master.or(self.masters[job]) else { return TurnOutcome::NoMaster };
        *master = Some(asked);
        self.recorder.call(self.now as f64);
        let has = has.filter(|lease| self.now < lease.expires_seconds);
        match &mut self.tasks[asked].server {
            None => {
                *master = None;
                TurnOutcome::WrongMaster
            }
            Some(server) => {
                server.ask(self.now, id, wants, has).map_or(TurnOutcome::TooSoon, TurnOutcome::Granted)
            }
        }
    }

    fn pause(&self, outcome: &TurnOutcome, lease: Option<DoormanLease>) -> u64 {
        match outcome {
            TurnOutcome::WrongMaster => 0,
            TurnOutcome::NoMaster => RETRY_SECONDS,
            TurnOutcome::Granted(_) | TurnOutcome::TooSoon => {
                let lease = lease.filter(|lease| self.now < lease.expires_seconds);
                lease.and_then(|lease| lease.interval_seconds).unwrap_or(RETRY_SECONDS)
            }
        }
    }
}
