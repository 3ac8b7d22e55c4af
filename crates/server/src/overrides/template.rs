//! The templates that resources follow while overrides are in force.

use std::sync::Arc;

use lessor_client::internals::domain::Policies;
use lessor_proto::{Amount, ResourceId};

use super::act::OverrideAct;
use super::{OverrideKind, Overrides};
use crate::repository::{Domains, Fraction, Kind, Template};

// === impl Overrides ===

impl Overrides {
    /// Whether any resource follows another template for them.
    pub(crate) fn change_templates(&self) -> bool {
        let changes = [OverrideKind::Cap, OverrideKind::DrainDomain, OverrideKind::Unenforce];
        self.0.iter().any(|placed| changes.contains(&placed.kind()))
    }

    /// The template that a resource follows which would follow that one: with the newest cap, where that is less, of the
    /// second limit too, without the domains that are drained, and kept to by nobody where that is switched off.
    pub(crate) fn applied(&self, resource: &ResourceId, template: &Arc<Template>) -> Arc<Template> {
        let about = self.0.iter().filter(|placed| placed.is_about(resource.as_str()));
        let (mut cap, mut closed, mut enforce) = (None, Vec::new(), template.enforce);
        for placed in about {
            match &placed.it.act {
                OverrideAct::Cap { capacity, .. } => cap = Some(Amount::from_f64(*capacity)),
                OverrideAct::DrainDomain { domain, .. } => closed.push(domain.as_str()),
                OverrideAct::Unenforce { .. } => enforce = Fraction::NONE,
                _ => {}
            }
        }
        let capped = cap.map(|cap| if template.kind == Kind::Gauge { whole(cap) } else { cap });
        let at_most = |capacity: Amount| capped.map_or(capacity, |capped| capacity.min(capped));
        let (capacity, beside) = (at_most(template.capacity), template.beside.map(at_most));
        let domains = template.domains.as_ref().filter(|_| !closed.is_empty());
        let domains = domains.and_then(|domains| without(domains, &closed));
        let is_same = (capacity, beside, enforce) == (template.capacity, template.beside, template.enforce);
        if is_same && domains.is_none() {
            return Arc::clone(template);
        }
        let domains = domains.or_else(|| template.domains.clone());
        Arc::new(Template { capacity, beside, domains, enforce, ..Template::clone(template) })
    }
}

fn whole(amount: Amount) -> Amount {
    Amount::from_units(amount.floor_units())
}

/// The same policies, closed to some domains.
fn without(domains: &Domains, closed: &[&str]) -> Option<Domains> {
    let policies: Policies = domains.policies.closed_to(closed)?;
    Some(Domains { policies: Arc::new(policies), changes: domains.changes.clone() })
}
