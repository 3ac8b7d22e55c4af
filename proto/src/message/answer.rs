//! An answer of a grantor to a holder: grants, and who leads.

use std::time::Duration;

use super::refusal::Malformed;
use super::{Grant, NodeNotice, Refusal, WallClock};
use crate::{Epoch, Time, wire};

/// The leader of a node, as far as the one who says it knows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Leader {
    /// `host:port`; absent: nobody known.
    pub address: Option<String>,
}

/// The answer to an [`super::Ask`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// At most one grant a resource asked for.
    pub grants: Vec<Grant>,
    /// Present: nothing was granted, ask there.
    pub redirect: Option<Leader>,
    /// The epoch of the one who answers.
    pub epoch: Option<Epoch>,
    /// When to ask again if less was given than is due.
    pub retry: Option<Duration>,
    /// The notice to a node of its place in the tree.
    pub notice: Option<NodeNotice>,
    /// The resources that were refused, while the others were answered.
    pub refused: Vec<RefusedReport>,
}

/// One resource of a request that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedReport {
    /// Its place in the request.
    pub index: usize,
    /// The name of it, as it was said.
    pub resource: String,
    /// The code of gRPC that a request for it alone would have failed with.
    pub code: i32,
    /// Why.
    pub reason: String,
}

/// The answer to a discovery.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Whereabouts {
    /// The leader of the node.
    pub leader: Leader,
    /// Whether it is the one who says so.
    pub is_leader: bool,
    /// Its epoch.
    pub epoch: Option<Epoch>,
    /// The name of the node.
    pub node: Option<String>,
    /// The time that the clock of the leader showed when it had been asked.
    pub clock: Option<Time>,
}

// === impl Answer ===

impl Answer {
    /// "Not I", and who instead if that is known.
    #[must_use]
    pub fn redirect(leader: Leader) -> Answer {
        Answer { redirect: Some(leader), ..Answer::default() }
    }

    /// Checks what a server answered to a client's request sent at `sent` by this process's wall clock.
    ///
    /// # Errors
    /// With the first thing in it that cannot be.
    pub fn from_wire(answer: wire::GetCapacityResponse, sent: WallClock) -> Result<Answer, Malformed> {
        let grants = answer.response.into_iter().enumerate();
        let grants = grants.map(|(index, grant)| Grant::from_client_wire("response", index, grant, sent));
        Ok(Answer {
            grants: grants.collect::<Result<_, _>>()?,
            redirect: answer.mastership.map(Leader::from_wire),
            epoch: answer.epoch.map(Epoch),
            retry: answer.retry_ms.map(|ms| Duration::from_millis(ms.into())),
            notice: None,
            refused: answer.refused.into_iter().map(RefusedReport::from_wire).collect(),
        })
    }

    /// Checks what a server answered to a node's request sent at `sent` by this process's wall clock.
    ///
    /// # Errors
    /// With the first thing in it that cannot be.
    pub fn from_node_wire(
        answer: wire::GetServerCapacityResponse,
        sent: WallClock,
    ) -> Result<Answer, Malformed> {
        let grants = answer.response.into_iter().enumerate();
        let grants = grants.map(|(index, grant)| Grant::from_node_wire("response", index, grant, sent));
        Ok(Answer {
            grants: grants.collect::<Result<_, _>>()?,
            redirect: answer.mastership.map(Leader::from_wire),
            epoch: answer.epoch.map(Epoch),
            retry: answer.retry_ms.map(|ms| Duration::from_millis(ms.into())),
            notice: answer.notice.map(NodeNotice::from_wire).transpose()?,
            refused: answer.refused.into_iter().map(RefusedReport::from_wire).collect(),
        })
    }

    /// The answer for a client, given at `now` by this process's wall clock.
    #[must_use]
    pub fn into_client_wire(self, now: WallClock) -> wire::GetCapacityResponse {
        wire::GetCapacityResponse {
            response: self.grants.iter().map(|grant| grant.to_client_wire(now)).collect(),
            mastership: self.redirect.as_ref().map(Leader::to_wire),
            epoch: self.epoch.map(u64::from),
            retry_ms: self.retry_ms(),
            refused: self.refused.into_iter().map(RefusedReport::into_wire).collect(),
        }
    }

    /// The answer for a server below, given at `now` by this process's wall clock.
    #[must_use]
    pub fn into_node_wire(self, now: WallClock) -> wire::GetServerCapacityResponse {
        wire::GetServerCapacityResponse {
            response: self.grants.iter().map(|grant| grant.to_node_wire(now)).collect(),
            mastership: self.redirect.as_ref().map(Leader::to_wire),
            epoch: self.epoch.map(u64::from),
            retry_ms: self.retry_ms(),
            notice: self.notice.as_ref().map(NodeNotice::to_wire),
            refused: self.refused.into_iter().map(RefusedReport::into_wire).collect(),
        }
    }

    fn retry_ms(&self) -> Option<u32> {
        self.retry.map(|retry| u32::try_from(retry.as_millis()).unwrap_or(u32::MAX))
    }
}

// === impl RefusedReport ===

impl RefusedReport {
    /// Of the report at `index`, which is about `resource`.
    #[must_use]
    pub fn new(index: usize, resource: &str, why: &Refusal) -> RefusedReport {
        RefusedReport { index, resource: resource.to_owned(), code: why.code(), reason: why.to_string() }
    }

    /// The same of a report that stands elsewhere in the request, as others before it are left out.
    #[must_use]
    pub fn at(self, index: usize) -> RefusedReport {
        let (here, there) = (format!("resource[{}]", self.index), format!("resource[{index}]"));
        RefusedReport { index, reason: self.reason.replacen(&here, &there, 1), ..self }
    }

    fn from_wire(refused: wire::RefusedResource) -> RefusedReport {
        RefusedReport {
            index: usize::try_from(refused.index).unwrap_or(usize::MAX),
            resource: refused.resource_id.unwrap_or_default(),
            code: refused.code.unwrap_or_default(),
            reason: refused.reason.unwrap_or_default(),
        }
    }

    fn into_wire(self) -> wire::RefusedResource {
        wire::RefusedResource {
            index: u32::try_from(self.index).unwrap_or(u32::MAX),
            resource_id: Some(self.resource),
            code: Some(self.code),
            reason: Some(self.reason),
        }
    }
}

// === impl Leader ===

impl Leader {
    /// The one at `host:port`.
    #[must_use]
    pub fn at(address: impl Into<String>) -> Leader {
        Leader { address: Some(address.into()) }
    }

    pub(super) fn from_wire(mastership: wire::Mastership) -> Leader {
        Leader { address: mastership.master_address.filter(|address| !address.is_empty()) }
    }

    pub(super) fn to_wire(&self) -> wire::Mastership {
        wire::Mastership { master_address: self.address.clone() }
    }
}

// === impl Whereabouts ===

impl Whereabouts {
    /// Takes what a server said about itself.
    #[must_use]
    pub fn from_wire(answer: wire::DiscoveryResponse) -> Whereabouts {
        Whereabouts {
            leader: Leader::from_wire(answer.mastership),
            is_leader: answer.is_master,
            epoch: answer.epoch.map(Epoch),
            node: answer.node,
            clock: answer.clock_nanos.map(Time::from_nanos),
        }
    }

    /// As it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::DiscoveryResponse {
        wire::DiscoveryResponse {
            mastership: self.leader.to_wire(),
            is_master: self.is_leader,
            epoch: self.epoch.map(u64::from),
            node: self.node.clone(),
            clock_nanos: self.clock.map(Time::as_nanos),
        }
    }
}

#[cfg(test)]
mod tests;
