//! Load: silent connections beside an honest client, and everything replaced under a hundred of them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Client, LeaseState, Rate, Rung, Tls, Transport};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::house::{Files, House, connect, eventually, leased, soon, tls};
use crate::pki::Authority;

const WEB: &str = "spiffe://acme/ns/shop/sa/web";

#[tokio::test]
async fn silent_connections_keep_nobody_waiting() {
    let authority = Authority::new();
    let house = House::open(&authority.server(&["localhost"]), &authority).await;
    let me = authority.client(&[WEB]);
    let honest = connect(&house.address(), tls(&authority, &me)).await.unwrap();
    let mut db = honest.rate("db").wants(10.0).open().unwrap();
    leased(&mut db).await;

    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(house.server.address()).await.unwrap());
    }
    // Who is there goes on, and who comes is served: none of them has been waited for.
    db.set_wants(20.0);
    until(&mut db, |lease| lease.capacity == Some(Amount::from_units(20))).await;
    let other = connect(&house.address(), tls(&authority, &me)).await.unwrap();
    leased(&mut other.rate("db").wants(1.0).open().unwrap()).await;
    assert_eq!(house.handshakes("slow"), 0, "all of that was done while they were silent");
    eventually("their places are given to others", async || house.handshakes("slow") == 300).await;
    assert_eq!(db.lease().rung, Rung::Leased);
}

async fn until(db: &mut Rate, done: impl Fn(&LeaseState) -> bool) {
    soon(async {
        while !done(&db.lease()) {
            db.changed().await.unwrap();
        }
    })
    .await;
}

/// The age that no connection reaches in the test.
const MAX_AGE: Duration = Duration::from_secs(5);
const CLIENTS: usize = 100;
const GENERATIONS: usize = 50;

/// Authorities that are believed before and after the one whose certificates are shown: whoever is some generations late, as
/// a machine that has much to do, believes and is believed all the same.
const AROUND: usize = 5;

/// The files of a server and of its clients, which are replaced one generation after the other as operators do: an authority
/// is believed some time before anybody shows its certificates.
struct Rotation {
    files: Files,
    authorities: Vec<Authority>,
}

// === impl Rotation ===

impl Rotation {
    fn new() -> Rotation {
        let authorities: Vec<Authority> = (0..=GENERATIONS).map(|_| Authority::new()).collect();
        let files = Files::new(&authorities[0].server(&["localhost"]), &authorities[0]);
        let rotation = Rotation { files, authorities };
        rotation.believe(&rotation.authorities[..=AROUND]);
        rotation.issue_to_clients(0);
        rotation
    }

    fn believe(&self, authorities: &[Authority]) {
        let of = |text: fn(&Authority) -> String| authorities.iter().map(text).collect::<String>();
        self.files.put("ca.pem", &of(|authority| authority.pem.clone()));
        self.files.put("crl.pem", &of(|authority| authority.revoked(&[1])));
    }

    fn issue_to_clients(&self, generation: usize) {
        let web = self.authorities[generation].client(&[WEB]);
        self.files.put("web.pem", &web.certificate);
        self.files.put("web.key", &web.key);
    }

    /// The settings of a client that looks at its files.
    fn tls(&self) -> Tls {
        let files = &self.files;
        Tls::ca_file(files.path("ca.pem")).identity_files(files.path("web.pem"), files.path("web.key"))
    }

    /// Replaces certificate, key, authorities and revocations of the server, waits until they are in force, and then the
    /// certificates of clients.
    async fn turn(&self, generation: usize, address: &str) {
        let last = (generation + AROUND).min(GENERATIONS);
        self.believe(&self.authorities[generation.saturating_sub(AROUND)..=last]);
        let authority = &self.authorities[generation];
        let own = authority.server(&["localhost"]);
        self.files.put("cert.pem", &own.certificate);
        self.files.put("key.pem", &own.key);
        let probe = || tls(authority, &authority.client(&[WEB]));
        eventually("the next chain is shown", async || connect(address, probe()).await.is_ok()).await;
        self.issue_to_clients(generation);
    }
}

/// A lease that is held through everything.
async fn hold(client: Client, mut db: Rate, lost: &AtomicU64) -> (Client, Rate) {
    loop {
        if db.changed().await.is_err() {
            return (client, db);
        }
        if db.lease().rung != Rung::Leased {
            lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_replaced_under_a_hundred_clients() {
    static LOST: AtomicU64 = AtomicU64::new(0);
    let rotation = Rotation::new();
    let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    options.tls = Some(lessor_server::shell::TlsOptions { max_age: MAX_AGE, ..rotation.files.options() });
    let template = Template {
        lease_length: Duration::from_secs(20),
        refresh_interval: Duration::from_secs(1),
        ..Template::new(Glob::new("*").unwrap(), Amount::from_units(1_000))
    };
    let repository = Repository::new(vec![template]).unwrap();
    let server = Server::start(options, NodeConfig::new("root", Epoch(1)), repository).await.unwrap();
    let address = format!("https://localhost:{}", server.address().port());

    let start = clock::now();
    let (mut clients, mut holders) = (Vec::new(), JoinSet::new());
    for number in 0..CLIENTS {
        let transport = if number % 2 == 0 { Transport::Stream } else { Transport::Poll };
        let client = Client::builder(&address).tls(rotation.tls()).transport(transport).build().unwrap();
        let mut db = client.rate("db").wants(1.0).open().unwrap();
        leased(&mut db).await;
        holders.spawn(hold(client.clone(), db, &LOST));
        clients.push(client);
    }
    for generation in 1..=GENERATIONS {
        rotation.turn(generation, &address).await;
    }
    // Nobody shows anything of the authorities of before in any connection that is made from here on, and they are believed
    // no more: whoever had kept something of them would fail.
    rotation.believe(&rotation.authorities[GENERATIONS..]);
    let opened = |client: &Client| client.metrics().counts.streams + client.metrics().counts.answers;
    let before: Vec<u64> = clients.iter().map(opened).collect();
    eventually("everybody has come back", async || {
        clients.iter().zip(&before).all(|(client, before)| opened(client) >= before + 2)
    })
    .await;
    assert_eq!(LOST.load(Ordering::Relaxed), 0, "no lease is lost");
    // A stream ends with its connection, which lives for six tenths of the greatest age at the least.
    let most = clock::now().since(start).as_secs_f64() / (0.6 * MAX_AGE.as_secs_f64()) + 1.0;
    for client in &clients {
        let counts = client.metrics().counts;
        let allowed = if counts.streams > 0 { most as u64 } else { 0 };
        assert!(
            counts.failures <= allowed,
            "no call fails, and no attempt at a stream: {counts:?}, {allowed}"
        );
    }
    holders.abort_all();
}
