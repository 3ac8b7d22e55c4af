//! A template: the configuration of the resources whose names match a glob, and the numbers that it may hold.

use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_algorithms::rotation::Rotate;
use lessor_client::internals::limiter::Limiter;
use lessor_proto::Amount;

use super::Glob;
use super::domains::Domains;
use super::fraction::Fraction;
use super::legacy::Legacy;
use super::problem::{Field, Problem};

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

/// The largest number of units that an [`Amount`] can hold.
const MAX_UNITS: f64 = (u64::MAX / Amount::MICROS_PER_UNIT) as f64;
/// The shortest turn: a unit has to get from one holder to the next meanwhile.
const LEAST_QUANTUM: Duration = Duration::from_millis(100);
/// A year: longer is a mistake, and sums of so long times are far from overflowing.
const MAX_SECONDS: f64 = 365.0 * 86_400.0;

/// Clocks and the wakeups of waiting tasks are no finer than this.
const LEAST_BURST: Duration = Duration::from_millis(1);

/// The time for which a floor lasts if nothing else is said.
const SAFE_LEASE: Duration = Duration::from_secs(3_600);

const UNITS_WANTED: &str = "a number from 0 to 18446744073709";
const SAFE_WANTED: &str = "a number from 0 to 18446744073709, or -1 for no limit";
const SECONDS_WANTED: &str = "whole seconds from 1 to 31536000 (a year)";
const QUANTUM_WANTED: &str = "at least 100ms, and no more than a lease";
const HOLD_WANTED: &str = "at most a year";
const SAFE_LEASE_WANTED: &str = "at most a year";
const BURST_WANTED: &str = "at least 1ms, and no more than a lease";
const LEARNING_WANTED: &str = "whole seconds from 0 (no learning) to 31536000 (a year)";

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
            legacy: Legacy::default(),
            legacy_max_fraction: Fraction::ALL,
            spare_to_nodes: None,
            safe_fraction: Fraction::NONE,
            safe_lease: None,
            in_steps: false,
            burst: None,
            small_leases: None,
            part: None,
            domains: None,
        }
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

    /// The longest that a grant may count: after so long without a word all that was granted is over.
    #[must_use]
    pub fn longest_charge(&self) -> Duration {
        self.legacy.counted(self.lease_length)
    }

    /// The amount of a `capacity` of so many units.
    ///
    /// # Errors
    /// When that is negative, not finite or too large.
    pub fn check_capacity(units: f64) -> Result<Amount, Problem> {
        let problem =
            |found| Problem::Number { field: Field::Capacity, value: units, found, wanted: UNITS_WANTED };
        bounded(units, 0.0, MAX_UNITS).map(Amount::from_f64).map_err(problem)
    }

    /// The time in so many seconds, which have to be whole, for one of the three fields that hold times.
    ///
    /// # Errors
    /// When that is not whole, too short or too long.
    pub fn check_seconds(field: Field, seconds: f64) -> Result<Duration, Problem> {
        let (least, wanted) = match field {
            Field::LearningModeDuration => (0.0, LEARNING_WANTED),
            _ => (1.0, SECONDS_WANTED),
        };
        let whole =
            if seconds.fract() == 0.0 || !seconds.is_finite() { Ok(seconds) } else { Err("is not whole") };
        whole
            .and_then(|seconds| bounded(seconds, least, MAX_SECONDS))
            .map(|seconds| Duration::from_secs(seconds as u64))
            .map_err(|found| Problem::Number { field, value: seconds, found, wanted })
    }

    /// Everything that is wrong with this template on its own.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let times = [
            (Field::LeaseLength, self.lease_length),
            (Field::RefreshInterval, self.refresh_interval),
            (Field::LearningModeDuration, self.learning),
        ];
        let mut problems: Vec<Problem> = times
            .into_iter()
            .filter_map(|(field, time)| Template::check_seconds(field, time.as_secs_f64()).err())
            .collect();
        if self.lease_length < self.refresh_interval {
            let (lease, refresh) = (self.lease_length, self.refresh_interval);
            problems.push(Problem::LeaseShorterThanRefresh { lease, refresh });
        }
        if self.kind == Kind::Gauge {
            problems.extend(fraction(Field::Capacity, self.capacity));
            if let SafeCapacity::Fixed(amount) = self.safe_capacity {
                problems.extend(fraction(Field::SafeCapacity, amount));
            }
        }
        problems.extend(self.turn_problems());
        problems.extend(self.legacy_problems());
        problems.extend(self.spare_problem());
        problems.extend(self.floor_problems());
        problems.extend(self.burst_problem());
        problems.extend(self.domains_problem());
        problems
    }

    fn has_turns(&self) -> bool {
        self.is_whole() && self.policy.is_bounded()
    }

    /// The problems with how units are taken in turns.
    fn turn_problems(&self) -> Vec<Problem> {
        let given = [(Field::Rotate, self.rotate.is_some()), (Field::Quantum, self.quantum.is_some())];
        let given = given.into_iter().filter(|&(_, given)| given);
        if self.kind == Kind::Rate {
            let (found, wanted) = ("is about whole units, and this is a rate", "kind: gauge");
            return given.map(|(field, _)| Problem::Misplaced { field, found, wanted }).collect();
        }
        if !self.policy.is_bounded() {
            let (found, wanted) =
                ("is about units that have to be shared", "FAIR_SHARE or PROPORTIONAL_SHARE");
            return given.map(|(field, _)| Problem::Misplaced { field, found, wanted }).collect();
        }
        match (self.quantum, self.rotate) {
            (Some(_), Some(Rotate::None)) => {
                let (found, wanted) = ("is how long a turn lasts", "rotate: fair or sticky");
                vec![Problem::Misplaced { field: Field::Quantum, found, wanted }]
            }
            (Some(value), _) if value < LEAST_QUANTUM => {
                let (found, wanted) = ("is too short", QUANTUM_WANTED);
                vec![Problem::Time { field: Field::Quantum, value, found, wanted }]
            }
            (Some(quantum), _) if quantum > self.lease_length => {
                vec![Problem::QuantumLongerThanLease { quantum, lease: self.lease_length }]
            }
            _ => Vec::new(),
        }
    }

    /// The problem with what is said about capacity that nobody wants, if there is one.
    fn spare_problem(&self) -> Option<Problem> {
        let (found, wanted) = match self.kind {
            Kind::Gauge => ("is about rates, and this is a gauge", "kind: rate"),
            Kind::Rate => ("is a part of what all share", "FAIR_SHARE or PROPORTIONAL_SHARE"),
        };
        let misplaced = self.kind == Kind::Gauge || !self.policy.is_bounded();
        let problem = Problem::Misplaced { field: Field::SpareToNodes, found, wanted };
        self.spare_to_nodes.filter(|_| misplaced).map(|_| problem)
    }

    /// The problems with what is said about capacity that is reserved.
    fn floor_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.reserves() {
            let misplaced = match self.kind {
                Kind::Gauge => Some(("is about rates, and this is a gauge", "kind: rate")),
                Kind::Rate if !self.policy.is_bounded() => {
                    Some(("is a part of what all share", "FAIR_SHARE or PROPORTIONAL_SHARE"))
                }
                Kind::Rate => None,
            };
            let problem = |(found, wanted)| Problem::Misplaced { field: Field::SafeFraction, found, wanted };
            problems.extend(misplaced.map(problem));
        }
        match self.safe_lease {
            Some(safe) if safe < self.lease_length => {
                problems.push(Problem::SafeLeaseShorterThanLease { safe, lease: self.lease_length });
            }
            Some(value) if value.as_secs_f64() > MAX_SECONDS => {
                let (field, found) = (Field::SafeLease, "is too large");
                problems.push(Problem::Time { field, value, found, wanted: SAFE_LEASE_WANTED });
            }
            _ => {}
        }
        problems
    }

    /// The problem with what may be saved up, if there is one.
    fn burst_problem(&self) -> Option<Problem> {
        let (found, wanted) = ("is about rates, and this is a gauge", "kind: rate");
        if self.kind == Kind::Gauge && self.small_leases.is_some() {
            return Some(Problem::Misplaced { field: Field::SmallLeases, found, wanted });
        }
        let (field, value) = (Field::Burst, self.burst?);
        if self.kind == Kind::Gauge {
            return Some(Problem::Misplaced { field, found, wanted });
        }
        let found = match value {
            _ if value < LEAST_BURST => "is too short",
            _ if value > self.lease_length => "is longer than a lease",
            _ => return None,
        };
        Some(Problem::Time { field, value, found, wanted: BURST_WANTED })
    }

    /// The problem with there being policies of domains, if there is one.
    fn domains_problem(&self) -> Option<Problem> {
        let (found, wanted) = ("is about rates, and this is a gauge", "kind: rate");
        let misplaced = self.kind == Kind::Gauge && self.domains.is_some();
        misplaced.then_some(Problem::Misplaced { field: Field::Domains, found, wanted })
    }

    /// The problems with what is said about Doorman's clients.
    fn legacy_problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        match self.legacy {
            Legacy::Sticky { hold } if hold < self.lease_length => {
                problems.push(Problem::HoldShorterThanLease { hold, lease: self.lease_length });
            }
            Legacy::Sticky { hold } if hold.as_secs_f64() > MAX_SECONDS => {
                let (field, found) = (Field::LegacyHold, "is too large");
                problems.push(Problem::Time { field, value: hold, found, wanted: HOLD_WANTED });
            }
            _ => {}
        }
        if self.legacy_max_fraction < Fraction::ALL && !self.policy.is_bounded() {
            problems.push(Problem::Misplaced {
                field: Field::LegacyMaxFraction,
                found: "is a part of what all share",
                wanted: "FAIR_SHARE or PROPORTIONAL_SHARE",
            });
        }
        problems
    }
}

/// `value` if it lies between the two, or what is wrong with it.
fn bounded(value: f64, least: f64, most: f64) -> Result<f64, &'static str> {
    match value {
        _ if !value.is_finite() => Err("is not finite"),
        _ if value < 0.0 => Err("is negative"),
        _ if value < least => Err("is too short"),
        _ if value > most => Err("is too large"),
        _ => Ok(value),
    }
}

fn fraction(field: Field, amount: Amount) -> Option<Problem> {
    (amount != Amount::from_units(amount.floor_units())).then_some(Problem::Fraction { field, amount })
}

// === impl SafeCapacity ===

impl SafeCapacity {
    /// The safe capacity of so many units, -1 for no limit.
    ///
    /// # Errors
    /// When that is another negative number, not finite or too large.
    pub fn from_units(units: f64) -> Result<SafeCapacity, Problem> {
        if units.to_bits() == (-1.0_f64).to_bits() {
            return Ok(SafeCapacity::Unlimited);
        }
        let problem =
            |found| Problem::Number { field: Field::SafeCapacity, value: units, found, wanted: SAFE_WANTED };
        bounded(units, 0.0, MAX_UNITS).map(Amount::from_f64).map(SafeCapacity::Fixed).map_err(problem)
    }
}
