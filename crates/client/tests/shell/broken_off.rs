//! Connections that end with a request on its way.

use std::net::SocketAddr;

use lessor_client::{Client, Rung, Transport};
use tokio::io::{AsyncReadExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::town::{Town, until};

/// More than a client says before its first request: the preface of HTTP/2, and its settings.
const BEFORE_A_REQUEST: usize = 150;

/// A way to `server` on which the first connection ends as soon as a request is on it. Each client has one to itself: a client of another
/// test may still look for a server at a port that was free again, and take a place of its.
async fn broken_way(server: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (mut near, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                if number == 0 {
                    let (mut heard, mut bytes) = (0, [0; 1 << 12]);
                    while heard < BEFORE_A_REQUEST {
                        match near.read(&mut bytes).await {
                            Ok(count @ 1..) => heard += count,
                            _ => return,
                        }
                    }
                } else {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    // Whoever ends it first: the test has seen what it wanted to see.
                    let _ = copy_bidirectional(&mut near, &mut far).await;
                }
            });
        }
    });
    address
}

/// The channel may not have heard yet that the connection is gone when the request is put again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_whose_connection_ends_is_put_on_another_one() {
    let town = Town::generous().await;
    for number in 0..300 {
        let way = broken_way(town.address).await;
        let client = Client::builder(way.to_string()).transport(Transport::Poll).build().unwrap();
        let mut db = client.rate("db").wants(1.0).open().unwrap();
        until(&mut db, |lease| lease.rung == Rung::Leased).await;
        let counts = client.metrics().counts;
        assert_eq!((counts.asks, counts.failures), (1, 0), "client {number}: {:?}", db.lease());
    }
}
