//! Servers that die and come back with nothing but what they are told: what holders have from before is not handed out
//! again.

use lessor_client::internals::clock;
use lessor_client::{Client, Rung};
use lessor_proto::Amount;
use lessor_proto::wire::capacity_client::CapacityClient;
use tempfile::TempDir;
use tokio::time::timeout;
use tonic::transport::Channel;

use crate::crash::{is, until};
use crate::house::etcd::Etcd;
use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, eventually, run, template};

const CAPACITY: f64 = 100.0;

/// All there is of "db", by leases of so many seconds and with so much learning.
fn leases(seconds: u32, learning: &str) -> String {
    let algorithm = format!("{{kind: FAIR_SHARE, lease_length: {seconds}, refresh_interval: 1{learning}}}");
    template("*", CAPACITY, &algorithm)
}

fn holder(name: &str, wants: f64) -> Holder {
    Holder::new(name, Nature::Knows, "db", wants)
}

/// The sum that all of them would use at this moment, which is never more than there is.
#[track_caller]
fn check(holders: &[&Holder]) {
    let sum = holders.iter().map(|holder| holder.holds()).fold(Amount::ZERO, Amount::saturating_add);
    assert!(sum <= Amount::from_f64(CAPACITY), "{sum} of {CAPACITY} is believed: {holders:?}");
}

/// Asks, and adopts what is granted, if anything is.
async fn ask(holder: &mut Holder, server: &mut CapacityClient<Channel>) {
    let (sent, request) = (clock::now(), holder.request());
    let answer = server.get_capacity(request).await.unwrap().into_inner();
    if let [response] = &answer.response[..] {
        holder.adopt(sent, response.gets.clone());
    }
}

/// Asks until something was granted; at no time do all together hold more than there is.
async fn served(holder: &mut Holder, server: &mut CapacityClient<Channel>, others: &[&Holder]) {
    eventually("the holder is served", async || {
        ask(holder, server).await;
        let all: Vec<&Holder> = others.iter().copied().chain([&*holder]).collect();
        check(&all);
        holder.holds() > Amount::ZERO
    })
    .await;
}

#[tokio::test]
async fn a_leaf_that_was_killed_does_not_hand_out_again_what_is_out() {
    let root = House::open(&leases(6, ", learning_mode_duration: 0")).await;
    let parent = root.address().to_string();
    let flags = ["--node", "leaf", "--parent", &parent];
    let mut leaf = House::open_with(&leases(6, ", learning_mode_duration: 0"), &flags).await;
    let mut before = holder("before", 100.0);
    served(&mut before, &mut leaf.capacity().await, &[]).await;
    // Its lease is as long as one can be, and nothing is heard of it from here on.
    ask(&mut before, &mut leaf.capacity().await).await;
    assert_eq!(before.capacity(), CAPACITY);

    leaf.crash().await;
    let leaf = leaf.start_again().await;
    assert!(before.holds() > Amount::ZERO, "too slow: what is tested was over");
    let mut newcomer = holder("newcomer", 100.0);
    served(&mut newcomer, &mut leaf.capacity().await, &[&before]).await;
    assert_eq!(before.holds(), Amount::ZERO, "its lease has ended");
    assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    leaf.stop().await;
    root.stop().await;
}

#[tokio::test]
async fn a_server_that_comes_back_with_shorter_leases_learns_for_as_long_as_the_old_ones_last() {
    let mut house = House::open(&leases(8, "")).await;
    let mut server = house.capacity().await;
    // It has learnt that nothing was out when the first is served.
    let (mut shows, mut silent) = (holder("shows", 20.0), holder("silent", 80.0));
    served(&mut shows, &mut server, &[]).await;
    served(&mut silent, &mut server, &[&shows]).await;
    assert_eq!((shows.capacity(), silent.capacity()), (20.0, 80.0));

    house.crash().await;
    house.configure(&leases(2, ""));
    let house = house.start_again().await;
    let mut server = house.capacity().await;
    ask(&mut shows, &mut server).await;
    assert_eq!(shows.capacity(), 20.0, "who shows a lease keeps it");
    let mut newcomer = holder("newcomer", 100.0);
    eventually("the newcomer is served", async || {
        ask(&mut shows, &mut server).await;
        ask(&mut newcomer, &mut server).await;
        check(&[&shows, &silent, &newcomer]);
        newcomer.capacity() >= 80.0
    })
    .await;
    assert_eq!((shows.capacity(), silent.holds()), (20.0, Amount::ZERO));
    house.stop().await;
}

/// Leases that outlast a restart by far, and nothing to learn of before the first start.
fn long() -> String {
    leases(30, ", learning_mode_duration: 0")
}

fn flags(directory: &TempDir) -> [String; 2] {
    ["--state-dir".to_owned(), directory.path().to_str().unwrap().to_owned()]
}

async fn remembering(config: &str, directory: &TempDir) -> House {
    let flags = flags(directory);
    House::open_with(config, &[&flags[0], &flags[1]]).await
}

#[tokio::test]
async fn a_server_that_remembers_comes_back_as_a_successor_does() {
    let directory = tempfile::tempdir().unwrap();
    let mut house = remembering(&long(), &directory).await;
    let mut polls = holder("polls", 40.0);
    served(&mut polls, &mut house.capacity().await, &[]).await;
    let client = Client::builder(house.address().to_string()).id("listens").connect().await.unwrap();
    let mut rate = client.rate("db").wants(20.0).open().unwrap();
    until(&mut rate, "leased", |lease| is(lease, Rung::Leased, 20)).await;

    for round in 1..=2 {
        house.crash().await;
        house = house.start_again().await;
        let mut server = house.capacity().await;
        // Nothing is learnt: there is something for others at once, and it is what was never out.
        let mut newcomer = holder(&format!("newcomer-{round}"), 100.0);
        served(&mut newcomer, &mut server, &[&polls]).await;
        let most = Amount::from_f64(CAPACITY - 20.0 - 40.0);
        assert!(newcomer.holds() <= most, "{newcomer:?}");
        newcomer.release(&mut server).await.unwrap();
        ask(&mut polls, &mut server).await;
        assert_eq!(polls.capacity(), 40.0, "it has never been without: {polls:?}");
        eventually("both are known again", async || {
            house.metric("lessor_claims_honoured_total").await == 2.0
        })
        .await;
        assert!(is(&rate.lease(), Rung::Leased, 20), "{:?}", rate.lease());
    }
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    assert_eq!(house.metric("lessor_state_healthy").await, 1.0);
    timeout(AGES, client.close()).await.unwrap();
    house.stop().await;
}

#[tokio::test]
async fn in_the_first_hour_a_server_that_remembers_knows_its_leases_and_learns_floors() {
    let directory = tempfile::tempdir().unwrap();
    let config = leases(10, "").replace("safe_capacity: 5", "safe_fraction: 0.1");
    let mut house = remembering(&config, &directory).await;
    let mut polls = holder("polls", 40.0);
    served(&mut polls, &mut house.capacity().await, &[]).await;
    // It grants as soon as it has learnt, and writes that down then: one that dies in between learns once more.
    eventually("what it has learnt is written", async || {
        let state = std::fs::read_to_string(directory.path().join("state")).unwrap_or_default();
        ask(&mut polls, &mut house.capacity().await).await;
        state.contains(" unknown floors ")
    })
    .await;
    house.crash().await;

    let house = house.start_again().await;
    let (mut server, mut newcomer) = (house.capacity().await, holder("newcomer", 100.0));
    served(&mut newcomer, &mut server, &[&polls]).await;
    assert!(polls.holds() > Amount::ZERO, "what it has is over, and could have been learnt meanwhile");
    let learning = house.logged("learning what floors are out: no new floor is granted for that long");
    let floors = learning.map(|line| line["fields"]["floors"].as_str().unwrap().to_owned());
    assert!(floors.as_ref().is_some_and(|floors| floors.starts_with("36")), "{floors:?}");
    let mut floor = Holder::new("newcomer", Nature::Knows, "db|safe", 5.0);
    ask(&mut floor, &mut server).await;
    assert_eq!(floor.holds(), Amount::ZERO, "nobody knows what floors are out");
    assert_eq!(house.metric("lessor_learning{resource=\"db\"}").await, 0.0);
    assert_eq!(house.metric("lessor_learning{resource=\"db|safe\"}").await, 1.0);
    house.stop().await;
}

/// A client of Doorman's, which sends the whole lease back and knows nothing of it.
fn poller(name: &str, wants: f64) -> Holder {
    Holder::new(name, Nature::Echoes, "db", wants)
}

#[tokio::test]
async fn clients_that_poll_keep_their_shares_through_restarts_of_a_server_that_remembers() {
    let directory = tempfile::tempdir().unwrap();
    let mut house = remembering(&long(), &directory).await;
    let mut server = house.capacity().await;
    let mut pollers = [poller("first", 40.0), poller("second", 50.0)];
    // What was asked before anything could be granted counts as asked by others, for two refreshes.
    eventually("all that is wanted is granted", async || {
        for poller in &mut pollers {
            ask(poller, &mut server).await;
        }
        check(&[&pollers[0], &pollers[1]]);
        pollers.iter().all(|poller| poller.capacity() == poller.wants)
    })
    .await;
    for round in 1..=3 {
        house.crash().await;
        house = house.start_again().await;
        let mut server = house.capacity().await;
        if round == 1 {
            // It dies once more when it has answered them once, and nobody has claimed anything yet. It may not have written
            // anything yet either, but that it has begun.
            for poller in &mut pollers {
                ask(poller, &mut server).await;
            }
            continue;
        }
        // No claim is answered before the first write of the record has been made.
        eventually("both have claimed what they have", async || {
            for poller in &mut pollers {
                ask(poller, &mut server).await;
                let holds = poller.holds();
                assert_eq!(holds, Amount::from_f64(poller.wants), "{round}: at every poll: {poller:?}");
            }
            house.metric("lessor_claims_honoured_total").await == 2.0
        })
        .await;
        for poller in &mut pollers {
            ask(poller, &mut server).await;
            let holds = poller.holds();
            assert_eq!(holds, Amount::from_f64(poller.wants), "{round}: once it has claimed: {poller:?}");
        }
        // All that they have is charged to them, and nothing is out to nobody knows whom.
        let resource = house.resource("db").await.unwrap();
        assert_eq!(resource["learning"], false, "{resource}");
        assert_eq!(house.metric("lessor_claims_honoured_total").await, 2.0);
        for poller in &mut pollers {
            let epoch = poller.lease.as_ref().and_then(|lease| lease.epoch);
            assert_eq!(epoch.map(|epoch| epoch as f64), Some(house.metric("lessor_epoch").await));
        }
    }
    let mut newcomer = poller("newcomer", 100.0);
    ask(&mut newcomer, &mut house.capacity().await).await;
    check(&[&pollers[0], &pollers[1], &newcomer]);
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    house.stop().await;
}

#[tokio::test]
async fn a_server_without_memory_leaves_to_clients_that_poll_what_they_show() {
    let mut house = House::open(&leases(6, "")).await;
    let mut poller = poller("polls", 40.0);
    served(&mut poller, &mut house.capacity().await, &[]).await;
    ask(&mut poller, &mut house.capacity().await).await;

    house.crash().await;
    let house = house.start_again().await;
    let (mut server, mut newcomer) = (house.capacity().await, self::poller("newcomer", 100.0));
    let mut while_learning = 0;
    eventually("it has learnt, and the newcomer is served", async || {
        ask(&mut poller, &mut server).await;
        assert_eq!(poller.holds(), Amount::from_f64(40.0), "at every poll: {poller:?}");
        ask(&mut newcomer, &mut server).await;
        check(&[&poller, &newcomer]);
        while_learning += u32::from(newcomer.holds() == Amount::ZERO);
        newcomer.holds() > Amount::ZERO
    })
    .await;
    assert!(while_learning > 0, "what nobody has shown may be out");
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    house.stop().await;
}

/// The number of holders of "db" that a server counts.
async fn holders(house: &House) -> usize {
    let resource = house.resource("db").await;
    resource.map_or(0, |resource| resource["holders"].as_array().unwrap().len())
}

#[tokio::test]
async fn a_leaf_that_remembers_is_one_holder_above_and_one_that_has_forgotten_is_another() {
    let root = House::open(&long()).await;
    let parent = root.address().to_string();
    let directory = tempfile::tempdir().unwrap();
    let [flag, path] = flags(&directory);
    let mut leaf = House::open_with(&long(), &["--node", "leaf", "--parent", &parent, &flag, &path]).await;
    let (mut before, mut newcomer) = (holder("before", 70.0), holder("newcomer", 30.0));
    let mut server = leaf.capacity().await;
    eventually("all that is wanted is granted", async || {
        ask(&mut before, &mut server).await;
        before.capacity() == 70.0
    })
    .await;

    leaf.crash().await;
    leaf = leaf.start_again().await;
    let mut server = leaf.capacity().await;
    eventually("it goes on with what it has written down", async || {
        ask(&mut before, &mut server).await;
        ask(&mut newcomer, &mut server).await;
        check(&[&before, &newcomer]);
        leaf.metric("lessor_claims_honoured_total").await == 1.0
    })
    .await;
    assert_eq!(before.capacity(), 70.0, "it has never been without: {before:?}");
    assert_eq!(holders(&root).await, 1, "the later has taken over what the earlier was charged for");

    leaf.crash().await;
    std::fs::remove_file(directory.path().join("state")).unwrap();
    let leaf = leaf.start_again().await;
    let (mut server, mut third) = (leaf.capacity().await, holder("third", 100.0));
    eventually("the root is asked by somebody else", async || {
        ask(&mut third, &mut server).await;
        check(&[&before, &newcomer, &third]);
        holders(&root).await == 2
    })
    .await;
    assert!(before.holds() > Amount::ZERO, "too slow: what is tested was over");
    assert_eq!(root.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    leaf.stop().await;
    root.stop().await;
}

const FAILS: &str = "state directory fails: what was out before is not known";

#[tokio::test]
async fn a_record_that_cannot_be_believed_is_told_of_and_what_was_out_is_learnt() {
    let directory = tempfile::tempdir().unwrap();
    let mut house = remembering(&long(), &directory).await;
    let mut before = holder("before", 70.0);
    served(&mut before, &mut house.capacity().await, &[]).await;
    house.crash().await;
    let file = directory.path().join("state");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("closed no", "closed yes")).unwrap();
    house.configure(&leases(30, ""));
    let house = house.start_again().await;
    assert!(house.has_logged_of(FAILS, &format!("state file {}: it is damaged", file.display())));
    let (mut server, mut newcomer) = (house.capacity().await, holder("newcomer", 100.0));
    ask(&mut newcomer, &mut server).await;
    eventually("it is heard", async || house.resource("db").await.is_some()).await;
    assert_eq!(newcomer.holds(), Amount::ZERO, "nobody knows what is free");
    eventually("who shows a lease keeps it", async || {
        ask(&mut before, &mut server).await;
        house.resource("db").await.is_some_and(|db| db["leased"] == 70.0)
    })
    .await;
    assert_eq!((before.capacity(), house.metric("lessor_learning{resource=\"db\"}").await), (70.0, 1.0));
    house.stop().await;
}

#[tokio::test]
async fn a_directory_of_another_node_is_told_of_and_not_used() {
    let directory = tempfile::tempdir().unwrap();
    remembering(&long(), &directory).await.stop().await;
    let [flag, path] = flags(&directory);
    let house = House::open_with(&long(), &["--node", "other", &flag, &path]).await;
    let told = "it is of node \\\"root\\\", and this is node \\\"other\\\"";
    assert!(house.has_logged_of(FAILS, told));
    assert_eq!(house.metric("lessor_state_healthy").await, 0.0);
    let status = house.page("/status").await.json();
    assert!(status["state_fault"].as_str().unwrap().contains("it is of node \"root\""), "{status}");
    house.stop().await;
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_or_is_in_use_is_told_of() {
    let directory = tempfile::tempdir().unwrap();
    let house = remembering(&long(), &directory).await;
    let config = directory.path().join("lessor.yaml");
    std::fs::write(&config, long()).unwrap();
    let [flag, path] = flags(&directory);
    let config = config.to_str().unwrap();
    let second = run(&["serve", "--config", config, "--listen", "127.0.0.1:0", &flag, &path]).await;
    assert_eq!(second.code, Some(1));
    assert!(second.err.contains(&format!("another process holds {path}/lock")), "{}", second.err);
    house.stop().await;

    let below = format!("{config}/state");
    let house = House::open_with(&long(), &[&flag, &below]).await;
    assert!(house.has_logged_of(FAILS, &format!("cannot make {below}")));
    house.stop().await;
}

#[tokio::test]
async fn what_cannot_be_written_is_not_handed_out() {
    let directory = tempfile::tempdir().unwrap();
    let house = remembering(&long(), &directory).await;
    let mut server = house.capacity().await;
    let mut first = holder("first", 30.0);
    served(&mut first, &mut server, &[]).await;
    // As a disk that is full: the next record cannot be written beside this one.
    let beside = directory.path().join("state.new");
    std::fs::create_dir(&beside).unwrap();
    let mut second = holder("second", 60.0);
    eventually("it is said", async || {
        ask(&mut second, &mut server).await;
        house.has_logged("state directory fails: nothing is granted beyond what stands in it")
    })
    .await;
    let mark = house.metric("lessor_mark{resource=\"db\"}").await;
    assert!(mark < 60.0 && first.capacity() + second.capacity() <= mark, "{mark}: {second:?}");
    assert_eq!(house.metric("lessor_state_healthy").await, 0.0);
    std::fs::remove_dir(&beside).unwrap();
    eventually("it is served when there is room again", async || {
        ask(&mut second, &mut server).await;
        second.capacity() == 60.0
    })
    .await;
    assert_eq!(house.metric("lessor_state_healthy").await, 1.0);
    house.stop().await;
}

/// From a server alone to one with a state directory, to an etcd, to an etcd that knows nothing, and back.
#[tokio::test]
async fn nobody_is_locked_out_wherever_the_record_is_kept() {
    let (Some(etcd), Some(wiped)) = (Etcd::started().await, Etcd::started().await) else { return };
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [[flag, path], [_, empty]] = directories.each_ref().map(flags);
    let (etcd, wiped) = ((etcd.url(), etcd), (wiped.url(), wiped));
    let election = |url| vec!["--etcd", url, "--ttl", "2s", "--authority", "1s", "--keep-alive", "200ms"];
    let mut house = House::open(&leases(4, "")).await;
    let client = Client::builder(house.address().to_string()).id("listens").connect().await.unwrap();
    let mut rate = client.rate("db").wants(70.0).open().unwrap();
    until(&mut rate, "leased", |lease| is(lease, Rung::Leased, 70)).await;

    let moves = [vec![&*flag, &*path], election(&etcd.0), election(&wiped.0), vec![&*flag, &*empty], vec![]];
    let mut epoch = house.metric("lessor_epoch").await;
    for flags in moves {
        house.crash().await;
        house = house.start_again_with(&flags).await;
        // Somebody who polls comes first, and would be given what the other still has.
        let (mut server, mut newcomer) = (house.capacity().await, holder("newcomer", 100.0));
        eventually("the newcomer is served", async || {
            let (sent, request) = (clock::now(), newcomer.request());
            if let Ok(answer) = server.get_capacity(request).await
                && let [response] = &answer.into_inner().response[..]
            {
                newcomer.adopt(sent, response.gets.clone());
            }
            let believed = match rate.lease() {
                lease if lease.rung == Rung::Leased => lease.capacity.unwrap(),
                _ => Amount::ZERO,
            };
            let sum = believed.saturating_add(newcomer.holds());
            assert!(sum <= Amount::from_f64(CAPACITY), "{flags:?}: {sum} is believed");
            newcomer.holds() > Amount::ZERO
        })
        .await;
        newcomer.release(&mut server).await.unwrap();
        until(&mut rate, "leased again", |lease| is(lease, Rung::Leased, 70)).await;
        let granted = house.resource("db").await.unwrap()["holders"].to_string();
        assert!(granted.contains("listens"), "{flags:?}: {granted}");
        let next = house.metric("lessor_epoch").await;
        assert!(next > epoch, "{flags:?}: {next} comes after {epoch}");
        epoch = next;
    }
    timeout(AGES, client.close()).await.unwrap();
    house.stop().await;
}
