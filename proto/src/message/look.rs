//! Looks: questions of operators that a node asks the nodes below it, and the views that they answer with.
//!
//! The body of a look and the content of a view are bytes that only those read who ask and answer: what passes them on need not
//! know them.

use std::time::Duration;

use crate::message::refusal::Refusal;
use crate::wire;

/// A look at a node, and at those below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Look {
    /// The number that the views repeat.
    pub id: u64,
    /// The kind of what is asked.
    pub kind: LookKind,
    /// The time for which the view is waited for, from when this comes.
    pub patience: Duration,
    /// The bounds of the view.
    pub bounds: ViewBounds,
    /// The question, as its kind says it.
    pub body: Vec<u8>,
}

/// The kind of a look.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LookKind {
    /// The tree: each node with its busiest resources.
    Tree,
    /// The nodes at which a client holds a resource.
    Client,
    /// The reasons of the amounts on the way down to a holder.
    Explain,
    /// The demands of nodes under other templates.
    PlanDemand,
    /// The effect of those, under what the node above would grant.
    PlanSupply,
    /// One of a later version.
    Other(u32),
}

/// The bounds of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ViewBounds {
    /// Bytes at the most.
    pub bytes: usize,
    /// Nodes at the most.
    pub nodes: usize,
    /// Levels below the node that is asked.
    pub levels: u32,
}

/// A part of a view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ViewPart {
    /// The number of the look.
    pub id: u64,
    /// Its place among the parts, counted from 0.
    pub part: u32,
    /// Whether it is the last.
    pub is_last: bool,
    /// The bytes.
    pub body: Vec<u8>,
}

// === impl Look ===

impl Look {
    pub(super) fn to_wire(&self) -> wire::Look {
        wire::Look {
            id: self.id,
            kind: self.kind.number(),
            deadline_ms: u32::try_from(self.patience.as_millis()).unwrap_or(u32::MAX),
            most_bytes: self.bounds.bytes as u64,
            most_nodes: u32::try_from(self.bounds.nodes).unwrap_or(u32::MAX),
            levels: self.bounds.levels,
            body: Some(self.body.clone()).filter(|body| !body.is_empty()),
        }
    }

    pub(super) fn from_wire(look: wire::Look) -> Look {
        Look {
            id: look.id,
            kind: LookKind::numbered(look.kind),
            patience: Duration::from_millis(look.deadline_ms.into()),
            bounds: ViewBounds {
                bytes: usize::try_from(look.most_bytes).unwrap_or(usize::MAX),
                nodes: look.most_nodes as usize,
                levels: look.levels,
            },
            body: look.body.unwrap_or_default(),
        }
    }
}

// === impl LookKind ===

impl LookKind {
    /// The number of it on the wire.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            LookKind::Tree => 1,
            LookKind::Client => 2,
            LookKind::Explain => 3,
            LookKind::PlanDemand => 4,
            LookKind::PlanSupply => 5,
            LookKind::Other(number) => number,
        }
    }

    /// The kind of that number.
    #[must_use]
    pub const fn numbered(number: u32) -> LookKind {
        match number {
            1 => LookKind::Tree,
            2 => LookKind::Client,
            3 => LookKind::Explain,
            4 => LookKind::PlanDemand,
            5 => LookKind::PlanSupply,
            number => LookKind::Other(number),
        }
    }
}

// === impl ViewPart ===

impl ViewPart {
    /// The bytes of one part, at the most.
    pub const LONGEST: usize = 64 << 10;

    pub(super) fn to_wire(&self) -> wire::ViewRequest {
        wire::ViewRequest {
            id: Some(self.id),
            part: Some(self.part),
            is_last: self.is_last.then_some(true),
            body: Some(self.body.clone()).filter(|body| !body.is_empty()),
        }
    }

    pub(super) fn from_wire(view: wire::ViewRequest) -> Result<ViewPart, Refusal> {
        let body = view.body.unwrap_or_default();
        if body.len() > ViewPart::LONGEST {
            let wanted = format!("{} at most", ViewPart::LONGEST);
            return Err(Refusal::invalid("view.body", format!("has {} bytes", body.len()), wanted));
        }
        Ok(ViewPart {
            id: view.id.ok_or_else(|| Refusal::missing("view.id", "the number of the look"))?,
            part: view.part.ok_or_else(|| Refusal::missing("view.part", "its place among the parts"))?,
            is_last: view.is_last.unwrap_or(false),
            body,
        })
    }
}
