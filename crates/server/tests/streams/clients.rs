//! Our client at the other end of a stream.

use std::time::Duration;

use lessor_client::internals::ParentLine;
use lessor_client::internals::session::{self, Action};
use lessor_client::{Client, LeaseState, Rate, Rung, Transport};
use lessor_proto::message::{Ask, Band, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId, ResourceId};

use crate::house::{House, eventually, soon};
use crate::proxy::Proxy;

fn client(address: std::net::SocketAddr, id: &str) -> Client {
    Client::builder(address.to_string()).id(id).build().unwrap()
}

/// Waits until so many units are leased, and gives back every lease seen on the way.
async fn until(resource: &mut Rate, units: u64) -> Vec<LeaseState> {
    let mut seen = vec![resource.lease()];
    soon(async {
        while !is(seen.last().unwrap(), units) {
            seen.push(resource.changed().await.unwrap());
        }
    })
    .await;
    seen
}

fn is(lease: &LeaseState, units: u64) -> bool {
    lease.rung == Rung::Leased && lease.capacity.is_some_and(|capacity| capacity.floor_units() == units)
}

#[tokio::test]
async fn what_one_gives_up_another_gets_at_once() {
    let house = House::open().await;
    let (left, right) = (client(house.address(), "left"), client(house.address(), "right"));
    let mut first = left.rate("db").wants(100.0).open().unwrap();
    until(&mut first, 100).await;
    let mut second = right.rate("db").wants(80.0).open().unwrap();
    // Who polls would hear of it an hour later.
    until(&mut second, 50).await;
    until(&mut first, 50).await;

    first.set_wants(30.0);
    until(&mut first, 30).await;
    until(&mut second, 70).await;
    second.set_wants(10.0);
    first.set_wants(95.0);
    until(&mut second, 10).await;
    until(&mut first, 90).await;

    let metrics = left.metrics();
    assert_eq!((metrics.transport, metrics.counts.streams, metrics.counts.asks), (Transport::Stream, 1, 0));
    assert_eq!(metrics.counts.failures, 0);
    soon(left.close()).await;
    until(&mut second, 10).await;
    second.set_wants(100.0);
    until(&mut second, 100).await;
    soon(right.close()).await;
    assert_eq!(house.leased("db"), 0.0, "all is given back");
    house.end().await;
}

#[tokio::test]
async fn a_broken_connection_is_resumed_and_the_lease_goes_on() {
    let house = House::open().await;
    let proxy = Proxy::to(house.address()).await;
    let (near, far) = (client(house.address(), "near"), client(proxy.address(), "far"));
    let mut cut = far.rate("db").wants(60.0).open().unwrap();
    until(&mut cut, 60).await;
    let mut other = near.rate("db").wants(40.0).open().unwrap();
    until(&mut other, 40).await;

    for times in 1..=3 {
        proxy.cut();
        eventually("it has another stream", async || far.metrics().counts.streams > times).await;
        // And that is as good as the one before: it hears of what others give up.
        let mut seen = Vec::new();
        for (gives, gets) in [(20.0, 80), (40.0, 60)] {
            other.set_wants(gives);
            cut.set_wants(100.0 - gives);
            seen.extend(until(&mut cut, gets).await);
            until(&mut other, gives as u64).await;
        }
        assert!(seen.iter().all(|lease| lease.rung == Rung::Leased), "interrupted: {seen:?}");
    }
    assert_eq!(house.leased("db"), 100.0, "nobody is counted twice");
    soon(far.close()).await;
    soon(near.close()).await;
    house.end().await;
}

#[tokio::test]
async fn what_was_said_leaves_even_if_the_stream_is_dropped_at_once() {
    let house = House::open().await;
    let mut line = ParentLine::new(Duration::from_secs(20));
    let hello = Hello::new(HolderKind::Client, ClientId::new("web", 256).unwrap(), Incarnation(1));
    line.perform(Action::Connect { id: 1, to: house.address().to_string().into(), hello });
    for id in 1..=40 {
        let up = StreamReport { id: ReportId(id), target_epoch: None, renew_all: true, reports: Vec::new() };
        line.perform(Action::Send { id: 1, up: Up::Report(up) });
    }
    line.perform(Action::Send { id: 1, up: Up::Bye });
    line.perform(Action::Disconnect { id: 1 });
    eventually("everything has come", async || house.metric("lessor_stream_messages_received_total") == 42)
        .await;
    eventually("the stream is gone", async || house.streams().await == 0).await;
    house.end().await;
}

#[tokio::test]
async fn a_node_may_poll_too() {
    let house = House::open().await;
    let mut line = ParentLine::new(Duration::from_secs(20));
    let band = |subclients, wants| Band { priority: 0, subclients, wants };
    let report =
        Report::new(ResourceId::new("db", 256).unwrap(), [band(1, 70.0), band(9, 45.0), band(3, 0.0)]);
    let ask = Ask {
        kind: HolderKind::Node,
        holder: ClientId::new("leaf", 256).unwrap(),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        reports: vec![report],
        line: None,
    };
    line.perform(Action::Ask { id: ReportId(1), to: house.address().to_string().into(), ask });
    let heard = soon(line.hear()).await;
    let session::Event::Answered { id: ReportId(1), answer } = &heard else { panic!("{heard:?}") };
    assert_eq!(answer.grants[0].capacity, Amount::from_units(100));
    assert!(answer.grants[0].sharing.is_some(), "nodes are told how it is shared");
    house.end().await;
}

#[tokio::test]
async fn whoever_wants_to_poll_does() {
    let house = House::open().await;
    let builder = Client::builder(house.address().to_string()).id("polls").transport(Transport::Poll);
    let polls = builder.build().unwrap();
    let mut db = polls.rate("db").wants(30.0).open().unwrap();
    until(&mut db, 30).await;
    let metrics = polls.metrics();
    assert_eq!((metrics.transport, metrics.counts.streams), (Transport::Poll, 0));
    assert_eq!(house.streams().await, 0);
    soon(polls.close()).await;
    house.end().await;
}
