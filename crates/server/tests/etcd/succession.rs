//! Successions of leaders where nothing goes wrong with etcd.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Amount, Epoch};
use lessor_server::election::Event;

use super::server::{Etcd, dead_url};
use super::task::{AUTHORITY, LONG, TTL, Task, elapsed, marks, pass, resource, terms};

#[tokio::test]
async fn the_first_leads_and_hands_over_when_it_resigns() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, record) = a.elected().await;
    assert!(record.is_first() && first > 0);
    assert!(a.may_act());
    let mut b = Task::start("b", &[etcd.url()]);
    assert_eq!(b.follows().await, "a:1");

    a.write(terms(Duration::from_secs(60), 3)).await;
    a.write(marks(&[("db/orders", 120), ("mail", 7)])).await;
    a.write(marks(&[("mail", 5)])).await;

    let resigned = clock::now();
    a.election.resign();
    assert!(!a.may_act());
    a.until(|event| *event == Event::Resigned).await;
    assert!(a.election.event().await.is_none());
    let (second, record) = b.elected().await;
    println!("handed over in {:?}", elapsed(resigned));
    assert!(second > first);
    assert!(record.closed && record.epoch == Epoch(first), "{record:?}");
    assert_eq!((record.longest_lease, record.authority), (Duration::from_secs(60), AUTHORITY));
    assert_eq!(record.config_version, 3);
    let expected =
        [(resource("db/orders"), Amount::from_units(120)), (resource("mail"), Amount::from_units(5))];
    assert_eq!(record.marks.into_iter().collect::<Vec<_>>(), expected);
    // Not by the end of the lease, which would be long after.
    assert!(elapsed(resigned) < TTL, "{:?}", elapsed(resigned));
}

#[tokio::test]
async fn a_record_of_many_pages_is_read_whole() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    a.elected().await;
    let names: Vec<String> = (0..1_234).map(|number| format!("resource {number}")).collect();
    let many: Vec<(&str, u64)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    a.write(marks(&many)).await;
    a.election.resign();
    a.until(|event| *event == Event::Resigned).await;
    let mut b = Task::start("b", &[etcd.url()]);
    assert_eq!(b.elected().await.1.marks.len(), 1_234);
}

#[tokio::test]
async fn a_crash_is_followed_when_the_lease_has_ended_and_not_before() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let mut b = Task::start("b", &[etcd.url()]);
    b.follows().await;
    a.write(marks(&[("mail", 7)])).await;

    let until = a.election.authority_until().expect("it leads");
    let crashed = clock::now();
    drop(a);
    let (second, record) = b.elected().await;
    println!("taken over in {:?} with a ttl of {TTL:?}", elapsed(crashed));
    assert!(clock::now() > until && second > first);
    assert!(!record.closed && record.epoch == Epoch(first), "{record:?}");
}

#[tokio::test]
async fn a_task_that_comes_back_waits_for_the_key_of_its_earlier_life() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let until = a.election.authority_until().expect("it leads");
    drop(a);
    // The same address, in another life.
    let mut again = Task::start("a", &[etcd.url()]);
    let (second, _) = again.elected().await;
    assert!(second > first && clock::now() > until);
}

#[tokio::test]
async fn a_dead_endpoint_is_passed_over() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[dead_url(), etcd.url()]);
    a.elected().await;
    pass(AUTHORITY * 2).await;
    assert!(a.may_act());
    a.election.resign();
    a.until(|event| *event == Event::Resigned).await;
}

#[tokio::test]
async fn a_compacted_history_hides_nothing_from_those_who_wait() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    let (first, _) = a.elected().await;
    let mut b = Task::start("b", &[etcd.url()]);
    b.follows().await;
    for units in 0..10 {
        a.write(marks(&[("mail", units)])).await;
    }
    let mut client = etcd.client().await.unwrap();
    let revision = client.get("any", None).await.unwrap().header().unwrap().revision();
    client.compact(revision, None).await.unwrap();
    a.election.resign();
    let (second, record) = b.elected().await;
    assert!(second > first && record.marks[&resource("mail")] == Amount::from_units(9));
}

#[tokio::test]
async fn whoever_is_deposed_by_hand_stops_within_its_authority() {
    let Some(etcd) = Etcd::started().await else { return };
    let mut a = Task::start("a", &[etcd.url()]);
    a.elected().await;
    let mut client = etcd.client().await.unwrap();
    let deposed = clock::now();
    client.delete("lessor/root/leader", None).await.unwrap();
    let until = a.until(|event| matches!(event, Event::Deposed | Event::Lapsed));
    tokio::time::timeout(LONG, until).await.unwrap();
    println!("stopped after {:?}", elapsed(deposed));
    // It stands again, and nobody else does.
    a.elected().await;
}
