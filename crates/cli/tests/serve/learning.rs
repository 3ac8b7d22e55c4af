//! A server that has just started hands out what was out before, within the capacity, and nothing else.

use std::time::SystemTime;

use lessor_client::internals::clock;
use lessor_proto::wire::{GetCapacityRequest, Lease};

use crate::house::holder::{Holder, Nature, ask, claim};
use crate::house::{House, eventually, everything, template};

/// A server that learns for so many seconds.
fn learning(seconds: u32) -> String {
    let lease = 30.max(seconds);
    template(
        "*",
        100.0,
        &format!(
            "{{kind: FAIR_SHARE, lease_length: {lease}, refresh_interval: 1, learning_mode_duration: {seconds}}}"
        ),
    )
}

fn claims(client: &str, wants: f64, has: Lease) -> GetCapacityRequest {
    let mut resource = ask("db", wants);
    resource.has = Some(has);
    GetCapacityRequest { client_id: Some(client.into()), resource: vec![resource], ..Default::default() }
}

/// A lease of another epoch, as a client of Lessor's earlier life shows it.
fn old(capacity: f64) -> Lease {
    Lease {
        epoch: Some(1),
        seq: Some(9),
        token: Some(vec![1; 8]),
        duration_ms: Some(60_000),
        ..claim(capacity)
    }
}

/// The value of a field of the first line that says this.
fn logged(house: &House, message: &str, field: &str) -> String {
    let line = house.logged(message).unwrap_or_else(|| panic!("{message} was not logged"));
    line["fields"][field].as_str().unwrap_or_else(|| panic!("no {field} in {line}")).to_owned()
}

/// The number of seconds from here on to the instant behind `until `.
fn seconds_until(text: &str) -> u64 {
    let instant = text.split_once("until ").expect("an instant").1;
    let instant = humantime::parse_rfc3339(&instant[..20]).expect("an instant by RFC 3339");
    let since_epoch = instant.duration_since(SystemTime::UNIX_EPOCH).expect("it is later");
    since_epoch.saturating_sub(clock::wall().since_epoch).as_secs()
}

#[tokio::test]
async fn the_log_says_for_how_long_and_until_when_leases_and_floors_are_learnt() {
    let config = learning(600).replace("safe_capacity: 5", "safe_fraction: 0.1");
    let house = House::open(&config).await;
    let said = logged(&house, "starting", "learning");
    assert!(said.starts_with("for 612.1s, until "), "{said}");
    assert!((500..=612).contains(&seconds_until(&said)), "{said}");
    let (_, floors) = said.split_once(", and of floors for ").expect("floors last for longer");
    assert!(floors.starts_with("3672.7s, until ") && seconds_until(floors) > 3000, "{said}");
    let warning = "learning what is out: no new lease, no new floor is granted for that long";
    let [leases, floors] = ["leases", "floors"].map(|field| logged(&house, warning, field));
    assert!(leases.starts_with("612.1") && floors.starts_with("3672.7"), "{leases}, {floors}");

    let knows = House::open(&everything(100.0, 30)).await;
    assert_eq!(logged(&knows, "starting", "learning"), "no");
    assert!(!knows.has_logged("learning what is out"));
    let memory = tempfile::tempdir().unwrap();
    let house = House::open_with(&learning(600), &["--state-dir", memory.path().to_str().unwrap()]).await;
    let said = logged(&house, "starting", "learning");
    assert!(said.ends_with(", unless the record says what is out") && !said.contains("floors"), "{said}");
}

#[tokio::test]
async fn claims_come_back_and_lies_get_no_more_than_there_is() {
    let house = House::open(&learning(600)).await;
    let mut server = house.capacity().await;
    let mut granted =
        async |request| server.get_capacity(request).await.unwrap().into_inner().response[0].gets.capacity();
    assert_eq!(granted(claims("echoes", 60.0, old(30.0))).await, 30.0);
    assert_eq!(granted(claims("forgets", 20.0, claim(20.0))).await, 20.0);
    let newcomer = GetCapacityRequest {
        client_id: Some("new".into()),
        resource: vec![ask("db", 5.0)],
        ..Default::default()
    };
    assert_eq!(granted(newcomer).await, 0.0);
    // What is left when the honest have claimed, and then nothing; what the honest have is theirs.
    assert_eq!(granted(claims("liar", 1e9, claim(1e9))).await, 50.0);
    assert_eq!(granted(claims("another liar", 1e9, old(f64::MAX))).await, 0.0);
    assert_eq!(granted(claims("echoes", 60.0, old(30.0))).await, 30.0);
    assert_eq!(granted(claims("forgets", 20.0, claim(20.0))).await, 20.0);

    // There may have been more before than there is, so all that is shown counts until it has ended.
    let resource = house.resource("db").await.unwrap();
    assert_eq!(resource["learning"], true);
    assert!(resource["leased"].as_f64().unwrap() >= 100.0, "{resource}");
    assert_eq!(house.metric("lessor_learning{resource=\"db\"}").await, 1.0);
    house.stop().await;
}

#[tokio::test]
async fn a_liar_who_comes_first_gets_no_more_than_there_is() {
    let house = House::open(&learning(600)).await;
    let mut server = house.capacity().await;
    let mut sum = 0.0;
    for name in ["a", "b", "c"] {
        let answer = server.get_capacity(claims(name, 1e9, claim(1e9))).await.unwrap().into_inner();
        sum += answer.response[0].gets.capacity();
    }
    assert_eq!(sum, 100.0);
    house.stop().await;
}

#[tokio::test]
async fn clients_keep_their_leases_over_a_crash_and_newcomers_wait_until_all_are_known() {
    let mut house = House::open(&everything(100.0, 8)).await;
    let mut server = house.capacity().await;
    let mut clients: Vec<Holder> = [(Nature::Echoes, 10.0), (Nature::Forgets, 200.0), (Nature::Knows, 200.0)]
        .into_iter()
        .map(|(nature, wants)| Holder::new(format!("{nature:?}"), nature, "db", wants))
        .collect();
    for _ in 0..4 {
        for client in &mut clients {
            client.report(&mut server).await.unwrap();
        }
    }
    let before: Vec<f64> = clients.iter().map(Holder::capacity).collect();
    assert_eq!(before, [10.0, 45.0, 45.0]);

    house.crash().await;
    // It learns for a lease length, though less than that is configured.
    let algorithm = "{kind: FAIR_SHARE, lease_length: 8, refresh_interval: 1, learning_mode_duration: 1}";
    house.configure(&template("*", 100.0, algorithm));
    let house = house.start_again().await;
    let mut server = house.capacity().await;
    let mut newcomer = Holder::new("newcomer", Nature::Knows, "db", 40.0);
    assert_eq!(newcomer.report(&mut server).await.unwrap(), 0.0);
    for (client, before) in clients.iter_mut().zip(before) {
        let after = client.report(&mut server).await.unwrap();
        assert_eq!(after, before, "{client:?}");
    }
    assert_eq!(newcomer.report(&mut server).await.unwrap(), 0.0);
    let learning = house.resource("db").await.unwrap()["learning"].clone();
    assert_eq!(learning, true, "too slow: what is tested was over");

    eventually("it has learnt", async || house.resource("db").await.unwrap()["learning"] == false).await;
    clients.push(newcomer);
    // On a loaded machine leases may have ended while it learnt, and what was granted then counts for a little longer.
    eventually("everybody has its share", async || {
        for client in &mut clients {
            client.report(&mut server).await.unwrap();
        }
        clients.iter().map(Holder::capacity).eq([10.0, 30.0, 30.0, 30.0])
    })
    .await;
    house.stop().await;
}
