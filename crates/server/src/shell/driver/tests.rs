//! Tests of the driver: who may call the node, and what a task says that does not lead.

use std::collections::BTreeMap;

use futures_util::FutureExt as _;
use lessor_proto::message::{DomainReport, Down, Hello, HolderKind, StreamReport, Up};
use lessor_proto::{Amount, ClientId, Incarnation, ReportId, ResourceId};

use super::*;
use crate::record::Record;

fn driver() -> Driver {
    let authority = Arc::new(Authority::default());
    authority.set(Some((Epoch(3), Time::MAX)));
    let config = NodeConfig::new("root", Epoch(0));
    Driver::standing(config, Repository::default(), "127.0.0.1:1".to_owned(), 10, authority)
}

fn hello(holder: &str) -> Hello {
    Hello::new(HolderKind::Client, ClientId::new(holder, 256).unwrap(), Incarnation(7))
}

#[test]
fn who_resigns_says_what_is_out_and_who_does_not_lead_says_nothing() {
    let driver = driver();
    assert_eq!(driver.resign(), Ok(None));
    let orders = ResourceId::new("orders", 256).unwrap();
    let marks = BTreeMap::from([(orders, Amount::from_units(70))]);
    let longest_lease = Duration::from_secs(60);
    let record = Record { epoch: Epoch(2), longest_lease, marks: marks.clone(), ..Record::default() };
    driver.lead(Epoch(3), record).unwrap();
    let (epoch, write) = driver.resign().unwrap().unwrap();
    // All of that may still be out: no lease of the epoch before has certainly ended.
    assert_eq!((epoch, write.change.marks), (Epoch(3), marks));
    driver.authority.as_ref().unwrap().set(None);
    assert_eq!(driver.resign(), Ok(None));
}

/// A stream, and what comes down it.
fn connected(driver: &Driver, holder: &str) -> (StreamKey, Arc<Mailbox>) {
    let (key, mailbox) = driver.connect(&hello(holder)).unwrap();
    assert!(matches!(mailbox.take(), Letter::Down(Down::Welcome(_))));
    (key, mailbox)
}

fn heartbeat(epoch: Epoch) -> Up {
    Up::Report(StreamReport {
        id: ReportId(1),
        target_epoch: Some(epoch),
        renew_all: true,
        reports: Vec::new(),
    })
}

fn set_authority(driver: &Driver, of: Option<Epoch>) {
    driver.authority.as_ref().unwrap().set(of.map(|epoch| (epoch, Time::MAX)));
}

#[test]
fn a_task_that_does_not_lead_redirects_while_the_node_is_locked() {
    let driver = Arc::new(driver());
    let elsewhere = Leader::at("10.0.0.9:1".to_owned());
    driver.follow(elsewhere.clone(), Some(Epoch(2))).unwrap();
    let held = driver.leader_state.lock().unwrap();
    let (done, answers) = std::sync::mpsc::channel();
    let asked = Arc::clone(&driver);
    let asking = std::thread::spawn(move || {
        let release = Release {
            holder: ClientId::new("early", 256).unwrap(),
            incarnation: None,
            report_id: None,
            resources: Vec::new(),
        };
        done.send((asked.whereabouts(), asked.release(None, &release))).unwrap();
    });
    let (whereabouts, released) =
        answers.recv_timeout(Duration::from_secs(20)).expect("no lock is waited for");
    drop(held);
    asking.join().unwrap();
    assert_eq!((whereabouts.leader, whereabouts.epoch), (elsewhere.clone(), Some(Epoch(2))));
    assert_eq!(released, Err(Unanswered::NotLeading(elsewhere)));
}

#[test]
fn a_stream_of_an_earlier_epoch_has_no_part_in_a_later_one() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let before = driver.connect(&hello("early")).unwrap().0;
    driver.follow(Leader::default(), None).unwrap();
    set_authority(&driver, Some(Epoch(9)));
    driver.lead(Epoch(9), Record::default()).unwrap();
    // The node numbers its streams from the beginning again.
    let (now, mailbox) = connected(&driver, "late");
    assert_eq!(before.to_string(), now.to_string());
    driver.receive(now, heartbeat(Epoch(9))).unwrap();
    driver.ready(before).unwrap();
    driver.turn().unwrap();
    assert!(matches!(mailbox.take(), Letter::None), "the later stream has not taken its welcome");
    assert!(matches!(
        driver.receive(before, heartbeat(Epoch(9))),
        Err(Unheard::Unanswered(Unanswered::NotLeading(_)))
    ));
    driver.disconnect(before);
    assert_eq!(driver.leader_state().unwrap().streams(), 1);
    driver.ready(now).unwrap();
    driver.turn().unwrap();
    assert!(matches!(mailbox.take(), Letter::Down(_)), "the later stream goes on");
}

#[test]
fn a_task_that_leads_no_more_ends_what_it_has_begun_with_the_node_above() {
    let driver = driver();
    let mut upward = driver.parent_actions().unwrap();
    driver.follow(Leader::default(), None).unwrap();
    assert!(upward.try_recv().is_err(), "it has begun nothing");
    driver.lead(Epoch(3), Record::default()).unwrap();
    assert!(matches!(upward.try_recv(), Ok(Upward::Begin(Epoch(3)))));
    driver.follow(Leader::default(), None).unwrap();
    assert!(matches!(upward.try_recv(), Ok(Upward::End)));
    driver.follow(Leader::default(), None).unwrap();
    assert!(upward.try_recv().is_err(), "and only once");
}

#[test]
fn what_is_taken_while_a_task_may_not_act_counts_when_it_may_again() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let (key, mailbox) = connected(&driver, "reader");
    driver.receive(key, heartbeat(Epoch(3))).unwrap();
    set_authority(&driver, None);
    driver.ready(key).unwrap();
    assert_eq!(driver.turn(), Ok(false));
    assert!(matches!(mailbox.take(), Letter::None));
    set_authority(&driver, Some(Epoch(3)));
    driver.turn().unwrap();
    assert!(matches!(mailbox.take(), Letter::Down(_)), "the heartbeat is answered");
}

#[test]
fn what_comes_while_authority_has_lapsed_is_given_back_until_somebody_else_may_lead() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let (key, mailbox) = connected(&driver, "web");
    driver.ready(key).unwrap();
    let authority = driver.authority.as_ref().unwrap();
    let hour = Duration::from_secs(3_600);
    authority.set_key(Some((Epoch(3), clock::now() + hour)));
    set_authority(&driver, None);
    let Err(Unheard::Lapsed(up)) = driver.receive(key, heartbeat(Epoch(3))) else {
        panic!("the key is there");
    };
    assert_eq!(*up, heartbeat(Epoch(3)));
    assert!(matches!(driver.exchange(key, *up), Err(Unheard::Lapsed(_))));
    assert!(matches!(driver.connect(&hello("next")), Err(Unanswered::Lapsed)));
    assert!(!driver.whereabouts().is_leader, "whoever polls is sent away");
    // It goes on where it was.
    set_authority(&driver, Some(Epoch(3)));
    driver.receive(key, heartbeat(Epoch(3))).unwrap();
    driver.turn().unwrap();
    assert!(matches!(mailbox.take(), Letter::Down(_)), "the heartbeat is answered");
    // The key may have ended, by time that the clock did not show.
    set_authority(&driver, None);
    authority.lose_time(hour);
    let gone = |outcome| matches!(outcome, Err(Unheard::Unanswered(Unanswered::NotLeading(_))));
    assert!(gone(driver.receive(key, heartbeat(Epoch(3)))));
    assert!(matches!(driver.connect(&hello("next")), Err(Unanswered::NotLeading(_))));
    // The key of another epoch says nothing about this one.
    authority.set_key(Some((Epoch(9), clock::now() + hour)));
    assert!(gone(driver.receive(key, heartbeat(Epoch(3)))));
}

#[tokio::test]
async fn whoever_waits_hears_that_a_task_may_act_again_and_that_it_leads_no_more() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let mut changes = driver.authority_changes();
    driver.resume().unwrap();
    changes.next().await;
    driver.follow(Leader::default(), None).unwrap();
    changes.next().await;
    let alone = Driver::new(NodeConfig::new("root", Epoch(1)), Repository::default(), String::new(), 10);
    let mut changes = alone.authority_changes();
    let waits = changes.next().now_or_never();
    assert_eq!(waits, None, "the only task of its node always acts");
}

#[test]
fn leases_and_domains_do_not_wait_for_each_other() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let (key, mailbox) = connected(&driver, "web");
    driver.ready(key).unwrap();
    let floor = driver.domains.floor();
    driver.receive(key, heartbeat(Epoch(3))).unwrap();
    assert!(
        matches!(mailbox.take(), Letter::Down(_)),
        "the heartbeat is answered while domains are looked at"
    );
    drop(floor);
    let leader_state = driver.leader_state().unwrap();
    let resource = ResourceId::new("orders", 256).unwrap();
    let report = DomainReport { resource, version: 1, id: 1, ask: true, below: None, domains: Vec::new() };
    driver.receive_domains(key, Box::new(report));
    driver.domains_ready(key);
    drop(leader_state);
}

#[test]
fn the_authority_of_a_later_epoch_is_not_that_of_the_one_before() {
    let driver = driver();
    driver.lead(Epoch(3), Record::default()).unwrap();
    let (key, _mailbox) = connected(&driver, "late");
    // The task was deposed and elected again, and has not been told either yet.
    set_authority(&driver, Some(Epoch(9)));
    assert!(matches!(
        driver.receive(key, heartbeat(Epoch(3))),
        Err(Unheard::Unanswered(Unanswered::NotLeading(_)))
    ));
    assert!(matches!(driver.connect(&hello("next")), Err(Unanswered::NotLeading(_))));
    assert!(!driver.whereabouts().is_leader);
}

/// The driver, and whether it was broken when somebody was woken.
struct Woken(Arc<Driver>, Mutex<Option<bool>>);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.1.lock().unwrap() = Some(self.0.is_broken());
    }
}

#[test]
fn whoever_hears_that_the_node_is_broken_finds_it_so() {
    let driver = Arc::new(driver());
    driver.lead(Epoch(3), Record::default()).unwrap();
    let woken = Arc::new(Woken(Arc::clone(&driver), Mutex::default()));
    let waker = std::task::Waker::from(Arc::clone(&woken));
    let mut until_broken = Box::pin(driver.until_broken());
    assert!(until_broken.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
    let breaks = Arc::clone(&driver);
    let broken =
        std::thread::spawn(move || breaks.hold::<()>(HoldKind::Turn, |_, _| panic!("a check failed")));
    assert!(broken.join().is_err());
    assert_eq!(*woken.1.lock().unwrap(), Some(true));
}
