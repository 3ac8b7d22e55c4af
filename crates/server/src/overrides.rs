//! Overrides: the orders of operators that win over templates for a while, and end by themselves.
//!
//! A resource is frozen, so that nobody has more of it; a client, a node or a domain is drained, so that it has nothing; the
//! capacity of a resource is capped. All of that keeps the promise: what is out stays charged until it is acknowledged or has
//! ended. Each override says who wants it and why, and for how long.
//!
//! The newest of two about the same thing counts, a drain wins over a freeze, and a cap never raises a capacity.
//!
//! ```
//! use lessor_proto::message::HolderKind;
//! use lessor_proto::{ClientId, ResourceId, Time};
//! use lessor_server::overrides::{Override, OverrideAct, Overrides};
//!
//! let mut overrides = Overrides::default();
//! let act = OverrideAct::DrainClient { client: "web-*".to_owned(), resource: None, deny: false };
//! overrides.put(Override { id: "a1".to_owned(), act, seconds: 60, ..Override::for_reason("it floods us") }, Time::MAX)?;
//! let (web, db) = (ClientId::new("web-7", 256)?, ResourceId::new("db", 256)?);
//! assert!(overrides.drains(HolderKind::Client, &web, &db).is_some());
//! assert!(overrides.drains(HolderKind::Node, &web, &db).is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod act;
mod record;
mod template;

use std::sync::Arc;

use lessor_proto::message::{HolderKind, Refusal};
use lessor_proto::{ClientId, Glob, ResourceId, Time};

pub use self::act::{OverrideAct, OverrideKind};
pub use self::record::{BadOverride, Override};

/// The overrides that are in force, the newest last. The default has none.
#[derive(Clone, Default, Debug)]
pub struct Overrides(Arc<Vec<PlacedOverride>>);

/// An override that is in force, with what it is about in the form in which it is looked up.
#[derive(Clone, Debug)]
struct PlacedOverride {
    it: Arc<Override>,
    /// When it ends, by the clock of this node.
    until: Time,
    resources: Option<Glob>,
    clients: Option<Glob>,
}

/// A drain of somebody.
#[derive(Clone, PartialEq, Debug)]
pub struct Drain {
    /// The override that says so.
    pub by: Arc<Override>,
    /// Whether asking again is refused.
    pub is_denied: bool,
}

/// An override as it stands, for operators.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct OverrideStatus {
    /// Its id, by which it can be lifted.
    pub id: String,
    /// The kind, as in the figures.
    pub kind: &'static str,
    /// The matter of it, in words.
    pub what: String,
    /// Why.
    pub reason: String,
    /// The author.
    pub by: String,
    /// Whether a server has looked who that is.
    pub is_verified: bool,
    /// The time for which it is in force, in seconds.
    pub ends_in_seconds: f64,
}

impl Overrides {
    /// The most that may be in force at a time.
    pub const MOST: usize = 100;

    /// The number of them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One more, which is newer than all others, until `until`; in the place of one of the same id.
    ///
    /// # Errors
    /// When it does not hold together, or there are too many.
    pub fn put(&mut self, it: Override, until: Time) -> Result<(), BadOverride> {
        let [resources, clients] = it.check()?;
        let all = Arc::make_mut(&mut self.0);
        all.retain(|placed| placed.it.id != it.id);
        if all.len() >= Overrides::MOST {
            return Err(BadOverride::Many);
        }
        all.push(PlacedOverride { it: Arc::new(it), until, resources, clients });
        Ok(())
    }

    /// Takes one out. Returns whether it was there.
    pub fn lift(&mut self, id: &str) -> bool {
        let before = self.len();
        Arc::make_mut(&mut self.0).retain(|placed| placed.it.id != id);
        self.len() < before
    }

    /// The same without those whose time is over.
    #[must_use]
    pub fn at(&self, now: Time) -> Overrides {
        let lasting = self.0.iter().filter(|placed| placed.until > now).cloned();
        Overrides(Arc::new(lasting.collect()))
    }

    /// When the first of them ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Time> {
        self.0.iter().map(|placed| placed.until).min()
    }

    /// All of them, the oldest first, and when each ends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Arc<Override>, Time)> {
        self.0.iter().map(|placed| (&placed.it, placed.until))
    }

    /// Whether nobody may have more of a resource, or of its floor.
    #[must_use]
    pub fn freezes(&self, resource: &ResourceId) -> bool {
        self.0
            .iter()
            .any(|placed| placed.kind() == OverrideKind::Freeze && placed.is_about_or_floor(resource))
    }

    /// The drain by which somebody gets nothing of a resource, if there is one: the newest.
    #[must_use]
    pub fn drains(&self, kind: HolderKind, holder: &ClientId, resource: &ResourceId) -> Option<Drain> {
        if self.0.is_empty() {
            return None;
        }
        let placed = self.0.iter().rev().find(|placed| {
            placed.drains_some_of(kind, holder.as_str()) && placed.is_about_or_floor(resource)
        })?;
        Some(Drain { by: Arc::clone(&placed.it), is_denied: placed.it.act.is_denied() })
    }

    /// Whether somebody gets nothing of some resource.
    #[must_use]
    pub(crate) fn drains_some_of(&self, kind: HolderKind, holder: &str) -> bool {
        self.0.iter().any(|placed| placed.drains_some_of(kind, holder))
    }

    /// Whether any of them is about the sum or the policies of a resource, or of its kin.
    pub(crate) fn is_about(&self, resource: &ResourceId) -> bool {
        self.0.iter().any(|placed| placed.kind().is_about_resource() && placed.is_about_kin(resource))
    }

    /// The ids of those that are about a resource, and of those that drain holders of it.
    pub(crate) fn ids_about(&self, resource: &ResourceId) -> Vec<String> {
        let about = self.0.iter().filter(|placed| placed.is_about_kin(resource));
        about.map(|placed| placed.it.id.clone()).collect()
    }

    /// All of them as they stand.
    pub(crate) fn status(&self, now: Time) -> Vec<OverrideStatus> {
        self.0.iter().map(|placed| placed.status(now)).collect()
    }

    /// Those of them that are about a resource or drain `holder` there, as they stand.
    pub(crate) fn status_about(
        &self,
        now: Time,
        resource: &ResourceId,
        holder: Option<(HolderKind, &ClientId)>,
    ) -> Vec<OverrideStatus> {
        let is_about = |placed: &&PlacedOverride| {
            let drains = holder.is_none_or(|(kind, id)| placed.drains_some_of(kind, id.as_str()));
            placed.is_about_kin(resource) && (placed.kind().is_about_resource() || drains)
        };
        self.0.iter().filter(is_about).map(|placed| placed.status(now)).collect()
    }
}

/// The same ones in the same order, until the same times.
impl PartialEq for Overrides {
    fn eq(&self, other: &Overrides) -> bool {
        self.iter().eq(other.iter())
    }
}

// === impl PlacedOverride ===

impl PlacedOverride {
    fn kind(&self) -> OverrideKind {
        self.it.act.kind()
    }

    /// Whether it is about a resource of that very name, or about all.
    fn is_about(&self, resource: &str) -> bool {
        self.resources.as_ref().is_none_or(|glob| glob.matches(resource))
    }

    /// The same, where a floor belongs to the resource that it is for, and a companion to the one that it is tried beside.
    fn is_about_or_floor(&self, resource: &ResourceId) -> bool {
        let of = || resource.floored().or_else(|| resource.accompanied());
        self.is_about(resource.as_str()) || of().is_some_and(|of| self.is_about(of.as_str()))
    }

    /// The same, where the lease of a domain belongs to its resource as well.
    fn is_about_kin(&self, resource: &ResourceId) -> bool {
        let lender = || resource.domained().is_some_and(|(lender, _)| self.is_about(lender.as_str()));
        self.is_about_or_floor(resource) || lender()
    }

    /// Whether somebody gets nothing, at least of some resource.
    fn drains_some_of(&self, kind: HolderKind, holder: &str) -> bool {
        match (self.kind(), kind) {
            (OverrideKind::DrainClient, HolderKind::Client) | (OverrideKind::DrainNode, HolderKind::Node) => {
                self.clients.as_ref().is_some_and(|glob| glob.matches(holder))
            }
            _ => false,
        }
    }

    fn status(&self, now: Time) -> OverrideStatus {
        let it = &self.it;
        OverrideStatus {
            id: it.id.clone(),
            kind: it.act.kind().as_str(),
            what: it.act.to_string(),
            reason: it.reason.clone(),
            by: it.by.name.clone(),
            is_verified: it.by.verified,
            ends_in_seconds: self.until.since(now).as_secs_f64(),
        }
    }
}

// === impl Drain ===

impl Drain {
    /// The refusal of somebody who asks again, and must not.
    pub(crate) fn refusal(&self, holder: &ClientId, resource: &ResourceId) -> Refusal {
        let Override { id, reason, .. } = &*self.by;
        Refusal::Denied {
            reason: "drained",
            is_unknown: false,
            rule: Some(format!("override {id}")),
            message: format!(
                "an operator has drained {holder:?}, which may ask for nothing of {resource:?} for now: {reason} (override {id})"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
