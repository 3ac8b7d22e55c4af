//! Domains with leases of their own: however many clients ask for one, all together keep to its limit.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Bound, Client, Decision, Rate, Transport};
use lessor_proto::{Amount, Time};
use tokio::time::timeout;

use crate::house::{AGES, House, eventually};

/// The interval at which each client asks.
const STEP: Duration = Duration::from_millis(5);
const SECOND: Duration = Duration::from_secs(1);

/// A configuration in which each tenant may do `limit` a second, `few` five, and probes as they like.
fn tenants(scope: &str, limit: u32) -> String {
    let tiers = |limit| format!("{{tiers: [{{limit: {limit}, window: 1s, active: 1s}}]}}");
    let (usual, few) = (tiers(limit), tiers(5));
    format!(
        "resources:\n- identifier_glob: \"*\"\n  capacity: 1000000\n  burst: 1s\n  algorithm: {{kind: FAIR_SHARE, lease_length: 60, \
         refresh_interval: 1, learning_mode_duration: 0}}\n  domains:\n    scope: {scope}\n    default: {usual}\n    \
         overrides: [{{domain: few, policy: {few}}}]\n    ignore_configured: [probe]\n"
    )
}

/// A client that hammers a domain, and what it was granted.
struct Hammer {
    client: Client,
    rate: Rate,
    hits: Vec<Hit>,
}

/// Not made before the first moment, nor after the second.
#[derive(Clone, Copy)]
struct Hit(Time, Time);

// === impl Hammer ===

impl Hammer {
    /// A client of this server, with a lease of the resource.
    async fn new(house: &House, transport: Transport) -> Hammer {
        let client = Client::builder(house.address().to_string()).transport(transport).build().unwrap();
        let mut rate = client.rate("db").wants(10_000.0).burst(SECOND).open().unwrap();
        while rate.lease().capacity.is_none_or(|capacity| capacity < Amount::from_units(1_000)) {
            timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
        }
        Hammer { client, rate, hits: Vec::new() }
    }

    /// Asks for as many as `most` hits.
    fn ask(&mut self, domain: &str, most: u32) -> Decision {
        let before = clock::now();
        let decision = match self.rate.domain(domain).request(most, 1) {
            Ok(decision) => decision,
            Err(denied) => *denied.decision().expect("a decision on the domain"),
        };
        let hit = Hit(before, clock::now());
        self.hits.extend((0..decision.granted).map(|_| hit));
        decision
    }

    /// The number of hits that it was granted since.
    fn since(&self, time: Time) -> usize {
        self.hits.iter().filter(|Hit(before, _)| *before >= time).count()
    }
}

/// All of them ask for so long. Returns when that began.
async fn hammer(hammers: &mut [&mut Hammer], domain: &str, time: Duration) -> Time {
    let begin = clock::now();
    while clock::now() < begin + time {
        for hammer in &mut *hammers {
            hammer.ask(domain, 10);
        }
        clock::sleep_until(clock::now() + STEP).await;
    }
    begin
}

/// Of all hits together, no more than `limit` certainly lie in one second.
#[track_caller]
fn check(hammers: &[&Hammer], limit: usize) {
    let mut hits: Vec<Hit> = hammers.iter().flat_map(|hammer| hammer.hits.iter().copied()).collect();
    hits.sort_by_key(|Hit(before, _)| *before);
    assert!(hits.len() > limit, "{} hits are no test", hits.len());
    for (first, beyond) in hits.iter().zip(hits.iter().skip(limit)) {
        assert!(beyond.1.since(first.0) >= SECOND, "{} hits within {:?}", limit + 1, beyond.1.since(first.0));
    }
}

#[tokio::test]
async fn clients_of_one_domain_never_pass_its_limit_together_and_what_one_leaves_goes_to_the_other() {
    let house = House::open(&tenants("strict", 50)).await;
    let mut one = Hammer::new(&house, Transport::Stream).await;
    let mut other = Hammer::new(&house, Transport::Poll).await;
    let first = one.ask("tenant", 10);
    assert_eq!((first.granted, first.bound), (0, Some(Bound::Asking)), "its lease is asked for");
    hammer(&mut [&mut one], "tenant", SECOND * 3).await;
    hammer(&mut [&mut one, &mut other], "tenant", SECOND * 5).await;
    let begin = hammer(&mut [&mut one, &mut other], "tenant", SECOND * 3).await;
    let made = [one.since(begin), other.since(begin)];
    assert!(made.iter().all(|&made| made >= 30), "{made:?}: each has its part");
    // The demand of one who asks no more is remembered for four seconds at most.
    hammer(&mut [&mut other], "tenant", SECOND * 5).await;
    let begin = hammer(&mut [&mut other], "tenant", SECOND * 3).await;
    assert!(other.since(begin) >= 90, "{} of 135: it has nearly all", other.since(begin));
    check(&[&one, &other], 50);

    // None of it is a limit for other domains, and whoever needs no lease asks for none.
    let another = one.rate.domain("another");
    let decision = timeout(AGES, another.acquire(1)).await.unwrap().unwrap();
    assert_eq!(decision.granted, 1, "who waits does so for the lease too");
    assert_eq!(one.rate.domain("probe").try_acquire(10).unwrap().granted, 10);
    assert!(house.resource("db|d:another").await.is_some() && house.resource("db|d:probe").await.is_none());
    one.client.close().await;
    eventually("what it had is given back", async || {
        house.resource("db|d:another").await.is_none_or(|resource| resource["leased"] == 0.0)
    })
    .await;
    other.client.close().await;
    house.stop().await;
}

#[tokio::test]
async fn where_parts_are_few_clients_take_turns_and_below_leaves_as_well() {
    let root = House::open(&tenants("strict", 50)).await;
    let parent = root.address().to_string();
    let mut leaves = Vec::new();
    for name in ["left", "right"] {
        leaves.push(House::open_with(&tenants("strict", 50), &["--node", name, "--parent", &parent]).await);
    }
    let mut one = Hammer::new(&leaves[0], Transport::Stream).await;
    let mut other = Hammer::new(&leaves[1], Transport::Stream).await;
    hammer(&mut [&mut one, &mut other], "few", SECOND * 12).await;
    let made = [one.hits.len(), other.hits.len()];
    assert!(made.iter().all(|&made| made >= 5), "{made:?}: nobody is left out");
    check(&[&one, &other], 5);
    one.client.close().await;
    other.client.close().await;
    for leaf in leaves {
        leaf.stop().await;
    }
    root.stop().await;
}

#[tokio::test]
async fn other_policies_and_another_scope_are_taken_up() {
    let house = House::open(&tenants("strict", 5)).await;
    let mut one = Hammer::new(&house, Transport::Stream).await;
    hammer(&mut [&mut one], "tenant", SECOND * 3).await;
    check(&[&one], 5);
    house.configure(&tenants("strict", 100));
    eventually("the limit is higher", async || {
        let begin = hammer(&mut [&mut one], "tenant", SECOND).await;
        one.since(begin) > 40
    })
    .await;
    hammer(&mut [&mut one], "tenant", SECOND * 2).await;
    check(&[&one], 100);
    house.configure(&tenants("client", 10));
    eventually("there is no lease for it any more", async || {
        one.ask("tenant", 10).bound == Some(Bound::Tiers) && one.rate.domains().subleases().is_empty()
    })
    .await;
    one.client.close().await;
    house.stop().await;
}
