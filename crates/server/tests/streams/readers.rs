//! A client that does not read.

use std::time::Duration;

use lessor_proto::wire::session_down::Message as Down;
use lessor_proto::wire::session_up_request::Message as Up;
use tonic::transport::Endpoint;

use crate::house::{House, eventually, soon};
use crate::raw::{Talk, connect, hello, report};

/// The window of the client: what may be on its way to somebody who does not read.
const WINDOW: u32 = 65_535;
/// The number of bytes that the server has taken for the connection at once before it sees that the window is
/// closed.
const TAKEN: u32 = 64 << 10;
const RESOURCES: usize = 200;
/// A report of more resources is heard in parts of so many, each of which is answered.
const PART: usize = 64;
/// A grant of one resource takes more than so many bytes.
const GRANT: usize = 40;
const REPORTS: u64 = 200;
/// A refusal takes more than a hundred bytes.
const MOST_REFUSALS: u64 = (WINDOW + TAKEN) as u64 / 100 + 3;

/// Somebody who says hello, and from then on lets the window fill up.
async fn deaf(house: &House) -> Talk {
    let endpoint = Endpoint::from_shared(format!("http://{}", house.address())).unwrap();
    let endpoint = endpoint.initial_stream_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let channel = soon(endpoint.connect()).await.unwrap();
    Talk::begin(channel, Up::Hello(hello("deaf"))).await.unwrap()
}

/// Somebody else is served as ever.
async fn check_undisturbed(house: &House) {
    let mut talk = Talk::open(connect(house).await, "other").await;
    talk.say(Up::Report(report(1, &[("db", 30.0)]))).await;
    let granted = talk.hear().await;
    assert!(matches!(&granted, Down::Grants(grants) if grants.grant.len() == 1), "{granted:?}");
}

#[tokio::test]
async fn what_is_not_read_is_not_sent() {
    let house = House::open().await;
    let mut deaf = deaf(&house).await;
    let names: Vec<String> = (0..RESOURCES).map(|number| format!("resource-{number}")).collect();
    let last = 1.0 + REPORTS as f64 / 10.0;
    for id in 1..=REPORTS {
        let wants = 1.0 + id as f64 / 10.0;
        let resources: Vec<(&str, f64)> = names.iter().map(|name| (name.as_str(), wants)).collect();
        deaf.say(Up::Report(report(id, &resources))).await;
    }
    eventually("all has been heard", async || {
        house.metric("lessor_stream_messages_received_total") == 1 + REPORTS
    })
    .await;
    // A message of the resources of a part takes so many bytes that only a few fit.
    let most = (WINDOW + TAKEN) as usize / (PART * GRANT) + 3;
    let sent = house.metric("lessor_stream_messages_sent_total");
    assert!(
        sent <= most as u64,
        "{sent} messages have been sent to somebody who does not read; wanted {most}"
    );

    check_undisturbed(&house).await;

    // When it reads at last, it hears what counts, without all that was due in between.
    let mut heard = 0;
    let mut waiting = names.len();
    while waiting > 0 {
        heard += 1;
        let Down::Grants(grants) = deaf.hear().await else { continue };
        waiting -= grants.grant.iter().filter(|grant| grant.gets.capacity() == last).count();
    }
    assert!(heard <= most + 3, "{heard} messages had been kept; wanted {most}");
    house.end().await;
}

#[tokio::test]
async fn refusals_that_are_not_read_hold_back_their_sender() {
    let house = House::open().await;
    let deaf = deaf(&house).await;
    // A refusal says what was found, so a long name makes a long one.
    let bad = format!("\u{7}{}", "x".repeat(200));
    let received = || house.metric("lessor_stream_messages_received_total") - 1;
    let refused = || house.metric("lessor_stream_reports_refused_total");
    for id in 1..=2 * MOST_REFUSALS {
        deaf.say(Up::Report(report(id, &[(bad.as_str(), 1.0)]))).await;
        // One waits to be taken, one to take its place, and one has just been read or taken.
        let waiting = received() - refused();
        assert!(waiting <= 3, "{waiting} refusals wait");
    }
    eventually("they are refused", async || refused() > 10).await;
    check_undisturbed(&house).await;
    assert!(
        refused() <= MOST_REFUSALS,
        "{} refusals have been sent to somebody who does not read",
        refused()
    );
    drop(deaf);
    eventually("it is gone", async || house.streams().await == 0).await;
    house.end().await;
}

#[tokio::test]
async fn who_reads_nothing_for_too_long_is_given_up_and_stays_charged() {
    let house = House::open_with(|options| options.unread_time = Duration::from_secs(2)).await;
    let deaf = deaf(&house).await;
    let mut reads = Talk::open(connect(&house).await, "reads").await;
    reads.say(Up::Report(report(1, &[("db", 10.0)]))).await;
    assert!(matches!(reads.hear().await, Down::Grants(_)));
    // It goes on to talk, and never reads: there is always something left for it.
    let names: Vec<String> = (0..RESOURCES).map(|number| format!("resource-{number}")).collect();
    for id in 1..=30 {
        let resources: Vec<(&str, f64)> =
            names.iter().map(|name| (name.as_str(), id as f64 / 100.0)).collect();
        deaf.say(Up::Report(report(id, &resources))).await;
    }
    eventually("it is given up", async || house.streams().await == 1).await;
    // The figures may be those of a moment before.
    eventually("nobody is waited for", async || house.metric("lessor_stream_stalled") == 0).await;
    assert!(house.leased("resource-0") > 0.0, "what it has is charged until it is over");
    reads.say(Up::Report(report(2, &[("db", 20.0)]))).await;
    assert!(matches!(reads.hear().await, Down::Grants(_)), "who reads goes on");
    drop(deaf);
    eventually("it is counted", async || house.metric("lessor_streams_ended_total{why=\"unread\"}") == 1)
        .await;
    house.end().await;
}
