//! Units of a gauge that others take while a driver is between two steps.

use std::time::Duration;

use lessor_client::Kind;
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_proto::message::{Answer, Grant, Order};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ResourceId, Time};
use lessor_sim::mutation::Mutation;

/// A lease of a minute, the first of epoch 1.
pub(crate) fn grant(resource: &ResourceId, units: u64) -> Grant {
    Grant {
        resource: resource.clone(),
        capacity: Amount::from_units(units),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq: 1 }),
        basis: None,
        token: Vec::new(),
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
    }
}

/// Of ten units three are wanted any more; what is given back was taken just before the limit was lowered.
pub(crate) fn taken_while_given_back(without: Option<Mutation>) -> Option<String> {
    let holder = ClientId::new("c", 256).expect("a name");
    let resource = ResourceId::new("pool", 256).expect("a name");
    let rules = without.map(Mutation::client).unwrap_or_default();
    let config = SessionConfig { rules, ..SessionConfig::new(holder, Incarnation(1), vec!["a".into()]) };
    let (mut session, gauge) = (Session::new(config), Semaphore::default());
    session.add(Time::ZERO, resource.clone(), HoldingConfig::new(Kind::Gauge, 10.0, 0));
    let (mut permits, mut given_back) = (Vec::new(), false);
    for (seconds, wants) in [(0, 10.0), (2, 3.0)] {
        let now = Time::ZERO + Duration::from_secs(seconds);
        session.set_in_use(now, &resource, Amount::from_units(gauge.in_use().into()));
        session.set_wants(now, &resource, wants);
        while let Some(action) = session.poll(now) {
            match action {
                Action::Change(change) => {
                    permits.extend(gauge.try_acquire_between(1, u32::MAX, || now));
                    gauge.allow(now, change.allowance);
                    session.set_in_use(now, &resource, Amount::from_units(gauge.in_use().into()));
                }
                Action::Ask { id, ask, .. } if seconds == 0 => {
                    assert_eq!(ask.reports.len(), 1, "there is one resource");
                    let grants = vec![grant(&resource, 10)];
                    session.handle(
                        now,
                        session::Event::Answered { id, answer: Answer { grants, ..Answer::default() } },
                    );
                }
                Action::Ask { ask, .. } => {
                    given_back = true;
                    let (held, in_use) = (ask.reports[0].held, Amount::from_units(gauge.in_use().into()));
                    if held < Some(in_use) {
                        return Some(format!("{held:?} are promised, and {in_use} in use"));
                    }
                }
                other => panic!("it polls: {other:?}"),
            }
        }
    }
    assert!(given_back && permits.len() == 1, "units were taken, and a report was built");
    None
}

/// A lease has ended, safe capacity is used, and then there is another lease: the permit taken under the first one has ended.
pub(crate) fn expired(without: Option<Mutation>) -> Option<String> {
    let second = |seconds| Time::ZERO + Duration::from_secs(seconds);
    let gauge = Semaphore::with_rules(without.map(Mutation::client).unwrap_or_default());
    let lease = |until| Allowance::new(Some(Amount::from_units(10)), second(until));
    gauge.allow(second(0), lease(10));
    let permit = gauge.try_acquire(10, || second(0)).expect("ten are leased");
    gauge.allow(second(5), lease(15));
    assert_eq!(permit.deadline(), Some(second(15)), "it was renewed");
    gauge.allow(second(15), Allowance::forever(Amount::from_units(5)));
    gauge.allow(second(20), lease(30));
    let (deadline, is_expired) = (permit.deadline(), permit.is_expired_at(second(21)));
    (deadline != Some(second(15)) || !is_expired).then(|| format!("it lasts until {deadline:?}"))
}
