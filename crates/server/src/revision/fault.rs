//! The fault of something that stands at etcd about revisions: where, what was found, and what was wanted.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::FORM;

/// Something that stands at a key, and cannot be what it should be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("key {key:?}: {found}; wanted {wanted}")]
pub struct BadRevision {
    /// The key, or the file.
    pub key: String,
    /// The thing that was found there.
    pub found: String,
    /// The thing that was wanted.
    pub wanted: String,
}

/// The form alone, which is read first.
#[derive(Deserialize)]
struct FormOnly {
    form: u32,
}

// === impl BadRevision ===

impl BadRevision {
    pub(crate) fn new(key: &str, found: impl Into<String>, wanted: impl Into<String>) -> BadRevision {
        BadRevision { key: key.to_owned(), found: found.into(), wanted: wanted.into() }
    }

    /// Nothing stands there.
    pub(crate) fn missing(key: &str, wanted: &str) -> BadRevision {
        BadRevision::new(key, "nothing there", wanted)
    }
}

/// Reads `noun` from JSON of a form that is known.
pub(crate) fn decode<T: DeserializeOwned>(key: &str, noun: &str, bytes: &[u8]) -> Result<T, BadRevision> {
    let bad = |fault: serde_json::Error| BadRevision::new(key, fault.to_string(), format!("{noun} in JSON"));
    let FormOnly { form } = serde_json::from_slice(bytes).map_err(bad)?;
    if form != FORM {
        let found = format!("a later version has written it: form {form}");
        return Err(BadRevision::new(key, found, format!("form {FORM}, which this one reads")));
    }
    serde_json::from_slice(bytes).map_err(bad)
}
