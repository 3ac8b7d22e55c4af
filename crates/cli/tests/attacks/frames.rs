//! Frames of HTTP/2 that cost their sender nothing.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::GetCapacityRequest;

use crate::house::House;
use crate::siege::Siege;
use crate::wire::{
    CONTINUATION, END_HEADERS, END_STREAM, HEADERS, PING, RESET, SETTINGS, WINDOW_UPDATE, Wire, field, frame,
    headers, in_seconds, message, wait,
};

/// Connections that flood at once.
const FLOODS: u8 = 4;

/// Several connections that say that for some seconds, and begin again when they have been ended.
async fn flood(house: &House, frames: impl Fn(u32) -> Vec<u8> + Copy + Send + 'static) {
    let (address, end) = (house.address(), in_seconds(4));
    let mut floods = tokio::task::JoinSet::new();
    for last in 0..FLOODS {
        floods.spawn(async move {
            let mut said = 0;
            while clock::now() < end {
                said += Wire::open(60 + last, address).await.repeat(end, frames).await;
            }
            said
        });
    }
    let said: u32 = floods.join_all().await.into_iter().sum();
    println!("{said} times");
    assert!(said > u32::from(FLOODS), "they were heard");
}

/// The number of the stream that a client opens so many times.
fn odd(times: u32) -> u32 {
    2 * (times % (1 << 29)) + 1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_are_reset_as_soon_as_they_are_made() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            flood(house, |times| {
                let calls = (0..20).map(|call| odd(times * 20 + call));
                calls.flat_map(|stream| [headers(stream, "GetCapacity"), reset(stream)].concat()).collect()
            })
            .await;
        })
        .await;
}

/// The server is brought to reset streams itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_the_server_has_to_reset() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            flood(house, |times| {
                let calls = (0..20).map(|call| odd(times * 20 + call));
                let spoilt =
                    |stream| [headers(stream, "GetCapacity"), frame(WINDOW_UPDATE, 0, stream, &[0; 4])];
                calls.flat_map(|stream| spoilt(stream).concat()).collect()
            })
            .await;
        })
        .await;
}

fn reset(stream: u32) -> Vec<u8> {
    frame(RESET, 0, stream, &8_u32.to_be_bytes())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_are_opened_and_abandoned() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            let mut abandoned = Vec::new();
            for last in 60..70 {
                let mut wire = Wire::open(last, house.address()).await;
                let streams = (0..900).map(odd);
                let opened: Vec<u8> = streams.flat_map(|stream| headers(stream, "Session")).collect();
                wire.repeat(in_seconds(1), |times| if times == 0 { opened.clone() } else { Vec::new() })
                    .await;
                abandoned.push(wire);
            }
            // No hello comes, no window is opened, no ping is answered.
            wait(Duration::from_secs(3)).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_pings_and_empty_frames() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            flood(house, |_| frame(PING, 0, 0, &[7; 8]).repeat(100)).await;
            flood(house, |_| frame(SETTINGS, 0, 0, &[]).repeat(100)).await;
            flood(house, |times| match times {
                0 => headers(1, "Session"),
                _ => frame(crate::wire::DATA, 0, 1, &[]).repeat(100),
            })
            .await;
        })
        .await;
}

/// Headers that are continued without an end, and a table that is filled again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_without_an_end() {
    Siege::open(&[])
        .await
        .hold(async |house| {
            flood(house, |times| match times {
                0 => frame(HEADERS, 0, 1, &field(("x", "y"))),
                _ => frame(CONTINUATION, 0, 1, &field(("x", &"y".repeat(120))).repeat(100)),
            })
            .await;
            flood(house, |times| {
                // One that is to be remembered, and then the same by its number, thousands of times.
                let long = "y".repeat(120);
                let mut block = field((&format!("x-{times}"), &long));
                block[0] = 0x40;
                block.extend([0x80 | 62; 8_000]);
                frame(HEADERS, END_HEADERS | END_STREAM, odd(times), &block)
            })
            .await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_without_a_pause_of_which_no_answer_is_read() {
    Siege::open(&["--max-requests-per-address", "500"])
        .await
        .hold(async |house| {
            flood(house, |times| {
                let stream = odd(times);
                let ask = GetCapacityRequest {
                    client_id: Some(format!("flood-{}", times % 8)),
                    resource: vec![crate::house::holder::ask("plenty", 0.0)],
                    ..GetCapacityRequest::default()
                };
                [headers(stream, "GetCapacity"), message(stream, END_STREAM, &ask)].concat()
            })
            .await;
        })
        .await;
}
