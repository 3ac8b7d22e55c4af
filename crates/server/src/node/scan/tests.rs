//! Tests of a status that is made in slices.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, HolderKind, Release, Report};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId};

use super::*;
use crate::node::NodeConfig;
use crate::repository::{Glob, Repository, Template};

fn node(epoch: u64) -> Node {
    let templates = vec![Template::new(Glob::new("*").unwrap(), Amount::from_units(1_000_000))];
    Node::new(Time::ZERO, NodeConfig::new("root", Epoch(epoch)), Repository::new(templates).unwrap())
}

fn client(number: usize) -> ClientId {
    ClientId::new(format!("client-{number:05}"), 256).unwrap()
}

fn resource(number: usize) -> ResourceId {
    ResourceId::new(format!("resource-{number:05}"), 256).unwrap()
}

fn ask(node: &mut Node, holder: usize, of: usize, wants: f64) {
    let report = Report::new(resource(of), [Band { priority: 0, subclients: 1, wants }]);
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client(holder),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    node.ask(at(1), &ask).unwrap();
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn slices(node: &Node, query: &StatusQuery) -> (usize, NodeStatus) {
    let mut scan = StatusScan::new(query.clone());
    let mut made = (0..10_000).map(|_| scan.step(at(2), node));
    let before = made.by_ref().take_while(Option::is_none).count();
    assert!(before < 9_999, "it comes to an end");
    (before + 1, node.status(at(2), query))
}

#[test]
fn a_small_node_is_shown_in_one_slice_and_a_large_one_in_many() {
    let mut node = node(1);
    for number in 0..10 {
        ask(&mut node, number, number % 3, 1.0);
    }
    let (taken, status) = slices(&node, &StatusQuery::default());
    assert_eq!((taken, status.resources.len()), (1, 3));
    for number in 0..3_000 {
        ask(&mut node, number, number % 300, 1.0);
    }
    let query = StatusQuery { resources: 1_000, ..StatusQuery::default() };
    let (taken, status) = slices(&node, &query);
    assert!(taken > 20, "{taken} slices");
    let shown: usize = status.resources.iter().map(|row| row.resource.holders.len()).sum();
    assert_eq!((status.resources.len(), shown), (300, 3_007));
}

#[test]
fn those_with_the_most_come_first_however_many_slices_it_takes() {
    let mut node = node(1);
    for number in 0..2_000 {
        ask(&mut node, number, 0, (number * 7 % 500) as f64);
    }
    let query = StatusQuery {
        resource: Some("resource-00000".to_owned()),
        resources: 1,
        holders: 7,
        ..StatusQuery::default()
    };
    let (taken, status) = slices(&node, &query);
    assert!(taken > 3, "{taken} slices");
    let mut expected: Vec<(usize, usize)> = (0..2_000).map(|number| (number * 7 % 500, number)).collect();
    expected.sort_by_key(|&(wants, number)| (std::cmp::Reverse(wants), number));
    let expected: Vec<String> = expected[..7].iter().map(|&(_, number)| client(number).to_string()).collect();
    let holders = &status.resources[0].resource.holders;
    assert_eq!(holders.iter().map(|holder| holder.client.clone()).collect::<Vec<_>>(), expected);
}

#[test]
fn where_not_all_are_shown_the_busiest_are() {
    let mut node = node(1);
    for number in 0..3_000 {
        ask(&mut node, 0, number, 1.0);
    }
    let busy: Vec<usize> = (0..10).map(|number| number * 290 + 7).collect();
    for (holders, &of) in busy.iter().enumerate() {
        (1..=holders + 1).for_each(|holder| ask(&mut node, holder, of, 1.0));
    }
    let query = StatusQuery {
        resources: 10,
        order: RowOrder::Busiest,
        holders: 0,
        domains: 0,
        ..StatusQuery::default()
    };
    let (taken, status) = slices(&node, &query);
    assert!(taken > 5, "{taken} slices");
    let shown: Vec<&str> = status.resources.iter().map(|row| row.resource.resource.as_str()).collect();
    let expected: Vec<String> = busy.iter().map(|&number| resource(number).to_string()).collect();
    assert_eq!(shown, expected, "in the order of their names");
    assert_eq!(status.resources_in_all, 3_000);
    let others = status.others.expect("the busiest were chosen");
    let holders: usize = status.resources.iter().map(|row| row.resource.clients).sum();
    let in_all: usize = node
        .status(at(2), &StatusQuery { resources: 3_000, ..query.clone() })
        .resources
        .iter()
        .map(|row| row.resource.clients)
        .sum();
    assert_eq!((others.resources, others.holders + holders), (2_990, in_all));
    let all = node.status(at(2), &StatusQuery { resources: 3_000, ..query });
    assert_eq!(all.resources.len(), 3_000);
}

#[test]
fn what_goes_meanwhile_is_left_out_and_another_node_is_shown_from_the_beginning() {
    let mut node_before = node(1);
    for number in 0..1_000 {
        ask(&mut node_before, number, 0, 1.0);
    }
    let query = StatusQuery { resources: 10, holders: 1_000, ..StatusQuery::default() };
    let mut scan = StatusScan::new(query.clone());
    for _ in 0..5 {
        assert!(scan.step(at(2), &node_before).is_none());
    }
    for number in 900..1_000 {
        let release = Release {
            holder: client(number),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(2)),
            resources: vec![resource(0)],
        };
        node_before.release(at(2), &release);
    }
    let status = (0..100).find_map(|_| scan.step(at(2), &node_before)).expect("it comes to an end");
    assert_eq!(status.resources[0].resource.holders.len(), 900);

    let mut scan = StatusScan::new(query);
    assert!(scan.step(at(2), &node_before).is_none());
    let mut after = node(2);
    ask(&mut after, 5, 5, 1.0);
    let status = scan.step(at(2), &after).expect("it is small");
    assert_eq!((status.epoch, status.resources.len()), (Epoch(2), 1));
    assert_eq!(status.resources[0].resource.holders[0].client, client(5).to_string());
}
