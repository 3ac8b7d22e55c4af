//! Denials as a program sees them: one type from rates, gauges, domains and several together, with the reason and the time to
//! ask again.

use std::time::Duration;

use lessor_client::{
    Client, Decision, Denied, Fallback, Gauge, Permit, Price, Rate, Rung, Together, TogetherDenied, Transport,
};
use tonic::Status;

use crate::town::{Town, answer, grant, soon, until};

/// A service as a newcomer writes it: types by the names that one guesses, errors passed on with `?`.
struct Service {
    searches: Rate,
    connections: Gauge,
}

impl Service {
    async fn search(
        &self,
        tenant: &str,
    ) -> Result<(Decision, Permit), Box<dyn std::error::Error + Send + Sync>> {
        self.searches.acquire(1).await?;
        let decision = self.searches.domain(tenant).acquire(1).await?;
        let permit = self.connections.acquire(1).await?;
        Ok((decision, permit))
    }

    fn denials(&self) -> [Denied; 3] {
        [
            self.searches.try_acquire(1).unwrap_err(),
            self.searches.domain("tenant").try_acquire(1).unwrap_err(),
            self.connections.try_acquire(1).map(|permit| permit.units()).unwrap_err(),
        ]
    }

    /// The denials of those who would wait for longer than any test runs.
    async fn denials_of_who_wait(&self) -> [Denied; 3] {
        let tenant = self.searches.domain("tenant");
        let waits = async {
            tokio::join!(self.searches.acquire(1), tenant.acquire(1), async {
                self.connections.acquire(1).await.map(|permit| permit.units())
            })
        };
        let (rate, domain, gauge) = soon(waits).await;
        [rate.unwrap_err(), domain.unwrap_err(), gauge.unwrap_err()]
    }
}

async fn service(client: &Client) -> Service {
    let searches = client.rate("searches").wants(1000.0).max_wait(None).open().unwrap();
    let connections =
        client.gauge("connections").wants(4.0).fallback(Fallback::Pessimistic).max_wait(None).open().unwrap();
    Service { searches, connections }
}

/// Waits until both are leased.
async fn serve(service: &mut Service) {
    until(&mut service.searches, |lease| lease.rung == Rung::Leased).await;
    until(&mut service.connections, |lease| lease.rung == Rung::Leased).await;
    // What is leased has to come in.
    soon(service.searches.acquire(4)).await.unwrap();
}

#[tokio::test]
async fn a_service_of_guessed_names_serves() {
    let town = Town::generous().await;
    let client = town.client();
    let mut service = service(&client).await;
    serve(&mut service).await;
    let (decision, permit) = soon(service.search("tenant")).await.unwrap();
    assert_eq!((decision.granted, permit.units(), permit.is_expired()), (1, 1, false));
    assert!(permit.remaining().is_some_and(|remaining| remaining <= Duration::from_secs(60)));

    let full = service.connections.try_acquire(4).unwrap_err();
    assert_eq!(full, Denied::Full { in_use: 1, limit: 4 });
    assert!(full.is_over_limit() && full.retry_after().is_none());
    let spent = (0..2000).find_map(|_| service.searches.try_acquire(1).err()).unwrap();
    assert!(spent.is_over_limit() && spent.retry_after() >= Some(Duration::from_millis(1)), "{spent}");
    // A domain that nothing limits has what the lease has.
    let spent = (0..2000).find_map(|_| service.searches.domain("tenant").try_acquire(1).err()).unwrap();
    assert!(spent.is_over_limit() && spent.retry_after() >= Some(Duration::from_millis(1)), "{spent}");
    assert!(spent.to_string().starts_with("bound by the lease for another "), "{spent}");
}

#[tokio::test]
async fn after_close_everything_is_denied_at_once() {
    let town = Town::generous().await;
    let client = town.client();
    let mut service = service(&client).await;
    serve(&mut service).await;
    soon(client.close()).await;
    for denied in service.denials().into_iter().chain(service.denials_of_who_wait().await) {
        assert_eq!(denied, Denied::Closed);
        assert!(!denied.is_over_limit() && denied.retry_after().is_none());
    }
    let both = Together::once()
        .rate(&service.searches, Price::Each(1))
        .gauge(&service.connections, Price::Once(1))
        .max_wait(None);
    let denied = soon(both.acquire()).await.unwrap_err();
    assert_eq!(denied, TogetherDenied::Part { part: 0, denied: Denied::Closed });
    assert!(both.try_acquire().unwrap_err().to_string().contains("the client is closed"));
}

#[tokio::test]
async fn those_who_wait_are_told_that_the_client_closes() {
    // It never answers.
    let town = Town::start(|_, _| None).await;
    let client = town.client();
    let service = service(&client).await;
    let not_yet = service.denials();
    assert_eq!(not_yet, [Denied::NothingLeased, Denied::NothingLeased, Denied::NothingLeased]);
    assert!(!not_yet[0].is_over_limit());
    let both = Together::once().rate(&service.searches, Price::Each(1)).max_wait(None);
    let (denials, together, ()) = tokio::join!(service.denials_of_who_wait(), soon(both.acquire()), async {
        tokio::task::yield_now().await;
        client.close().await;
    });
    assert_eq!(denials, [Denied::Closed, Denied::Closed, Denied::Closed]);
    assert_eq!(together.unwrap_err(), TogetherDenied::Part { part: 0, denied: Denied::Closed });
}

#[tokio::test]
async fn a_name_that_the_server_refuses_is_denied_in_its_words_and_not_waited_for() {
    let town = Town::start(|_, _| Some(Err(Status::not_found("no template matches \"searches\"")))).await;
    let client = town.client();
    let service = service(&client).await;
    let waited = service.denials_of_who_wait().await;
    for denied in waited.into_iter().chain(service.denials()) {
        assert!(denied.is_refusal() && !denied.is_over_limit(), "{denied:?}");
        let said = "nothing is leased: refused by the server: no template matches \"searches\"";
        assert_eq!(denied.to_string(), said);
    }
}

#[tokio::test]
async fn who_waited_in_vain_hears_why_nothing_is_leased() {
    let town = Town::start(|_, _| Some(Err(Status::unavailable("starting")))).await;
    let builder = Client::builder(town.address.to_string()).transport(Transport::Poll);
    let client = builder.build().unwrap();
    let mut rate = client.rate("searches").max_wait(Duration::from_millis(50)).open().unwrap();
    until(&mut rate, |lease| lease.last_error.is_some()).await;
    let denied = soon(rate.acquire(1)).await.unwrap_err();
    assert!(denied.to_string().contains("starting") && !denied.is_refusal(), "{denied}");
}

#[tokio::test]
async fn a_lease_says_whether_its_server_is_learning() {
    let town = Town::start(|number, request| {
        Some(Ok(answer(number, request, |number, resource| {
            let mut response = grant(number, resource);
            response.gets.learning = Some(number == 0);
            response.gets.refresh_interval = Some(1);
            response
        })))
    })
    .await;
    let client = town.client();
    let mut rate = client.rate("searches").wants(10.0).open().unwrap();
    until(&mut rate, |lease| lease.is_learning).await;
    until(&mut rate, |lease| lease.rung == Rung::Leased && !lease.is_learning).await;
}

#[tokio::test]
async fn who_is_denied_by_a_server_that_is_learning_hears_until_when() {
    let town = Town::start(|number, request| {
        Some(Ok(answer(number, request, |number, resource| {
            let mut response = grant(number, resource);
            response.gets.capacity = Some(0.0);
            (response.gets.learning, response.gets.learning_ms) = (Some(true), Some(50_000));
            response
        })))
    })
    .await;
    let client = town.client();
    let mut service = service(&client).await;
    until(&mut service.searches, |lease| lease.is_learning).await;
    until(&mut service.connections, |lease| lease.is_learning).await;
    let mut denials = service.denials().to_vec();
    denials.push(soon(service.searches.acquire_within(1, Duration::from_millis(20))).await.unwrap_err());
    for denied in denials {
        let after = denied.retry_after().unwrap_or_else(|| panic!("{denied:?}"));
        assert!(Duration::from_secs(40) < after && after <= Duration::from_secs(50), "{denied}");
        let begins = "nothing is leased: the server is learning what is out for another ";
        assert!(denied.to_string().starts_with(begins) && !denied.is_over_limit(), "{denied}");
    }
    let lease = service.searches.lease().to_string();
    assert!(lease.starts_with("0, leased for ") && lease.contains("the server is learning for"), "{lease}");
}
