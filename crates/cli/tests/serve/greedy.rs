//! Peers that take connections and give nothing for them: others are served, and so are probes.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use lessor_proto::wire::GetCapacityRequest;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::house::holder::{Holder, Nature};
use crate::house::{AGES, House, everything, page};
use crate::raw;

/// Half of the connections are kept for pages, as their port is another one; an address has half of a half.
const FLAGS: [&str; 4] = ["--max-connections", "40", "--request-timeout", "2s"];
const PLACES: usize = 20;
const OF_ADDRESS: usize = PLACES / 2;

/// A connection from an address of this machine that ends so.
async fn connect(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)).unwrap();
    timeout(AGES, socket.connect(to)).await.expect("it connects in time").unwrap()
}

/// Waits until the other side hangs up.
async fn hung_up(stream: &mut TcpStream) {
    // It may hang up with or without a word.
    let _ = timeout(AGES, stream.read_to_end(&mut Vec::new())).await.expect("it hangs up in time");
}

#[tokio::test]
async fn connections_that_say_nothing_shut_out_nobody() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let mut silent = Vec::new();
    for last in 2..=4 {
        for _ in 0..OF_ADDRESS {
            silent.push(connect(last, house.address()).await);
        }
    }
    // All places are taken and some wait for one; the port of pages has its own.
    assert_eq!(page::get(house.http(), "/healthz").await.body, "ok\n");
    assert_eq!(page::get(house.http(), "/readyz?leads").await.code, 200);
    let mut honest = Holder::new("honest", Nature::Knows, "db", 10.0);
    assert_eq!(honest.report(&mut house.capacity().await).await.unwrap(), 10.0);
    for stream in &mut silent {
        hung_up(stream).await;
    }
    assert_eq!(house.metric("lessor_connections_silent_total").await, silent.len() as f64);
    house.stop().await;
}

#[tokio::test]
async fn one_address_does_not_take_all_places() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    let mut greedy = Vec::new();
    for _ in 0..OF_ADDRESS {
        let mut stream = connect(2, house.address()).await;
        // It speaks, and goes on to hold its place.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        stream.read_exact(&mut [0]).await.expect("it is let in");
        greedy.push(stream);
    }
    hung_up(&mut connect(2, house.address()).await).await;
    assert_eq!(house.metric("lessor_connections_turned_away_total").await, 1.0);
    let mut honest = Holder::new("honest", Nature::Knows, "db", 10.0);
    assert_eq!(honest.report(&mut house.capacity().await).await.unwrap(), 10.0);
    drop(greedy);
    house.stop().await;
}

#[tokio::test]
async fn a_request_that_never_ends_is_given_up() {
    let house = House::open_with(&everything(100.0, 60), &FLAGS).await;
    // Pages: a head that never ends.
    let mut dribbles = TcpStream::connect(house.http()).await.unwrap();
    dribbles.write_all(b"GET /healthz HTTP/1.1\r\nHost: here\r\nX-Long: ").await.unwrap();
    hung_up(&mut dribbles).await;
    // Calls: one whole message, and no end of the body.
    let ask = GetCapacityRequest { client_id: Some("endless".to_owned()), ..GetCapacityRequest::default() };
    let channel = house.connect().await;
    let path = "/doorman.Capacity/GetCapacity";
    let given_up = raw::stream(&channel, path, &[&ask.encode_to_vec()]).await.unwrap_err();
    assert_eq!(given_up.code(), tonic::Code::Cancelled, "{given_up:?}");
    // Streams take as long as they like: one that is older than that goes on.
    let client = lessor_client::Client::builder(house.address().to_string()).id("listens").connect().await;
    let client = client.unwrap();
    let mut rate = client.rate("db").wants(10.0).open().unwrap();
    crate::crash::until(&mut rate, "leased", |lease| {
        crate::crash::is(lease, lessor_client::Rung::Leased, 10)
    })
    .await;
    let mut endless = raw::stream(&channel, path, &[&ask.encode_to_vec()]).await;
    assert!(endless.as_mut().is_err(), "{endless:?}");
    assert_eq!(house.metric("lessor_streams").await, 1.0);
    timeout(AGES, client.close()).await.unwrap();
    house.stop().await;
}

/// The most memory that a server may have had at once here: the budget of unfinished requests, what is free in each of them,
/// what a few messages take while they are decoded, and what it has anyway.
const MOST_MEMORY: usize = 256 << 20;

async fn is_served(house: &House) {
    let mut honest = Holder::new("honest", Nature::Knows, "db", 10.0);
    assert_eq!(honest.report(&mut house.capacity().await).await.unwrap(), 10.0);
}

#[tokio::test]
async fn messages_of_empty_submessages_are_refused_before_they_are_decoded() {
    let house = House::open(&everything(100.0, 60)).await;
    let channel = house.connect().await;
    let empty = |field: &[u8]| field.repeat((4 << 20) / field.len() - 64);
    let within = |number: u8, bytes: Vec<u8>| {
        let mut message = vec![number << 3 | 2];
        prost::encoding::encode_varint(bytes.len() as u64, &mut message);
        message.extend(bytes);
        message
    };
    let resources = "resources in one request";
    for (path, message, what) in [
        ("GetCapacity", empty(b"\x12\0"), resources),
        ("ReleaseCapacity", empty(b"\x12\0"), resources),
        ("GetServerCapacity", empty(b"\x12\0"), resources),
        ("GetServerCapacity", within(2, empty(b"\x1a\0")), "priorities in one request"),
        ("GetServerCapacity", within(2, within(3, empty(b"\xa2\x06\0"))), "buckets in one request"),
        ("Session", within(2, empty(b"\x1a\0")), resources),
        ("Session", within(3, empty(b"\x12\0")), resources),
        ("Session", within(5, empty(b"\x2a\0")), "domains in one message"),
        ("Session", within(5, within(5, empty(b"\x12\0"))), "entries of domains in one message"),
    ] {
        let path = format!("/doorman.Capacity/{path}");
        let refused = raw::stream(&channel, &path, &[&message]).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{path} {what}: {refused:?}");
        assert!(refused.message().starts_with(&format!("{what}: ")), "{path} {what}: {refused:?}");
    }
    is_served(&house).await;
    let memory = house.most_memory();
    assert!(memory < MOST_MEMORY, "{memory} bytes");
    house.stop().await;
}

#[tokio::test]
async fn bodies_without_an_end_have_a_budget_together() {
    let house = House::open(&everything(100.0, 60)).await;
    let channel = house.connect().await;
    let mut begun = tokio::task::JoinSet::new();
    for _ in 0..200 {
        begun.spawn(raw::begin(channel.clone()));
    }
    // Each has 2 MiB, but for 64 KiB which are free; the budget is 64 MiB.
    for _ in 0..200 - 64 {
        let refused = timeout(AGES, begun.join_next()).await.expect("it is refused at once").unwrap();
        let refused = refused.unwrap().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted, "{refused:?}");
        assert!(refused.message().starts_with("bytes of unfinished requests: "), "{refused:?}");
    }
    is_served(&house).await;
    let memory = house.most_memory();
    assert!(memory < MOST_MEMORY, "{memory} bytes");
    // What they had is there for others when they have gone.
    begun.shutdown().await;
    let names: Vec<String> = (0..10_000).map(|number| format!("a/resource/of/doormans/{number}")).collect();
    let resource = names.iter().map(|name| crate::house::holder::ask(name, 1.0)).collect();
    let ask =
        GetCapacityRequest { client_id: Some("large".into()), resource, ..GetCapacityRequest::default() };
    assert_eq!(house.capacity().await.get_capacity(ask).await.unwrap().into_inner().response.len(), 10_000);
    house.stop().await;
}
