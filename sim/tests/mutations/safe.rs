//! Safe capacity, which a client goes on with that is cut off.

use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Kind};
use lessor_proto::message::{Answer, Grant, Order};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_sim::mutation::Mutation;

use super::hall::units;

/// Of a lease of 20 for ten seconds, with 100 advised, nobody answers any more.
pub(crate) fn above_the_last_lease(without: Option<Mutation>) -> Option<String> {
    let used = used_when_it_is_over(without, 100.0, None);
    assert!(used > Amount::ZERO, "it goes on with something");
    (used > units(20)).then(|| format!("{used} of 20 are used"))
}

/// Of a lease of 20 for ten seconds, with 5 to go on with, nobody answers until it is over, and then a server that has nothing to
/// grant before it has learnt what is out.
pub(crate) fn under_a_server_that_learns(without: Option<Mutation>) -> Option<String> {
    let used = used_when_it_is_over(without, 5.0, Some(true));
    assert_eq!(
        used_when_it_is_over(without, 5.0, Some(false)),
        Amount::ZERO,
        "who knows what is out has the last word"
    );
    (used != units(5)).then(|| format!("{used} are left of 5"))
}

/// The amount that is used when a lease of 20 is over, with so much safe, and somebody who learns or does not has granted nothing since.
fn used_when_it_is_over(without: Option<Mutation>, safe: f64, learning: Option<bool>) -> Amount {
    let holder = ClientId::new("c", 256).expect("a name");
    let resource = ResourceId::new("db", 256).expect("a name");
    let rules = without.map(Mutation::client).unwrap_or_default();
    let config = SessionConfig { rules, ..SessionConfig::new(holder, Incarnation(1), vec!["a".into()]) };
    let mut session = Session::new(config);
    session.add(Time::ZERO, resource.clone(), HoldingConfig::new(Kind::Rate, 100.0, 0));
    let lease = Grant {
        resource: resource.clone(),
        capacity: units(20),
        length: Duration::from_secs(10),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        basis: None,
        token: Vec::new(),
        ack_wanted: false,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: Some(safe),
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
    let nothing = |learning| Grant {
        capacity: Amount::ZERO,
        order: Some(Order { epoch: Epoch(2), seq: 1 }),
        learning,
        ..lease.clone()
    };
    for seconds in [0, 5, 11, 20, 30, 40] {
        let now = Time::ZERO + Duration::from_secs(seconds);
        let grant =
            if seconds == 0 { Some(lease.clone()) } else { learning.filter(|_| seconds > 11).map(nothing) };
        while let Some(action) = session.poll(now) {
            let Action::Ask { id, .. } = action else { continue };
            let event = match &grant {
                Some(grant) => {
                    let answer = Answer { grants: vec![grant.clone()], ..Answer::default() };
                    session::Event::Answered { id, answer }
                }
                None => session::Event::Failed { id, failure: Failure::Unreachable("gone".into()) },
            };
            session.handle(now, event);
        }
    }
    session.allowance(Time::ZERO + Duration::from_secs(40), &resource).capacity.expect("it has a limit")
}
