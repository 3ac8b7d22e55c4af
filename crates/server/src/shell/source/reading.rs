//! Readings of fields: absent, bad, or a value. Of a bad one a note is taken.

use std::time::Duration;

use super::fields::Fields;
use super::node::YamlNode;
use super::notes::Notes;
use super::scalar;
use crate::repository::{Field, Problem, Template};

/// The content of a field.
pub(super) enum Reading<T> {
    /// There is none, or it is null.
    Absent,
    /// Something wrong, which has been noted.
    Bad,
    Is(T),
}

// === impl Notes ===

impl Notes {
    pub(super) fn read<'n, T>(
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

    pub(super) fn number<T>(
        &mut self,
        at: &Fields<'_>,
        field: Field,
        wanted: &str,
        check: impl FnOnce(f64) -> Result<T, Problem>,
    ) -> Reading<T> {
        self.read(at, field.as_str(), |node| {
            let value = scalar::number(field.as_str(), node, wanted)?;
            check(value).map_err(|problem| problem.to_string())
        })
    }

    /// A time as Doorman writes it, a number of seconds, or with its unit.
    pub(super) fn seconds(&mut self, at: &Fields<'_>, field: Field, wanted: &str) -> Reading<Duration> {
        self.read(at, field.as_str(), |node| {
            let value = scalar::seconds(field.as_str(), node, wanted)?;
            Template::check_seconds(field, value).map_err(|problem| problem.to_string())
        })
    }

    /// The value of a field that has to be there.
    pub(super) fn required<T>(
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
    pub(super) fn is(self) -> Option<T> {
        match self {
            Reading::Is(value) => Some(value),
            Reading::Absent | Reading::Bad => None,
        }
    }

    pub(super) fn or(self, default: T) -> T {
        match self {
            Reading::Is(value) => value,
            Reading::Absent | Reading::Bad => default,
        }
    }
}
