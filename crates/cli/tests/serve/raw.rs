//! Requests that no client library would send.

use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::Frame;
use prost::bytes::{Buf, BufMut, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;
use tonic::client::GrpcService;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::house::AGES;

/// Bytes as they are, where a message should be.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Calls the method at this path with these bytes for a request.
pub(crate) async fn call(channel: &Channel, path: &str, bytes: &[u8]) -> Result<Bytes, Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    timeout(AGES, grpc.ready()).await.expect("ready in time").expect("the connection lives");
    let path = PathAndQuery::try_from(path).expect("a path");
    let call = grpc.unary(Request::new(Bytes::copy_from_slice(bytes)), path, Raw);
    timeout(AGES, call).await.expect("an answer in time").map(tonic::Response::into_inner)
}

/// Sends these messages on a stream, and gives back with what it ends.
pub(crate) async fn stream(channel: &Channel, path: &str, messages: &[&[u8]]) -> Result<(), Status> {
    let mut grpc = tonic::client::Grpc::new(channel.clone());
    timeout(AGES, grpc.ready()).await.expect("ready in time").expect("the connection lives");
    let path = PathAndQuery::try_from(path).expect("a path");
    let messages: Vec<Bytes> = messages.iter().map(|bytes| Bytes::copy_from_slice(bytes)).collect();
    // The stream stays open for as long as the other side likes.
    let messages = tokio_stream::iter(messages).chain(tokio_stream::pending());
    let call = grpc.streaming(Request::new(messages), path, Raw);
    let mut answers = timeout(AGES, call).await.expect("an answer in time")?.into_inner();
    while timeout(AGES, answers.message()).await.expect("an answer in time")?.is_some() {}
    Ok(())
}

/// Sends bytes that are not even HTTP, and waits until the other side hangs up.
pub(crate) async fn shout(address: SocketAddr, bytes: &[u8]) {
    let shouting = async {
        let mut stream = TcpStream::connect(address).await.expect("it takes connections");
        stream.write_all(bytes).await.expect("it takes bytes");
        // It may hang up with or without a word.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    };
    timeout(AGES, shouting).await.expect("it hangs up");
}

/// A body that begins a message and never ends it.
struct Endless {
    left: usize,
}

impl tonic::codegen::Body for Endless {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if self.left == 0 {
            return Poll::Pending;
        }
        let data = match self.left {
            UNFINISHED => Bytes::from_static(b"\0\0\x40\0\0"),
            _ => Bytes::from(vec![0x12; 32 << 10]),
        };
        self.left = self.left.saturating_sub(data.len());
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

/// Bytes of a message of 4 MiB that are sent.
const UNFINISHED: usize = 2 << 20;

/// Begins a call that it never ends, and returns what it is answered before.
pub(crate) async fn begin(mut channel: Channel) -> Result<(), Status> {
    let request = http::Request::post("/doorman.Capacity/GetCapacity")
        .header("content-type", "application/grpc")
        .body(tonic::body::Body::new(Endless { left: UNFINISHED }))
        .unwrap();
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
    let answer = channel.call(request).await.unwrap();
    Status::from_header_map(answer.headers()).map_or(Ok(()), Err)
}
