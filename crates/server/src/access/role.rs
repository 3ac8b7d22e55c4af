//! The roles of operators: what people and their tools may do.

use std::fmt;

/// The role of an operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Status, console and metrics are read.
    See,
    /// The reasons of grants are asked for.
    Explain,
    /// The effect of a change is computed.
    Plan,
    /// Leases are recalled, leadership is given up, the log is changed for a time.
    Override,
    /// Templates, rules, keys and certificates are put in force.
    Push,
    /// Leases are ended before their time.
    Seize,
    /// These rules are read.
    Access,
    /// All of these.
    All,
}

// === impl Role ===

impl Role {
    /// All of them, by name.
    pub const ALL: [Role; 8] = [
        Role::See,
        Role::Explain,
        Role::Plan,
        Role::Override,
        Role::Push,
        Role::Seize,
        Role::Access,
        Role::All,
    ];

    /// Its name in a document.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Role::See => "see",
            Role::Explain => "explain",
            Role::Plan => "plan",
            Role::Override => "override",
            Role::Push => "push",
            Role::Seize => "seize",
            Role::Access => "access",
            Role::All => "all",
        }
    }

    /// The role of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == name)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
