//! Hot domains as they would stand under other policies: by the histories that there are, and the functions that decide. Nothing is
//! changed by it.

use std::sync::Arc;

use lessor_client::internals::domain::{Policies, Rule};
use lessor_proto::Time;

use super::SharedDomains;
use super::status::refusal;

/// A hot domain as it would stand under other policies.
#[derive(Clone, PartialEq, Debug)]
pub struct RehearsedDomain {
    /// Its name.
    pub domain: Arc<str>,
    /// Whether one more hit of it is refused as things stand.
    pub is_refused: bool,
    /// The limit that would refuse that hit: `tiers`, `hard`, `global`, `debt`, or `policy` where no policy would be left for it;
    /// absent if none would.
    pub refused_by: Option<&'static str>,
    /// The hits that would count in the tier that has the least left, its limit, and its window in seconds; absent where none is
    /// active.
    pub tier: Option<(u32, u32, f64)>,
}

// === impl SharedDomains ===

impl SharedDomains {
    /// The stand of one domain under `policies`, if it is told of.
    pub(crate) fn rehearse(
        &self,
        now: Time,
        name: &Arc<str>,
        policies: &Policies,
    ) -> Option<RehearsedDomain> {
        let (state, nanos) = (self.domains.get(name)?, now.as_nanos());
        let mut total = state.look(now);
        let is_refused = refusal(&state.contract, &total, nanos).0.is_some();
        let rehearsed =
            |refused_by, tier| RehearsedDomain { domain: Arc::clone(name), is_refused, refused_by, tier };
        Some(match policies.rule(name) {
            Rule::Unconfigured | Rule::Ignored => rehearsed(None, None),
            Rule::Refused => rehearsed(Some("policy"), None),
            Rule::Contract(contract) => {
                total.swap(&state.contract, &contract, nanos);
                let current = total.standing(&contract, nanos).current;
                let tier = current.map(|state| {
                    let tier = &contract.policies()[state.policy].tiers()[state.tier - 1];
                    (state.hits, state.limit, tier.window.as_secs_f64())
                });
                rehearsed(refusal(&contract, &total, nanos).0, tier)
            }
        })
    }
}
