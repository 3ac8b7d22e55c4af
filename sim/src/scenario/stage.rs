//! A workload, played by our nodes and sessions in the simulation.
//!
//! Over streams a message takes 50 ms a hop, as for the ceilings that the scenarios name, and leases last two minutes: a
//! lease can be recalled at any time, so its length need only be more than the longest time for which a job has no master.
//! Polling, calls take no time and leases last a minute, asked about every 8, 4 and 2 s from the root down, all as in
//! Doorman's own simulation. Clients then ask by their timer only, as Doorman's do, and so do nodes; where something waits
//! the server sets it to 2 s, which is as often as it may be there.
//!
//! The policy is FairShare: what clients should hold is the exact weighted max-min share of what they want.

use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_client::{Fallback, Transport};
use lessor_proto::{Drift, Time};
use lessor_server::node::Claims;

use super::Mode;

use crate::faults::FaultPlan;
use crate::measure::{Level, Recorder, Recording};
use crate::oracle::Violation;
use crate::plan::{
    ClientPlan, Election, EtcdPlan, Hold, LimitPlan, Link, Memory, ResourcePlan, Scrutiny, Settings,
    SimulationPlan, SitePlan, Terms, Way,
};
use crate::simulation::{News, Observer, Simulation};
use crate::workload::{FaultEvent, ScheduledFault, Workload};

/// The only resource.
const RESOURCE: u16 = 0;
/// The time that a message takes on a stream, for each hop.
const HOP: Duration = Duration::from_millis(50);
/// The length of leases: longer than the time that a job may be without a master, and that a successor waits
/// for besides.
const LEASE: Duration = Duration::from_secs(120);
/// The clients begin when all elections have been held.
const PROLOGUE: Duration = Duration::from_secs(2);

/// The run, second by second.
struct Stage<'a> {
    workload: &'a Workload,
    sim: Simulation,
    audience: Audience,
    calls: u64,
}

/// Sees every change of what clients believe.
struct Audience {
    recorder: Recorder,
    wants: Vec<f64>,
    believes: Vec<f64>,
    fair: Vec<f64>,
}

/// Plays `workload` to its end, over streams or polling.
pub(super) fn run(workload: &Workload, mode: Mode) -> Result<Recording, Box<Violation>> {
    let plan = &workload.plan;
    let clients = plan.clients.len();
    let mut stage = Stage {
        workload,
        sim: Simulation::new(workload.seed, &sim(workload, mode)),
        audience: Audience {
            recorder: Recorder::new(plan.capacity, clients, plan.seconds),
            wants: vec![0.0; clients],
            believes: vec![0.0; clients],
            fair: vec![0.0; clients],
        },
        calls: 0,
    };
    stage.sim.run_until(Time::ZERO + PROLOGUE)?;
    for second in 0..=plan.seconds {
        stage.begin_second(second);
        // Up to the last moment of the second: what happens at the beginning of the next comes after its faults.
        let end = PROLOGUE + Duration::from_secs(second + 1) - Duration::from_nanos(1);
        stage.sim.run_until_heard(Time::ZERO + end, &mut stage.audience)?;
        stage.count_calls(second);
    }
    Ok(stage.audience.recorder.finish(Some(stage.sim.hash())))
}

// === impl Stage ===

impl Stage<'_> {
    /// Mishaps, then wants, then the sample.
    fn begin_second(&mut self, second: u64) {
        let workload = self.workload;
        for &ScheduledFault { event, .. } in workload.faults_at(second) {
            self.audience.recorder.fault(second, event.kind(), event.target(&workload.plan));
            match event {
                FaultEvent::Lose { job } => {
                    self.sim.close(job as u32);
                }
                FaultEvent::Restore { job } => self.sim.open(job as u32),
                FaultEvent::Elect { job } => self.elect(job as u32),
                FaultEvent::Spike { .. } | FaultEvent::NoElect { .. } => {}
            }
        }
        self.set_wants(second);
        self.audience.happened(second as f64);
        let levels = self.levels();
        self.audience.recorder.sample(second, levels);
    }

    /// A job elects another of its tasks: somebody deletes the key of the one that leads. One that is lost begins anew.
    fn elect(&mut self, job: u32) {
        self.sim.open(job);
        self.sim.depose(job);
    }

    fn set_wants(&mut self, second: u64) {
        let wants = self.workload.wants_at(second);
        if self.audience.wants == wants {
            return;
        }
        for (client, &wanted) in wants.iter().enumerate() {
            if self.audience.wants[client].to_bits() != wanted.to_bits() || second == 0 {
                self.sim.set_wants(client as u32, wanted);
            }
        }
        self.audience.wants = wants.to_vec();
        self.audience.fair = fair_shares(wants, self.workload.plan.capacity);
    }

    fn count_calls(&mut self, second: u64) {
        let calls = self.sim.counts().calls();
        for _ in self.calls..calls {
            self.audience.recorder.call(second as f64);
        }
        self.calls = calls;
    }

    fn levels(&self) -> Vec<Level> {
        let plan = &self.workload.plan;
        let mut levels = vec![Level::default(); plan.depth() + 1];
        for (job, site) in plan.jobs.iter().zip(0..) {
            let level = &mut levels[job.level];
            if let Some(books) = self.sim.facts().books(site, RESOURCE) {
                level.wants += books.children.iter().map(|child| child.wants).sum::<f64>();
                level.has += books.total as f64 / 1e6;
                level.capacity += books.limit.map_or(0.0, lessor_proto::Amount::as_f64);
            }
        }
        let has = self.audience.believes.iter().sum();
        levels[plan.depth()] = Level { wants: self.audience.wants.iter().sum(), has, capacity: has };
        levels
    }
}

// === impl Audience ===

impl Audience {
    fn happened(&mut self, time_seconds: f64) {
        self.recorder.event(time_seconds, &self.wants, &self.believes, &self.fair);
    }
}

impl Observer for Audience {
    fn hear(&mut self, now: Time, news: News) {
        self.believes[news.client as usize] = news.amount.as_f64();
        self.happened(now.since(Time::ZERO + PROLOGUE).as_nanos() as f64 / 1e9);
    }
}

/// The share that each client should hold: the exact max-min share.
fn fair_shares(wants: &[f64], capacity: f64) -> Vec<f64> {
    let demand = |&wants: &f64| Demand { priority: 0, weight: 1, wants };
    let mut shares = Shares::new(SharePolicy::FairShare, capacity);
    wants.iter().for_each(|wants| shares.insert(&demand(wants)));
    wants.iter().map(|wants| shares.share(&demand(wants))).collect()
}

/// The simulation of a workload.
fn sim(workload: &Workload, mode: Mode) -> SimulationPlan {
    let plan = &workload.plan;
    let streaming = mode == Mode::Stream;
    let link = Link::fixed(if streaming { HOP } else { Duration::ZERO });
    let sites = plan.jobs.iter().map(|job| SitePlan {
        tasks: plan.tasks_per_job as u8,
        link,
        transport: if streaming { Transport::Stream } else { Transport::Poll },
        terms: Terms { lease_length: LEASE, refresh_interval: Duration::from_secs(8 >> job.level) },
        ..SitePlan::new(job.name.clone(), job.parent.map(|parent| parent as u32))
    });
    let clients = plan.clients.iter().map(|client| ClientPlan {
        name: client.name.clone(),
        site: client.job as u32,
        link,
        way: if streaming { Way::Stream } else { Way::Poll },
        holds: vec![Hold::new(RESOURCE, 0.0)],
    });
    SimulationPlan {
        namesakes: false,
        memory: Memory::default(),
        fallback: Fallback::Pessimistic,
        editions: false,
        follows: false,
        mixed: None,
        forgetful: false,
        domain: None,
        limits: LimitPlan::default(),
        sites: sites.collect(),
        clients: clients.collect(),
        resources: vec![ResourcePlan::rate("capacity", plan.capacity)],
        drift: Drift::DEFAULT,
        odd_clocks: false,
        settings: Settings {
            eager: streaming,
            spacing: Duration::from_secs(if streaming { 1 } else { 2 }),
            ..Settings::default()
        },
        faults: FaultPlan::none(),
        watch: Scrutiny::Close,
        tokens: true,
        claims: Claims::Freed,
        election: Election::Etcd(EtcdPlan::default()),
        clients_from: PROLOGUE,
        #[cfg(feature = "mutations")]
        mutation: None,
    }
}
