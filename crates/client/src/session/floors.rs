//! Floors: what is reserved for those who reach no server is a resource of its own, with longer leases.
//!
//! A grant says that there is one ([`Grant::safe_leased`](lessor_proto::message::Grant::safe_leased)); a client then asks for it by
//! itself, and gives it back when grants say so no more, or when it lets go of the resource. To the program both are one:
//! it may use the two together, and the floor alone when the lease has ended, until the floor has.
//!
//! Nodes ask for floors only when those below them do.

use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, ResourceId, Time};

use super::Session;
use super::entry::{Entry, Stage};
use crate::allowance::Allowance;
use crate::holding::{Fallback, HoldingConfig, Kind, Rung};

/// Bytes in the name of a floor: servers take no longer names by default.
const LONGEST_NAME: usize = 256;

// === impl Session ===

impl Session {
    /// The amounts that may be used of `resource` by its lease, and by that of its floor: [`Session::allowance`] is
    /// both.
    #[must_use]
    pub fn leases(&self, now: Time, resource: &ResourceId) -> [Allowance; 2] {
        let Some(place) = self.find(resource) else { return [Allowance::NOTHING; 2] };
        let entry = &self.entries[place];
        let floor = self.floor_of(entry).and_then(|floor| floor.lease(now));
        [entry.lease(now), floor].map(|lease| lease.unwrap_or(Allowance::NOTHING))
    }

    /// The allowance of the resource at `place`, and the rung that it comes from.
    pub(super) fn standing(&self, now: Time, place: usize) -> (Allowance, Rung) {
        let entry = &self.entries[place];
        let rung = entry.rung(now);
        let own = self.with_units(entry, entry.allowance(now), rung);
        let Some(floor) = self.floor_of(entry).and_then(|floor| floor.lease(now)) else { return (own, rung) };
        match rung {
            Rung::Leased => (own.and(floor), rung),
            Rung::Safe | Rung::Pessimistic => (floor, Rung::Safe),
            Rung::Waiting | Rung::Optimistic => (own, rung),
        }
    }

    /// Asks for the floors that there are of the entries in `places`, and gives back those of them that are floors which nobody wants
    /// any more. Returns whether there were such.
    pub(super) fn tend_floors(&mut self, now: Time, places: &[usize]) -> bool {
        if self.config.kind == HolderKind::Node {
            return false;
        }
        let amiss = places.iter().map(|&place| &self.entries[place]);
        let amiss = amiss.filter_map(|entry| match entry.is_floor {
            true => self.is_left_over(entry).then(|| (entry.resource.clone(), None)),
            false => {
                let wants = entry.wants_floor().filter(|&wants| self.is_without_floor(entry, wants))?;
                Some((entry.resource.floor(), Some(wants)))
            }
        });
        let amiss: Vec<_> = amiss.collect();
        for (floor, wants) in &amiss {
            match wants {
                Some(wants) => self.ask_for_floor(now, floor, *wants),
                None => self.drop_floor(now, floor),
            }
        }
        !amiss.is_empty()
    }

    fn floor_of(&self, entry: &Entry) -> Option<&Entry> {
        entry.wants_floor()?;
        let place = self.find(&entry.resource.floor())?;
        Some(&self.entries[place]).filter(|floor| floor.is_floor)
    }

    /// Whether `entry`, a floor that is held, is that of nothing that is asked for.
    fn is_left_over(&self, entry: &Entry) -> bool {
        let of = || self.find(&entry.resource.floored()?);
        entry.is_wanted() && of().is_none_or(|place| self.entries[place].wants_floor().is_none())
    }

    /// Whether the floor of `entry` is not asked for, or as another amount. One that the program has opened by its name is
    /// the program's.
    fn is_without_floor(&self, entry: &Entry, wants: f64) -> bool {
        let name = entry.resource.floor();
        match self.find(&name) {
            Some(place) => {
                let floor = &self.entries[place];
                floor.is_floor && !(floor.is_wanted() && floor.is_open_for(wants))
            }
            None => name.as_str().len() <= LONGEST_NAME,
        }
    }

    fn ask_for_floor(&mut self, now: Time, floor: &ResourceId, wants: f64) {
        let config =
            HoldingConfig { fallback: Fallback::Pessimistic, ..HoldingConfig::new(Kind::Rate, wants, 0) };
        self.add(now, floor.clone(), config);
        if let Some(place) = self.find(floor) {
            self.entries.edit(place).is_floor = true;
        }
    }

    fn drop_floor(&mut self, now: Time, floor: &ResourceId) {
        if let Some(place) = self.find(floor)
            && !self.entries.edit(place).leave(now)
        {
            self.entries.remove(place);
        }
    }
}

// === impl Entry ===

impl Entry {
    /// The allowance of its lease, if that is something and has not ended.
    fn lease(&self, now: Time) -> Option<Allowance> {
        let lease = (self.rung(now) == Rung::Leased).then(|| self.allowance(now))?;
        Some(lease).filter(|lease| lease.capacity != Some(Amount::ZERO))
    }

    /// The amount that is to be asked for of its floor, if it has one and is to have it.
    pub(super) fn wants_floor(&self) -> Option<f64> {
        let asks = self.is_open() && !self.is_floor;
        self.holding.wants_floor().filter(|&wants| asks && wants > 0.0)
    }

    /// Whether it is asked for, or will be when what was released is confirmed.
    fn is_wanted(&self) -> bool {
        !matches!(self.stage, Stage::Leaving { again: None, .. })
    }

    /// Whether so much of it is asked for; if it is to be asked for again, that is seen to then.
    fn is_open_for(&self, wants: f64) -> bool {
        !self.is_open() || self.holding.wants().to_bits() == wants.to_bits()
    }
}
