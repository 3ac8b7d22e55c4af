//! Streams: many resources, many heartbeats, reports without a pause, and peers that do not read.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::session_up_request::Message;
use lessor_proto::wire::{HelloRequest, ReportRequest, ResourceRequest, SessionDown, SessionUpRequest};
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::Streaming;
use tonic::transport::Endpoint;

use crate::house::AGES;
use crate::house::holder::ask;
use crate::siege::Siege;
use crate::wire::wait;

/// Resources of one stream: as many as the attack had that froze servers once.
const RESOURCES: usize = 90_000;
/// Resources of one report: as many as it may have.
const REPORTED: usize = 18_000;
/// The least time for which streams heartbeat and are read.
const ATTACKED: Duration = Duration::from_secs(8);
/// Bytes that may be on their way to somebody who does not read.
const WINDOW: u32 = 65_535;

/// Opens a stream under that name, and says all of that on it as fast as it is taken.
async fn open(
    to: SocketAddr,
    name: String,
    reports: impl Iterator<Item = ReportRequest> + Send + 'static,
) -> Streaming<SessionDown> {
    let endpoint = Endpoint::from_shared(format!("http://{to}")).unwrap();
    let endpoint = endpoint.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let channel = timeout(AGES, endpoint.connect()).await.expect("it connects in time").unwrap();
    let hello = HelloRequest { id: Some(name), incarnation: Some(7), ..HelloRequest::default() };
    let ups = std::iter::once(Message::Hello(hello)).chain(reports.map(Message::Report));
    let ups = ups.map(|message| SessionUpRequest { message: Some(message) });
    let ups = tokio_stream::iter(ups).chain(tokio_stream::pending());
    let mut server = CapacityClient::new(channel).max_encoding_message_size(4 << 20);
    timeout(AGES, server.session(ups)).await.expect("it is opened in time").unwrap().into_inner()
}

fn report(id: u64, resource: Vec<ResourceRequest>) -> ReportRequest {
    ReportRequest { report_id: Some(id), resource, ..ReportRequest::default() }
}

fn heartbeat(id: u64) -> ReportRequest {
    ReportRequest { renew_all: Some(true), ..report(id, Vec::new()) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_of_streams_that_ask_for_ninety_thousand_resources() {
    // Of each stream only as many are taken as one may have.
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut streams = Vec::new();
            for stream in 0..3 {
                let name = |number: usize| ask(&format!("r{number}"), 1.0);
                let parts = (0..RESOURCES / REPORTED).map(move |part| {
                    report(1 + part as u64, (part * REPORTED..(part + 1) * REPORTED).map(name).collect())
                });
                let reports = parts.chain((100..300).map(heartbeat));
                streams.push(open(house.address(), format!("many-{stream}"), reports).await);
            }
            // They read, or nothing more would come: each for a second, as long as the attack has to last and until more than the
            // hellos was heard. What is not optimised takes its time for a whole report.
            let (begin, mut heard, mut said) = (clock::now(), [0; 3], 0.0);
            while clock::now() < begin + ATTACKED || said <= 3.0 {
                assert!(clock::now() < begin + AGES, "only {said} messages were heard");
                for (stream, heard) in streams.iter_mut().zip(&mut heard) {
                    let read = async {
                        while let Ok(Some(_)) = stream.message().await {
                            *heard += 1;
                        }
                    };
                    let _ = timeout(Duration::from_secs(1), read).await;
                }
                said = house.metric("lessor_stream_messages_received_total").await;
            }
            println!("{said} messages were heard, and {heard:?} answered");
            // A welcome, and grants for a part of what is asked for.
            assert!(heard.iter().all(|&heard| heard > 1), "{heard:?} messages were answered");
            drop(streams);
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_without_a_pause_by_peers_that_do_not_read() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut deaf = Vec::new();
            for stream in 0..4 {
                let wants =
                    |id: u64| (0..50).map(move |number| ask(&format!("r{number}"), id as f64)).collect();
                let reports = (1..1_000_000).map(move |id| report(id, wants(id)));
                deaf.push(open(house.address(), format!("deaf-{stream}"), reports).await);
            }
            wait(Duration::from_secs(6)).await;
            let heard = house.metric("lessor_stream_messages_received_total").await;
            println!("{heard} messages were heard");
            assert!(heard > 4.0, "{heard} messages were heard");
        })
        .await;
}
