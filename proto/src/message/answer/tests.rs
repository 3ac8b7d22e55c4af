//! Tests of answers.

use super::*;
use crate::message::{BoundBy, Order, Sharing, UseWindow};
use crate::{Amount, ResourceId};

const NOON: WallClock = WallClock { since_epoch: Duration::from_millis(1_000_900) };

fn grant() -> Grant {
    Grant {
        resource: ResourceId::new("db", 256).unwrap(),
        capacity: Amount::from_f64(0.3),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(4), seq: 2 }),
        basis: None,
        token: vec![7],
        ack_wanted: true,
        safe_leased: true,
        burst: Some(Duration::from_micros(2_500)),
        learning: true,
        learning_left: Some(Duration::from_millis(51_200)),
        due: Some(Duration::from_micros(1_234_567)),
        window: Some(UseWindow { length: Duration::from_secs(60), limit: 100 }),
        safe_capacity: Some(-1.0),
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: Some(BoundBy::Level),
        unenforced: true,
        beside: true,
        generation: None,
    }
}

#[test]
fn a_grant_survives_the_wire() {
    let answer = Answer { grants: vec![grant()], epoch: Some(Epoch(4)), ..Answer::default() };
    assert_eq!(Answer::from_wire(answer.clone().into_client_wire(NOON), NOON), Ok(answer));
}

#[test]
fn a_grant_to_a_node_survives_the_wire() {
    let (kind, seconds) = (wire::algorithm::Kind::FairShare, Duration::from_secs);
    let sharing = Sharing { kind, lease_length: seconds(60), refresh_interval: seconds(5) };
    let grants = vec![Grant { sharing: Some(sharing), ..grant() }, grant()];
    let notice = Some(NodeNotice { path: vec!["root".to_owned()], name_taken: true });
    let retry = Some(Duration::from_millis(1_500));
    let answer = Answer { grants, retry, notice, ..Answer::default() };
    assert_eq!(Answer::from_node_wire(answer.clone().into_node_wire(NOON), NOON), Ok(answer.clone()));

    let mut bent = answer.into_node_wire(NOON);
    bent.response[0].algorithm.as_mut().unwrap().lease_length = -1;
    let said = Answer::from_node_wire(bent, NOON).unwrap_err().to_string();
    assert_eq!(said, "malformed answer: response[0].algorithm.lease_length: is -1");
}

#[test]
fn expiry_is_rounded_down_for_those_who_go_by_the_date() {
    let answer = Answer { grants: vec![grant()], ..Answer::default() };
    let lease = answer.into_client_wire(NOON).response.remove(0).gets;
    assert_eq!(lease.expiry_time, Some(1_060));
}

#[test]
fn a_plain_doorman_lease_lasts_until_its_date() {
    let lease = wire::Lease {
        expiry_time: Some(1_060),
        refresh_interval: Some(0),
        capacity: Some(10.0),
        ..wire::Lease::default()
    };
    let response =
        wire::ResourceResponse { resource_id: "db".into(), gets: lease, safe_capacity: None, domains: None };
    let answer =
        wire::GetCapacityResponse { response: vec![response], ..wire::GetCapacityResponse::default() };
    let grant = Answer::from_wire(answer, NOON).unwrap().grants.remove(0);
    assert_eq!((grant.length, grant.order), (Duration::from_millis(59_100), None));
    assert_eq!(grant.refresh_interval, Duration::from_secs(1));
}

#[test]
fn an_impossible_capacity_is_malformed() {
    let mut answer = Answer { grants: vec![grant()], ..Answer::default() }.into_client_wire(NOON);
    answer.response[0].gets.capacity = Some(f64::NAN);
    let said = Answer::from_wire(answer, NOON).unwrap_err().to_string();
    assert_eq!(said, "malformed answer: response[0].gets.capacity: is NaN");
}

#[test]
fn an_empty_address_is_nobody() {
    let nobody = Leader::from_wire(wire::Mastership { master_address: Some(String::new()) });
    assert_eq!(nobody, Leader::default());
}
