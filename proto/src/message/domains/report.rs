//! A client's report of its domains.

use super::hits::{self, DomainHits};
use crate::message::{Limits, Refusal, field};
use crate::name::ResourceId;
use crate::wire;

/// Hits that domains made at a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainReport {
    /// Of which resource.
    pub resource: ResourceId,
    /// The policies by which they were counted.
    pub version: u32,
    /// Grows with each report on a stream.
    pub id: u64,
    /// To be answered at once.
    pub ask: bool,
    /// Of a node: those below it that tell each other.
    pub below: Option<Census>,
    /// Whose, and which.
    pub domains: Vec<DomainHits>,
}

/// Holders that tell each other what domains do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Census {
    /// Clients.
    pub clients: u32,
    /// Nodes between them and the root.
    pub nodes: u32,
}

// === impl DomainReport ===

impl DomainReport {
    pub(crate) fn to_wire(&self) -> wire::DomainsRequest {
        wire::DomainsRequest {
            resource_id: Some(self.resource.to_string()),
            version: Some(self.version),
            id: Some(self.id),
            ask: self.ask.then_some(true),
            domain: self.domains.iter().map(DomainHits::to_wire).collect(),
            clients_below: self.below.map(|below| below.clients),
            nodes_below: self.below.map(|below| below.nodes),
        }
    }

    pub(crate) fn from_wire(wire: wire::DomainsRequest, limits: &Limits) -> Result<DomainReport, Refusal> {
        let resource = field::resource(|| "domains.resource_id".to_owned(), wire.resource_id, limits)?;
        let version = "the version of the policies of domains that the holder has";
        let id = "a number greater than that of any before on this stream";
        Ok(DomainReport {
            resource,
            version: wire.version.ok_or_else(|| Refusal::missing("domains.version", version))?,
            id: wire.id.ok_or_else(|| Refusal::missing("domains.id", id))?,
            ask: wire.ask.unwrap_or(false),
            below: wire.clients_below.map(|clients| Census { clients, nodes: wire.nodes_below.unwrap_or(0) }),
            domains: hits::from_wire("domains.domain", wire.domain)?,
        })
    }
}
