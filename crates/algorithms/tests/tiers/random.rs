//! Random histories: what the real thing answers is what the model does.

use lessor_algorithms::tiers::{
    Ask, Bound, Contract, Decision, Domain, Global, Status, TierPolicy, Window, Windows,
};

use crate::dice::{Dice, UNIT};
use crate::model::{Answer, Model, of_second};

/// The number of steps under each contract.
const STEPS_PER_CONTRACT: u64 = 200;

/// Two domains of one resource, twice.
struct Pair {
    contract: Contract,
    domains: [Domain; 2],
    all: Global,
    models: [Model; 2],
    by_all: Vec<u64>,
    now: u64,
    has_bucket: bool,
    /// The seed that both are made from.
    seed: u64,
}

/// `TIERS_STEPS` random steps, or as many as take a few seconds.
#[test]
fn answers_are_those_of_the_model() {
    check(|dice| dice.contract(Dice::kind));
}

/// The same where some policies forget what was before a tier was entered again.
#[test]
fn answers_are_those_of_the_model_where_windows_are_reset() {
    check(|dice| {
        let contract = dice.contract(Dice::kind);
        dice.either_windows(&contract)
    });
}

/// The two ways are two: asked the same, most policies of several active times answer differently.
#[test]
fn windows_that_are_kept_are_stricter_than_those_that_are_reset() {
    let (mut different, mut kept_more) = (0, 0);
    for seed in 0..320 {
        let mut dice = Dice(seed);
        let kept = dice.policy(|_| Window::Exact);
        let reset = kept.clone().with_windows(Windows::Reset);
        let ways = [kept, reset].map(Contract::from);
        let (mut domains, mut granted, mut now) = ([Domain::new(), Domain::new()], [0; 2], 0);
        let mut is_different = false;
        for _ in 0..STEPS_PER_CONTRACT {
            now += dice.wait();
            let ask = Ask::up_to(dice.hits(4));
            let mut answer = |way: usize| {
                let decision = domains[way].request(&ways[way], &mut Global::exact(), now, ask);
                granted[way] += decision.granted;
                decision.granted
            };
            is_different |= answer(0) != answer(1);
        }
        different += u32::from(is_different);
        kept_more += u32::from(granted[0] > granted[1]);
    }
    println!(
        "{different} of 320 policies differ, of which {kept_more} grant more with windows that are kept"
    );
    assert!((100..300).contains(&different) && kept_more * 4 < different, "{different} {kept_more}");
}

fn check(draw: impl Fn(&mut Dice) -> Contract) {
    let steps = std::env::var("TIERS_STEPS").map_or(100_000, |steps| steps.parse().unwrap());
    let mut kinds = Kinds::default();
    for seed in 0..steps / STEPS_PER_CONTRACT {
        let mut dice = Dice(seed);
        let mut pair = Pair::new(&mut dice, seed, &draw);
        for _ in 0..STEPS_PER_CONTRACT {
            pair.step(&mut dice, &mut kinds);
        }
    }
    kinds.check(steps);
}

// === impl Pair ===

impl Pair {
    fn new(dice: &mut Dice, seed: u64, draw: impl Fn(&mut Dice) -> Contract) -> Pair {
        let contract = draw(dice);
        let mut tiers = contract.policies().iter().flat_map(TierPolicy::tiers);
        Pair {
            domains: [Domain::new(), Domain::new()],
            all: Global::exact(),
            models: [Model::new(&contract), Model::new(&contract)],
            by_all: Vec::new(),
            now: dice.below(10 * UNIT),
            has_bucket: tiers.any(|tier| tier.kind == Window::Bucket),
            seed,
            contract,
        }
    }

    fn step(&mut self, dice: &mut Dice, kinds: &mut Kinds) {
        self.now += dice.wait();
        let which = usize::from(dice.is_one_of(4));
        match dice.below(40) {
            0 => self.settle(which, dice.below(7) as i64),
            1 if !self.has_bucket => self.settle(which, -(dice.below(7) as i64)),
            2 | 3 => self.rest(which),
            4 => self.check_tiers(which),
            _ => self.request(which, dice, kinds),
        }
        // Nothing is remembered, not even the time.
        if self.domains[which].is_new() {
            self.models[which].last = 0;
        }
    }

    fn request(&mut self, which: usize, dice: &mut Dice, kinds: &mut Kinds) {
        let copies = if dice.is_one_of(3) { dice.hits(20) - 1 } else { 1 };
        let ask = Ask::between(copies - dice.below(u64::from(copies) + 1) as u32, copies);
        // Sometimes with a time that has passed. The hits of all domains are then those of another time than the domain's.
        let now = if dice.is_one_of(10) { self.now.saturating_sub(dice.below(3 * UNIT)) } else { self.now };
        let now = if self.contract.global_limit().is_some() { self.now } else { now };
        let model = self.models[which].request(&mut self.by_all, now, ask);
        let peeked = self.domains[which].peek(&self.contract, &self.all, now, ask);
        let real = self.domains[which].request(&self.contract, &mut self.all, now, ask);
        assert_eq!(peeked, real);
        let seed = self.seed;
        assert_eq!(Answer::from(&real), model, "seed {seed}, at {now}, {ask:?}, {:#?}", self.contract);
        let (now, last) = (now.max(self.models[which].last), self.models[which].last);
        self.check_seconds(&real, which, now);
        self.check_retry(&real, which, last, ask, dice);
        kinds.count(&real, ask);
    }

    fn check_seconds(&mut self, real: &Decision, which: usize, now: u64) {
        let of_domain = of_second(&self.models[which].hits, now);
        match self.contract.hard_limit() {
            Some(limit) => assert!(real.hits_in_second == of_domain && of_domain <= limit),
            None => assert!(real.hits_in_second <= of_domain),
        }
        if self.contract.global_limit().is_some() {
            self.by_all.retain(|&at| now <= at + 1_000_000_000);
            assert_eq!(real.hits_in_second_by_all, self.by_all.len() as u32);
        }
        self.models[which].pass(now);
    }

    /// At the time that is told the same request is granted, and at none before that.
    fn check_retry(&self, real: &Decision, which: usize, now: u64, ask: Ask, dice: &mut Dice) {
        if real.granted > 0 || ask.copies() == 0 {
            assert_eq!(real.retry_at, None);
            return;
        }
        let ask = if real.debt > 0 { ask } else { Ask::between(ask.min().max(1), ask.copies()) };
        let is_granted = |at: u64| self.domains[which].plan(&self.contract, &self.all, at, ask).hits() > 0;
        let seed = self.seed;
        let context = || format!("seed {seed}, at {now}, {ask:?}, {real:?}, {:#?}", self.contract);
        if let Some(at) = real.retry_at {
            assert!(at > now && is_granted(at), "{}", context());
        }
        let end = real.retry_at.unwrap_or(now + 200 * UNIT);
        if !self.has_bucket || real.retry_at.is_none() {
            let probes = [end - 1, now + dice.below(end - now), now + dice.below((end - now).min(2 * UNIT))];
            assert!(!probes.into_iter().any(is_granted), "{}", context());
        }
    }

    fn settle(&mut self, which: usize, delta: i64) {
        self.domains[which].settle(&self.contract, self.now, delta);
        self.models[which].settle(self.now, delta);
    }

    /// Makes no difference, but that a domain of which nothing is known does not know the time either.
    fn rest(&mut self, which: usize) {
        let (domain, model) = (&mut self.domains[which], &mut self.models[which]);
        let is_idle = domain.is_idle(&self.contract, self.now);
        // A second that limits nothing is forgotten a little too early.
        let is_exact = self.contract.hard_limit().is_some();
        assert!(is_idle == model.is_idle(self.now) || is_idle && !is_exact);
        domain.rest(&self.contract, self.now);
        model.pass(self.now);
        if is_idle {
            assert!(domain.is_new() && domain.heap_bytes() == 0);
            *model = Model::new(&self.contract);
        }
    }

    fn check_tiers(&self, which: usize) {
        let model = &self.models[which];
        let now = self.now.max(model.last);
        for state in self.domains[which].tiers(&self.contract, now) {
            let history = &model.histories[state.policy];
            assert_eq!(state.hits, history.used(state.tier, now));
            assert_eq!(state.remaining, state.limit - state.hits);
            assert_eq!(state.is_current, history.current(now) == state.tier);
            if state.is_current {
                assert!(matches!(state.status, Status::Active { until } if until > now));
            }
        }
        assert_eq!(self.domains[which].debt(), model.debt);
    }
}

// === impl Answer ===

impl From<&Decision> for Answer {
    fn from(real: &Decision) -> Answer {
        Answer {
            granted: real.granted,
            policy: real.policy,
            tier: real.tier,
            tier_limit: real.tier_limit,
            hits_in_tier: real.hits_in_tier,
            burst: real.burst,
            bound: real.bound,
            debt: real.debt,
        }
    }
}

/// The number of answers of each kind, lest the random histories be all alike.
#[derive(Default, Debug)]
struct Kinds {
    granted: u64,
    partly: u64,
    refused: u64,
    never: u64,
    burst: u64,
    high: u64,
    bounds: [u64; 4],
}

// === impl Kinds ===

impl Kinds {
    fn count(&mut self, real: &Decision, ask: Ask) {
        self.granted += u64::from(real.granted == ask.copies());
        self.partly += u64::from(real.granted > 0 && real.granted < ask.copies());
        self.refused += u64::from(real.granted == 0 && real.retry_at.is_some());
        self.never += u64::from(real.granted == 0 && real.retry_at.is_none() && ask.copies() > 0);
        self.burst += u64::from(real.burst);
        self.high += u64::from(real.tier > 2);
        let bounds = [Bound::Debt, Bound::Tiers, Bound::Hard, Bound::Global];
        for (count, bound) in self.bounds.iter_mut().zip(bounds) {
            *count += u64::from(real.bound == Some(bound));
        }
    }

    fn check(&self, steps: u64) {
        let Kinds { granted, partly, refused, never, burst, high, bounds } = *self;
        let least = [granted, partly, refused, never, burst, high].into_iter().chain(bounds).min();
        assert!(least > Some(steps / 1000), "{self:?}");
        println!("{self:?}");
    }
}
