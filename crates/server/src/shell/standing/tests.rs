//! Tests of a task that begins to stand for election.

use super::super::etcd::{EtcdOptions, Request, RevisionStore, TemplateStatus};
use super::*;
use crate::node::NodeConfig;
use crate::overrides::Overrides;
use crate::repository::Repository;
use crate::revision::RevisionKeys;

fn driver(election: &Election) -> Driver {
    let config = NodeConfig::new("root", Epoch(0));
    Driver::standing(config, Repository::default(), "127.0.0.1:1".to_owned(), 10, election.authority())
}

/// The templates of a task that follows nothing, with this status.
fn templates(status: watch::Receiver<TemplateStatus>) -> TemplateWatch {
    let keys = RevisionKeys::new("templates").unwrap();
    let store = RevisionStore::new(EtcdOptions::new(["http://127.0.0.1:1"]), keys).unwrap();
    let (standing, _) = watch::channel(TaskStanding::default());
    let (_, overrides) = watch::channel(Overrides::default());
    TemplateWatch { status, standing, overrides, store: Arc::new(store) }
}

/// The requests that the election has got since the last look, by name.
fn asked(requests: &mut mpsc::UnboundedReceiver<Request>) -> Vec<&'static str> {
    let requests = std::iter::from_fn(|| requests.try_recv().ok());
    let named = requests.map(|request| match request {
        Request::Aside(_) => "aside",
        Request::Stand => "stand",
        _ => "another",
    });
    named.collect()
}

#[tokio::test]
async fn a_task_whose_templates_come_while_it_starts_stands_for_election_at_its_first_look() {
    let (election, mut requests) = Election::unheard();
    let driver = driver(&election);
    let (put, status) = watch::channel(TemplateStatus::default());
    let mut keeping = Keeping::begin(&election, Some(templates(status)));
    assert_eq!(asked(&mut requests), ["aside"]);
    // Before it has looked once.
    put.send_replace(TemplateStatus { in_force: 1, stands: true, ..TemplateStatus::default() });
    keeping.keep_up(&driver, &election).unwrap();
    assert_eq!(asked(&mut requests), ["stand"]);
    keeping.keep_up(&driver, &election).unwrap();
    assert!(asked(&mut requests).is_empty());
}

#[tokio::test]
async fn a_task_that_has_templates_as_it_starts_is_never_aside() {
    let (election, mut requests) = Election::unheard();
    let driver = driver(&election);
    let status = TemplateStatus { in_force: 1, stands: true, ..TemplateStatus::default() };
    let (_put, status) = watch::channel(status);
    for followed in [Some(templates(status)), None] {
        let mut keeping = Keeping::begin(&election, followed);
        keeping.keep_up(&driver, &election).unwrap();
        assert!(asked(&mut requests).is_empty());
    }
}
