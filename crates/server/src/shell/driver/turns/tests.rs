//! Tests of turns under the lock.

use lessor_proto::message::{Ask, Band, Grant, Has, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId};

use super::super::{Letter, Mailbox};
use super::*;
use crate::node::NodeConfig;
use crate::repository::{Glob, Repository, Template};

fn driver() -> Driver {
    let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(100));
    let repository = Repository::new(vec![template]).unwrap();
    Driver::new(NodeConfig::new("root", Epoch(1)), repository, "127.0.0.1:1".to_owned(), 10)
}

fn wants(wants: f64) -> Report {
    Report::new(ResourceId::new("db", 256).unwrap(), [Band { priority: 0, subclients: 1, wants }])
}

/// A stream that wants so much and has taken its welcome and what it was granted at once, if anything.
fn listener(driver: &Driver, name: &str, amount: f64) -> (StreamKey, Arc<Mailbox>) {
    let holder = ClientId::new(name, 256).unwrap();
    let hello = Hello::new(HolderKind::Client, holder, Incarnation(7));
    let (key, mailbox) = driver.connect(&hello).unwrap();
    assert!(matches!(mailbox.take(), Letter::Down(Down::Welcome(_))));
    driver.ready(key).unwrap();
    let reports = vec![wants(amount)];
    driver
        .receive(
            key,
            Up::Report(StreamReport { id: ReportId(1), target_epoch: None, renew_all: false, reports }),
        )
        .unwrap();
    while grant(&mailbox).is_some() {
        driver.ready(key).unwrap();
    }
    (key, mailbox)
}

fn grant(mailbox: &Mailbox) -> Option<Grant> {
    match mailbox.take() {
        Letter::None => None,
        Letter::Down(Down::Grants(mut grants)) => grants.pop(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_calls_does_not_hand_out_what_is_due_to_others() {
    let driver = driver();
    let (_one, first) = listener(&driver, "one", 200.0);
    let (_two, _second) = listener(&driver, "two", 200.0);
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new("caller", 256).unwrap(),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: None,
        reports: vec![wants(10.0)],
    };
    driver.ask(None, &ask).unwrap();
    assert!(grant(&first).is_none(), "the caller has recalled from a stream");
    while driver.turn().unwrap() {}
    let recalled = grant(&first).expect("the task recalls");
    assert!(recalled.ack_wanted && recalled.capacity < Amount::from_units(100), "{recalled:?}");
}

#[test]
fn a_wait_for_what_is_recalled_is_measured() {
    let driver = driver();
    let (one, first) = listener(&driver, "one", 200.0);
    let waits = |driver: &Driver| {
        let waits = driver.traffic.waits.all().iter().map(|timing| timing.snapshot().count());
        (waits.collect::<Vec<u64>>(), driver.traffic.recalls.snapshot().count())
    };
    assert_eq!(waits(&driver), (vec![1, 0, 0], 0), "all was free, and it is short of nothing that it is due");
    let (two, second) = listener(&driver, "two", 50.0);
    while driver.turn().unwrap() {}
    let recalled = grant(&first).expect("something is recalled");
    assert_eq!(waits(&driver), (vec![1, 0, 0], 0), "it is not back yet");
    driver.ready(one).unwrap();
    let has = Has {
        capacity: recalled.capacity,
        order: recalled.order,
        token: recalled.token,
        lasts: None,
        expiry: 0,
    };
    let report = Report { has: Some(has), ..wants(200.0) };
    let report =
        StreamReport { id: ReportId(2), target_epoch: None, renew_all: false, reports: vec![report] };
    driver.receive(one, Up::Report(report)).unwrap();
    // There is a pause of some hundred microseconds between two looks.
    let until = clock::now() + Duration::from_secs(20);
    let granted = std::iter::repeat_with(|| driver.turn().unwrap()).find_map(|_| {
        assert!(clock::now() < until, "what is back is not granted");
        grant(&second)
    });
    assert_eq!(granted.map(|grant| grant.capacity), Some(Amount::from_units(50)));
    driver.ready(two).unwrap();
    assert_eq!(waits(&driver), (vec![1, 1, 0], 1));
}

#[test]
fn a_turn_hears_a_slice_of_those_who_take_something_again() {
    let driver = driver();
    let (key, _mailbox) = listener(&driver, "one", 1.0);
    for _ in 0..=SLICE {
        driver.ready(key).unwrap();
    }
    let before = driver.turns.next(usize::MAX);
    before.iter().for_each(|&key| driver.turns.take(key));
    assert!(before.len() > SLICE);
    assert_eq!(driver.turn(), Ok(true), "others are heard before the rest");
    assert_eq!(driver.turns.next(usize::MAX).len(), before.len() - SLICE);
}
