//! Readings of fields: absent, bad, or a value. Of a bad one a note is taken.

use crate::fields::Fields;
use crate::node::YamlNode;
use crate::notes::Notes;

/// The content of a field.
pub enum Reading<T> {
    /// There is none, or it is null.
    Absent,
    /// Something wrong, which has been noted.
    Bad,
    /// A value.
    Is(T),
}

// === impl Notes ===

impl Notes {
    /// The value of a field as `parse` reads it, unless there is none or it is null.
    pub fn read<'n, T>(
        &mut self,
        at: &Fields<'n>,
        name: &str,
        parse: impl FnOnce(&'n YamlNode) -> Result<T, String>,
    ) -> Reading<T> {
        let Some(node) = at.get(name) else { return Reading::Absent };
        match parse(node) {
            Ok(value) => Reading::Is(value),
            Err(message) => {
                self.add(node.place, message);
                Reading::Bad
            }
        }
    }

    /// The value of a field that has to be there.
    pub fn required<T>(
        &mut self,
        at: &Fields<'_>,
        name: &str,
        wanted: &str,
        reading: Reading<T>,
    ) -> Option<T> {
        match reading {
            Reading::Is(value) => Some(value),
            Reading::Bad => None,
            Reading::Absent => {
                self.add(at.place(name), format!("{name} is missing; wanted {wanted}"));
                None
            }
        }
    }
}

// === impl Reading ===

impl<T> Reading<T> {
    /// The value, if there is a good one.
    #[must_use]
    pub fn is(self) -> Option<T> {
        match self {
            Reading::Is(value) => Some(value),
            Reading::Absent | Reading::Bad => None,
        }
    }

    /// The value, or `default` without a good one.
    #[must_use]
    pub fn or(self, default: T) -> T {
        match self {
            Reading::Is(value) => value,
            Reading::Absent | Reading::Bad => default,
        }
    }
}

impl<T: Default> Reading<T> {
    /// The value, or that of the type without a good one.
    #[must_use]
    pub fn or_default(self) -> T {
        self.or(T::default())
    }
}
