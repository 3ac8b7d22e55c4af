//! Errors in one line, with all that has caused them.

use std::error::Error;
use std::iter;

/// The text of an error, and those of its causes.
pub(super) fn causes(error: &dyn Error) -> String {
    let sources = iter::successors(error.source(), |error: &&dyn Error| (*error).source());
    sources.fold(error.to_string(), |text, source| format!("{text}: {source}"))
}
