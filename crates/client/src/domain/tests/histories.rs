//! Random histories of domains: what is forgotten makes no difference, and the lease is kept.

use lessor_algorithms::tiers::{self, Ask};
use proptest::prelude::*;

use super::*;

/// An event that happens to some domains.
#[derive(Clone, Debug)]
enum Event {
    Ask { name: u8, copies: u32, min: u32 },
    Settle { name: u8, granted: u32, actual: u32 },
    Sweep,
    Pass(u64),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0u8..6, 0u32..40, 0u32..20).prop_map(|(name, copies, min)| Event::Ask { name, copies, min }),
        1 => (0u8..6, 0u32..9, 0u32..9).prop_map(|(name, granted, actual)| Event::Settle { name, granted, actual }),
        2 => Just(Event::Sweep),
        4 => (0u64..4_000_000_000).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// The oracle has one history for each name and forgets nothing.
    #[test]
    fn forgetting_those_who_are_idle_changes_no_answer(events in prop::collection::vec(event(), 1..150)) {
        let policy =
            TierPolicy::new(vec![tier((10, 1, 2, 0)), tier((30, 3, 3, 5))], Some(35), Some(60)).unwrap();
        let contract = Contract::from(policy.clone());
        let (domains, lease) = (domains(rules(policy)), lease(None));
        let mut oracle: Vec<tiers::Domain> = (0..6).map(|_| tiers::Domain::new()).collect();
        let (mut all, mut now, mut heard) = (tiers::Global::exact(), 1_u64, [false; 6]);
        for event in events {
            match event {
                Event::Ask { name, copies, min } => {
                    let history = &mut oracle[usize::from(name)];
                    let ask = Ask::between(min.min(copies), copies);
                    let expected = Decision::of(&history.request(&contract, &mut all, now, ask));
                    heard[usize::from(name)] = true;
                    let found = domains.request(&lease, &name.to_string(), copies, min, Time::from_nanos(now));
                    // Where something is granted, the time of the next is not told.
                    prop_assert_eq!(found, expected);
                }
                Event::Settle { name, granted, actual } => {
                    // Of those who are forgotten nothing is known that could be settled.
                    let name_text = name.to_string();
                    let is_known = domains.snapshot(&Query::busiest(9), Time::from_nanos(now)).rows.iter().any(|row| row.domain == name_text);
                    if is_known {
                        let delta = i64::from(actual) - i64::from(granted);
                        oracle[usize::from(name)].settle(&contract, now, delta);
                    }
                    domains.settle(&lease, &name_text, granted, actual, Time::from_nanos(now));
                }
                Event::Sweep => (0..16).for_each(|_| domains.sweep(Time::from_nanos(now))),
                Event::Pass(nanos) => now += nanos,
            }
        }
    }

    /// However many ask for however much: never more than the lease, and what it had is granted to the last.
    #[test]
    fn all_domains_together_keep_to_the_lease(asks in prop::collection::vec((0u8..9, 0u32..30, 0u32..30), 1..60)) {
        let (domains, lease) = (domains(rules(policy(&[(1_000, 1, 1, 0)]))), lease(Some(99)));
        let mut left = 99;
        for (name, copies, min) in asks {
            let min = min.min(copies);
            let decision = domains.request(&lease, &name.to_string(), copies, min, at(1.0));
            let expected = if min > left || left == 0 { 0 } else { copies.min(left) };
            prop_assert_eq!(decision.granted, expected);
            left -= expected;
        }
        prop_assert_eq!(lease.usage().granted, u64::from(99 - left));
    }
}
