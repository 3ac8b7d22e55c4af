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
mod tests {
    use super::*;
    use crate::message::{Order, Sharing};
    use crate::{Amount, ResourceId};

    const NOON: WallClock = WallClock { since_epoch: Duration::from_millis(1_000_900) };

    fn grant() -> Grant {
        Grant {
            resource: ResourceId::new("db", 256).unwrap(),
            capacity: Amount::from_f64(0.3),
            length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            order: Some(Order { epoch: Epoch(4), seq: 2 }),
            basis: None,
            token: vec![7],
            ack_wanted: true,
            safe_leased: true,
            burst: Some(Duration::from_micros(2_500)),
            learning: true,
            learning_left: Some(Duration::from_millis(51_200)),
            due: Some(Duration::from_micros(1_234_567)),
            safe_capacity: Some(-1.0),
            sharing: None,
            domains: None,
            before: None,
            earlier: None,
            generation: None,
        }
    }

    #[test]
    fn a_grant_survives_the_wire() {
        let answer = Answer { grants: vec![grant()], epoch: Some(Epoch(4)), ..Answer::default() };
        assert_eq!(Answer::from_wire(answer.clone().into_client_wire(NOON), NOON), Ok(answer));
    }

    #[test]
    fn a_grant_to_a_node_survives_the_wire() {
        let (kind, seconds) = (wire::algorithm::Kind::FairShare, Duration::from_secs);
        let sharing = Sharing { kind, lease_length: seconds(60), refresh_interval: seconds(5) };
        let grants = vec![Grant { sharing: Some(sharing), ..grant() }, grant()];
        let notice = Some(NodeNotice { path: vec!["root".to_owned()], name_taken: true });
        let retry = Some(Duration::from_millis(1_500));
        let answer = Answer { grants, retry, notice, ..Answer::default() };
        assert_eq!(Answer::from_node_wire(answer.clone().into_node_wire(NOON), NOON), Ok(answer.clone()));

        let mut bent = answer.into_node_wire(NOON);
        bent.response[0].algorithm.as_mut().unwrap().lease_length = -1;
        let said = Answer::from_node_wire(bent, NOON).unwrap_err().to_string();
        assert_eq!(said, "malformed answer: response[0].algorithm.lease_length: is -1");
    }

    #[test]
    fn expiry_is_rounded_down_for_those_who_go_by_the_date() {
        let answer = Answer { grants: vec![grant()], ..Answer::default() };
        let lease = answer.into_client_wire(NOON).response.remove(0).gets;
        assert_eq!(lease.expiry_time, Some(1_060));
    }

    #[test]
    fn a_plain_doorman_lease_lasts_until_its_date() {
        let lease = wire::Lease {
            expiry_time: Some(1_060),
            refresh_interval: Some(0),
            capacity: Some(10.0),
            ..wire::Lease::default()
        };
        let response = wire::ResourceResponse {
            resource_id: "db".into(),
            gets: lease,
            safe_capacity: None,
            domains: None,
        };
        let answer =
            wire::GetCapacityResponse { response: vec![response], ..wire::GetCapacityResponse::default() };
        let grant = Answer::from_wire(answer, NOON).unwrap().grants.remove(0);
        assert_eq!((grant.length, grant.order), (Duration::from_millis(59_100), None));
        assert_eq!(grant.refresh_interval, Duration::from_secs(1));
    }

    #[test]
    fn an_impossible_capacity_is_malformed() {
        let mut answer = Answer { grants: vec![grant()], ..Answer::default() }.into_client_wire(NOON);
        answer.response[0].gets.capacity = Some(f64::NAN);
        let said = Answer::from_wire(answer, NOON).unwrap_err().to_string();
        assert_eq!(said, "malformed answer: response[0].gets.capacity: is NaN");
    }

    #[test]
    fn an_empty_address_is_nobody() {
        let nobody = Leader::from_wire(wire::Mastership { master_address: Some(String::new()) });
        assert_eq!(nobody, Leader::default());
    }
}
