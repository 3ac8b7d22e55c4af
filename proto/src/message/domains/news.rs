//! News of domains: what a grantor tells of what they did at other clients.

use std::sync::Arc;

use super::hits::{self, DomainHits, LONGEST_DOMAIN, MOST_DOMAINS};
use crate::message::refusal::Malformed;
use crate::name::ResourceId;
use crate::{Time, wire};

/// Bytes in the name of a resource: servers may be configured for longer ones than they are by default.
const LONGEST_NAME: usize = 4096;

/// News of what domains did at other clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainNews {
    /// Of which resource.
    pub resource: ResourceId,
    /// The policies by which hits were counted.
    pub version: u32,
    /// When this was said, by the clock of the grantor.
    pub now: Time,
    /// The last report that was taken up before.
    pub heard: u64,
    /// When that came, by the clock of the grantor.
    pub heard_at: Time,
    /// At least as many as there are clients that tell each other, or were a second ago.
    pub members: u32,
    /// Nodes in the tree that tell each other; 0 where the grantor has none below it.
    pub nodes: u32,
    /// Domains that were hot are not, unless they are named again.
    pub begins: bool,
    /// Domains of which everything is to be told from here on.
    pub hot: Vec<Arc<str>>,
    /// Domains of which that is over.
    pub calm: Vec<Arc<str>>,
    /// Whose hits, and which.
    pub domains: Vec<DomainHits>,
}

// === impl DomainNews ===

impl DomainNews {
    pub(crate) fn to_wire(&self) -> wire::DomainNews {
        let names = |names: &[Arc<str>]| names.iter().map(ToString::to_string).collect();
        wire::DomainNews {
            resource_id: self.resource.to_string(),
            version: self.version,
            now_nanos: self.now.as_nanos(),
            heard: self.heard,
            heard_at_nanos: self.heard_at.as_nanos(),
            members: self.members,
            begins: self.begins.then_some(true),
            hot: names(&self.hot),
            calm: names(&self.calm),
            domain: self.domains.iter().map(DomainHits::to_wire).collect(),
            nodes: (self.nodes > 0).then_some(self.nodes),
        }
    }

    pub(crate) fn from_wire(wire: wire::DomainNews) -> Result<DomainNews, Malformed> {
        let malformed = |field: &str, found: String| Malformed { field: format!("domains.{field}"), found };
        let resource = ResourceId::new(wire.resource_id, LONGEST_NAME)
            .map_err(|bad| malformed("resource_id", bad.to_string()))?;
        let domains = hits::from_wire("domain", wire.domain);
        Ok(DomainNews {
            resource,
            version: wire.version,
            now: Time::from_nanos(wire.now_nanos),
            heard: wire.heard,
            heard_at: Time::from_nanos(wire.heard_at_nanos),
            members: wire.members,
            nodes: wire.nodes.unwrap_or(0),
            begins: wire.begins.unwrap_or(false),
            hot: names("domains.hot", wire.hot)?,
            calm: names("domains.calm", wire.calm)?,
            domains: domains.map_err(|refusal| malformed("domain", refusal.to_string()))?,
        })
    }
}

fn names(field: &str, names: Vec<String>) -> Result<Vec<Arc<str>>, Malformed> {
    let malformed = |found| Err(Malformed { field: field.to_owned(), found });
    if names.len() > MOST_DOMAINS {
        return malformed(format!("has {} names, more than {MOST_DOMAINS}", names.len()));
    }
    match names.iter().find(|name| name.len() > LONGEST_DOMAIN) {
        Some(name) => malformed(format!("has a name of {} bytes, more than {LONGEST_DOMAIN}", name.len())),
        None => Ok(names.into_iter().map(Arc::from).collect()),
    }
}
