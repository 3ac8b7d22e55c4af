//! The client against real gRPC servers on loopback that answer as each test says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::holding::{Fallback, Kind, Rung};
use lessor_client::session::{Failure, Fault};
use lessor_client::shell::{ConnectError, LeaseView, OpenError, clock};
use lessor_client::{Client, Resource};
use lessor_proto::Amount;
use lessor_proto::wire::capacity_server::{Capacity, CapacityServer};
use lessor_proto::wire::{
    DiscoveryRequest, DiscoveryResponse, GetCapacityRequest, GetCapacityResponse, GetServerCapacityRequest,
    GetServerCapacityResponse, Lease, Mastership, ReleaseCapacityRequest, ReleaseCapacityResponse,
    ResourceRequest, ResourceResponse,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// How a server answers the n-th request, counted from 0; nothing is to hang for ever.
type Script = dyn Fn(usize, &GetCapacityRequest) -> Option<Result<GetCapacityResponse, Status>> + Send + Sync;

struct Fake {
    script: Box<Script>,
    heard: mpsc::UnboundedSender<Heard>,
    count: std::sync::atomic::AtomicUsize,
}

#[derive(Debug)]
enum Heard {
    Ask(GetCapacityRequest),
    Release(ReleaseCapacityRequest),
}

/// A server that runs, and what it hears.
struct Town {
    address: SocketAddr,
    heard: mpsc::UnboundedReceiver<Heard>,
}

#[tonic::async_trait]
impl Capacity for Fake {
    async fn discovery(&self, _: Request<DiscoveryRequest>) -> Result<Response<DiscoveryResponse>, Status> {
        Ok(Response::new(DiscoveryResponse { is_master: true, ..DiscoveryResponse::default() }))
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Result<Response<GetCapacityResponse>, Status> {
        let number = self.count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let answer = (self.script)(number, request.get_ref());
        let _ = self.heard.send(Heard::Ask(request.into_inner()));
        match answer {
            Some(answer) => answer.map(Response::new),
            None => std::future::pending().await,
        }
    }

    async fn get_server_capacity(
        &self,
        _: Request<GetServerCapacityRequest>,
    ) -> Result<Response<GetServerCapacityResponse>, Status> {
        Err(Status::unimplemented("no nodes here"))
    }

    async fn release_capacity(
        &self,
        request: Request<ReleaseCapacityRequest>,
    ) -> Result<Response<ReleaseCapacityResponse>, Status> {
        let _ = self.heard.send(Heard::Release(request.into_inner()));
        Ok(Response::new(ReleaseCapacityResponse::default()))
    }
}

// === the town ===

impl Town {
    async fn start(
        script: impl Fn(usize, &GetCapacityRequest) -> Option<Result<GetCapacityResponse, Status>>
        + Send
        + Sync
        + 'static,
    ) -> Town {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heard) = mpsc::unbounded_channel();
        let fake = Fake { script: Box::new(script), heard: sender, count: Default::default() };
        let server = tonic::transport::Server::builder().add_service(CapacityServer::new(fake));
        tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
        Town { address, heard }
    }

    /// A server that grants everything.
    async fn generous() -> Town {
        Town::start(|number, request| Some(Ok(answer(number, request, grant)))).await
    }

    fn client(&self) -> Client {
        Client::builder(self.address.to_string()).id("web-1").build().unwrap()
    }

    async fn hear(&mut self) -> Heard {
        soon(self.heard.recv()).await.expect("the server runs")
    }

    async fn hear_ask(&mut self) -> GetCapacityRequest {
        match self.hear().await {
            Heard::Ask(request) => request,
            Heard::Release(request) => panic!("a release: {request:?}"),
        }
    }

    async fn hear_release(&mut self) -> ReleaseCapacityRequest {
        loop {
            if let Heard::Release(request) = self.hear().await {
                return request;
            }
        }
    }
}

fn answer(
    number: usize,
    request: &GetCapacityRequest,
    grant: impl Fn(usize, &ResourceRequest) -> ResourceResponse,
) -> GetCapacityResponse {
    let response = request.resource.iter().map(|resource| grant(number, resource)).collect();
    GetCapacityResponse { response, ..GetCapacityResponse::default() }
}

/// All that is wanted for a minute, in Lessor's own fields; dates from long ago are not looked at.
fn grant(number: usize, resource: &ResourceRequest) -> ResourceResponse {
    ResourceResponse {
        resource_id: resource.resource_id.clone().unwrap(),
        gets: Lease {
            expiry_time: Some(1),
            refresh_interval: Some(5),
            capacity: resource.wants,
            epoch: Some(1),
            seq: Some(number as u64 + 1),
            duration_ms: Some(60_000),
            ..Lease::default()
        },
        safe_capacity: None,
    }
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.expect("within 20 s")
}

async fn until<E>(resource: &mut Resource<E>, done: impl Fn(&LeaseView) -> bool) -> LeaseView {
    soon(async {
        loop {
            let lease = resource.lease();
            if done(&lease) {
                return lease;
            }
            resource.changed().await.expect("the client is open");
        }
    })
    .await
}

// === the tests ===

#[tokio::test]
async fn a_rate_is_leased_spent_and_released() {
    let mut town = Town::generous().await;
    let client = soon(Client::builder(town.address.to_string()).id("web-1").connect()).await.unwrap();
    let mut db = client.rate("db").wants(1_000.0).priority(3).fallback(Fallback::Pessimistic).open().unwrap();
    soon(db.acquire(1)).await.unwrap();

    let lease = until(&mut db, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(lease.capacity, Some(Amount::from_units(1_000)));
    assert!(lease.remaining() <= Duration::from_secs(60) && lease.remaining() > Duration::from_secs(30));
    let ask = town.hear_ask().await;
    assert_eq!((ask.client_id.as_deref(), ask.report_id), (Some("web-1"), Some(1)));
    assert_eq!((ask.resource[0].wants, ask.resource[0].priority), (Some(1_000.0), Some(3)));

    let metrics = client.metrics();
    assert_eq!((metrics.counts.asks, metrics.counts.answers, metrics.counts.failures), (1, 1, 0));
    assert_eq!((metrics.resources[0].kind, metrics.resources[0].granted), (Kind::Rate, 1));

    soon(client.close()).await;
    let release = town.hear_release().await;
    assert_eq!(
        (release.resource_id.as_slice(), release.incarnation),
        (["db".to_owned()].as_slice(), ask.incarnation)
    );
    assert!(db.try_acquire(1).is_err(), "a closed client grants nothing");
    assert_eq!(db.lease().capacity, Some(Amount::ZERO));
}

#[tokio::test]
async fn handles_of_one_resource_share_a_lease_until_the_last_is_dropped() {
    let mut town = Town::generous().await;
    let client = town.client();
    let mut first = client.rate("db").wants(10.0).open().unwrap();
    let second = client.rate("db").wants(99.0).open().unwrap();
    let clash = client.gauge("db").open().unwrap_err();
    assert_eq!(clash.to_string(), "\"db\" is open as a rate, and cannot be a gauge too");
    until(&mut first, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(second.lease().capacity, Some(Amount::from_units(10)));

    drop(first);
    assert_eq!(second.lease().rung, Rung::Leased);
    drop(second);
    assert_eq!(town.hear_release().await.resource_id, ["db"]);
}

#[tokio::test]
async fn a_name_can_be_opened_again() {
    let mut town = Town::generous().await;
    let client = town.client();
    drop(client.rate("db").wants(10.0).open().unwrap());
    let mut again = client.gauge("db").wants(3.0).open().unwrap();
    assert_eq!(
        until(&mut again, |lease| lease.capacity == Some(Amount::from_units(3))).await.rung,
        Rung::Leased
    );
    drop(again);
    town.hear_release().await;
}

#[tokio::test]
async fn dropping_everything_releases_in_the_background() {
    let mut town = Town::generous().await;
    let client = town.client();
    let mut db = client.rate("db").wants(10.0).open().unwrap();
    until(&mut db, |lease| lease.rung == Rung::Leased).await;
    drop(client);
    assert_eq!(db.lease().rung, Rung::Leased, "the handle keeps it alive");
    drop(db);
    assert_eq!(town.hear_release().await.resource_id, ["db"]);
}

#[tokio::test]
async fn permits_of_a_gauge_hold_back_its_release() {
    let mut town = Town::generous().await;
    let client = town.client();
    let mut pool = client.gauge("pool").wants(4.0).open().unwrap();
    let permit = soon(pool.acquire(3)).await.unwrap();
    assert!(permit.deadline() > clock::now());
    assert!(pool.try_acquire(2).is_err());
    until(&mut pool, |lease| lease.rung == Rung::Leased).await;
    drop(pool);

    // Instead of a release comes a report that gives back what is not in use.
    let returned = soon(async {
        loop {
            let ask = town.hear_ask().await;
            if ask.resource[0].wants == Some(0.0) {
                return ask;
            }
        }
    })
    .await;
    assert_eq!(returned.resource[0].held, Some(3.0));
    drop(permit);
    assert_eq!(town.hear_release().await.resource_id, ["pool"]);
}

#[tokio::test]
async fn doormans_server_is_understood() {
    let mut town = Town::start(|number, request| {
        Some(Ok(answer(number, request, |_, resource| ResourceResponse {
            resource_id: resource.resource_id.clone().unwrap(),
            gets: Lease {
                expiry_time: Some(i64::try_from(clock::wall().since_epoch.as_secs()).unwrap() + 60),
                refresh_interval: Some(5),
                capacity: Some(42.0),
                ..Lease::default()
            },
            safe_capacity: Some(7.0),
        })))
    })
    .await;
    let client = town.client();
    let mut db = client.rate("db").wants(100.0).open().unwrap();
    let lease = until(&mut db, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(lease.capacity, Some(Amount::from_units(42)));
    assert!(lease.remaining() <= Duration::from_secs(60) && lease.remaining() > Duration::from_secs(30));
    db.set_wants(50.0);
    town.hear_ask().await;
    let has = town.hear_ask().await.resource[0].has.clone().unwrap();
    assert_eq!((has.capacity, has.epoch, has.seq, has.token), (Some(42.0), None, None, None));
}

#[tokio::test]
async fn a_redirect_is_followed() {
    let mut leader = Town::generous().await;
    let address = leader.address.to_string();
    let other = Town::start(move |_, _| {
        let mastership = Some(Mastership { master_address: Some(address.clone()) });
        Some(Ok(GetCapacityResponse { mastership, ..GetCapacityResponse::default() }))
    })
    .await;
    let client = other.client();
    let mut db = client.rate("db").wants(10.0).open().unwrap();
    until(&mut db, |lease| lease.rung == Rung::Leased).await;
    leader.hear_ask().await;
    assert_eq!(client.metrics().counts.redirects, 1);
}

#[tokio::test]
async fn a_lease_ends_in_time_while_a_request_hangs() {
    // The first answer asks for a report at once; that one hangs.
    let mut town = Town::start(|number, request| {
        (number == 0).then(|| {
            Ok(answer(number, request, |number, resource| {
                let mut response = grant(number, resource);
                response.gets.duration_ms = Some(500);
                response.gets.ack_wanted = Some(true);
                response.safe_capacity = Some(2.0);
                response
            }))
        })
    })
    .await;
    let client = town.client();
    let mut db = client.rate("db").wants(10.0).open().unwrap();
    let leased = until(&mut db, |lease| lease.rung == Rung::Leased).await;
    let fallen = until(&mut db, |lease| lease.rung == Rung::Safe).await;
    assert!(clock::now() >= leased.until);
    assert_eq!((fallen.capacity, fallen.last_error), (Some(Amount::from_units(2)), None));
    town.hear_ask().await;
    town.hear_ask().await;
    assert_eq!(client.metrics().counts.failures, 0, "the request still hangs");
}

#[tokio::test]
async fn a_refused_resource_does_not_keep_others_waiting() {
    let town = Town::start(|number, request| {
        let bad = request.resource.iter().any(|resource| resource.resource_id.as_deref() == Some("bad"));
        Some(if bad { Err(Status::not_found("no template")) } else { Ok(answer(number, request, grant)) })
    })
    .await;
    let client = town.client();
    let mut bad = client.rate("bad").open().unwrap();
    let mut good = client.rate("good").open().unwrap();
    until(&mut good, |lease| lease.rung == Rung::Leased).await;
    let refused = until(&mut bad, |lease| lease.last_error.is_some()).await;
    assert_eq!(refused.last_error, Some(Fault::Failed(Failure::Refused("no template".into()))));
}

#[tokio::test]
async fn another_server_is_asked_when_the_first_is_gone() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let town = Town::generous().await;
    let builder = Client::builder(gone.to_string()).server(town.address.to_string());
    let client = builder.clone().build().unwrap();
    let mut db = client.rate("db").wants(10.0).open().unwrap();
    until(&mut db, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(client.metrics().counts.failures, 1);
    soon(builder.connect()).await.unwrap();
}

#[tokio::test]
async fn without_a_server_nothing_is_allowed_and_the_error_says_why() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().to_string();
    let refused = soon(Client::builder(&gone).connect()).await.unwrap_err();
    assert!(matches!(&refused, ConnectError::NoServer(_)));
    assert!(refused.to_string().contains("onnection refused"), "{refused}");

    let client = Client::builder(&gone).build().unwrap();
    let mut db = client.rate("db").max_wait(Duration::from_millis(1)).open().unwrap();
    assert!(db.try_acquire(1).is_err());
    assert!(soon(db.acquire(1)).await.is_err());
    let lease = until(&mut db, |lease| lease.last_error.is_some()).await;
    assert_eq!((lease.rung, lease.capacity), (Rung::Waiting, Some(Amount::ZERO)));
}

#[tokio::test]
async fn what_cannot_be_opened_is_said_so() {
    let town = Town::generous().await;
    let client = town.client();
    let check = |opened: Result<_, OpenError>, wanted: &str| {
        assert_eq!(opened.map(|_: Resource<_>| ()).unwrap_err().to_string(), wanted);
    };
    check(
        client.rate("").open(),
        "the name \"\" is empty; wanted 1 to 256 bytes of text without control characters",
    );
    check(client.rate("db").wants(f64::NAN).open(), "wants of NaN; wanted a finite number of at least 0");
    let late = client.clone();
    soon(client.close()).await;
    check(late.rate("db").open(), "the client is closed");
}

#[test]
fn outside_of_a_runtime_nothing_is_built() {
    let refused = Client::builder("127.0.0.1:1").build().unwrap_err();
    assert_eq!(refused.to_string(), "no tokio runtime; wanted to be called within one");
}

#[tokio::test]
async fn two_clients_draw_different_incarnations() {
    let mut town = Town::generous().await;
    let (first, second) = (town.client(), town.client());
    let _handles = [first.rate("db").open().unwrap(), second.rate("db").open().unwrap()];
    assert_ne!(town.hear_ask().await.incarnation, town.hear_ask().await.incarnation);
}
