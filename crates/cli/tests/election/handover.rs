//! Planned restarts: leaders are told to end while everybody streams. They leave a record that says they have stopped, so
//! nobody waits for anything, and whoever comes to the root in between is served within a second.

use std::time::Duration;

use etcd_client::WatchStream;
use lessor_client::internals::clock;
use tokio::time::timeout;

use crate::house::AGES;
use crate::newcomer::served;
use crate::node::{Fault, TTL};
use crate::town::{ROOT, Town, WEST};

/// So often: the machine may be busy with something else at one time.
const ROUNDS: usize = 3;
/// The time after the leader was told to end by which a newcomer is served, at least once.
pub(crate) const AT_ONCE: Duration = Duration::from_secs(1);

pub(crate) async fn test(town: &mut Town) {
    let mut shortest = Duration::MAX;
    for round in 1..=ROUNDS {
        shortest = hand_over(town, ROOT, round).await.min(shortest);
    }
    assert!(shortest < AT_ONCE, "whoever came in between waited {shortest:?} at the least");
    // A leaf may wait for claims of its ghost before it asks above.
    hand_over(town, WEST, ROUNDS + 1).await;
}

/// Ends the leader of a node, and returns the time from when it was told to end until a newcomer was served
/// that came when it had ended.
async fn hand_over(town: &mut Town, node: usize, round: usize) -> Duration {
    let (name, before) = (town.nodes[node].name, town.processes());
    let old = town.nodes[node].leader().await;
    let mut etcd = etcd_client::Client::connect([town.etcd.url()], None).await.unwrap();
    let epochs = etcd.watch(format!("lessor/{name}/reign"), None).await.unwrap();
    let epoch = town.nodes[node].epoch().await;

    let hit = clock::now();
    town.nodes[node].tell_to_end(old);
    // What it grants until then it grants as leader.
    town.nodes[node].inflict(old, Fault::Ended).await;
    let ended = clock::now();
    let waited = served(&town.nodes[node].addresses(), "db").await.since(hit);
    town.nodes[node].leader_but(old).await;
    let until_the_key_ends = node == ROOT && waited >= TTL;
    assert!(!until_the_key_ends, "a newcomer waited {waited:?}: nobody has to wait until the key ends");
    is_closed(epochs, epoch).await;

    let holders = town.holders(node, before, ended).await;
    println!(
        "{name} is told to end, {round}: it has after {:?}, a newcomer is served after {waited:?}, holders after {:?} to {:?}",
        ended.since(hit),
        holders[0].since(hit),
        holders[holders.len() - 1].since(hit),
    );
    if node == ROOT {
        town.know_leaves().await;
        println!("both leaves are known after {:?}", clock::now().since(hit));
    }
    town.check(&format!("{name} handed over"), &[node]).await;
    town.mend(node, old).await;
    waited
}

/// The leader of `epoch` has written that it has stopped.
async fn is_closed(mut epochs: WatchStream, epoch: f64) {
    let mut written: Vec<String> = Vec::new();
    let closed = async {
        while let Some(response) = epochs.message().await.unwrap() {
            for event in response.events() {
                written.extend(event.kv().map(|kv| kv.value_str().unwrap().to_owned()));
            }
            if written.iter().any(|header| {
                header.contains(&format!(" epoch {epoch:.0} ")) && header.contains(" closed yes ")
            }) {
                return;
            }
        }
    };
    assert!(timeout(AGES, closed).await.is_ok(), "nothing is closed in {written:#?}");
}
