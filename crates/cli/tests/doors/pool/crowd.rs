//! A thousand connections and ten thousand keys at one door.

use tokio::task::JoinSet;

use super::{Line, RULES, door};
use crate::front::Front;
use crate::house::eventually;

const CONNECTIONS: usize = 1_000;
const KEYS: usize = 10;

#[tokio::test]
async fn a_thousand_connections_and_ten_thousand_keys_are_served() {
    let front = Front::open(RULES, "").await;
    let door = door(&front, &[]).await;
    let mut callers = JoinSet::new();
    for caller in 0..CONNECTIONS {
        let address = door.pool.clone();
        callers.spawn(async move {
            let mut line = Line::open(&address).await;
            for key in 0..KEYS {
                assert_eq!(line.ask(&format!("ACQ4ME key-{caller}-{key} 1 1 0")).await, "LOCKED");
                assert_eq!(line.ask("RELEASE").await, "RELEASED");
            }
            // All of them are there at once, with a lock of one key that lets them.
            assert_eq!(line.ask("ACQ4ME all 500 1000 3600").await, "LOCKED");
            line
        });
    }
    let mut lines = Vec::new();
    while lines.len() < 500 {
        lines.push(callers.join_next().await.unwrap().unwrap());
    }
    eventually("the others wait", async || {
        lines[0].ask("STATS waiting_workers").await == "waiting_workers: 500"
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
    let locks = CONNECTIONS * (KEYS + 1);
    assert_eq!(line.ask("STATS total_acquired").await, format!("total_acquired: {locks}"));
    assert_eq!(line.ask("STATS processed_count").await, format!("processed_count: {locks}"));
    drop(line);
    door.stop().await;
    front.server.stop().await;
}
