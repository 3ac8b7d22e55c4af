//! Calls against leases that are too simple to be wrong: what they take, and what they leave.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Mutex;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;
use crate::rules::matcher::Tree;
use crate::rules::{Fail, LimitKind, Matcher, SetManner, TimeUnit, Window};

/// Books of what is used of each key; a limit with an odd index may have no lease.
#[derive(Default)]
struct Books {
    used: Mutex<BTreeMap<(usize, String), u32>>,
    is_unleased: bool,
}

impl Books {
    fn is_leased(&self, limit: &Limit) -> bool {
        !self.is_unleased || limit.index.is_multiple_of(2)
    }

    fn used(&self) -> Vec<u32> {
        self.used.lock().unwrap().values().copied().collect()
    }
}

fn key(ask: &Ask<'_>) -> (usize, String) {
    (ask.limit.index, ask.key.to_owned())
}

impl Leases for Books {
    async fn take(&self, asks: &[Ask<'_>], _: Duration) -> Result<(), SmallVec<[Verdict; 4]>> {
        let mut used = self.used.lock().unwrap();
        let verdict = |ask: &Ask<'_>| match used.get(&key(ask)).copied().unwrap_or(0) {
            _ if !self.is_leased(ask.limit) => Verdict::NoLease { retry_after: None },
            before if before + ask.hits <= ask.limit.units => Verdict::Within,
            _ => Verdict::Over { retry_after: Some(Duration::from_secs(1)) },
        };
        let verdicts: SmallVec<[Verdict; 4]> = asks.iter().map(verdict).collect();
        if verdicts.iter().any(|verdict| *verdict != Verdict::Within) {
            return Err(verdicts);
        }
        for ask in asks {
            *used.entry(key(ask)).or_default() += ask.hits;
        }
        Ok(())
    }

    fn take_at_hand(&self, ask: &Ask<'_>) -> Option<Standing> {
        let mut used = self.used.lock().unwrap();
        let before = used.get(&key(ask)).copied().unwrap_or(0);
        if !self.is_leased(ask.limit) || before + ask.hits > ask.limit.units {
            return None;
        }
        used.insert(key(ask), before + ask.hits);
        drop(used);
        Some(self.standing(ask.limit, ask.key))
    }

    fn give_back(&self, ask: &Ask<'_>) {
        let mut used = self.used.lock().unwrap();
        let used = used.entry(key(ask)).or_default();
        *used = used.saturating_sub(ask.hits);
    }

    fn charge(&self, ask: &Ask<'_>) {
        *self.used.lock().unwrap().entry(key(ask)).or_default() += ask.hits;
    }

    fn standing(&self, limit: &Limit, key: &str) -> Standing {
        let used = self.used.lock().unwrap().get(&(limit.index, key.to_owned())).copied().unwrap_or(0);
        Standing { remaining: limit.units.saturating_sub(used), reset: Duration::from_secs(1) }
    }
}

fn decide(call: &Call<'_>, books: &Books) -> CallAnswer {
    let mut decision = pin!(call.decide(books, Duration::ZERO));
    match decision.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("books never wait"),
    }
}

fn set(fail: Fail) -> RuleSet {
    let manner = SetManner { fail, ..SetManner::default() };
    RuleSet {
        name: "s".into(),
        manner,
        rules: vec![],
        matcher: Matcher::Tree(Tree::new()),
        overrides: vec![],
        index: 0,
    }
}

/// Rules of these limits, each with an index of its own.
fn rules(units: &[u32]) -> Vec<Rule> {
    let rule = |(index, &units)| {
        let mut rule = Rule::new("r", "r");
        rule.limit(units, Window::of(TimeUnit::Minute), LimitKind::Exact);
        rule.limits[0].index = index;
        rule
    };
    units.iter().enumerate().map(rule).collect()
}

fn claim<'r>(rule: &'r Rule, key: &str, hits: u64, mode: Mode) -> Claim<'r> {
    Claim { rule: Some(rule), limit: &rule.limits[0], key: key.into(), hits, mode, descriptor: 0 }
}

#[test]
fn a_refused_call_takes_nothing_of_anything() {
    let (books, set, rules) = (Books::default(), set(Fail::Error), rules(&[5, 1, 9, 9]));
    let claims = vec![
        claim(&rules[0], "a", 2, Mode::Firm),
        claim(&rules[1], "a", 1, Mode::Firm),
        claim(&rules[2], "a", 3, Mode::Quota),
        claim(&rules[3], "a", 4, Mode::Shadow),
    ];
    let call = Call { set: &set, claims };
    assert_eq!(decide(&call, &books).overall, Overall::Granted);
    assert_eq!(books.used(), [2, 1, 3, 4]);
    let answer = decide(&call, &books);
    assert_eq!(answer.overall, Overall::Refused);
    let verdicts: Vec<bool> = answer.claims.iter().map(|claim| claim.verdict.is_over()).collect();
    assert_eq!((books.used(), verdicts), (vec![2, 1, 3, 4], vec![false, true, false, false]));
}

#[test]
fn what_is_answered_at_once_is_what_would_be_decided() {
    let (set, rules) = (set(Fail::Error), rules(&[3]));
    let modes = [Mode::Firm, Mode::Quota, Mode::Shadow, Mode::Look, Mode::GiveBack, Mode::After];
    let mut at_once = 0;
    for (mode, hits, is_unleased) in modes
        .into_iter()
        .flat_map(|mode| (0..5).flat_map(move |hits| [(mode, hits, false), (mode, hits, true)]))
    {
        let call = Call { set: &set, claims: vec![claim(&rules[0], "a", hits, mode)] };
        let books = [(); 2].map(|()| Books { is_unleased, ..Books::default() });
        for _ in 0..3 {
            let Some(answer) = call.at_once(&books[0]) else { break };
            assert_eq!(answer, decide(&call, &books[1]), "{hits} {mode:?}");
            assert_eq!(books[0].used(), books[1].used(), "{hits} {mode:?}");
            at_once += 1;
        }
    }
    // 0 and 1 hits three times, and 2 and 3 once, in three modes, with a lease and without, which the first limit has always.
    assert_eq!(at_once, (3 + 3 + 1 + 1) * 3 * 2);
    let two = vec![claim(&rules[0], "a", 1, Mode::Firm), claim(&rules[0], "b", 1, Mode::Firm)];
    assert_eq!(Call { set: &set, claims: two }.at_once(&Books::default()), None);
}

#[test]
fn claims_on_one_key_are_added_up() {
    let (books, set, rules) = (Books::default(), set(Fail::Error), rules(&[5]));
    let call = |hits: [u64; 2]| Call {
        set: &set,
        claims: hits.iter().map(|&hits| claim(&rules[0], "a", hits, Mode::Firm)).collect(),
    };
    assert_eq!(decide(&call([3, 3]), &books).overall, Overall::Refused);
    assert_eq!(decide(&call([3, 2]), &books).overall, Overall::Granted);
    assert_eq!(books.used(), [5]);
}

#[test]
fn hits_that_a_hostile_client_chose_are_over_the_limit_and_take_nothing() {
    let (books, set, rules) = (Books::default(), set(Fail::Open), rules(&[5, 0]));
    for hits in [6, u64::from(u32::MAX), u64::from(u32::MAX) + 2, 1 << 63, u64::MAX] {
        for mode in [Mode::Firm, Mode::After, Mode::Shadow, Mode::Quota] {
            let call = Call { set: &set, claims: vec![claim(&rules[0], "a", hits, mode)] };
            let answer = decide(&call, &books);
            assert!(answer.claims[0].verdict.is_over(), "{hits} {mode:?}");
            assert_eq!(answer.overall == Overall::Refused, matches!(mode, Mode::Firm | Mode::Quota));
        }
    }
    let nothing = Call { set: &set, claims: vec![claim(&rules[1], "a", 1, Mode::Firm)] };
    assert_eq!(decide(&nothing, &books).overall, Overall::Refused);
    assert!(books.used().is_empty());
}

#[test]
fn without_a_lease_a_call_is_answered_as_its_rules_say() {
    let rules = rules(&[5, 5]);
    let overall = |fail, first_is_full: bool| {
        let (books, set) = (Books { is_unleased: true, ..Books::default() }, set(fail));
        let claims = vec![claim(&rules[0], "a", 3, Mode::Firm), claim(&rules[1], "a", 1, Mode::Firm)];
        let call = Call { set: &set, claims };
        if first_is_full {
            books.charge(&call.claims[0].ask());
        }
        (decide(&call, &books).overall, books.used())
    };
    assert_eq!(overall(Fail::Error, false), (Overall::NoLease, vec![]));
    assert_eq!(overall(Fail::Closed, false), (Overall::Refused, vec![]));
    assert_eq!(overall(Fail::Open, false), (Overall::Granted, vec![3]), "the rest is charged");
    assert_eq!(overall(Fail::Open, true), (Overall::Refused, vec![3]));
    assert_eq!(
        overall(Fail::Error, true),
        (Overall::Refused, vec![3]),
        "a limit refuses it, whatever else is unknown"
    );
}

#[test]
fn quotas_refuse_where_all_of_them_do_and_looks_where_nothing_is_left() {
    let (books, set, rules) = (Books::default(), set(Fail::Error), rules(&[1, 2, 9]));
    let quotas = || Call {
        set: &set,
        claims: vec![
            claim(&rules[0], "a", 1, Mode::Quota),
            claim(&rules[1], "a", 1, Mode::Quota),
            claim(&rules[2], "a", 1, Mode::Firm),
        ],
    };
    assert_eq!(decide(&quotas(), &books).overall, Overall::Granted);
    assert_eq!(decide(&quotas(), &books).overall, Overall::Granted);
    assert_eq!(decide(&quotas(), &books).overall, Overall::Refused);
    assert_eq!(books.used(), [1, 2, 2]);
    let look = |rule: usize| Call { set: &set, claims: vec![claim(&rules[rule], "a", 0, Mode::Look)] };
    assert_eq!(decide(&look(0), &books).overall, Overall::Refused);
    assert_eq!(decide(&look(2), &books).overall, Overall::Granted);
    let back = Call { set: &set, claims: vec![claim(&rules[0], "a", 7, Mode::GiveBack)] };
    assert_eq!(decide(&back, &books).overall, Overall::Granted);
    assert_eq!(books.used(), [0, 2, 2]);
}

fn mode() -> impl Strategy<Value = Mode> {
    prop_oneof![3 => Just(Mode::Firm), 1 => Just(Mode::Quota), 1 => Just(Mode::Shadow), 1 => Just(Mode::Look)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn calls_of_any_kind_take_all_or_nothing_and_never_more_than_there_is(
        calls in prop::collection::vec(prop::collection::vec((0_usize..4, 0_u64..5, mode()), 1..5), 1..12),
        fail in prop_oneof![Just(Fail::Error), Just(Fail::Open), Just(Fail::Closed)],
        is_unleased in any::<bool>(),
    ) {
        let (books, set) = (Books { is_unleased, ..Books::default() }, set(fail));
        let rules = rules(&[3, 4, 6, 8]);
        for parts in calls {
            let claims: Vec<Claim<'_>> = parts
                .iter()
                .map(|&(rule, hits, mode)| claim(&rules[rule], "a", hits, if hits == 0 { Mode::Look } else { mode }))
                .collect();
            let before: u32 = books.used().iter().sum();
            let call = Call { set: &set, claims };
            let answer = decide(&call, &books);
            let after: u32 = books.used().iter().sum();
            match answer.overall {
                Overall::Refused | Overall::NoLease => prop_assert_eq!(after, before),
                Overall::Granted => {
                    let firm = call.claims.iter().filter(|claim| claim.mode == Mode::Firm && books.is_leased(claim.limit));
                    let firm: u64 = firm.map(|claim| claim.hits).sum();
                    prop_assert!(u64::from(after - before) >= firm, "{} {}", after - before, firm);
                }
            }
            for ((limit, _), used) in &*books.used.lock().unwrap() {
                prop_assert!(*used <= rules[*limit].limits[0].units);
            }
        }
    }
}
