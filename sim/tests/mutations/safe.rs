//! A client that is cut off, and was advised to go on with more than it had.

use std::time::Duration;

use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Kind};
use lessor_proto::message::{Answer, Grant, Order};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_sim::mutation::Mutation;

/// Of a lease of 20 for ten seconds, with 100 advised, nobody answers any more.
pub(crate) fn above_the_last_lease(without: Option<Mutation>) -> Option<String> {
    let holder = ClientId::new("c", 256).expect("a name");
    let resource = ResourceId::new("db", 256).expect("a name");
    let rules = without.map(Mutation::client).unwrap_or_default();
    let config = SessionConfig { rules, ..SessionConfig::new(holder, Incarnation(1), vec!["a".into()]) };
    let mut session = Session::new(config);
    session.add(Time::ZERO, resource.clone(), HoldingConfig::new(Kind::Rate, 100.0, 0));
    let grant = Grant {
        resource: resource.clone(),
        capacity: Amount::from_units(20),
        length: Duration::from_secs(10),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        basis: None,
        token: Vec::new(),
        ack_wanted: false,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: Some(100.0),
        burst: None,
        due: None,
        generation: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
    };
    for seconds in [0, 5, 11] {
        let now = Time::ZERO + Duration::from_secs(seconds);
        while let Some(action) = session.poll(now) {
            match action {
                Action::Ask { id, .. } if seconds == 0 => {
                    session.handle(
                        now,
                        session::Event::Answered {
                            id,
                            answer: Answer { grants: vec![grant.clone()], ..Answer::default() },
                        },
                    );
                }
                Action::Ask { id, .. } => session
                    .handle(now, session::Event::Failed { id, failure: Failure::Unreachable("gone".into()) }),
                _ => {}
            }
        }
    }
    let used = session.allowance(Time::ZERO + Duration::from_secs(11), &resource).capacity;
    assert!(used > Some(Amount::ZERO), "it goes on with something");
    (used > Some(Amount::from_units(20))).then(|| format!("{used:?} of 20 are used"))
}
