//! The reasons by which an amount is bound, in words.

use lessor_client::BoundBy;

/// The reasons that an operator asks for first.
const ASKED_FOR: [(&str, &str); 7] = [
    ("learning", "learning"),
    ("debt", "a cut"),
    ("ghost", "a ghost"),
    ("mark", "a mark"),
    ("others_out", "leases of others"),
    ("recall", "a recall"),
    ("override", "an override"),
];

/// The bound of an amount in words, by the name of the reason.
pub(super) fn what(name: &str) -> &str {
    match BoundBy::named(name) {
        Some(by) => by.what(),
        None => name,
    }
}

/// The things that would let it be more.
pub(super) fn remedy(name: &str) -> Option<&'static str> {
    BoundBy::named(name).map(BoundBy::remedy)
}

/// Something that takes part in an amount beside its bound, in words.
pub(super) fn part(name: &str) -> &str {
    match name {
        "wants" => "what it wants",
        "level" => "the capacity",
        "band" => "greater priorities, which are served first",
        "others_out" => "leases of others",
        "ghost" => "what leaders before this one left out",
        "lease_above" => "the lease of this node from the one above",
        "override" => "an override that freezes it",
        other => other,
    }
}

/// Those that have no part in it, in words.
pub(super) fn others(named: &[&str]) -> String {
    let others = ASKED_FOR.iter().filter(|(name, _)| !named.contains(name));
    others.map(|&(_, words)| words).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_that_are_asked_for_are_reasons() {
        assert!(ASKED_FOR.iter().all(|(name, _)| BoundBy::named(name).is_some()));
    }
}
