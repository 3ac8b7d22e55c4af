//! The purposes for which the lock of the node is held.

use crate::shell::measure::Label;

/// The purpose for which the lock of the node is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum HoldKind {
    /// A request of somebody who polls.
    Ask,
    /// Something that is given back.
    Release,
    /// Something that came up a stream.
    Report,
    /// A stream that opens, or has ended.
    Stream,
    /// A turn of the driver's own task.
    Turn,
    /// Something from or for the node above.
    Parent,
    /// Leadership that begins or ends, and the record for successors.
    Election,
    /// Another repository.
    Reload,
    /// A recall by an operator.
    Recall,
    /// Overrides of operators.
    Override,
    /// Memory that is given back.
    CleanUp,
    /// A slice of the status.
    Status,
    /// An explanation for an operator.
    Explain,
    /// Something of a look.
    Look,
}

// === impl HoldKind ===

impl Label for HoldKind {
    const NAME: &'static str = "kind";
    const VALUES: &'static [&'static str] = &[
        "ask", "release", "report", "stream", "turn", "parent", "election", "reload", "recall", "override",
        "clean_up", "status", "explain", "look",
    ];

    fn place(self) -> usize {
        self as usize
    }
}
