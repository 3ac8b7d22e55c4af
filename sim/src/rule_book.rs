//! The rules of access: all their editions, each with the rights that operators meant by it.

use std::sync::Arc;

use lessor_proto::ClientId;
use lessor_proto::message::HolderKind;
use lessor_server::access::{
    Access, Admitted, Allowance, ClientRule, Credential, Denial, NamePattern, NodeRule, StreamRights,
};
use lessor_server::repository::Glob;

use crate::plan::SimulationPlan;

/// All editions of the rules of access.
#[derive(Debug)]
pub(crate) struct RuleBook {
    names: Names,
    editions: Vec<Arc<RulesEdition>>,
}

/// One edition: what operators meant, and the rules that say so.
#[derive(Clone, Debug)]
pub(crate) struct RulesEdition {
    pub(crate) rights: GrantedRights,
    pub(crate) access: Access,
}

/// The rights that operators give: of each client, and of each site as a node.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct GrantedRights {
    pub(crate) clients: Vec<ClientRight>,
    pub(crate) nodes: Vec<NodeRight>,
}

/// The rights of a client.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ClientRight {
    /// Whether a rule speaks of it.
    pub(crate) is_known: bool,
    /// Of each resource, whether it may hold it.
    pub(crate) resources: Vec<bool>,
    pub(crate) allowance: Allowance,
}

/// The rights of a site as a node.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct NodeRight {
    pub(crate) is_known: bool,
    pub(crate) most_clients: Option<u64>,
    pub(crate) most_priority: Option<i64>,
}

/// The names of all that rules speak of.
#[derive(Clone, Debug)]
struct Names {
    clients: Vec<String>,
    sites: Vec<String>,
    resources: Vec<String>,
}

/// The rights of the holder at the other end of a stream.
#[derive(Clone, Debug)]
pub(crate) struct PeerRights {
    pub(crate) whose: Whose,
    pub(crate) kind: HolderKind,
    pub(crate) holder: ClientId,
    /// The edition that was looked at last.
    pub(crate) edition: usize,
    pub(crate) rights: StreamRights,
}

/// Somebody of whom rules speak.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Whose {
    /// A client, and all processes of its name.
    Client(u32),
    /// A site.
    Site(u32),
}

// === impl RuleBook ===

impl RuleBook {
    /// Everybody may hold everything.
    pub(crate) fn new(plan: &SimulationPlan) -> RuleBook {
        let names = Names {
            clients: plan.clients.iter().map(|client| client.name.clone()).collect(),
            sites: plan.sites.iter().map(|site| site.name.clone()).collect(),
            resources: plan.resources.iter().map(|resource| resource.name.clone()).collect(),
        };
        let client = ClientRight {
            is_known: true,
            resources: vec![true; names.resources.len()],
            allowance: Allowance::default(),
        };
        let node = NodeRight { is_known: true, most_clients: None, most_priority: None };
        let rights = GrantedRights {
            clients: vec![client; names.clients.len()],
            nodes: vec![node; names.sites.len()],
        };
        let mut book = RuleBook { names, editions: Vec::new() };
        book.publish(rights);
        book
    }

    /// Puts these into force from here on, for each task as soon as it reads them.
    pub(crate) fn publish(&mut self, rights: GrantedRights) {
        let access = rights.access(&self.names);
        self.editions.push(Arc::new(RulesEdition { rights, access }));
    }

    /// The rights in force.
    pub(crate) fn rights(&self) -> &GrantedRights {
        &self.edition(self.newest()).rights
    }

    pub(crate) fn edition(&self, number: usize) -> &Arc<RulesEdition> {
        &self.editions[number]
    }

    /// The number of the edition in force.
    pub(crate) fn newest(&self) -> usize {
        self.editions.len() - 1
    }

    /// Of whom rules speak by that name.
    pub(crate) fn whose(&self, kind: HolderKind, name: &str) -> Option<Whose> {
        let find = |names: &[String]| names.iter().position(|found| found == name).map(|found| found as u32);
        match kind {
            HolderKind::Client => find(&self.names.clients).map(Whose::Client),
            HolderKind::Node => find(&self.names.sites).map(Whose::Site),
        }
    }
}

// === impl GrantedRights ===

impl GrantedRights {
    /// Whether somebody may hold a resource, with that priority if it is a client.
    pub(crate) fn may_hold(&self, whose: Whose, resource: u16, priority: i64) -> bool {
        match whose {
            Whose::Client(client) => {
                let found = &self.clients[client as usize];
                found.is_known
                    && found.resources[usize::from(resource)]
                    && found.allowance.most_priority.is_none_or(|most| priority <= most)
            }
            Whose::Site(site) => self.nodes[site as usize].is_known,
        }
    }

    /// The limits on what a client says.
    pub(crate) fn allowance(&self, client: u32) -> Allowance {
        self.clients[client as usize].allowance
    }

    /// The most clients that a site stands for, and the greatest priority below it.
    pub(crate) fn caps(&self, site: u32) -> (Option<u64>, Option<i64>) {
        let found = &self.nodes[site as usize];
        (found.most_clients, found.most_priority)
    }

    fn access(&self, names: &Names) -> Access {
        let glob = |name: &String| Glob::new(name.as_str()).expect("a name without signs");
        let client = |(right, name): (&ClientRight, &String)| {
            let held = right.resources.iter().zip(&names.resources).filter(|(may, _)| **may);
            right.is_known.then(|| ClientRule {
                resources: Some(held.map(|(_, name)| glob(name)).collect()),
                allowance: right.allowance,
                ..ClientRule::new(glob(name))
            })
        };
        let node = |(right, name): (&NodeRight, &String)| {
            let pattern = NamePattern::new(name).expect("a name without signs");
            right.is_known.then(|| NodeRule {
                most_clients: right.most_clients,
                most_priority: right.most_priority,
                ..NodeRule::new(glob(name), pattern)
            })
        };
        Access {
            clients: self.clients.iter().zip(&names.clients).filter_map(client).collect(),
            nodes: self.nodes.iter().zip(&names.sites).filter_map(node).collect(),
            ..Access::default()
        }
    }
}

// === impl RulesEdition ===

impl RulesEdition {
    pub(crate) fn admit(&self, kind: HolderKind, holder: &ClientId) -> Result<Admitted, Denial> {
        self.access.admit(&Credential::of(holder.as_str()), kind, holder)
    }
}
