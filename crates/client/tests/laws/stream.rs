//! A session on streams that break, stall and lose what is on its way, against grantors that only count.
//!
//! Two grantors of the same node: the leader, and the one before it, which does not know that it is deposed. Each counts as
//! a grantor must: what it sent until that ends, less what reports promise, longer by what renewals say. The two clocks
//! differ by the time that the holder's did not show.

use lessor_client::Rung;
use lessor_proto::Amount;
use lessor_proto::message::HolderKind;
use proptest::prelude::*;

use super::grantor::Mood;
use super::town::Town;
use super::{NAMES, name};

/// An event; numbers choose among what is there.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Pass(u64),
    Want(usize, u16),
    /// A node hands out so many hundredths of its lease, or takes back down to that.
    Use(usize, u64),
    Remove(usize),
    Add(usize),
    /// The way in which the grantors decide from here on.
    Mood(Mood),
    /// A grant is pushed.
    Push(usize, Mood),
    /// The last grants come again, as they should not.
    Repeat,
    /// The time that a message is on its way up and down, in milliseconds.
    Distance(u64, u64),
    /// The stream breaks; what is on its way up arrives or does not.
    Break(bool),
    Redirect(u8),
    /// The next report is refused.
    Refuse,
    /// The holder's clock stood still.
    Lose(u64),
    /// Claims are open, or not.
    Claims(bool),
}

fn mood() -> impl Strategy<Value = Mood> {
    let millis = prop_oneof![4 => 1_500u64..5_000, 1 => 1u64..1_500];
    (0u16..150, millis, any::<bool>(), any::<bool>()).prop_map(|(amount, millis, ack, full)| Mood {
        amount,
        millis,
        ack,
        full,
    })
}

pub(crate) fn event() -> impl Strategy<Value = Event> {
    let index = 0..NAMES.len();
    let distance = || prop_oneof![6 => 0u64..50, 2 => 50u64..400, 1 => 400u64..2_000];
    prop_oneof![
        8 => prop_oneof![2 => 0u64..30, 2 => 30u64..300, 2 => 300u64..2_000].prop_map(Event::Pass),
        2 => (index.clone(), 0u16..150).prop_map(|(index, wants)| Event::Want(index, wants)),
        3 => (index.clone(), 0u64..=100).prop_map(|(index, part)| Event::Use(index, part)),
        1 => index.clone().prop_map(Event::Remove),
        1 => index.clone().prop_map(Event::Add),
        1 => mood().prop_map(Event::Mood),
        5 => (index, mood()).prop_map(|(index, mood)| Event::Push(index, mood)),
        1 => Just(Event::Repeat),
        1 => (distance(), distance()).prop_map(|(up, down)| Event::Distance(up, down)),
        2 => any::<bool>().prop_map(Event::Break),
        1 => (0u8..3).prop_map(Event::Redirect),
        1 => Just(Event::Refuse),
        1 => (1u64..3_000).prop_map(Event::Lose),
        1 => any::<bool>().prop_map(Event::Claims),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec(event(), 1..80)
}

fn kind() -> impl Strategy<Value = HolderKind> {
    prop_oneof![Just(HolderKind::Client), Just(HolderKind::Node)]
}

/// Plays the events, and asserts the laws at each step.
fn play(town: &mut Town, events: &[Event]) {
    for event in events {
        town.happen(event);
    }
    // Nothing comes through any more: whatever was granted ends, and a pessimist uses nothing.
    town.happen(&Event::Distance(1_000_000, 1_000_000));
    town.happen(&Event::Pass(60_000));
    for index in 0..NAMES.len() {
        assert_eq!(town.session.allowance(town.now, &name(index)).capacity, Some(Amount::ZERO));
    }
}

proptest! {
    #[test]
    fn what_is_used_over_streams_is_counted_and_promised(kind in kind(), events in events()) {
        let mut town = Town::new(kind, |_| {});
        play(&mut town, &events);
        // Everything comes through again: all is leased, and kept with a heartbeat now and then.
        for event in [
            Event::Distance(20, 20),
            Event::Claims(true),
            Event::Mood(Mood { amount: 9, millis: 3_000, ack: false, full: false }),
            Event::Add(0),
            Event::Add(1),
            Event::Add(2),
            Event::Pass(30_000),
        ] {
            town.happen(&event);
        }
        town.refuse = false;
        town.happen(&Event::Pass(30_000));
        let sent = town.sent;
        town.happen(&Event::Pass(10_000));
        prop_assert!(town.sent - sent <= 21, "{} messages in 20 heartbeats", town.sent - sent);
        for index in 0..NAMES.len() {
            prop_assert_eq!(town.session.rung(town.now, &name(index)), Rung::Leased);
        }
        let remembered = format!("{:?}", town.session).matches("Sending {").count();
        prop_assert!(remembered < 8, "{remembered} reports are remembered");
    }
}

/// The laws are worth something if breaking any of the rules breaks one of them.
#[cfg(feature = "mutations")]
#[test]
fn each_rule_taken_out_is_noticed() {
    use lessor_client::internals::mutation::{HolderRule, HolderRules};
    use proptest::test_runner::{Config, TestRunner};

    for rule in [
        HolderRule::InOrder,
        HolderRule::FromReport,
        HolderRule::RenewAdopted,
        HolderRule::PromiseKept,
        HolderRule::Fence,
        HolderRule::OutIsHeld,
    ] {
        let config =
            Config { cases: 20_000, max_shrink_iters: 0, failure_persistence: None, ..Config::default() };
        let outcome = TestRunner::new(config).run(&(kind(), events()), |(kind, events)| {
            let mut town = Town::new(kind, |config| config.rules = HolderRules::without(rule));
            play(&mut town, &events);
            Ok(())
        });
        let noticed = outcome.expect_err("a law should be broken").to_string();
        let noticed = noticed.lines().next().unwrap_or_default().to_owned();
        println!("{rule:?}: {noticed}");
    }
}
