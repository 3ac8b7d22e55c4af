//! The programs behind holdings, where anybody looks closely.
//!
//! Where nobody does there are none, and nothing is kept for them: a large simulation has a million holdings.

use crate::program::Program;

/// The programs by the holdings that they use.
#[derive(Default, Debug)]
pub(crate) struct Programs(Vec<Option<Program>>);

// === impl Programs ===

impl Programs {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The program behind holding `hold`, while its process lives.
    pub(crate) fn get(&self, hold: u32) -> Option<&Program> {
        self.0.get(hold as usize)?.as_ref()
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self, hold: u32) -> Option<&mut Program> {
        self.0.get_mut(hold as usize)?.as_mut()
    }

    /// `program` is the one behind holding `hold` from here on.
    pub(crate) fn set(&mut self, hold: u32, program: Option<Program>) {
        let place = hold as usize;
        if program.is_some() && self.0.len() <= place {
            self.0.resize_with(place + 1, || None);
        }
        if let Some(found) = self.0.get_mut(place) {
            *found = program;
        }
    }
}
