//! Clients that poll on Doorman's wire, in whatever language, when their server comes back with less memory than it had: no more
//! is believed than there is, whoever keeps what it has does so at every poll, and nobody goes without for ever.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Amount;
use lessor_proto::wire::capacity_client::CapacityClient;
use tonic::transport::Channel;

use crate::house::etcd::Etcd;
use crate::house::holder::{Holder, Nature};
use crate::house::{House, eventually, template};

const CAPACITY: f64 = 100.0;
const SECONDS: u32 = 8;

/// All there is of "db".
fn config(learning: &str) -> String {
    let algorithm = format!("{{kind: FAIR_SHARE, lease_length: {SECONDS}, refresh_interval: 1{learning}}}");
    template("*", CAPACITY, &algorithm)
}

const NOTHING_BEFORE: &str = ", learning_mode_duration: 0";

/// One that believes what it was told last for as long as its calls succeed, as Doorman's client for Go.
struct Client {
    holder: Holder,
    told: Amount,
}

// === impl Client ===

impl Client {
    fn new(name: &str, nature: Nature) -> Client {
        Client { holder: Holder::new(name, nature, "db", CAPACITY), told: Amount::ZERO }
    }

    async fn ask(&mut self, server: &mut CapacityClient<Channel>) {
        let (sent, request) = (clock::now(), self.holder.request());
        let answer = server.get_capacity(request).await.map(tonic::Response::into_inner);
        let answer = answer.ok().filter(|answer| answer.mastership.is_none());
        if let Some([response]) = answer.as_ref().map(|answer| &answer.response[..]) {
            self.holder.adopt(sent, response.gets.clone());
            self.told = Amount::from_f64(self.holder.capacity());
        } else if answer.is_none() {
            self.told = self.holder.holds();
        }
    }

    fn has(&self) -> Amount {
        self.holder.holds()
    }
}

/// No more is believed than there is.
#[track_caller]
fn check(amounts: [Amount; 3], clients: [&Client; 3]) {
    let sum = amounts.into_iter().fold(Amount::ZERO, Amount::saturating_add);
    let holders = clients.map(|client| &client.holder);
    assert!(sum <= Amount::from_f64(CAPACITY), "{sum} of {CAPACITY} is believed: {holders:?}");
}

/// One whose lease has ended since, and one that has everything for as long as a lease can last.
async fn ended_and_live(house: &House, nature: Nature) -> [Client; 2] {
    let mut server = house.capacity().await;
    let (mut ended, mut live) = (Client::new("ended", nature), Client::new("live", nature));
    eventually("the first has everything", async || {
        ended.ask(&mut server).await;
        ended.has() == Amount::from_f64(CAPACITY)
    })
    .await;
    eventually("the second has everything", async || {
        live.ask(&mut server).await;
        live.has() == Amount::from_f64(CAPACITY) && ended.has() == Amount::ZERO
    })
    .await;
    live.ask(&mut server).await;
    ended.told = Amount::ZERO;
    [ended, live]
}

/// The two of before and another one ask until all have a third of it. Whoever `keeps` what it has does so until shortly before
/// its end.
async fn share(house: &House, [mut ended, mut live]: [Client; 2], keeps: bool) {
    let (mut server, mut fresh) = (house.capacity().await, Client::new("fresh", live.holder.nature));
    let (end, all) = (live.holder.end(), Amount::from_f64(CAPACITY));
    eventually("everybody has its share", async || {
        // The one whose lease is over comes first: it could be given what another one still has.
        ended.ask(&mut server).await;
        check([&ended, &live, &fresh].map(Client::has), [&ended, &live, &fresh]);
        let left = end.since(clock::now());
        live.ask(&mut server).await;
        let is_kept = live.has() == all || left < Duration::from_secs(3);
        assert!(is_kept || !keeps, "{left:?} before its end: {:?}", live.holder);
        check([&ended, &live, &fresh].map(Client::has), [&ended, &live, &fresh]);
        fresh.ask(&mut server).await;
        check([&ended, &live, &fresh].map(|client| client.told.max(client.has())), [&ended, &live, &fresh]);
        [&ended, &live, &fresh].iter().all(|client| client.has() > Amount::from_f64(CAPACITY / 3.0 - 0.1))
    })
    .await;
}

/// A leaf below `parent` is killed and started again.
async fn a_leaf_is_killed(parent: &str, node: &str, nature: Nature) {
    let flags = ["--node", node, "--parent", parent];
    let mut leaf = House::open_with(&config(NOTHING_BEFORE), &flags).await;
    let clients = ended_and_live(&leaf, nature).await;
    leaf.crash().await;
    let leaf = leaf.start_again().await;
    share(&leaf, clients, nature == Nature::Echoes).await;
    leaf.stop().await;
}

#[tokio::test]
async fn below_a_node_clients_that_poll_keep_what_they_have_and_have_their_share_then() {
    for nature in [Nature::Echoes, Nature::Forgets] {
        let root = House::open(&config(NOTHING_BEFORE)).await;
        a_leaf_is_killed(&root.address().to_string(), "leaf", nature).await;
        assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
        root.stop().await;
    }
}

/// A server alone is killed, and another one takes its place that learns.
async fn is_replaced(nature: Nature, node: &str, flags: &[&str]) {
    let mut house = House::open_with(&config(NOTHING_BEFORE), &["--node", node]).await;
    let clients = ended_and_live(&house, nature).await;
    house.crash().await;
    house.configure(&config(""));
    let flags: Vec<&str> = ["--node", node].iter().chain(flags).copied().collect();
    let house = house.start_again_with(&flags).await;
    share(&house, clients, true).await;
    house.stop().await;
}

#[tokio::test]
async fn a_server_that_learns_gives_nothing_for_a_lease_that_is_over() {
    tokio::join!(is_replaced(Nature::Echoes, "one", &[]), is_replaced(Nature::Forgets, "other", &[]));
}

#[tokio::test]
async fn clients_that_poll_keep_what_they_have_where_tasks_with_a_key_of_their_own_take_over() {
    let Some(etcd) = Etcd::started().await else { return };
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "7f".repeat(32)).unwrap();
    let (url, key) = (etcd.url(), key.to_str().unwrap().to_owned());
    let mut flags = vec!["--etcd", &url, "--token-key", &key];
    flags.extend(["--ttl", "2s", "--authority", "1s", "--keep-alive", "200ms"]);
    tokio::join!(is_replaced(Nature::Echoes, "one", &flags), is_replaced(Nature::Forgets, "other", &flags));
}

/// Asks until it has what it wants.
async fn until_it_has_all(house: &House, client: &mut Client) {
    let mut server = house.capacity().await;
    eventually("all that is wanted is granted", async || {
        client.ask(&mut server).await;
        client.has() == Amount::from_f64(client.holder.wants)
    })
    .await;
}

/// An etcd is put back as it was before most of what is out was granted. The record says that little of it is.
#[tokio::test]
async fn an_old_record_is_found_out_by_the_first_client_that_polls() {
    let Some(mut etcd) = Etcd::started().await else { return };
    let url = etcd.url();
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    std::fs::write(&key, "7f".repeat(32)).unwrap();
    let mut flags = vec!["--etcd", &url, "--token-key", key.to_str().unwrap()];
    flags.extend(["--ttl", "2s", "--authority", "1s", "--keep-alive", "200ms"]);
    let leases = |learning| config(learning).replace("lease_length: 8", "lease_length: 30");
    let mut house = House::open_with(&leases(NOTHING_BEFORE), &flags).await;
    let mut first = Client::new("first", Nature::Echoes);
    first.holder.wants = 10.0;
    until_it_has_all(&house, &mut first).await;
    house.crash().await;
    etcd.kill();
    etcd.keep_copy();
    assert!(etcd.start().await, "etcd does not start");

    house = house.start_again().await;
    let mut second = Client::new("second", Nature::Echoes);
    second.holder.wants = 60.0;
    until_it_has_all(&house, &mut second).await;
    house.crash().await;
    etcd.kill();
    etcd.put_copy_back();
    assert!(etcd.start().await, "etcd does not start");
    house.configure(&leases(""));
    let house = house.start_again().await;
    let (mut server, mut fresh) = (house.capacity().await, Client::new("fresh", Nature::Echoes));
    eventually("it is found out", async || {
        second.ask(&mut server).await;
        house.metric("lessor_records_distrusted_total").await == 1.0
    })
    .await;
    assert!(second.has() > Amount::ZERO, "too slow: what is tested was over");
    for _ in 0..20 {
        for client in [&mut fresh, &mut first, &mut second] {
            client.ask(&mut server).await;
        }
        check([&fresh, &first, &second].map(Client::has), [&fresh, &first, &second]);
    }
    house.stop().await;
}
