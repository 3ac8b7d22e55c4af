//! The reasons by which an amount is bound, in words: what each is, and what to do.

/// A reason, as a server names it.
struct Reason {
    name: &'static str,
    /// The bound in words.
    what: &'static str,
    /// The things that would let it be more.
    remedy: &'static str,
}

const REASONS: [Reason; 19] = [
    Reason {
        name: "wants",
        what: "its own wants: it gets all that it asks for",
        remedy: "nothing has to be done; for more it has to want more",
    },
    Reason {
        name: "level",
        what: "the level: everybody of its priority gets so much at the most, each by its weight",
        remedy: "more capacity, fewer wants of others, or a greater priority for it",
    },
    Reason {
        name: "band",
        what: "greater priorities: they want all that there is",
        remedy: "more capacity than those want, fewer wants of theirs, or a greater priority for it",
    },
    Reason {
        name: "static",
        what: "the template: STATIC gives everybody no more than its capacity",
        remedy: "more capacity in the template, or an algorithm that shares",
    },
    Reason {
        name: "turn",
        what: "whole units: its turn for one more has not come",
        remedy: "wait for the turn, or more capacity",
    },
    Reason {
        name: "others_out",
        what: "leases of others that are above their shares: what they were told to give back they have not yet",
        remedy: "wait: it is over when they have reported, or their leases have ended",
    },
    Reason {
        name: "kept_free",
        what: "what is kept free for others that wait for what is theirs",
        remedy: "wait: they are served first",
    },
    Reason {
        name: "ghost",
        what: "what leaders before this one left out to holders that have not shown it",
        remedy: "wait until the last of those leases has certainly ended",
    },
    Reason {
        name: "mark",
        what: "the mark: more is granted when a larger one is written for successors",
        remedy: "wait a moment; if it lasts, look at etcd, or at the state directory",
    },
    Reason {
        name: "lease_above",
        what: "the lease of this node from the one above: there is none, or it is of nothing",
        remedy: "look at the node above, and at the way there",
    },
    Reason {
        name: "debt",
        what: "a cut: more is out than the capacity, and nobody grows before that is over",
        remedy: "wait: it is over when holders have given back, or after a lease at the latest",
    },
    Reason {
        name: "learning",
        what: "the server learns what is out from before its start, and grants no more than was there",
        remedy: "wait until it has learnt",
    },
    Reason {
        name: "claim",
        what: "what it has from a leader before this one: it is told nothing else yet",
        remedy: "wait until that has ended, or is claimed",
    },
    Reason {
        name: "legacy_fraction",
        what: "legacy_max_fraction: clients without incarnation have no more than that together",
        remedy: "a larger legacy_max_fraction, or a client that draws an incarnation",
    },
    Reason {
        name: "superseded",
        what: "another life of the same id: this one has not been heard of since",
        remedy: "if both live, give each an id of its own",
    },
    Reason {
        name: "other_kind",
        what: "the other kind: units a second and units in use do not mix while something of before is out",
        remedy: "wait until the leases of before have ended",
    },
    Reason {
        name: "recall",
        what: "a recall: an operator, or rules of access, took it back",
        remedy: "`lessor admin recall` lists recalls, and --lift ends one",
    },
    Reason {
        name: "no_template",
        what: "no template covers the resource any more",
        remedy: "a template that matches its name",
    },
    Reason {
        name: "override",
        what: "an override: an operator has frozen the resource, or drained this holder",
        remedy: "`lessor overrides` lists them, and `lessor lift` ends one",
    },
];

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
    find(name).map_or(name, |reason| reason.what)
}

/// The things that would let it be more.
pub(super) fn remedy(name: &str) -> Option<&'static str> {
    find(name).map(|reason| reason.remedy)
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

fn find(name: &str) -> Option<&'static Reason> {
    REASONS.iter().find(|reason| reason.name == name)
}

#[cfg(test)]
mod tests {
    use lessor_client::BoundBy;

    use super::*;

    #[test]
    fn every_reason_has_its_words_and_none_is_left_over() {
        let known: Vec<_> = BoundBy::ALL.iter().map(|by| by.as_str()).collect();
        assert_eq!(REASONS.map(|reason| reason.name)[..], known[..]);
        assert!(ASKED_FOR.iter().all(|(name, _)| known.contains(name)));
    }
}
