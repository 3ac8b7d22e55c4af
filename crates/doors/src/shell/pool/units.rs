//! The gauges of keys: opened when a key is asked for first, and closed when nobody has asked for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::jobs::GaugeJobs;
use lessor_client::{Amount, Client, Denied, Gauge, Permit, Rung};
use lessor_proto::Time;
use prometheus_client::metrics::counter::Counter;

use crate::pool::{NoUnit, PoolGauge, PoolUnits};
use crate::shell::figures::PoolFigures;

/// The time after which a gauge that nobody uses is closed.
const IDLE: Duration = Duration::from_secs(30);

/// The gauges that are open, by the names of their resources.
#[derive(Debug)]
pub(super) struct PoolGauges {
    client: Client,
    open: BTreeMap<Box<str>, OpenGauge>,
    figures: PoolFigures,
    /// The most that are open at a time.
    most: usize,
}

#[derive(Debug)]
struct OpenGauge {
    gauge: Gauge,
    wants: u32,
    used: Time,
    jobs: OpenJobs,
}

/// The jobs of a gauge that is open.
#[derive(Debug)]
struct OpenJobs {
    way: GaugeJobs,
    /// One that is done elsewhere was asked for, and was not heard of yet.
    is_awaited: bool,
    /// When that was done which was heard of last.
    heard: Option<Time>,
}

/// A unit in use. That it is longer than its lease there is no word for in the protocol, and it is counted.
#[derive(Debug)]
pub(super) struct HeldUnit {
    permit: Permit,
    outlived: Counter,
}

// === impl HeldUnit ===

impl Drop for HeldUnit {
    fn drop(&mut self) {
        if self.permit.is_expired() {
            self.outlived.inc();
        }
    }
}

// === impl PoolGauges ===

impl PoolGauges {
    pub(super) fn new(client: Client, figures: PoolFigures, most: usize) -> PoolGauges {
        PoolGauges { client, open: BTreeMap::new(), figures, most }
    }

    /// The handle of a gauge that is open, and the way on which word comes of jobs that were done elsewhere.
    pub(super) fn way(&self, of: &PoolGauge) -> Option<(Gauge, GaugeJobs)> {
        self.open.get(&of.name).map(|open| (open.gauge.clone(), open.jobs.way.clone()))
    }

    /// Whether a job that is done elsewhere was asked for, and was not heard of yet.
    pub(super) fn is_job_awaited(&self, of: &PoolGauge) -> bool {
        self.open.get(&of.name).is_some_and(|open| open.jobs.is_awaited)
    }

    /// Somebody has waited since then for a job that is done elsewhere.
    pub(super) fn await_job(&mut self, of: &PoolGauge, since: Time) {
        if let Some(OpenGauge { jobs, .. }) = self.open.get_mut(&of.name) {
            jobs.is_awaited = true;
            jobs.way.wait(since);
        }
    }

    /// When a job was done elsewhere, if that was not asked before.
    pub(super) fn take_job(&mut self, of: &PoolGauge) -> Option<Time> {
        let OpenGauge { jobs, .. } = self.open.get_mut(&of.name)?;
        let at = jobs.way.last_elsewhere().filter(|&at| Some(at) > jobs.heard)?;
        (jobs.heard, jobs.is_awaited) = (Some(at), false);
        Some(at)
    }

    /// A unit that has come.
    pub(super) fn unit(&self, permit: Permit) -> HeldUnit {
        HeldUnit { permit, outlived: self.figures.outlived.clone() }
    }

    /// Asks for so many units, in use or waited for. An idle key wants none: its unit is somebody else's at once.
    pub(super) fn want(&mut self, of: &PoolGauge, wants: u32) {
        if let Some(open) = self.open.get_mut(&of.name) {
            open.used = clock::now();
            if open.wants != wants {
                open.wants = wants;
                open.gauge.set_wants(wants.into());
            }
        }
    }

    /// Closes the gauges that nobody has used for a while.
    pub(super) fn sweep(&mut self, now: Time) {
        self.open.retain(|_, open| open.wants > 0 || now < open.used + IDLE);
        self.show();
    }

    /// The gauge, which is opened if it was not; nothing where there are too many, or the client is closed.
    fn opened(&mut self, of: &Arc<PoolGauge>) -> Option<&mut OpenGauge> {
        if !self.open.contains_key(&of.name) {
            if self.open.len() >= self.most {
                return None;
            }
            let workers = of.workers();
            let opening = self.client.gauge(&*of.name).wants(1.0).max_waiters(workers as usize);
            let gauge = opening
                .open()
                .inspect_err(|fault| tracing::error!(resource = &*of.name, %fault, "not opened"));
            let gauge = gauge.ok()?;
            let jobs = OpenJobs { way: GaugeJobs::of(&gauge), is_awaited: false, heard: None };
            let open = OpenGauge { gauge, wants: 1, used: clock::now(), jobs };
            self.open.insert(of.name.clone(), open);
            self.show();
        }
        self.open.get_mut(&of.name)
    }

    fn show(&self) {
        self.figures.leased.set(i64::try_from(self.open.len()).unwrap_or(i64::MAX));
    }
}

impl PoolUnits for PoolGauges {
    type Permit = HeldUnit;

    fn take(&mut self, of: &Arc<PoolGauge>) -> Result<HeldUnit, NoUnit> {
        let open = self.opened(of).ok_or(NoUnit::Never)?;
        open.used = clock::now();
        let is_final = |denied: &Denied| denied.is_refusal() || matches!(denied, Denied::Closed);
        match open.gauge.try_acquire(1) {
            Ok(permit) => Ok(self.unit(permit)),
            Err(denied) if is_final(&denied) => Err(NoUnit::Never),
            Err(_) => Err(NoUnit::NotHere),
        }
    }

    fn job_done(&mut self, of: &PoolGauge, now: Time) {
        if let Some(open) = self.open.get(&of.name) {
            open.jobs.way.done(now);
        }
    }

    fn is_leased(&self, of: &PoolGauge) -> bool {
        self.open.get(&of.name).is_some_and(|open| {
            let lease = open.gauge.lease();
            // Of a server that learns it is not known how many there are.
            lease.capacity != Some(Amount::ZERO) || lease.rung == Rung::Leased && !lease.is_learning
        })
    }
}
