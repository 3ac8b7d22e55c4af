//! Policies of domains, to and from the wire.

use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window, Windows};
use lessor_proto::{Glob, wire};

use super::rules::{BadPolicies, Override, Rules, Scope};

/// Bytes in the name of a domain, or in a beginning of one.
const LONGEST_NAME: usize = 256;

/// The rules that a server has sent.
pub(super) fn rules_from(wire: &wire::DomainPolicies) -> Result<Rules, BadPolicies> {
    let default = wire.default.as_ref().map(|default| contract("default", default)).transpose()?;
    let overrides = wire.r#override.iter().enumerate().map(|(index, each)| {
        let path = format!("override[{index}]");
        let glob = named(&format!("{path}.glob"), &each.glob)?;
        let glob = Glob::new(glob).map_err(|bad| malformed(&format!("{path}.glob"), &bad))?;
        Ok(Override { glob, contract: contract(&format!("{path}.contract"), &each.contract)? })
    });
    Ok(Rules {
        scope: scope(wire.scope)?,
        refuses_unheard: wire.refuse_unheard.unwrap_or(false),
        unenforced: wire.unenforced.unwrap_or(false),
        default,
        overrides: overrides.collect::<Result<_, _>>()?,
        allow_unconfigured: prefixes("allow_unconfigured", &wire.allow_unconfigured)?,
        ignore_configured: prefixes("ignore_configured", &wire.ignore_configured)?,
    })
}

/// The message that says that there are no policies.
#[must_use]
pub fn none() -> wire::DomainPolicies {
    wire::DomainPolicies::default()
}

/// Rules as they travel, without a version.
pub(super) fn rules_to(rules: &Rules) -> wire::DomainPolicies {
    let each = |each: &Override| wire::DomainOverride {
        glob: each.glob.to_string(),
        contract: contract_to_wire(&each.contract),
    };
    wire::DomainPolicies {
        version: 0,
        scope: scope_to_wire(rules.scope),
        refuse_unheard: rules.refuses_unheard.then_some(true),
        unenforced: rules.unenforced.then_some(true),
        default: rules.default.as_ref().map(contract_to_wire),
        r#override: rules.overrides.iter().map(each).collect(),
        allow_unconfigured: rules.allow_unconfigured.clone(),
        ignore_configured: rules.ignore_configured.clone(),
    }
}

fn scope(wire: Option<i32>) -> Result<Scope, BadPolicies> {
    match wire::DomainScope::try_from(wire.unwrap_or(0)) {
        Ok(wire::DomainScope::Client) => Ok(Scope::Client),
        Ok(wire::DomainScope::Shared) => Ok(Scope::Shared),
        Ok(wire::DomainScope::Strict) => Ok(Scope::Strict),
        Err(_) => Err(malformed("scope", &"is one that is not known here")),
    }
}

fn scope_to_wire(scope: Scope) -> Option<i32> {
    let scope = match scope {
        Scope::Client => return None,
        Scope::Shared => wire::DomainScope::Shared,
        Scope::Strict => wire::DomainScope::Strict,
    };
    Some(scope.into())
}

fn malformed(field: &str, found: &dyn ToString) -> BadPolicies {
    BadPolicies::Malformed { field: field.to_owned(), found: found.to_string() }
}

fn named<'a>(field: &str, name: &'a str) -> Result<&'a str, BadPolicies> {
    match name.len() {
        0..=LONGEST_NAME => Ok(name),
        len => Err(malformed(field, &format!("has {len} bytes, more than {LONGEST_NAME}"))),
    }
}

fn prefixes(field: &str, names: &[String]) -> Result<Vec<String>, BadPolicies> {
    names.iter().map(|name| named(field, name).map(str::to_owned)).collect()
}

fn contract(path: &str, wire: &wire::DomainContract) -> Result<Contract, BadPolicies> {
    let policies = wire.policy.iter().enumerate();
    let policies = policies.map(|(index, each)| policy(&format!("{path}.policy[{index}]"), each));
    Contract::new(policies.collect::<Result<_, _>>()?).map_err(|invalid| malformed(path, &invalid))
}

fn policy(path: &str, wire: &wire::DomainPolicy) -> Result<TierPolicy, BadPolicies> {
    let tiers = wire.tier.iter().map(|each| tier(path, each)).collect::<Result<_, _>>()?;
    let policy = TierPolicy::new(tiers, wire.hard_limit, wire.global_limit);
    let policy = policy.map_err(|invalid| malformed(path, &invalid))?;
    Ok(policy.with_windows(windows(path, wire.windows)?))
}

fn windows(path: &str, wire: Option<i32>) -> Result<Windows, BadPolicies> {
    match wire::DomainWindows::try_from(wire.unwrap_or(0)) {
        Ok(wire::DomainWindows::Keep) => Ok(Windows::Keep),
        Ok(wire::DomainWindows::Reset) => Ok(Windows::Reset),
        Err(_) => Err(malformed(path, &"has windows that are not known here")),
    }
}

fn tier(path: &str, wire: &wire::DomainTier) -> Result<Tier, BadPolicies> {
    let slices = u16::try_from(wire.slices.unwrap_or(0));
    let kind = match wire::DomainCount::try_from(wire.count.unwrap_or(0)) {
        Ok(wire::DomainCount::Exact) => Window::Exact,
        Ok(wire::DomainCount::Sliding) => {
            Window::Sliding { slices: slices.map_err(|_| malformed(path, &"has too many slices"))? }
        }
        Ok(wire::DomainCount::Fixed) => Window::Fixed,
        Ok(wire::DomainCount::Bucket) => Window::Bucket,
        // To count in another way than was meant would be another policy.
        Err(_) => return Err(malformed(path, &"counts in a way that is not known here")),
    };
    Ok(Tier {
        limit: wire.limit,
        window: Duration::from_nanos(wire.window_nanos),
        active: Duration::from_nanos(wire.active_nanos),
        cooldown: Duration::from_nanos(wire.cooldown_nanos.unwrap_or(0)),
        is_skippable: wire.is_skippable.unwrap_or(false),
        kind,
    })
}

fn contract_to_wire(contract: &Contract) -> wire::DomainContract {
    wire::DomainContract { policy: contract.policies().iter().map(policy_to_wire).collect() }
}

fn policy_to_wire(policy: &TierPolicy) -> wire::DomainPolicy {
    wire::DomainPolicy {
        tier: policy.tiers().iter().map(tier_to_wire).collect(),
        hard_limit: policy.hard_limit(),
        global_limit: policy.global_limit(),
        windows: match policy.windows() {
            Windows::Keep => None,
            Windows::Reset => Some(wire::DomainWindows::Reset.into()),
        },
    }
}

fn tier_to_wire(tier: &Tier) -> wire::DomainTier {
    let (count, slices) = match tier.kind {
        Window::Exact => (None, None),
        Window::Sliding { slices } => (Some(wire::DomainCount::Sliding), Some(slices.into())),
        Window::Fixed => (Some(wire::DomainCount::Fixed), None),
        Window::Bucket => (Some(wire::DomainCount::Bucket), None),
    };
    wire::DomainTier {
        limit: tier.limit,
        window_nanos: nanos(tier.window),
        active_nanos: nanos(tier.active),
        cooldown_nanos: (!tier.cooldown.is_zero()).then(|| nanos(tier.cooldown)),
        is_skippable: tier.is_skippable.then_some(true),
        count: count.map(i32::from),
        slices,
    }
}

/// Tiers have no longer times than this holds.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::policies::Policies;
    use super::*;

    fn tier(kind: Window) -> Tier {
        Tier {
            limit: 100,
            window: Duration::from_millis(300),
            active: Duration::from_secs(3),
            cooldown: Duration::from_secs(60),
            is_skippable: kind != Window::Exact,
            kind,
        }
    }

    fn rules() -> Rules {
        let kinds = [Window::Exact, Window::Sliding { slices: 7 }, Window::Fixed, Window::Bucket];
        let policy = TierPolicy::new(kinds.map(tier).to_vec(), Some(80), None).unwrap();
        let other = TierPolicy::new(vec![tier(Window::Exact)], None, Some(400)).unwrap();
        let other = other.with_windows(Windows::Reset);
        let contract = Contract::new(vec![policy, other.clone()]).unwrap();
        Rules {
            scope: Scope::Shared,
            refuses_unheard: true,
            unenforced: true,
            default: Some(contract),
            overrides: vec![Override { glob: Glob::new("a*").unwrap(), contract: Contract::from(other) }],
            allow_unconfigured: vec!["b".into()],
            ignore_configured: vec![String::new()],
        }
    }

    #[test]
    fn policies_survive_the_wire() {
        let policies = Policies::new(rules()).unwrap();
        assert_eq!(Policies::from_wire(&policies.to_wire()), Ok(Some(policies)));
        assert_eq!(Policies::from_wire(&Arc::new(none())), Ok(None));
    }

    /// Checks that policies that `bend` has bent are refused with the words `told`.
    fn check(told: &str, bend: impl FnOnce(&mut wire::DomainPolicies)) {
        let mut wire = Policies::new(rules()).unwrap().to_wire().as_ref().clone();
        bend(&mut wire);
        assert_eq!(Policies::from_wire(&Arc::new(wire)).unwrap_err().to_string(), told);
    }

    #[test]
    fn what_cannot_be_is_told_with_its_place() {
        let in_default = |bend: fn(&mut wire::DomainPolicy)| {
            move |wire: &mut wire::DomainPolicies| bend(&mut wire.default.as_mut().unwrap().policy[0])
        };
        let limit = "default.policy[0] tier 2: limit 0 grants nothing, at least 1 is wanted";
        check(limit, in_default(|policy| policy.tier[1].limit = 0));
        let slices = "default.policy[0] tier 2: a window of 0 slices, at least 1 is wanted";
        check(slices, in_default(|policy| policy.tier[1].slices = None));
        let many = "default.policy[0] has too many slices";
        check(many, in_default(|policy| policy.tier[1].slices = Some(65_536)));
        let count = "default.policy[0] counts in a way that is not known here";
        check(count, in_default(|policy| policy.tier[0].count = Some(9)));
        let windows = "default.policy[0] has windows that are not known here";
        check(windows, in_default(|policy| policy.windows = Some(2)));
        check("override[0].glob no ] for the [ at character 1", |wire| wire.r#override[0].glob = "[".into());
        check("scope is one that is not known here", |wire| wire.scope = Some(3));
        let long = "allow_unconfigured has 257 bytes, more than 256";
        check(long, |wire| wire.allow_unconfigured = vec!["x".repeat(257)]);
        let none = "override[0].contract 0 policies in a contract, 1 to 16 are wanted";
        check(none, |wire| wire.r#override[0].contract.policy.clear());
    }
}
