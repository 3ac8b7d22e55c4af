//! A value of a record that cannot be read: nonsense, or of a form that a later version writes.

use crate::election::call::Stored;

/// A value of a record that cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadRecord {
    /// It makes no sense.
    #[error("key {key:?} holds {found:?}, and not {wanted}")]
    Nonsense {
        /// Its key.
        key: String,
        /// The value.
        found: String,
        /// The form that was wanted.
        wanted: &'static str,
    },
    /// Its form is one of a later version.
    #[error(
        "key {key:?} holds {found:?}, which a later version has written: form {form}, and this one reads form {FORM}"
    )]
    Later {
        /// Its key.
        key: String,
        /// The value.
        found: String,
        /// The number of the form.
        form: u32,
    },
}

/// The form of what this version writes and reads. It is the first word of every value, and the last of a state file's title.
pub(in crate::election) const FORM: u32 = 1;

/// The number of a form, where it is one of a later version.
pub(in crate::election) fn later(word: &str) -> Option<u32> {
    word.parse().ok().filter(|&form| form > FORM)
}

/// A value that could not be read as `wanted`.
pub(super) fn bad(stored: &Stored, wanted: &'static str) -> BadRecord {
    let key = String::from_utf8_lossy(&stored.key).into_owned();
    let found = String::from_utf8_lossy(&stored.value).into_owned();
    match found.split_whitespace().next().and_then(later) {
        Some(form) => BadRecord::Later { key, found, form },
        None => BadRecord::Nonsense { key, found, wanted },
    }
}
