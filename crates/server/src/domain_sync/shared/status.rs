//! The status of shared domains, for operators.

use std::sync::Arc;

use lessor_algorithms::tiers::{Ask, Bound, Contract, Domain, Global, Standing, Status, TierState};
use lessor_proto::Time;

use super::SharedDomains;
use crate::domain_sync::state::DomainState;

/// The status of the exchange among clients about the domains of a resource.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct DomainsStatus {
    /// Clients that tell each other.
    pub clients: usize,
    /// Domains that are told of. Of those of which little is used no client tells.
    pub told: usize,
    /// Those of them that are near a limit, or in a tier that rests afterwards: everything is told of them.
    pub hot: usize,
    /// Since the start: reports that were passed over, because too many domains were told of already.
    pub passed_over: u64,
    /// Hot ones, those with the least left first; as many as were asked for.
    pub busiest: Vec<DomainStatus>,
}

/// One hot domain.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct DomainStatus {
    /// Its name.
    pub domain: String,
    /// Clients that serve it.
    pub clients: usize,
    /// Hits in the last second, of all clients.
    pub hits_in_second: u32,
    /// The current tier of the policy that has the least left, counted from 1; 0 where none is active.
    pub tier: usize,
    /// Hits that count in it.
    pub hits_in_tier: u32,
    /// Of that tier.
    pub tier_limit: u32,
    /// For how much longer the tier rests that rests the longest, in seconds; absent if none does.
    pub cooling_seconds: Option<f64>,
    /// The limit that would refuse one more hit, by what is known here: `tiers`, `hard`, `global` or `debt`; absent if none would.
    pub refused_by: Option<&'static str>,
    /// The time until that hit would be granted, in seconds; absent as well if it never would be.
    pub refused_seconds: Option<f64>,
    /// The tiers of all its policies, in order.
    pub tiers: Vec<DomainTierStatus>,
}

/// One tier of a hot domain.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct DomainTierStatus {
    /// The policy, counted from 1.
    pub policy: usize,
    /// The tier, counted from 1.
    pub tier: usize,
    /// Hits in a window.
    pub limit: u32,
    /// Hits that count.
    pub hits: u32,
    /// The time for which a hit counts.
    pub window_seconds: f64,
    /// The time for which the tier is active.
    pub active_seconds: f64,
    /// After that, for how long it rests.
    pub cooldown_seconds: f64,
    /// `inactive`, `current`, `shadowed` by a higher one, or `cooling`.
    pub state: &'static str,
    /// The time for which it stays so, in seconds; absent where it is inactive.
    pub ends_in_seconds: Option<f64>,
}

/// Hot domains looked at for those with the least left.
const LOOKED_AT: usize = 1_000;

// === impl SharedDomains ===

impl SharedDomains {
    /// The status, with at most `most` domains one by one.
    pub(crate) fn status(&self, now: Time, most: usize) -> DomainsStatus {
        let names = self.ranked(now, most);
        let busiest = names.iter().filter_map(|name| self.one_status(now, name)).collect();
        DomainsStatus {
            clients: self.members.len(),
            told: self.domains.len(),
            hot: self.hot.len(),
            passed_over: self.passed_over,
            busiest,
        }
    }

    /// The names of hot domains, those with the least left first, at most `most` of them.
    pub(crate) fn ranked(&self, now: Time, most: usize) -> Vec<Arc<str>> {
        let looked_at = if most == 0 { 0 } else { LOOKED_AT.max(most) };
        let hot = self.hot.iter().filter_map(|name| Some((name, self.domains.get(name)?)));
        let mut ranked: Vec<(f64, Arc<str>)> =
            hot.take(looked_at).map(|(name, state)| (state.used(now), name.clone())).collect();
        ranked.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        ranked.into_iter().take(most).map(|(_, name)| name).collect()
    }

    /// The status of one domain, if it is told of.
    pub(crate) fn one_status(&self, now: Time, name: &str) -> Option<DomainStatus> {
        self.domains.get(name).map(|state| state.status(now, name))
    }
}

// === impl DomainState ===

impl DomainState {
    /// The used part of the limit of its tier, from 0 to 1 or a little more.
    fn used(&self, now: Time) -> f64 {
        let current = self.look(now).standing(&self.contract, now.as_nanos()).current;
        current.map_or(0.0, |tier| f64::from(tier.hits) / f64::from(tier.limit.max(1)))
    }

    fn status(&self, now: Time, name: &str) -> DomainStatus {
        let nanos = now.as_nanos();
        let total = self.look(now);
        let contract = &*self.contract;
        let Standing { current, cooling_until } = total.standing(contract, nanos);
        let until = |nanos| Time::from_nanos(nanos).since(now).as_secs_f64();
        let (refused_by, retry_at) = refusal(contract, &total, nanos);
        DomainStatus {
            domain: name.to_owned(),
            clients: self.users(),
            hits_in_second: total.hits_in_second(&self.contract, nanos),
            tier: current.map_or(0, |tier| tier.tier),
            hits_in_tier: current.map_or(0, |tier| tier.hits),
            tier_limit: current.map_or(0, |tier| tier.limit),
            cooling_seconds: cooling_until.map(until),
            refused_by,
            refused_seconds: retry_at.map(until),
            tiers: total.tiers(contract, nanos).map(|tier| tier_status(contract, &tier, until)).collect(),
        }
    }
}

/// The limit that would refuse one more hit, and when that would be granted if nobody asked before.
pub(super) fn refusal(
    contract: &Contract,
    total: &Domain,
    nanos: u64,
) -> (Option<&'static str>, Option<u64>) {
    let decision = total.clone().request(contract, &mut Global::default(), nanos, Ask::ONE);
    let by = decision.bound.filter(|_| decision.granted == 0).map(|bound| match bound {
        Bound::Debt => "debt",
        Bound::Tiers => "tiers",
        Bound::Hard => "hard",
        Bound::Global => "global",
    });
    (by, decision.retry_at)
}

fn tier_status(contract: &Contract, state: &TierState, until: impl Fn(u64) -> f64) -> DomainTierStatus {
    let tier = &contract.policies()[state.policy].tiers()[state.tier - 1];
    let (name, end) = match state.status {
        Status::Inactive => ("inactive", None),
        Status::Active { until } if state.is_current => ("current", Some(until)),
        Status::Active { until } => ("shadowed", Some(until)),
        Status::Cooling { until } => ("cooling", Some(until)),
    };
    DomainTierStatus {
        policy: state.policy + 1,
        tier: state.tier,
        limit: state.limit,
        hits: state.hits,
        window_seconds: tier.window.as_secs_f64(),
        active_seconds: tier.active.as_secs_f64(),
        cooldown_seconds: tier.cooldown.as_secs_f64(),
        state: name,
        ends_in_seconds: end.map(until),
    }
}
