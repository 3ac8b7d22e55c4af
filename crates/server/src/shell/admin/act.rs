//! The acts of the admin port: by which requests they are asked for, and who may.

use axum::http::Method;
use axum::http::request::Parts;
use serde_json::{Value, json};

use super::problem::{ActProblem, shown};
use crate::access::Role;
use crate::shell::admin_calls::ActName;

/// An act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Whoami,
    Connections,
    Access,
    /// The filter of the log, as it is.
    Log,
    SetLog,
    /// Back to the filter of before.
    ResetLog,
    Reload,
    Resign,
    /// The recalls that are in force.
    Recalls,
    Recall,
    /// A recall ends before its time.
    LiftRecall,
    /// The overrides that are in force.
    Overrides,
    Override,
    /// An override ends before its time.
    LiftOverride,
    Seize,
    /// The head of the templates at etcd, and whether anybody may push.
    Pushes,
    Push,
    /// Nobody pushes for a while.
    PushFreeze,
    /// Everybody may again.
    LiftPushFreeze,
}

/// A request for nothing that there is.
pub(super) struct NoAct {
    pub(super) problem: ActProblem,
    pub(super) name: ActName,
    pub(super) said: Value,
}

/// The acts by their paths below `/admin/`, which are their names, and by their methods.
const PATHS: [(ActName, &[(Method, Act)]); 11] = [
    (ActName::Whoami, &[(Method::GET, Act::Whoami)]),
    (ActName::Connections, &[(Method::GET, Act::Connections)]),
    (ActName::Access, &[(Method::GET, Act::Access)]),
    (ActName::Log, &[(Method::GET, Act::Log), (Method::PUT, Act::SetLog), (Method::DELETE, Act::ResetLog)]),
    (ActName::Reload, &[(Method::POST, Act::Reload)]),
    (ActName::Resign, &[(Method::POST, Act::Resign)]),
    (
        ActName::Recall,
        &[(Method::GET, Act::Recalls), (Method::POST, Act::Recall), (Method::DELETE, Act::LiftRecall)],
    ),
    (
        ActName::Override,
        &[(Method::GET, Act::Overrides), (Method::POST, Act::Override), (Method::DELETE, Act::LiftOverride)],
    ),
    (ActName::Seize, &[(Method::POST, Act::Seize)]),
    (ActName::Push, &[(Method::GET, Act::Pushes), (Method::POST, Act::Push)]),
    (ActName::PushFreeze, &[(Method::POST, Act::PushFreeze), (Method::DELETE, Act::LiftPushFreeze)]),
];

// === impl Act ===

impl Act {
    /// The act that a request asks for.
    pub(super) fn of(head: &Parts) -> Result<Act, NoAct> {
        let path = head.uri.path();
        let said = json!({"method": head.method.as_str(), "path": shown(path)});
        let asked = path.strip_prefix("/admin/").unwrap_or_default();
        let Some((name, ways)) = PATHS.iter().find(|(name, _)| name.as_str() == asked) else {
            let known = PATHS.map(|(name, _)| format!("/admin/{}", name.as_str())).join(", ");
            let problem =
                ActProblem::new(404, format!("there is no {:?}; wanted one of {known}", shown(path)));
            return Err(NoAct { problem, name: ActName::Unknown, said });
        };
        if let Some((_, act)) = ways.iter().find(|(method, _)| *method == head.method) {
            return Ok(*act);
        }
        let allow = ways.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>().join(", ");
        let detail = format!("{path} is not called by {}; wanted {allow}", shown(head.method.as_str()));
        let problem = ActProblem { allow: Some(allow), ..ActProblem::new(405, detail) };
        Err(NoAct { problem, name: *name, said })
    }

    pub(super) fn name(self) -> ActName {
        match self {
            Act::Whoami => ActName::Whoami,
            Act::Connections => ActName::Connections,
            Act::Access => ActName::Access,
            Act::Log | Act::SetLog | Act::ResetLog => ActName::Log,
            Act::Reload => ActName::Reload,
            Act::Resign => ActName::Resign,
            Act::Recalls | Act::Recall | Act::LiftRecall => ActName::Recall,
            Act::Overrides | Act::Override | Act::LiftOverride => ActName::Override,
            Act::Seize => ActName::Seize,
            Act::Pushes | Act::Push => ActName::Push,
            Act::PushFreeze | Act::LiftPushFreeze => ActName::PushFreeze,
        }
    }

    /// The role that whoever calls must have; absent: none.
    pub(super) fn role(self) -> Option<Role> {
        match self {
            Act::Whoami => None,
            Act::Connections | Act::Log | Act::Recalls | Act::Overrides | Act::Pushes => Some(Role::See),
            Act::Access => Some(Role::Access),
            Act::Reload | Act::Push | Act::PushFreeze | Act::LiftPushFreeze => Some(Role::Push),
            Act::SetLog | Act::ResetLog | Act::Resign => Some(Role::Override),
            Act::Recall | Act::LiftRecall | Act::Override | Act::LiftOverride => Some(Role::Override),
            Act::Seize => Some(Role::Seize),
        }
    }

    /// Whether it is about one resource, which an operator may be for.
    pub(super) fn is_about_resource(self) -> bool {
        matches!(self, Act::Recall | Act::LiftRecall | Act::Override | Act::Seize)
    }

    pub(super) fn changes_something(self) -> bool {
        let is_read_only = matches!(self, Act::Whoami | Act::Connections | Act::Access | Act::Log);
        !is_read_only && !matches!(self, Act::Recalls | Act::Overrides | Act::Pushes)
    }

    /// Whether the console of this very port may ask for it, in the browser of whoever has opened that.
    pub(super) fn may_come_from_page(self) -> bool {
        matches!(self, Act::Push | Act::PushFreeze | Act::LiftPushFreeze)
    }
}
