//! Holders that show what they do not have: those who are honest must never be above the capacity for that.

use std::time::Duration;

use lessor_proto::message::{Grant, HolderKind, Order, Up};
use lessor_proto::{Amount, Epoch, Incarnation, Time};
use lessor_server::mutation::Rules;
use lessor_server::node::{Claims, NodeConfig};
use lessor_server::record::Record;
use lessor_server::token::{Bearer, Content, Key, TokenKeys};

use super::holders::{resource, template, wants};
use super::listeners::Hall;

const CAPACITY: u64 = 100;
/// The amount that the honest one has from the first leader, and the amount that the liar was granted by it.
const HONEST: u64 = 60;
const LIAR: u64 = 20;

/// The claim and the token that the liar shows.
#[derive(Clone, Copy, Debug)]
struct Lie {
    claims: u64,
    /// The amount that its token states; 0: there is no token.
    token: u64,
}

/// A lease from the first leader, with a token that says so, or another amount.
fn lease(name: &str, incarnation: u64, amount: u64, token: u64) -> (Grant, Time) {
    let id = resource();
    let bearer = Bearer {
        node: "root",
        kind: HolderKind::Client,
        holder: name,
        incarnation: Incarnation(incarnation),
        resource: &id,
    };
    let order = Order { epoch: Epoch(1), seq: 1 };
    let content = Content { order, amount: Amount::from_units(token) };
    let token = if token > 0 { keys().token(&bearer, content) } else { Vec::new() };
    let grant = Grant {
        resource: resource(),
        capacity: Amount::from_units(amount),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(order),
        basis: None,
        token,
        ack_wanted: false,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: None,
        burst: None,
        due: None,
        window: None,
        generation: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        unenforced: false,
        beside: false,
    };
    (grant, Time::ZERO + Duration::from_secs(60))
}

fn keys() -> TokenKeys {
    TokenKeys::new(Key::new([1; 32]))
}

/// The liar claims, and leaves; then somebody comes who wants everything. What this one and the honest
/// one, who has not been heard of, may use.
fn honest_use(lie: Lie, claims: Claims, rules: Rules) -> u128 {
    let mut config = NodeConfig::new("root", Epoch(2));
    config.record = Some(Record {
        marks: [(resource(), Amount::from_units(HONEST + LIAR))].into(),
        longest_lease: Duration::from_secs(60),
        ..Record::default()
    });
    (config.keys, config.claims, config.rules) = (Some(keys()), claims, rules);
    let mut hall = Hall::new(template(CAPACITY as f64), config);
    hall.hello("liar", HolderKind::Client, Some(1));
    hall.listeners.get_mut("liar").expect("a listener").lease = Some(lease("liar", 1, lie.claims, lie.token));
    hall.report("liar", Some(wants(0.0).bands), None, false);
    hall.hear();
    hall.say("liar", Up::Bye);
    hall.hear();
    hall.listeners.remove("liar");
    hall.hello("new", HolderKind::Client, Some(2));
    hall.report("new", Some(wants(1_000.0).bands), None, false);
    hall.until(Time::ZERO + Duration::from_secs(2));
    hall.believed() + u128::from(HONEST) * 1_000_000
}

const WHOLE: u128 = CAPACITY as u128 * 1_000_000;
const NOTHING_TO_SHOW: Lie = Lie { claims: 80, token: 0 };
const TOO_MUCH: Lie = Lie { claims: 80, token: LIAR };
const TRUE: Lie = Lie { claims: LIAR, token: LIAR };

#[test]
fn a_liar_cannot_take_what_others_have_not_claimed() {
    for lie in [NOTHING_TO_SHOW, TOO_MUCH, TRUE] {
        for claims in [Claims::Freed, Claims::Deferred] {
            assert!(honest_use(lie, claims, Rules::default()) <= WHOLE, "{lie:?} {claims:?}");
        }
    }
}

#[test]
fn what_was_given_up_is_there_for_others_unless_that_is_deferred() {
    assert_eq!(honest_use(TRUE, Claims::Freed, Rules::default()), WHOLE);
    assert_eq!(honest_use(TRUE, Claims::Deferred, Rules::default()), WHOLE - u128::from(LIAR) * 1_000_000);
}

#[cfg(feature = "mutations")]
#[test]
fn no_rule_about_tokens_can_be_left_out() {
    use lessor_server::mutation::Rule;

    let without = |mutation, lie, claims| honest_use(lie, claims, Rules::without(mutation));
    assert!(without(Rule::TokenCheck, NOTHING_TO_SHOW, Claims::Freed) > WHOLE);
    assert!(without(Rule::TokenAmount, TOO_MUCH, Claims::Freed) > WHOLE);
    // Where what is given up goes back to the ghost no lie can hurt the honest.
    assert!(without(Rule::TokenCheck, NOTHING_TO_SHOW, Claims::Deferred) <= WHOLE);
    assert!(without(Rule::TokenAmount, TOO_MUCH, Claims::Deferred) <= WHOLE);
}
