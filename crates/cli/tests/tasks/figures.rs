//! The figures that a leader shows of what it has written down, and of what its predecessor has left.

use lessor_client::{Client, LeaseState};
use lessor_proto::Amount;
use tokio::time::timeout;

use crate::house::etcd::Etcd;
use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, eventually, everything, run};

const CAPACITY: f64 = 100.0;
/// Of one who holds it and never comes back.
const LOST: f64 = 30.0;

async fn task(etcd: &Etcd, more: &[&str]) -> House {
    let url = etcd.url();
    let flags = ["--etcd", &url, "--ttl", "2s", "--authority", "500ms", "--keep-alive", "100ms"];
    let flags = [&flags, more].concat();
    // Leases last longer than the test.
    House::open_with(&everything(CAPACITY, 300), &flags).await
}

/// A figure of the one resource there is.
async fn of(house: &House, figure: &str) -> f64 {
    house.metric(&format!("{figure}{{resource=\"db\"}}")).await
}

async fn is(house: &House, figure: &str, value: f64) {
    let waiting =
        async || house.resource("db").await.is_some() && (of(house, figure).await - value).abs() < 1e-3;
    eventually(&format!("{figure} is {value}"), waiting).await;
}

pub(crate) async fn until(resource: &mut lessor_client::Rate, units: u64) {
    until_it_has(resource, Amount::from_units(units)).await;
}

pub(crate) async fn until_it_has(resource: &mut lessor_client::Rate, amount: Amount) {
    let has = |lease: &LeaseState| lease.capacity == Some(amount);
    let waiting = async {
        while !has(&resource.lease()) {
            resource.changed().await.unwrap();
        }
    };
    assert!(timeout(AGES, waiting).await.is_ok(), "never {amount}: {:?}", resource.lease());
}

/// Somebody else comes, and what is asked back of `stays` is counted.
async fn ask_back(second: &House, stays: &lessor_client::Rate) -> Client {
    stays.set_wants(CAPACITY);
    let free = CAPACITY - of(second, "lessor_ghost").await;
    is(second, "lessor_leased", free).await;
    let other = Client::builder(second.address().to_string()).id("comes").build().unwrap();
    let _comes = other.rate("db").wants(CAPACITY).open().unwrap();
    eventually("something is asked back", async || of(second, "lessor_recalls_total").await >= 1.0).await;
    is(second, "lessor_leased", free).await;
    assert!(of(second, "lessor_overcommitment").await.abs() < 1e-9);
    other
}

/// Two tasks: the first one leads, until it is killed. What the second one has to say about that.
async fn succeed(claims: &str, after_giving_up: impl Fn(f64) -> f64) {
    let Some(etcd) = Etcd::started().await else { return };
    let mut first = task(&etcd, &["--claims", claims]).await;
    eventually("the first one leads", async || first.metric("lessor_leads").await > 0.0).await;
    let second = task(&etcd, &["--claims", claims]).await;
    let epoch = first.metric("lessor_epoch").await;
    let authority = first.metric("lessor_authority_seconds").await;
    assert!(0.0 < authority && authority <= 0.5, "{authority}");

    let knows = async || (second.metric("lessor_epoch").await - epoch).abs() < 0.5;
    eventually("the second one knows the epoch of the first", knows).await;
    let told = run(&["status", "--server", &second.address().to_string()]).await.out;
    assert!(told.contains(", leads for "), "it asks the first one, which leads: {told}");

    let tasks = [first.address().to_string(), second.address().to_string()];
    let client = Client::builder(&tasks[0]).server(&tasks[1]).id("stays").build().unwrap();
    let mut stays = client.rate("db").wants(40.0).open().unwrap();
    until(&mut stays, 40).await;
    let (mut lost, mut server) = (Holder::new("lost", Nature::Knows, "db", LOST), first.capacity().await);
    let asks = async || {
        lost.ask_in_vain(&mut server).await.unwrap();
        (of(&first, "lessor_leased").await - 70.0).abs() < 1e-3
    };
    eventually("both are charged", asks).await;
    let mark = of(&first, "lessor_mark").await;
    assert!((70.0..=CAPACITY).contains(&mark), "no more is out than is written down: {mark}");
    for (figure, value) in
        [("lessor_capacity", CAPACITY), ("lessor_outstanding", 70.0), ("lessor_ghost", 0.0)]
    {
        is(&first, figure, value).await;
    }

    first.crash().await;
    eventually("the second one leads", async || second.metric("lessor_leads").await > 0.0).await;
    assert!(second.metric("lessor_epoch").await > epoch);
    is(&second, "lessor_leased", 40.0).await;
    let ghost = of(&second, "lessor_ghost").await;
    assert!(ghost >= LOST - 1e-3 && ghost <= mark - 40.0 + 1e-3, "{ghost} of {mark} is not shown");
    is(&second, "lessor_outstanding", 40.0 + ghost).await;
    assert!(of(&second, "lessor_mark").await >= 40.0 + ghost - 1e-3);
    assert!((second.metric("lessor_claims_honoured_total").await - 1.0).abs() < 1e-3);

    // What it gives up of its claim.
    stays.set_wants(10.0);
    is(&second, "lessor_leased", 10.0).await;
    is(&second, "lessor_outstanding", after_giving_up(10.0 + ghost)).await;
    let told = run(&["status", "db", "--server", &tasks[1]]).await.out;
    assert!(told.contains("/s out that nobody has shown yet, for "), "{told}");
    let row = second.resource("db").await.unwrap();
    let ends = row["ghost_ends_in_seconds"].as_f64().unwrap();
    assert!(200.0 < ends && ends < 400.0, "{row}");

    let other = ask_back(&second, &stays).await;
    for client in [client, other] {
        timeout(AGES, client.close()).await.unwrap();
    }
    second.stop().await;
}

#[tokio::test]
async fn a_successor_shows_what_it_does_not_know_the_holders_of() {
    succeed("at-once", |outstanding| outstanding).await;
}

#[tokio::test]
async fn what_is_given_up_of_a_claim_stays_out_where_that_is_deferred() {
    succeed("deferred", |outstanding| outstanding + 30.0).await;
}

#[tokio::test]
async fn a_claim_with_a_token_of_another_key_is_refused_and_counted() {
    let Some(etcd) = Etcd::started().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let [ours, theirs] = [1, 2].map(|number| {
        let path = directory.path().join(number.to_string());
        std::fs::write(&path, format!("{number:064x}")).unwrap();
        path.to_str().unwrap().to_owned()
    });
    let mut first = task(&etcd, &["--token-key", &ours]).await;
    eventually("the first one leads", async || first.metric("lessor_leads").await > 0.0).await;
    let second = task(&etcd, &["--token-key", &theirs]).await;
    let tasks = [first.address().to_string(), second.address().to_string()];
    let client = Client::builder(&tasks[0]).server(&tasks[1]).build().unwrap();
    let mut queries = client.rate("db").wants(CAPACITY).open().unwrap();
    until(&mut queries, 100).await;
    first.crash().await;
    eventually("it is refused", async || second.metric("lessor_claims_forged_total").await >= 1.0).await;
    assert!(second.metric("lessor_claims_honoured_total").await < 1.0);
    // It may have been anybody: what it had is out until it ends.
    assert!((of(&second, "lessor_ghost").await - CAPACITY).abs() < 1e-3);
    assert!(of(&second, "lessor_leased").await < 1e-3);
    timeout(AGES, client.close()).await.unwrap();
    second.stop().await;
}

#[tokio::test]
async fn a_leaf_shows_its_lease_as_its_capacity() {
    let root = House::open(&everything(CAPACITY, 300)).await;
    let parent = root.address().to_string();
    let leaf = House::open_with(&everything(1_000_000.0, 60), &["--node", "leaf", "--parent", &parent]).await;
    let client = Client::builder(leaf.address().to_string()).build().unwrap();
    let mut queries = client.rate("db").wants(30.0).open().unwrap();
    until(&mut queries, 30).await;
    // It has what its client wants, and some of what nobody does.
    let has = async || {
        let capacity = of(&leaf, "lessor_capacity").await;
        (30.0..=CAPACITY).contains(&capacity) && (of(&root, "lessor_leased").await - capacity).abs() < 1e-3
    };
    eventually("its capacity is its lease", has).await;
    is(&leaf, "lessor_leased", 30.0).await;
    is(&root, "lessor_capacity", CAPACITY).await;
    let seconds = of(&leaf, "lessor_lease_seconds").await;
    assert!(200.0 < seconds && seconds <= 300.0, "{seconds}");
    let told = run(&["status", "db", "--server", &leaf.address().to_string()]).await.out;
    assert!(told.contains("  leased 30 of ") && told.contains(", 1 client, by a lease for "), "{told}");
    let text = root.page("/metrics").await.body;
    for figure in ["lessor_lease_seconds", "lessor_mark{"] {
        assert!(!text.contains(figure), "a root that is alone has no {figure}");
    }
    queries.set_wants(500.0);
    until(&mut queries, 100).await;
    is(&leaf, "lessor_capacity", 100.0).await;
    timeout(AGES, client.close()).await.unwrap();
    for house in [leaf, root] {
        house.stop().await;
    }
}
