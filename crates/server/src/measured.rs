//! The measurements that a node makes for those who watch it: how long holders wait for what is due to them, and what is
//! refused on streams.
//!
//! The mind counts no buckets. It says each once, and whoever drives the node takes them; those that nobody takes are
//! forgotten.

use std::time::Duration;

use lessor_proto::message::Refusal;

/// One measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measured {
    /// A holder on a stream was short of its share for so long, from when that was heard or found until it had it.
    Wait(WaitPath, Duration),
    /// The time after which something that was recalled from a holder was back.
    Recall(Duration),
    /// A report on a stream was refused.
    Refusal(RefusalKind),
}

/// The way by which a holder that was short came to its share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitPath {
    /// It was free, or became so.
    Free,
    /// Something was recalled from others meanwhile.
    Recall,
    /// The node above gave more meanwhile.
    Above,
}

/// The kind of a refusal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RefusalKind {
    /// A field holds what it must not.
    Invalid,
    /// A limit is reached.
    Exhausted,
    /// The rules of access do not allow it.
    Denied,
    /// Nodes form a loop.
    Loop,
    /// No template covers the resource.
    Unknown,
    /// The domain has no lease of its own.
    NoDomain,
}

/// The measurements that wait to be taken.
#[derive(Clone, Default, Debug)]
pub(crate) struct Measurements(Vec<Measured>);

/// The number of them; more are forgotten.
const MOST: usize = 1_024;

// === impl RefusalKind ===

impl RefusalKind {
    /// The kind of `refusal`.
    #[must_use]
    pub fn of(refusal: &Refusal) -> RefusalKind {
        match refusal {
            Refusal::Invalid { .. } => RefusalKind::Invalid,
            Refusal::Exhausted { .. } => RefusalKind::Exhausted,
            Refusal::Denied { .. } => RefusalKind::Denied,
            Refusal::Loop { .. } => RefusalKind::Loop,
            Refusal::Unknown { .. } => RefusalKind::Unknown,
            Refusal::NoDomain { .. } => RefusalKind::NoDomain,
        }
    }
}

// === impl Measurements ===

impl Measurements {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        if self.0.len() < MOST {
            self.0.push(measured);
        }
    }

    /// Adds all of `others`, which has none then.
    pub(crate) fn take_from(&mut self, others: &mut Measurements) {
        others.0.drain(..).for_each(|one| self.add(one));
    }

    /// All of them, once.
    pub(crate) fn take(&mut self) -> Vec<Measured> {
        std::mem::take(&mut self.0)
    }
}
