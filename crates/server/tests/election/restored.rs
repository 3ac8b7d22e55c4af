//! Records that are read at another etcd than the one at which they were written, or at an earlier state of that: what a leader
//! makes of them, and writes.

use std::time::Duration;

use lessor_proto::{Amount, Epoch, ResourceId, Time};
use lessor_server::election::call::Stored;
use lessor_server::election::record::next_epoch;
use lessor_server::election::{Candidate, ElectionConfig};
use lessor_server::record::{EtcdCluster, Record, Unknown};

use super::line::{MONDAY, elect, elected_at};

const WRITTEN_AT: EtcdCluster = EtcdCluster { id: 0xa, term: 7 };
const CLOSED: &str = "1 epoch 55 write 9 longest_lease_ns 60000000000 authority_ns 1000000000 closed yes config_version 3 \
                      line 99 since 50 rest_over_ns 30 safe_rest_over_ns 50";

fn stored(key: &str, value: &str) -> Stored {
    let key = format!("lessor/root/{key}").into_bytes();
    Stored { key, value: value.into(), create_revision: 3, mod_revision: 9, lease: None }
}

/// All that a record can say, in the order of its keys.
fn record(cluster: Option<&str>) -> Vec<Stored> {
    let cluster = cluster.map(|value| stored("cluster", value));
    let rest = [
        stored("earlier", "1 epoch 55 stopped 54 clock_ns 7000000000 until_ns 65000000000"),
        stored("mark/db", "1 millionths 9 rest 4 in_epoch 55 of_epoch 5 of_seq 7 token 05c1e0"),
        stored("reign", CLOSED),
        stored("stop", "1 epoch 55 write 9 clock_ns 5000000000"),
    ];
    cluster.into_iter().chain(rest).collect()
}

/// The epoch of a leader that reads a record of [`WRITTEN_AT`] at `answers`, what it makes of that, and all that it writes first. It
/// knows the clock of the leader that wrote it.
fn found(answers: EtcdCluster) -> (Epoch, Record, Vec<(String, String)>) {
    let mut candidate =
        Candidate::new(Time::ZERO, ElectionConfig::new("root", "a:1", 7)).expect("it can work");
    candidate.set_date(Duration::from_millis(MONDAY));
    candidate.hear_clock(Epoch(55), Time::ZERO, Time::ZERO);
    elect(&mut candidate, 12, &record(Some("1 id 10 term 7")), Some(answers))
}

#[test]
fn where_it_was_written_a_record_is_believed_and_says_where_that_is() {
    for term in [7, 8] {
        let answers = EtcdCluster { term, ..WRITTEN_AT };
        let (epoch, record, written) = found(answers);
        assert_eq!((record.written_at, record.read_at), (Some(WRITTEN_AT), Some(answers)));
        assert!(!record.is_copy && record.unknown == Unknown::Nothing && record.closed, "{record:?}");
        assert_eq!((record.line, record.first_epoch, record.proofs.len()), (99, Epoch(50), 1));
        assert_eq!(epoch, next_epoch(Epoch(55), MONDAY));
        let said = ("lessor/root/cluster".to_owned(), format!("1 id 10 term {term}"));
        assert!(written.contains(&said), "{written:?}");
    }
}

#[test]
fn elsewhere_or_at_an_earlier_state_it_is_not_known_what_is_out_and_nobody_has_stopped() {
    for answers in [EtcdCluster { id: 0xb, term: 9 }, EtcdCluster { id: 0xa, term: 6 }] {
        let (epoch, record, written) = found(answers);
        assert!(record.is_copy && record.unknown == Unknown::All && !record.closed, "{record:?}");
        // What was there may be longer, and no shorter.
        assert_eq!(record.longest_lease, Duration::from_secs(60));
        assert_eq!((record.authority, record.config_version), (Duration::from_secs(4), 3));
        // A successor would read them.
        let db = ResourceId::new("db", 256).unwrap();
        assert_eq!(record.marks, [(db, Amount::from_micros(9))].into());
        assert!(record.rests.is_empty() && record.proofs.is_empty(), "{record:?}");
        assert_eq!((record.stopped, record.earlier.len()), (None, 0));
        assert_eq!((record.line, record.first_epoch), (7, epoch), "no earlier leader is in its line");

        let header = format!(
            "1 epoch {epoch} write 1 longest_lease_ns 60000000000 authority_ns 4000000000 closed no config_version 3 unknown yes \
             line 7 since {epoch}"
        );
        assert_eq!(written[0], ("lessor/root/reign".to_owned(), header));
        let EtcdCluster { id, term } = answers;
        assert_eq!(written[1], ("lessor/root/cluster".to_owned(), format!("1 id {id} term {term}")));

        // When the leader of its last epoch stopped says nothing of those who may have led since.
        let left = Record::left(record, Duration::from_secs(4));
        assert!(left.unknown == Unknown::All && left.stops.is_empty(), "{left:?}");
    }
}

#[test]
fn a_record_that_does_not_say_where_it_was_written_is_believed() {
    let (epoch, read, written) = elected_at(MONDAY, 12, &record(None), Some(WRITTEN_AT));
    assert!(!read.is_copy && read.unknown == Unknown::Nothing && read.closed, "{read:?}");
    assert_eq!(epoch, next_epoch(Epoch(55), MONDAY));
    assert!(written.iter().any(|(key, _)| key == "lessor/root/cluster"), "the next one is told: {written:?}");
    // So is one that is read at an etcd that does not say which it is; what stands there stays.
    let (_, read, written) = elected_at(MONDAY, 12, &record(Some("1 id 10 term 7")), None);
    assert!(!read.is_copy && read.unknown == Unknown::Nothing, "{read:?}");
    assert!(written.iter().all(|(key, _)| key != "lessor/root/cluster"), "{written:?}");
}

#[test]
fn an_epoch_after_a_copy_is_none_that_leaders_may_have_had_whom_it_does_not_know() {
    // The date was set back behind the last epoch of the record, so those who followed it elsewhere have counted on by one.
    let (copied, _, _) =
        elected_at(0, 12, &record(Some("1 id 10 term 7")), Some(EtcdCluster { id: 0xb, term: 2 }));
    let mut last = Epoch(55);
    for _ in 0..10_000 {
        last = next_epoch(last, 0);
        assert_ne!(copied, last);
    }
    assert!(copied > last);
}
