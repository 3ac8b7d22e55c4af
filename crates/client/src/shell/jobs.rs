//! The jobs of a gauge, between its handle and the driver: what was done here is noted, and said where somebody asks for it; and of
//! what was done elsewhere who waits for it is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lessor_proto::Time;
use tokio::sync::watch;

use super::command::Command;
use super::resource::{Core, Gauge};
use crate::gauge::Semaphore;

/// The jobs of an open gauge: a job is what somebody does with units of it for others who wait until it is done.
///
/// Servers that do not know of jobs pass nothing on: those who wait are then never told.
#[derive(Clone, Debug)]
pub struct GaugeJobs {
    core: Arc<Core<Semaphore>>,
    cell: Arc<JobCell>,
    elsewhere: watch::Receiver<Option<Time>>,
}

/// The state of the jobs of one opening, which its handles and the driver share.
#[derive(Debug)]
pub(super) struct JobCell {
    /// When the last one was done here, in nanoseconds; 0 if none was.
    done: AtomicU64,
    /// The next one is to be told the driver.
    is_asked: AtomicBool,
    /// When the last one was done elsewhere.
    elsewhere: watch::Sender<Option<Time>>,
}

// === impl GaugeJobs ===

impl GaugeJobs {
    /// The jobs of `gauge`.
    #[must_use]
    pub fn of(gauge: &Gauge) -> GaugeJobs {
        let core = gauge.shared();
        let cell = core.jobs.clone().unwrap_or_default();
        let elsewhere = cell.elsewhere.subscribe();
        GaugeJobs { core, cell, elsewhere }
    }

    /// A job was done here at `now`, before its units are given back. Nothing is said of it where nobody has asked.
    pub fn done(&self, now: Time) {
        self.cell.done.fetch_max(now.as_nanos(), Ordering::SeqCst);
        if self.cell.is_asked.swap(false, Ordering::SeqCst) {
            let (resource, generation) = (self.core.resource.clone(), self.core.generation);
            self.command(Command::JobDone { resource, generation });
        }
    }

    /// Somebody here has waited since then for a job that is done elsewhere. It is told once.
    pub fn wait(&self, since: Time) {
        let (resource, generation) = (self.core.resource.clone(), self.core.generation);
        self.command(Command::AwaitJob { resource, generation, since });
    }

    /// When the last job was done elsewhere, as far as is known here: no later than that.
    #[must_use]
    pub fn last_elsewhere(&self) -> Option<Time> {
        *self.elsewhere.borrow()
    }

    /// Waits for the next word of a job that was done elsewhere, behind what this handle has waited for before.
    pub async fn elsewhere(&mut self) -> Option<Time> {
        // The driver, and this handle with the rest of the gauge, keep the other end.
        let _ = self.elsewhere.changed().await;
        *self.elsewhere.borrow_and_update()
    }

    /// A closed client says nothing.
    fn command(&self, command: Command) {
        let _ = self.core.commands.send(command);
    }
}

// === impl JobCell ===

impl JobCell {
    /// The grantor wants to hear of a job: when the last one was done, if that is known.
    pub(super) fn ask(&self) -> Option<Time> {
        self.is_asked.store(true, Ordering::SeqCst);
        self.done()
    }

    /// When the last job was done here.
    pub(super) fn done(&self) -> Option<Time> {
        Some(self.done.load(Ordering::SeqCst)).filter(|&nanos| nanos > 0).map(Time::from_nanos)
    }

    /// A job was done elsewhere.
    pub(super) fn tell(&self, at: Time) {
        self.elsewhere.send_replace(Some(at));
    }
}

impl Default for JobCell {
    fn default() -> JobCell {
        let (done, is_asked) = (AtomicU64::new(0), AtomicBool::new(false));
        JobCell { done, is_asked, elsewhere: watch::Sender::new(None) }
    }
}
