//! The words of a value: names, each with what stands behind it.

use std::str::SplitWhitespace;

/// The word after `name`, which must come next.
pub(super) fn after<'a>(words: &mut SplitWhitespace<'a>, name: &str) -> Option<&'a str> {
    (words.next()? == name).then(|| words.next())?
}

/// The number after `name`, if that comes next; nothing at all if something else than a number comes after it.
pub(super) fn if_there(words: &mut SplitWhitespace<'_>, name: &str) -> Option<Option<u64>> {
    match words.clone().next() {
        Some(word) if word == name => number(words, name).map(Some),
        _ => Some(None),
    }
}

/// The number after `name`, which must come next.
pub(super) fn number(words: &mut SplitWhitespace<'_>, name: &str) -> Option<u64> {
    after(words, name)?.parse().ok()
}
