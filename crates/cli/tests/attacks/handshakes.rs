//! Handshakes of TLS that are begun and not ended: each costs the server a signature, and its peer nothing.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Client, Rung, Tls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::{AGES, House};
use crate::siege::{LONGEST, Siege};
use crate::wire::{dial, in_seconds};

/// The first words of a client of ours.
async fn first_words(tls: Tls) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let client = Client::builder(address).tls(tls).build().unwrap();
    let _asks = client.rate("db").wants(1.0).open().unwrap();
    let (mut socket, _) = timeout(AGES, listener.accept()).await.expect("it comes in time").unwrap();
    let mut header = [0; 5];
    timeout(AGES, socket.read_exact(&mut header)).await.expect("it speaks in time").unwrap();
    let mut words = vec![0; usize::from(u16::from_be_bytes([header[3], header[4]]))];
    timeout(AGES, socket.read_exact(&mut words)).await.expect("it speaks in time").unwrap();
    [&header[..], &words].concat()
}

/// Comes over TLS until the end, again and again, and gives back the longest time until there was a lease, and how often it was
/// there.
async fn newcomers(port: u16, tls: Tls, end: lessor_proto::Time) -> (Duration, u32) {
    let (mut longest, mut times) = (Duration::ZERO, 0);
    while clock::now() < end {
        let before = clock::now();
        let client = Client::builder(format!("https://localhost:{port}")).tls(tls.clone()).build().unwrap();
        let mut rate = client.rate("plenty").wants(1.0).open().unwrap();
        let leased = async {
            while rate.lease().rung != Rung::Leased {
                rate.changed().await.unwrap();
            }
        };
        timeout(AGES, leased).await.unwrap_or_else(|_| panic!("never leased: {:?}", rate.lease()));
        longest = longest.max(clock::now().since(before));
        times += 1;
        timeout(AGES, client.close()).await.unwrap();
        crate::wire::pause().await;
    }
    (longest, times)
}

/// A server with TLS, and in plain for the one who renews; and what it takes to be a client there.
async fn open(more: &[&str]) -> (Siege, tempfile::TempDir, Tls) {
    let files = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let put = |name: &str, text: &str| {
        std::fs::write(files.path().join(name), text).unwrap();
        files.path().join(name).display().to_string()
    };
    let pem = own.cert.pem();
    let (certificate, key) = (put("cert.pem", &pem), put("key.pem", &own.signing_key.serialize_pem()));
    let flags = ["--tls-cert", &certificate, "--tls-key", &key, "--listen-plain", "127.0.0.1:0"];
    let siege = Siege::open(&[&flags, more].concat()).await;
    (siege, files, Tls::ca(pem.as_str()))
}

/// Somebody who says hello and nothing more, on as many connections as there may be, again when they are ended.
async fn hang(last: u8, to: SocketAddr, hello: Vec<u8>, end: lessor_proto::Time) -> u32 {
    let mut hanging: JoinSet<()> = JoinSet::new();
    let mut said = 0;
    while clock::now() < end {
        if hanging.len() < 400 {
            let (hello, mut socket) = (hello.clone(), dial(last, to).await);
            said += 1;
            hanging.spawn(async move {
                let left = end.since(clock::now());
                let _ = timeout(left, async {
                    let _ = socket.write_all(&hello).await;
                    // Until the other side has had enough.
                    while socket.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {}
                })
                .await;
            });
        } else {
            let _ = timeout(Duration::from_millis(20), hanging.join_next()).await;
        }
    }
    hanging.shutdown().await;
    said
}

/// Somebody who says hello and leaves, without a pause.
async fn knock(last: u8, to: SocketAddr, hello: Vec<u8>, end: lessor_proto::Time) -> u32 {
    let mut said = 0;
    while clock::now() < end {
        let mut socket: TcpStream = dial(last, to).await;
        let _ = socket.write_all(&hello).await;
        // It waits for the answer, so that it is made.
        let _ = timeout(Duration::from_millis(200), socket.read(&mut [0; 64])).await;
        said += 1;
    }
    said
}

async fn flood<F>(
    house: &House,
    tls: Tls,
    somebody: impl Fn(u8, SocketAddr, Vec<u8>, lessor_proto::Time) -> F,
) where
    F: Future<Output = u32> + Send + 'static,
{
    let hello = first_words(tls.clone()).await;
    let (end, to) = (in_seconds(8), house.address());
    let mut floods = JoinSet::new();
    for last in 66..70 {
        floods.spawn(somebody(last, to, hello.clone(), end));
    }
    // They shake hands themselves: from another address than those who flood.
    let (longest, times) = newcomers(to.port(), tls, end).await;
    let said: u32 = floods.join_all().await.into_iter().sum();
    println!("{said} hellos; {times} newcomers, the slowest after {longest:?}");
    assert!(said > 400, "{said} hellos");
    assert!(longest < LONGEST, "a newcomer had its lease after {longest:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_are_begun_and_left_hanging() {
    let (siege, _files, tls) = open(&["--max-connections", "4000"]).await;
    siege.hold(async |house| flood(house, tls, hang).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_without_a_pause() {
    let (siege, _files, tls) = open(&["--max-handshakes-per-address", "50"]).await;
    siege.hold(async |house| flood(house, tls, knock).await).await;
}
