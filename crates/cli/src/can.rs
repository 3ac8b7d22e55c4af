//! `lessor can` and `lessor who-can`: the rules of access, asked without a server.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Context, bail};
use clap::Args;
use lessor_proto::message::HolderKind;
use lessor_proto::{ClientId, ResourceId};
use lessor_server::access::{Access, Credential, Denial, NodeRule, OperatorRule, Role, Stance};
use lessor_server::repository::Glob;

use crate::check;

/// Bytes in a name, at most.
const LONGEST: usize = 4_096;

/// Says whether an identity may do something by the rules of access, and which rule says so. Exit 0: it may; exit 1: it may
/// not.
#[derive(Debug, Args)]
pub(crate) struct Can {
    /// The identity: a URI or DNS name of a certificate, the identity of a token, uid:N, anonymous or plain
    identity: String,
    /// The act: get (hold leases), node (be a node), or a role of operators (see, explain, plan, override, push, seize, access)
    action: Action,
    /// The resource of get and of roles, or the name of the node
    what: Option<String>,
    /// The id under which it would hold leases; without it, any
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// The rules
    #[arg(long, env = "LESSOR_ACCESS", value_name = "FILE")]
    access: PathBuf,
}

/// Lists the rules by which somebody may do something.
#[derive(Debug, Args)]
pub(crate) struct WhoCan {
    /// The act: get (hold leases), node (be a node), or a role of operators (see, explain, plan, override, push, seize, access)
    action: Action,
    /// The resource of get and of roles, or the name of the node; without it, any
    what: Option<String>,
    /// The rules
    #[arg(long, env = "LESSOR_ACCESS", value_name = "FILE")]
    access: PathBuf,
}

/// Something that an identity may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Get,
    Node,
    Act(Role),
}

// === impl Can ===

impl Can {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let access: Access = check::load(&self.access)?;
        let allowed = match self.action {
            Action::Get => self.may_get(&access)?,
            Action::Node => self.may_be_node(&access)?,
            Action::Act(role) => {
                let resource = self.what.as_deref().map(resource).transpose()?;
                access.operator(&Credential::of(&self.identity), role, resource.as_ref())
            }
        };
        match allowed {
            Ok(()) => println!("yes"),
            Err(denial) if access.stance == Stance::Audit => println!("yes, as it is only noted: {denial}"),
            Err(denial) => bail!("no: {denial}"),
        }
        Ok(())
    }

    fn may_get(&self, access: &Access) -> anyhow::Result<Result<(), Denial>> {
        let shown = Credential::of(&self.identity);
        let rights = match &self.client_id {
            Some(id) => {
                let id =
                    ClientId::new(id.as_str(), LONGEST).with_context(|| format!("--client-id {id:?}"))?;
                access.holder(&shown, HolderKind::Client, &id)
            }
            None => access.client_by_any_id(&shown),
        };
        let Some(what) = &self.what else { bail!("get is about a resource; wanted its name behind it") };
        let resource = resource(what)?;
        Ok(rights.and_then(|rights| rights.may_hold(&resource)))
    }

    fn may_be_node(&self, access: &Access) -> anyhow::Result<Result<(), Denial>> {
        let Some(name) = &self.what else { bail!("node is about a node; wanted its name behind it") };
        let name = ClientId::new(name.as_str(), LONGEST).with_context(|| format!("the node {name:?}"))?;
        Ok(access.holder(&Credential::of(&self.identity), HolderKind::Node, &name).map(|_| ()))
    }
}

// === impl WhoCan ===

impl WhoCan {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let access: Access = check::load(&self.access)?;
        let what = self.what.as_deref();
        let is_about = |globs: &Option<Vec<Glob>>| match (globs, what) {
            (Some(globs), Some(what)) => globs.iter().any(|glob| glob.matches(what)),
            _ => true,
        };
        let mut found = Vec::new();
        match self.action {
            Action::Get => {
                for rule in access.clients.iter().filter(|rule| is_about(&rule.resources)) {
                    let id = rule.client_id.as_ref().map_or("*".to_owned(), ToString::to_string);
                    found.push((rule.place, format!("{} as {id}", rule.identity)));
                }
            }
            Action::Node => {
                let fits = |rule: &&NodeRule| what.is_none_or(|name| rule.node.fits_somebody(name));
                for rule in access.nodes.iter().filter(fits) {
                    found.push((rule.place, format!("{} as {}", rule.identity, rule.node)));
                }
            }
            Action::Act(role) => {
                let has = |rule: &&OperatorRule| rule.may.contains(&role) || rule.may.contains(&Role::All);
                for rule in access.operators.iter().filter(has).filter(|rule| is_about(&rule.resources)) {
                    found.push((rule.place, rule.identity.to_string()));
                }
            }
        }
        for (place, who) in &found {
            println!("{who}{}", place.map_or(String::new(), |place| format!("  ({place})")));
        }
        if access.stance == Stance::Audit {
            println!("everybody else, as that is only noted (default: audit)");
        } else if found.is_empty() {
            bail!("nobody, by these rules; bearers of tokens may what their tokens say");
        }
        Ok(())
    }
}

// === impl Action ===

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Action, String> {
        let roles = Role::ALL.map(Role::as_str).join(", ");
        match text {
            "get" => Ok(Action::Get),
            "node" => Ok(Action::Node),
            text => Role::named(text).map(Action::Act).ok_or_else(|| {
                format!("there is no such act; wanted get, node, or one of the roles {roles}")
            }),
        }
    }
}

fn resource(name: &str) -> anyhow::Result<ResourceId> {
    ResourceId::new(name, LONGEST).with_context(|| format!("the resource {name:?}"))
}
