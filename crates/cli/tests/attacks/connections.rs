//! Connections that take places, and bytes that come slowly or never.

use std::time::Duration;

use lessor_client::internals::clock;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::siege::{Newcomers, Siege};
use crate::wire::{dial, in_seconds, wait};

/// A few hundred places, of which an address has half.
const FEW: [&str; 2] = ["--max-connections", "400"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_that_say_nothing() {
    Siege::open(&FEW)
        .await
        .hold(async |house| {
            let mut silent = Vec::new();
            for port in [house.address(), house.http()] {
                for _ in 0..500 {
                    silent.push(dial(66, port).await);
                }
            }
            wait(Duration::from_secs(12)).await;
        })
        .await;
}

/// A place is free when those have been given up that say nothing: who comes waits that long, and who is there not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_many_addresses_that_say_nothing() {
    let siege = Siege::open(&FEW).await;
    siege
        .hold_with(Newcomers::After(Duration::from_secs(11)), async |house| {
            let mut silent = Vec::new();
            for last in 10..14 {
                for _ in 0..100 {
                    silent.push(dial(last, house.address()).await);
                }
            }
            wait(Duration::from_secs(12)).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_prefaces_that_never_end() {
    Siege::open(&FEW)
        .await
        .hold(async |house| {
            let begun = [
                &b"GET /status HTTP/1.1\r\nHost: here\r\nX-Long: "[..],
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n",
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\x40\0\x04\0\0\0\0\0",
            ];
            let mut slow = Vec::new();
            for port in [house.address(), house.http()] {
                for begin in begun {
                    for _ in 0..60 {
                        let mut socket = dial(66, port).await;
                        // One that is turned away may have gone already.
                        let _ = socket.write_all(begin).await;
                        slow.push(socket);
                    }
                }
            }
            let end = in_seconds(4);
            while clock::now() < end {
                for socket in &mut slow {
                    let _ = socket.write_all(b"x").await;
                }
                wait(Duration::from_millis(100)).await;
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_come_and_go() {
    Siege::open(&FEW)
        .await
        .hold(async |house| {
            let end = in_seconds(4);
            while clock::now() < end {
                for port in [house.address(), house.http()] {
                    drop(dial(66, port).await);
                }
            }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_are_asked_for_and_not_read() {
    Siege::open(&FEW)
        .await
        .hold(async |house| {
            let mut asked = Vec::new();
            for port in [house.address(), house.http()] {
                for page in ["/status", "/metrics"] {
                    for _ in 0..10 {
                        let mut socket = dial(66, port).await;
                        let request = format!("GET {page} HTTP/1.1\r\nHost: here\r\n\r\n").repeat(200);
                        let _ =
                            timeout(Duration::from_millis(50), socket.write_all(request.as_bytes())).await;
                        asked.push(socket);
                    }
                }
            }
            wait(Duration::from_secs(2)).await;
        })
        .await;
}
