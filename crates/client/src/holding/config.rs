//! The settings by which a resource is held: what of, how much is wanted, and what remains when the lease has ended.

use std::fmt;

use lessor_proto::Amount;
use lessor_proto::message::{Band, Bands, Grant};

/// The kind of quantity that a resource counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Units a second.
    Rate,
    /// Whole units in use at the same time.
    Gauge,
}

/// The behaviour when the lease has ended and no server has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fallback {
    /// Keep to the floor where there is one, until its own lease ends. Where there is none, to nothing; or, where the operator
    /// asks for it and nothing is reserved, to the safe capacity of the last answer, and to no more than the last lease gave.
    #[default]
    Safe,
    /// Use nothing.
    Pessimistic,
    /// Go on with what was granted last. Breaks the capacity as soon as others are given it.
    Optimistic,
}

/// The treatment of capacity beyond what is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Surplus {
    /// Give it back with the report in which the wants fall.
    #[default]
    Return,
    /// The same for a rate that is granted in parts of this size: a part is kept as long as some of it is wanted.
    ReturnParts(Amount),
    /// Keep what is not used, wanted after everything that anybody wants, and say at once when less is wanted before that: the
    /// grantor knows all the time how much it can have back. For windows.
    Yield,
    /// Keep as much more than is wanted as the grantor gave; for nodes, which hand it out again.
    Keep,
}

/// Where the allowance of a resource comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rung {
    /// There has been no lease yet: nothing is allowed.
    #[default]
    Waiting,
    /// A lease that has not ended.
    Leased,
    /// The lease has ended: the floor, whose lease has not, or the safe capacity that the server advised. A server that is
    /// learning and grants nothing does not end it.
    Safe,
    /// The lease has ended: nothing is allowed.
    Pessimistic,
    /// The lease has ended: as much as it gave.
    Optimistic,
}

/// The way in which a resource is to be held.
#[derive(Clone, PartialEq, Debug)]
pub struct HoldingConfig {
    /// The kind of quantity that it counts.
    pub kind: Kind,
    /// The wants: one band from a client, any number from a node.
    pub bands: Bands,
    /// The ladder to go down when the lease ends.
    pub fallback: Fallback,
    /// The treatment of capacity beyond the wants.
    pub surplus: Surplus,
}

// === impl Kind ===

impl Kind {
    /// The generation that grants of it bear.
    pub(crate) fn generation(self) -> u32 {
        match self {
            Kind::Rate => Grant::RATE,
            Kind::Gauge => Grant::GAUGE,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Kind::Rate => "rate",
            Kind::Gauge => "gauge",
        })
    }
}

// === impl Fallback ===

impl fmt::Display for Fallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Fallback::Safe => "safe",
            Fallback::Pessimistic => "pessimistic",
            Fallback::Optimistic => "optimistic",
        })
    }
}

// === impl Rung ===

impl Rung {
    /// Its name in logs and metrics: `leased`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rung::Waiting => "waiting",
            Rung::Leased => "leased",
            Rung::Safe => "safe",
            Rung::Pessimistic => "pessimistic",
            Rung::Optimistic => "optimistic",
        }
    }
}

impl fmt::Display for Rung {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// === impl HoldingConfig ===

impl HoldingConfig {
    /// A client's share of a resource, `wants` units (a second) of it at `priority`.
    #[must_use]
    pub fn new(kind: Kind, wants: f64, priority: i64) -> HoldingConfig {
        HoldingConfig {
            kind,
            bands: one_band(priority, wants),
            fallback: Fallback::default(),
            surplus: Surplus::default(),
        }
    }

    /// Sets the wants from here on, in units (a second).
    pub(crate) fn set_wants(&mut self, wants: f64) {
        let priority = self.bands.first().map_or(0, |band| band.priority);
        self.bands = one_band(priority, wants);
    }
}

/// Numbers that cannot be wanted are taken for the nearest that can: NaN and negative ones for 0.
fn one_band(priority: i64, wants: f64) -> Bands {
    let wants = if wants > 0.0 { wants.min(f64::MAX) } else { 0.0 };
    [Band { priority, subclients: 1, wants }].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_said_in_a_word() {
        assert_eq!(format!("{}, {}", Kind::Rate, Kind::Gauge), "rate, gauge");
        let all = [Fallback::Safe, Fallback::Pessimistic, Fallback::Optimistic];
        assert_eq!(all.map(|fallback| fallback.to_string()), ["safe", "pessimistic", "optimistic"]);
        assert_eq!(format!("{:>8}", Rung::Leased), "  leased");
    }
}
