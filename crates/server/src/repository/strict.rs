//! Leases of domains: where policies have the scope `strict`, each domain that follows some is a resource, named as
//! [`ResourceId::of_domain`] says, and follows a template derived from that of its resource.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_algorithms::rotation::Rotate;
use lessor_client::internals::domain::{Policies, Rule, Scope, Share};
use lessor_proto::{Amount, ResourceId};

use super::{Fraction, Kind, Repository, SafeCapacity, Template};

/// No lease of a domain is longer: what a dead client had of it is nobody's until then.
const LONGEST_LEASE: Duration = Duration::from_secs(20);
/// Nor is it asked about less often.
const LONGEST_REFRESH: Duration = Duration::from_secs(5);
/// The least length of a turn: a holder that has a part for a turn has it for this long, or until it has
/// brought two hits.
const LEAST_TURN: Duration = Duration::from_secs(1);

// === impl Repository ===

impl Repository {
    /// The template of a resource whose domains have leases, if `resource` is named as such a lease, and the name of the domain.
    pub(super) fn lender<'a>(&self, resource: &'a ResourceId) -> Option<(&Arc<Template>, &'a str)> {
        let (of, domain) = resource.domained()?;
        let template = self.own(&of)?;
        template.leases_domains().is_some().then_some((template, domain))
    }

    /// Why no template covers `resource`, where there is more to be said than that none matches.
    pub(crate) fn why_unknown(&self, resource: &ResourceId) -> Option<String> {
        if let Some(why) = self.why_no_workers(resource).or_else(|| self.why_no_companion(resource)) {
            return Some(why);
        }
        let (of, domain) = resource.domained()?;
        let template = self.own(&of)?;
        Some(match template.leases_domains().map(|policies| policies.rule(domain)) {
            None => {
                format!("domains of {:?} have no leases of their own: their scope is not strict", of.as_str())
            }
            Some(Rule::Contract(_)) => format!("{:?} is closed to the domain", of.as_str()),
            Some(Rule::Refused) => "the domain follows no policy, and is refused".to_owned(),
            Some(Rule::Unconfigured | Rule::Ignored) => {
                "the domain follows no policy, and needs no lease".to_owned()
            }
        })
    }
}

// === impl Template ===

impl Template {
    /// The policies, if each domain that follows some has a lease of its own.
    pub(super) fn leases_domains(&self) -> Option<&Policies> {
        let policies = &self.domains.as_ref()?.policies;
        (policies.scope() == Scope::Strict).then_some(policies)
    }

    /// The shortest lease that follows from it: its own, or that of a domain.
    pub(crate) fn shortest_lease(&self) -> Duration {
        match self.leases_domains() {
            Some(_) => self.lease_length.min(LONGEST_LEASE),
            None => self.lease_length,
        }
    }

    /// The template of the lease of `domain`; nothing if that follows no policy, or one that closes the resource.
    pub(super) fn of_domain(&self, domain: &str) -> Option<Template> {
        let Rule::Contract(contract) = self.leases_domains()?.rule(domain) else { return None };
        let share = Share::of(&contract).ok().flatten()?;
        let lease_length = self.shortest_lease();
        Some(Template {
            capacity: share.capacity(),
            part: Some(share.part()),
            safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
            kind: Kind::Rate,
            policy: if self.policy.is_bounded() { self.policy } else { SharePolicy::FairShare },
            lease_length,
            refresh_interval: self.refresh_interval.min(LONGEST_REFRESH).min(lease_length),
            rotate: Some(Rotate::Fair),
            quantum: Some(LEAST_TURN.max(share.first_hit() * 2)),
            spare_to_nodes: Some(Fraction::NONE),
            safe_fraction: Fraction::NONE,
            safe_lease: None,
            in_steps: false,
            beside: None,
            domains: None,
            ..self.clone()
        })
    }
}
