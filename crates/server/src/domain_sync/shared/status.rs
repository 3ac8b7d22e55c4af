//! The status of shared domains, for operators.

use lessor_algorithms::tiers::Standing;
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
}

/// Hot domains looked at for those with the least left.
const LOOKED_AT: usize = 1_000;

// === impl SharedDomains ===

impl SharedDomains {
    /// The status, with at most `most` domains one by one.
    pub(crate) fn status(&self, now: Time, most: usize) -> DomainsStatus {
        let looked_at = if most == 0 { 0 } else { LOOKED_AT.max(most) };
        let hot = self.hot.iter().filter_map(|name| Some((name, self.domains.get(name)?)));
        let mut busiest: Vec<DomainStatus> =
            hot.take(looked_at).map(|(name, state)| state.status(now, name)).collect();
        busiest.sort_by(|one, other| other.used().total_cmp(&one.used()));
        busiest.truncate(most);
        DomainsStatus {
            clients: self.members.len(),
            told: self.domains.len(),
            hot: self.hot.len(),
            passed_over: self.passed_over,
            busiest,
        }
    }
}

// === impl DomainState ===

impl DomainState {
    fn status(&self, now: Time, name: &str) -> DomainStatus {
        let nanos = now.as_nanos();
        let total = self.look(now);
        let Standing { current, cooling_until } = total.standing(&self.contract, nanos);
        let until = |nanos| Time::from_nanos(nanos).since(now).as_secs_f64();
        DomainStatus {
            domain: name.to_owned(),
            clients: self.users(),
            hits_in_second: total.hits_in_second(&self.contract, nanos),
            tier: current.map_or(0, |tier| tier.tier),
            hits_in_tier: current.map_or(0, |tier| tier.hits),
            tier_limit: current.map_or(0, |tier| tier.limit),
            cooling_seconds: cooling_until.map(until),
        }
    }
}

// === impl DomainStatus ===

impl DomainStatus {
    /// The used part of the limit of its tier, from 0 to 1 or a little more.
    fn used(&self) -> f64 {
        f64::from(self.hits_in_tier) / f64::from(self.tier_limit.max(1))
    }
}
