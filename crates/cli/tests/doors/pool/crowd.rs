//! Many connections and ten times as many keys at one door: `LESSOR_POOL_CROWD=1000` takes a minute or two, unoptimised.

use tokio::task::JoinSet;

use super::{Line, RULES, door};
use crate::front::Front;
use crate::house::eventually;

/// Connections where nobody says how many; the most that the rules let work on one key is half of a thousand.
const CONNECTIONS: usize = 200;
const MOST: usize = 1_000;
/// Keys of each.
const KEYS: usize = 10;

#[tokio::test]
async fn many_connections_and_ten_times_as_many_keys_are_served() {
    let connections =
        std::env::var("LESSOR_POOL_CROWD").ok().map_or(CONNECTIONS, |number| number.parse().unwrap());
    assert!((2..=MOST).contains(&connections) && connections.is_multiple_of(2), "{connections} connections");
    let half = connections / 2;
    let front = Front::open(RULES, "").await;
    let door = door(&front, &[]).await;
    let mut callers = JoinSet::new();
    for caller in 0..connections {
        let address = door.pool.clone();
        callers.spawn(async move {
            let mut line = Line::open(&address).await;
            for key in 0..KEYS {
                assert_eq!(line.ask(&format!("ACQ4ME key-{caller}-{key} 1 1 0")).await, "LOCKED");
                assert_eq!(line.ask("RELEASE").await, "RELEASED");
            }
            // All of them are there at once, with a lock of one key that lets them.
            assert_eq!(line.ask(&format!("ACQ4ME all {half} {connections} 3600")).await, "LOCKED");
            line
        });
    }
    let mut lines = Vec::new();
    while lines.len() < half {
        lines.push(callers.join_next().await.unwrap().unwrap());
    }
    eventually("the others wait", async || {
        lines[0].ask("STATS waiting_workers").await == format!("waiting_workers: {half}")
    })
    .await;
    // They are gone, and the others have it.
    drop(lines);
    while let Some(line) = callers.join_next().await {
        drop(line.unwrap());
    }
    let mut line = Line::open(&door.pool).await;
    eventually("nobody is left", async || {
        line.ask("STATS hashtable_entries").await == "hashtable_entries: 0"
    })
    .await;
    let locks = connections * (KEYS + 1);
    assert_eq!(line.ask("STATS total_acquired").await, format!("total_acquired: {locks}"));
    assert_eq!(line.ask("STATS processed_count").await, format!("processed_count: {locks}"));
    drop(line);
    door.stop().await;
    front.server.stop().await;
}
