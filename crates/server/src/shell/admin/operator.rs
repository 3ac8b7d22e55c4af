//! The caller of an admin port: who it is, and what it may do there.

use lessor_proto::ResourceId;

use super::problem::ActProblem;
use crate::access::{Role, Stance};
use crate::shell::caller::Caller;
use crate::shell::gate::Visit;

/// A caller of the admin port, and the rules that are held against it.
pub(super) struct Operator {
    pub(super) caller: Caller,
    /// Absent where there are no rules.
    pub(super) visit: Option<Visit>,
}

// === impl Operator ===

impl Operator {
    /// The text of the identity by which it is known.
    pub(super) fn identity(&self) -> &str {
        self.visit.as_ref().map_or(self.caller.identity.as_str(), Visit::identity)
    }

    /// Whether it has proved who it is: by a certificate, a token, or as a user of this machine.
    pub(super) fn is_proved(&self) -> bool {
        self.caller.identity.is_proved() || self.visit.as_ref().is_some_and(|visit| visit.bearer().is_some())
    }

    /// The roles that it has, be it on some resources only.
    pub(super) fn roles(&self) -> Vec<Role> {
        match &self.visit {
            Some(visit) if visit.stance() == Stance::Deny => visit.roles(),
            Some(_) | None => vec![Role::All],
        }
    }

    /// Whether it may nothing at all.
    pub(super) fn is_stranger(&self) -> bool {
        self.roles().is_empty()
    }

    /// Whether it may act as `role`, on `resource` if it is about one.
    ///
    /// # Errors
    /// When the rules do not let it.
    pub(super) fn may(&self, role: Option<Role>, resource: Option<&ResourceId>) -> Result<(), ActProblem> {
        let (Some(role), Some(visit)) = (role, &self.visit) else { return Ok(()) };
        visit.operator(role, resource).map_err(|refusal| {
            let problem = ActProblem::refused(&refusal);
            problem.with("identity", self.identity()).with("role", role.as_str())
        })
    }
}
