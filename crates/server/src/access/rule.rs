//! Rules: what one identity, or all that fit a pattern, may do.

use std::fmt;
use std::sync::Arc;

use lessor_proto::{ClientId, ResourceId};

use super::denial::{Denial, Why};
use super::pattern::NamePattern;
use super::rights::Rights;
use crate::repository::Glob;

/// A rule for nodes below.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeRule {
    /// The identities that it is for.
    pub identity: Glob,
    /// The name that the node bears.
    pub node: NamePattern,
    /// The most clients that it stands for, on one resource; more count as so many. Absent: any number.
    pub most_clients: Option<u64>,
    /// The greatest priority that anything below it has; more counts as that. Absent: any.
    pub most_priority: Option<i64>,
    /// The amount of work that it may cause.
    pub budget: Budget,
    /// The place of the rule, for messages.
    pub place: Option<RulePlace>,
}

/// A rule for clients.
#[derive(Clone, PartialEq, Debug)]
pub struct ClientRule {
    /// The identities that it is for.
    pub identity: Glob,
    /// The ids that such a client may bear; absent: any.
    pub client_id: Option<NamePattern>,
    /// The resources that it may hold; absent: all.
    pub resources: Option<Vec<Glob>>,
    /// Limits on what it says of itself, and its weight.
    pub allowance: Allowance,
    /// The amount of work that it may cause.
    pub budget: Budget,
    /// The place of the rule, for messages.
    pub place: Option<RulePlace>,
}

/// Limits on what a client says of itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Allowance {
    /// The greatest priority that it may have; a report with more is refused. Absent: any.
    pub most_priority: Option<i64>,
    /// The most that it may want of one resource, in units; more counts as that. Absent: anything.
    pub most_wants: Option<f64>,
    /// The number of clients that it stands for in a fair share.
    pub weight: u32,
}

/// A rule for people and their tools.
#[derive(Clone, PartialEq, Debug)]
pub struct OperatorRule {
    /// The identities that it is for.
    pub identity: Glob,
    /// The roles that such an operator has.
    pub may: Vec<Role>,
    /// The resources that they are about; absent: all.
    pub resources: Option<Vec<Glob>>,
    /// The place of the rule, for messages.
    pub place: Option<RulePlace>,
}

/// The role of an operator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Status, console and metrics are read.
    See,
    /// The reasons of grants are asked for.
    Explain,
    /// The effect of a change is computed.
    Plan,
    /// Resources are frozen, drained or switched off for a time.
    Override,
    /// Templates are put in force.
    Push,
    /// Leases are ended before their time.
    Seize,
    /// These rules are read, and the log is changed.
    Access,
    /// All of these.
    All,
}

/// The amount of work that an identity may cause. Absent numbers are the defaults of the server.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Budget {
    /// Streams at a time.
    pub streams: Option<u32>,
    /// Reports a second, over all its streams and calls.
    pub reports: Option<f64>,
    /// Resources that it holds on one stream.
    pub resources: Option<u32>,
}

/// The place of a rule in its document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RulePlace {
    /// The list that it stands in.
    pub section: Section,
    /// The number of rules before it in that list.
    pub index: usize,
    /// The line of the file; absent: it was not read from one.
    pub line: Option<usize>,
}

/// The lists of rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Section {
    /// For nodes.
    Nodes,
    /// For clients.
    Clients,
    /// For operators.
    Operators,
    /// The scope of a token, which is a rule of its own.
    Token,
}

// === impl NodeRule ===

impl NodeRule {
    /// A rule by which `identity` is the node of a name that fits `node`, without limits.
    #[must_use]
    pub fn new(identity: Glob, node: NamePattern) -> NodeRule {
        NodeRule {
            identity,
            node,
            most_clients: None,
            most_priority: None,
            budget: Budget::default(),
            place: None,
        }
    }

    /// The rights of `identity` as the node `holder`.
    pub(super) fn rights(&self, index: usize, identity: &str, holder: &ClientId) -> Result<Rights, Denial> {
        let place = self.place.unwrap_or(RulePlace::at(Section::Nodes, index));
        if !self.node.fits(identity, holder.as_str()) {
            return Err(Denial::holder(place, identity, holder, &self.node.to_string()));
        }
        Ok(Rights::of_node(place, identity, self.most_clients, self.most_priority))
    }
}

// === impl ClientRule ===

impl ClientRule {
    /// A rule by which `identity` may hold everything, under any id.
    #[must_use]
    pub fn new(identity: Glob) -> ClientRule {
        ClientRule {
            identity,
            client_id: None,
            resources: None,
            allowance: Allowance::default(),
            budget: Budget::default(),
            place: None,
        }
    }

    /// The rights of `identity` as the client `holder`.
    pub(super) fn rights(&self, index: usize, identity: &str, holder: &ClientId) -> Result<Rights, Denial> {
        let place = self.place.unwrap_or(RulePlace::at(Section::Clients, index));
        if let Some(pattern) = &self.client_id
            && !pattern.fits(identity, holder.as_str())
        {
            return Err(Denial::holder(place, identity, holder, &pattern.to_string()));
        }
        Ok(self.rights_by_any_id(index, identity))
    }

    /// The rights of `identity` under whatever id it may have.
    pub(super) fn rights_by_any_id(&self, index: usize, identity: &str) -> Rights {
        let place = self.place.unwrap_or(RulePlace::at(Section::Clients, index));
        let resources = self.resources.as_ref().map(|globs| Arc::from(globs.as_slice()));
        Rights::of_client(place, identity, resources, self.allowance)
    }
}

// === impl Allowance ===

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { most_priority: None, most_wants: None, weight: 1 }
    }
}

// === impl OperatorRule ===

impl OperatorRule {
    pub(super) fn allows(
        &self,
        index: usize,
        identity: &str,
        role: Role,
        resource: Option<&ResourceId>,
    ) -> Result<(), Denial> {
        let place = self.place.unwrap_or(RulePlace::at(Section::Operators, index));
        role_fits(place, identity, &self.may, role)?;
        resource_fits(place, identity, self.resources.as_deref(), resource)
    }
}

/// Whether `role` is among `may`.
pub(super) fn role_fits(place: RulePlace, identity: &str, may: &[Role], role: Role) -> Result<(), Denial> {
    if may.iter().any(|&has| has == role || has == Role::All) {
        return Ok(());
    }
    let has: Vec<_> = may.iter().map(|role| role.as_str()).collect();
    let message = format!("{place} does not let {identity:?} {role}; it may [{}]", has.join(", "));
    Err(Denial::by(place, Why::Role, message))
}

/// Whether an operator's act is about resources that it may act on. One that is about all of them is not, where it may
/// act on some.
pub(super) fn resource_fits(
    place: RulePlace,
    identity: &str,
    globs: Option<&[Glob]>,
    resource: Option<&ResourceId>,
) -> Result<(), Denial> {
    match (globs, resource) {
        (None, _) => Ok(()),
        (Some(globs), Some(resource)) if globs.iter().any(|glob| glob.matches(resource.as_str())) => Ok(()),
        (Some(globs), Some(resource)) => Err(Denial::resource(place, identity, resource, &listed(globs))),
        (Some(globs), None) => {
            let message = format!(
                "{place} lets {identity:?} see {} and nothing else; wanted one of them",
                listed(globs)
            );
            Err(Denial::by(place, Why::Resource, message))
        }
    }
}

/// Globs in a message.
pub(super) fn listed(globs: &[Glob]) -> String {
    match globs {
        [] => "none".to_owned(),
        globs => globs.iter().map(|glob| format!("{:?}", glob.as_str())).collect::<Vec<_>>().join(" or "),
    }
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

// === impl RulePlace ===

impl RulePlace {
    pub(super) fn at(section: Section, index: usize) -> RulePlace {
        RulePlace { section, index, line: None }
    }
}

impl fmt::Display for RulePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let section = match self.section {
            Section::Nodes => "nodes",
            Section::Clients => "clients",
            Section::Operators => "operators",
            Section::Token => return f.write_str("the token"),
        };
        write!(f, "{section}[{}]", self.index)?;
        self.line.map_or(Ok(()), |line| write!(f, " on line {line}"))
    }
}
