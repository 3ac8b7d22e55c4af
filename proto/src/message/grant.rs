//! Grants: so much of a resource, for so long.

use std::sync::Arc;
use std::time::Duration;

use super::bound_by::BoundBy;
use super::refusal::Malformed;
use crate::name::ResourceId;
use crate::{Amount, Epoch, ReportId, wire};

/// The date, which only Doorman's clients and servers need: they write the end of a lease as Unix time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WallClock {
    /// Since the Unix epoch.
    pub since_epoch: Duration,
}

/// The place of a grant in the order that holders adopt upwards only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Order {
    /// The epoch of the leader that granted it.
    pub epoch: Epoch,
    /// Its number within the epoch, the holder and the resource.
    pub seq: u64,
}

/// A capacity of a resource, granted for a length of time.
#[derive(Clone, PartialEq, Debug)]
pub struct Grant {
    /// The resource.
    pub resource: ResourceId,
    /// The capacity: units a second for a rate, units for a gauge.
    pub capacity: Amount,
    /// The length of the lease, counted by the holder from the moment it sent the basis.
    pub length: Duration,
    /// After how long to ask again.
    pub refresh_interval: Duration,
    /// Which grant it is; absent from Doorman's servers, whose answers are taken as they come.
    pub order: Option<Order>,
    /// The report on which the end is counted; absent: the request that this answers.
    pub basis: Option<ReportId>,
    /// To be echoed; empty if there is none.
    pub token: Vec<u8>,
    /// Somebody waits for what this takes away: report at once.
    pub ack_wanted: bool,
    /// A part of the capacity is reserved and leased apart, as [`ResourceId::floor`]: that is what to fall back to.
    pub safe_leased: bool,
    /// The grantor does not know yet what is out: a grant of nothing does not end what is used without a lease.
    pub learning: bool,
    /// The time for which that goes on, counted from when this was sent, as far as the grantor knows. Absent: it does not know,
    /// or is not learning.
    pub learning_left: Option<Duration>,
    /// The capacity to fall back to when no server answers, in units: -1 is without limit. Where something is
    /// reserved, the part of that to ask for; absent: as much as there is.
    pub safe_capacity: Option<f64>,
    /// Of a rate: what the holder may save up, as the time in which the capacity brings it; absent: the holder chooses.
    pub burst: Option<Duration>,
    /// Of a rate that brings less than a unit in the burst: when one is due, from the basis on, and then at equal intervals;
    /// on a stream units are asked for instead. Absent: one may be saved up.
    pub due: Option<Duration>,
    /// Of a gauge: each unit is a use in this window, and is kept for as long as that is. Absent: units are in use until they are
    /// given back.
    pub window: Option<UseWindow>,
    /// The kind that it counts, [`Grant::RATE`] or [`Grant::GAUGE`]: nothing of one is granted while something of the other
    /// may be in use. Absent: the grantor does not say.
    pub generation: Option<u32>,
    /// The way in which the resource is shared; told to nodes.
    pub sharing: Option<Sharing>,
    /// The policies on what a domain may use of it, where the holder has shown that it has another version; told to
    /// clients.
    pub domains: Option<Arc<wire::DomainPolicies>>,
    /// The capacity that earlier leaders of the node that is granted this may have left in use below it; told to
    /// nodes.
    pub before: Option<Before>,
    /// When all is over that earlier leaders of that node had, and granted under it, counted from when this was sent. Absent:
    /// that is not known.
    pub earlier: Option<Duration>,
    /// The bound that kept the capacity from being more. Absent: the grantor does not say, or it is not known here.
    pub bound_by: Option<BoundBy>,
    /// The holder lets everything pass, and counts what it would have refused; told to clients.
    pub unenforced: bool,
    /// A second limit is tried beside this one, which is leased as the [companion](ResourceId::companion) of the resource; told
    /// to clients.
    pub beside: bool,
}

/// A window in which uses are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UseWindow {
    /// Its length.
    pub length: Duration,
    /// The most uses in any window of that length, by all holders together.
    pub limit: u32,
}

/// The capacity that a node may still use under leaders before the one that is granted a lease, as far as the
/// node above charges for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Before {
    /// The most that may be in use.
    pub amount: Amount,
    /// The time for which it may be in use, counted from when this was sent.
    pub remaining: Duration,
}

/// The way in which a grantor shares a resource, as it tells a node below.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sharing {
    /// The algorithm.
    pub kind: wire::algorithm::Kind,
    /// The length of its leases.
    pub lease_length: Duration,
    /// The interval at which its holders ask.
    pub refresh_interval: Duration,
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

// === impl Grant ===

impl Grant {
    /// The generation of rates.
    pub const RATE: u32 = 1;
    /// The generation of gauges.
    pub const GAUGE: u32 = 2;

    /// Checks the grant at `index` of the field `list` in what was answered to a client's message sent at `sent`.
    pub(super) fn from_client_wire(
        list: &str,
        index: usize,
        response: wire::ResourceResponse,
        sent: WallClock,
    ) -> Result<Grant, Malformed> {
        let wire::ResourceResponse { resource_id, gets, safe_capacity, domains } = response;
        let path = |field: &str| format!("{list}[{index}].{field}");
        let domains = domains.map(Arc::new);
        Ok(Grant { domains, ..Grant::from_wire(&path, &resource_id, gets, safe_capacity, sent)? })
    }

    /// The same for a node's message.
    pub(super) fn from_node_wire(
        list: &str,
        index: usize,
        response: wire::ServerCapacityResourceResponse,
        sent: WallClock,
    ) -> Result<Grant, Malformed> {
        let wire::ServerCapacityResourceResponse { resource_id, gets, algorithm, safe_capacity, .. } =
            response;
        let path = |field: &str| format!("{list}[{index}].{field}");
        let sharing = algorithm.map(|algorithm| Sharing::from_wire(&path, &algorithm)).transpose()?;
        Ok(Grant { sharing, ..Grant::from_wire(&path, &resource_id, gets, safe_capacity, sent)? })
    }

    fn from_wire(
        path: &dyn Fn(&str) -> String,
        resource_id: &str,
        lease: wire::Lease,
        safe_capacity: Option<f64>,
        sent: WallClock,
    ) -> Result<Grant, Malformed> {
        let malformed = |field: &str, found: String| Malformed { field: path(field), found };
        let resource = ResourceId::new(resource_id, LONGEST_NAME)
            .map_err(|fault| malformed("resource_id", fault.to_string()))?;
        let capacity = lease.capacity.ok_or_else(|| malformed("gets.capacity", "is missing".to_owned()))?;
        if !capacity.is_finite() || capacity < 0.0 {
            return Err(malformed("gets.capacity", format!("is {capacity}")));
        }
        let length = match (lease.duration_ms, lease.expiry_time) {
            (Some(ms), _) => Duration::from_millis(ms),
            (None, Some(expiry)) => sent.until(expiry),
            (None, None) => return Err(malformed("gets.expiry_time", "is missing".to_owned())),
        };
        if let Some(safe) = safe_capacity.filter(|safe| safe.is_nan()) {
            return Err(malformed("safe_capacity", format!("is {safe}")));
        }
        let before = lease.before_capacity.zip(lease.before_ms);
        if let Some((amount, _)) = before.filter(|(amount, _)| !amount.is_finite() || *amount < 0.0) {
            return Err(malformed("gets.before_capacity", format!("is {amount}")));
        }
        let before = before.map(|(amount, millis)| Before {
            amount: Amount::from_f64(amount),
            remaining: Duration::from_millis(millis),
        });
        // Doorman's clients take anything below 1 for "do not hammer me", and so do we.
        let refresh_seconds = lease.refresh_interval.unwrap_or(0).max(1).unsigned_abs();
        Ok(Grant {
            resource,
            capacity: Amount::from_f64(capacity),
            length,
            refresh_interval: Duration::from_secs(refresh_seconds),
            order: lease.epoch.zip(lease.seq).map(|(epoch, seq)| Order { epoch: Epoch(epoch), seq }),
            basis: lease.basis.map(ReportId),
            token: lease.token.unwrap_or_default(),
            ack_wanted: lease.ack_wanted.unwrap_or(false),
            safe_leased: lease.safe_leased.unwrap_or(false),
            learning: lease.learning.unwrap_or(false),
            learning_left: lease.learning_ms.map(Duration::from_millis),
            safe_capacity,
            burst: lease.burst_us.map(Duration::from_micros),
            due: lease.due_us.map(Duration::from_micros),
            window: UseWindow::from_wire(lease.window_us, lease.window_limit),
            generation: lease.generation,
            sharing: None,
            domains: None,
            before,
            earlier: lease.earlier_ms.map(Duration::from_millis),
            bound_by: lease.bound_by.and_then(BoundBy::from_wire),
            unenforced: lease.unenforced.unwrap_or(false),
            beside: lease.beside.unwrap_or(false),
        })
    }

    /// As a client is told, at `now` by this process's wall clock.
    pub(super) fn to_client_wire(&self, now: WallClock) -> wire::ResourceResponse {
        wire::ResourceResponse {
            resource_id: self.resource.as_str().to_owned(),
            gets: self.lease(now),
            safe_capacity: self.safe_capacity,
            domains: self.domains.as_deref().cloned(),
        }
    }

    /// As a node is told, at `now` by this process's wall clock.
    pub(super) fn to_node_wire(&self, now: WallClock) -> wire::ServerCapacityResourceResponse {
        wire::ServerCapacityResourceResponse {
            resource_id: self.resource.as_str().to_owned(),
            gets: self.lease(now),
            algorithm: self.sharing.map(Sharing::to_wire),
            safe_capacity: self.safe_capacity,
        }
    }

    fn lease(&self, now: WallClock) -> wire::Lease {
        wire::Lease {
            expiry_time: Some(now.expiry_seconds(self.length)),
            refresh_interval: Some(whole_seconds(self.refresh_interval).max(1)),
            capacity: Some(self.capacity.as_f64()),
            epoch: self.order.map(|order| order.epoch.0),
            seq: self.order.map(|order| order.seq),
            duration_ms: Some(u64::try_from(self.length.as_millis()).unwrap_or(u64::MAX)),
            basis: self.basis.map(u64::from),
            token: (!self.token.is_empty()).then(|| self.token.clone()),
            ack_wanted: self.ack_wanted.then_some(true),
            generation: self.generation,
            safe_leased: self.safe_leased.then_some(true),
            burst_us: self.burst.map(whole_micros),
            due_us: self.due.map(whole_micros),
            window_us: self.window.map(|window| whole_micros(window.length)),
            window_limit: self.window.map(|window| window.limit),
            learning: self.learning.then_some(true),
            learning_ms: self.learning_left.map(millis_up),
            remaining_ms: None,
            counts_ms: None,
            before_capacity: self.before.map(|before| before.amount.as_f64()),
            // Rounded up: it must not end too early.
            before_ms: self.before.map(|before| millis_up(before.remaining)),
            earlier_ms: self.earlier.map(millis_up),
            bound_by: self.bound_by.map(BoundBy::to_wire),
            unenforced: self.unenforced.then_some(true),
            beside: self.beside.then_some(true),
        }
    }
}

// === impl UseWindow ===

impl UseWindow {
    /// A window whose limit is not said has one that nobody reaches.
    fn from_wire(micros: Option<u64>, limit: Option<u32>) -> Option<UseWindow> {
        let limit = limit.unwrap_or(u32::MAX);
        micros.map(|micros| UseWindow { length: Duration::from_micros(micros), limit })
    }
}

// === impl Sharing ===

impl Sharing {
    fn from_wire(path: &dyn Fn(&str) -> String, algorithm: &wire::Algorithm) -> Result<Sharing, Malformed> {
        let malformed = |field: &str, found: String| Malformed { field: path(field), found };
        let kind = wire::algorithm::Kind::try_from(algorithm.kind)
            .map_err(|_| malformed("algorithm.kind", format!("is {}", algorithm.kind)))?;
        let seconds = |field: &str, seconds: i64| match u64::try_from(seconds) {
            Ok(seconds) => Ok(Duration::from_secs(seconds)),
            Err(_) => Err(malformed(field, format!("is {seconds}"))),
        };
        Ok(Sharing {
            kind,
            lease_length: seconds("algorithm.lease_length", algorithm.lease_length)?,
            refresh_interval: seconds("algorithm.refresh_interval", algorithm.refresh_interval)?,
        })
    }

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

fn millis_up(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn whole_micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

fn whole_seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}
