//! The events that reach a session from its servers, by whatever way they came.

use lessor_proto::ReportId;
use lessor_proto::message::{Answer, Down, Leader};

use super::Failure;

/// An event for the session whose action led to it.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// The answer to ask `id`.
    Answered {
        /// Its number.
        id: ReportId,
        /// The answer.
        answer: Answer,
    },
    /// Release `id` was answered.
    Released {
        /// Its number.
        id: ReportId,
        /// The leader, if that is not the one asked.
        redirect: Option<Leader>,
    },
    /// Ask or release `id` got no usable answer.
    Failed {
        /// Its number.
        id: ReportId,
        /// Why.
        failure: Failure,
    },
    /// Something came down stream `id`.
    Down {
        /// The number of the stream.
        id: u64,
        /// The message that came.
        down: Down,
    },
    /// A message came down stream `id` that is of a kind of a later version, and is passed over.
    Unknown {
        /// The number of the stream.
        id: u64,
    },
    /// Stream `id` has ended, or could not be opened.
    Closed {
        /// The number of the stream.
        id: u64,
        /// Why.
        failure: Failure,
    },
}
