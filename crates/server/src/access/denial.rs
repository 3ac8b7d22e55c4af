//! Denials: what an identity may not, by which rule, and what it might.

use lessor_proto::message::{HolderKind, Refusal};
use lessor_proto::{ClientId, ResourceId};

use super::place::RulePlace;
use super::role::Role;

/// Something that no rule allows.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Denial {
    /// The kind of it.
    pub why: Why,
    /// The rule that decided; absent: no rule fits.
    pub place: Option<RulePlace>,
    message: String,
}

/// The kinds of denials.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Why {
    /// No rule speaks of the identity.
    NoRule,
    /// The id of the holder is not one that the identity may bear.
    Holder,
    /// The resource is not one that it may hold.
    Resource,
    /// The priority is above the greatest that it may have.
    Priority,
    /// It wants more than it may, and counts as if it wanted that.
    Wants,
    /// It stands for more clients than it may, and counts as if it stood for those.
    Clients,
    /// An operator may not do that.
    Role,
    /// The token is malformed, sealed by somebody else, over or revoked.
    Token,
}

// === impl Why ===

impl Why {
    /// All of them.
    pub const ALL: [Why; 8] = [
        Why::NoRule,
        Why::Holder,
        Why::Resource,
        Why::Priority,
        Why::Wants,
        Why::Clients,
        Why::Role,
        Why::Token,
    ];

    /// Its name in figures and in details of errors.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Why::NoRule => "no_rule",
            Why::Holder => "holder",
            Why::Resource => "resource",
            Why::Priority => "priority",
            Why::Wants => "wants",
            Why::Clients => "clients",
            Why::Role => "role",
            Why::Token => "token",
        }
    }
}

// === impl Denial ===

impl Denial {
    /// The refusal of whatever is denied.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        Refusal::Denied {
            reason: self.why.as_str(),
            is_unknown: self.why == Why::Token,
            rule: self.place.map(|place| place.to_string()),
            message: self.message.clone(),
        }
    }

    pub(super) fn by(place: RulePlace, why: Why, message: String) -> Denial {
        Denial { why, place: Some(place), message }
    }

    /// A token that cannot be taken.
    #[must_use]
    pub fn token(message: impl Into<String>) -> Denial {
        Denial { why: Why::Token, place: None, message: message.into() }
    }

    pub(super) fn no_rule(identity: &str, kind: HolderKind) -> Denial {
        let (list, act) = match kind {
            HolderKind::Client => ("clients", "hold leases"),
            HolderKind::Node => ("nodes", "be a node"),
        };
        let message = format!("{identity:?} may not {act}; wanted a rule for it under {list}");
        Denial { why: Why::NoRule, place: None, message }
    }

    pub(super) fn no_operator(identity: &str, role: Role) -> Denial {
        let message = format!("{identity:?} may not {role}; wanted a rule for it under operators");
        Denial { why: Why::NoRule, place: None, message }
    }

    pub(super) fn name_of_node(identity: &str, holder: &ClientId) -> Denial {
        let message = format!("{identity:?} may not call itself {:?}, which is a node", holder.as_str());
        Denial { why: Why::Holder, place: None, message }
    }

    pub(super) fn revoked(identity: &str, made: u64, before: u64) -> Denial {
        Denial::token(format!(
            "the token of {identity:?} was made at {made} and is revoked; wanted one made from {before} on, in seconds since 1970"
        ))
    }

    pub(super) fn holder(place: RulePlace, identity: &str, holder: &ClientId, wanted: &str) -> Denial {
        let message =
            format!("{place} does not let {identity:?} call itself {:?}; wanted {wanted:?}", holder.as_str());
        Denial::by(place, Why::Holder, message)
    }

    pub(super) fn resource(place: RulePlace, identity: &str, resource: &ResourceId, wanted: &str) -> Denial {
        let message =
            format!("{place} does not let {identity:?} hold {:?}; wanted {wanted}", resource.as_str());
        Denial::by(place, Why::Resource, message)
    }
}
