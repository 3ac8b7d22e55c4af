//! Notes of what is wrong in a file, each with its place.

use super::node::Place;

/// The faults that have been found so far.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) faults: Vec<(Place, String)>,
    /// The subject that is being read, with a colon: put before every note.
    pub(super) subject: String,
}

// === impl Notes ===

impl Notes {
    pub(super) fn add(&mut self, place: Place, message: impl AsRef<str>) {
        self.faults.push((place, format!("{}{}", self.subject, message.as_ref())));
    }
}
