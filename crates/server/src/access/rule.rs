//! Rules: what one identity, or all that fit a pattern, may do.

use std::sync::Arc;

use lessor_proto::{ClientId, ResourceId};

use super::denial::{Denial, Why};
use super::pattern::NamePattern;
use super::place::{RulePlace, Section};
use super::rights::{Allowance, Rights, listed};
use super::role::Role;
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
