//! What a grantor says to a holder: grants, and who leads.

use std::time::Duration;

use super::refusal::Malformed;
use crate::name::ResourceId;
use crate::{Amount, wire};

/// The date, which only Doorman's clients and servers need: they write the end of a lease as Unix time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WallClock {
    /// Since the Unix epoch.
    pub since_epoch: Duration,
}

/// The place of a grant in the order that holders adopt upwards only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Order {
    /// The reign of the leader that granted it.
    pub epoch: u64,
    /// Its number within the reign, the holder and the resource.
    pub seq: u64,
}

/// So much of a resource, for so long.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// The resource.
    pub resource: ResourceId,
    /// How much: units a second for a rate, units for a gauge.
    pub capacity: Amount,
    /// How long, counted by the holder from the moment it sent the basis.
    pub length: Duration,
    /// After how long to ask again.
    pub refresh_interval: Duration,
    /// Which grant it is; absent from Doorman's servers, whose answers are taken as they come.
    pub order: Option<Order>,
    /// The report on which the end is counted; absent: the request that this answers.
    pub basis: Option<u64>,
    /// To be echoed; empty if there is none.
    pub token: Vec<u8>,
    /// Somebody waits for what this takes away: report at once.
    pub ack_wanted: bool,
    /// What to fall back to when no server answers, in units: -1 is without limit.
    pub safe_capacity: Option<f64>,
    /// How the resource is shared; told to nodes.
    pub sharing: Option<Sharing>,
}

/// How a grantor shares a resource, as it tells a node below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sharing {
    /// The algorithm.
    pub kind: wire::algorithm::Kind,
    /// How long its leases last.
    pub lease_length: Duration,
    /// How often its holders ask.
    pub refresh_interval: Duration,
}

/// Who leads a node, as far as the one who says it knows.
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
    /// The reign of the one who answers.
    pub epoch: Option<u64>,
    /// When to ask again if less was given than is due.
    pub retry: Option<Duration>,
}

/// The answer to a discovery.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Whereabouts {
    /// Who leads.
    pub leader: Leader,
    /// Whether it is the one who says so.
    pub is_leader: bool,
    /// Its reign.
    pub epoch: Option<u64>,
    /// The name of the node.
    pub node: Option<String>,
}

/// Bytes in the name of a resource in an answer: servers may be configured for longer ones than they are by default.
const LONGEST_NAME: usize = 4096;

// === impl WallClock ===

impl WallClock {
    /// The Unix time, in whole seconds, at which a lease ends that has `remaining` to live: rounded down.
    fn expiry_seconds(self, remaining: Duration) -> i64 {
        i64::try_from(self.since_epoch.saturating_add(remaining).as_secs()).unwrap_or(i64::MAX)
    }

    fn until(self, expiry_seconds: i64) -> Duration {
        let expiry = Duration::from_secs(u64::try_from(expiry_seconds).unwrap_or(0));
        expiry.saturating_sub(self.since_epoch)
    }
}

// === impl Answer ===

impl Answer {
    /// "Not I", and who instead if that is known.
    #[must_use]
    pub fn redirect(leader: Leader) -> Answer {
        Answer { redirect: Some(leader), ..Answer::default() }
    }

    /// Checks what a server answered to a request sent at `sent` by this process's wall clock.
    ///
    /// # Errors
    /// With the first thing in it that cannot be.
    pub fn from_wire(answer: wire::GetCapacityResponse, sent: WallClock) -> Result<Answer, Malformed> {
        let grants = answer.response.into_iter().enumerate();
        Ok(Answer {
            grants: grants
                .map(|(index, grant)| Grant::from_wire(index, grant, sent))
                .collect::<Result<_, _>>()?,
            redirect: answer.mastership.map(Leader::from_wire),
            epoch: answer.epoch,
            retry: answer.retry_ms.map(|ms| Duration::from_millis(ms.into())),
        })
    }

    /// The answer for a client, given at `now` by this process's wall clock.
    #[must_use]
    pub fn into_client_wire(self, now: WallClock) -> wire::GetCapacityResponse {
        let retry_ms = self.retry_ms();
        let response = self.grants.into_iter().map(|grant| wire::ResourceResponse {
            safe_capacity: grant.safe_capacity,
            gets: grant.lease(now),
            resource_id: grant.resource.to_string(),
        });
        wire::GetCapacityResponse {
            response: response.collect(),
            mastership: self.redirect.as_ref().map(Leader::to_wire),
            epoch: self.epoch,
            claims_open: None,
            retry_ms,
        }
    }

    /// The answer for a server below, given at `now` by this process's wall clock.
    #[must_use]
    pub fn into_node_wire(self, now: WallClock) -> wire::GetServerCapacityResponse {
        let retry_ms = self.retry_ms();
        let response = self.grants.into_iter().map(|grant| wire::ServerCapacityResourceResponse {
            safe_capacity: grant.safe_capacity,
            gets: grant.lease(now),
            algorithm: grant.sharing.map(Sharing::to_wire),
            resource_id: grant.resource.to_string(),
            level: None,
            prop_ratio: None,
        });
        wire::GetServerCapacityResponse {
            response: response.collect(),
            mastership: self.redirect.as_ref().map(Leader::to_wire),
            epoch: self.epoch,
            claims_open: None,
            retry_ms,
        }
    }

    fn retry_ms(&self) -> Option<u32> {
        self.retry.map(|retry| u32::try_from(retry.as_millis()).unwrap_or(u32::MAX))
    }
}

// === impl Grant ===

impl Grant {
    fn from_wire(
        index: usize,
        response: wire::ResourceResponse,
        sent: WallClock,
    ) -> Result<Grant, Malformed> {
        let malformed =
            |field: &str, found: String| Malformed { field: format!("response[{index}].{field}"), found };
        let resource = ResourceId::new(response.resource_id.as_str(), LONGEST_NAME)
            .map_err(|fault| malformed("resource_id", fault.to_string()))?;
        let lease = response.gets;
        let capacity = lease.capacity.ok_or_else(|| malformed("gets.capacity", "is missing".to_owned()))?;
        if !capacity.is_finite() || capacity < 0.0 {
            return Err(malformed("gets.capacity", format!("is {capacity}")));
        }
        let length = match (lease.duration_ms, lease.expiry_time) {
            (Some(ms), _) => Duration::from_millis(ms),
            (None, Some(expiry)) => sent.until(expiry),
            (None, None) => return Err(malformed("gets.expiry_time", "is missing".to_owned())),
        };
        let safe_capacity = response.safe_capacity;
        if let Some(safe) = safe_capacity.filter(|safe| safe.is_nan()) {
            return Err(malformed("safe_capacity", format!("is {safe}")));
        }
        // Doorman's clients take anything below 1 for "do not hammer me", and so do we.
        let refresh_seconds = lease.refresh_interval.unwrap_or(0).max(1).unsigned_abs();
        Ok(Grant {
            resource,
            capacity: Amount::from_f64(capacity),
            length,
            refresh_interval: Duration::from_secs(refresh_seconds),
            order: lease.epoch.zip(lease.seq).map(|(epoch, seq)| Order { epoch, seq }),
            basis: lease.basis,
            token: lease.token.unwrap_or_default(),
            ack_wanted: lease.ack_wanted.unwrap_or(false),
            safe_capacity,
            sharing: None,
        })
    }

    fn lease(&self, now: WallClock) -> wire::Lease {
        wire::Lease {
            expiry_time: Some(now.expiry_seconds(self.length)),
            refresh_interval: Some(whole_seconds(self.refresh_interval).max(1)),
            capacity: Some(self.capacity.as_f64()),
            epoch: self.order.map(|order| order.epoch),
            seq: self.order.map(|order| order.seq),
            duration_ms: Some(u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX)),
            basis: self.basis,
            token: (!self.token.is_empty()).then(|| self.token.clone()),
            ack_wanted: self.ack_wanted.then_some(true),
            generation: None,
        }
    }
}

// === impl Sharing ===

impl Sharing {
    fn to_wire(self) -> wire::Algorithm {
        wire::Algorithm {
            kind: self.kind.into(),
            lease_length: whole_seconds(self.lease_length),
            refresh_interval: whole_seconds(self.refresh_interval),
            parameters: Vec::new(),
            learning_mode_duration: None,
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

    fn from_wire(mastership: wire::Mastership) -> Leader {
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
            epoch: answer.epoch,
            node: answer.node,
        }
    }

    /// As it goes on the wire.
    #[must_use]
    pub fn to_wire(&self) -> wire::DiscoveryResponse {
        wire::DiscoveryResponse {
            mastership: self.leader.to_wire(),
            is_master: self.is_leader,
            epoch: self.epoch,
            claims_open: None,
            node: self.node.clone(),
        }
    }
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: WallClock = WallClock { since_epoch: Duration::from_millis(1_000_900) };

    fn grant() -> Grant {
        Grant {
            resource: ResourceId::new("db", 256).unwrap(),
            capacity: Amount::from_f64(0.3),
            length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            order: Some(Order { epoch: 4, seq: 2 }),
            basis: None,
            token: vec![7],
            ack_wanted: true,
            safe_capacity: Some(-1.0),
            sharing: None,
        }
    }

    #[test]
    fn a_grant_survives_the_wire() {
        let answer = Answer { grants: vec![grant()], epoch: Some(4), ..Answer::default() };
        assert_eq!(Answer::from_wire(answer.clone().into_client_wire(NOON), NOON), Ok(answer));
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
        let response = wire::ResourceResponse { resource_id: "db".into(), gets: lease, safe_capacity: None };
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
