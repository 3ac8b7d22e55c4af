//! The distance of each kind of window from the exact log, and the most that it lets through.

use std::time::Duration;

use lessor_algorithms::tiers::{Ask, Contract, Domain, Global, Tier, TierPolicy, Window};

use crate::dice::Dice;

const WINDOW: u64 = 1_000;

/// One tier with a window of a thousand nanoseconds, active for ever.
fn contract(kind: Window, limit: u32, window: u64) -> Contract {
    let tier = Tier {
        limit,
        window: Duration::from_nanos(window),
        active: Duration::from_nanos(u64::MAX),
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind,
    };
    Contract::from(TierPolicy::new(vec![tier], None, None).unwrap())
}

/// When what was granted to somebody who asks at random times, often for more than there is.
fn granted(dice: &mut Dice, contract: &Contract, often: u64) -> Vec<u64> {
    let (mut domain, mut all, mut now, mut hits) = (Domain::new(), Global::default(), 0, Vec::new());
    for _ in 0..400 {
        now += dice.below(often);
        let copies = dice.hits(10);
        let granted = domain.request(contract, &mut all, now, Ask::up_to(copies)).granted;
        hits.extend(std::iter::repeat_n(now, granted as usize));
    }
    hits
}

/// The most that lie in any window of this length, both ends included.
fn most_within(hits: &[u64], window: u64) -> usize {
    let from =
        |(first, &at): (usize, &u64)| hits[first..].iter().take_while(|&&hit| hit <= at + window).count();
    hits.iter().enumerate().map(from).max().unwrap_or(0)
}

/// Over random limits and paces, the greatest share of `allowed` that passed in a window of `window`.
fn check(kind: Window, window: u64, allowed: impl Fn(u64) -> u64) -> f64 {
    let mut closest = 0.0_f64;
    for seed in 0..200 {
        let mut dice = Dice(seed);
        let limit = dice.hits(50);
        let often = [2, 50, 300, 900][dice.below(4) as usize];
        let hits = granted(&mut dice, &contract(kind, limit, WINDOW), often);
        let (most, allowed) = (most_within(&hits, window) as u64, allowed(u64::from(limit)));
        assert!(most <= allowed, "{most} of {limit} in {window}, {kind:?}, seed {seed}");
        closest = closest.max(most as f64 / allowed as f64);
    }
    closest
}

#[test]
fn the_log_never_lets_more_than_the_limit_through_in_a_window() {
    assert!(check(Window::Exact, WINDOW, |limit| limit) > 0.999);
}

#[test]
fn slices_let_the_limit_through_in_a_window_less_one_slice_and_twice_that_in_a_window() {
    for slices in [1, 2, 3, 10, 100] {
        let kind = Window::Sliding { slices };
        let slice = WINDOW.div_ceil(u64::from(slices));
        // What counts as of the beginning of a slice was made in it, at worst in its last nanosecond.
        assert!(check(kind, WINDOW - (slice - 1), |limit| limit) > 0.999);
        check(kind, WINDOW, |limit| 2 * limit);
    }
}

#[test]
fn fixed_windows_let_twice_the_limit_through_around_their_ends() {
    assert!(check(Window::Fixed, WINDOW, |limit| 2 * limit) > 0.9);
    for windows in 2..5 {
        check(Window::Fixed, windows * WINDOW - 1, |limit| (windows + 1) * limit);
    }
}

#[test]
fn buckets_let_the_limit_through_at_once_and_again_in_each_window() {
    assert!(check(Window::Bucket, WINDOW, |limit| 2 * limit) > 0.9);
    for window in [0, 10, 100, 500, 5000] {
        check(Window::Bucket, window, |limit| limit + limit * window / WINDOW);
    }
}

/// With the same hits every kind counts at most what the log counts, and slices at least what a log counts whose window is
/// a slice shorter.
#[test]
fn no_kind_counts_a_hit_for_longer_than_the_log() {
    const PLENTY: u32 = 1_000_000;
    let mut differed = 0;
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let slices = u16::try_from(1 + dice.below(20)).unwrap();
        let slice = WINDOW.div_ceil(u64::from(slices));
        let shorter = contract(Window::Exact, PLENTY, (WINDOW - slice).max(1));
        let kinds = [Window::Exact, Window::Sliding { slices }, Window::Fixed, Window::Bucket];
        let contracts: Vec<_> =
            kinds.map(|kind| contract(kind, PLENTY, WINDOW)).into_iter().chain([shorter]).collect();
        let mut domains = vec![Domain::new(); contracts.len()];
        let (mut now, mut all) = (0, Global::default());
        for _ in 0..100 {
            now += dice.below(150);
            let copies = Ask::exactly(dice.hits(5));
            let counts: Vec<u32> = contracts
                .iter()
                .zip(&mut domains)
                .map(|(contract, domain)| domain.request(contract, &mut all, now, copies).hits_in_tier)
                .collect();
            let [log, sliding, fixed, bucket, shorter] = counts[..] else { unreachable!() };
            assert!(sliding <= log && fixed <= log && bucket <= log, "{counts:?} at {now}, seed {seed}");
            assert!(sliding >= shorter || slices == 1, "{counts:?} at {now}, seed {seed}");
            differed += u32::from(sliding < log);
        }
    }
    assert!(differed > 1000, "{differed}");
}
