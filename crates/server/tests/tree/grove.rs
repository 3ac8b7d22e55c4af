//! A tree of real nodes and sessions between which nothing takes time or is lost.

use std::sync::Arc;

use lessor_client::internals::holding::{HoldingConfig, Surplus};
use lessor_client::internals::session::{Session, SessionConfig};
use lessor_client::{Fallback, Kind, Transport};
use lessor_proto::message::{Band, Bands, HolderKind};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{NodeConfig, ParentConfig};
use lessor_server::repository::{Glob, Repository, Template};
use lessor_sim::net::StillNet;

/// The tree: the root is node 0.
pub(crate) struct Grove {
    now: Time,
    net: StillNet,
}

/// Moments after which a tree should have come to rest.
const ENDLESS: usize = 2_000_000;

// === impl Grove ===

impl Grove {
    /// Nodes that ask those of the numbers `parents`, the first of which is the root and asks nobody, and the one of `template`.
    pub(crate) fn new(template: &Template, parents: &[Option<usize>], transport: Transport) -> Grove {
        let mut net = StillNet::new(parents);
        for (number, parent) in parents.iter().enumerate() {
            let mut config = NodeConfig::new(name(number), Epoch(1));
            config.parent =
                parent.map(|parent| ParentConfig { servers: vec![address(parent)], transport, eager: true });
            let repository = Repository::new(vec![template.clone()]).expect("one template");
            net.net.begin(Time::ZERO, number, config, repository);
        }
        Grove { now: Time::ZERO, net }
    }

    /// Somebody asks `parent` for `bands`; several, or one of more than one client, is asked for as a node does.
    pub(crate) fn plant(&mut self, parent: usize, bands: &[Band], transport: Transport) {
        let is_client = bands.len() == 1 && bands[0].subclients == 1;
        let holder = ClientId::new(format!("h{}", self.net.sessions.len()), 256).expect("a name");
        let config = SessionConfig {
            kind: if is_client { HolderKind::Client } else { HolderKind::Node },
            transport,
            ..SessionConfig::new(holder, Incarnation(1), vec![address(parent)])
        };
        let mut session = Session::new(config);
        let holding = HoldingConfig {
            kind: Kind::Rate,
            bands: bands.iter().cloned().collect::<Bands>(),
            fallback: Fallback::Pessimistic,
            surplus: Surplus::Return,
        };
        session.add(self.now, resource(), holding);
        self.net.add(parent, session);
    }

    /// The amount that each holder may use.
    pub(crate) fn believed(&self) -> Vec<f64> {
        let amount = |session: &Session| session.allowance(self.now, &resource()).capacity;
        self.net.sessions.iter().map(|session| amount(session).unwrap_or(Amount::MAX).as_f64()).collect()
    }

    /// Lets time pass until `end`, with all that happens meanwhile.
    pub(crate) fn until(&mut self, end: Time) {
        for _ in 0..ENDLESS {
            self.net.settle(self.now, &mut |_, _| {});
            let due = self.net.next_deadline();
            if due > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(due);
        }
        panic!("the tree never comes to rest");
    }
}

pub(crate) fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

/// A template that gives everybody that capacity of everything.
pub(crate) fn template(capacity: f64) -> Template {
    Template::new(Glob::new("*").expect("a glob"), Amount::from_f64(capacity))
}

fn name(node: usize) -> String {
    format!("n{node}")
}

fn address(node: usize) -> Arc<str> {
    format!("n{node}:1").into()
}
