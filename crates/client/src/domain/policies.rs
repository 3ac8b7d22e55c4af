//! Which policy is for which domain.
//!
//! A domain follows the override whose glob is its very name, or else the first whose glob matches it, or else what its
//! beginnings before a `/` follow, the longest first: the most specific that is configured decides. Domains without an
//! override follow the default.

use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_algorithms::tiers::{Contract, TierPolicy};
use lessor_proto::{Glob, wire};

use super::rules::{BadPolicies, MOST_OVERRIDES, Override, Rules, Scope};
use super::share::Share;

/// Rules in the form in which they are looked up, and in that in which they travel.
#[derive(Clone, PartialEq, Debug)]
pub struct Policies {
    wire: Arc<wire::DomainPolicies>,
    scope: Scope,
    refuses_unheard: bool,
    unenforced: bool,
    default: Option<Arc<Contract>>,
    overrides: Vec<(Glob, Arc<Contract>)>,
    /// Where the override with exactly that glob is.
    exact: BTreeMap<Box<str>, usize>,
    allow_unconfigured: Vec<String>,
    ignore_configured: Vec<String>,
}

/// The rule that a domain follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// These policies.
    Contract(Arc<Contract>),
    /// None, and it is granted whatever the lease allows: nothing is configured for it, which is allowed.
    Unconfigured,
    /// None, and it is granted whatever the lease allows: what is configured for it is ignored.
    Ignored,
    /// Nothing is configured for it, and it is refused.
    Refused,
}

// === impl Policies ===

impl Policies {
    /// Takes rules.
    ///
    /// # Errors
    /// When two overrides have the same glob, or there are more than [`MOST_OVERRIDES`].
    ///
    /// ```
    /// use std::time::Duration;
    /// use lessor_algorithms::tiers::{Contract, TierPolicy, Tier, Window};
    /// use lessor_client::internals::domain::{Override, Policies, Rule, Rules};
    /// use lessor_proto::Glob;
    ///
    /// let second = Duration::from_secs(1);
    /// let a_second = |limit| {
    ///     let (window, active, cooldown) = (second, second, Duration::ZERO);
    ///     let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
    ///     TierPolicy::new(vec![tier], None, None).map(Contract::from)
    /// };
    /// let rules = Rules {
    ///     default: Some(a_second(5)?),
    ///     overrides: vec![Override { glob: Glob::new("api/*")?, contract: a_second(50)? }],
    ///     ..Rules::default()
    /// };
    /// let policies = Policies::new(rules)?;
    /// let limit = |domain| match policies.rule(domain) {
    ///     Rule::Contract(contract) => contract.policies()[0].tiers()[0].limit,
    ///     _ => 0,
    /// };
    /// assert_eq!((limit("api/7"), limit("api/7/deeper"), limit("web")), (50, 50, 5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(rules: Rules) -> Result<Policies, BadPolicies> {
        let wire = super::wire::rules_to(&rules);
        Policies::sealed(rules, Arc::new(lessor_proto::message::sealed(wire)))
    }

    /// Checks what a server has sent; nothing if it says that there are none.
    ///
    /// # Errors
    /// With the first thing in it that cannot be.
    pub fn from_wire(wire: &Arc<wire::DomainPolicies>) -> Result<Option<Policies>, BadPolicies> {
        if wire.version == 0 {
            return Ok(None);
        }
        Policies::sealed(super::wire::rules_from(wire)?, Arc::clone(wire)).map(Some)
    }

    fn sealed(rules: Rules, wire: Arc<wire::DomainPolicies>) -> Result<Policies, BadPolicies> {
        if rules.overrides.len() > MOST_OVERRIDES {
            return Err(BadPolicies::Many(rules.overrides.len()));
        }
        let mut exact = BTreeMap::new();
        for (index, Override { glob, .. }) in rules.overrides.iter().enumerate() {
            if exact.insert(glob.as_str().into(), index).is_some() {
                return Err(BadPolicies::Twice(glob.to_string()));
            }
        }
        if rules.scope == Scope::Strict {
            let overrides = rules.overrides.iter().map(|each| (each.glob.as_str(), &each.contract));
            for (which, contract) in rules.default.iter().map(|each| ("default", each)).chain(overrides) {
                let not_strict = |why| BadPolicies::NotStrict { which: which.to_owned(), why };
                Share::of(contract).map_err(not_strict)?;
            }
        }
        let overrides = rules.overrides.into_iter().map(|each| (each.glob, Arc::new(each.contract)));
        Ok(Policies {
            wire,
            scope: rules.scope,
            refuses_unheard: rules.refuses_unheard,
            unenforced: rules.unenforced,
            default: rules.default.map(Arc::new),
            overrides: overrides.collect(),
            exact,
            allow_unconfigured: rules.allow_unconfigured,
            ignore_configured: rules.ignore_configured,
        })
    }

    /// The same policies, closed to the domains that these names or globs match, whatever else is said of them; but where what is
    /// configured is ignored. Nothing if there would be too many.
    #[must_use]
    pub fn closed_to(&self, domains: &[&str]) -> Option<Policies> {
        let mut rules = super::wire::rules_from(&self.wire).ok()?;
        for domain in domains {
            let contract = Contract::from(TierPolicy::new(Vec::new(), None, None).ok()?);
            rules.overrides.retain(|each| each.glob.as_str() != *domain);
            rules.overrides.insert(0, Override { glob: Glob::new(domain).ok()?, contract });
        }
        Policies::new(rules).ok()
    }

    /// By which it is told from others; never 0.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.wire.version
    }

    /// Whose hits count.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether what is too much as far as is known is refused when there is no hearing from others.
    #[must_use]
    pub fn refuses_unheard(&self) -> bool {
        self.refuses_unheard
    }

    /// Whether what they refuse is granted, and counted.
    #[must_use]
    pub fn unenforced(&self) -> bool {
        self.unenforced
    }

    /// As it travels.
    #[must_use]
    pub fn to_wire(&self) -> Arc<wire::DomainPolicies> {
        Arc::clone(&self.wire)
    }

    /// The rule that `domain` follows.
    #[must_use]
    pub fn rule(&self, domain: &str) -> Rule {
        let begins = |with: &[String]| with.iter().any(|prefix| domain.starts_with(prefix.as_str()));
        let configured = self.overriding(domain).or(self.default.as_ref());
        match configured {
            Some(_) if begins(&self.ignore_configured) => Rule::Ignored,
            Some(contract) => Rule::Contract(Arc::clone(contract)),
            None if begins(&self.allow_unconfigured) => Rule::Unconfigured,
            None => Rule::Refused,
        }
    }

    /// With the scope [`Scope::Strict`], what all clients together lease for one domain: by default, and for each override by its
    /// glob; nothing where the resource is closed.
    pub fn shares(&self) -> impl Iterator<Item = (&str, Option<Share>)> {
        let overrides = self.overrides.iter().map(|(glob, contract)| (glob.as_str(), contract));
        let all = self.default.iter().map(|contract| ("default", contract)).chain(overrides);
        all.filter(|_| self.scope == Scope::Strict)
            .map(|(which, contract)| (which, Share::of(contract).ok().flatten()))
    }

    /// Whether any of the policies limits what all domains do together.
    #[must_use]
    pub fn has_global_limit(&self) -> bool {
        let overrides = self.overrides.iter().map(|(_, contract)| contract);
        overrides.chain(&self.default).any(|contract| contract.global_limit().is_some())
    }

    fn overriding(&self, domain: &str) -> Option<&Arc<Contract>> {
        let mut beginnings = std::iter::successors(Some(domain), |name| Some(name.rsplit_once('/')?.0));
        beginnings.find_map(|name| match self.exact.get(name) {
            Some(&index) => Some(&self.overrides[index].1),
            None => self.overrides.iter().find(|(glob, _)| glob.matches(name)).map(|(_, contract)| contract),
        })
    }
}

/// Nothing in it is a floating-point number, so that it is equal to itself, which is not known of what is generated.
impl Eq for Policies {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lessor_algorithms::tiers::{Tier, TierPolicy, Window};

    use super::*;

    fn contract(limit: u32) -> Contract {
        let second = Duration::from_secs(1);
        let (window, active, cooldown) = (second, second, Duration::ZERO);
        let tier = Tier { limit, window, active, cooldown, is_skippable: false, kind: Window::Exact };
        Contract::from(TierPolicy::new(vec![tier], None, None).unwrap())
    }

    /// Each glob with the limit by which it is known again.
    fn policies(default: Option<u32>, overrides: &[(&str, u32)]) -> Policies {
        let each = |&(glob, limit): &(&str, u32)| Override {
            glob: Glob::new(glob).unwrap(),
            contract: contract(limit),
        };
        Policies::new(Rules {
            default: default.map(contract),
            overrides: overrides.iter().map(each).collect(),
            allow_unconfigured: vec!["free-".into()],
            ignore_configured: vec!["vip-".into()],
            ..Rules::default()
        })
        .unwrap()
    }

    fn check(policies: &Policies, domain: &str, expected: &Result<u32, Rule>) {
        let found = match policies.rule(domain) {
            Rule::Contract(contract) => Ok(contract.policies()[0].tiers()[0].limit),
            other => Err(other),
        };
        assert_eq!(&found, expected, "{domain}");
    }

    #[test]
    fn a_name_comes_before_globs_and_globs_come_in_order() {
        let policies = policies(Some(1), &[("t*", 2), ("tenant-?", 3), ("tenant-1", 4)]);
        check(&policies, "tenant-1", &Ok(4));
        check(&policies, "tenant-2", &Ok(2));
        check(&policies, "other", &Ok(1));
    }

    #[test]
    fn the_most_specific_beginning_decides_before_the_default() {
        let policies = policies(Some(1), &[("rate_limit", 2), ("rate_limit/10*", 3), ("rate_limit/10/a", 4)]);
        check(&policies, "rate_limit/192.168.11.3", &Ok(2));
        check(&policies, "rate_limit/10", &Ok(3));
        check(&policies, "rate_limit/10/b/c", &Ok(3));
        check(&policies, "rate_limit/10/a/c", &Ok(4));
        check(&policies, "rate_limits", &Ok(1));
    }

    #[test]
    fn what_is_not_configured_is_refused_unless_it_is_allowed() {
        let policies = policies(None, &[("vip-1", 2), ("free-1", 3)]);
        check(&policies, "free-1", &Ok(3));
        check(&policies, "free-2", &Err(Rule::Unconfigured));
        check(&policies, "vip-1", &Err(Rule::Ignored));
        check(&policies, "vip-2", &Err(Rule::Refused));
        check(&policies, "", &Err(Rule::Refused));
    }

    #[test]
    fn policies_are_closed_to_some_domains_and_stay_as_they_are_for_others() {
        let policies = policies(Some(1), &[("t*", 2), ("tenant-1", 4)]);
        let closed = policies.closed_to(&["tenant-1", "acme", "x-*"]).unwrap();
        for domain in ["tenant-1", "tenant-1/deeper", "acme", "x-7"] {
            let Rule::Contract(contract) = closed.rule(domain) else { panic!("{domain}") };
            assert!(contract.policies()[0].tiers().is_empty(), "{domain}");
        }
        check(&closed, "tenant-2", &Ok(2));
        check(&closed, "other", &Ok(1));
        assert_ne!(closed.version(), policies.version());
        assert_eq!(closed, Policies::from_wire(&closed.to_wire()).unwrap().unwrap());
    }

    #[test]
    fn versions_are_equal_where_all_else_is() {
        let ours = policies(Some(1), &[("a", 2), ("b", 3)]);
        assert_eq!(ours.version(), policies(Some(1), &[("a", 2), ("b", 3)]).version());
        for other in [
            policies(None, &[("a", 2), ("b", 3)]),
            policies(Some(2), &[("a", 2), ("b", 3)]),
            policies(Some(1), &[("b", 3), ("a", 2)]),
        ] {
            assert_ne!(ours.version(), other.version());
        }
    }

    #[test]
    fn a_glob_stands_once() {
        let each = Override { glob: Glob::new("a").unwrap(), contract: contract(1) };
        let rules = Rules { overrides: vec![each.clone(), each], ..Rules::default() };
        let told = Policies::new(rules).unwrap_err().to_string();
        assert_eq!(told, "the domain \"a\" stands twice; wanted each once");
    }
}
