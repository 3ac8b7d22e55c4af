//! Units on request: who is sent one, and when.

use lessor_proto::ResourceId;
use proptest::prelude::*;

use super::*;

const BURST: Duration = Duration::from_millis(50);

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// Serves: how many units are sent to whom.
fn serve(pool: &mut Pool, now: Time, depth: u64) -> BTreeMap<Slot, u32> {
    serve_those(pool, now, depth, |_| true)
}

/// The same where the streams of others take nothing.
fn serve_those(pool: &mut Pool, now: Time, depth: u64, takes: impl Fn(Slot) -> bool) -> BTreeMap<Slot, u32> {
    pool.serve(now, depth, Rules::default(), takes)
        .into_iter()
        .map(|(slot, sent)| (slot, sent.units))
        .collect()
}

fn asked(asked: u64, keep: Option<u64>, done: u64) -> UnitsAsked {
    let resource = ResourceId::new("db", 256).unwrap();
    let keep = keep.map(Duration::from_millis);
    UnitsAsked { resource, asked, keep, kept: None, done: Some(done) }
}

/// Asks for so many since the beginning, to be used when they arrive.
fn ask(pool: &mut Pool, slot: Slot, units: u64) {
    pool.ask(Time::ZERO, slot, &asked(units, None, 0));
}

/// A pool of `members` equal leases of `units` in all.
fn pool(members: u32, units: u64) -> Pool {
    let mut pool = Pool::default();
    for slot in 0..members {
        pool.join(slot, units * Amount::MICROS_PER_UNIT / u64::from(members));
    }
    serve(&mut pool, Time::ZERO, depth(units.max(20)));
    pool
}

fn depth(units: u64) -> u64 {
    u64::try_from(brings(Amount::from_units(units), BURST)).unwrap()
}

#[test]
fn a_thousand_who_ask_at_once_have_what_the_burst_brings_and_then_one_after_the_other() {
    let mut pool = pool(1_000, 100);
    for slot in 0..1_000 {
        ask(&mut pool, slot, 1);
    }
    let mut served = BTreeSet::new();
    let mut counts = Vec::new();
    for millis in 20_000..30_000 {
        let sent = serve(&mut pool, at(millis), depth(100));
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
    serve(&mut pool, Time::ZERO, depth(20));
    ask(&mut pool, 0, 1_000);
    ask(&mut pool, 1, 1_000);
    let mut sent = [0; 2];
    for millis in 0..100_000 {
        for (slot, units) in serve(&mut pool, at(millis), depth(20)) {
            sent[slot as usize] += units;
        }
    }
    assert_eq!(sent[0] + sent[1], 399);
    assert!(sent[0].abs_diff(300) <= 2, "{sent:?}");
    // Who comes anew has not been saving up.
    pool.join(2, 1_000_000);
    ask(&mut pool, 2, 1_000);
    let mut late = [0; 3];
    for millis in 100_000..110_000 {
        for (slot, units) in serve(&mut pool, at(millis), depth(20)) {
            late[slot as usize] += units;
        }
    }
    assert!(late[2] <= 11 && late[1] >= 8, "{late:?}");
}

#[test]
fn what_may_be_used_later_counts_until_it_is_used_or_too_late() {
    let mut pool = pool(10, 100);
    for slot in 0..10 {
        pool.ask(at(10_000), slot, &asked(1, Some(400), 0));
    }
    assert_eq!(serve(&mut pool, at(10_000), depth(100)).len(), 5);
    assert_eq!(serve(&mut pool, at(10_400), depth(100)).len(), 0, "five are out");
    assert_eq!(pool.wake(), Some(at(10_450)), "clocks may differ");
    // Two are used: what flowed in meanwhile was no whole unit.
    for slot in 0..2 {
        pool.ask(at(10_400), slot, &asked(1, Some(400), 1));
    }
    let sent = [10_400, 10_401, 10_410, 10_411, 10_420, 10_430]
        .map(|at_| serve(&mut pool, at(at_), depth(100)).len());
    assert_eq!(sent, [0, 1, 0, 1, 0, 0]);
}

#[test]
fn what_was_sent_to_be_kept_is_what_was_asked_for_last() {
    let mut pool = pool(1, 100);
    pool.ask(at(0), 0, &UnitsAsked { kept: Some(1), ..asked(3, Some(40), 0) });
    let sent = pool.serve(at(10_000), depth(100), Rules::default(), |_| true);
    assert_eq!(sent[&0], Sent { units: 3, kept: 1, keep: Duration::from_millis(40) });
    assert_eq!(pool.out.units, 1);
    pool.ask(at(10_000), 0, &asked(3, None, 1));
    assert_eq!(pool.out.units, 0);
    // What is said twice ends nothing twice.
    pool.ask(at(10_000), 0, &asked(4, Some(40), 1));
    assert_eq!(serve(&mut pool, at(10_000), depth(100)).len(), 1);
    pool.ask(at(10_000), 0, &asked(4, Some(40), 1));
    assert_eq!(pool.out.units, 1);
}

/// One who uses each unit a while after it came, and says so, of a pool that holds one: nothing is lost as long as the next
/// one takes longer to come in.
#[test]
fn a_unit_that_is_out_does_not_hold_up_what_flows_in() {
    let mut pool = pool(2, 38);
    let (mut sent, mut out) = (0, None);
    for millis in 1_000..11_000 {
        if out.is_some_and(|until| millis >= until) {
            out = None;
        }
        pool.ask(at(millis), 0, &asked(sent + 1, Some(500), sent - u64::from(out.is_some())));
        if !serve(&mut pool, at(millis), depth(38)).is_empty() {
            sent += 1;
            out = Some(millis + 20);
        }
    }
    assert!((375..=381).contains(&sent), "{sent} in ten seconds");
}

#[test]
fn who_asks_for_fewer_is_sent_fewer_and_what_crosses_counts_once() {
    let mut pool = pool(1, 10);
    ask(&mut pool, 0, 5);
    assert_eq!(serve(&mut pool, at(1_000), depth(20)), BTreeMap::from([(0, 1)]));
    // It has had one and wants one more.
    ask(&mut pool, 0, 2);
    assert_eq!(serve(&mut pool, at(1_100), depth(20)), BTreeMap::from([(0, 1)]));
    assert_eq!((serve(&mut pool, at(9_000), depth(20)).len(), pool.wake()), (0, None));
    ask(&mut pool, 0, 1);
    assert_eq!(serve(&mut pool, at(9_000), depth(20)).len(), 0);
    pool.leave(0);
    assert_eq!((pool.rate(), pool.line.len()), (0, 0));
}

#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Join(Slot, u64),
    Leave(Slot),
    Ask(Slot, u64, Option<u64>),
    Done(Slot, u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => prop_oneof![0..50u64, 0..5_000u64].prop_map(Event::Pass),
        1 => (0..8u32, 1..15_000_000u64).prop_map(|(slot, rate)| Event::Join(slot, rate)),
        1 => (0..8u32).prop_map(Event::Leave),
        4 => (0..8u32, 0..20u64, prop::option::of(0..1_000u64)).prop_map(|(slot, n, keep)| Event::Ask(slot, n, keep)),
        1 => (0..8u32, 0..3u64).prop_map(|(slot, n)| Event::Done(slot, n)),
    ];
    prop::collection::vec(event, 1..200)
}

proptest! {
    // In any window no more is sent than flowed in and the depth, and less than a unit more: with the largest of each where they
    // change. And what may be used later, with the whole units that are left, is never more than the depth, or one.
    #[test]
    fn no_window_sees_more_than_the_leases_and_the_depth(events in events(), limit in 20u64..200) {
        let mut pool = Pool::default();
        let (mut now, mut inflow, deep) = (0u64, 0u128, depth(limit));
        let mut sends: Vec<(u128, u128)> = Vec::new();
        // Units of those who have left, each until its time is over.
        let mut left: Vec<(Time, u64)> = Vec::new();
        for event in events {
            match event {
                Event::Pass(millis) => {
                    inflow += u128::from(pool.rate()) * u128::from(millis) * 1_000_000;
                    now += millis;
                }
                Event::Join(slot, rate) => pool.join(slot, rate),
                Event::Leave(slot) => {
                    let units = pool.members.get(slot).map(|member| member.out.until.clone());
                    left.extend(units.unwrap_or_default());
                    pool.leave(slot);
                }
                Event::Ask(slot, n, keep) => {
                    let sent = pool.members.get(slot).map_or(0, |member| member.sent);
                    pool.ask(at(now), slot, &asked(sent + n, keep, 0));
                }
                Event::Done(slot, n) => {
                    let done = pool.members.get(slot).map_or(0, |member| member.done);
                    pool.ask(at(now), slot, &asked(0, None, done + n));
                }
            }
            let sent: u32 = serve(&mut pool, at(now), deep).values().sum();
            sends.push((inflow, u128::from(sent)));
            prop_assert!((pool.out.units + pool.bucket.tokens()) * Amount::MICROS_PER_UNIT <= deep);
            prop_assert_eq!(pool.out.units, pool.out.until.values().sum::<u64>());
            // Of those whose time is not over each is of a member, or of one that has left.
            let live = |out: &Out| -> u64 { out.until.range(at(now + 1)..).map(|(_, units)| units).sum() };
            let members: u64 = pool.members.iter().map(|(_, member)| live(&member.out)).sum();
            left.retain(|&(until, _)| at(now + 1) <= until);
            prop_assert_eq!(live(&pool.out), members + left.iter().map(|&(_, units)| units).sum::<u64>());
            prop_assert_eq!(pool.rate, pool.members.iter().map(|(_, member)| member.rate).sum::<u64>());
        }
        for first in 0..sends.len() {
            let mut sum = 0;
            for &(flowed, sent) in &sends[first..] {
                sum += sent * 1_000_000 * 1_000_000_000;
                let most = flowed - sends[first].0 + u128::from(deep + Amount::MICROS_PER_UNIT) * 1_000_000_000;
                prop_assert!(sum < most);
            }
        }
    }
}

#[test]
fn units_go_to_others_while_a_stream_takes_nothing_and_none_is_saved_up_for_it() {
    let mut pool = pool(2, 10);
    ask(&mut pool, 0, 100);
    ask(&mut pool, 1, 3);
    let only_one = |pool: &mut Pool, millis| serve_those(pool, at(millis), depth(20), |slot| slot == 1);
    assert_eq!(only_one(&mut pool, 20_000), [(1, 1)].into());
    assert_eq!(only_one(&mut pool, 20_050), [].into());
    assert_eq!(only_one(&mut pool, 20_200), [(1, 1)].into());
    assert_eq!(only_one(&mut pool, 20_300), [(1, 1)].into());
    // It waits still, and is not in the way.
    assert_eq!(pool.wake(), None);
    ask(&mut pool, 1, 6);
    pool.resume(0);
    let sent: Vec<_> = (0..5).map(|tenth| serve(&mut pool, at(20_400 + 100 * tenth), depth(20))).collect();
    let to = |slot| sent.iter().map(|sent| sent.get(&slot).copied().unwrap_or_default()).sum::<u32>();
    assert_eq!(sent.iter().map(|sent| sent.values().sum::<u32>()).max(), Some(1), "{sent:?}");
    assert!(to(0) >= 2 && to(1) >= 2, "{sent:?}");
}
