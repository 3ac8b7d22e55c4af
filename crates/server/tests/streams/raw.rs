//! Tests of the server's side of a stream, message by message.

use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use lessor_proto::wire::{
    ByeRequest, HelloRequest, Lease, ReportRequest, ResourceRequest, SessionDown, SessionUpRequest,
    StreamReleaseRequest,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status, Streaming};

use crate::house::{House, eventually, soon};

/// One end of a stream.
pub(crate) struct Talk {
    ups: mpsc::Sender<SessionUpRequest>,
    downs: Streaming<SessionDown>,
}

// === impl Talk ===

impl Talk {
    /// Opens a stream that begins with these words.
    pub(crate) async fn begin(channel: Channel, first: Up) -> Result<Talk, Status> {
        let (ups, said) = mpsc::channel(8);
        ups.send(SessionUpRequest { message: Some(first) }).await.unwrap();
        let opened = soon(CapacityClient::new(channel).session(ReceiverStream::new(said))).await?;
        Ok(Talk { ups, downs: opened.into_inner() })
    }

    /// Opens a stream, and is welcome.
    pub(crate) async fn open(channel: Channel, id: &str) -> Talk {
        let mut talk = Talk::begin(channel, Up::Hello(hello(id))).await.unwrap();
        let welcome = talk.hear().await;
        assert!(matches!(&welcome, Down::Welcome(welcome) if welcome.epoch == 1), "{welcome:?}");
        talk
    }

    pub(crate) async fn say(&self, message: Up) {
        soon(self.ups.send(SessionUpRequest { message: Some(message) })).await.unwrap();
    }

    /// Says something of a kind that no server knows yet.
    async fn say_unknown(&self) {
        // A field that is not known leaves nothing.
        soon(self.ups.send(SessionUpRequest { message: None })).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Down {
        let down = soon(self.downs.message()).await.unwrap();
        down.expect("the stream goes on").message.expect("something")
    }

    /// With what the stream ends, whatever comes before.
    async fn end(mut self) -> Result<(), Status> {
        loop {
            match soon(self.downs.message()).await {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(status) => return Err(status),
            }
        }
    }

    /// The lease of the only resource in the next grants.
    async fn hear_grant(&mut self) -> Lease {
        match self.hear().await {
            Down::Grants(mut grants) if grants.grant.len() == 1 => grants.grant.remove(0).gets,
            other => panic!("no grant: {other:?}"),
        }
    }
}

pub(crate) fn hello(id: &str) -> HelloRequest {
    HelloRequest { id: Some(id.to_owned()), incarnation: Some(7), ..HelloRequest::default() }
}

pub(crate) fn report(id: u64, resources: &[(&str, f64)]) -> ReportRequest {
    let ask = |&(name, wants): &(&str, f64)| ResourceRequest {
        resource_id: Some(name.to_owned()),
        priority: Some(0),
        wants: Some(wants),
        ..ResourceRequest::default()
    };
    let resource = resources.iter().map(ask).collect();
    ReportRequest { report_id: Some(id), resource, ..ReportRequest::default() }
}

pub(crate) async fn connect(house: &House) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{}", house.address())).unwrap();
    soon(endpoint.connect()).await.unwrap()
}

#[tokio::test]
async fn a_lease_is_granted_and_given_back() {
    let house = House::open().await;
    let mut talk = Talk::open(connect(&house).await, "web").await;
    talk.say(Up::Report(report(1, &[("db", 30.0)]))).await;
    let lease = talk.hear_grant().await;
    assert_eq!((lease.capacity, lease.basis, lease.epoch), (Some(30.0), Some(1), Some(1)));
    assert_eq!(house.leased("db"), 30.0);

    let release = StreamReleaseRequest { release_id: Some(2), resource_id: vec!["db".into()] };
    talk.say(Up::Release(release)).await;
    let released = talk.hear().await;
    assert!(matches!(&released, Down::Released(released) if released.release_id == 2), "{released:?}");
    assert_eq!(house.leased("db"), 0.0);

    talk.say(Up::Bye(ByeRequest {})).await;
    talk.end().await.unwrap();
    eventually("the stream is gone", async || house.streams().await == 0).await;
    assert_eq!(house.metric("lessor_stream_messages_received_total"), 4);
    assert_eq!(house.metric("lessor_stream_messages_sent_total"), 3);
    house.end().await;
}

#[tokio::test]
async fn whoever_does_not_say_who_it_is_is_told_what_is_missing() {
    let house = House::open().await;
    let channel = connect(&house).await;
    let check = async |first: Up, wanted: &str| {
        let refused = match Talk::begin(channel.clone(), first).await {
            Ok(talk) => talk.end().await,
            Err(status) => Err(status),
        };
        let status = refused.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, wanted));
    };
    check(Up::Report(report(1, &[])), "message: is a report; wanted a hello, as the first message").await;
    check(
        Up::Hello(HelloRequest { id: None, ..hello("") }),
        "hello.id: is missing; wanted 1 to 256 bytes of text without control characters",
    )
    .await;
    check(
        Up::Hello(HelloRequest { incarnation: None, ..hello("web") }),
        "hello.incarnation: is missing; wanted a number that no other life of this holder has",
    )
    .await;
    assert_eq!(house.streams().await, 0);
    house.end().await;
}

#[tokio::test]
async fn a_bad_report_is_refused_and_the_stream_goes_on() {
    let house = House::open().await;
    let mut talk = Talk::open(connect(&house).await, "web").await;
    talk.say(Up::Report(report(5, &[("db", f64::NAN)]))).await;
    let Down::Refused(refused) = talk.hear().await else { panic!("it is refused") };
    assert_eq!((refused.report_id, refused.code), (5, Some(Code::InvalidArgument.into())));
    let reason = "report.resource[0].wants: is NaN; wanted a finite number of at least 0";
    assert_eq!(refused.reason.as_deref(), Some(reason));

    talk.say(Up::Report(report(6, &[("db", 30.0)]))).await;
    assert_eq!(talk.hear_grant().await.capacity, Some(30.0));
    assert_eq!(house.metric("lessor_stream_reports_refused_total"), 1);
    house.end().await;
}

#[tokio::test]
async fn a_message_of_a_later_version_is_passed_over_and_counted() {
    let house = House::open().await;
    let mut talk = Talk::open(connect(&house).await, "web").await;
    for _ in 0..3 {
        talk.say_unknown().await;
    }
    talk.say(Up::Report(report(1, &[("db", 30.0)]))).await;
    assert_eq!(talk.hear_grant().await.capacity, Some(30.0));
    assert_eq!(house.metric("lessor_unknown_messages_total{from=\"below\"}"), 3);
    assert_eq!(house.metric("lessor_unknown_messages_total{from=\"above\"}"), 0);
    // Its hello names no features. A summary has been made when streams were asked for.
    assert_eq!(house.streams().await, 1);
    assert_eq!(house.metric("lessor_streams_older"), 1);
    house.end().await;
}

#[tokio::test]
async fn what_breaks_the_rules_ends_the_stream_and_no_other() {
    let house = House::open().await;
    let channel = connect(&house).await;
    let mut witness = Talk::open(channel.clone(), "witness").await;
    let check = async |message: Up, wanted: &str| {
        let talk = Talk::open(channel.clone(), "web").await;
        talk.say(message).await;
        let status = talk.end().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, wanted));
    };
    check(
        Up::Hello(hello("web")),
        "message: is a hello; wanted a report, a release or a bye after the first",
    )
    .await;
    check(
        Up::Release(StreamReleaseRequest { release_id: None, resource_id: Vec::new() }),
        "release.release_id: is missing; wanted the number that the confirmation repeats",
    )
    .await;
    check(
        Up::Report(ReportRequest { report_id: None, ..report(1, &[]) }),
        "report.report_id: is missing; wanted a number greater than that of any report before",
    )
    .await;
    eventually("they are gone", async || house.streams().await == 1).await;
    witness.say(Up::Report(report(1, &[("db", 30.0)]))).await;
    assert_eq!(witness.hear_grant().await.capacity, Some(30.0));
    house.end().await;
}

#[tokio::test]
async fn the_lease_of_whoever_vanishes_stays_charged() {
    let house = House::open().await;
    let channel = connect(&house).await;
    let mut talk = Talk::open(channel.clone(), "web").await;
    talk.say(Up::Report(report(1, &[("db", 30.0)]))).await;
    talk.hear_grant().await;
    assert_eq!(house.streams().await, 1);
    drop((talk, channel));
    eventually("the stream is gone", async || house.streams().await == 0).await;
    assert_eq!(house.leased("db"), 30.0);
    house.end().await;
}

#[tokio::test]
async fn a_drain_ends_streams_and_opens_no_others() {
    let house = House::open().await;
    let channel = connect(&house).await;
    let talk = Talk::open(channel.clone(), "web").await;
    // The other one never ends by itself.
    let _held = Talk::open(channel, "api").await;
    house.end().await;
    talk.end().await.unwrap();
}

#[tokio::test]
async fn there_are_so_many_streams_and_no_more() {
    let house = House::open_with(|options| options.streams = 2).await;
    let channel = connect(&house).await;
    let first = Talk::open(channel.clone(), "a").await;
    let _second = Talk::open(channel.clone(), "b").await;
    let third = Talk::begin(channel.clone(), Up::Hello(hello("c"))).await;
    let status = third.err().expect("it is refused");
    assert_eq!(
        (status.code(), status.message()),
        (Code::ResourceExhausted, "streams: 3 is over the limit of 2")
    );
    drop(first);
    eventually("there is room", async || house.streams().await == 1).await;
    Talk::open(channel, "c").await;
    house.end().await;
}
