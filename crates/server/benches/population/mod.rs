//! A node with so many holders of one resource, which want one and a half times what there is.

use lessor_proto::message::{Ask, Band, HolderKind, Order, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::repository::{Glob, Repository, Template};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

#[derive(Clone, Copy)]
pub(crate) enum Wants {
    /// All want the same: every change moves between the same few keys.
    Fixed,
    /// From 0 to 20.
    Uniform,
    /// Few want much, many little.
    Zipf,
}

pub(crate) struct Population {
    pub(crate) node: Node,
    pub(crate) holders: Vec<ClientId>,
    /// The last grant of each.
    pub(crate) leases: Vec<Option<(Amount, Order)>>,
    pub(crate) dice: Pcg64,
}

// === impl Wants ===

impl Wants {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Wants::Fixed => "fixed",
            Wants::Uniform => "uniform",
            Wants::Zipf => "zipf",
        }
    }

    pub(crate) fn draw(self, dice: &mut Pcg64) -> f64 {
        match self {
            Wants::Fixed => 10.0,
            Wants::Uniform => 20.0 * dice.random::<f64>(),
            // Rank r of a million, drawn by the inverse of the harmonic sum, wants a million through r.
            Wants::Zipf => 1e6 / 1e6_f64.powf(dice.random::<f64>()).floor(),
        }
    }

    fn mean(self) -> f64 {
        match self {
            Wants::Fixed | Wants::Uniform => 10.0,
            Wants::Zipf => 1e6 / 1e6_f64.ln(),
        }
    }
}

// === impl Population ===

impl Population {
    pub(crate) fn new(leases: usize, wants: Wants) -> Population {
        let capacity = Amount::from_f64(wants.mean() * leases as f64 / 1.5);
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(capacity));
        let mut town =
            Population { node, holders: Vec::new(), leases: Vec::new(), dice: Pcg64::seed_from_u64(1) };
        for number in 0..leases {
            let ask = ask(number, wants.draw(&mut town.dice));
            let answer = town.node.ask(Time::ZERO, &ask).expect("a template covers it");
            let grant = &answer.grants[0];
            town.leases.push(grant.order.map(|order| (grant.capacity, order)));
            town.holders.push(ask.holder);
        }
        town
    }
}

pub(crate) fn ask(number: usize, wants: f64) -> Ask {
    Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(format!("client-{number:07}"), 256).expect("a name"),
        incarnation: Some(Incarnation(number as u64)),
        report_id: None,
        target_epoch: None,
        reports: vec![Report::new(
            ResourceId::new("db", 256).expect("a name"),
            [Band { priority: 0, subclients: 1, wants }],
        )],
        line: None,
    }
}

pub(crate) fn repository(capacity: Amount) -> Repository {
    Repository::new(vec![Template::new(Glob::new("*").expect("a glob"), capacity)])
        .expect("one template that holds together")
}
