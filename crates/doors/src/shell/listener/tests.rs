//! The places of a door, and those who say nothing there.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;

use lessor_client::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::rules::document::DoorsFile;
use crate::rules::ratelimit::join;

/// A listener with two places, whose greeting is that long, and its address.
async fn listener(greeting: Duration) -> (DoorListener, SocketAddr) {
    let book = join(DoorsFile::default(), &[]).expect("no rules");
    let client = Client::builder("127.0.0.1:1").build().expect("a client");
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = socket.local_addr().expect("an address");
    let doors = Arc::new(Doors::new(client, book));
    let listener = DoorListener::new(DoorSocket::Tcp(socket), DoorPlaces::new(2), doors);
    (DoorListener { greeting, ..listener }, address)
}

async fn accepted(listener: &mut DoorListener) -> DoorConnection {
    listener.accept().await.expect("it listens")
}

#[tokio::test]
async fn who_waits_at_the_end_is_heard_and_nobody_behind() {
    let (mut listener, address) = listener(GREETING).await;
    let mut clients = Vec::new();
    for byte in *b"ab" {
        let mut client = TcpStream::connect(address).await.expect("the kernel takes it");
        client.write_u8(byte).await.expect("it takes that too");
        clients.push(client);
    }
    for byte in *b"ab" {
        let connection = listener.accept_until(pin!(std::future::ready(()))).await;
        assert_eq!(connection.expect("it waits").read_u8().await.expect("a byte"), byte);
    }
    assert!(listener.accept_until(pin!(std::future::ready(()))).await.is_none());
    assert!(TcpStream::connect(address).await.is_err(), "it listens no more");
    assert!(listener.accept_until(pin!(std::future::pending())).await.is_none());
}

#[tokio::test]
async fn silence_costs_the_place_and_words_keep_it() {
    let (mut listener, address) = listener(Duration::from_millis(50)).await;
    let _silent = TcpStream::connect(address).await.expect("a connection");
    let mut connection = accepted(&mut listener).await;
    let read = connection.read_u8().await;
    assert_eq!(read.expect_err("it says nothing").kind(), io::ErrorKind::TimedOut);

    // One byte of a greeting is none.
    let mut slow = TcpStream::connect(address).await.expect("a connection");
    slow.write_all(b"P").await.expect("it takes them");
    let mut connection = accepted(&mut listener).await;
    connection.read_u8().await.expect("a byte");
    assert_eq!(connection.read_u8().await.expect_err("no more").kind(), io::ErrorKind::TimedOut);

    let mut speaks = TcpStream::connect(address).await.expect("a connection");
    drop(connection);
    let mut connection = accepted(&mut listener).await;
    speaks.write_all(&[b'x'; PREFACE]).await.expect("it takes them");
    connection.read_exact(&mut [0; PREFACE]).await.expect("all of it");
    let more = timeout(Duration::from_millis(200), connection.read_u8()).await;
    assert!(more.is_err(), "it is waited for: {more:?}");
}

#[tokio::test]
async fn who_finds_no_place_waits_outside_and_strangers_have_a_part_of_them() {
    let (mut listener, address) = listener(GREETING).await;
    let _peers = [TcpStream::connect(address).await, TcpStream::connect(address).await];
    let first = accepted(&mut listener).await;
    let _second = accepted(&mut listener).await;
    let _third = TcpStream::connect(address).await.expect("the kernel takes it");
    let outside = timeout(Duration::from_millis(100), listener.accept()).await;
    assert!(outside.is_err(), "{outside:?}");
    drop(first);
    let _third = accepted(&mut listener).await;

    let stranger = Some([192, 0, 2, 1].into());
    let one = listener.place_of_stranger(stranger);
    assert!(matches!(one, Some(Some(_))) && listener.place_of_stranger(stranger).is_none());
    assert!(matches!(listener.place_of_stranger(None), Some(None)), "a socket of the file system is trusted");
}
