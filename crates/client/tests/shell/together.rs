//! Several open resources in one request, against a server that delivers policies for domains.

use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_client::{
    Bound, Client, Denied, Price, Rung, Together, TogetherAnswer, TogetherDenied, Transport,
};

use crate::town::{Town, answer, grant, soon, until};

/// Three calls an hour for each tenant.
fn policies() -> Policies {
    let hour = Duration::from_secs(3600);
    let tier = Tier {
        limit: 3,
        window: hour,
        active: hour,
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    let default = Some(Contract::from(TierPolicy::new(vec![tier], None, None).unwrap()));
    Policies::new(Rules { default, ..Rules::default() }).unwrap()
}

#[tokio::test]
async fn a_worker_and_the_calls_and_queries_of_a_tenant_come_together_or_not_at_all() {
    let wire = policies().to_wire();
    let town = Town::start(move |number, request| {
        Some(Ok(answer(number, request, |number, resource| {
            let mut response = grant(number, resource);
            if response.resource_id == "calls" {
                response.domains = Some(wire.as_ref().clone());
            }
            response
        })))
    })
    .await;
    let builder = Client::builder(town.address.to_string()).transport(Transport::Poll);
    let client = builder.build().unwrap();
    let mut calls = client.rate("calls").wants(1e6).open().unwrap();
    let queries = client.rate("queries").wants(1e6).open().unwrap();
    let workers = client.gauge("workers").wants(2.0).open().unwrap();
    until(&mut calls, |lease| lease.rung == Rung::Leased).await;

    let jobs = |tenant| {
        Together::between(3, 10)
            .gauge(&workers, Price::Once(1))
            .domain(&calls, tenant, Price::Each(1))
            .rate(&queries, Price::Each(2))
            .max_wait(Duration::from_secs(10))
    };
    let permit = soon(sendable(jobs("a").acquire())).await.unwrap();
    assert_eq!((permit.copies(), permit.bound_by()), (3, Some(1)));
    assert_eq!(
        (&permit.answers()[0], &permit.answers()[2]),
        (&TogetherAnswer::Taken(1), &TogetherAnswer::Taken(6))
    );
    let TogetherAnswer::Domain(decision) = permit.answers()[1] else { panic!("{permit:?}") };
    assert_eq!((decision.granted, decision.bound), (3, Some(Bound::Tiers)));

    let refused = soon(jobs("a").acquire()).await.unwrap_err();
    assert!(matches!(refused, TogetherDenied::TooLate { .. }), "at once, as an hour is too long: {refused}");
    let other = soon(jobs("b").acquire()).await.unwrap();
    let Err(TogetherDenied::Refused(refusal)) = jobs("c").try_acquire() else {
        panic!("there is a third worker")
    };
    assert_eq!(refusal.answers[0], TogetherAnswer::Denied(Denied::Full { in_use: 2, limit: 2 }));
    assert_eq!(calls.domain("c").peek(9, 1).granted, 3);

    let metrics = client.metrics();
    let numbers: Vec<_> = metrics.resources.iter().map(|one| (one.granted, one.denied, one.in_use)).collect();
    assert_eq!((metrics.resources[0].granted, metrics.resources[1].granted), (6, 12));
    assert_eq!(numbers[2], (2, 1, 2), "workers: two granted, one denied, two in use");
    drop((permit, other));
    assert!(workers.try_acquire(2).is_ok());
}

/// It may be awaited in any task.
fn sendable<T>(future: impl Future<Output = T> + Send) -> impl Future<Output = T> + Send {
    future
}
