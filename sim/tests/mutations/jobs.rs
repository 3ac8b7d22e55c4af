//! Jobs that were done, and who is not told.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{JobEvent, Session, SessionConfig};
use lessor_client::{Kind, Transport};
use lessor_proto::{Amount, ClientId, Drift, Epoch, Incarnation, Time};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Kind as Counted, Repository, Template};
use lessor_sim::jobs::JobsRun;
use lessor_sim::mutation::Mutation;
use lessor_sim::net::{Endpoint, StillNet};

use super::hall::resource;

/// One server, and holders of a gauge.
struct Shop {
    net: StillNet,
    now: Time,
    without: Option<Mutation>,
}

impl Shop {
    fn open(without: Option<Mutation>) -> Shop {
        let now = Time::ZERO + Duration::from_secs(1_000);
        let mut shop = Shop { net: StillNet::new(&[None]), now, without };
        shop.elect(1);
        shop
    }

    /// Another leader begins, which knows nothing of the one before.
    fn elect(&mut self, epoch: u64) {
        self.net.lose(0);
        let template = Template {
            kind: Counted::Gauge,
            learning: Duration::ZERO,
            ..Template::new(Glob::new("*").expect("a glob"), Amount::from_units(2))
        };
        let repository = Repository::new(vec![template]).expect("it holds together");
        let rules = self.without.map(Mutation::node).unwrap_or_default();
        let config = NodeConfig { drift: Drift::NONE, rules, ..NodeConfig::new("root", Epoch(epoch)) };
        self.net.net.begin(self.now, 0, config, repository);
        self.pass(Duration::ZERO);
    }

    /// Another holder. Returns its number.
    fn enter(&mut self, name: &str) -> usize {
        let config = SessionConfig {
            drift: Drift::NONE,
            transport: Transport::Stream,
            rules: self.without.map(Mutation::client).unwrap_or_default(),
            ..SessionConfig::new(
                ClientId::new(name, 16).expect("a name"),
                Incarnation(7),
                vec![Arc::from("root:1")],
            )
        };
        let mut session = Session::new(config);
        session.add(self.now, resource(), HoldingConfig::new(Kind::Gauge, 1.0, 0));
        let holder = self.net.add(0, session);
        self.pass(Duration::from_secs(5));
        holder
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while self.net.next_deadline() <= end {
            self.now = self.now.max(self.net.next_deadline());
            self.net.settle(self.now, &mut |_, _| {});
        }
        self.now = end;
        self.net.settle(end, &mut |_, _| {});
    }

    fn await_job(&mut self, holder: usize) {
        self.net.sessions[holder].await_job(&resource(), self.now);
        self.pass(Duration::from_millis(10));
    }

    fn job_done(&mut self, holder: usize) {
        self.net.sessions[holder].job_done(&resource(), self.now);
        self.pass(Duration::from_millis(10));
    }

    fn is_told(&mut self, holder: usize) -> bool {
        let session = &mut self.net.sessions[holder];
        std::iter::from_fn(|| session.next_job()).any(|event| matches!(event, JobEvent::Done { .. }))
    }
}

/// Two holders below two leaves.
pub(crate) fn below_two_leaves(without: Option<Mutation>) -> Option<String> {
    let grantors = without.map(Mutation::node).unwrap_or_default();
    let report = JobsRun { grantors, ..JobsRun::of(2, 2) }.play(1);
    assert!(report.jobs > 50, "{report:?}");
    report.fault
}

/// A holder comes while another one waits, and does what that one waits for.
pub(crate) fn of_a_holder_that_comes_late(without: Option<Mutation>) -> Option<String> {
    let mut shop = Shop::open(without);
    let waits = shop.enter("waits");
    shop.await_job(waits);
    let works = shop.enter("works");
    shop.job_done(works);
    (!shop.is_told(waits)).then(|| "who waits is not told of the job of one that came later".to_owned())
}

/// A job is said to a leader that dies with it, before the holder hears of it that waits.
pub(crate) fn that_a_leader_takes_along(without: Option<Mutation>) -> Option<String> {
    let mut shop = Shop::open(without);
    let (works, waits) = (shop.enter("works"), shop.enter("waits"));
    shop.await_job(waits);
    shop.net.cut.insert(Endpoint::Holder(waits));
    shop.job_done(works);
    assert!(!shop.is_told(waits), "it hears of nothing");
    shop.elect(2);
    shop.net.cut.clear();
    shop.pass(Duration::from_secs(60));
    (!shop.is_told(waits))
        .then(|| "who waits is not told of a job that a leader before was told of".to_owned())
}
