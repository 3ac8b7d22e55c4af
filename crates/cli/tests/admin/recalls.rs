//! Recalls: what is taken back is charged until it is given back or has ended, and does not come straight back.

use lessor_client::{Client, LeaseState};
use lessor_proto::Amount;
use tokio::time::timeout;

use crate::desk::Desk;
use crate::gate::Gate;
use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, eventually};

const RULES: &str = "default: audit\n";
const CAPACITY: f64 = 1000.0;

async fn open() -> (Gate, Desk) {
    let gate = Gate::open_with(RULES, &["--admin", "127.0.0.1:0"]).await;
    let desk = Desk::new(gate.house.admin().unwrap());
    (gate, desk)
}

fn body(holder: &str, time: &str) -> String {
    serde_json::json!({"resource": "db", "holder": holder, "for": time}).to_string()
}

async fn until(rate: &mut lessor_client::Rate, amount: f64) {
    let has = |lease: &LeaseState| lease.capacity == Some(Amount::from_f64(amount));
    let waiting = async {
        while !has(&rate.lease()) {
            rate.changed().await.unwrap();
        }
    };
    assert!(timeout(AGES, waiting).await.is_ok(), "never {amount}: {:?}", rate.lease());
}

#[tokio::test]
async fn who_listens_gives_up_all_at_once_and_has_it_back_when_the_time_is_over() {
    let (gate, desk) = open().await;
    let client = Client::builder(gate.house.address().to_string()).id("web-1").build().unwrap();
    let mut rate = client.rate("db").wants(600.0).open().unwrap();
    let mut users = client.rate("users").wants(5.0).open().unwrap();
    until(&mut rate, 600.0).await;
    until(&mut users, 5.0).await;
    let mut other = gate.stranger().await;
    assert_eq!(other.get("x", "db", 400.0).await.unwrap(), 400.0);

    let told = desk.call("POST", "/admin/recall", Some(&body("web-1", "4s"))).await.done();
    let lease = &told["leases"][0];
    assert_eq!(
        (&lease["kind"], &lease["charged"], &lease["told"]),
        (&"client".into(), &600.0.into(), &true.into()),
        "{told}"
    );
    let ends = lease["ends_in_seconds"].as_f64().unwrap();
    assert!(0.0 < ends && ends <= 21.0, "{told}");
    until(&mut rate, 0.0).await;
    // Whatever it says, it gets nothing more: all of it is another's, and no more than there is.
    eventually("another has it", async || {
        assert!(gate.outstanding().await <= CAPACITY);
        other.get("x", "db", CAPACITY).await.unwrap() == CAPACITY
    })
    .await;
    let listed = desk.get("/admin/recall").await.done();
    assert_eq!(listed["recalls"][0]["holder"], "web-1");
    assert_eq!(rate.lease().capacity, Some(Amount::ZERO));
    assert_eq!(
        users.lease().capacity,
        Some(Amount::from_f64(5.0)),
        "and nobody else is cut off, nor it elsewhere"
    );
    assert_eq!(gate.outstanding().await, CAPACITY);

    eventually("its time is over", async || {
        other.get("x", "db", CAPACITY).await.unwrap();
        assert!(gate.outstanding().await <= CAPACITY);
        rate.lease().capacity == Some(Amount::from_f64(500.0))
    })
    .await;
    assert_eq!(desk.get("/admin/recall").await.done()["recalls"], serde_json::json!([]));
    drop((rate, users));
    gate.house.stop().await;
}

#[tokio::test]
async fn who_says_nothing_stays_charged_until_its_lease_has_ended() {
    let (gate, desk) = open().await;
    let (mut silent, mut other) = (gate.stranger().await, gate.stranger().await);
    assert_eq!(silent.get("cron", "db", 700.0).await.unwrap(), 700.0);
    assert_eq!(other.get("x", "db", CAPACITY).await.unwrap(), 300.0);
    let told = desk.call("POST", "/admin/recall", Some(&body("cron", "1h"))).await.done();
    assert_eq!(
        (&told["leases"][0]["charged"], &told["leases"][0]["told"]),
        (&700.0.into(), &false.into()),
        "{told}"
    );
    // It may use all of it: nobody else gets any.
    for _ in 0..5 {
        assert_eq!(other.get("x", "db", CAPACITY).await.unwrap(), 300.0);
        assert_eq!(gate.outstanding().await, CAPACITY);
    }
    // It asks again, is told that it has nothing, and promises with the next request to keep to that.
    assert_eq!(silent.get("cron", "db", 700.0).await.unwrap(), 0.0);
    assert_eq!(silent.get("cron", "db", 700.0).await.unwrap(), 0.0);
    eventually("another has it", async || other.get("x", "db", CAPACITY).await.unwrap() == CAPACITY).await;
    // Another life of that id gets none either.
    let mut again = gate.stranger().await;
    assert_eq!(again.get("cron", "db", 700.0).await.unwrap(), 0.0);
    assert_eq!(gate.outstanding().await, CAPACITY);
    // Until it is lifted.
    let lift = r#"{"resource":"db","holder":"cron"}"#;
    desk.call("DELETE", "/admin/recall", Some(lift)).await.done();
    desk.call("DELETE", "/admin/recall", Some(lift)).await.problem(404);
    eventually("it has its share again", async || {
        other.get("x", "db", CAPACITY).await.unwrap();
        assert!(gate.outstanding().await <= CAPACITY);
        silent.get("cron", "db", 700.0).await.unwrap() == 500.0
    })
    .await;
    gate.house.stop().await;
}

#[tokio::test]
async fn a_lease_that_nobody_gives_back_is_free_when_it_has_ended() {
    let house =
        crate::house::House::open_with(&crate::house::everything(CAPACITY, 3), &["--admin", "127.0.0.1:0"])
            .await;
    let desk = Desk::new(house.admin().unwrap());
    let mut server = house.capacity().await;
    Holder::new("lost", Nature::Echoes, "db", CAPACITY).report(&mut server).await.unwrap();
    let told = desk.call("POST", "/admin/recall", Some(&body("lost", "1h"))).await.done();
    assert_eq!(told["leases"][0]["charged"], CAPACITY);
    assert_eq!(
        house.metric("lessor_outstanding{resource=\"db\"}").await,
        CAPACITY,
        "nobody has given it back"
    );
    let free = async || match house.resource("db").await {
        Some(row) => row["leased"] == 0.0,
        None => true,
    };
    eventually("it has ended", free).await;
    house.stop().await;
}
