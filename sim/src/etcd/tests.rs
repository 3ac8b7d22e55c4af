//! Tests of the simulated etcd.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn grant(etcd: &mut Etcd, now: Time, ttl: Duration) -> LeaseId {
    match etcd.carry_out(now, &Call::GrantLease { ttl }) {
        Ok(Answer::Granted { lease, .. }) => lease,
        other => panic!("{other:?}"),
    }
}

fn campaign(etcd: &mut Etcd, now: Time, lease: LeaseId) -> Result<Answer, Failure> {
    etcd.carry_out(now, &Call::Campaign { lease, key: "leader".to_owned(), value: "v".to_owned() })
}

#[test]
fn a_key_goes_with_its_lease_and_not_a_moment_before() {
    let mut etcd = Etcd::new();
    let lease = grant(&mut etcd, Time::ZERO, SECOND);
    assert_eq!(campaign(&mut etcd, Time::ZERO, lease), Ok(Answer::Won { revision: 2 }));
    etcd.watch(1, "leader", 3);
    // The shortest lease lasts two seconds.
    let end = Time::ZERO + SECOND * 2;
    etcd.advance(Time::from_nanos(end.as_nanos() - 1));
    assert!(etcd.get("leader").is_some() && etcd.watched(1).is_empty());
    assert_eq!(etcd.next_end(), end);
    etcd.advance(end);
    assert!(etcd.get("leader").is_none());
    assert_eq!(etcd.watched(1), [Watched::Deleted]);
    assert_eq!(campaign(&mut etcd, end, lease), Err(Failure::LeaseNotFound));
}

#[test]
fn a_watch_shows_everything_from_its_revision_on_or_says_that_it_cannot() {
    let mut etcd = Etcd::new();
    etcd.put("leader", "a");
    etcd.delete("leader");
    etcd.put("leader", "b");
    etcd.watch(1, "leader", 3);
    assert!(matches!(&etcd.watched(1)[..], [Watched::Deleted, Watched::Put(stored)] if stored.value == b"b"));
    assert!(etcd.watched(1).is_empty());
    etcd.compact(3);
    etcd.watch(2, "leader", 3);
    assert_eq!(etcd.watched(2), [Watched::Compacted]);
    etcd.watch(3, "leader", 4);
    assert_eq!(etcd.watched(3).len(), 1);
}
