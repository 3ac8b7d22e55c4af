//! A burst of small messages on many streams of one connection, frame by frame: what a proxy that carries a thousand clients
//! sends when it was held up for a moment.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::house::{House, soon};

/// As many as a server takes on one connection.
const STREAMS: u32 = 1_000;
/// The heartbeats that each of them sends at once.
const HEARTBEATS: u8 = 3;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GO_AWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_HEADERS: u8 = 4;

/// One end of an HTTP/2 connection.
struct Wire {
    socket: TcpStream,
    read: Vec<u8>,
}

// === impl Wire ===

impl Wire {
    async fn open(house: &House) -> Wire {
        let mut socket = TcpStream::connect(house.address()).await.unwrap();
        let mut first = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        first.extend(frame(SETTINGS, 0, 0, &[]));
        first.extend(frame(WINDOW_UPDATE, 0, 0, &(1_u32 << 24).to_be_bytes()));
        socket.write_all(&first).await.unwrap();
        Wire { socket, read: Vec::new() }
    }

    async fn say(&mut self, frames: Vec<u8>) {
        soon(self.socket.write_all(&frames)).await.unwrap();
    }

    /// The stream and the payload of the next frame with data.
    async fn hear(&mut self) -> (u32, Vec<u8>) {
        loop {
            let length =
                self.read.get(..3).map(|bytes| u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]));
            let whole = length.map(|length| 9 + length as usize).filter(|whole| self.read.len() >= *whole);
            let Some(whole) = whole else {
                let count = soon(self.socket.read_buf(&mut self.read)).await.unwrap();
                assert!(count > 0, "the connection has ended");
                continue;
            };
            let frame: Vec<u8> = self.read.drain(..whole).collect();
            let payload = String::from_utf8_lossy(&frame[9..]);
            assert!(frame[3] != GO_AWAY, "the connection is ended: {payload}");
            if frame[3] == DATA {
                return (u32::from_be_bytes([frame[5], frame[6], frame[7], frame[8]]), frame[9..].to_vec());
            }
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// The headers of a call of `Session`, none of them compressed.
fn headers(stream: u32) -> Vec<u8> {
    let headers = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/doorman.Capacity/Session"),
        (":authority", "localhost"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ];
    let mut block = Vec::new();
    for (name, value) in headers {
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap());
            block.extend(text.as_bytes());
        }
    }
    frame(HEADERS, END_HEADERS, stream, &block)
}

/// A message of a client: the number of its field in `SessionUpRequest`, and its own fields.
fn message(stream: u32, field: u8, fields: &[u8]) -> Vec<u8> {
    let length = u8::try_from(fields.len()).unwrap();
    let mut payload = vec![0, 0, 0, 0, length + 2, field << 3 | 2, length];
    payload.extend(fields);
    frame(DATA, 0, stream, &payload)
}

fn hello(stream: u32) -> Vec<u8> {
    let name = format!("client-{stream}");
    let mut fields = vec![1 << 3 | 2, u8::try_from(name.len()).unwrap()];
    fields.extend(name.as_bytes());
    fields.push(2 << 3 | 1);
    fields.extend(7_u64.to_le_bytes());
    message(stream, 1, &fields)
}

fn heartbeat(stream: u32, id: u8) -> Vec<u8> {
    message(stream, 2, &[1 << 3, id, 5 << 3, 1])
}

#[tokio::test]
async fn a_burst_of_small_messages_breaks_no_connection() {
    let house = House::open().await;
    let mut wire = Wire::open(&house).await;
    // Streams of a client have odd numbers.
    let streams = || (0..STREAMS).map(|number| 2 * number + 1);
    wire.say(streams().flat_map(|stream| [headers(stream), hello(stream)].concat()).collect()).await;
    for _ in streams() {
        wire.hear().await;
    }
    let beat = |id| streams().flat_map(move |stream| heartbeat(stream, id));
    wire.say((1..=HEARTBEATS).flat_map(beat).collect()).await;
    // An earlier heartbeat need not be answered when a later one is.
    let mut waiting: std::collections::BTreeSet<u32> = streams().collect();
    while !waiting.is_empty() {
        let (stream, answer) = wire.hear().await;
        // Renewed by the last heartbeat, and no grant before.
        if answer.ends_with(&[3 << 3 | 2, 4, 1 << 3, HEARTBEATS, 2 << 3, 0]) {
            waiting.remove(&stream);
        }
    }
    drop(wire);
    house.end().await;
}
