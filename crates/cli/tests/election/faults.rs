//! The test: what becomes of everybody when leaders fail, one after the other, and then etcd.

use std::time::Duration;

use lessor_client::internals::clock;

use crate::handover::{self, AT_ONCE};
use crate::house::etcd::Etcd;
use crate::house::eventually;
use crate::newcomer::{Guest, served};
use crate::node::{AUTHORITY, Fault, TTL};
use crate::town::{EAST, ROOT, Town, WEST};

/// The time after it was hit by which a leader that lost its leadership has said its last word.
const LAST_WORD: Duration = AUTHORITY.saturating_add(Duration::from_millis(500));

/// The time for which a leader may not act that is to go on: its key is there for longer.
const LAPSE: Duration = Duration::from_secs(1);

/// The name of the resource that nearly nobody wants.
const QUIET: &str = "quiet";

pub(crate) async fn test() {
    let seed = match std::env::var("LESSOR_TEST_SEED") {
        Ok(seed) => seed.parse().expect("LESSOR_TEST_SEED is a number"),
        Err(_) => rand::random::<u64>(),
    };
    println!("LESSOR_TEST_SEED={seed}");
    let Some(etcd) = Etcd::started().await else { return };
    let began = clock::now();
    let mut town = Town::start(etcd, seed).await;
    println!("everybody is served after {:?}", clock::now().since(began));
    town.check("at first", &[]).await;
    // Of this there is always enough.
    let guest = Guest::comes("guest", &town.nodes[ROOT].addresses(), QUIET).await;
    handover::test(&mut town).await;
    let mut quiet = Duration::MAX;
    for (node, fault) in [
        (ROOT, Fault::Killed),
        (WEST, Fault::Killed),
        (ROOT, Fault::Frozen),
        (EAST, Fault::Frozen),
        (ROOT, Fault::CutOff),
        (WEST, Fault::CutOff),
    ] {
        let waited = fail_over(&mut town, node, fault).await;
        quiet = if node == ROOT { quiet.min(waited) } else { quiet };
    }
    assert!(quiet < AT_ONCE, "where there is enough, newcomers waited {quiet:?} at the least");
    fall_together(&mut town).await;
    lapse(&mut town).await;
    restart_etcd(&mut town).await;
    guest.leaves().await;
    println!("all done after {:?}", clock::now().since(began));
    town.stop().await;
}

/// Hits the leader of a node, and looks on until another has served everybody.
async fn fail_over(town: &mut Town, node: usize, fault: Fault) -> Duration {
    let (name, before) = (town.nodes[node].name, town.processes());
    let old = town.nodes[node].leader().await;
    let hit = clock::now();
    town.nodes[node].inflict(old, fault).await;
    clock::sleep_until(hit + LAST_WORD).await;
    let newcomer = town.join(node, 1);
    let addresses = town.nodes[node].addresses();
    town.nodes[node].leader_but(old).await;
    let elected = clock::now();
    let when = format!("{name} {fault:?}");
    // Whoever had come before would have been told that nobody leads, and come back when it comes back.
    let quiet = served(&addresses, QUIET).await.since(elected);
    let newcomer = town.newcomers(newcomer).await[0];
    let holders = town.holders(node, before, hit + LAST_WORD).await;
    println!(
        "{when}: another leads after {:?} (ttl {TTL:?}), a newcomer is served after {:?}, and {quiet:?} after the election where there \
         is enough, holders after {:?} to {:?}",
        elected.since(hit),
        newcomer.since(hit),
        holders[0].since(hit),
        holders[holders.len() - 1].since(hit),
    );
    if node == ROOT {
        town.know_leaves().await;
        println!("{when}: both leaves are known after {:?}", clock::now().since(hit));
    }
    town.check(&when, &[node]).await;
    town.mend(node, old).await;
    quiet
}

/// Kills the leader of a leaf and that of the root at once: their successors take nothing away either.
async fn fall_together(town: &mut Town) {
    let before = town.processes();
    let hit = clock::now();
    let mut old = Vec::new();
    for node in [ROOT, WEST] {
        let leader = town.nodes[node].leader().await;
        town.nodes[node].inflict(leader, Fault::Killed).await;
        old.push((node, leader));
    }
    clock::sleep_until(hit + LAST_WORD).await;
    for &(node, old) in &old {
        town.nodes[node].leader_but(old).await;
    }
    println!("root and west killed: others lead after {:?}", clock::now().since(hit));
    for node in [ROOT, WEST, EAST] {
        let holders = town.holders(node, before, hit + LAST_WORD).await;
        let name = town.nodes[node].name;
        println!("{name}: holders are served until {:?}", holders[holders.len() - 1].since(hit));
    }
    town.know_leaves().await;
    town.check("root and west killed", &[ROOT, WEST]).await;
    for (node, old) in old {
        town.mend(node, old).await;
    }
}

/// Cuts the leader of a leaf off from etcd until it may not act, but not until its key ends: nobody below it comes back, and
/// everybody is served when it may act again.
async fn lapse(town: &mut Town) {
    let (before, node) = (town.processes(), &mut town.nodes[WEST]);
    let leader = node.leader().await;
    let opened = node.streams_opened(leader).await;
    let hit = clock::now();
    node.inflict(leader, Fault::CutOff).await;
    eventually("the authority of a leader lapses", async || !node.leads(leader).await).await;
    let lapsed = clock::now();
    clock::sleep_until(lapsed + LAPSE).await;
    node.mend(leader).await;
    let resumed = clock::now();
    node.leader().await;
    let leads = clock::now();
    let holders = town.holders(WEST, before, resumed).await;
    let opened_now = town.nodes[WEST].streams_opened(leader).await;
    println!(
        "west lapsed after {:?}, and leads {:?} after it hears of etcd again, holders are served after {:?} to {:?}; {} streams opened",
        lapsed.since(hit),
        leads.since(resumed),
        holders[0].since(resumed),
        holders[holders.len() - 1].since(resumed),
        opened_now - opened,
    );
    // Where its key has ended all the same, as on a machine that is slow, that is said, and they had to come back.
    if town.check("west lapsed", &[]).await {
        assert!(opened_now <= opened, "nobody had to come back, and {} did", opened_now - opened);
    }
}

/// Kills etcd, until no leader may act, and starts it again: all of them go on.
async fn restart_etcd(town: &mut Town) {
    let before = town.processes();
    let hit = clock::now();
    town.etcd.kill();
    clock::sleep_until(hit + LAST_WORD).await;
    for node in &town.nodes {
        assert_eq!(node.leads_now().await, None, "{}: nobody may act", node.name);
    }
    assert!(town.etcd.start().await, "etcd starts again");
    let served = clock::now();
    let mut rows = Vec::new();
    for node in [ROOT, WEST, EAST] {
        rows.push((node, town.join(node, 1), clock::now()));
    }
    for (node, _, leads) in &mut rows {
        town.nodes[*node].leader().await;
        *leads = clock::now();
    }
    for (node, newcomer, leads) in rows {
        let newcomer = town.newcomers(newcomer).await[0];
        let holders = town.holders(node, before, hit + LAST_WORD).await;
        println!(
            "etcd restarted: {} is led {:?} after it serves, a newcomer is served after {:?}, holders after {:?} to {:?}",
            town.nodes[node].name,
            leads.since(served),
            newcomer.since(served),
            holders[0].since(served),
            holders[holders.len() - 1].since(served),
        );
    }
    town.check("etcd restarted", &[]).await;
}
