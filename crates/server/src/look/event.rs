//! The events that a room of looks hears of, and what comes out of it.

use std::collections::BTreeMap;

use lessor_proto::message::{Hello, Look, LookKind, ViewPart};

use crate::streams::Peer;

/// Something that is asked of a node and of those below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookQuestion {
    /// The kind of it.
    pub kind: LookKind,
    /// The question, as its kind says it.
    pub body: Vec<u8>,
}

/// An event that a room of looks has to know.
#[derive(Clone, PartialEq, Debug)]
pub enum LookEvent {
    /// A node below has opened a stream.
    Opened {
        /// The number of the stream.
        peer: Peer,
        /// The one who opened it.
        hello: Hello,
        /// Whether both ends know looks.
        can_be_asked: bool,
    },
    /// The stream of a node below has ended.
    Closed {
        /// Its number.
        peer: Peer,
    },
    /// A part of a view came up.
    Shown {
        /// The number of the stream.
        peer: Peer,
        /// The part.
        part: ViewPart,
    },
    /// The node above looks at this one.
    Asked {
        /// The number of the stream to it.
        stream: u64,
        /// The look.
        look: Box<Look>,
    },
}

/// An output of a room of looks.
#[derive(Clone, PartialEq, Debug)]
pub enum LookOutput {
    /// Send a look down a stream, behind all else.
    Look {
        /// The number of the stream.
        peer: Peer,
        /// The look.
        look: Box<Look>,
    },
    /// Make the content of this node for a question, and hand it in by [`Looks::content`](super::Looks::content).
    Content {
        /// The number of the look.
        look: u64,
        /// The question.
        question: LookQuestion,
        /// Bytes of the answer at the most.
        bytes: usize,
    },
    /// Put together what this node and those below it have said, and hand it in by [`Looks::folded`](super::Looks::folded).
    Fold {
        /// The number of the look.
        look: u64,
        /// The question.
        question: LookQuestion,
        /// The content of each node below that has answered.
        contents: Vec<(String, Vec<u8>)>,
    },
    /// Say a part of a view to the node above, behind all else.
    Show {
        /// The number of the stream to it.
        stream: u64,
        /// The part.
        part: ViewPart,
    },
    /// The view that was asked for here.
    View {
        /// The number that was given for it.
        ticket: u64,
        /// The bytes of it, for [`ViewTree::read`](super::ViewTree::read).
        bytes: Vec<u8>,
    },
}

/// The content of a node for a question.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct NodeContent {
    /// The bytes of it; absent where the node does not know the kind, or has nothing to say.
    pub bytes: Option<Vec<u8>>,
    /// The way in which those below are asked, where the kind of the question leaves that to the content.
    pub passing: LookPassing,
    /// The names of nodes below that this one knows of: those that have no stream cannot be asked.
    pub known: Vec<String>,
}

/// The question to those below.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum LookPassing {
    /// Nobody is asked.
    #[default]
    Nobody,
    /// All are asked this.
    All(Vec<u8>),
    /// These are, each something of its own; others are not, and not shown.
    Each(BTreeMap<String, Vec<u8>>),
}

// === impl LookQuestion ===

impl LookQuestion {
    /// Whether all below are asked the very same, at once. Of what later versions ask, nobody is.
    pub(super) fn is_for_all(&self) -> bool {
        matches!(self.kind, LookKind::Tree | LookKind::Client)
    }

    /// Whether what those below say is put together with what the node says.
    pub(super) fn is_folded(&self) -> bool {
        self.kind == LookKind::PlanDemand
    }
}
