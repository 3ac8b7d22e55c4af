//! A storm of pushes: a whale of a higher priority takes half the capacity from all streams and gives it back, again and
//! again, while a caller without a stream asks for a lease of its own.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

/// The time for which calls are made, with a storm and without.
const TURN: Duration = Duration::from_secs(4);
/// The time between two calls, and between two changes of the whale.
const BETWEEN_CALLS: Duration = Duration::from_millis(2);
const BETWEEN_CHANGES: Duration = Duration::from_millis(500);

/// The time that calls took, in milliseconds.
pub(crate) struct Calls {
    pub(crate) median: f64,
    pub(crate) p99: f64,
    pub(crate) longest: f64,
}

/// Calls while nothing else happens.
pub(crate) async fn calm(server: SocketAddr) -> Calls {
    call(connect(server).await).await
}

/// Calls while the whale comes and goes.
pub(crate) async fn storm(server: SocketAddr, streams: usize) -> Calls {
    let half = streams as f64 * crate::WANTS / 4.0;
    let (end, ended) = oneshot::channel();
    let whale = tokio::spawn(whale(connect(server).await, half, ended));
    let calls = call(connect(server).await).await;
    end.send(()).expect("it comes and goes");
    whale.await.expect("it gives back what it has");
    calls
}

async fn connect(server: SocketAddr) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{server}")).expect("an address");
    endpoint.tcp_nodelay(true).connect().await.expect("it listens")
}

async fn call(channel: Channel) -> Calls {
    let mut server = CapacityClient::new(channel);
    let (start, mut took) = (clock::now(), Vec::new());
    let mut has = None;
    while clock::now() < start + TURN {
        let resource = wire::ResourceRequest {
            resource_id: Some("db".to_owned()),
            priority: Some(0),
            wants: Some(1.0),
            has: has.take(),
            ..wire::ResourceRequest::default()
        };
        let request = wire::GetCapacityRequest {
            client_id: Some("caller".to_owned()),
            resource: vec![resource],
            ..wire::GetCapacityRequest::default()
        };
        let before = clock::now();
        let answer = server.get_capacity(request).await.expect("an answer").into_inner();
        took.push(clock::now().since(before).as_secs_f64() * 1e3);
        has = answer.response.into_iter().next().map(|response| response.gets);
        clock::sleep_until(clock::now() + BETWEEN_CALLS).await;
    }
    took.sort_by(f64::total_cmp);
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Calls { median: at(0.5), p99: at(0.99), longest: at(1.0) }
}

/// Takes `half` and gives it back until that is ended.
async fn whale(channel: Channel, half: f64, mut ended: oneshot::Receiver<()>) {
    let (ups, said) = mpsc::channel(8);
    let hello = wire::HelloRequest {
        id: Some("whale".to_owned()),
        incarnation: Some(u64::MAX / 2),
        ..wire::HelloRequest::default()
    };
    ups.send(wire::SessionUpRequest { message: Some(Up::Hello(hello)) }).await.expect("it has room");
    let mut server = CapacityClient::new(channel);
    let mut downs = server.session(ReceiverStream::new(said)).await.expect("it is welcome").into_inner();
    let (mut lease, mut wants, mut reports, mut next): (Option<wire::Lease>, _, _, _) =
        (None, 0.0, 0, clock::now());
    loop {
        tokio::select! {
            _ = &mut ended => {
                ups.send(wire::SessionUpRequest { message: Some(Up::Bye(wire::ByeRequest {})) }).await.expect("it is heard");
                // The server ends the stream when it has heard that.
                while let Ok(Some(_)) = downs.message().await {}
                return;
            }
            () = clock::sleep_until(next) => {
                wants = if wants > 0.0 { 0.0 } else { half };
                next += BETWEEN_CHANGES;
            }
            down = downs.message() => {
                let Some(Down::Grants(grants)) = down.expect("the stream goes on").and_then(|down| down.message) else {
                    continue;
                };
                let Some(grant) = grants.grant.into_iter().next_back() else { continue };
                let wanted = grant.gets.ack_wanted == Some(true);
                lease = Some(grant.gets);
                if !wanted {
                    continue;
                }
            }
        }
        reports += 1;
        let held = lease.as_ref().map(|lease| lease.capacity().min(wants));
        let resource = wire::ResourceRequest {
            resource_id: Some("db".to_owned()),
            priority: Some(5),
            wants: Some(wants),
            has: lease.clone(),
            held,
            ..wire::ResourceRequest::default()
        };
        let report = wire::ReportRequest {
            report_id: Some(reports),
            resource: vec![resource],
            ..wire::ReportRequest::default()
        };
        if ups.send(wire::SessionUpRequest { message: Some(Up::Report(report)) }).await.is_err() {
            return;
        }
    }
}

/// The histogram of the time for which the lock was held at once: how often it was no longer than so many seconds.
pub(crate) async fn turns(server: SocketAddr, metric: &str) -> String {
    let mut stream = TcpStream::connect(server).await.expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let bucket = format!("{metric}_bucket{{le=");
    let buckets = answer.lines().filter_map(|line| line.strip_prefix(&bucket));
    let of = |line: &str| line.trim_matches('"').replace("\"} ", ": ");
    buckets.map(of).collect::<Vec<_>>().join(", ")
}
