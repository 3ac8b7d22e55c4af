//! Envoy itself: its recipe, and each way that it has of asking and of taking an answer.

use std::sync::{Arc, Mutex};

use lessor_envoy_proto::rate_limit_service_client::RateLimitServiceClient;
use lessor_envoy_proto::rate_limit_service_server::{RateLimitService, RateLimitServiceServer};
use lessor_envoy_proto::{
    Entry, RateLimitDescriptor, RateLimitOverride, RateLimitRequest, RateLimitResponse,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};

use super::Service;
use super::double::{Double, Place, fetched};
use crate::front::{Answer, Front, free_address, http};
use crate::house::{binary, eventually};

/// A limit for each of the ways, an hour long, so that no test depends on how long it takes.
const RULES: &str = "wait: 30s\nsets: {shop: {headers: [ietf, retry-after], request_headers: [x-ratelimit], body: problem, metadata: true, overrides: [5/1m], rules: [\
                     {name: exports, match: {entry.kind: export}, limit: 3/1h}, {match: {entry.kind: half}, limit: 9/30s}, {match: {entry.kind: cost}, limit: 10/1h}, \
                     {match: {entry.kind: before}, limit: 2/1h}, {match: {entry.kind: after}, limit: 2/1h, charge: after}, \
                     {match: {entry.kind: connection}, limit: 2/1h}, \
                     {name: busy, match: {entry.kind: busy}, limit: 1/1h, kind: concurrency}]}}";

/// A request that was asked, and the answer to it.
#[derive(Clone, Debug)]
struct Heard {
    request: RateLimitRequest,
    has_timeout: bool,
    answer: Option<RateLimitResponse>,
}

/// The rate limit service that stands between Envoy and a door, writes down what passes and changes nothing.
#[derive(Clone)]
struct Recorder {
    door: RateLimitServiceClient<Channel>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

// === impl Recorder ===

impl Recorder {
    fn new(door: RateLimitServiceClient<Channel>) -> Recorder {
        Recorder { door, heard: Arc::default() }
    }

    /// Serves on loopback. Returns the address.
    async fn serve(&self) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = Server::builder().add_service(RateLimitServiceServer::new(self.clone()));
        tokio::spawn(router.serve_with_incoming(TcpListenerStream::new(listener)));
        address
    }

    /// The calls since it was last asked.
    fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut self.heard.lock().unwrap())
    }
}

#[tonic::async_trait]
impl RateLimitService for Recorder {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let has_timeout = request.metadata().contains_key("grpc-timeout");
        let request = request.into_inner();
        let answer = self.door.clone().should_rate_limit(request.clone()).await.map(Response::into_inner);
        self.heard.lock().unwrap().push(Heard { request, has_timeout, answer: answer.clone().ok() });
        answer.map(Response::new)
    }
}

/// The descriptor with that one entry.
fn descriptor(kind: &str) -> RateLimitDescriptor {
    let entry = Entry { key: "kind".to_owned(), value: kind.to_owned() };
    RateLimitDescriptor { entries: vec![entry], ..RateLimitDescriptor::default() }
}

pub(crate) fn command(place: &Place) -> tokio::process::Command {
    let flags = ["--concurrency", "1", "--disable-hot-restart", "--log-level", "error", "-c"];
    let mut command = binary(&place.program, &flags);
    command.arg(place.directory.join("envoy.yaml"));
    command
}

/// The words in a file of Envoy's for a port.
pub(crate) fn port(address: &str) -> String {
    format!("port_value: {}", address.rsplit(':').next().unwrap())
}

#[tokio::test]
async fn its_recipe_keeps_a_limit_of_each_address() {
    let double = Double::new(fetched("envoy"), "port_value: 10000", &["configs/doors/envoy.yaml"], command)
        .replacing(&[("timeout: 0.25s", "timeout: 60s")]);
    if !double.is_there() {
        return;
    }
    let service = Service::default();
    let address = service.serve().await;
    let front = Front::of_the_repository().await;
    let door = front.door(&[]).await;
    let proxy =
        double.run(&[("port_value: 8081", &port(&door.rls)), ("port_value: 8000", &port(&address))]).await;
    for left in (0..10).rev() {
        let answer =
            http(&proxy.address, "GET /x", &format!("x-forwarded-for: 192.0.2.{left}\r\n"), "").await;
        let said = "x-ratelimit-limit: 10, 10;w=3600;name=\"per-address\"\r\n";
        let is_said =
            answer.head.contains(said) && answer.head.contains(&format!("x-ratelimit-remaining: {left}\r\n"));
        assert!(answer.status == 200 && is_said, "{answer:?}");
    }
    let answer = http(&proxy.address, "GET /x", "", "").await;
    assert!(answer.status == 429 && answer.head.contains("retry-after: "), "{answer:?}");
    assert_eq!(service.calls(), 10);
    door.stop().await;
    assert_eq!(http(&proxy.address, "GET /x", "", "").await.status, 200, "the recipe lets pass then");
    proxy.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn it_asks_and_takes_answers_in_each_of_its_ways() {
    const FILES: &[&str] = &["crates/cli/tests/doors/proxies/envoy.yaml"];
    let double = Double::new(fetched("envoy"), "port_value: 10000", FILES, command);
    if !double.is_there() {
        return;
    }
    let service = Service::default();
    let address = service.serve().await;
    let front = Front::open(RULES, "").await;
    let door = front.door(&[]).await;
    let recorder = Recorder::new(door.service().await);
    let [strict, connections] = [free_address(), free_address()];
    let proxy = double
        .run(&[
            ("port_value: 8081", &port(&recorder.serve().await)),
            ("port_value: 8000", &port(&address)),
            ("port_value: 10001", &port(&strict)),
            ("port_value: 10002", &port(&connections)),
        ])
        .await;
    let get = async |path: &str, fields: &str| http(&proxy.address, &format!("GET {path}"), fields, "").await;

    what_is_over_is_said_in_fields_and_body(&recorder, &service, get).await;
    hits_are_heard_where_they_are_said(&recorder, get).await;

    // After the answer a second call has the descriptors that are for then, also of a request that was refused.
    let statuses =
        [get("/after", "").await.status, get("/after", "").await.status, get("/after", "").await.status];
    assert_eq!(statuses, [200, 200, 429]);
    let (mut before, mut after) = (0, 0);
    eventually("each is charged afterwards", async || {
        for heard in recorder.take() {
            assert_eq!(heard.request.descriptors.len(), 1, "{heard:?}");
            before += usize::from(heard.request.descriptors[0] == descriptor("before"));
            after += usize::from(heard.request.descriptors[0] == descriptor("after"));
        }
        after == 3
    })
    .await;
    assert_eq!(before, 3);

    what_is_under_way_is_one_at_a_time(&recorder, &proxy.address, get).await;

    // A connection is asked for once, and closed if it is one too many.
    let open = async || {
        let mut stream = TcpStream::connect(&connections).await.unwrap();
        let mut bytes = Vec::new();
        let request = b"GET /free HTTP/1.1\r\nhost: front\r\nconnection: close\r\n\r\n";
        let _ = stream.write_all(request).await;
        let _ = stream.read_to_end(&mut bytes).await;
        bytes.starts_with(b"HTTP/1.1 200 OK")
    };
    assert_eq!([open().await, open().await, open().await], [true, true, false]);
    assert!(recorder.take().iter().all(|heard| heard.request.descriptors == [descriptor("connection")]));

    // An error lets pass or refuses, as Envoy is told.
    door.stop().await;
    assert_eq!(get("/export", "").await.status, 200);
    assert_eq!(http(&strict, "GET /export", "", "").await.status, 500);
    proxy.stop().await;
    front.server.stop().await;
}

/// Three pass and the fourth does not, and a limit that Envoy brings along is one of its own.
async fn what_is_over_is_said_in_fields_and_body(
    recorder: &Recorder,
    service: &Service,
    get: impl AsyncFn(&str, &str) -> Answer,
) {
    for left in [2, 1, 0] {
        // What a client says is not believed, and is gone before the service hears what was decided.
        let answer = get("/export", "x-ratelimit-remaining: 99\r\n").await;
        let said = [
            format!("x-heard: {left}\r\n"),
            "x-ratelimit-limit: 3, 3;w=3600;name=\"exports\"\r\n".to_owned(),
            format!("x-ratelimit-remaining: {left}\r\n"),
            format!("ratelimit: \"exports\";r={left};t="),
            format!("x-decided: exports {left} of 3\r\n"),
        ];
        assert!(answer.status == 200 && said.iter().all(|it| answer.head.contains(it)), "{answer:?}");
    }
    let answer = get("/export", "").await;
    let said =
        ["retry-after: ", "content-type: application/problem+json\r\n", "x-ratelimit-remaining: 0\r\n"];
    assert!(answer.status == 429 && said.iter().all(|it| answer.head.contains(it)), "{answer:?}");
    assert!(answer.body.contains("#quota-exceeded"), "{answer:?}");
    assert_eq!(service.calls(), 3);
    for heard in recorder.take() {
        let is_plain = heard.request.domain == "shop" && heard.request.descriptors == [descriptor("export")];
        assert!(is_plain && heard.request.hits_addend <= 1 && heard.has_timeout, "{heard:?}");
    }

    // Each descriptor has a status, and one that no rule is for passes.
    assert_eq!(get("/both", "").await.status, 429);
    let [heard] = &recorder.take()[..] else { panic!("one call") };
    let codes = heard.answer.as_ref().unwrap().statuses.iter().map(|status| status.code);
    assert_eq!(codes.collect::<Vec<_>>(), [2, 1], "{heard:?}");

    // A window of any length is said to Envoy, which brings along only those of one unit.
    let answer = get("/half", "").await;
    assert!(answer.status == 200 && answer.head.contains("x-ratelimit-limit: 9, 9;w=30"), "{answer:?}");
    recorder.take();
    let answer = get("/brought", "").await;
    assert!(answer.status == 200 && answer.head.contains("x-ratelimit-limit: 5, 5;w=60"), "{answer:?}");
    let [heard] = &recorder.take()[..] else { panic!("one call") };
    let limit = RateLimitOverride { requests_per_unit: 5, unit: 2, unit_multiplier: None };
    assert_eq!(heard.request.descriptors[0].limit, Some(limit));
}

/// The number of hits of a descriptor, also one that nobody ever has.
async fn hits_are_heard_where_they_are_said(recorder: &Recorder, get: impl AsyncFn(&str, &str) -> Answer) {
    let nan = 1 << 63;
    for (cost, hits, status, left) in
        [("7", 7, 200, 3), ("nan", nan, 429, 0), ("4", 4, 429, 0), ("3", 3, 200, 0)]
    {
        let answer = get("/cost", &format!("x-cost: {cost}\r\n")).await;
        let remaining = format!("x-ratelimit-remaining: {left}\r\n");
        assert!(answer.status == status && answer.head.contains(&remaining), "{cost}: {answer:?}");
        let [heard] = &recorder.take()[..] else { panic!("one call") };
        assert_eq!(heard.request.descriptors[0].hits_addend, Some(hits), "{cost}");
    }
    assert_eq!(get("/passed-over", "").await.status, 429);
    let [heard] = &recorder.take()[..] else { panic!("one call") };
    assert_eq!(heard.request.descriptors[0].hits_addend, None);
}

/// One request at a time, and its end makes room for the next, but not that of one which was refused.
async fn what_is_under_way_is_one_at_a_time(
    recorder: &Recorder,
    proxy: &str,
    get: impl AsyncFn(&str, &str) -> Answer,
) {
    let mut ends = 0;
    let mut heard_ends = async |wanted: usize| {
        eventually("the ends are said", async || {
            let heard = recorder.take();
            ends += heard.iter().filter(|heard| heard.request.descriptors[0].is_negative_hits).count();
            ends == wanted
        })
        .await;
    };
    // Its body is on its way yet.
    let mut first = TcpStream::connect(proxy).await.unwrap();
    let head = b"POST /busy HTTP/1.1\r\nhost: front\r\nconnection: close\r\ncontent-length: 4\r\n\r\nha";
    first.write_all(head).await.unwrap();
    eventually("it has begun", async || !recorder.take().is_empty()).await;
    for refused in 1..=2 {
        let answer = get("/busy", "").await;
        assert!(answer.status == 429 && answer.head.contains("retry-after: 1\r\n"), "{answer:?}");
        assert!(answer.head.contains("qu=\"concurrent-requests\""), "{answer:?}");
        heard_ends(refused).await;
    }
    first.write_all(b"lf").await.unwrap();
    let mut answer = String::new();
    first.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("served half"), "{answer}");
    heard_ends(3).await;
    assert_eq!(get("/busy", "").await.status, 200);
    heard_ends(4).await;
}
