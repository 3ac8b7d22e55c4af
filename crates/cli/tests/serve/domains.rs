//! Tenants of a client, whose policies come from a server.

use std::time::Duration;

use lessor_client::internals::domain::UNREACHABLE_AFTER;
use lessor_client::snapshot::Query;
use lessor_client::{Bound, Client, Domain, Ground, Rate, Transport};
use lessor_proto::Amount;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::timeout;

use crate::house::{AGES, House, eventually, everything, run};

/// A capacity so large that policies are what limits.
const CAPACITY: f64 = 1e9;

/// A configuration in which each tenant may do `limit` an hour, and `vip` twice as much.
fn tenants(limit: u32) -> String {
    let vip = format!("\n    overrides: [{{domain: vip, policy: {}}}]", an_hour(2 * limit));
    configuration(&format!("scope: client\n    default: {}{vip}", an_hour(limit)))
}

/// The same for every tenant, whose clients tell each other what they did.
fn shared(limit: u32, unheard: &str) -> String {
    configuration(&format!("scope: shared\n    unheard: {unheard}\n    default: {}", an_hour(limit)))
}

fn an_hour(limit: u32) -> String {
    format!("{{tiers: [{{limit: {limit}, window: 1h, active: 1h}}]}}")
}

fn configuration(domains: &str) -> String {
    format!(
        "resources:\n- identifier_glob: \"*\"\n  capacity: {CAPACITY}\n  burst: 1s\n  algorithm: {{kind: FAIR_SHARE, lease_length: 60, \
         refresh_interval: 1, learning_mode_duration: 0}}\n  domains:\n    {domains}\n"
    )
}

/// A client of this server, and a rate that it has leased.
async fn lease(house: &House, transport: Transport) -> (Client, Rate) {
    let client = Client::builder(house.address().to_string()).transport(transport).build().unwrap();
    let mut rate = client.rate("db").wants(CAPACITY).burst(Duration::from_secs(1)).open().unwrap();
    while rate.lease().capacity.is_none_or(|capacity| capacity < Amount::from_units(1_000)) {
        timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
    }
    // What a lease brings has to come in first.
    timeout(AGES, rate.acquire(500)).await.unwrap().unwrap();
    (client, rate)
}

/// Takes as many hits as there are of `copies`, if they are at least `min`, and says how many.
fn hits(domain: &Domain<'_>, copies: u32, min: u32) -> u32 {
    domain.request(copies, min).map_or(0, |decision| decision.granted)
}

/// Asks for more than there can be until that much is granted.
async fn eventually_granted(rate: &Rate, wanted: u32) {
    let mut granted = 0;
    eventually("as much is granted", async || {
        granted += hits(&rate.domain("greedy"), 100, 1);
        assert!(granted <= wanted, "{granted} of {wanted}");
        granted == wanted
    })
    .await;
}

#[tokio::test]
async fn policies_come_with_the_lease_and_one_tenant_does_not_eat_what_the_others_need() {
    for transport in [Transport::Stream, Transport::Poll] {
        let house = House::open(&tenants(20)).await;
        let (client, rate) = lease(&house, transport).await;
        let greedy = rate.domain("greedy").request(100, 1).unwrap();
        assert_eq!((greedy.granted, greedy.bound, greedy.ground), (20, Some(Bound::Tiers), Ground::Policies));
        assert_eq!(hits(&rate.domain("greedy"), 1, 1), 0);
        for modest in 0..10 {
            assert_eq!(hits(&rate.domain(&format!("modest-{modest}")), 20, 20), 20);
        }
        assert_eq!(hits(&rate.domain("vip"), 100, 1), 40);
        let top = rate.snapshot(&Query::busiest(1));
        assert_eq!((top.rows[0].domain.as_str(), top.rows[0].granted, top.rest.domains), ("vip", 40, 11));

        // Twenty more an hour, and none of what was done is forgotten.
        house.configure(&tenants(40));
        eventually_granted(&rate, 20).await;
        let counts = client.metrics().resources[0].domains;
        assert_eq!((counts.granted, counts.refused_by_lease), (20 + 200 + 40 + 20, 0));
        assert_eq!(client.metrics().resources[0].busiest, None);
        let named = client.metrics_naming(2).resources[0].busiest.clone().unwrap();
        let names: Vec<_> = named.rows.iter().map(|row| (row.domain.as_str(), row.granted)).collect();
        assert!(names.contains(&("greedy", 40)) && names.contains(&("vip", 40)), "{names:?}");
        assert_eq!((named.others().domains, named.others().granted, named.counts), (10, 200, counts));
        client.close().await;
        house.stop().await;
    }
}

#[tokio::test]
async fn tenants_are_limited_while_the_server_is_away_and_after_it_has_come_back() {
    let mut house = House::open(&tenants(20)).await;
    let (client, rate) = lease(&house, Transport::Stream).await;
    assert_eq!(hits(&rate.domain("greedy"), 15, 15), 15);
    house.crash().await;
    assert_eq!(hits(&rate.domain("greedy"), 100, 1), 5);
    assert_eq!(hits(&rate.domain("other"), 100, 1), 20);
    let house = house.start_again().await;
    let mut again = rate.clone();
    let _ = timeout(Duration::from_secs(5), again.changed()).await;
    assert_eq!(hits(&rate.domain("greedy"), 100, 1), 0);
    client.close().await;
    house.stop().await;
}

#[tokio::test]
async fn a_leaf_delivers_what_its_own_template_says() {
    let root = House::open(&everything(CAPACITY, 60)).await;
    let parent = root.address().to_string();
    let leaf = House::open_with(&tenants(20), &["--node", "leaf", "--parent", &parent]).await;
    let (client, rate) = lease(&leaf, Transport::Stream).await;
    assert_eq!(hits(&rate.domain("greedy"), 100, 1), 20);
    client.close().await;
    let (client, rate) = lease(&root, Transport::Stream).await;
    let free = rate.domain("greedy").request(100, 1).unwrap();
    assert_eq!((free.granted, free.ground), (100, Ground::NoPolicies), "the root has no policies");
    client.close().await;
    leaf.stop().await;
    root.stop().await;
}

#[tokio::test]
async fn who_waits_is_granted_when_its_tenant_may_go_on() {
    let config = tenants(20).replace("1h", "3s");
    let house = House::open(&config).await;
    let (client, rate) = lease(&house, Transport::Stream).await;
    assert_eq!(hits(&rate.domain("greedy"), 20, 20), 20);
    let decision = timeout(AGES, rate.domain("greedy").acquire(20)).await.unwrap().unwrap();
    assert_eq!((decision.granted, decision.ground), (20, Ground::Policies));
    rate.domain("modest").try_acquire(20).unwrap();
    rate.domain("modest").settle(20, 10);
    assert_eq!(rate.domain("modest").peek(20, 1).granted, 10, "what it did not cost came back");
    client.close().await;
    house.stop().await;
}

/// Clients of this server that tell each other what their tenants do.
async fn talkers(house: &House, count: usize) -> Vec<(Client, Rate)> {
    let mut talkers = Vec::new();
    for _ in 0..count {
        talkers.push(lease(house, Transport::Stream).await);
    }
    eventually("all tell each other", async || domains_of(house).await["clients"] == count).await;
    talkers
}

/// The server's status of what clients tell each other.
async fn domains_of(house: &House) -> serde_json::Value {
    house.resource("db").await.map_or(serde_json::Value::Null, |resource| resource["domains"].clone())
}

/// The first uses half of the limit, and then they ask in turn, and as soon as all use the tenant nobody before all have heard of
/// all. Returns how much they were granted together.
async fn take_turns(talkers: &[(Client, Rate)], house: &House, limit: u32) -> u32 {
    let mut granted = hits(&talkers[0].1.domain("tenant"), limit / 2, 1);
    eventually("the tenant is hot", async || domains_of(house).await["hot"] == 1).await;
    for turn in 1..=limit as usize {
        if turn >= talkers.len() {
            eventually("all have heard of all", async || {
                let left = |(_, rate): &(_, Rate)| rate.domain("tenant").peek(limit, 1).granted;
                talkers.iter().all(|talker| left(talker) == limit.saturating_sub(granted))
            })
            .await;
        }
        let (_, rate) = &talkers[turn % talkers.len()];
        granted += rate.domain("tenant").confirmed(1, 1).await.map_or(0, |decision| decision.granted);
    }
    granted
}

#[tokio::test]
async fn what_one_client_did_counts_at_the_others() {
    let house = House::open(&shared(60, "grant")).await;
    let talkers = talkers(&house, 3).await;
    assert_eq!(take_turns(&talkers, &house, 60).await, 60);
    for (_, rate) in &talkers {
        let denied = timeout(AGES, rate.domain("tenant").confirmed(1, 1)).await.unwrap().unwrap_err();
        assert!(denied.is_over_limit() && denied.retry_after().is_some(), "{denied}");
        let refused = denied.decision().unwrap();
        assert_eq!((refused.granted, refused.bound, refused.others), (0, Some(Bound::Tiers), 2));
    }
    let status = domains_of(&house).await;
    assert_eq!((&status["clients"], &status["hot"]), (&3.into(), &1.into()), "{status}");
    let busiest = &status["busiest"][0];
    assert_eq!((&busiest["domain"], &busiest["clients"]), (&"tenant".into(), &3.into()), "{status}");
    assert_eq!((&busiest["hits_in_tier"], &busiest["tier_limit"]), (&60.into(), &60.into()), "{status}");
    for (client, _) in talkers {
        client.close().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn a_plan_names_the_tenants_that_would_be_refused_and_those_are() {
    let house = House::open(&shared(60, "grant")).await;
    let talkers = talkers(&house, 2).await;
    let used = |talker: usize, domain: &str, copies| hits(&talkers[talker].1.domain(domain), copies, copies);
    assert_eq!([used(0, "tenant", 30), used(0, "other", 30)], [30, 30]);
    eventually("both are hot", async || domains_of(&house).await["hot"] == 2).await;
    assert_eq!(used(1, "tenant", 10), 10);
    eventually("all of it is known", async || domains_of(&house).await["busiest"][0]["hits_in_tier"] == 40)
        .await;

    let (stricter, server) = (shared(35, "grant"), house.address().to_string());
    let file = house.config().with_file_name("stricter.yaml");
    std::fs::write(&file, &stricter).unwrap();
    let plan = ["plan", file.to_str().unwrap(), "--server", &server];
    let planned = run(&[&plan[..], &["--json"]].concat()).await;
    let planned: serde_json::Value = serde_json::from_str(&planned.out).unwrap();
    let domains = &planned["resources"][0]["domains"];
    assert_eq!((&domains["hot"], &domains["refused"]), (&2.into(), &1.into()), "{planned}");
    let named = &domains["some"][0];
    let figures = [&named["domain"], &named["by"], &named["hits"], &named["limit"]];
    assert_eq!(figures, [&json!("tenant"), &json!("tiers"), &json!(40), &json!(35)], "{planned}");
    let text = run(&plan).await.out;
    assert!(text.contains("1 of 2 hot domains would be refused: tenant (40 of 35 in 3600 s)"), "{text}");
    let gated = run(&[&plan[..], &["--fail-if", "domains>0"]].concat()).await;
    assert_eq!(gated.code, Some(5), "{gated:?}");

    house.configure(&stricter);
    house.signal(Signal::HUP);
    eventually("it is so", async || {
        let left = |talker: usize, domain: &str| talkers[talker].1.domain(domain).peek(60, 1).granted;
        (left(0, "tenant"), left(1, "tenant"), left(0, "other")) == (0, 0, 5)
    })
    .await;
    for (client, _) in talkers {
        client.close().await;
    }
    house.stop().await;
}

#[tokio::test]
async fn while_the_server_is_gone_the_least_is_granted_or_nothing_as_is_configured() {
    for (unheard, is_granted) in [("grant", true), ("refuse", false)] {
        let mut house = House::open(&shared(10, unheard)).await;
        let talkers = talkers(&house, 2).await;
        assert_eq!(take_turns(&talkers, &house, 10).await, 10);
        house.crash().await;
        let rate = &talkers[0].1;
        let mut timer = tokio::time::interval(UNREACHABLE_AFTER / 10);
        let mut grounds = Vec::new();
        // Twice as long as without news others count as heard of.
        for _ in 0..20 {
            timer.tick().await;
            match rate.domain("tenant").confirmed(5, 2).await {
                Ok(decision) => grounds.push((decision.granted, decision.ground)),
                Err(denied) => assert_eq!(denied.decision().unwrap().bound, Some(Bound::Tiers)),
            }
        }
        assert_eq!(grounds.first(), is_granted.then_some(&(2, Ground::Unheard)), "{unheard}: {grounds:?}");
        assert_eq!(rate.domain_counts().unheard, grounds.len() as u64);
        for (client, _) in talkers {
            client.close().await;
        }
    }
}
