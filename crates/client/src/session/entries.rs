//! The entries of a session, found by their names and by their [marks](Mark).
//!
//! A message is about one resource, or about those that are due, and must not look at ten thousand for that. Whoever changes an
//! entry does it by an [`EntryEdit`], which notes the marks that it has after that. There is no other way to change one, so that
//! the index and the entries cannot come apart.
//!
//! Few entries are looked through instead, and take no memory for an index: nearly all sessions have one, and there may be
//! millions of them.

mod index;

use std::ops::{Deref, DerefMut, Index, RangeInclusive};

use lessor_proto::{ResourceId, Time};

use self::index::EntryIndex;
use super::Change;
use super::entry::Entry;
use super::marks::{Mark, Marks};
use crate::allowance::Allowance;
use crate::holding::Rung;

#[cfg(test)]
mod tests;

/// The most entries that are looked through.
const FEW: usize = 16;

/// Entries, each in a place of its own as long as it is there. All lists of places are in the order of the resources.
#[derive(Clone, Default, Debug)]
pub(super) struct Entries {
    slots: Vec<Option<Box<Slot>>>,
    free: Vec<usize>,
    index: Option<Box<EntryIndex>>,
    /// The places of entries that were changed since the changes were last taken.
    touched: Vec<usize>,
    /// Ends up to this moment were among those.
    noted: Time,
}

#[derive(Clone, Debug)]
struct Slot {
    entry: Entry,
    is_touched: bool,
}

/// An entry that is being changed.
pub(super) struct EntryEdit<'a> {
    entries: &'a mut Entries,
    place: usize,
}

// === impl Entries ===

impl Entries {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The place of `resource`, if it is there.
    pub(super) fn find(&self, resource: &ResourceId) -> Option<usize> {
        match &self.index {
            Some(index) => index.find(&self.slots, resource),
            None => self.all_places().find(|&place| self[place].resource == *resource),
        }
    }

    /// Adds the entry of a resource that is not there, and returns its place.
    pub(super) fn insert(&mut self, entry: Entry) -> usize {
        let place = self.free.pop().unwrap_or(self.slots.len());
        let slot = Some(Box::new(Slot { entry, is_touched: false }));
        match self.slots.get_mut(place) {
            Some(free) => *free = slot,
            None if place < FEW => {
                self.slots.reserve_exact(1);
                self.slots.push(slot);
            }
            None => self.slots.push(slot),
        }
        let are_many = self.len() > FEW;
        match &mut self.index {
            Some(index) => index.insert(&self.slots, place),
            None if are_many => self.index = Some(Box::new(EntryIndex::new(&self.slots))),
            None => {}
        }
        self.note(place);
        self.touch_kin(place);
        place
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.touch_kin(place);
        if let Some(index) = &mut self.index {
            index.remove(&self.slots, place);
        }
        self.slots[place] = None;
        self.free.push(place);
        if self.is_empty() {
            *self = Entries { noted: self.noted, ..Entries::default() };
        }
    }

    /// The entry in a place, to be changed.
    pub(super) fn edit(&mut self, place: usize) -> EntryEdit<'_> {
        EntryEdit { entries: self, place }
    }

    /// Changes each entry. The marks of all are noted together after that, as moving each by itself takes longer.
    pub(super) fn each(&mut self, mut change: impl FnMut(&mut Entry)) {
        let mut marks = self.index.as_ref().map(|_| Vec::with_capacity(self.slots.len()));
        for place in 0..self.slots.len() {
            self.touch(place);
            let mut slot = self.slots[place].as_mut();
            if let Some(slot) = &mut slot {
                looked_at();
                change(&mut slot.entry);
            }
            if let Some(marks) = &mut marks {
                marks.push(slot.map_or(Marks::NONE, |slot| Marks::of(&slot.entry)));
            }
        }
        if let (Some(index), Some(marks)) = (&mut self.index, marks) {
            index.note_all(marks);
        }
    }

    /// Changes each entry, and removes those that are not to be kept.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&mut Entry) -> bool) {
        let places: Vec<usize> = self.all_places().collect();
        let mut are_kept = Vec::with_capacity(places.len());
        self.each(|entry| are_kept.push(is_kept(entry)));
        for (place, is_kept) in places.into_iter().zip(are_kept) {
            if !is_kept {
                self.remove(place);
            }
        }
    }

    /// Changes the entries in `places`, and removes those of them that are not to be kept.
    pub(super) fn retain_of(&mut self, places: Vec<usize>, mut is_kept: impl FnMut(&mut Entry) -> bool) {
        for place in places {
            if !is_kept(&mut self.edit(place)) {
                self.remove(place);
            }
        }
    }

    /// All entries, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.all_places().map(|place| &self[place])
    }

    /// All places.
    pub(super) fn in_order(&self) -> Vec<usize> {
        self.sorted(self.all_places().collect())
    }

    /// The least number from `from` on that an entry has for that mark, or [`Mark::ABSENT`].
    pub(super) fn least(&self, mark: Mark, from: u64) -> u64 {
        let least = match &self.index {
            Some(index) => index.of(mark).range((from, 0)..).next().map(|&(number, _)| number),
            None => self.iter().map(|entry| mark.of(entry)).filter(|number| *number >= from).min(),
        };
        least.unwrap_or(Mark::ABSENT)
    }

    /// The least number that an entry has for that mark as a time.
    pub(super) fn soonest(&self, mark: Mark) -> Time {
        Time::from_nanos(self.least(mark, 0))
    }

    /// The places of the entries whose numbers for that mark are in `numbers`, which does not end with [`Mark::ABSENT`].
    pub(super) fn places(&self, mark: Mark, numbers: RangeInclusive<u64>) -> Vec<usize> {
        self.sorted(self.unsorted(mark, numbers))
    }

    /// The places of `most` of the entries that have a number up to `up_to` for one of the marks: of those with a number for the
    /// first mark, the least numbers, and then of those with one for the next. The work grows with `most`, and not with those
    /// that are left.
    pub(super) fn first_places(&self, marks: &[(Mark, u64)], most: usize) -> Vec<usize> {
        let mut places: Vec<usize> = Vec::new();
        for (nth, &(mark, up_to)) in marks.iter().enumerate() {
            // If those with a mark before did not all fit, there is no room.
            let is_news =
                |&place: &usize| marks[..nth].iter().all(|&(before, up_to)| before.of(&self[place]) > up_to);
            let room = most - places.len();
            places.extend(self.ascending(mark, up_to).filter(is_news).take(room));
        }
        self.sorted(places)
    }

    /// When the next lease ends, after those whose ends were noted.
    pub(super) fn next_end(&self) -> Time {
        Time::from_nanos(self.least(Mark::End, self.noted.as_nanos().saturating_add(1)))
    }

    /// Takes the places of the entries that have been changed, or whose leases have ended, since this was last asked.
    pub(super) fn take_changed(&mut self, now: Time) -> Vec<usize> {
        let mut places = std::mem::take(&mut self.touched);
        // Some are gone, and others may be in their places.
        places.retain(|&place| {
            self.slots[place].as_mut().is_some_and(|slot| std::mem::replace(&mut slot.is_touched, false))
        });
        if now > self.noted {
            let since = self.noted.as_nanos().saturating_add(1);
            places.extend(self.unsorted(Mark::End, since..=now.as_nanos()));
            self.noted = now;
        }
        self.put_in_order(places)
    }

    /// Those places, each once. Of many the order is looked up, and not found anew each time.
    fn put_in_order(&mut self, places: Vec<usize>) -> Vec<usize> {
        if let Some(index) = &mut self.index
            && index.are_many(places.len())
        {
            return index.in_order(&self.slots, &places);
        }
        let mut places = self.sorted(places);
        places.dedup();
        places
    }

    /// The change of the entry in `place` since the program was last told, which is all that is noted of it: that has no mark.
    pub(super) fn tell(&mut self, place: usize, allowance: Allowance, rung: Rung) -> Option<Change> {
        self.slots[place].as_mut()?.entry.change(allowance, rung)
    }

    /// Both lists of places as one.
    pub(super) fn joined(&self, mut places: Vec<usize>, others: Vec<usize>) -> Vec<usize> {
        places.extend(others);
        let mut places = self.sorted(places);
        places.dedup();
        places
    }

    /// Adds the places of the floors of `places`, and of what those are the floors of.
    pub(super) fn with_kin(&self, places: Vec<usize>) -> Vec<usize> {
        if self.least(Mark::Kin, 0) == Mark::ABSENT {
            return places;
        }
        let kin = places.iter().flat_map(|&place| self.kin(place)).collect();
        self.joined(places, kin)
    }

    /// The floor of the entry in `place`, and the entry that it is the floor of, as far as they are there.
    fn kin(&self, place: usize) -> impl Iterator<Item = usize> {
        let resource = &self[place].resource;
        let floored = resource.floored().and_then(|of| self.find(&of));
        self.find(&resource.floor()).into_iter().chain(floored)
    }

    /// The entry in `place` comes or goes.
    fn touch_kin(&mut self, place: usize) {
        if self.least(Mark::Kin, 0) == Mark::ABSENT {
            return;
        }
        let kin: Vec<usize> = self.kin(place).collect();
        kin.into_iter().for_each(|place| self.touch(place));
    }

    fn touch(&mut self, place: usize) {
        if let Some(slot) = &mut self.slots[place]
            && !std::mem::replace(&mut slot.is_touched, true)
        {
            self.touched.push(place);
        }
    }

    /// Notes the marks of the entry in `place`, which has been changed.
    fn note(&mut self, place: usize) {
        self.touch(place);
        if let (Some(index), Some(slot)) = (&mut self.index, &self.slots[place]) {
            index.note(place, Marks::of(&slot.entry));
        }
    }

    fn all_places(&self) -> impl Iterator<Item = usize> {
        (0..self.slots.len()).filter(|&place| self.slots[place].is_some())
    }

    fn unsorted(&self, mark: Mark, numbers: RangeInclusive<u64>) -> Vec<usize> {
        match &self.index {
            Some(index) => {
                let (first, last) = numbers.into_inner();
                index.of(mark).range((first, 0)..=(last, usize::MAX)).map(|&(_, place)| place).collect()
            }
            None => {
                let has = |&place: &usize| numbers.contains(&mark.of(&self[place]));
                self.all_places().filter(has).collect()
            }
        }
    }

    /// The places of the entries with numbers up to `up_to` for that mark, the least number first.
    fn ascending(&self, mark: Mark, up_to: u64) -> impl Iterator<Item = usize> {
        let indexed = self.index.as_ref().map(|index| index.of(mark).range(..=(up_to, usize::MAX)));
        let mut few = Vec::new();
        if indexed.is_none() {
            few.extend(self.all_places().map(|place| (mark.of(&self[place]), place)));
            few.retain(|&(number, _)| number <= up_to);
            few.sort_unstable();
        }
        indexed.into_iter().flatten().copied().chain(few).map(|(_, place)| place)
    }

    fn sorted(&self, mut places: Vec<usize>) -> Vec<usize> {
        if places.len() > 1 {
            places.sort_unstable_by(|&one, &other| self[one].resource.cmp(&self[other].resource));
        }
        places
    }
}

impl Index<usize> for Entries {
    type Output = Entry;

    fn index(&self, place: usize) -> &Entry {
        looked_at();
        match &self.slots[place] {
            Some(slot) => &slot.entry,
            None => unreachable!("there is an entry in place {place}"),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// The entries that this thread has looked at.
    pub(super) static LOOKED_AT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts a look at an entry, in tests.
fn looked_at() {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + 1);
}

// === impl EntryEdit ===

impl Deref for EntryEdit<'_> {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.entries[self.place]
    }
}

impl DerefMut for EntryEdit<'_> {
    fn deref_mut(&mut self) -> &mut Entry {
        looked_at();
        match &mut self.entries.slots[self.place] {
            Some(slot) => &mut slot.entry,
            None => unreachable!("there is an entry in place {}", self.place),
        }
    }
}

impl Drop for EntryEdit<'_> {
    fn drop(&mut self) {
        self.entries.note(self.place);
    }
}
