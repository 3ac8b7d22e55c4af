//! The companions in a session: the resources as which second limits are leased. They want what the resources want that they are
//! tried beside. For whoever drives the session; the program does not hear of them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lessor_proto::message::{BoundBy, Unenforced};
use lessor_proto::{Amount, ResourceId, Time};

use crate::allowance::Allowance;
use crate::holding::{Fallback, HoldingConfig, Rung};
use crate::session::{Change, Session};

/// The companions that a session holds, of any number of resources, each with what the second limit had been asked for when it was
/// asked for: that was said of the one before, if there was one.
#[derive(Debug, Default)]
pub struct Companions(BTreeMap<ResourceId, Unenforced>);

/// The use of a resource beside which a second limit is tried.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccompaniedUse {
    /// The amount that it wants, in units (a second).
    pub wants: f64,
    /// Its claim on what nobody wants.
    pub peak: Option<f64>,
    /// The amount of the second limit that is in use.
    pub in_use: Amount,
    /// The units that the second limit was asked for, and would have refused.
    pub counted: Unenforced,
}

// === impl Companions ===

impl Companions {
    /// Asks for the companion of `of`, which is held so, unless it is there already; `counted` are the units that the second limit
    /// was asked for before. What `is_own` holds for the program has opened itself.
    pub fn ask(
        &mut self,
        now: Time,
        (of, counted): (&ResourceId, Unenforced),
        config: HoldingConfig,
        is_own: impl Fn(&ResourceId) -> bool,
        session: &mut Session,
    ) {
        let Some(companion) = of.companion(ResourceId::USUAL_BYTES).filter(|companion| !is_own(companion))
        else {
            return;
        };
        if let Entry::Vacant(place) = self.0.entry(companion.clone()) {
            place.insert(counted);
            session.add(now, companion, HoldingConfig { fallback: Fallback::Pessimistic, ..config });
        }
    }

    /// Gives the companion of `of` back, of which so many units were counted. Returns whether there was one: it is tried no more.
    pub fn give_back(
        &mut self,
        now: Time,
        (of, counted): (&ResourceId, Unenforced),
        session: &mut Session,
    ) -> bool {
        let given_back = self.of(of).and_then(|companion| self.0.remove_entry(&companion));
        if let Some((companion, before)) = &given_back {
            session.set_unenforced(companion, counted.since(*before));
            session.set_in_use(now, companion, Amount::ZERO);
            session.remove(now, companion);
        }
        given_back.is_some()
    }

    /// The resource beside which a second limit is tried, and what that allows from here on, if the change is about a companion.
    /// It allows nothing that could be compared before there is a lease, while its grantor is learning, and where the node above
    /// has granted nothing of it.
    #[must_use]
    pub fn changed(&self, change: &Change) -> Option<(ResourceId, Option<Allowance>)> {
        let of = self.0.get_key_value(&change.resource)?.0.accompanied()?;
        let is_cut_off =
            matches!(change.bound_by, Some(BoundBy::LeaseAbove | BoundBy::NoTemplate | BoundBy::OtherKind))
                && change.allowance.capacity == Some(Amount::ZERO);
        let is_leased = change.rung == Rung::Leased && change.learns_until.is_none();
        Some((of, (is_leased && !is_cut_off).then_some(change.allowance)))
    }

    /// The companion of `of` wants from here on what that wants.
    pub fn want(&self, now: Time, of: &ResourceId, usage: AccompaniedUse, session: &mut Session) {
        if let Some(companion) = self.of(of) {
            session.set_in_use(now, &companion, usage.in_use);
            session.set_peak(now, &companion, usage.peak);
            session.set_wants(now, &companion, usage.wants);
            let before = self.0.get(&companion).copied().unwrap_or_default();
            session.set_unenforced(&companion, usage.counted.since(before));
        }
    }

    /// The program holds `resource` itself from here on. Returns the one that it was the companion of, if it was one.
    pub fn yield_to_program(&mut self, resource: &ResourceId) -> Option<ResourceId> {
        self.0.remove_entry(resource)?.0.accompanied()
    }

    /// The companion of `of`, if there is one.
    fn of(&self, of: &ResourceId) -> Option<ResourceId> {
        if self.0.is_empty() {
            return None;
        }
        of.companion(ResourceId::USUAL_BYTES).filter(|companion| self.0.contains_key(companion))
    }
}
