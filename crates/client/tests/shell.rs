//! The client against real gRPC servers on loopback that answer as each test says.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "shell/broken_off.rs"]
mod broken_off;
#[path = "shell/denials.rs"]
mod denials;
#[path = "shell/together.rs"]
mod together;
#[path = "shell/town.rs"]
mod town;
#[path = "shell/units.rs"]
mod units;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{
    Client, ConnectError, Failure, Fallback, Fault, Kind, OpenError, Resource, Rung, Transport,
};
use lessor_proto::Amount;
use lessor_proto::wire::session_down::Message;
use lessor_proto::wire::{self, GetCapacityResponse, Lease, Mastership, ResourceResponse, SessionDown};
use tokio::net::TcpSocket;
use tonic::Status;

use crate::town::{Town, answer, grant, soon, until};

// === the tests ===

#[tokio::test]
async fn a_rate_is_leased_spent_and_released() {
    let mut town = Town::generous().await;
    let builder = Client::builder(town.address.to_string()).id("web-1").transport(Transport::Poll);
    let client = soon(builder.connect()).await.unwrap();
    let mut db = client.rate("db").wants(1_000.0).priority(3).fallback(Fallback::Pessimistic).open().unwrap();
    soon(db.acquire(1)).await.unwrap();

    let lease = until(&mut db, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(lease.capacity, Some(Amount::from_units(1_000)));
    let remaining = lease.remaining().unwrap();
    assert!(remaining <= Duration::from_secs(60) && remaining > Duration::from_secs(30));
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
    assert!(permit.deadline() > Some(clock::now()));
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
            domains: None,
        })))
    })
    .await;
    let client = town.client();
    let mut db = client.rate("db").wants(100.0).open().unwrap();
    let lease = until(&mut db, |lease| lease.rung == Rung::Leased).await;
    assert_eq!(lease.capacity, Some(Amount::from_units(42)));
    let remaining = lease.remaining().unwrap();
    assert!(remaining <= Duration::from_secs(60) && remaining > Duration::from_secs(30));
    db.set_wants(50.0);
    town.hear_ask().await;
    let has = town.hear_ask().await.resource[0].has.clone().unwrap();
    assert_eq!((has.capacity, has.epoch, has.seq, has.token), (Some(42.0), None, None, None));
}

/// The log of this thread while the guard lives.
fn listen() -> (Arc<Mutex<Vec<u8>>>, tracing::subscriber::DefaultGuard) {
    let log = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&log);
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || Writer(writer.clone()));
    (log, tracing::subscriber::set_default(subscriber.finish()))
}

struct Writer(Arc<Mutex<Vec<u8>>>);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_server_without_streams_is_polled() {
    let (log, _guard) = listen();
    // Everything is to be renewed at once, so that it is polled again and again.
    let mut town = Town::start(|number, request| {
        Some(Ok(answer(number, request, |number, resource| {
            let mut response = grant(number, resource);
            response.gets.ack_wanted = Some(number < 5);
            response
        })))
    })
    .await;
    let client = town.client();
    assert_eq!(client.metrics().transport, Transport::Stream, "until it knows better");
    let mut db = client.rate("db").wants(10.0).open().unwrap();
    until(&mut db, |lease| lease.rung == Rung::Leased).await;
    for _ in 0..3 {
        town.hear_ask().await;
        assert_eq!((db.lease().rung, db.lease().last_error), (Rung::Leased, None));
    }
    let metrics = client.metrics();
    assert_eq!((metrics.transport, metrics.counts.streams), (Transport::Poll, 1));
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    assert_eq!(log.matches("the server has no streams: polling").count(), 1, "{log}");
}

#[tokio::test]
async fn a_message_of_a_later_version_is_passed_over_and_counted() {
    let welcome = wire::Welcome { epoch: 1, features: Some(u32::MAX), ..wire::Welcome::default() };
    let welcome = SessionDown { message: Some(Message::Welcome(welcome)) };
    // A field that is not known leaves nothing.
    let unknown = SessionDown { message: None };
    let town = Town::streaming(vec![welcome, unknown.clone(), unknown]).await;
    let client = town.client();
    let _rate = client.rate("db").open().unwrap();
    soon(async {
        while client.metrics().counts.unknown < 2 {
            clock::sleep_until(clock::now() + Duration::from_millis(5)).await;
        }
    })
    .await;
    let counts = client.metrics().counts;
    assert_eq!((counts.received, counts.streams, counts.failures), (3, 1, 0), "the stream goes on");
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
    assert!(Some(clock::now()) >= leased.until);
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
    let fault = Fault::Failed(Failure::Refused("no template".into()));
    assert_eq!(refused.last_error, Some(Arc::new(fault)));
}

/// An address that refuses connections, and is nobody else's as long as the socket is kept.
fn nobody() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

#[tokio::test]
async fn another_server_is_asked_when_the_first_is_gone() {
    let (_kept, gone) = nobody();
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
    let (_kept, gone) = nobody();
    let gone = gone.to_string();
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
