//! The metrics that a program can export about its client.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::{Amount, ResourceId, Time};

use crate::domain;
use crate::fault::Fault;
use crate::holding::{Kind, Rung};
use crate::second_limit::SecondUsage;
use crate::session::{SessionCounts, Transport};
use crate::shortness::ShortBy;

/// A client at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct Metrics {
    /// Requests, answers, redirects, failures and releases since the client was built.
    pub counts: SessionCounts,
    /// The way in which it speaks to servers: polling, too, after it has met one without streams.
    pub transport: Transport,
    /// The last fault for which a resource was not renewed, keys of windows among them; absent: there has been none.
    pub last_fault: Option<LastFault>,
    /// The open resources, by name.
    pub resources: Vec<ResourceMetrics>,
}

/// A fault for which a resource was not renewed.
#[derive(Clone, PartialEq, Debug)]
pub struct LastFault {
    /// When it was, by the process's own clock.
    pub at: Time,
    /// The resource, one of several perhaps.
    pub resource: ResourceId,
    /// The fault.
    pub fault: Fault,
}

/// An open resource at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceMetrics {
    /// Which one.
    pub resource: ResourceId,
    /// The kind of quantity that it counts.
    pub kind: Kind,
    /// Where its allowance comes from.
    pub rung: Rung,
    /// The capacity that is allowed, in units (a second); `None` is without limit.
    pub capacity: Option<Amount>,
    /// The time at which that ends if nothing is renewed, by the process's own clock; `None` where it has no end.
    pub until: Option<Time>,
    /// Whether the server that granted the lease was learning what is out.
    pub is_learning: bool,
    /// The amount that was asked for last, in units (a second).
    pub wants: f64,
    /// The time for which less was held than was wanted since it was opened, by what bound it.
    pub short: BTreeMap<ShortBy, Duration>,
    /// Units granted to the program, or for a gauge permits.
    pub granted: u64,
    /// Units denied to the program, or for a gauge permits.
    pub denied: u64,
    /// Units that the lease would have refused and that were let pass, as its grantor lets everything pass; of a rate neither
    /// `granted` nor `denied` has them.
    pub unenforced: u64,
    /// Whether everything is let pass.
    pub lets_pass: bool,
    /// The units that were asked of the second limit that is tried beside this one.
    pub beside: SecondUsage,
    /// Units of a gauge in use, within the lease; 0 for a rate.
    pub in_use: u32,
    /// The counts of what the domains of a rate have asked for and were granted.
    pub domains: domain::DomainCounts,
    /// The busiest domains of a rate by name, where they were asked for with [`super::Client::metrics_naming`]. What is
    /// missing of `domains` is in [`domain::Snapshot::others`].
    pub busiest: Option<domain::Snapshot>,
}
