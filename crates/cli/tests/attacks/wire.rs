//! One end of an HTTP/2 connection, frame by frame, which does what no library would.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use prost::Message;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::house::AGES;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RESET: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The words with which HTTP/2 begins.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// One end of a connection. What the other end says is not read unless that is asked for.
pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
}

// === impl Wire ===

impl Wire {
    /// A connection from 127.0.0.`last`, which has said that it speaks HTTP/2.
    pub(crate) async fn open(last: u8, to: SocketAddr) -> Wire {
        let mut socket = dial(last, to).await;
        socket.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
        Wire { socket }
    }

    /// Says that until `end`, or until the other side has had enough, and gives back how often. Where it has nothing to say it
    /// stays.
    pub(crate) async fn repeat(&mut self, end: Time, mut frames: impl FnMut(u32) -> Vec<u8>) -> u32 {
        let mut times = 0;
        let mut read = vec![0; 64 << 10];
        while clock::now() < end {
            let left = end.since(clock::now());
            let said = frames(times);
            if said.is_empty() {
                pause().await;
                continue;
            }
            match timeout(left, self.socket.write_all(&said)).await {
                Ok(Ok(())) => times += 1,
                Ok(Err(_)) | Err(_) => break,
            }
            // What it answers is thrown away.
            while self.socket.try_read(&mut read).is_ok_and(|count| count > 0) {}
            tokio::task::yield_now().await;
        }
        times
    }
}

/// A connection from an address of this machine that ends so.
pub(crate) async fn dial(last: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)), 0)).unwrap();
    timeout(AGES, socket.connect(to)).await.expect("it connects in time").unwrap()
}

/// The time in so many seconds.
pub(crate) fn in_seconds(seconds: u64) -> Time {
    clock::now() + Duration::from_secs(seconds)
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers of a call of that method, none of them compressed.
pub(crate) fn headers(stream: u32, method: &str) -> Vec<u8> {
    let path = format!("/doorman.Capacity/{method}");
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", &path),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    frame(HEADERS, END_HEADERS, stream, &headers.into_iter().flat_map(field).collect::<Vec<u8>>())
}

/// A header that is neither compressed nor to be remembered.
pub(crate) fn field((name, value): (&str, &str)) -> Vec<u8> {
    let mut block = vec![0];
    for text in [name, value] {
        block.push(u8::try_from(text.len()).unwrap());
        block.extend(text.as_bytes());
    }
    block
}

/// A message of gRPC in one frame of data.
pub(crate) fn message(stream: u32, flags: u8, content: &impl Message) -> Vec<u8> {
    let content = content.encode_to_vec();
    let mut payload = vec![0];
    payload.extend(u32::try_from(content.len()).unwrap().to_be_bytes());
    payload.extend(content);
    frame(DATA, flags, stream, &payload)
}

/// Waits for so long.
pub(crate) async fn wait(time: Duration) {
    clock::sleep_until(clock::now() + time).await;
}

/// A tenth of a second.
pub(crate) async fn pause() {
    wait(Duration::from_millis(100)).await;
}
