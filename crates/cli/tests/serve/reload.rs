//! A configuration that changes while leases are out.

use rustix::process::Signal;
use tonic::Code;

use crate::house::holder::{Holder, Nature, fair_shares};
use crate::house::{House, eventually, everything, run, template};

const BROKEN: &str = "resources:\n- identifier_glob: db\n  capacity: minus seven\n";

async fn capacity_is(house: &House, capacity: f64) {
    eventually("the capacity has changed", async || {
        house.resource("db").await.unwrap()["capacity"] == capacity
    })
    .await;
}

async fn reloads_are(house: &House, good: f64, bad: f64) {
    eventually("a reload is counted", async || {
        let counts =
            (house.metric("lessor_reloads_total").await, house.metric("lessor_reloads_failed_total").await);
        assert!(counts.0 <= good && counts.1 <= bad, "{counts:?}");
        counts == (good, bad)
    })
    .await;
}

#[tokio::test]
async fn a_changed_file_is_put_in_force_and_a_bad_one_leaves_the_old_one() {
    let house = House::open(&everything(100.0, 60)).await;
    let mut server = house.capacity().await;
    let mut client = Holder::new("client", Nature::Echoes, "db", 500.0);
    assert_eq!(client.report(&mut server).await.unwrap(), 100.0);

    house.configure(&everything(150.0, 60));
    capacity_is(&house, 150.0).await;
    assert_eq!(client.report(&mut server).await.unwrap(), 150.0);
    reloads_are(&house, 1.0, 0.0).await;

    house.configure(BROKEN);
    reloads_are(&house, 1.0, 1.0).await;
    eventually("it says so", async || house.has_logged("the old configuration stays in force")).await;
    assert_eq!(client.report(&mut server).await.unwrap(), 150.0);
    assert_eq!(house.page("/status").await.json()["failed_reloads"], 1);
    assert_eq!(house.page("/readyz").await.code, 200, "it serves nevertheless");

    house.configure(&everything(200.0, 60));
    reloads_are(&house, 2.0, 1.0).await;
    assert_eq!(client.report(&mut server).await.unwrap(), 200.0);
    house.stop().await;
}

#[tokio::test]
async fn a_hang_up_reloads_even_if_nothing_has_changed() {
    let house = House::open(&everything(100.0, 60)).await;
    for reloads in 1..=3 {
        house.signal(Signal::HUP);
        reloads_are(&house, reloads.into(), 0.0).await;
    }
    house.configure(BROKEN);
    reloads_are(&house, 3.0, 1.0).await;
    house.signal(Signal::HUP);
    reloads_are(&house, 3.0, 2.0).await;
    house.stop().await;
}

#[tokio::test]
async fn a_configuration_that_is_no_regular_file_holds_nobody_up() {
    let house = House::open(&everything(100.0, 60)).await;
    let path = house.config().to_owned();
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    house.signal(Signal::HUP);
    let refused = format!("{}: is a named pipe; wanted a regular file", path.display());
    eventually("it is refused", async || house.has_logged_part(&refused)).await;
    let mut client = Holder::new("client", Nature::Knows, "db", 80.0);
    assert_eq!(client.report(&mut house.capacity().await).await.unwrap(), 80.0);

    std::fs::remove_file(&path).unwrap();
    house.configure(&everything(50.0, 60));
    capacity_is(&house, 50.0).await;
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    house.signal(Signal::HUP);
    let refused = format!("{}: is a directory; wanted a regular file", path.display());
    eventually("it is refused", async || house.has_logged_part(&refused)).await;
    house.stop().await;
}

#[tokio::test]
async fn a_server_does_not_begin_with_what_is_no_regular_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lessor.yaml");
    let socket = directory.path().join("socket");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let found = [(path.to_str().unwrap(), "a named pipe"), ("/dev/null", "a device")];
    for (path, found) in found.into_iter().chain([(socket.to_str().unwrap(), "a socket")]) {
        let outcome = run(&["serve", "--listen", "127.0.0.1:0", "--config", path]).await;
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        let message = format!("{path}: is {found}; wanted a regular file");
        assert!(outcome.err.contains(&message), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_cut_is_paid_off_by_renewals_and_nothing_is_given_in_the_meantime() {
    let house = House::open(&everything(90.0, 60)).await;
    let mut server = house.capacity().await;
    let mut clients: Vec<Holder> =
        Nature::ALL.map(|nature| Holder::new(format!("{nature:?}"), nature, "db", 100.0)).into();
    for _ in 0..4 {
        for client in &mut clients {
            client.report(&mut server).await.unwrap();
        }
    }
    let shares: Vec<f64> = clients.iter().map(Holder::capacity).collect();
    assert_eq!(shares, [30.0; 3]);

    house.configure(&everything(45.0, 60));
    capacity_is(&house, 45.0).await;
    let resource = house.resource("db").await.unwrap();
    assert_eq!((&resource["in_debt"], &resource["overcommitment"]), (&true.into(), &0.0.into()));
    assert_eq!(house.metric("lessor_in_debt{resource=\"db\"}").await, 1.0);

    let mut held: f64 = 90.0;
    clients.push(Holder::new("newcomer", Nature::Knows, "db", 100.0));
    for _ in 0..6 {
        for index in 0..clients.len() {
            clients[index].report(&mut server).await.unwrap();
            let sum: f64 = clients.iter().map(Holder::capacity).sum();
            assert!(sum <= held.max(45.0), "{sum} after {held}");
            held = sum;
        }
    }
    let shares: Vec<f64> = clients.iter().map(Holder::capacity).collect();
    assert_eq!(shares, fair_shares(45.0, &[100.0; 4]));
    assert_eq!(house.resource("db").await.unwrap()["in_debt"], false);
    house.stop().await;
}

#[tokio::test]
async fn a_template_that_is_removed_gives_nothing_more_and_its_leases_end() {
    let algorithm = "{kind: FAIR_SHARE, lease_length: 2, refresh_interval: 1, learning_mode_duration: 0}";
    let house = House::open(&template("db", 100.0, algorithm)).await;
    let mut server = house.capacity().await;
    let mut client = Holder::new("client", Nature::Knows, "db", 80.0);
    assert_eq!(client.report(&mut server).await.unwrap(), 80.0);

    house.configure(&template("other", 100.0, algorithm));
    eventually("the template is gone", async || {
        house.resource("db").await.is_none_or(|resource| resource["template"].is_null())
    })
    .await;
    let refused = client.report(&mut server).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound, "{refused:?}");
    eventually("nobody holds it any more", async || house.resource("db").await.is_none()).await;

    house.configure(&template("db", 60.0, algorithm));
    eventually("it is back", async || client.report(&mut server).await.is_ok()).await;
    assert_eq!(client.capacity(), 60.0);
    house.stop().await;
}
