//! Notes of what is wrong in a file, each with its place.

use crate::node::Place;

/// The faults that have been found so far.
#[derive(Default)]
pub struct Notes {
    /// Them, in the order in which they were found.
    pub faults: Vec<(Place, String)>,
    /// The subject that is being read, with a colon: put before every note.
    pub subject: String,
}

// === impl Notes ===

impl Notes {
    /// Takes a note.
    pub fn add(&mut self, place: Place, message: impl AsRef<str>) {
        self.faults.push((place, format!("{}{}", self.subject, message.as_ref())));
    }
}
