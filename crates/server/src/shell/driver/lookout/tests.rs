//! Tests of the published status.

use lessor_proto::message::{Ask, Band, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId};

use super::*;
use crate::node::NodeConfig;
use crate::repository::{Glob, Repository, Template};

const SOON: Duration = Duration::from_secs(20);

fn driver() -> Arc<Driver> {
    let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(100));
    let repository = Repository::new(vec![template]).unwrap();
    let address = "127.0.0.1:1".to_owned();
    Arc::new(Driver::new(NodeConfig::new("root", Epoch(1)), repository, address, 10))
}

/// One more client has something.
fn admit(driver: &Driver, number: u64) {
    let report =
        Report::new(ResourceId::new("db", 256).unwrap(), [Band { priority: 0, subclients: 1, wants: 1.0 }]);
    let ask = Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(format!("client-{number}"), 256).unwrap(),
        incarnation: Some(Incarnation(1)),
        report_id: Some(ReportId(1)),
        target_epoch: None,
        line: None,
        reports: vec![report],
    };
    driver.ask(None, &ask).unwrap();
}

fn clients(summary: &Summary) -> usize {
    summary.status.resources.iter().map(|row| row.resource.clients).sum()
}

#[tokio::test]
async fn what_is_shown_was_so_after_it_was_asked_for() {
    let driver = driver();
    let stop = watch::Sender::new(false);
    let task = tokio::spawn(Arc::clone(&driver).keep_lookout(stop.subscribe()));
    assert!(driver.summary().is_none(), "nobody has looked");
    for number in 1..=5 {
        admit(&driver, number);
        let shown = driver.look(&StatusQuery::FIGURES).await.unwrap();
        assert_eq!(clients(&shown), number as usize);
        assert_eq!(driver.summary(), Some(shown), "it is published");
    }
    stop.send_replace(true);
    tokio::time::timeout(SOON, task).await.unwrap().unwrap();
    admit(&driver, 6);
    assert_eq!(clients(&driver.look(&StatusQuery::FIGURES).await.unwrap()), 6, "also while it ends");
}

#[tokio::test]
async fn those_who_wait_for_the_same_share_one() {
    let driver = driver();
    driver.lookout.waiting().get_or_insert_default();
    let other = StatusQuery { resource: Some("db".to_owned()), ..StatusQuery::default() };
    let join = |query: &StatusQuery| driver.lookout.join(query).unwrap().unwrap();
    let (_first, gone) = (join(&StatusQuery::FIGURES), join(&other));
    let (_other, _third) = (join(&other), join(&StatusQuery::FIGURES));
    drop(gone);
    let (query, waiters) = driver.lookout.next().unwrap();
    assert_eq!((query, waiters.len()), (StatusQuery::FIGURES, 2));
    let (query, waiters) = driver.lookout.next().unwrap();
    assert_eq!((query, waiters.len()), (other, 1), "one has given up");
    assert!(driver.lookout.next().is_none());
}

#[tokio::test]
async fn no_more_wait_than_there_is_room_for() {
    let driver = driver();
    driver.lookout.waiting().get_or_insert_default();
    let all: Vec<Answered> =
        (0..MOST_WAITING).map(|_| driver.lookout.join(&StatusQuery::FIGURES).unwrap().unwrap()).collect();
    assert_eq!(driver.look(&StatusQuery::FIGURES).await, Err(Unanswered::Late));
    drop(all);
    assert!(driver.lookout.next().is_none());
}

#[tokio::test]
async fn who_only_wants_figures_that_were_published_does_not_wait_for_the_node() {
    let driver = driver();
    admit(&driver, 1);
    driver.look(&StatusQuery::FIGURES).await.unwrap();
    let held = driver.leader_state.lock().unwrap();
    let (done, answers) = std::sync::mpsc::channel();
    let asked = Arc::clone(&driver);
    let asking = std::thread::spawn(move || {
        let figures = crate::shell::metrics::Metrics::new(Arc::clone(&asked)).encode().unwrap();
        done.send((figures, asked.readiness(), asked.whereabouts().is_leader)).unwrap();
    });
    let (figures, readiness, leads) = answers.recv_timeout(SOON).expect("no lock is waited for");
    drop(held);
    asking.join().unwrap();
    assert!(figures.contains("lessor_clients{resource=\"db\"} 1.0\n"), "{figures}");
    assert_eq!((readiness, leads), (Ok(()), true));
}

#[tokio::test]
async fn a_broken_node_has_no_figures() {
    let driver = driver();
    driver.look(&StatusQuery::FIGURES).await.unwrap();
    let breaks = Arc::clone(&driver);
    let broken =
        std::thread::spawn(move || breaks.hold::<()>(HoldKind::Turn, |_, _| panic!("a check failed"))).join();
    assert!(broken.is_err());
    assert_eq!(driver.look(&StatusQuery::FIGURES).await, Err(Unanswered::Broken));
    assert_eq!(driver.summary(), None);
    assert!(driver.is_broken());
    driver.until_broken().await;
}
