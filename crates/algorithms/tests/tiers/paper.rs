//! An automaton of Charon's, by what its paper and its post say, against windows that are reset. It knows nothing of how the
//! rules are kept here: a tier is in one of three states, which pass with time, and *a window is part of an active tier*, so it
//! begins empty and is gone with the active time. Every hit is kept with its time.

use std::time::Duration;

use lessor_algorithms::tiers::{
    Ask, Contract, Decision, Domain, Global, Status, Tier, TierPolicy, Window, Windows,
};

use crate::dice::{Dice, UNIT};

/// The number of requests under each contract.
const REQUESTS: u64 = 100;

/// One domain in Charon, with one automaton for each policy.
#[derive(Clone, Debug)]
struct Charon {
    automata: Vec<Automaton>,
    hard: Option<u32>,
    global: Option<u32>,
    /// When its hits were granted.
    hits: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Automaton {
    tiers: Vec<(Tier, State)>,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    Inactive,
    /// The times of the hits in its window.
    Active {
        ends: u64,
        window: Vec<u64>,
    },
    Cooling {
        ends: u64,
    },
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap()
}

fn of_a_second(hits: &[u64], now: u64) -> usize {
    hits.iter().filter(|&&hit| now - hit <= 1_000_000_000).count()
}

// === impl Automaton ===

impl Automaton {
    fn new(policy: &TierPolicy) -> Automaton {
        let tiers = policy.tiers().iter().cloned();
        Automaton { tiers: tiers.map(|tier| (tier, State::Inactive)).collect() }
    }

    /// Lets time come: states end, and hits leave their windows.
    fn advance(&mut self, now: u64) {
        for (tier, state) in &mut self.tiers {
            if let State::Active { ends, .. } = *state
                && ends <= now
            {
                *state = State::Cooling { ends: ends + nanos(tier.cooldown) };
            }
            if let State::Cooling { ends } = *state
                && ends <= now
            {
                *state = State::Inactive;
            }
            if let State::Active { window, .. } = state {
                window.retain(|hit| now - hit <= nanos(tier.window));
            }
        }
    }

    /// The place after that of the highest active tier: none but those before it can be active.
    fn above(&self) -> usize {
        let is_active = |(_, state): &(Tier, State)| matches!(state, State::Active { .. });
        self.tiers.iter().rposition(is_active).map_or(0, |place| place + 1)
    }

    /// Whether a hit is granted.
    fn hit(&mut self, now: u64) -> bool {
        let above = self.above();
        if let Some((tier, State::Active { window, .. })) = self.tiers[..above].last_mut()
            && window.len() < tier.limit as usize
        {
            window.push(now);
            return true;
        }
        for (tier, state) in &mut self.tiers[above..] {
            // It would be over as soon as it began.
            if tier.active.is_zero() {
                continue;
            }
            if *state == State::Inactive {
                *state = State::Active { ends: now + nanos(tier.active), window: vec![now] };
                return true;
            }
            if !tier.is_skippable {
                return false;
            }
        }
        false
    }
}

// === impl Charon ===

impl Charon {
    fn new(contract: &Contract) -> Charon {
        Charon {
            automata: contract.policies().iter().map(Automaton::new).collect(),
            hard: contract.hard_limit(),
            global: contract.global_limit(),
            hits: Vec::new(),
        }
    }

    fn advance(&mut self, now: u64) {
        self.automata.iter_mut().for_each(|automaton| automaton.advance(now));
        self.hits.retain(|hit| now - hit <= 1_000_000_000);
    }

    /// Whether a hit is granted by all policies and limits. `by_all` has the hits of all domains.
    fn hit(&mut self, by_all: &mut Vec<u64>, now: u64) -> bool {
        let fits = |limit: Option<u32>, hits: &[u64]| {
            limit.is_none_or(|most| of_a_second(hits, now) < most as usize)
        };
        let mut then = self.clone();
        // Each of them is asked, and none of them has counted it if one refuses.
        let is_granted = fits(self.hard, &self.hits)
            && fits(self.global, by_all)
            && then.automata.iter_mut().all(|automaton| automaton.hit(now));
        if is_granted {
            then.hits.push(now);
            by_all.push(now);
            *self = then;
        }
        is_granted
    }

    /// As many hits as are granted of those that are asked for, or none.
    fn request(&mut self, by_all: &mut Vec<u64>, now: u64, ask: Ask) -> u32 {
        let before = (self.clone(), by_all.clone());
        self.advance(now);
        let granted = (0..ask.copies()).take_while(|_| self.hit(by_all, now)).count() as u32;
        if granted < ask.min() {
            (*self, *by_all) = before;
            self.advance(now);
            return 0;
        }
        granted
    }

    /// Whether the tiers are in the states that they are told to be in, with so many hits.
    fn is_like(&self, domain: &Domain, contract: &Contract, now: u64) -> bool {
        let mut then = self.clone();
        then.advance(now);
        domain.tiers(contract, now).all(|told| {
            let automaton = &then.automata[told.policy];
            match &automaton.tiers[told.tier - 1].1 {
                State::Inactive => (told.status, told.hits) == (Status::Inactive, 0),
                State::Active { ends, window } => {
                    let is_current = automaton.above() == told.tier;
                    (told.status, told.hits as usize) == (Status::Active { until: *ends }, window.len())
                        && told.is_current == is_current
                }
                // What it says of hits then is of the time before.
                State::Cooling { ends } => told.status == Status::Cooling { until: *ends },
            }
        })
    }
}

fn with_windows(contract: &Contract, windows: Windows) -> Contract {
    let policies = contract.policies().iter().cloned();
    Contract::new(policies.map(|policy| policy.with_windows(windows)).collect()).unwrap()
}

/// The outcome of the requests under one contract.
#[derive(Default)]
struct Seen {
    granted: u64,
    refused: u64,
    entered_again: u64,
    /// Whether an answer was not the automaton's.
    differs: bool,
}

/// Asks both the same, two domains of one resource, and at the time that a refusal names again.
fn ask_both(contract: &Contract, dice: &mut Dice) -> Seen {
    let (mut charons, mut by_all) = ([Charon::new(contract), Charon::new(contract)], Vec::new());
    let (mut domains, mut all) = ([Domain::new(), Domain::new()], Global::exact());
    let (mut now, mut seen, mut entered) = (dice.below(10 * UNIT), Seen::default(), 0_u64);
    for _ in 0..REQUESTS {
        now += dice.wait();
        let which = usize::from(dice.is_one_of(4));
        let copies = if dice.is_one_of(3) { dice.hits(12) } else { 1 };
        let ask = Ask::between(1 + dice.below(u64::from(copies)) as u32, copies);
        let (charon, domain) = (&mut charons[which], &mut domains[which]);
        let before = charon.clone();
        let granted = charon.request(&mut by_all, now, ask);
        let real: Decision = domain.request(contract, &mut all, now, ask);
        seen.differs |= real.granted != granted || !charon.is_like(domain, contract, now);
        if seen.differs {
            return seen;
        }
        entered += u64::from(real.burst);
        if granted > 0 {
            seen.granted += 1;
        } else {
            seen.refused += 1;
            let at = |at: u64| before.clone().request(&mut by_all.clone(), at, ask) > 0;
            let end = real.retry_at.unwrap_or(now + 200 * UNIT);
            seen.differs |= real.retry_at.is_some_and(|retry| !at(retry));
            seen.differs |= [end - 1, now + dice.below(end - now)].into_iter().any(at);
        }
        // Rest makes no difference.
        if dice.is_one_of(20) {
            domain.rest(contract, now);
        }
        by_all.retain(|hit| now - hit <= 1_000_000_000);
    }
    let tiers: usize = contract.policies().iter().map(|policy| policy.tiers().len()).sum();
    seen.entered_again = entered.saturating_sub(2 * tiers as u64);
    seen
}

/// `TIERS_STEPS` requests, or as many as take a few seconds.
#[test]
fn windows_that_are_reset_are_those_of_the_paper() {
    let requests = std::env::var("TIERS_STEPS").map_or(300_000, |steps| steps.parse().unwrap());
    let contracts = requests / REQUESTS;
    let (mut total, mut kept_differ) = (Seen::default(), 0);
    for seed in 0..contracts {
        let contract = Dice(seed).contract(|_| Window::Exact);
        let contract = with_windows(&contract, Windows::Reset);
        let seen = ask_both(&contract, &mut Dice(!seed));
        assert!(!seen.differs, "seed {seed}: not as in the paper: {contract:#?}");
        total.granted += seen.granted;
        total.refused += seen.refused;
        total.entered_again += seen.entered_again;
        // The other way is another one, or this could not tell.
        let kept = with_windows(&contract, Windows::Keep);
        kept_differ += u64::from(ask_both(&kept, &mut Dice(!seed)).differs);
    }
    let Seen { granted, refused, entered_again, .. } = total;
    println!(
        "{granted} granted, {refused} refused, {entered_again} tiers entered again; kept, {kept_differ} of {contracts} differ"
    );
    assert!(granted.min(refused) > contracts * 20 && entered_again > contracts * 2);
    assert!(kept_differ > contracts / 4, "{kept_differ}");
}
