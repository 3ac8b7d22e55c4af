//! Servers, target and clients together, and what can be said of them.

use std::time::Duration;

use anyhow::bail;
use lessor_client::LeaseState;
use lessor_client::internals::clock;
use lessor_proto::{Amount, Time};

use super::script::{Appetite, LEAVES, Script};
use super::target::{Judge, Target};
use super::tenants::{self, Tenants};
use super::tree::{BURST, Tree};
use super::view::{self, Client, Leaf, View};
use super::worker::{Work, Worker};

/// Everything that runs, and the figures so far.
#[derive(Debug)]
pub(super) struct Fleet {
    tree: Tree,
    target: Target,
    /// The clients, and at which leaf each is.
    workers: Vec<(usize, Worker)>,
    tenants: Tenants,
    script: Script,
    /// The root has ended once.
    restarted: bool,
    limit: u32,
    capacity: f64,
    start: Time,
    figures: FleetFigures,
    view: View,
}

/// The figures so far.
#[derive(Debug, Default)]
struct FleetFigures {
    /// When the clients' leases first summed up to nearly all there is, and what the target had seen by then.
    settled: Option<(Time, u64)>,
    /// By how much clients ever believed to have more than there is, in units a second.
    overcommitment: f64,
    /// Requests a second at the target, sampled.
    history: Vec<(f64, f64)>,
}

/// The part of the target's limit that is kept back: on the way to it requests bunch up.
const KEPT_BACK: f64 = 0.04;
/// In a second each client may send what it is leased for so much longer, or one request.
const SAVED: f64 = BURST.as_millis() as f64 / 1000.0;
/// The most looks at the clients until nothing has changed between two of them.
const LOOKS: usize = 20;

// === impl Fleet ===

impl Fleet {
    pub(super) async fn start(limit: u32, clients: usize, length: Duration) -> anyhow::Result<Fleet> {
        let capacity = leasable(limit, clients)?;
        let fair = capacity / clients as f64;
        let target = Target::start(limit).await?;
        let tree = Tree::start(capacity, tenants::domains(fair)?).await?;
        let (script, start, addresses) = (Script::new(length), clock::now(), tree.addresses());
        let (mut workers, mut fronts) = (Vec::with_capacity(clients), Vec::new());
        for (leaf, name) in LEAVES.into_iter().enumerate() {
            let here = (clients + LEAVES.len() - 1 - leaf) / LEAVES.len();
            let front = if leaf == 0 { tenants::fronts(here) } else { 0 };
            for number in 0..here {
                let is_front = number < front;
                let work = match is_front {
                    true => Work::Serve(tenants::wants(fair) / front as f64),
                    false => Work::Own(Appetite::new(script, leaf, fair, number, here), start),
                };
                let name = format!("{name}-{}", number + 1);
                let worker = Worker::start(name, addresses[leaf], target.address, work)?;
                fronts.extend(is_front.then(|| worker.queries().clone()));
                workers.push((leaf, worker));
            }
        }
        let tenants = Tenants::start(fronts, target.address, fair)?;
        let mut fleet = Fleet {
            tree,
            target,
            workers,
            tenants,
            script,
            restarted: false,
            limit,
            capacity,
            start,
            figures: FleetFigures::default(),
            view: View::default(),
        };
        fleet.look();
        Ok(fleet)
    }

    /// Does what the script says, and looks at everything.
    pub(super) async fn step(&mut self) -> anyhow::Result<()> {
        let since = clock::now().since(self.start);
        if !self.restarted && self.script.restart().is_some_and(|at| at <= since) {
            self.restarted = true;
            self.tree.end_root();
        }
        self.tree.begin_root().await?;
        self.look();
        Ok(())
    }

    /// The view as of the last look.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    /// Requests a second at the target, by the seconds since the beginning.
    pub(super) fn history(&self) -> &[(f64, f64)] {
        &self.figures.history
    }

    pub(super) async fn end(self) {
        self.tenants.end();
        for (_, worker) in self.workers {
            worker.end().await;
        }
        self.tree.end().await;
    }

    fn look(&mut self) {
        let (leases, is_one_instant) = self.leases();
        let (now, judge) = (clock::now(), self.target.verdict());
        let held: f64 = leases.iter().map(|lease| usable(lease, now)).sum();
        if is_one_instant {
            self.figures.overcommitment = self.figures.overcommitment.max(held - self.capacity);
        }
        self.figures.overcommitment = self.figures.overcommitment.max(self.tree.overcommitment());
        if self.figures.settled.is_none() && held >= 0.95 * self.capacity {
            self.figures.settled = Some((now, judge.seen));
        }
        let since = now.since(self.start);
        let tenants = self.tenants.look(now);
        self.figures.history.push((since.as_secs_f64(), judge.rate() as f64));
        self.view = View {
            seconds: since.as_secs_f64(),
            length: self.script.length().as_secs_f64(),
            limit: self.limit,
            capacity: self.capacity,
            says: self.script.says(since),
            root: self.tree.root(),
            leaves: self.leaves(&leases, now),
            summary: self.summary(&judge, &tenants, now),
            tenants,
            fronts: self.tenants.fronts(),
            judge,
        };
    }

    /// The leases of all clients, and whether all of them were held at one instant: nothing changed between two
    /// looks. While capacity moves, one look can see what has come to one client and not yet what has left another.
    fn leases(&self) -> (Vec<LeaseState>, bool) {
        let look = || self.workers.iter().map(|(_, worker)| worker.lease()).collect::<Vec<_>>();
        let mut leases = look();
        for _ in 0..LOOKS {
            let again = look();
            if again == leases {
                return (leases, true);
            }
            leases = again;
        }
        (leases, false)
    }

    fn leaves(&self, leases: &[LeaseState], now: Time) -> Vec<Leaf> {
        let mut leaves = self.tree.leaves();
        for ((leaf, worker), lease) in self.workers.iter().zip(leases) {
            leaves[*leaf].clients.push(Client {
                name: worker.name.clone(),
                wants: lease.wants,
                has: usable(lease, now),
                rung: lease.rung.name(),
            });
        }
        leaves
    }

    fn summary(&self, judge: &Judge, tenants: &[view::Tenant], now: Time) -> String {
        let used = match self.figures.settled {
            Some((since, seen)) if since < now => {
                let whole = self.capacity * now.since(since).as_secs_f64();
                format!("{:.1} %", 100.0 * (judge.seen - seen) as f64 / whole)
            }
            _ => "nothing yet".to_owned(),
        };
        // Less than a thousandth is rounding in the sum of a dozen doubles.
        let over = if self.figures.overcommitment < 1e-3 { 0.0 } else { self.figures.overcommitment };
        let (greedy, others) = tenants::refused(tenants);
        format!(
            "limit {}/s, highest second seen at the target {}, refused {}, share used {used} of {}/s, greedy tenant refused \
             {greedy}, other tenants {others}, over-commitment {over}",
            self.limit, judge.highest, judge.refused, self.capacity
        )
    }
}

/// The part of a limit that can be leased to so many clients, in requests a second: no second may hold more
/// than the limit.
fn leasable(limit: u32, clients: usize) -> anyhow::Result<f64> {
    let (limit, clients) = (f64::from(limit), clients as f64);
    let capacity = (limit * (1.0 - KEPT_BACK)).min((limit - clients) / (1.0 + SAVED)).floor();
    if capacity < clients {
        bail!("--limit {limit} is too small for {clients} clients, wanted {} or more", 3.0 * clients);
    }
    Ok(capacity)
}

/// The capacity that a lease allows at `now`.
fn usable(lease: &LeaseState, now: Time) -> f64 {
    lease.capacity.filter(|_| lease.until.is_none_or(|until| now < until)).unwrap_or(Amount::ZERO).as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_leased_and_what_clients_save_up_fits_the_limit() {
        assert!((leasable(500, 12).unwrap() - 480.0).abs() < 1e-9);
        for (limit, clients) in [(10, 3), (100, 12), (150, 50), (5_000, 50)] {
            let capacity = leasable(limit, clients).unwrap();
            assert!(capacity * (1.0 + SAVED) + clients as f64 <= f64::from(limit), "{limit}, {clients}");
        }
        let told = leasable(20, 12).unwrap_err().to_string();
        assert_eq!(told, "--limit 20 is too small for 12 clients, wanted 36 or more");
    }
}
