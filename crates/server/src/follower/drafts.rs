//! Drafts: those that wait to be checked, and what came of the last.

use std::collections::VecDeque;

use crate::revision::{BadRevision, DraftVerdict, MOST_RECORD, Revision};

/// The drafts of a follower.
#[derive(Clone, Default, Debug)]
pub(super) struct Drafts {
    is_to_be_read: bool,
    waiting: VecDeque<(String, Result<Vec<u8>, BadRevision>)>,
    verdicts: VecDeque<DraftVerdict>,
}

/// The most drafts that are known at once. Who pushes more than that hears nothing of the oldest.
pub(super) const MOST: usize = 32;

// === impl Drafts ===

impl Drafts {
    /// Those at etcd are to be read.
    pub(super) fn look(&mut self) {
        self.is_to_be_read = true;
    }

    pub(super) fn has_read(&mut self) {
        self.is_to_be_read = false;
    }

    pub(super) fn is_to_be_read(&self) -> bool {
        self.is_to_be_read
    }

    /// A draft was seen, perhaps again.
    pub(super) fn add(&mut self, id: &str, value: &[u8]) {
        let is_known = self.verdicts.iter().any(|verdict| verdict.id == id)
            || self.waiting.iter().any(|(waiting, _)| waiting == id);
        if is_known || id.len() > 64 {
            return;
        }
        let value = match value.len() {
            0..=MOST_RECORD => Ok(value.to_vec()),
            bytes => Err(BadRevision::new(id, format!("{bytes} bytes"), format!("at most {MOST_RECORD}"))),
        };
        self.waiting.push_back((id.to_owned(), value));
        if self.waiting.len() > MOST {
            self.waiting.pop_front();
        }
    }

    /// Something more urgent came: it is checked from the beginning after that.
    pub(super) fn put_back(&mut self, id: String, revision: &Revision) {
        let value = revision.encode(&id).map(String::into_bytes);
        self.waiting.push_front((id, value));
    }

    pub(super) fn next(&mut self) -> Option<(String, Result<Vec<u8>, BadRevision>)> {
        self.waiting.pop_front()
    }

    pub(super) fn judge(&mut self, verdict: DraftVerdict) {
        self.verdicts.push_back(verdict);
        if self.verdicts.len() > MOST {
            self.verdicts.pop_front();
        }
    }

    pub(super) fn verdicts(&self) -> impl Iterator<Item = &DraftVerdict> {
        self.verdicts.iter()
    }
}
