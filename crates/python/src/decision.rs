//! The decision on a domain, as Python sees it.

use std::time::Duration;

use lessor_client::{Bound as Limit, Ground};
use pyo3::prelude::*;

/// The answer to a request of a domain; it is true if something is granted.
#[pyclass(frozen, module = "lessor")]
#[derive(Clone, Copy)]
pub(crate) struct Decision {
    decision: lessor_client::Decision,
    retry_after: Option<f64>,
}

// === impl Decision ===

impl Decision {
    pub(crate) fn new(decision: lessor_client::Decision, retry_after: Option<f64>) -> Decision {
        Decision { decision, retry_after }
    }
}

#[pymethods]
impl Decision {
    #[getter]
    fn granted(&self) -> u32 {
        self.decision.granted
    }

    #[getter]
    fn ground(&self) -> &'static str {
        match self.decision.ground {
            Ground::Policies => "policies",
            Ground::NoPolicies => "no_policies",
            Ground::Unconfigured => "unconfigured",
            Ground::Ignored => "ignored",
            Ground::Untracked => "untracked",
            Ground::KillSwitch => "kill_switch",
            Ground::Unheard => "unheard",
            Ground::Degraded => "degraded",
        }
    }

    #[getter]
    fn bound(&self) -> Option<&'static str> {
        let bound = match self.decision.bound? {
            Limit::Debt => "debt",
            Limit::Tiers => "tiers",
            Limit::Hard => "hard",
            Limit::Global => "global",
            Limit::Lease => "lease",
            Limit::Burst { .. } => "burst",
            Limit::Unconfigured => "unconfigured",
            Limit::Sublease => "sublease",
            Limit::Asking => "asking",
            Limit::Crowded => "crowded",
            Limit::Unleasable => "unleasable",
        };
        Some(bound)
    }

    #[getter]
    fn retry_after(&self) -> Option<f64> {
        self.retry_after
    }

    #[getter]
    fn hard_limit(&self) -> Option<u32> {
        self.decision.hard_limit
    }

    #[getter]
    fn global_limit(&self) -> Option<u32> {
        self.decision.global_limit
    }

    #[getter]
    fn tier(&self) -> usize {
        self.decision.tier
    }

    #[getter]
    fn tier_limit(&self) -> u32 {
        self.decision.tier_limit
    }

    #[getter]
    fn tier_window(&self) -> f64 {
        Duration::as_secs_f64(&self.decision.tier_window)
    }

    #[getter]
    fn hits_in_tier(&self) -> u32 {
        self.decision.hits_in_tier
    }

    #[getter]
    fn hits_in_second(&self) -> u32 {
        self.decision.hits_in_second
    }

    #[getter]
    fn hits_in_second_by_all(&self) -> u32 {
        self.decision.hits_in_second_by_all
    }

    #[getter]
    fn burst(&self) -> bool {
        self.decision.burst
    }

    #[getter]
    fn debt(&self) -> u32 {
        self.decision.debt
    }

    #[getter]
    fn others(&self) -> u32 {
        self.decision.others
    }

    fn __bool__(&self) -> bool {
        self.decision.is_granted()
    }

    fn __repr__(&self) -> String {
        let (granted, tier) = (self.decision.granted, self.decision.tier);
        let bound = self.bound().map_or_else(String::new, |bound| format!(", bound by {bound}"));
        let after = self.retry_after.map_or_else(String::new, |after| format!(", retry after {after} s"));
        format!("<lessor.Decision: {granted} granted, tier {tier}{bound}{after}>")
    }
}
