//! A template: the configuration of the resources whose names match a glob.

mod check;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_algorithms::rotation::Rotate;
use lessor_client::internals::domain::{Policies, Scope};
use lessor_client::internals::limiter::Limiter;
#[cfg(doc)]
use lessor_proto::ResourceId;
use lessor_proto::message::{Band, HolderKind, UseWindow};
use lessor_proto::{Amount, Drift};

use super::Glob;
use super::domains::Domains;
use super::fraction::Fraction;
use super::legacy::Legacy;
use crate::caps::{cap_clients, cap_priorities};

/// The longest time between two renewals on a stream: holders remember when they sent a report for as long as a grant may count
/// from it, and busy ones send many.
const LONGEST_RENEWAL: Duration = Duration::from_secs(60);

/// The configuration of the resources whose names match a glob.
///
/// Any value of this type can be made; a [`Repository`](super::Repository) takes only those that hold together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// Which resources.
    pub glob: Glob,
    /// The amount there is of each such resource, for all clients together; with [`SharePolicy::Static`] for each of
    /// them.
    pub capacity: Amount,
    /// The amount that a client falls back to for which nothing is reserved; of ours, only one that is told an
    /// amount or that there is no limit. Where something is reserved, the amount of it for which the client asks.
    pub safe_capacity: SafeCapacity,
    /// For people. May be empty.
    pub description: String,
    /// Units a second, or units in flight.
    pub kind: Kind,
    /// The policy by which the capacity is shared.
    pub policy: SharePolicy,
    /// The length of a lease. Not shorter than the refresh interval.
    pub lease_length: Duration,
    /// The time for which a client waits until it asks again.
    pub refresh_interval: Duration,
    /// The time after its start for which a server hands out only what was out before. Zero: no learning.
    pub learning: Duration,
    /// Of a gauge: how units that cannot be divided are taken in turns; absent: as [`Rotate::Fair`] says.
    pub rotate: Option<Rotate>,
    /// Of a gauge: how long a turn lasts; absent: a refresh interval.
    pub quantum: Option<Duration>,
    /// Of a gauge: each unit is a use in a window of this length, and comes back by itself when it has passed; absent: units are
    /// in use until they are given back.
    pub window: Option<Duration>,
    /// Of a gauge: whether the names of its resources say how much there is of each, as [`ResourceId::workers`] reads it, and
    /// the capacity is the most that one may say. Absent: there is the capacity of each.
    pub workers_in_name: bool,
    /// The treatment of holders that draw no incarnation, such as Doorman's clients.
    pub legacy: Legacy,
    /// The part of the capacity that all of them together may have.
    pub legacy_max_fraction: Fraction,
    /// Of a rate that is divided: how much of what nobody wants is lent to the nodes below and to clients, so that it is
    /// near to those who come to want it; absent: nine tenths of it.
    pub spare_to_nodes: Option<Fraction>,
    /// Of a rate that is divided: how much of the capacity is reserved for clients that reach no server, and leased apart.
    pub safe_fraction: Fraction,
    /// The length of a lease of that; absent: an hour, or a lease where that is longer.
    pub safe_lease: Option<Duration>,
    /// Whether equal shares are cut to powers of two, so that they change rarely. It is so with what is reserved, of which
    /// nobody has enough: without steps everybody's share would change with everyone who comes.
    pub in_steps: bool,
    /// Of a rate: what a holder may save up, as the time in which its lease brings it; absent: 50 ms.
    pub burst: Option<Duration>,
    /// Of a rate that is divided: how a lease is kept that brings less than a unit in the burst; absent: by request.
    pub small_leases: Option<SmallLeases>,
    /// Of a rate: what is granted is a multiple of this, and parts that cannot be divided are taken in turns; absent: any
    /// amount is granted. It is so with the leases of domains.
    pub part: Option<Amount>,
    /// The greatest priority that anybody has, a client or one below a node; more counts as that. Absent: any.
    pub most_priority: Option<i64>,
    /// The most clients that one node stands for; more count as so many. Absent: any number.
    pub most_clients: Option<u32>,
    /// The part of all clients that keep to their leases. The others let everything pass and count what they would have refused:
    /// then more may be used than there is.
    pub enforce: Fraction,
    /// The capacity of a second limit that is tried beside this one: decided by shares as this is, counted and kept to by nobody.
    pub beside: Option<Amount>,
    /// Of a rate: what one domain of a client may use of the client's lease; absent: all of it.
    pub domains: Option<Domains>,
}

/// The capacity that a client may use for ever, once its lease has ended and no server answers, and never more
/// than that lease gave.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SafeCapacity {
    /// The capacity divided by the number of clients, for those that draw no incarnation, as Doorman's; others stop.
    #[default]
    Dynamic,
    /// As much as it likes.
    Unlimited,
    /// This amount each; if it is zero, clients stop.
    Fixed(Amount),
}

/// The kind of quantity that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Kind {
    /// Units a second: queries, bytes.
    #[default]
    Rate,
    /// Whole units in flight: connections, copies.
    Gauge,
}

/// The shortest turn: a unit has to get from one holder to the next meanwhile.
const LEAST_QUANTUM: Duration = Duration::from_millis(100);
/// The time for which a floor lasts if nothing else is said.
const SAFE_LEASE: Duration = Duration::from_secs(3_600);

/// The rule for leases that bring less than a unit in the burst.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum SmallLeases {
    /// Each limiter saves one unit up: an attempt that does not wait finds it, and all clients together may pass a unit each in
    /// one instant.
    Save,
    /// Nothing is saved up, and units are had on request: all clients together keep to what the capacity brings in the burst.
    #[default]
    Request,
}

// === impl Template ===

impl Template {
    /// The burst if nothing else is said: enough for calls that come as they like, at 60 % of 200 a second all but
    /// one in ten thousand; and the target sees at most 5 % more than the capacity in any one second.
    pub const DEFAULT_BURST: Duration = Limiter::DEFAULT_BURST;

    /// Returns a template that gives `capacity` to each resource that `glob` matches: a rate, shared fairly by
    /// leases of a minute that are renewed every five seconds. Nothing is out when a server starts, so that it need
    /// not learn.
    #[must_use]
    pub fn new(glob: Glob, capacity: Amount) -> Template {
        Template {
            glob,
            capacity,
            safe_capacity: SafeCapacity::default(),
            description: String::new(),
            kind: Kind::default(),
            policy: SharePolicy::FairShare,
            lease_length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            learning: Duration::ZERO,
            rotate: None,
            quantum: None,
            window: None,
            workers_in_name: false,
            legacy: Legacy::default(),
            legacy_max_fraction: Fraction::ALL,
            spare_to_nodes: None,
            safe_fraction: Fraction::NONE,
            safe_lease: None,
            in_steps: false,
            burst: None,
            small_leases: None,
            part: None,
            most_priority: None,
            most_clients: None,
            enforce: Fraction::ALL,
            beside: None,
            domains: None,
        }
    }

    /// The demands of a report as they count: by the caps on priority and clients.
    pub(crate) fn capped<'b>(&self, bands: &'b [Band]) -> Cow<'b, [Band]> {
        let mut capped = Cow::Borrowed(bands);
        if let Some(most) = self.most_priority
            && bands.iter().any(|band| band.priority > most)
        {
            cap_priorities(capped.to_mut(), most);
        }
        if let Some(most) = self.most_clients {
            let all: u64 = bands.iter().map(|band| u64::from(band.subclients)).sum();
            if all > most.into() {
                cap_clients(capped.to_mut(), most.into());
            }
        }
        capped
    }

    /// The policies of its domains, where clients share them.
    pub(crate) fn shared_policies(&self) -> Option<Arc<Policies>> {
        let policies = self.domains.as_ref().map(|domains| &domains.policies)?;
        (policies.scope() == Scope::Shared).then(|| Arc::clone(policies))
    }

    /// Whether a client keeps to its lease: the same ones do at every server, and those of a part are among those of a greater one.
    #[must_use]
    pub fn enforces(&self, client: &str) -> bool {
        match self.enforce {
            Fraction::ALL => true,
            Fraction::NONE => false,
            part => part.has(client.as_bytes()),
        }
    }

    /// Whether a holder lets everything pass: nodes never do, as those below them go by templates of their own.
    pub(crate) fn lets_pass(&self, kind: HolderKind, holder: &str) -> bool {
        kind == HolderKind::Client && !self.enforces(holder)
    }

    /// Nothing is granted in fractions of this.
    #[must_use]
    pub fn grain(&self) -> Amount {
        match (self.kind, self.part) {
            (Kind::Gauge, _) => Amount::from_units(1),
            (Kind::Rate, Some(part)) => part.max(Amount::from_micros(1)),
            (Kind::Rate, None) => Amount::from_micros(1),
        }
    }

    /// Whether what is granted is a number of units, or of parts.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.kind == Kind::Gauge || self.part.is_some()
    }

    /// The way in which units that cannot be divided are taken in turns, and the length of a turn; absent where
    /// there are no turns: of a rate without parts, and where the sum of all shares is not limited.
    #[must_use]
    pub fn turns(&self) -> Option<(Rotate, Duration)> {
        let quantum = self.quantum.unwrap_or(self.refresh_interval);
        if self.window.is_some() {
            // A unit that is spent goes nowhere for the rest of its window.
            return self.has_turns().then_some((Rotate::None, quantum.max(LEAST_QUANTUM)));
        }
        self.has_turns().then(|| (self.rotate.unwrap_or(Rotate::Fair), quantum.max(LEAST_QUANTUM)))
    }

    /// The fraction of unwanted capacity that is lent.
    #[must_use]
    pub fn spare(&self) -> Fraction {
        match self.kind == Kind::Rate && self.policy.is_bounded() {
            true => self.spare_to_nodes.unwrap_or(Fraction::NINE_TENTHS),
            false => Fraction::NONE,
        }
    }

    /// Whether nothing but the capacity and the caps are others than those of `other`.
    pub(crate) fn is_but_for_capacity_and_caps(&self, other: &Template) -> bool {
        let Template { capacity, most_priority, most_clients, .. } = *other;
        Template { capacity, most_priority, most_clients, ..self.clone() } == *other
    }

    /// The part of the capacity that is reserved: the sum of the floors of all clients.
    #[must_use]
    pub fn reserved(&self) -> Amount {
        self.safe_fraction.of(self.capacity)
    }

    /// The part of the capacity that ordinary leases share: all that is not reserved.
    #[must_use]
    pub fn shared(&self) -> Amount {
        self.capacity.saturating_sub(self.reserved())
    }

    /// Whether there are floors.
    #[must_use]
    pub fn reserves(&self) -> bool {
        self.safe_fraction > Fraction::NONE
    }

    /// The time for which a floor lasts.
    #[must_use]
    pub fn safe_lease(&self) -> Duration {
        self.safe_lease.unwrap_or(SAFE_LEASE.max(self.lease_length))
    }

    /// The template of the floors, if there are any: what is reserved, shared equally by longer leases. Doorman's clients
    /// have no part in it, because they cannot say that they have given one up.
    ///
    /// A server without memory learns for as long as floors may last that it knows nothing of, if it is to learn at all.
    pub(crate) fn floor(&self) -> Option<Template> {
        let learning = match self.learning {
            Duration::ZERO => Duration::ZERO,
            learning => learning.max(self.safe_lease()),
        };
        self.reserves().then(|| Template {
            capacity: self.reserved(),
            safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
            policy: SharePolicy::FairShare,
            lease_length: self.safe_lease(),
            learning,
            legacy: Legacy::Deny,
            legacy_max_fraction: Fraction::ALL,
            spare_to_nodes: Some(Fraction::NONE),
            safe_fraction: Fraction::NONE,
            safe_lease: None,
            in_steps: true,
            beside: None,
            domains: None,
            ..self.clone()
        })
    }

    /// The burst that holders are told that they may save up; absent where there is nothing to be saved, or where
    /// parts say how much.
    #[must_use]
    pub fn told_burst(&self) -> Option<Duration> {
        (self.kind == Kind::Rate && self.part.is_none())
            .then(|| self.burst.unwrap_or(Template::DEFAULT_BURST))
    }

    /// The window that holders are told, and how many uses it may have.
    #[must_use]
    pub fn use_window(&self) -> Option<UseWindow> {
        let limit = u32::try_from(self.capacity.floor_units()).unwrap_or(u32::MAX);
        self.window.map(|length| UseWindow { length, limit })
    }

    /// The time after which a lease of `length` on a stream is to be renewed: a refresh interval, or a sixth of what it lasts longer
    /// than the window of a use, and a minute at the most.
    pub(crate) fn renewal_interval(&self, length: Duration, drift: Drift) -> Duration {
        let window = self.window.map_or(Duration::ZERO, |window| drift.outlasting(window));
        self.refresh_interval.min(length.saturating_sub(window) / 6).min(LONGEST_RENEWAL)
    }

    /// The steps in which a lease is cut short where its window leaves little of it: an eighth of that little.
    pub(crate) fn lease_step(&self, drift: Drift) -> Option<Duration> {
        self.window.map(|window| self.lease_length.saturating_sub(drift.outlasting(window)) / 8)
    }

    /// The longest that a grant may count: after so long without a word all that was granted is over.
    #[must_use]
    pub fn longest_charge(&self) -> Duration {
        self.legacy.counted(self.lease_length)
    }

    fn has_turns(&self) -> bool {
        self.is_whole() && self.policy.is_bounded()
    }
}
