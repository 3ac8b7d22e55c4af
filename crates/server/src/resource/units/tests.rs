use proptest::prelude::*;

use super::*;

const BURST: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// So many equal leases of so much in all.
fn pool(members: u32, units: u64) -> Pool {
    let mut pool = Pool::default();
    for slot in 0..members {
        pool.join(slot, units * Amount::MICROS_PER_UNIT / u64::from(members));
    }
    pool.serve(Time::ZERO, depth(units.max(20)), BURST);
    pool
}

fn depth(units: u64) -> u64 {
    u64::try_from(brings(Amount::from_units(units), BURST)).unwrap()
}

#[test]
fn a_thousand_who_ask_at_once_have_what_the_burst_brings_and_then_one_after_the_other() {
    let mut pool = pool(1_000, 100);
    for slot in 0..1_000 {
        pool.ask(slot, 1, None);
    }
    let mut served = BTreeSet::new();
    let mut counts = Vec::new();
    for millis in 20_000..30_000 {
        let sent = pool.serve(at(millis), depth(100), BURST);
        counts.push(sent.values().sum::<u32>());
        served.extend(sent.into_keys());
    }
    assert_eq!(counts[0], 5, "in one instant");
    assert!(counts.windows(1_000).all(|second| second.iter().sum::<u32>() <= 105));
    assert_eq!(served.len(), 1_000, "and everybody has one in the end");
}

#[test]
fn who_has_been_sent_less_for_its_lease_comes_first() {
    let mut pool = Pool::default();
    pool.join(0, 3_000_000);
    pool.join(1, 1_000_000);
    pool.serve(Time::ZERO, depth(20), BURST);
    pool.ask(0, 1_000, None);
    pool.ask(1, 1_000, None);
    let mut sent = [0; 2];
    for millis in 0..100_000 {
        for (slot, units) in pool.serve(at(millis), depth(20), BURST) {
            sent[slot as usize] += units;
        }
    }
    assert_eq!(sent[0] + sent[1], 399);
    assert!(sent[0].abs_diff(300) <= 2, "{sent:?}");
    // Who comes anew has not been saving up.
    pool.join(2, 1_000_000);
    pool.ask(2, 1_000, None);
    let mut late = [0; 3];
    for millis in 100_000..110_000 {
        for (slot, units) in pool.serve(at(millis), depth(20), BURST) {
            late[slot as usize] += units;
        }
    }
    assert!(late[2] <= 11 && late[1] >= 8, "{late:?}");
}

#[test]
fn what_may_be_used_later_counts_as_saved_up_for_the_burst() {
    let mut pool = pool(10, 100);
    for slot in 0..10 {
        pool.ask(slot, 1, Some(at(10_500)));
    }
    assert_eq!(pool.serve(at(10_000), depth(100), BURST).len(), 5);
    assert_eq!(pool.serve(at(10_040), depth(100), BURST).len(), 0, "five are out");
    assert_eq!(pool.wake(), Some(at(10_050)));
    assert_eq!(pool.serve(at(10_050), depth(100), BURST).len(), 0, "nothing came in meanwhile");
    assert_eq!(pool.serve(at(10_100), depth(100), BURST).len(), 5);
}

/// Ten who keep what they are sent for half a second share a pool that holds five units: they have far more than the ten in a
/// second that they would have if units counted for as long as they are kept.
#[test]
fn who_keeps_units_for_long_does_not_hold_up_the_pool() {
    let mut pool = pool(10, 100);
    let mut sent = 0;
    for millis in 1_000..11_000 {
        for slot in 0..10 {
            pool.ask(slot, u64::MAX, Some(at(millis + 500)));
        }
        sent += pool.serve(at(millis), depth(100), BURST).values().sum::<u32>();
    }
    assert!((800..=1_001).contains(&sent), "{sent} in ten seconds");
}

#[test]
fn who_asks_for_fewer_is_sent_fewer_and_what_crosses_counts_once() {
    let mut pool = pool(1, 10);
    pool.ask(0, 5, None);
    assert_eq!(pool.serve(at(1_000), depth(20), BURST), BTreeMap::from([(0, 1)]));
    // It has had one and wants one more.
    pool.ask(0, 2, None);
    assert_eq!(pool.serve(at(1_100), depth(20), BURST), BTreeMap::from([(0, 1)]));
    assert_eq!((pool.serve(at(9_000), depth(20), BURST).len(), pool.wake()), (0, None));
    pool.ask(0, 1, None);
    assert_eq!(pool.serve(at(9_000), depth(20), BURST).len(), 0);
    pool.leave(0);
    assert_eq!((pool.rate(), pool.line.len()), (0, 0));
}

#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Join(Slot, u64),
    Leave(Slot),
    Ask(Slot, u64, Option<u64>),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => prop_oneof![0..50u64, 0..5_000u64].prop_map(Event::Pass),
        1 => (0..8u32, 1..15_000_000u64).prop_map(|(slot, rate)| Event::Join(slot, rate)),
        1 => (0..8u32).prop_map(Event::Leave),
        4 => (0..8u32, 0..20u64, prop::option::of(0..1_000u64)).prop_map(|(slot, n, keep)| Event::Ask(slot, n, keep)),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    // In any window no more is sent than flowed in and the depth: with the largest of each where they change. And what may be
    // used later is never more than the depth, with what is left.
    #[test]
    fn no_window_sees_more_than_the_leases_and_the_depth(events in events(), limit in 20u64..200) {
        let mut pool = Pool::default();
        let (mut now, mut inflow, deep) = (0u64, 0u128, depth(limit));
        let mut sends: Vec<(u128, u128)> = Vec::new();
        for event in events {
            match event {
                Event::Pass(millis) => {
                    inflow += u128::from(pool.rate()) * u128::from(millis) * 1_000_000;
                    now += millis;
                }
                Event::Join(slot, rate) => pool.join(slot, rate),
                Event::Leave(slot) => pool.leave(slot),
                Event::Ask(slot, n, keep) => {
                    let asked = pool.members.get(&slot).map_or(0, |member| member.sent) + n;
                    pool.ask(slot, asked, keep.map(|keep| at(now + keep)));
                }
            }
            let sent: u32 = pool.serve(at(now), deep, BURST).values().sum();
            sends.push((inflow, u128::from(sent)));
            let out = pool.out.values().sum::<u64>() * Amount::MICROS_PER_UNIT;
            prop_assert!(out <= deep);
            prop_assert_eq!(pool.rate, pool.members.values().map(|member| member.rate).sum::<u64>());
        }
        for first in 0..sends.len() {
            let mut sum = 0;
            for &(flowed, sent) in &sends[first..] {
                sum += sent * 1_000_000 * 1_000_000_000;
                prop_assert!(sum <= flowed - sends[first].0 + u128::from(deep) * 1_000_000_000);
            }
        }
    }
}
