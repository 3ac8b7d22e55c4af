//! The calls of the admin port as figures: by act, and by what came of them.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;

use super::measure::{Counts, Label};

/// The outcome of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum ActOutcome {
    /// It was done.
    Done,
    /// The caller may not, or is not known.
    Refused,
    /// It came to nothing for another reason.
    Failed,
    /// It was refused, and not written down, as there were too many like it.
    Limited,
}

/// The name of an act, of which there may be several ways to call it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::shell) enum ActName {
    Whoami,
    Connections,
    Access,
    Log,
    Reload,
    Resign,
    Recall,
    Override,
    Seize,
    Push,
    PushFreeze,
    /// No act that there is.
    Unknown,
}

/// The number of calls since the start.
#[derive(Debug)]
pub(in crate::shell) struct AdminCalls(Vec<Counts<ActOutcome>>);

// === impl ActOutcome ===

impl ActOutcome {
    pub(in crate::shell) fn as_str(self) -> &'static str {
        ActOutcome::VALUES[self.place()]
    }
}

impl Label for ActOutcome {
    const NAME: &'static str = "outcome";
    const VALUES: &'static [&'static str] = &["done", "refused", "failed", "limited"];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl ActName ===

impl ActName {
    pub(in crate::shell) fn as_str(self) -> &'static str {
        ActName::VALUES[self.place()]
    }
}

impl Label for ActName {
    const NAME: &'static str = "act";
    const VALUES: &'static [&'static str] = &[
        "whoami",
        "connections",
        "access",
        "log",
        "reload",
        "resign",
        "recall",
        "override",
        "seize",
        "push",
        "push-freeze",
        "unknown",
    ];

    fn place(self) -> usize {
        self as usize
    }
}

// === impl AdminCalls ===

impl Default for AdminCalls {
    fn default() -> AdminCalls {
        AdminCalls(ActName::VALUES.iter().map(|_| Counts::default()).collect())
    }
}

impl AdminCalls {
    /// One more.
    pub(in crate::shell) fn add(&self, act: ActName, outcome: ActOutcome) {
        self.0[act.place()].add(outcome);
    }

    /// Writes them.
    pub(in crate::shell) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Calls of the admin port by act and by what came of them";
        let mut family = encoder.encode_descriptor("lessor_admin_calls", help, None, MetricType::Counter)?;
        for (act, counts) in ActName::VALUES.iter().zip(&self.0) {
            for (outcome, count) in counts.iter() {
                let labels = [(ActName::NAME, *act), (ActOutcome::NAME, outcome)];
                ConstCounter::<u64>::new(count).encode(family.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
