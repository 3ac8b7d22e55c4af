//! Tests of how much of a node a plan looks at one by one.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, HolderKind, Report, Unenforced};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId};

use super::*;
use crate::node::NodeConfig;
use crate::repository::{Glob, Repository};

/// A node with so many holders of each of three resources, who want 1, 2, 3 ... of it.
fn node(holders: usize) -> Node {
    let templates = vec![Template::new(Glob::new("*").unwrap(), Amount::from_units(1_000_000))];
    let mut node =
        Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), Repository::new(templates).unwrap());
    for (resource, holder) in (0..3).flat_map(|resource| (1..=holders).map(move |holder| (resource, holder)))
    {
        let id = ResourceId::new(format!("resource-{resource}"), 256).unwrap();
        let ask = Ask {
            kind: HolderKind::Client,
            holder: ClientId::new(format!("client-{holder}"), 256).unwrap(),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(1)),
            target_epoch: None,
            line: None,
            reports: vec![Report::new(id, [Band { priority: 0, subclients: 1, wants: holder as f64 }])],
        };
        node.ask(Time::ZERO + Duration::from_secs(1), &ask).unwrap();
    }
    node
}

/// The numbers of holders of each resource that are looked at one by one and together, and what all of them want.
fn looked_at(node: &Node, room: usize) -> Vec<(usize, usize, f64)> {
    let affected = node.resources.after(None).map(|(id, _)| id.clone()).collect();
    let change = PlanChange { affected, ..PlanChange::default() };
    let mut scan = PlanScan { room, epoch: node.epoch(), ..PlanScan::new(change) };
    let last = (0..1_000).find(|_| scan.scan(Time::ZERO + Duration::from_secs(2), node));
    assert!(last.is_some_and(|number| number > 0), "in more slices than one, and it comes to an end");
    let wants = |planned: &PlannedResource| {
        let single = planned.holders.iter().flat_map(|holder| &holder.said).map(|band| band.wants);
        single.chain(planned.rest.buckets.values().map(|band| band.wants)).sum()
    };
    let of = |planned: &PlannedResource| (planned.holders.len(), planned.rest.holders, wants(planned));
    scan.planned.iter().map(of).collect()
}

#[test]
fn beyond_so_many_of_all_resources_holders_are_taken_together_and_none_is_left_out() {
    let node = node(200);
    let all = 200.0 * 201.0 / 2.0;
    assert_eq!(looked_at(&node, MOST_IN_ALL), [(200, 0, all); 3]);
    assert_eq!(looked_at(&node, 450), [(200, 0, all), (200, 0, all), (50, 150, all)]);
    assert_eq!(looked_at(&node, 0), [(0, 200, all); 3]);
}

#[test]
fn a_companion_is_not_planned_and_what_it_is_tried_beside_is() {
    let template =
        |beside| Template { beside, ..Template::new(Glob::new("*").unwrap(), Amount::from_units(500)) };
    let repository = |beside| Repository::new(vec![template(beside)]).unwrap();
    let (tried, plain) = (repository(Some(Amount::from_units(400))), repository(None));
    for (before, after, names) in [(&tried, &plain, &["db", "db|beside"][..]), (&plain, &tried, &["db"])] {
        let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), before.clone());
        for &name in names {
            let id = ResourceId::new(name, 256).unwrap();
            let counted = Unenforced { asked: 9_000, passed: 1_000, silent: 0 };
            let unenforced = id.accompanied().map(|_| counted);
            let report = Report::new(id, [Band { priority: 0, subclients: 1, wants: 450.0 }]);
            let ask = Ask {
                kind: HolderKind::Client,
                holder: ClientId::new("client", 256).unwrap(),
                incarnation: Some(Incarnation(1)),
                report_id: Some(ReportId(1)),
                target_epoch: None,
                line: None,
                reports: vec![Report { unenforced, ..report }],
            };
            node.ask(Time::ZERO, &ask).unwrap();
        }
        let id = ResourceId::new("db", 256).unwrap();
        let figures = plan_of(Time::ZERO, &node, &id, node.resources.get(&id).unwrap(), None).figures;
        assert_eq!(figures.beside.passed, if names.len() > 1 { 1_000 } else { 0 });
        let mut scan = PlanScan::new(PlanChange { repository: Some(after.clone()), ..PlanChange::default() });
        let plan = (0..10).find_map(|_| scan.step(Time::ZERO, &node)).unwrap();
        let planned: Vec<String> = plan.resources().iter().map(ToString::to_string).collect();
        assert_eq!(planned, ["db"]);
    }
}
