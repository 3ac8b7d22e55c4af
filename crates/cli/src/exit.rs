//! The ends of commands that pipelines tell apart.

use std::fmt;

/// An end that is not in order, and its exit code.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) code: u8,
    message: String,
}

/// There are changes, and somebody wanted to know by the code.
pub(crate) const CHANGES: u8 = 2;
/// Somebody was faster.
const FASTER: u8 = 3;
/// It is not in force everywhere, or would not be.
const NOT_EVERYWHERE: u8 = 4;
/// Somebody has forbidden it.
const FORBIDDEN: u8 = 5;

// === impl Exit ===

impl Exit {
    /// An end of which everything has been said.
    pub(crate) fn silent(code: u8) -> anyhow::Error {
        Exit { code, message: String::new() }.into()
    }

    pub(crate) fn faster(message: String) -> anyhow::Error {
        Exit { code: FASTER, message }.into()
    }

    pub(crate) fn not_everywhere(message: String) -> anyhow::Error {
        Exit { code: NOT_EVERYWHERE, message }.into()
    }

    pub(crate) fn forbidden(message: String) -> anyhow::Error {
        Exit { code: FORBIDDEN, message }.into()
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Exit {}
