//! Server, target and clients together, and what can be said of them.

use std::time::Duration;

use lessor_client::shell::clock;
use lessor_proto::{Amount, Time};
use lessor_server::node::{NodeConfig, StatusQuery};
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::{Server, ServerOptions};

use super::target::{Judge, Target};
use super::worker::{Appetite, Worker};

/// Everything that runs, and the figures so far.
#[derive(Debug)]
pub(super) struct Town {
    server: Server,
    target: Target,
    workers: Vec<Worker>,
    pub(super) limit: u32,
    pub(super) leased_out: f64,
    pub(super) start: Time,
    /// When the clients' leases first summed up to nearly all there is, and what the target had seen by then.
    settled: Option<(Time, u64)>,
    /// By how much clients ever believed to have more than there is, in units a second.
    overcommitment: f64,
    pub(super) view: View,
    /// Requests a second at the target, sampled.
    pub(super) history: Vec<(f64, f64)>,
}

/// How it looked when it was last looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct View {
    pub(super) judge: Judge,
    pub(super) clients: Vec<ClientView>,
    /// The sum of the clients' live leases.
    pub(super) held: f64,
    pub(super) seconds: f64,
}

#[derive(Clone, Debug)]
pub(super) struct ClientView {
    pub(super) name: String,
    /// What it has measured and asked for.
    pub(super) wants: f64,
    pub(super) has: f64,
    pub(super) rung: &'static str,
}

/// What is kept back of the target's limit: on the way to it requests bunch up.
const KEPT_BACK: f64 = 0.04;

// === impl Town ===

impl Town {
    pub(super) async fn start(limit: u32, clients: u32, length: Duration) -> anyhow::Result<Town> {
        let leased_out = (f64::from(limit) * (1.0 - KEPT_BACK)).floor();
        let target = Target::start(limit).await?;
        let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        let server = Server::start(options, NodeConfig::new("root", 1), repository(leased_out)?).await?;
        let start = clock::now();
        let workers = (0..clients).map(|number| {
            let appetite = appetite(number, clients, leased_out, start, length);
            Worker::start(format!("client-{number:02}"), server.address(), target.address, appetite)
        });
        Ok(Town {
            workers: workers.collect::<anyhow::Result<_>>()?,
            server,
            target,
            limit,
            leased_out,
            start,
            settled: None,
            overcommitment: 0.0,
            view: View::default(),
            history: Vec::new(),
        })
    }

    /// Looks at everything.
    pub(super) fn sample(&mut self) {
        let now = clock::now();
        let clients: Vec<ClientView> = self.workers.iter().map(|worker| client(worker, now)).collect();
        let held: f64 = clients.iter().map(|client| client.has).sum();
        let judge = self.target.verdict();
        // The clients are not looked at in one instant, but a lease is lowered before it is raised elsewhere.
        self.overcommitment =
            self.overcommitment.max(held - self.leased_out).max(self.booked_overcommitment());
        if self.settled.is_none() && held >= 0.95 * self.leased_out {
            self.settled = Some((now, judge.seen));
        }
        let seconds = now.since(self.start).as_secs_f64();
        self.history.push((seconds, judge.rate() as f64));
        self.view = View { judge, clients, held, seconds };
    }

    /// The last line: what the judge says.
    pub(super) fn summary(&self) -> String {
        let judge = self.target.verdict();
        let used = match self.settled {
            Some((since, seen)) => {
                let seconds = clock::now().since(since).as_secs_f64();
                format!("{:.1} %", 100.0 * (judge.seen - seen) as f64 / (self.leased_out * seconds))
            }
            None => "nothing yet".to_owned(),
        };
        // Less than a thousandth is rounding in the sum of a dozen doubles.
        let over = if self.overcommitment < 1e-3 { 0.0 } else { self.overcommitment };
        format!(
            "limit {}/s, highest second seen at the target {}, refused {}, share used {used} of {}/s, over-commitment {over}",
            self.limit, judge.highest, judge.refused, self.leased_out
        )
    }

    pub(super) fn client_count(&self) -> usize {
        self.workers.len()
    }

    pub(super) async fn end(self) {
        for worker in self.workers {
            worker.end().await;
        }
        self.server.drain().await;
    }

    fn booked_overcommitment(&self) -> f64 {
        let query = StatusQuery { holders: 0, ..StatusQuery::default() };
        let resources =
            self.server.driver().status(&query).map(|status| status.resources).unwrap_or_default();
        resources.iter().map(|resource| resource.overcommitment).sum()
    }
}

fn client(worker: &Worker, now: Time) -> ClientView {
    let lease = worker.lease();
    let capacity = lease.capacity.filter(|_| now < lease.until).unwrap_or(Amount::ZERO);
    ClientView {
        name: worker.name.clone(),
        wants: lease.wants,
        has: capacity.as_f64(),
        rung: lease.rung.name(),
    }
}

/// Together they want about twice what there is; one client in four has a spike, one after another.
fn appetite(number: u32, clients: u32, capacity: f64, start: Time, length: Duration) -> Appetite {
    let place = (f64::from(number) + 0.5) / f64::from(clients);
    let spike = (number % 4 == 1).then(|| {
        let from = length.mul_f64(0.2 + 0.6 * place);
        (from, from + length.mul_f64(0.2), capacity)
    });
    let base = 4.0 * place * capacity / f64::from(clients);
    Appetite { base, phase: place, spike, start }
}

fn repository(capacity: f64) -> anyhow::Result<Repository> {
    let repository = Repository::new(vec![Template {
        safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
        description: "requests a second".to_owned(),
        lease_length: Duration::from_secs(10),
        refresh_interval: Duration::from_secs(1),
        // The server is as old as its clients: nothing is out from before.
        learning: Duration::ZERO,
        ..Template::new(Glob::new("target")?, Amount::from_f64(capacity))
    }])?;
    Ok(repository)
}
