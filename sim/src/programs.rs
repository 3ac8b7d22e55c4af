//! The programs behind holdings, where anybody looks closely.
//!
//! Where nobody does there are none, and nothing is kept for them: a large simulation has a million holdings.

use lessor_proto::message::Unenforced;

use crate::program::Program;

/// The programs by the holdings that they use.
#[derive(Default, Debug)]
pub(crate) struct Programs {
    places: Vec<Option<Program>>,
    /// The units that those have counted, while everything was let pass, that are over.
    counted: Unenforced,
    /// The units that second limits were asked for by those.
    counted_beside: Unenforced,
}

// === impl Programs ===

impl Programs {
    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The program behind holding `hold`, while its process lives.
    pub(crate) fn get(&self, hold: u32) -> Option<&Program> {
        self.places.get(hold as usize)?.as_ref()
    }

    /// The same, to change it.
    pub(crate) fn get_mut(&mut self, hold: u32) -> Option<&mut Program> {
        self.places.get_mut(hold as usize)?.as_mut()
    }

    /// `program` is the one behind holding `hold` from here on.
    pub(crate) fn set(&mut self, hold: u32, program: Option<Program>) {
        let place = hold as usize;
        if program.is_some() && self.places.len() <= place {
            self.places.resize_with(place + 1, || None);
        }
        if let Some(found) = self.places.get_mut(place)
            && let Some(over) = std::mem::replace(found, program)
        {
            self.counted = self.counted.with(over.unenforced());
            self.counted_beside = self.counted_beside.with(over.counted_beside());
        }
    }

    /// The units that all of them have counted while everything was let pass.
    pub(crate) fn unenforced(&self) -> Unenforced {
        let counted = self.places.iter().flatten().map(Program::unenforced);
        counted.fold(self.counted, Unenforced::with)
    }

    /// The units that all of them have asked second limits for.
    pub(crate) fn counted_beside(&self) -> Unenforced {
        let counted = self.places.iter().flatten().map(Program::counted_beside);
        counted.fold(self.counted_beside, Unenforced::with)
    }
}
