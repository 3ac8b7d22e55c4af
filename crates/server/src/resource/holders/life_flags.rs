//! The flags of one life of a holder: of which sort it is, and what other lives of the same id mean for it.

/// The flags of one life. One byte each: there may be millions.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LifeFlags {
    /// The holder draws its incarnation itself.
    pub(crate) incarnated: bool,
    /// Another life of the same id has appeared since.
    pub(crate) superseded: bool,
    /// It was superseded and has missed a refresh: its wants do not count until it is heard of again.
    pub(super) withdrawn: bool,
    /// It appeared beside another life of the same id and has reported only once: its leases are short.
    pub(crate) provisional: bool,
}

// === impl LifeFlags ===

impl LifeFlags {
    /// It was heard of again. Returns whether it goes on after another life had begun.
    pub(crate) fn go_on(&mut self) -> bool {
        self.provisional = false;
        std::mem::take(&mut self.superseded)
    }

    /// Whether another life has begun, and its wants still count.
    pub(crate) fn is_to_be_withdrawn(self) -> bool {
        self.superseded && !self.withdrawn
    }
}
