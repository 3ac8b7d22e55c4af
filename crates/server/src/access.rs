//! Access: which identity may hold what, stand where in the tree, and do what as an operator.
//!
//! An [`Access`] is one document, replaced as a whole. Its rules are tried as templates are: the one whose identity is that
//! very text comes first, then patterns in their order, and the first that fits decides. What no rule allows is denied; with
//! [`Stance::Audit`] it is allowed all the same, and noted, so that a fleet gets from open to closed without an outage.
//!
//! The rules decide on values only. The body looks up [`Rights`] once a connection or stream and then asks them for each
//! report, which costs a few comparisons of names.
//!
//! ```
//! use lessor_proto::message::HolderKind;
//! use lessor_proto::{ClientId, ResourceId};
//! use lessor_server::access::{Access, Credential, ClientRule, NamePattern, Stance};
//! use lessor_server::repository::Glob;
//!
//! let mut rule = ClientRule::new(Glob::new("spiffe://acme/ns/shop/sa/*")?);
//! rule.client_id = Some(NamePattern::new("{last}-*")?);
//! rule.resources = Some(vec![Glob::new("db/orders")?]);
//! let access = Access { stance: Stance::Deny, clients: vec![rule], ..Access::default() };
//!
//! let web = Credential::of("spiffe://acme/ns/shop/sa/web");
//! let rights = access.holder(&web, HolderKind::Client, &ClientId::new("web-1", 256)?)?;
//! assert!(rights.may_hold(&ResourceId::new("db/orders", 256)?).is_ok());
//! let denied = rights.may_hold(&ResourceId::new("db/users", 256)?).unwrap_err();
//! assert_eq!(denied.to_string(), r#"clients[0] does not let "spiffe://acme/ns/shop/sa/web" hold "db/users"; wanted "db/orders""#);
//! assert!(access.holder(&web, HolderKind::Client, &ClientId::new("cron-1", 256)?).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admitted;
pub mod bearer;
mod denial;
mod pattern;
mod place;
mod rights;
mod role;
mod rule;
mod ruling;
mod stream_rights;
mod tempo;
#[cfg(test)]
mod tests;

use lessor_proto::ClientId;
use lessor_proto::ResourceId;
use lessor_proto::message::HolderKind;

pub use self::admitted::Admitted;
use self::bearer::Passport;
pub use self::denial::{Denial, Why};
pub use self::pattern::{BadPattern, NamePattern};
pub use self::place::{RulePlace, Section};
pub use self::rights::{Allowance, Rights};
pub use self::role::Role;
pub use self::rule::{Budget, ClientRule, NodeRule, OperatorRule};
pub use self::ruling::{NotedDenial, Ruling};
pub use self::stream_rights::{Review, StreamRights};
pub use self::tempo::Tempo;
use crate::repository::Glob;

/// All rules of a server.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Access {
    /// The number of the edition; 0 if nobody counts them.
    pub version: u64,
    /// The treatment of what no rule allows.
    pub stance: Stance,
    /// The rules for nodes below.
    pub nodes: Vec<NodeRule>,
    /// The rules for clients.
    pub clients: Vec<ClientRule>,
    /// The rules for people and their tools.
    pub operators: Vec<OperatorRule>,
    /// The tokens that count no more.
    pub revoked: Vec<Revoked>,
}

/// The treatment of what no rule allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stance {
    /// It is refused.
    #[default]
    Deny,
    /// It is allowed, counted and logged.
    Audit,
}

/// The tokens of an identity that count no more.
#[derive(Clone, PartialEq, Debug)]
pub struct Revoked {
    /// The identities.
    pub identity: Glob,
    /// The date, in seconds since 1970, before which a token must not have been made.
    pub before: u64,
}

/// The proof of who calls, as the door has found it.
#[derive(Clone, Copy, Debug)]
pub struct Credential<'a> {
    /// The text of the identity.
    pub identity: &'a str,
    /// The content of the token by which it is known; absent: it is known by its connection.
    pub passport: Option<&'a Passport>,
}

// === impl Credential ===

impl<'a> Credential<'a> {
    /// The credential of whoever is known by its connection.
    #[must_use]
    pub fn of(identity: &'a str) -> Credential<'a> {
        Credential { identity, passport: None }
    }

    /// The credential of whoever has shown a token.
    #[must_use]
    pub fn with(passport: &'a Passport) -> Credential<'a> {
        Credential { identity: &passport.identity, passport: Some(passport) }
    }
}

// === impl Access ===

impl Access {
    /// The rights of whoever shows `shown` when it holds leases as `holder`.
    ///
    /// # Errors
    /// When neither a rule nor its token lets it. Whether that is refused is for [`Access::stance`] to say.
    pub fn holder(
        &self,
        shown: &Credential<'_>,
        kind: HolderKind,
        holder: &ClientId,
    ) -> Result<Rights, Denial> {
        self.check_passport(shown)?;
        let ruled = match kind {
            HolderKind::Client => self.client(shown, holder),
            HolderKind::Node => self.node(shown, holder),
        };
        let Some(passport) = shown.passport else {
            return ruled.unwrap_or_else(|| Err(Denial::no_rule(shown.identity, kind)));
        };
        // A token says itself what it is for; where a rule names its identity too, both have to allow it.
        let sealed = passport.rights(kind, holder)?;
        match ruled {
            Some(ruled) => Ok(ruled?.and(sealed)),
            None => Ok(sealed),
        }
    }

    /// The rights to which whoever shows `shown` is admitted when it holds leases as `holder`: those of a rule or, where that is
    /// only noted, all of them.
    ///
    /// # Errors
    /// When nothing lets it and that is refused.
    pub fn admit(
        &self,
        shown: &Credential<'_>,
        kind: HolderKind,
        holder: &ClientId,
    ) -> Result<Admitted, Denial> {
        match (self.holder(shown, kind, holder), self.stance) {
            (Ok(rights), _) => Ok(Admitted::With(rights)),
            (Err(denial), Stance::Audit) => Ok(Admitted::Audited(denial)),
            (Err(denial), Stance::Deny) => Err(denial),
        }
    }

    /// The rights of whoever shows `shown` as a client, under whatever id a rule lets it have.
    ///
    /// # Errors
    /// When no rule speaks of it as a client.
    pub fn client_by_any_id(&self, shown: &Credential<'_>) -> Result<Rights, Denial> {
        self.check_passport(shown)?;
        match chosen(&self.clients, shown.identity, |rule| &rule.identity) {
            Some((index, rule)) => Ok(rule.rights_by_any_id(index, shown.identity)),
            None => Err(Denial::no_rule(shown.identity, HolderKind::Client)),
        }
    }

    /// Whether whoever shows `shown` may act as `role`, on `resource` if it is about one.
    ///
    /// # Errors
    /// When neither a rule nor its token lets it.
    pub fn operator(
        &self,
        shown: &Credential<'_>,
        role: Role,
        resource: Option<&ResourceId>,
    ) -> Result<(), Denial> {
        self.check_passport(shown)?;
        let rule = chosen(&self.operators, shown.identity, |rule| &rule.identity);
        if let Some(passport) = shown.passport {
            passport.operator(role, resource)?;
        } else if rule.is_none() {
            return Err(Denial::no_operator(shown.identity, role));
        }
        rule.map_or(Ok(()), |(index, rule)| rule.allows(index, shown.identity, role, resource))
    }

    /// The roles of whoever shows `shown`, each on some resource at least.
    #[must_use]
    pub fn roles(&self, shown: &Credential<'_>) -> Vec<Role> {
        if self.check_passport(shown).is_err() {
            return Vec::new();
        }
        let rule = chosen(&self.operators, shown.identity, |rule| &rule.identity).map(|(_, rule)| &rule.may);
        let sealed = shown.passport.map(|passport| &passport.roles);
        let has = |roles: &Vec<Role>, role| roles.iter().any(|&has| has == role || has == Role::All);
        let is_in_all = |role: &Role| [rule, sealed].into_iter().flatten().all(|roles| has(roles, *role));
        match (rule, sealed) {
            (None, None) => Vec::new(),
            _ => Role::ALL.into_iter().filter(is_in_all).collect(),
        }
    }

    /// The budget of `identity` as far as rules give it one.
    #[must_use]
    pub fn budget(&self, identity: &str) -> Budget {
        let client = chosen(&self.clients, identity, |rule| &rule.identity);
        let node = chosen(&self.nodes, identity, |rule| &rule.identity);
        let found = client.map(|(_, rule)| rule.budget).or(node.map(|(_, rule)| rule.budget));
        found.unwrap_or_default()
    }

    /// Whether any rule or token names it as what it is not: a client that bears the name of a node.
    fn poses_as_node(&self, identity: &str, holder: &ClientId) -> bool {
        let bears = |rule: &NodeRule| rule.node.is_plain() && rule.node.fits(identity, holder.as_str());
        self.nodes.iter().any(|rule| bears(rule) && !rule.identity.matches(identity))
    }

    fn client(&self, shown: &Credential<'_>, holder: &ClientId) -> Option<Result<Rights, Denial>> {
        if self.poses_as_node(shown.identity, holder) {
            return Some(Err(Denial::name_of_node(shown.identity, holder)));
        }
        let (index, rule) = chosen(&self.clients, shown.identity, |rule| &rule.identity)?;
        Some(rule.rights(index, shown.identity, holder))
    }

    fn node(&self, shown: &Credential<'_>, holder: &ClientId) -> Option<Result<Rights, Denial>> {
        let fitting = all_chosen(&self.nodes, shown.identity, |rule| &rule.identity);
        // An identity may stand for several nodes, each in a rule of its own.
        let mut denied = None;
        for (index, rule) in fitting {
            match rule.rights(index, shown.identity, holder) {
                Ok(rights) => return Some(Ok(rights)),
                Err(denial) => denied = denied.or(Some(denial)),
            }
        }
        denied.map(Err)
    }

    fn check_passport(&self, shown: &Credential<'_>) -> Result<(), Denial> {
        let Some(passport) = shown.passport else { return Ok(()) };
        let after = self
            .revoked
            .iter()
            .find(|revoked| revoked.identity.matches(shown.identity) && passport.made < revoked.before);
        match after {
            Some(revoked) => Err(Denial::revoked(shown.identity, passport.made, revoked.before)),
            None => Ok(()),
        }
    }
}

/// The rule that decides about `identity`, and its place: that of this very name, or else the first whose pattern fits.
fn chosen<'r, R>(
    rules: &'r [R],
    identity: &str,
    pattern: impl Fn(&R) -> &Glob + Clone,
) -> Option<(usize, &'r R)> {
    all_chosen(rules, identity, pattern).next()
}

/// All rules that speak of `identity`, those of this very name first.
fn all_chosen<'r, R>(
    rules: &'r [R],
    identity: &str,
    pattern: impl Fn(&R) -> &Glob + Clone,
) -> impl Iterator<Item = (usize, &'r R)> {
    let fitting = move |is_plain: bool| {
        let pattern = pattern.clone();
        let fits = move |(_, rule): &(usize, &'r R)| {
            let pattern = pattern(rule);
            pattern.is_plain() == is_plain && pattern.matches(identity)
        };
        rules.iter().enumerate().filter(fits)
    };
    fitting(true).chain(fitting(false))
}
