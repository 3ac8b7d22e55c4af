//! The same by hand: for every number of copies, from the most to the least, all parts are tried on copies of themselves.

use lessor_algorithms::bucket::Bucket;
use lessor_algorithms::tiers::{self, Ask, Contract};
use proptest::prelude::*;

use super::*;

const GAUGES: [u32; 2] = [3, 7];
const RATES: [u64; 3] = [4, 9, 30];
const SECOND: u64 = 1_000_000_000;

/// The state of all resources, counted in the plainest way. Resources 0 and 1 are gauges, 2 and 3 rates with
/// domains, 4 a rate.
#[derive(Clone)]
struct Plain {
    in_use: [u32; 2],
    leases: [Bucket; 3],
    /// Of each rate with domains, those of two tenants.
    histories: [[tiers::Domain; 2]; 2],
    all: [tiers::Global; 2],
}

/// The same in earnest.
struct Real {
    gauges: [Semaphore; 2],
    leases: [Limiter; 3],
    domains: [Domains; 2],
}

/// Which resource, and for how much. Of a domain, `tenant` is 0 or 1.
#[derive(Clone, Copy, Debug)]
struct Want {
    of: usize,
    price: Price,
}

#[derive(Clone, Debug)]
enum Event {
    Ask {
        wants: Vec<Want>,
        tenant: usize,
        min: u32,
        copies: u32,
    },
    /// The oldest permit is dropped.
    Done,
    /// Hits turn out to be more or fewer.
    Settle {
        of: usize,
        tenant: usize,
        granted: u32,
        actual: u32,
    },
    Pass(u64),
}

const TENANTS: [&str; 2] = ["a", "b"];

fn rules() -> TierPolicy {
    let second = Duration::from_secs(1);
    let tier = |limit, seconds, rest| Tier {
        limit,
        window: second * seconds,
        active: second * seconds,
        cooldown: second * rest,
        is_skippable: false,
        kind: Window::Exact,
    };
    TierPolicy::new(vec![tier(4, 1, 0), tier(12, 3, 4)], Some(14), Some(20)).unwrap()
}

// === impl Plain ===

impl Plain {
    fn new() -> Plain {
        let bucket = |rate| {
            let mut bucket = Bucket::empty();
            bucket.set(0, rate * 1_000_000, rate * 1_000_000, u64::MAX);
            bucket
        };
        let histories = || [tiers::Domain::new(), tiers::Domain::new()];
        Plain {
            in_use: [0, 0],
            leases: RATES.map(bucket),
            histories: [histories(), histories()],
            all: [tiers::Global::exact(), tiers::Global::exact()],
        }
    }

    /// Takes so much of one resource, if all of it is there.
    fn take(&mut self, of: usize, tenant: usize, units: u32, contract: &Contract, now: u64) -> bool {
        match of {
            _ if units == 0 => true,
            0 | 1 => {
                self.in_use[of] += units;
                self.in_use[of] <= GAUGES[of]
            }
            2..=4 => {
                let is_allowed =
                    of == 4 || self.make(of - 2, tenant, Ask::exactly(units), contract, now) == units;
                self.leases[of - 2].refill(now);
                is_allowed && self.leases[of - 2].take(units.into())
            }
            _ => unreachable!("there are five"),
        }
    }

    /// Asks policies alone.
    fn make(&mut self, rate: usize, tenant: usize, ask: Ask, contract: &Contract, now: u64) -> u32 {
        self.histories[rate][tenant].request(contract, &mut self.all[rate], now, ask).granted
    }

    /// Grants copies, tried from the most to the least, and returns their number.
    fn ask(
        &mut self,
        wants: &[Want],
        tenant: usize,
        (min, copies): (u32, u32),
        contract: &Contract,
        now: u64,
    ) -> Option<u32> {
        for n in (min..=copies).rev() {
            let mut then = self.clone();
            if wants.iter().all(|want| then.take(want.of, tenant, want.price.units(n), contract, now)) {
                *self = then;
                return Some(n);
            }
        }
        // Who is refused by policies pays what is owed.
        for want in wants.iter().filter(|want| matches!(want.of, 2 | 3) && want.price.units(copies) > 0) {
            let ask = Ask::between(want.price.units(min), want.price.units(copies));
            let mut then = self.clone();
            if then.make(want.of - 2, tenant, ask, contract, now) == 0 {
                *self = then;
            }
        }
        None
    }
}

// === impl Real ===

impl Real {
    fn new() -> Real {
        let domains = || domains_with(DomainOptions::default(), rules());
        Real {
            gauges: GAUGES.map(|units| gauge(units.into())),
            leases: RATES.map(lease),
            domains: [domains(), domains()],
        }
    }

    fn ask(
        &self,
        wants: &[Want],
        tenant: usize,
        (min, copies): (u32, u32),
        now: u64,
    ) -> Result<TogetherPermit, TogetherDenied> {
        let request = wants.iter().fold(Combination::between(min, copies), |request, want| match want.of {
            of @ (0 | 1) => request.gauge(&self.gauges[of], want.price),
            of @ (2 | 3) => {
                request.domain(&self.domains[of - 2], &self.leases[of - 2], TENANTS[tenant], want.price)
            }
            _ => request.rate(&self.leases[2], want.price),
        });
        request.try_acquire(|| Time::from_nanos(now))
    }
}

fn check_same(real: &Real, plain: &Plain, contract: &Contract, now: u64) -> Result<(), TestCaseError> {
    prop_assert_eq!([0, 1].map(|gauge: usize| real.gauges[gauge].in_use()), plain.in_use);
    for rate in 0..3 {
        let mut bucket = plain.leases[rate].clone();
        bucket.refill(now);
        let tokens = u32::try_from(bucket.tokens()).unwrap();
        let found = real.leases[rate].hold(Time::from_nanos(now)).room(0, u32::MAX);
        prop_assert_eq!(found, Ok(tokens), "lease {}", rate);
    }
    for (rate, tenant) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let ask = Ask::between(1, 99);
        let expected = plain.histories[rate][tenant].peek(contract, &plain.all[rate], now, ask);
        let found = real.domains[rate].peek(TENANTS[tenant], 99, 1, Time::from_nanos(now));
        prop_assert_eq!(
            (found.granted, found.debt),
            (expected.granted, expected.debt),
            "{} {}",
            rate,
            tenant
        );
    }
    Ok(())
}

fn event() -> impl Strategy<Value = Event> {
    let price = prop_oneof![(0u32..4).prop_map(Price::Each), (0u32..5).prop_map(Price::Once)];
    let wants = (
        prop::sample::subsequence(vec![0, 1, 2, 3, 4], 1..=5).prop_shuffle(),
        prop::collection::vec(price, 5),
    )
        .prop_map(|(of, prices)| of.into_iter().zip(prices).map(|(of, price)| Want { of, price }).collect());
    prop_oneof![
        8 => (wants, 0usize..2, 1u32..6, 0u32..6).prop_map(|(wants, tenant, min, more)| Event::Ask { wants, tenant, min, copies: min + more }),
        3 => Just(Event::Done),
        1 => (0usize..2, 0usize..2, 0u32..6, 0u32..9).prop_map(|(of, tenant, granted, actual)| Event::Settle { of, tenant, granted, actual }),
        4 => (0..2 * SECOND).prop_map(Event::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn all_parts_get_the_largest_number_that_all_allow_or_nothing_changes(events in prop::collection::vec(event(), 1..60)) {
        let contract = Contract::from(rules());
        let (real, mut plain) = (Real::new(), Plain::new());
        let (mut now, mut permits) = (SECOND, std::collections::VecDeque::new());
        for event in events {
            match event {
                Event::Ask { wants, tenant, min, copies } => {
                    let expected = plain.ask(&wants, tenant, (min, copies), &contract, now);
                    let found = real.ask(&wants, tenant, (min, copies), now);
                    prop_assert_eq!(found.as_ref().ok().map(TogetherPermit::copies), expected, "{:?}", found);
                    let Ok(permit) = found else { continue };
                    let out = |gauge| wants.iter().filter(|want| want.of == gauge).map(|want| want.price.units(permit.copies())).sum::<u32>();
                    permits.push_back(([out(0), out(1)], permit));
                }
                Event::Done => {
                    let Some((out, permit)) = permits.pop_front() else { continue };
                    drop(permit);
                    (0..2).for_each(|gauge| plain.in_use[gauge] -= out[gauge]);
                }
                Event::Settle { of, tenant, granted, actual } => {
                    let delta = i64::from(actual) - i64::from(granted);
                    // Who was never heard of owes nothing.
                    let rows = real.domains[of].snapshot(&Query::busiest(9), Time::from_nanos(now)).rows;
                    if rows.iter().any(|row| row.domain == TENANTS[tenant]) {
                        plain.histories[of][tenant].settle(&contract, now, delta);
                    }
                    if actual > granted {
                        plain.leases[of].refill(now);
                        plain.leases[of].owe(u64::from(actual - granted), 60 * SECOND);
                    }
                    real.domains[of].settle(&real.leases[of], TENANTS[tenant], granted, actual, Time::from_nanos(now));
                }
                Event::Pass(nanos) => now += nanos,
            }
            check_same(&real, &plain, &contract, now)?;
        }
    }
}
