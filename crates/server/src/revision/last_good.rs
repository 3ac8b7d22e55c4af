//! The last good revision of a node, as a task keeps it on its disk: enough to start with while etcd is away.

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::fault::{self, BadRevision};
use super::head::RevisionHead;
use super::{FORM, RevisionDocument};

/// The last revision that was in force at a node, and its document.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LastGood {
    /// The form in which it is written.
    pub form: u32,
    /// The prefix at etcd under which it stood.
    pub prefix: String,
    /// The node.
    pub node: String,
    /// The revision.
    pub head: RevisionHead,
    /// The document that the node follows.
    pub document: RevisionDocument,
    /// The text of that.
    pub text: String,
}

// === impl LastGood ===

impl LastGood {
    /// That of a node.
    #[must_use]
    pub fn new(
        prefix: &str,
        node: &str,
        head: RevisionHead,
        document: RevisionDocument,
        text: &str,
    ) -> LastGood {
        let (prefix, node, text) = (prefix.to_owned(), node.to_owned(), text.to_owned());
        LastGood { form: FORM, prefix, node, head, document, text }
    }

    /// The text of the file.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }

    /// The last good revision of `node` under `prefix`, which `file` holds.
    ///
    /// # Errors
    /// When it is damaged, or another's.
    pub fn decode(file: &str, prefix: &str, node: &str, bytes: &[u8]) -> Result<LastGood, BadRevision> {
        let last: LastGood = fault::decode(file, "a last good revision", bytes)?;
        if (last.prefix.as_str(), last.node.as_str()) != (prefix, node) {
            let found = format!("a revision of node {:?} under {:?}", last.node, last.prefix);
            return Err(BadRevision::new(file, found, format!("one of node {node:?} under {prefix:?}")));
        }
        let digest = Digest::of(&last.text);
        if digest != last.document.blob {
            let found = format!("a text with digest {digest}");
            return Err(BadRevision::new(file, found, last.document.blob.to_string()));
        }
        Ok(last)
    }
}
