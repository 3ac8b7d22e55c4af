//! What can happen, and what is under way.

use lessor_client::session::Failure;
use lessor_proto::message::{Answer, Ask, Down, Hello, Leader, Release, Up};

use lessor_server::node::MarkWrite;

use crate::faults::Mischief;
use crate::process::{Party, Sender};
use crate::stream::StreamRef;

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A deadline of somebody.
    Wake(Party),
    /// Something arrives at a task.
    ToNode {
        place: u32,
        task: u8,
        mail: ToNode,
    },
    /// Something arrives at a holder.
    ToHolder {
        holder: Sender,
        mail: ToHolder,
    },
    /// A belief ends, unless it was renewed.
    Lapse(u32),
    /// The units of a gauge in use change.
    Use(u32),
    /// A life of a client takes up a resource that it dropped.
    Take(u32, u32),
    /// A life that was frozen goes on.
    Thaw(Party, u32),
    Mischief(Mischief),
    /// A client comes back.
    Back(u32),
    /// A twin goes.
    TwinEnds(u32),
    /// A place without a leader gets one.
    Elect(u32),
    /// A client wants something else.
    Wants(u32),
    /// The configuration of a place has changed.
    Reload(u32),
    /// The leader of a reign cleans up.
    Tidy(u32, u32),
    /// A template comes back.
    Cover(u16),
    /// What the leader of an epoch has sent arrives at the record.
    Store {
        place: u32,
        epoch: u64,
        write: Box<MarkWrite>,
    },
    /// The leader of a reign hears what has become of it.
    Stored {
        place: u32,
        reign: u32,
        ticket: u64,
        committed: bool,
    },
}

/// What arrives at a task.
#[derive(Clone, Debug)]
pub(crate) enum ToNode {
    Ask {
        from: Sender,
        id: u64,
        ask: Box<Ask>,
    },
    Release {
        from: Sender,
        id: u64,
        release: Box<Release>,
    },
    Open {
        stream: StreamRef,
        hello: Box<Hello>,
    },
    Up {
        stream: StreamRef,
        up: Up,
    },
    /// The end of a stream; `certain` if it arrives although the stream is cut.
    Gone {
        stream: StreamRef,
        certain: bool,
    },
    /// The last message has left.
    Ready {
        stream: StreamRef,
    },
}

/// What arrives at a holder.
#[derive(Clone, Debug)]
pub(crate) enum ToHolder {
    Answered { id: u64, answer: Box<Answer> },
    Failed { id: u64, failure: Failure },
    Released { id: u64, redirect: Option<Leader> },
    Down { stream: StreamRef, down: Down },
    Closed { stream: StreamRef, failure: Failure, certain: bool },
}
