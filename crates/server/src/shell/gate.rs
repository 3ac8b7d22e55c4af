//! The gate: finds out who calls, by connection or token, and holds what they ask against the rules of access.
//!
//! Without rules everybody may everything, and nothing is looked at. With them every call is a [`Visit`], made from the rules
//! that were in force when it came; streams hold theirs anew when the rules change.

mod budget;
mod denials;
mod figures;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, HeaderMap};
use lessor_client::internals::clock;
use lessor_proto::message::{CheckedAsk, HolderKind, Refusal, Release};
use lessor_proto::{ClientId, Identity, ResourceId};

use self::budget::Budgets;
pub(super) use self::budget::{PaidStream, Purse};
pub use self::denials::Denials;
pub(super) use self::figures::GateFigures;
use super::caller::Caller;
use crate::access::bearer::Passport;
use crate::access::{Access, Admitted, Credential, Denial, Role, Ruling, Stance};
use crate::token::TokenKeys;

/// The gate of a server.
#[derive(Debug, Default)]
pub struct Gate {
    rules: ArcSwapOption<Access>,
    /// The number of times that the rules or keys have changed, and 0 as long as there were never any rules.
    edition: AtomicU64,
    keys: ArcSwapOption<TokenKeys>,
    denials: Denials,
    budgets: Budgets,
}

/// A call of somebody whom rules are held against.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    gate: Arc<Gate>,
    rules: Arc<Access>,
    edition: u64,
    caller: Caller,
    passport: Option<Arc<Passport>>,
}

// === impl Gate ===

impl Gate {
    /// A gate with these rules, if there are any.
    #[must_use]
    pub fn new(rules: Option<Access>, keys: Option<TokenKeys>) -> Gate {
        let edition = AtomicU64::new(u64::from(rules.is_some()));
        let (rules, keys) = (ArcSwapOption::from_pointee(rules), ArcSwapOption::from_pointee(keys));
        Gate { rules, edition, keys, ..Gate::default() }
    }

    /// Puts other rules in force: for calls that come at once, and for streams within a second or two. What the holder at
    /// the other end of a stream may hold no more is recalled.
    pub fn put_in_force(&self, rules: Access) {
        self.rules.store(Some(Arc::new(rules)));
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// Puts other keys in force, by which tokens are believed.
    pub fn put_keys_in_force(&self, keys: TokenKeys) {
        self.keys.store(Some(Arc::new(keys)));
        self.edition.fetch_add(1, Ordering::Release);
    }

    /// The rules in force; absent: everybody may everything.
    #[must_use]
    pub fn rules(&self) -> Option<Arc<Access>> {
        self.rules.load_full()
    }

    /// The counts of what was denied, or would have been.
    #[must_use]
    pub fn denials(&self) -> &Denials {
        &self.denials
    }

    /// Whether the caller of a request with these headers and extensions may act as `role` on `resource`, or on all of them.
    ///
    /// # Errors
    /// When it may not, or has shown a token that cannot be taken.
    pub fn admit_operator(
        self: &Arc<Gate>,
        (headers, extensions): (&HeaderMap, &Extensions),
        role: Role,
        resource: Option<&ResourceId>,
    ) -> Result<(), Refusal> {
        let Some(visit) = self.visit(headers, extensions)? else { return Ok(()) };
        visit.operator(role, resource)
    }

    /// The number of times that the rules or keys have changed.
    pub(super) fn edition(&self) -> u64 {
        self.edition.load(Ordering::Acquire)
    }

    /// The visit of whoever calls; none where there are no rules.
    ///
    /// # Errors
    /// When it has shown a token that cannot be taken.
    pub(super) fn visit(
        self: &Arc<Gate>,
        headers: &HeaderMap,
        extensions: &Extensions,
    ) -> Result<Option<Visit>, Refusal> {
        // Before the rules: if they change meanwhile, the visit is of the edition before and is looked at again.
        let edition = self.edition();
        if edition == 0 {
            return Ok(None);
        }
        let Some(rules) = self.rules.load_full() else { return Ok(None) };
        let caller = extensions.get::<Caller>().cloned().unwrap_or_else(Caller::unknown);
        let mut visit = Visit { gate: Arc::clone(self), rules, edition, caller, passport: None };
        match self.passport(headers, &visit.caller) {
            Ok(passport) => visit.passport = passport.map(Arc::new),
            Err(denial) => visit.deny(&denial)?,
        }
        Ok(Some(visit))
    }

    /// The content of the token in `headers`, if there is one.
    fn passport(&self, headers: &HeaderMap, caller: &Caller) -> Result<Option<Passport>, Denial> {
        let Some(header) = headers.get(AUTHORIZATION) else { return Ok(None) };
        let token = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        let token = token
            .ok_or_else(|| Denial::token("authorization is no bearer token; wanted \"Bearer lessor1.…\""))?;
        if caller.identity == Identity::plain() && !caller.address.ip().is_loopback() {
            let address = caller.address;
            return Err(Denial::token(format!(
                "a token came in plain text from {address}, for others to read; wanted TLS, or a loopback address"
            )));
        }
        let keys = self.keys.load();
        let keys = keys.as_deref().ok_or_else(|| {
            Denial::token("this server has no keys for tokens; wanted it to be started with --auth-key")
        })?;
        Passport::open(token, keys, clock::wall().since_epoch.as_secs()).map(Some)
    }
}

// === impl Visit ===

impl Visit {
    /// The text of the identity.
    pub(super) fn identity(&self) -> &str {
        self.passport.as_ref().map_or(self.caller.identity.as_str(), |passport| &passport.identity)
    }

    /// The identity in the token that was shown, if one was.
    pub(super) fn bearer(&self) -> Option<&str> {
        self.passport.as_ref().map(|passport| passport.identity.as_str())
    }

    /// The roles that whoever calls has, be it on some resources only.
    pub(super) fn roles(&self) -> Vec<Role> {
        let credential = self.credential();
        self.rules.roles(&credential)
    }

    /// Whether the rules or keys have changed since.
    pub(super) fn is_of_before(&self) -> bool {
        self.edition != self.gate.edition()
    }

    /// Whether the token that it goes by has ended.
    pub(super) fn is_over(&self) -> bool {
        let now = || clock::wall().since_epoch.as_secs();
        self.passport.as_ref().is_some_and(|passport| passport.ends <= now())
    }

    /// The same visit by the rules in force.
    pub(super) fn again(&self) -> Visit {
        let edition = self.gate.edition();
        let rules = self.gate.rules.load_full().unwrap_or_else(|| Arc::clone(&self.rules));
        Visit { rules, edition, ..self.clone() }
    }

    /// The rights of whoever calls when it holds leases as `holder`.
    pub(super) fn rights(&self, kind: HolderKind, holder: &ClientId) -> Result<Admitted, Denial> {
        let admitted = self.rules.admit(&self.credential(), kind, holder);
        match &admitted {
            Ok(Admitted::With(_)) => {}
            Ok(Admitted::Audited(denial)) => self.count(denial, false),
            Err(denial) => self.count(denial, true),
        }
        admitted
    }

    /// Holds a request against the rules, and cuts what it says down to what may be said. A resource that is denied is refused,
    /// and no other.
    pub(super) fn admit(&self, asked: CheckedAsk) -> Result<CheckedAsk, Refusal> {
        let admitted = self.rights(asked.ask.kind, &asked.ask.holder).map_err(|denial| denial.refusal())?;
        asked.check(|report| self.note(&admitted.check(self.rules.stance, report)))
    }

    /// Counts what a ruling denies.
    ///
    /// # Errors
    /// When that is refused.
    pub(super) fn note(&self, ruling: &Ruling) -> Result<(), Refusal> {
        ruling.denials.iter().for_each(|noted| self.count(&noted.denial, noted.is_refused));
        ruling.refusal.clone().map_or(Ok(()), Err)
    }

    /// Whether whoever calls may give back what its holder has.
    pub(super) fn admit_release(&self, release: &Release) -> Result<(), Refusal> {
        let as_kind = |kind| self.rules.holder(&self.credential(), kind, &release.holder);
        let as_client = as_kind(HolderKind::Client);
        match as_client.or_else(|denial| as_kind(HolderKind::Node).map_err(|_| denial)) {
            Ok(_) => Ok(()),
            Err(denial) => self.deny(&denial),
        }
    }

    /// Whether whoever calls may act as an operator.
    pub(super) fn operator(&self, role: Role, resource: Option<&ResourceId>) -> Result<(), Refusal> {
        match self.rules.operator(&self.credential(), role, resource) {
            Ok(()) => Ok(()),
            Err(denial) => self.deny(&denial),
        }
    }

    /// The purse out of which what this identity does is paid; absent: no rule gives it a budget.
    pub(super) fn purse(&self) -> Option<Arc<Purse>> {
        let budget = self.rules.budget(self.identity());
        let of_address = self.passport.is_none() && !self.caller.identity.is_proved();
        let address = of_address.then(|| self.caller.address.ip());
        self.gate.budgets.purse(self.identity(), address, budget)
    }

    /// Whether what no rule allows is refused, or only noted.
    pub(super) fn stance(&self) -> Stance {
        self.rules.stance
    }

    /// Refuses what no rule allows, or notes it and goes on.
    pub(super) fn deny(&self, denial: &Denial) -> Result<(), Refusal> {
        let is_refused = self.rules.stance == Stance::Deny;
        self.count(denial, is_refused);
        if is_refused { Err(denial.refusal()) } else { Ok(()) }
    }

    fn count(&self, denial: &Denial, is_refused: bool) {
        self.gate.denials.count(denial, is_refused, self.identity(), &self.caller);
    }

    fn credential(&self) -> Credential<'_> {
        match &self.passport {
            Some(passport) => Credential::with(passport),
            None => Credential::of(self.caller.identity.as_str()),
        }
    }
}
