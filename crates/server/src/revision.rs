//! A revision of the templates: the documents of all nodes at once, who made it and why, as it stands at etcd.
//!
//! ```text
//! P/head                   the number and digest of the revision in force; the only key that pushes compete for
//! P/head/draft/<id>        a proposal in the form of a revision, which ends by itself
//! P/head/override/<id>     an override, which ends by itself
//! P/revision/<10 digits>   a revision; never changed
//! P/blob/<64 digits>       a document, compressed, under the digest of its text; never changed
//! P/task/<node>/<nonce>    a report of a task, which ends with it
//! P/freeze                 while it is there nobody pushes
//! ```
//!
//! A head names the digest of its revision, a revision those of its documents and of the one before it: so whoever has read
//! a head knows what belongs to it, whenever he reads the rest, and the history does not lean on that of etcd.
//!
//! All of it is checked where it is decoded: what is damaged, foreign, too large, or of a later form gets a [`BadRevision`].
//!
//! ```
//! use lessor_server::revision::{Digest, Revision, RevisionAuthor, RevisionDocument};
//!
//! let text = "resources: []\n";
//! let document = RevisionDocument::new("paris", "leaf.yaml", text);
//! let revision = Revision {
//!     number: 7,
//!     documents: vec![document, RevisionDocument::new("*", "all.yaml", "resources: []")],
//!     message: "why".to_owned(),
//!     ..Revision::default()
//! };
//! let text = revision.encode("P/revision/0000000007")?;
//! let (read, digest) = Revision::decode("P/revision/0000000007", text.as_bytes())?;
//! assert_eq!((&read, digest), (&revision, Digest::of(&text)));
//! assert_eq!(read.document_for("paris").unwrap().name, "leaf.yaml");
//! assert_eq!(read.document_for("root").unwrap().name, "all.yaml");
//! # Ok::<(), lessor_server::revision::BadRevision>(())
//! ```

mod blob;
mod digest;
mod fault;
mod head;
mod keys;
mod last_good;
mod report;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use lessor_proto::glob::Glob;
use serde::{Deserialize, Serialize};

pub use self::blob::{MOST_BLOB_BYTES, pack, unpack};
pub use self::digest::Digest;
pub use self::fault::BadRevision;
pub(crate) use self::fault::decode;
pub use self::head::{PushFreeze, RevisionHead};
pub use self::keys::{BadPrefix, RevisionKeys};
pub use self::last_good::LastGood;
pub(crate) use self::report::told;
pub use self::report::{DraftVerdict, RefusedRevision, TaskReport};

/// The feature level of the templates that this version reads: a revision that needs a greater one is refused unread.
pub const FEATURE_LEVEL: u32 = 1;
/// The form in which all of it is written. A later one is refused.
pub const FORM: u32 = 1;
/// The most documents of a revision.
pub const MOST_DOCUMENTS: usize = 64;
/// The most bytes of all its documents, unpacked.
pub const MOST_BYTES: u64 = 16 << 20;
/// The most bytes of a message.
pub const MOST_MESSAGE: usize = 2 << 10;
/// The most bytes of the record of a revision.
pub const MOST_RECORD: usize = 64 << 10;

/// A revision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Revision {
    /// The form in which it is written.
    pub form: u32,
    /// Its number: greater than that of every revision that was ever in force.
    pub number: u64,
    /// The number of the one before it; 0: there was none.
    pub parent: u64,
    /// The digest of that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_digest: Option<Digest>,
    /// When it was made, by the clock of its author.
    pub at: String,
    /// The documents, in the order in which a node looks for its own.
    pub documents: Vec<RevisionDocument>,
    /// Its author.
    pub by: RevisionAuthor,
    /// Why it was made.
    pub message: String,
    /// Where more stands about that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ticket: Option<String>,
    /// The revision whose content it has, if it takes back what came since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback_of: Option<u64>,
    /// The feature level that its readers need.
    pub needs: u32,
    /// The program that made it.
    pub tool: String,
}

/// A document of a revision, and the nodes that it is for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RevisionDocument {
    /// The name of a node, or a glob of names.
    #[serde(rename = "for")]
    pub nodes: String,
    /// The name of the file, as faults show it.
    pub name: String,
    /// The digest of its text.
    pub blob: Digest,
    /// The bytes of its text.
    pub bytes: u64,
}

/// The author of a revision.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub struct RevisionAuthor {
    /// An identity, or `user@host`.
    pub name: String,
    /// Whether a server has looked who it is.
    pub verified: bool,
    /// The way by which it came.
    pub how: String,
}

// === impl Revision ===

impl Default for Revision {
    /// An empty one, which is not valid.
    fn default() -> Revision {
        Revision {
            form: FORM,
            number: 0,
            parent: 0,
            parent_digest: None,
            at: String::new(),
            documents: Vec::new(),
            by: RevisionAuthor::default(),
            message: String::new(),
            ticket: None,
            rollback_of: None,
            needs: FEATURE_LEVEL,
            tool: String::new(),
        }
    }
}

impl Revision {
    /// The text that stands at `key`.
    ///
    /// # Errors
    /// When it is not valid.
    pub fn encode(&self, key: &str) -> Result<String, BadRevision> {
        let text = serde_json::to_string(self).expect("strings and numbers");
        self.check(key)?;
        match text.len() {
            0..=MOST_RECORD => Ok(text),
            bytes => Err(BadRevision::new(key, format!("{bytes} bytes"), format!("at most {MOST_RECORD}"))),
        }
    }

    /// The revision that stands at `key`, and its digest.
    ///
    /// # Errors
    /// When it is not valid, or of a later form.
    pub fn decode(key: &str, bytes: &[u8]) -> Result<(Revision, Digest), BadRevision> {
        if bytes.len() > MOST_RECORD {
            let found = format!("{} bytes", bytes.len());
            return Err(BadRevision::new(key, found, format!("at most {MOST_RECORD}")));
        }
        let revision: Revision = decode(key, "a revision", bytes)?;
        revision.check(key)?;
        Ok((revision, Digest::of_bytes(bytes)))
    }

    /// The same of what a head names: nothing but that.
    ///
    /// # Errors
    /// When it is not valid, or another.
    pub fn decode_of(key: &str, head: &RevisionHead, bytes: &[u8]) -> Result<Revision, BadRevision> {
        let (revision, digest) = Revision::decode(key, bytes)?;
        if (revision.number, digest) != (head.number, head.digest) {
            let found = format!("revision {} with digest {digest}", revision.number);
            let wanted = format!("revision {} with digest {}, as the head says", head.number, head.digest);
            return Err(BadRevision::new(key, found, wanted));
        }
        Ok(revision)
    }

    /// The head that names it.
    #[must_use]
    pub fn head(&self, digest: Digest) -> RevisionHead {
        RevisionHead { form: FORM, number: self.number, digest }
    }

    /// The document that a node follows: the first that is for its very name, or else the first whose glob matches it.
    #[must_use]
    pub fn document_for(&self, node: &str) -> Option<&RevisionDocument> {
        let exact = self.documents.iter().find(|document| document.nodes == node);
        exact.or_else(|| self.documents.iter().find(|document| document.matches(node)))
    }

    fn check(&self, key: &str) -> Result<(), BadRevision> {
        let bad = |found: String, wanted: &str| Err(BadRevision::new(key, found, wanted));
        if self.number == 0 {
            return bad("number 0".to_owned(), "a number from 1 on");
        }
        if self.parent >= self.number {
            return bad(format!("number {} after parent {}", self.number, self.parent), "a greater number");
        }
        if (self.parent == 0) != self.parent_digest.is_none() {
            return bad(format!("parent {} without its digest, or the digest alone", self.parent), "both");
        }
        match self.message.len() {
            0 => return bad("no message".to_owned(), "a message that says why"),
            1..=MOST_MESSAGE => {}
            bytes => return bad(format!("a message of {bytes} bytes"), "at most 2048"),
        }
        match self.documents.len() {
            0 => return bad("no document".to_owned(), "one at least"),
            1..=MOST_DOCUMENTS => {}
            count => return bad(format!("{count} documents"), "at most 64"),
        }
        let bytes = self.documents.iter().fold(0_u64, |sum, document| sum.saturating_add(document.bytes));
        if bytes > MOST_BYTES {
            return bad(format!("documents of {bytes} bytes in all"), "at most 16777216");
        }
        let mut seen = BTreeSet::new();
        for RevisionDocument { nodes, .. } in &self.documents {
            if let Err(fault) = Glob::new(nodes) {
                return bad(format!("a document for {nodes:?}: {fault}"), "the name of a node, or a glob");
            }
            if !seen.insert(nodes.as_str()) {
                return bad(format!("two documents for {nodes:?}"), "one for each");
            }
        }
        Ok(())
    }
}

// === impl RevisionDocument ===

impl RevisionDocument {
    /// A document of that text.
    #[must_use]
    pub fn new(nodes: impl Into<String>, name: impl Into<String>, text: &str) -> RevisionDocument {
        let (blob, bytes) = (Digest::of(text), text.len() as u64);
        RevisionDocument { nodes: nodes.into(), name: name.into(), blob, bytes }
    }

    fn matches(&self, node: &str) -> bool {
        Glob::new(&self.nodes).is_ok_and(|glob| glob.matches(node))
    }
}
