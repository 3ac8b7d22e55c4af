//! A resource that a change is about: rehearsed with those who would not be refused, and then supplied.

use compact_str::CompactString;
use lessor_proto::message::{Band, Bands, HolderKind};
use lessor_proto::{Amount, Time};

use super::PlannedResource;
use super::node::SupplyForecast;
use crate::config::NodeConfig;
use crate::repository::{Legacy, Template};
use crate::resource::{Rehearsal, RehearsedHolder};

/// Why a holder would be refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Refused {
    NoTemplate,
    OtherKind,
    Legacy,
}

// === impl PlannedResource ===

impl PlannedResource {
    /// Why a holder would be refused when it asks next.
    pub(super) fn refused(&self, config: &NodeConfig, holder: &RehearsedHolder) -> Option<Refused> {
        let Some(after) = &self.after else { return Some(Refused::NoTemplate) };
        if self.changes_kind() {
            return Some(Refused::OtherKind);
        }
        let is_let = match after.legacy {
            _ if holder.incarnated => true,
            Legacy::Sticky { .. } => config.parent.is_none(),
            Legacy::Deny => false,
            Legacy::Expire => true,
        };
        (!is_let).then_some(Refused::Legacy)
    }

    /// Whether units of before and after cannot be added up.
    pub(super) fn changes_kind(&self) -> bool {
        let is_other = |before: &Template, after: &Template| {
            before.kind != after.kind || before.window.is_some() != after.window.is_some()
        };
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => is_other(before, after),
            _ => false,
        }
    }

    /// All holders as the rehearsal is to know them: those who would be refused want nothing.
    pub(super) fn rehearse(&mut self, now: Time, config: &NodeConfig) {
        let Some(after) = self.after.clone() else { return };
        let nothing: Bands = [Band::NOTHING].into_iter().collect();
        let mut holders: Vec<RehearsedHolder> = self.holders.clone();
        for holder in &mut holders {
            if self.refused(config, holder).is_some() {
                holder.said = nothing.clone();
            }
        }
        let rest = self.rest.buckets.values().map(|band| RehearsedHolder {
            name: CompactString::default(),
            kind: HolderKind::Client,
            incarnated: true,
            said: [*band].into_iter().collect(),
            charge: Amount::ZERO,
            ends: None,
            share: 0.0,
            listens: true,
        });
        if !self.changes_kind() {
            holders.extend(rest);
        }
        self.rehearsal =
            Some(Rehearsal::new(now, self.id.clone(), after, &holders, config).at_step(self.step));
    }

    /// The node above would grant that; absent: as much as it does.
    pub(super) fn supply(&mut self, supply: Option<&SupplyForecast>) {
        let granted = supply.map_or(Amount::from_f64(self.figures.capacity), |supply| supply.granted);
        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.lease(granted);
        }
    }

    /// The share that the holder of that number would have.
    pub(super) fn share(&self, number: usize) -> f64 {
        self.rehearsal.as_ref().map_or(0.0, |rehearsal| rehearsal.share(number))
    }

    /// The amount that the holder of that number would be granted. Of what is frozen it keeps what it has, or gives back what is too
    /// much where more is out than there would be.
    pub(super) fn granted(&self, number: usize) -> Amount {
        let (share, holder) = (Amount::from_f64(self.share(number)), &self.holders[number]);
        if !self.is_frozen {
            return share;
        }
        let out: f64 = self.holders.iter().map(|holder| holder.charge.as_f64()).sum();
        let limit = self.rehearsal.as_ref().map_or(Some(Amount::ZERO), Rehearsal::limit);
        let wants = Amount::from_f64(holder.said.iter().map(|band| band.wants).sum());
        match limit.is_some_and(|limit| out > limit.as_f64()) {
            true => share.min(holder.charge),
            false => wants.min(holder.charge),
        }
    }
}
