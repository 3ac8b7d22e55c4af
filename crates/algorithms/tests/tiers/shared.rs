//! Several clients of one domain: who is told of everything at once answers as one who did all of it.

use lessor_algorithms::tiers::{
    Ask, Contract, Decision, Domain, Global, MergeEntry, TierPolicy, TierState, Window, Windows,
};

use crate::dice::Dice;

const CLIENTS: usize = 3;

fn any_but_buckets(dice: &mut Dice) -> Window {
    match dice.kind() {
        Window::Bucket => Window::Exact,
        kind => kind,
    }
}

/// Asks, and says what was done.
fn ask(domain: &mut Domain, contract: &Contract, now: u64, ask: Ask) -> (Decision, Vec<MergeEntry>) {
    let plan = domain.plan(contract, &Global::default(), now, ask);
    let entries = domain.entries(contract, &plan);
    domain.commit(contract, &plan);
    (*plan.decision(), entries)
}

#[test]
fn clients_who_know_of_each_other_at_once_decide_as_one() {
    let mut grants = 0;
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let contract = dice.contract(Dice::kind);
        let contract = if seed % 2 == 0 { contract } else { dice.either_windows(&contract) };
        let (mut center, mut clients) = (Domain::new(), vec![Domain::new(); CLIENTS]);
        let mut now = 0;
        for _ in 0..100 {
            now += dice.wait();
            let asked = Ask::up_to(dice.hits(5));
            let by = dice.below(CLIENTS as u64) as usize;
            let (expected, _) = ask(&mut center, &contract, now, asked);
            let (decision, entries) = ask(&mut clients[by], &contract, now, asked);
            assert_eq!(decision, expected, "seed {seed}, {contract:#?}");
            for (_, other) in clients.iter_mut().enumerate().filter(|&(other, _)| other != by) {
                entries.iter().for_each(|entry| other.merge(&contract, entry));
            }
            grants += u64::from(decision.granted);
        }
    }
    assert!(grants > 10_000, "{grants}");
}

/// Told in any order, what counts is what counts where it was done. Slices begin where a tier was entered, so only the
/// exact log does not mind that this is told late. Whoever forgets what was before an entry has to know of the entry first.
#[test]
fn entries_that_are_told_in_any_order_count_the_same() {
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let contract = dice.contract(|_| Window::Exact);
        let contract = if seed % 2 == 0 { contract } else { dice.either_windows(&contract) };
        let (mut center, mut other) = (Domain::new(), Domain::new());
        let (mut now, mut told) = (0, Vec::new());
        for _ in 0..30 {
            now += dice.wait();
            told.extend(ask(&mut center, &contract, now, Ask::up_to(dice.hits(5))).1);
        }
        let reset = |entry: &MergeEntry| contract.policies()[entry.policy].windows() == Windows::Reset;
        for entry in told.iter().filter(|entry| entry.is_entered && reset(entry)) {
            other.merge(&contract, &MergeEntry { hits: 0, ..*entry });
        }
        while !told.is_empty() {
            let entry = told.swap_remove(dice.below(told.len() as u64) as usize);
            other.merge(&contract, &MergeEntry { is_entered: entry.is_entered && !reset(&entry), ..entry });
        }
        let known = |domain: &Domain| {
            let tiers: Vec<TierState> = domain.tiers(&contract, now).collect();
            (tiers, contract.hard_limit().map(|_| domain.hits_in_second(&contract, now)))
        };
        assert_eq!(known(&other), known(&center), "seed {seed}, {contract:#?}");
    }
}

/// However many hits are told, and in whatever order: no more times are remembered than limits allow, or slices.
#[test]
fn what_is_told_takes_no_more_memory_than_the_limits_allow() {
    for seed in 0..20 {
        let mut dice = Dice(seed);
        let contract = dice.contract(any_but_buckets);
        let mut domain = Domain::new();
        for _ in 0..3_000 {
            let policy = dice.below(contract.policies().len() as u64) as usize;
            let tier = dice.below(contract.policies()[policy].tiers().len() as u64 + 1) as usize;
            let (at, is_entered) = (dice.below(3_000_000_000), dice.is_one_of(3));
            domain.merge(&contract, &MergeEntry { policy, tier, at, hits: dice.hits(3), is_entered });
        }
        let tiers = contract.policies().iter().flat_map(TierPolicy::tiers);
        let (queues, runs) = tiers.fold((1, 0), |(queues, runs), tier| (queues + 1, runs + tier.limit));
        let second = contract.hard_limit().unwrap_or(17);
        let cells = (domain.heap_bytes() / 16) as u32;
        // A vector doubles.
        assert!(cells <= 2 * (queues + runs + second), "{cells} for {queues}, {runs} and {second}");
    }
}

/// A domain that was told of nothing and then of everything at once knows what each tier does.
#[test]
fn what_is_exported_is_what_counts() {
    let mut hits = 0;
    for seed in 0..500 {
        let mut dice = Dice(seed);
        let contract = dice.contract(Dice::kind);
        let mut center = Domain::new();
        let mut now = 0;
        for _ in 0..50 {
            now += dice.wait();
            hits += ask(&mut center, &contract, now, Ask::up_to(dice.hits(5))).0.granted;
        }
        let mut other = Domain::new();
        center.export(&contract, now).iter().for_each(|entry| other.merge(&contract, entry));
        let known = |domain: &Domain| domain.tiers(&contract, now).collect::<Vec<TierState>>();
        assert_eq!(known(&other), known(&center), "seed {seed}, {contract:#?}");
        let again: Vec<MergeEntry> = other.export(&contract, now);
        assert_eq!(again, center.export(&contract, now), "seed {seed}");
    }
    assert!(hits > 10_000, "{hits}");
}
