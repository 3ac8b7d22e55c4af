//! The messages that come from a server, and the loss of the stream on which they would.

use lessor_proto::message::{Answer, Down};

/// A message from the server, or the loss of a stream to it.
#[derive(Debug)]
pub(super) enum Received {
    Stream(Box<Down>),
    Answer(Box<Answer>),
    Lost,
}
