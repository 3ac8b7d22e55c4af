//! Random histories of a limiter: no window sees more than it may, and a rate that is used up is given to the last unit.

use proptest::prelude::*;

use super::*;

/// An event on the fake clock.
#[derive(Clone, Debug)]
enum Event {
    Take { wait: u64, lane: usize, n: u32, times: usize },
    Hold { wait: u64, least: u32, most: u32 },
    Charge { wait: u64, n: u32 },
    Allow { wait: u64, rate: u64, length: u64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let wait = || prop_oneof![Just(0), 0..10_000u64, 0..10 * MILLI, 0..SECOND];
    let rate = prop_oneof![
        Just(0),
        1..1_000_000u64,
        1_000_000..1_000_000_000u64,
        1_000_000_000..2_000_000_000_000u64
    ];
    let take = (wait(), 0..4usize, 1..4u32, prop_oneof![Just(1), 1..10usize, 10..400usize])
        .prop_map(|(wait, lane, n, times)| Event::Take { wait, lane, n, times });
    let allow = (wait(), rate, prop_oneof![Just(u64::MAX / 2), 0..SECOND])
        .prop_map(|(wait, rate, length)| Event::Allow { wait, rate, length });
    let hold = (wait(), 0..4u32, prop_oneof![0..5u32, 0..100_000u32])
        .prop_map(|(wait, least, more)| Event::Hold { wait, least, most: least + more });
    let charge =
        (wait(), prop_oneof![0..5u32, 0..100_000u32]).prop_map(|(wait, n)| Event::Charge { wait, n });
    prop::collection::vec(prop_oneof![6 => take, 2 => hold, 1 => charge, 1 => allow], 1..120)
}

proptest! {
    // For every window that begins with a grant: what flowed in since, and the burst of the rate at its beginning.
    #[test]
    fn no_window_sees_more_than_the_rate_and_the_burst(start in 1u64..2_000_000_000_000, events in events()) {
        let limiter = Limiter::new(BURST);
        let (mut now, mut rate_micros, mut until, mut inflow) = (0u64, start, u64::MAX / 2, 0u128);
        limiter.allow(at(now), rate(rate_micros, until));
        let mut grants: Vec<(u128, u128, u64)> = Vec::new();
        for event in events {
            let (Event::Take { wait, .. }
            | Event::Hold { wait, .. }
            | Event::Charge { wait, .. }
            | Event::Allow { wait, .. }) = event;
            inflow += u128::from(rate_micros) * u128::from(until.min(now + wait).saturating_sub(now));
            now += wait;
            match event {
                Event::Allow { rate: micros, length, .. } => {
                    (rate_micros, until) = (micros, now + length);
                    limiter.allow(at(now), rate(rate_micros, until));
                }
                Event::Charge { n, .. } => limiter.charge(n, at(now)),
                Event::Hold { least, most, .. } => {
                    let mut hold = limiter.hold(at(now));
                    let granted = hold.room(least, most).unwrap_or(0);
                    hold.take(granted);
                    grants.push((inflow, u128::from(granted) * UNIT, rate_micros));
                }
                Event::Take { lane, n, times, .. } => {
                    sit(lane);
                    let granted = (0..times).filter(|_| limiter.try_acquire(n, || at(now)).is_ok()).count();
                    grants.push((inflow, granted as u128 * u128::from(n) * UNIT, rate_micros));
                }
            }
        }
        for first in 0..grants.len() {
            let (before, _, rate_then) = grants[first];
            let burst = saved(rate_then, BURST);
            let mut sum = 0;
            for &(inflow, granted, _) in &grants[first..] {
                sum += granted;
                prop_assert!(sum <= inflow - before + burst);
            }
        }
    }

    // Threads that come in time get all of it, to the last token, wherever tokens idled in between: that is, before what has
    // come in with the fraction of a unit that is there is more than the burst.
    #[test]
    fn saturation_gets_the_rate_exactly(
        micros in prop_oneof![100_000u64..20_000_000, 25_000_000..20_000_000_000u64],
        steps in prop::collection::vec((1..10 * MILLI, 0..4usize, 0..50usize), 1..200),
    ) {
        let limiter = Limiter::default();
        limiter.allow(Time::ZERO, rate(micros, u64::MAX));
        let (mut now, mut granted) = (0, 0);
        for (step, lane, before) in steps {
            now += step;
            sit(lane);
            granted += (0..before).filter(|_| limiter.try_acquire(1, || at(now)).is_ok()).count() as u64;
            sit(lane + 1);
            granted += drain(&limiter, now);
            prop_assert_eq!(u128::from(granted), u128::from(micros) * u128::from(now) / UNIT);
        }
        prop_assert_eq!(limiter.usage().granted, granted);
    }
}
