//! The keys of revisions at etcd: all of them under one prefix, which is not that of elections.

use super::digest::Digest;

/// The keys under a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevisionKeys {
    prefix: String,
}

/// The fault of a prefix.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("prefix {found:?} {fault}; wanted one as lessor-templates/prod, apart from that of elections")]
pub struct BadPrefix {
    /// The prefix.
    pub found: String,
    /// Its fault.
    pub fault: String,
}

/// The most bytes of a prefix.
const MOST: usize = 512;

// === impl RevisionKeys ===

impl RevisionKeys {
    /// Those under `prefix`; slashes at its end count for nothing.
    ///
    /// # Errors
    /// When there is nothing in it, it is too long, or it has control characters.
    pub fn new(prefix: &str) -> Result<RevisionKeys, BadPrefix> {
        let bad = |fault: &str| Err(BadPrefix { found: prefix.to_owned(), fault: fault.to_owned() });
        let trimmed = prefix.trim_end_matches('/');
        match trimmed.len() {
            0 => bad("is empty"),
            1..=MOST if trimmed.chars().any(char::is_control) => bad("has control characters"),
            1..=MOST => Ok(RevisionKeys { prefix: trimmed.to_owned() }),
            _ => bad("is longer than 512 bytes"),
        }
    }

    /// Whether one of both prefixes lies under the other, that of elections and this one.
    ///
    /// # Errors
    /// When that is so.
    pub fn check_apart(&self, elections: &str) -> Result<(), BadPrefix> {
        let (ours, theirs) = (format!("{}/", self.prefix), format!("{}/", elections.trim_end_matches('/')));
        if ours.starts_with(&theirs) || theirs.starts_with(&ours) {
            let fault = format!("is not apart from the prefix of elections, {elections:?}");
            return Err(BadPrefix { found: self.prefix.clone(), fault });
        }
        Ok(())
    }

    /// The prefix.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// That of the head. With it begin those of drafts and of overrides, and no others: who watches it sees all of them.
    #[must_use]
    pub fn head(&self) -> String {
        format!("{}/head", self.prefix)
    }

    /// The beginning of those of drafts.
    #[must_use]
    pub fn drafts(&self) -> String {
        format!("{}/head/draft/", self.prefix)
    }

    /// That of a draft.
    #[must_use]
    pub fn draft(&self, id: &str) -> String {
        format!("{}{id}", self.drafts())
    }

    /// The id of the draft that has this key.
    #[must_use]
    pub fn draft_of<'a>(&self, key: &'a str) -> Option<&'a str> {
        key.strip_prefix(self.drafts().as_str()).filter(|id| !id.is_empty())
    }

    /// The beginning of those of overrides.
    #[must_use]
    pub fn overrides(&self) -> String {
        format!("{}/head/override/", self.prefix)
    }

    /// That of an override.
    #[must_use]
    pub fn override_of(&self, id: &str) -> String {
        format!("{}{id}", self.overrides())
    }

    /// Whether this key is that of an override.
    #[must_use]
    pub fn is_override(&self, key: &str) -> bool {
        key.strip_prefix(self.overrides().as_str()).is_some_and(|id| !id.is_empty())
    }

    /// The beginning of those of revisions.
    #[must_use]
    pub fn revisions(&self) -> String {
        format!("{}/revision/", self.prefix)
    }

    /// That of a revision: their order is that of the numbers.
    #[must_use]
    pub fn revision(&self, number: u64) -> String {
        format!("{}{number:010}", self.revisions())
    }

    /// The beginning of those of documents.
    #[must_use]
    pub fn blobs(&self) -> String {
        format!("{}/blob/", self.prefix)
    }

    /// That of a document.
    #[must_use]
    pub fn blob(&self, digest: &Digest) -> String {
        format!("{}{}", self.blobs(), digest.hex())
    }

    /// The beginning of those of the reports of all tasks.
    #[must_use]
    pub fn tasks(&self) -> String {
        format!("{}/task/", self.prefix)
    }

    /// The same of the tasks of a node. A name may hold slashes, so what is found under it may be another node's.
    #[must_use]
    pub fn tasks_of(&self, node: &str) -> String {
        format!("{}{node}/", self.tasks())
    }

    /// That of the report of a task.
    #[must_use]
    pub fn task(&self, node: &str, nonce: u64) -> String {
        format!("{}{nonce:016x}", self.tasks_of(node))
    }

    /// That of a freeze.
    #[must_use]
    pub fn freeze(&self) -> String {
        format!("{}/freeze", self.prefix)
    }
}
