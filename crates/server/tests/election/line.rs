//! The numbers of epochs: they rise for holders wherever the record is, and was.

use std::time::Duration;

use lessor_proto::{Epoch, Time};
use lessor_server::election::call::{Action, Answer, Call, LeaseId, Stored};
use lessor_server::election::record::next_epoch;
use lessor_server::election::{Candidate, ElectionConfig, Event};
use lessor_server::record::{EtcdCluster, Record, Unknown};

/// A task is elected at `date` by an etcd at `revision` that holds `epoch`. Gives back the number of the epoch, what it found,
/// and what it wrote before it said so.
fn elected(date: u64, revision: u64, epoch: Option<&str>) -> (Epoch, Record, String) {
    let (epoch, record, written) = elected_at(date, revision, &stored(epoch), None);
    (epoch, record, written[0].1.clone())
}

/// The same at the etcd `cluster` that holds `stored`; what was written are keys and their values.
pub(crate) fn elected_at(
    date: u64,
    revision: u64,
    stored: &[Stored],
    cluster: Option<EtcdCluster>,
) -> (Epoch, Record, Vec<(String, String)>) {
    let mut candidate =
        Candidate::new(Time::ZERO, ElectionConfig::new("root", "a:1", 7)).expect("it can work");
    candidate.set_date(Duration::from_millis(date));
    elect(&mut candidate, revision, stored, cluster)
}

/// The same of a candidate that has just begun.
pub(crate) fn elect(
    candidate: &mut Candidate,
    revision: u64,
    stored: &[Stored],
    cluster: Option<EtcdCluster>,
) -> (Epoch, Record, Vec<(String, String)>) {
    let (mut now, mut written) = (Time::ZERO, Vec::new());
    for _ in 0..100 {
        while let Some(event) = candidate.next_event() {
            if let Event::Elected { epoch, record } = event {
                return (epoch, *record, written);
            }
        }
        match candidate.poll(now) {
            Some(Action::Call { id, call }) => {
                let answer = match call {
                    Call::Read { .. } => Answer::Read { stored: None, revision },
                    Call::GrantLease { ttl } => Answer::Granted { lease: LeaseId(5), ttl },
                    Call::Put { .. } | Call::Campaign { .. } => Answer::Won { revision },
                    Call::ReadRecord { .. } => {
                        Answer::Record { stored: stored.to_vec(), more: false, cluster }
                    }
                    Call::Write(txn) => {
                        written.clone_from(&txn.puts);
                        Answer::Written { revision: revision + 1 }
                    }
                    Call::KeepAlive { .. } => Answer::KeptAlive { ttl: Duration::from_secs(10) },
                    Call::Revoke { .. } => Answer::Revoked,
                };
                candidate.on_answer(now, id, Ok(answer));
            }
            Some(_) => {}
            None => now = candidate.next_deadline(),
        }
    }
    panic!("never elected");
}

fn stored(epoch: Option<&str>) -> Vec<Stored> {
    let stored = |value: &str| Stored {
        key: b"lessor/root/reign".to_vec(),
        value: value.into(),
        create_revision: 3,
        mod_revision: 9,
        lease: None,
    };
    epoch.map(stored).into_iter().collect()
}

pub(crate) const MONDAY: u64 = 1_790_000_000_000;
const TUESDAY: u64 = MONDAY + 86_400_000;

#[test]
fn epochs_of_one_record_rise_wherever_the_date_goes() {
    let (first, record, written) = elected(MONDAY, 2, None);
    assert_eq!((first, record.is_first()), (next_epoch(Epoch(0), MONDAY), true));
    assert!(
        written.starts_with(&format!("1 epoch {first} "))
            && written.ends_with(&format!("unknown yes line 7 since {first}")),
        "{written}"
    );
    for (date, wanted) in [(MONDAY - 1_000, first.next()), (TUESDAY, next_epoch(Epoch(0), TUESDAY))] {
        let (next, record, _) = elected(date, 12, Some(&written));
        assert_eq!(
            (next, record.epoch, record.unknown, record.first_epoch),
            (wanted, first, Unknown::All, first)
        );
    }
}

#[test]
fn an_etcd_that_was_wiped_or_restored_goes_on_above_all_before() {
    let (before, _, written) = elected(MONDAY, 5_000_000, None);
    for found in [None, Some(&*written)] {
        let (after, ..) = elected(TUESDAY, 2, found);
        assert!(after > before, "{found:?}");
    }
    // So does a server alone, before and after.
    assert!(next_epoch(Epoch(0), MONDAY - 1) < before && next_epoch(Epoch(0), TUESDAY) > before);
}

#[test]
fn a_record_whose_epochs_are_revisions_is_followed_by_the_date() {
    let old = "1 epoch 7 write 2 longest_lease_ns 60 authority_ns 4 closed no config_version 3";
    let (epoch, record, written) = elected(MONDAY, 12, Some(old));
    assert_eq!(
        (epoch, record.epoch, record.unknown),
        (next_epoch(Epoch(0), MONDAY), Epoch(7), Unknown::Nothing)
    );
    assert!(written.ends_with("config_version 3 line 7"), "{written}");
    let next = format!("{old} line 99");
    let (_, record, written) = elected(MONDAY, 12, Some(&next));
    assert_eq!(record.line, 99, "it goes on with what has begun");
    assert!(written.ends_with("config_version 3 line 99"), "{written}");
}
