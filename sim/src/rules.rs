//! The rules of a simulation: the parts of its plan that are needed all the time.

use std::time::Duration;

use lessor_client::Fallback;
use lessor_proto::Drift;
use lessor_server::node::Claims;

use crate::faults::FaultPlan;
use crate::plan::{Election, LimitPlan, Memory, Scrutiny, Settings, SimulationPlan};

/// The parts of the plan that are needed all the time.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) drift: Drift,
    pub(crate) odd_clocks: bool,
    pub(crate) settings: Settings,
    pub(crate) faults: FaultPlan,
    pub(crate) watch: Scrutiny,
    /// No lease is configured to be shorter: through a tree it would end before it can be renewed.
    pub(crate) shortest_lease: Duration,
    pub(crate) tokens: bool,
    pub(crate) claims: Claims,
    pub(crate) election: Election,
    pub(crate) namesakes: bool,
    pub(crate) memory: Memory,
    pub(crate) fallback: Fallback,
    pub(crate) editions: bool,
    pub(crate) mixed: Option<u64>,
    pub(crate) forgetful: bool,
    pub(crate) limits: LimitPlan,
    #[cfg(feature = "mutations")]
    pub(crate) mutation: Option<crate::mutation::Mutation>,
}

// === impl Rules ===

impl Rules {
    pub(crate) fn new(plan: &SimulationPlan) -> Rules {
        Rules {
            drift: plan.drift,
            odd_clocks: plan.odd_clocks,
            settings: plan.settings,
            faults: plan.faults.clone(),
            watch: plan.watch,
            shortest_lease: plan.sites.iter().map(|site| site.terms.lease_length).min().unwrap_or_default(),
            tokens: plan.tokens,
            claims: plan.claims,
            election: plan.election,
            namesakes: plan.namesakes,
            memory: plan.memory,
            fallback: plan.fallback,
            editions: plan.editions,
            mixed: plan.mixed,
            forgetful: plan.forgetful,
            limits: plan.limits,
            #[cfg(feature = "mutations")]
            mutation: plan.mutation,
        }
    }
}
