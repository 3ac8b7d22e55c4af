//! The head: which revision is in force; and what keeps it from being moved.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::fault::{self, BadRevision};

/// The revision that is in force, by number and digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevisionHead {
    /// The form in which it is written.
    pub form: u32,
    /// The number.
    pub number: u64,
    /// The digest of its record.
    pub digest: Digest,
}

/// An order that nobody push. It ends by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PushFreeze {
    /// The form in which it is written.
    pub form: u32,
    /// The author.
    pub by: String,
    /// Why.
    pub message: String,
    /// Until when, by the clock of the author.
    pub until: String,
}

// === impl RevisionHead ===

impl RevisionHead {
    /// The text that stands at its key.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("a string and numbers")
    }

    /// The head that stands at `key`.
    ///
    /// # Errors
    /// When it is none, or of a later form.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<RevisionHead, BadRevision> {
        let head: RevisionHead = fault::decode(key, "a head", bytes)?;
        match head.number {
            0 => Err(BadRevision::new(key, "number 0", "a number from 1 on")),
            _ => Ok(head),
        }
    }
}

// === impl PushFreeze ===

impl PushFreeze {
    /// The text that stands at its key.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings and a number")
    }

    /// The freeze that stands at `key`.
    ///
    /// # Errors
    /// When it is none, or of a later form.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<PushFreeze, BadRevision> {
        fault::decode(key, "a freeze", bytes)
    }
}
