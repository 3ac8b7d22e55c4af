//! Tests of what a successor of the grantor is shown, and with which token.

use lessor_proto::{Epoch, ResourceId};

use super::*;

fn second(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).unwrap()
}

/// Adopts grant `seq` of the first epoch: its token is its number.
fn adopt(holding: &mut Holding, units: u64, seq: u8, end: u64) {
    take_up(holding, (0, units), seq, end).unwrap();
}

/// Takes up grant `seq` at the second `now`, as [`adopt`] does.
fn take_up(holding: &mut Holding, (now, units): (u64, u64), seq: u8, end: u64) -> Result<(), Fault> {
    let grant = Grant {
        resource: resource(),
        capacity: Amount::from_units(units),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq: seq.into() }),
        basis: None,
        token: vec![seq],
        ack_wanted: false,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: None,
        burst: None,
        due: None,
        window: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        unenforced: false,
        beside: false,
        generation: None,
    };
    holding.adopt(second(now), grant, second(end))
}

/// The lease that the leader of `epoch` is shown: its amount, its number, and its token.
fn shown(holding: &mut Holding, now: u64, epoch: Epoch) -> (u64, u64, u8) {
    let has = holding.report(second(now), &resource(), Some(epoch)).has.unwrap();
    (has.capacity.floor_units(), has.order.unwrap().seq, has.token[0])
}

fn recalled() -> Holding {
    let mut holding = Holding::new(HoldingConfig::new(Kind::Rate, 100.0, 0));
    adopt(&mut holding, 50, 1, 60);
    adopt(&mut holding, 20, 2, 70);
    holding
}

#[test]
fn the_one_who_granted_it_is_shown_the_lease() {
    assert_eq!(shown(&mut recalled(), 1, Epoch(1)), (20, 2, 2));
}

#[test]
fn a_successor_is_shown_what_was_counted_with_the_token_of_that() {
    assert_eq!(shown(&mut recalled(), 1, Epoch(2)), (50, 2, 1));
}

#[test]
fn what_was_counted_ends_and_its_token_with_it() {
    assert_eq!(shown(&mut recalled(), 60, Epoch(2)), (20, 2, 2));
}

#[test]
fn what_a_successor_was_promised_is_all_that_the_next_one_is_shown() {
    let mut holding = recalled();
    shown(&mut holding, 1, Epoch(2));
    // As much was counted for both; the token of the one that ends later stands behind it.
    assert_eq!(shown(&mut holding, 2, Epoch(3)), (20, 2, 2));
}

#[test]
fn units_of_a_gauge_that_were_recalled_are_shown_as_long_as_the_lease_is_renewed() {
    let mut holding = Holding::new(HoldingConfig::new(Kind::Gauge, 100.0, 0));
    adopt(&mut holding, 50, 1, 60);
    adopt(&mut holding, 20, 2, 70);
    assert_eq!(shown(&mut holding, 65, Epoch(2)), (50, 2, 1));
}

#[test]
fn units_that_were_recalled_are_shown_as_long_when_it_is_held_as_a_rate_by_then() {
    let mut holding = Holding::new(HoldingConfig::new(Kind::Gauge, 100.0, 0));
    adopt(&mut holding, 50, 1, 60);
    holding.reconfigure(HoldingConfig::new(Kind::Rate, 100.0, 0));
    adopt(&mut holding, 0, 2, 70);
    assert_eq!(shown(&mut holding, 65, Epoch(2)), (50, 2, 1));
}

#[test]
fn a_rate_that_was_recalled_is_shown_no_longer_when_it_is_held_as_a_gauge_by_then() {
    let mut holding = recalled();
    holding.reconfigure(HoldingConfig::new(Kind::Gauge, 100.0, 0));
    adopt(&mut holding, 0, 3, 80);
    assert_eq!(shown(&mut holding, 75, Epoch(2)), (0, 3, 3));
}

#[test]
fn a_grant_that_had_ended_when_it_came_is_shown_when_nothing_is_held() {
    let mut holding = recalled();
    assert_eq!(take_up(&mut holding, (71, 10), 3, 71), Err(Fault::Ended));
    assert_eq!(holding.held(second(71)), Amount::ZERO);
    assert_eq!(shown(&mut holding, 72, Epoch(1)), (0, 3, 3));
}

#[test]
fn the_first_grant_is_shown_too_when_it_had_ended() {
    let mut holding = Holding::new(HoldingConfig::new(Kind::Rate, 100.0, 0));
    assert_eq!(take_up(&mut holding, (71, 10), 3, 71), Err(Fault::Ended));
    assert_eq!(shown(&mut holding, 72, Epoch(1)), (0, 3, 3));
}

#[test]
fn a_lease_that_runs_is_shown_before_a_later_grant_that_had_ended() {
    let mut holding = recalled();
    assert_eq!(take_up(&mut holding, (69, 10), 3, 69), Err(Fault::Ended));
    assert_eq!(shown(&mut holding, 69, Epoch(1)), (20, 2, 2));
    assert_eq!(shown(&mut holding, 70, Epoch(1)), (0, 3, 3));
}

#[test]
fn a_grant_that_had_ended_is_said_also_by_who_wants_nothing() {
    let mut holding = Holding::new(HoldingConfig::new(Kind::Gauge, 0.0, 0));
    shown_nothing(&mut holding, 1);
    assert!(holding.is_over(second(1)));
    assert_eq!(take_up(&mut holding, (71, 0), 3, 71), Err(Fault::Ended));
    assert!(!holding.is_over(second(71)));
    assert_eq!(shown(&mut holding, 72, Epoch(1)), (0, 3, 3));
    assert!(holding.is_over(second(72)));
}

/// Reports at the second `now`, when nothing was granted yet.
fn shown_nothing(holding: &mut Holding, now: u64) {
    assert_eq!(holding.report(second(now), &resource(), Some(Epoch(1))).has, None);
}
