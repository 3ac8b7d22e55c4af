//! The part of the record that says nothing: classes of leases of which it is not known how many are out.

/// The classes of which it is not known how much is out. Floors last for longer, so that is not known of them for longer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Unknown {
    /// Of neither: all is as the marks say.
    #[default]
    Nothing,
    /// Of floors.
    Floors,
    /// Of floors and of all else.
    All,
}

// === impl Unknown ===

impl Unknown {
    /// The least that has floors in it, or all others.
    pub(crate) fn with(is_floor: bool) -> Unknown {
        if is_floor { Unknown::Floors } else { Unknown::All }
    }

    /// Whether it is not known how much of a floor is out, or of another resource.
    #[must_use]
    pub fn is_of(self, is_floor: bool) -> bool {
        self >= Unknown::with(is_floor)
    }
}
