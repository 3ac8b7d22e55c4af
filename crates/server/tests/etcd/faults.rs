//! Faults of etcd, and what becomes of an election under them.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_server::election::Event;

use super::proxy::Proxy;
use super::server::Etcd;
use super::task::{TTL, Task, elapsed, marks, pass};

#[tokio::test]
async fn a_task_waits_for_an_etcd_that_is_not_there_and_says_so_once() {
    let Some(mut etcd) = Etcd::new() else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    assert!(matches!(a.event().await, Event::Faulty(_)));
    pass(Duration::from_secs(3)).await;
    assert!(!a.may_act());
    assert!(etcd.start().await);
    assert_eq!(a.event().await, Event::Healthy);
    a.elected().await;
}

/// Frozen until the authority has lapsed, which is before the lease ends.
#[tokio::test]
async fn a_leader_stops_while_etcd_is_frozen_and_nobody_else_begins() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let mut b = Task::start("b", &[etcd.url()]);
    b.follows().await;

    etcd.stop();
    let frozen = clock::now();
    a.until(|event| *event == Event::Lapsed).await;
    println!("lapsed after {:?}", elapsed(frozen));
    assert!(!a.may_act() && !b.may_act());
    etcd.go_on();
    // On a slow machine the lease may have ended after all, and then anybody may lead.
    let event = a.until(|event| matches!(event, Event::Resumed | Event::Deposed)).await;
    println!("{event:?} after {:?}", elapsed(frozen));
    if event == Event::Resumed {
        a.write(marks(&[("mail", 1)])).await;
        assert!(!b.may_act());
    } else {
        assert!(elapsed(frozen) >= TTL / 2);
        tokio::select! {
            (second, _) = a.elected() => assert!(second > first),
            (second, _) = b.elected() => assert!(second > first),
        }
    }
}

/// Frozen for longer than the lease: etcd ends it as soon as it goes on, or renews it if it hears of the leader first.
#[tokio::test]
async fn somebody_leads_again_after_etcd_was_frozen_for_long() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    a.elected().await;
    let mut b = Task::start("b", &[etcd.url()]);
    b.follows().await;
    etcd.stop();
    a.until(|event| *event == Event::Lapsed).await;
    pass(TTL + Duration::from_secs(3)).await;
    assert!(!a.may_act() && !b.may_act());
    etcd.go_on();
    let thawed = clock::now();
    tokio::select! {
        event = a.until(|event| matches!(event, Event::Resumed | Event::Elected { .. })) => println!("a: {event:?}"),
        (second, _) = b.elected() => println!("b: {second}"),
    }
    println!("led again {:?} after the thaw", elapsed(thawed));
    assert!(!(a.may_act() && b.may_act()));
}

#[tokio::test]
async fn a_epoch_outlasts_a_restart_of_etcd() {
    let Some(mut etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let mut b = Task::start("b", &[etcd.url()]);
    b.follows().await;
    etcd.kill();
    a.until(|event| *event == Event::Lapsed).await;
    assert!(etcd.start().await);
    // Leases begin anew with the server, so nobody can be faster than the one who leads.
    a.until(|event| *event == Event::Resumed).await;
    a.write(marks(&[("mail", 1)])).await;
    // Whoever waits still does, and sees when it may.
    a.election.resign();
    let (second, record) = b.elected().await;
    assert!(second > first && record.closed);
}

#[tokio::test]
async fn a_leader_goes_over_to_another_endpoint_when_its_own_is_frozen() {
    let Some(etcd) = Etcd::started().await else { return };
    let proxy = Proxy::start(&etcd.url()).await;
    let mut a = Task::start("a", &[proxy.url(), etcd.url()]);
    a.elected().await;
    proxy.freeze();
    pass(TTL * 2).await;
    // On a slow machine authority may lapse in between, but the epoch is the same.
    if !a.may_act() {
        a.until(|event| *event == Event::Resumed).await;
    }
    a.write(marks(&[("mail", 1)])).await;
}

#[tokio::test]
async fn whoever_waits_notices_that_its_watch_is_frozen() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let proxy = Proxy::start(&etcd.url()).await;
    let mut b = Task::start("b", &[proxy.url(), etcd.url()]);
    b.follows().await;
    // Until the watch is open.
    pass(Duration::from_secs(1)).await;
    proxy.freeze();
    a.election.resign();
    a.until(|event| *event == Event::Resigned).await;
    let resigned = clock::now();
    let (second, record) = b.elected().await;
    println!("found out and taken over in {:?}", elapsed(resigned));
    assert!(second > first && record.closed);
}
