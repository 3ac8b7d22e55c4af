//! Explanations for operators: what a resource is divided by, and why one holder gets what it gets.

use std::collections::BTreeMap;

use lessor_proto::message::{BoundBy, HolderKind};
use lessor_proto::{ClientId, Epoch, ResourceId, Time};

use super::{Node, ResourceRow};
use crate::overrides::OverrideStatus;
use crate::resource::Resource;
pub use crate::resource::{BandLevel, BandShare, Division, HolderExplanation};

/// An explanation of a resource, and of one of its holders if that was asked for.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct Explanation {
    /// The edition of this form.
    pub schema: u32,
    /// The name of the node.
    pub node: String,
    /// The number of this epoch.
    #[cfg_attr(feature = "shell", serde(serialize_with = "super::status::epoch_as_number"))]
    pub epoch: Epoch,
    /// Which edition of the configuration is in force; 0 if nobody counts them.
    pub config_version: u64,
    /// The later one that was in force before, if there is such a one: then nothing is granted.
    pub later_config: Option<u64>,
    /// The resource as it stands.
    pub resource: ResourceRow,
    /// The way in which it is divided.
    pub division: Division,
    /// The lease of this node from the one above; absent where the capacity is configured.
    pub above: Option<LeaseAbove>,
    /// The lives of the holder that was asked for.
    pub lives: Vec<HolderExplanation>,
    /// The time for which an operator lets that holder have nothing, in seconds.
    pub held_back_seconds: Option<f64>,
    /// The overrides that are about the resource, or drain that holder there.
    pub overrides: Vec<OverrideStatus>,
    /// The words for each bound that is named above.
    pub words: BTreeMap<&'static str, BoundWords>,
}

/// A bound in words, for those who show it to people.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct BoundWords {
    /// The bound.
    pub what: &'static str,
    /// The things that would let it be more, or what to wait for.
    pub remedy: &'static str,
}

/// The lease of a node from the one above.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "shell", derive(serde::Serialize))]
pub struct LeaseAbove {
    /// The name of the node above, if it has said it.
    pub node: Option<String>,
    /// The server that is asked.
    pub server: String,
    /// The name by which this node is a holder there.
    pub holder: String,
    /// The bound of it there, as that one said with its last grant.
    pub bound_by: Option<&'static str>,
    /// The fault when it was last to be renewed.
    pub fault: Option<String>,
}

/// Why nothing is explained.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotExplained {
    /// Nobody holds or wants the resource.
    #[error("nobody holds or wants {0:?}")]
    NoResource(String),
    /// Nobody of that id holds or wants it.
    #[error("nobody called {holder:?} holds or wants {resource:?} here")]
    NoHolder {
        /// The resource.
        resource: String,
        /// The id.
        holder: String,
    },
}

// === impl Explanation ===

impl Explanation {
    /// The edition of the form.
    pub const SCHEMA: u32 = 1;
}

// === impl Node ===

impl Node {
    /// Explains how a resource is divided, and why `holder` gets what it gets of it. Nothing is granted, and nothing else changes
    /// than what has ended by `now`.
    ///
    /// # Errors
    /// When nobody holds or wants the resource, or nobody of that id does.
    pub fn explain(
        &mut self,
        now: Time,
        id: &ResourceId,
        holder: Option<&ClientId>,
    ) -> Result<Explanation, NotExplained> {
        let lives = self.with(now, id, |resource, around| {
            let slots = holder.map_or_else(Vec::new, |holder| resource.slots_of(holder.as_str()));
            slots.into_iter().map(|slot| resource.explain(now, slot, around.cx)).collect::<Vec<_>>()
        });
        let mut lives = lives.ok_or_else(|| NotExplained::NoResource(id.to_string()))?;
        let held_back = holder.and_then(|holder| self.held_back_until(now, id, holder));
        if let (Some(holder), true) = (holder, lives.is_empty()) {
            return Err(NotExplained::NoHolder { resource: id.to_string(), holder: holder.to_string() });
        }
        let kinds = [HolderKind::Client, HolderKind::Node];
        let kind = kinds.into_iter().find(|kind| lives.iter().any(|life| life.kind == kind_name(*kind)));
        if let (Some(holder), Some(kind)) = (holder, kind)
            && let Some(by) = self.holds_back(now, kind, holder, id)
        {
            lives.iter_mut().for_each(|life| life.bound_by = by);
        }
        let above = self.lease_above(id);
        let words = words_of(&lives, above.as_ref());
        let found = self.resources.get(id).ok_or_else(|| NotExplained::NoResource(id.to_string()))?;
        Ok(Explanation {
            schema: Explanation::SCHEMA,
            node: self.config.name.clone(),
            epoch: self.config.epoch,
            config_version: self.repository.version(),
            later_config: self.later_config(),
            resource: self.row(now, found),
            division: found.division(),
            above,
            lives,
            held_back_seconds: held_back.map(|until| until.since(now).as_secs_f64()),
            overrides: self.orders.overrides.status_about(now, id, kind.zip(holder)),
            words,
        })
    }

    fn lease_above(&self, id: &ResourceId) -> Option<LeaseAbove> {
        let session =
            self.parent_session().filter(|_| self.resources.get(id).is_some_and(Resource::is_leased))?;
        let path = self.names.path();
        Some(LeaseAbove {
            node: path.iter().rev().nth(1).cloned(),
            server: session.server().to_string(),
            holder: self.config.name.clone(),
            bound_by: session.bound_by(id).map(BoundBy::as_str),
            fault: session.fault(id).map(ToString::to_string),
        })
    }
}

/// The words for each bound that is named there.
fn words_of(lives: &[HolderExplanation], above: Option<&LeaseAbove>) -> BTreeMap<&'static str, BoundWords> {
    let here = lives.iter().flat_map(|life| life.also.iter().copied().chain([life.bound_by]));
    let named = here.chain(above.and_then(|above| BoundBy::named(above.bound_by?)));
    named.map(|by| (by.as_str(), BoundWords { what: by.what(), remedy: by.remedy() })).collect()
}

/// The kind of a holder, as explanations name it.
fn kind_name(kind: HolderKind) -> &'static str {
    match kind {
        HolderKind::Client => "client",
        HolderKind::Node => "node",
    }
}
