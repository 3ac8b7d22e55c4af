//! The codec of gRPC messages, with buffers of their size.
//!
//! tonic sets aside two buffers of 8 KiB for each call. Of these a stream of small messages fills a line at a time, and has all
//! of it in memory in the end. Small buffers are filled again and again; for a message that is larger they grow.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// Encodes `T` and decodes `U`, with buffers that begin with so many bytes.
#[derive(Debug)]
pub struct SizedCodec<T, U, const BUFFER: usize>(PhantomData<(T, U)>);

/// The codec of this crate's client and server.
pub type MessageCodec<T, U> = SizedCodec<T, U, 256>;

/// Messages that are ready at the same time go out together, up to so many bytes: as tonic has it.
const TOGETHER: usize = 32 << 10;

// === impl SizedCodec ===

impl<T, U, const BUFFER: usize> Default for SizedCodec<T, U, BUFFER> {
    fn default() -> Self {
        SizedCodec(PhantomData)
    }
}

impl<T, U, const BUFFER: usize> Codec for SizedCodec<T, U, BUFFER>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> ProstEncoder<T> {
        ProstEncoder::new(BufferSettings::new(BUFFER, TOGETHER))
    }

    fn decoder(&mut self) -> ProstDecoder<U> {
        ProstDecoder::new(BufferSettings::new(BUFFER, TOGETHER))
    }
}
