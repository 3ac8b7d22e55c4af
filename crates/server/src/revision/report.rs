//! The report of a task: what it has in force, what it has refused, and what it says of drafts.

use serde::{Deserialize, Serialize};

use super::fault::{self, BadRevision};

/// The report that a task writes into its key, for pushers and for the other tasks of its node.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct TaskReport {
    /// The form in which it is written.
    pub form: u32,
    /// The node.
    pub node: String,
    /// The address that clients are told.
    pub address: String,
    /// Whether it leads its node.
    pub leads: bool,
    /// Whether it stands for election, or would.
    pub stands: bool,
    /// The number of the revision that it has in force; 0: none.
    pub in_force: u64,
    /// The greatest number that stands in the record of the node, if it leads.
    pub record: u64,
    /// The number of the head that it has seen last.
    pub head_seen: u64,
    /// The revision that it has refused, if it is the last that it has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedRevision>,
    /// Its verdicts on the last drafts.
    #[serde(default)]
    pub drafts: Vec<DraftVerdict>,
    /// The version of the program.
    pub binary: String,
    /// The feature level of the templates that it reads.
    pub features: u32,
}

/// A revision that a task has refused.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RefusedRevision {
    /// Its number; 0: the head could not be read.
    pub number: u64,
    /// The faults.
    pub why: Vec<String>,
}

/// A verdict on a draft.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct DraftVerdict {
    /// The draft.
    pub id: String,
    /// The faults; none: it can be put in force.
    pub faults: Vec<String>,
}

/// The most faults, and bytes of one, that are told.
const MOST_FAULTS: usize = 20;
const MOST_TEXT: usize = 500;

// === impl TaskReport ===

impl TaskReport {
    /// The text that stands at its key.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }

    /// The report that stands at `key`.
    ///
    /// # Errors
    /// When it is none, or of a later form.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<TaskReport, BadRevision> {
        fault::decode(key, "a report of a task", bytes)
    }

    /// The verdict on a draft, if there is one.
    #[must_use]
    pub fn verdict(&self, draft: &str) -> Option<&DraftVerdict> {
        self.drafts.iter().find(|verdict| verdict.id == draft)
    }
}

/// As many of the faults, and as much of each, as is told.
pub(crate) fn told(faults: Vec<String>) -> Vec<String> {
    let count = faults.len();
    let mut told: Vec<String> = faults.into_iter().take(MOST_FAULTS).map(shortened).collect();
    if count > MOST_FAULTS {
        told.push(format!("and {} more", count - MOST_FAULTS));
    }
    told
}

fn shortened(mut text: String) -> String {
    if text.len() > MOST_TEXT {
        let end = (0..=MOST_TEXT).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}
