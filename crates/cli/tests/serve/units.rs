//! Units of gauges that are recalled while they are being taken: permits of all clients, counted.

use std::sync::atomic::{AtomicU32, Ordering};

use lessor_client::{Client, Gauge, Permit, Rung};
use tokio::time::timeout;

use crate::crash::{is, until};
use crate::house::{AGES, House, eventually};

const POOLS: &str = "resources:
- identifier_glob: \"pool-*\"
  kind: gauge
  capacity: 10
  safe_capacity: 0
  algorithm: {kind: FAIR_SHARE, lease_length: 20, refresh_interval: 1, learning_mode_duration: 0}
- identifier_glob: licences
  kind: gauge
  capacity: 2
  safe_capacity: 0
  quantum: 100ms
  algorithm: {kind: FAIR_SHARE, lease_length: 20, refresh_interval: 1, learning_mode_duration: 0}
";

/// The number of occasions that are given to what may happen in an instant.
const TRIALS: u32 = 10;
/// The number of jobs that each of five clients does with one of two licences.
const JOBS: u32 = 3;

async fn client(house: &House, id: &str) -> Client {
    Client::builder(house.address().to_string()).id(id).connect().await.unwrap()
}

/// Takes all that there is.
fn take_all(gauge: &Gauge, permits: &mut Vec<Permit>) {
    while let Ok(permit) = gauge.try_acquire(1) {
        permits.push(permit);
    }
}

#[tokio::test]
async fn a_gauge_that_is_recalled_just_after_permits_were_taken_is_not_handed_on() {
    let house = House::open(POOLS).await;
    let (old, new) = (client(&house, "old").await, client(&house, "new").await);
    for trial in 0..TRIALS {
        let name = format!("pool-{trial}");
        let mut first = old.gauge(&name).wants(10.0).open().unwrap();
        until(&mut first, "leased", |lease| is(lease, Rung::Leased, 10)).await;
        let (mut olds, mut news) = (Vec::new(), Vec::new());
        take_all(&first, &mut olds);
        assert_eq!(olds.len(), 10);
        let mut second = new.gauge(&name).wants(10.0).open().unwrap();
        until(&mut first, "recalled", |lease| is(lease, Rung::Leased, 5)).await;
        until(&mut second, "answered", |lease| lease.rung == Rung::Leased).await;
        // Many trips over the loopback: what is not handed on by then waits for the permits.
        let sent = old.metrics().counts.received;
        eventually("another word from the server", async || {
            take_all(&second, &mut news);
            assert!(olds.len() + news.len() <= 10, "trial {trial}: {} of 10", olds.len() + news.len());
            old.metrics().counts.received >= sent + 2
        })
        .await;
        assert_eq!(news.len(), 0, "ten are out");

        olds.truncate(5);
        eventually("the others have the rest", async || {
            take_all(&first, &mut olds);
            take_all(&second, &mut news);
            assert!(olds.len() + news.len() <= 10, "trial {trial}: {} of 10", olds.len() + news.len());
            news.len() == 5
        })
        .await;
        assert!(olds.iter().chain(&news).all(|permit| permit.units() == 1));
    }
    timeout(AGES, old.close()).await.unwrap();
    house.stop().await;
}

#[tokio::test]
async fn clients_that_only_acquire_and_release_share_two_licences() {
    let house = House::open(POOLS).await;
    let (out, most) = (AtomicU32::new(0), AtomicU32::new(0));
    let work = async |index: u32| {
        let client = client(&house, &format!("web-{index}")).await;
        let licences = client.gauge("licences").max_wait(AGES).open().unwrap();
        for _ in 0..JOBS {
            let permit = licences.acquire(1).await.unwrap_or_else(|refused| panic!("web-{index}: {refused}"));
            most.fetch_max(out.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Until the server has spoken twice: it may have recalled the licence, and heard what is in use of it.
            let heard = client.metrics().counts.received;
            eventually("two words from the server", async || client.metrics().counts.received >= heard + 2)
                .await;
            assert!(!permit.is_expired(), "web-{index} keeps what it uses");
            out.fetch_sub(1, Ordering::SeqCst);
            drop(permit);
        }
        client.close().await;
    };
    let all = async { tokio::join!(work(0), work(1), work(2), work(3), work(4)) };
    timeout(AGES * 2, all).await.expect("everybody is served in time");
    assert!((1..=2).contains(&most.load(Ordering::SeqCst)), "{most:?} of 2");
    house.stop().await;
}
