//! Second limits, tried beside the ones in force: where a template has one, the companion of each of its resources is a
//! resource, named as [`ResourceId::companion`] says. It follows a template derived from that one, and nobody keeps to it.

use std::sync::Arc;

use lessor_algorithms::SharePolicy;
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, ResourceId};

use super::problem::{Field, Problem};
use super::{Fraction, Kind, Repository, SafeCapacity, SmallLeases, Template};

// === impl Repository ===

impl Repository {
    /// Whether `resource` is named as the companion of a resource that has one, and no template has that very name.
    pub(crate) fn is_companion(&self, resource: &ResourceId) -> bool {
        !self.has_template(resource) && self.accompanied(resource).is_some()
    }

    /// Whether `resource` is named as the companion of one that is covered, and so is what this repository says, or nothing: no
    /// glob covers it.
    pub(crate) fn is_named_as_companion(&self, resource: &ResourceId) -> bool {
        !self.has_template(resource) && resource.accompanied().is_some_and(|of| self.own(&of).is_some())
    }

    /// The derived template that a companion follows.
    pub(super) fn companion(&self, resource: &ResourceId) -> Option<&Arc<Template>> {
        self.companions[self.accompanied(resource)?].as_ref()
    }

    /// The place of the template of which the one is derived that a companion follows.
    pub(super) fn accompanied(&self, resource: &ResourceId) -> Option<usize> {
        let of = resource.accompanied()?;
        let at = self.exact.get(of.as_str()).copied().or_else(|| self.matching(of.as_str()))?;
        self.companions[at].as_ref().map(|_| at)
    }

    /// The reason why no template covers the companion of a resource.
    pub(super) fn why_no_companion(&self, resource: &ResourceId) -> Option<String> {
        let of = resource.accompanied().filter(|_| self.is_named_as_companion(resource))?;
        Some(format!("no second limit is tried beside {:?}", of.as_str()))
    }
}

// === impl Template ===

impl Template {
    /// The template of the companions, if a second limit is tried. What is reserved is part of it, as clients use their floors
    /// with their leases. Small leases save a unit up, as nobody asks for units that nobody waits for, and policies of domains
    /// have decided before.
    pub(super) fn companion(&self) -> Option<Template> {
        Some(Template {
            capacity: self.beside?,
            safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
            safe_fraction: Fraction::NONE,
            safe_lease: None,
            small_leases: (self.kind == Kind::Rate).then_some(SmallLeases::Save),
            enforce: Fraction::NONE,
            beside: None,
            domains: None,
            ..self.clone()
        })
    }

    /// Whether a holder is told that a second limit is tried: nodes go by templates of their own, and Doorman's clients, which
    /// draw no incarnation, know of none.
    pub(crate) fn tells_beside(&self, kind: HolderKind, is_incarnated: bool) -> bool {
        self.beside.is_some() && kind == HolderKind::Client && is_incarnated
    }

    /// The problems with the second limit.
    pub(super) fn beside_problems(&self) -> Vec<Problem> {
        let Some(capacity) = self.beside else { return Vec::new() };
        let misplaced = if self.window.is_some() {
            Some(("is about units that are given back", "no window"))
        } else if self.workers_in_name {
            Some(("is one limit, and names say how much there is of each", "workers: capacity"))
        } else if self.policy == SharePolicy::None {
            Some(("is a limit, and NO_ALGORITHM has none", "FAIR_SHARE, PROPORTIONAL_SHARE or STATIC"))
        } else {
            None
        };
        let field = Field::Beside;
        let misplaced = misplaced.map(|(found, wanted)| Problem::Misplaced { field, found, wanted });
        let is_whole = capacity == Amount::from_units(capacity.floor_units());
        let fraction = Problem::Fraction { field, amount: capacity };
        misplaced.into_iter().chain((self.kind == Kind::Gauge && !is_whole).then_some(fraction)).collect()
    }
}
