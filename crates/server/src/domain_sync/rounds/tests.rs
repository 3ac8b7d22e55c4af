//! Tests of rounds of reports.

use lessor_proto::ClientId;
use lessor_proto::message::HolderKind;

use super::*;

fn origin(name: &str) -> DeltaOrigin {
    DeltaOrigin::Below(HolderKind::Client, ClientId::new(name, 256).unwrap(), 1)
}

fn hit(millis: u64, hits: u32) -> DomainEntry {
    DomainEntry { policy: 0, tier: 1, at: Time::from_nanos(millis * 1_000_000), hits, is_entered: false }
}

#[test]
fn each_is_told_what_the_others_said_as_one_sum() {
    let [a, b, c] = ["a", "b", "c"].map(origin);
    let mut rounds = Rounds::default();
    assert!(!rounds.close());
    rounds.add(&a, &[hit(1, 2), hit(70, 1)]);
    rounds.add(&b, &[hit(3, 1)]);
    assert_eq!(rounds.news(0, Some(&c)), Some(vec![]), "the round is open");
    assert!(rounds.close());
    assert_eq!(rounds.news(0, Some(&c)), Some(vec![hit(1, 3), hit(70, 1)]));
    assert_eq!(rounds.news(0, Some(&a)), Some(vec![hit(1, 1)]));
    assert_eq!(rounds.news(0, Some(&b)), Some(vec![hit(1, 2), hit(70, 1)]));
    rounds.add(&a, &[hit(80, 1)]);
    rounds.close();
    assert_eq!((rounds.has_news(1, &a), rounds.has_news(1, &b)), (false, true));
    assert_eq!(rounds.news(1, Some(&b)), Some(vec![hit(80, 1)]));
    assert_eq!(rounds.news(rounds.next(), Some(&b)), Some(vec![]));
}

#[test]
fn who_enters_a_tier_is_told_when_another_did() {
    let [a, b, c] = ["a", "b", "c"].map(origin);
    let entered = |millis| DomainEntry { is_entered: true, ..hit(millis, 0) };
    let mut rounds = Rounds::default();
    rounds.add(&a, &[entered(5)]);
    rounds.add(&b, &[entered(3)]);
    rounds.add(&c, &[entered(9)]);
    rounds.close();
    let told = |origin| rounds.news(0, Some(origin)).unwrap();
    assert_eq!([told(&a), told(&b), told(&c)], [[entered(3)], [entered(5)], [entered(3)]]);
}

#[test]
fn who_was_told_too_little_or_what_is_not_so_is_told_everything() {
    let [a, b] = ["a", "b"].map(origin);
    let mut rounds = Rounds::default();
    for round in 0..=MOST_ROUNDS as u64 {
        rounds.add(&a, &[hit(round * 50, 1)]);
        rounds.close();
    }
    assert_eq!((rounds.news(0, Some(&b)), rounds.has_news(0, &b)), (None, true));
    assert_eq!(rounds.news(1, Some(&b)).map(|entries| entries.len()), Some(MOST_ROUNDS));
    rounds.clear();
    let next = rounds.next();
    assert!(rounds.close() && rounds.next() > next);
    assert_eq!((rounds.news(next, Some(&b)), rounds.news(rounds.next(), Some(&b))), (None, Some(vec![])));
    (0..=MOST_SUMS as u64).for_each(|n| rounds.add(&a, &[hit(n * 20, 1)]));
    let next = rounds.next();
    rounds.close();
    assert_eq!((rounds.news(next, Some(&b)), rounds.news(rounds.next(), Some(&b))), (None, Some(vec![])));
}
