//! Tests of the acceptor: who waits, who is turned away, and who must say something.

use std::sync::atomic::Ordering;

use lessor_proto::Epoch;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::connection::PREFACE;
use super::*;
use crate::node::NodeConfig;
use crate::repository::Repository;
use crate::shell::address_budget::{AddressBudgets, AddressLimits};
use crate::shell::driver::Driver;
use crate::shell::port_name::Port;

fn driver() -> Arc<Driver> {
    let config = NodeConfig::new("root", Epoch(1));
    Arc::new(Driver::new(config, Repository::default(), "here:1".to_owned(), 1))
}

async fn open(places: usize, most: usize) -> (Acceptor, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let driver = driver();
    let budgets = AddressBudgets::new(AddressLimits::default(), &driver.traffic().throttled);
    let places = Places::new(Port::Main, places, most, &budgets, &driver);
    (Acceptor::new(listener, places, None), address)
}

#[tokio::test]
async fn who_finds_no_place_waits_until_somebody_leaves() {
    let (mut acceptor, address) = open(1, 1).await;
    let _first = TcpStream::connect(address).await.unwrap();
    let _second = TcpStream::connect(address).await.unwrap();
    let inside = acceptor.accept().await;
    let places = Arc::clone(&acceptor.places);
    let traffic = || {
        let traffic = places.driver.traffic();
        (traffic.connections.of(Port::Main), traffic.waiting.of(Port::Main))
    };
    assert_eq!(traffic(), (1, 0));
    // Nobody is let in while the only permit is taken: polled once, and again after it is free.
    let mut next = Box::pin(acceptor.accept());
    assert!(futures_util::poll!(&mut next).is_pending());
    assert_eq!(traffic(), (1, 1), "somebody waits");
    drop(inside);
    let _second = next.await;
    assert_eq!(traffic(), (1, 0));
}

#[tokio::test]
async fn no_address_has_more_than_its_part_of_the_places() {
    let (mut acceptor, address) = open(3, 2).await;
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(address).await.unwrap());
    }
    let first = acceptor.accept().await;
    let second = acceptor.accept().await;
    let places = Arc::clone(&acceptor.places);
    let mut next = Box::pin(acceptor.accept());
    assert!(futures_util::poll!(&mut next).is_pending(), "a place is free, and not for this address");
    assert_eq!(clients[2].read(&mut [0]).await.unwrap(), 0, "it is turned away, and not left waiting");
    assert_eq!(places.driver.traffic().turned_away.load(Ordering::Relaxed), 1);
    drop(first);
    let _again = TcpStream::connect(address).await.unwrap();
    next.await;
    drop(second);
}

/// Reads until that fails.
async fn fault(connection: &mut Connection) -> io::ErrorKind {
    loop {
        match connection.read(&mut [0; 64]).await {
            Ok(0) => panic!("it has ended in order"),
            Ok(_) => {}
            Err(error) => return error.kind(),
        }
    }
}

#[tokio::test]
async fn who_does_not_say_what_it_speaks_leaves_its_place_to_others() {
    let (mut acceptor, address) = open(1, 1).await;
    acceptor.greeting = Duration::from_millis(20);
    let _silent = TcpStream::connect(address).await.unwrap();
    let mut silent = acceptor.accept().await;
    assert_eq!(fault(&mut silent).await, io::ErrorKind::TimedOut);
    drop(silent);

    let mut dribbles = TcpStream::connect(address).await.unwrap();
    let mut dribble = acceptor.accept().await;
    dribbles.write_all(b"PRI").await.unwrap();
    assert_eq!(fault(&mut dribble).await, io::ErrorKind::TimedOut, "three bytes say nothing");
}

#[tokio::test]
async fn of_who_has_said_what_it_speaks_nothing_more_is_asked() {
    let (mut acceptor, address) = open(1, 1).await;
    let mut speaks = TcpStream::connect(address).await.unwrap();
    let mut heard = acceptor.accept().await;
    assert!(heard.greeting.is_some());
    speaks.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    heard.read_exact(&mut [0; PREFACE]).await.unwrap();
    assert!(heard.greeting.is_none());
}
