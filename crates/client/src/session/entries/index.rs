//! The index of entries where there are many: their places by name, and by the numbers of their marks.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use lessor_proto::ResourceId;

use super::Slot;
use crate::session::marks::{Mark, Marks};
use crate::table::{Table, hasher};

/// Of more than this part of the entries the marks are sorted anew when they have moved, and the order of all is looked up.
const MANY: usize = 8;

/// The places of many entries.
#[derive(Clone, Debug)]
pub(super) struct EntryIndex {
    hasher: RandomState,
    by_name: Table<usize>,
    /// The marks of the entries, by place.
    marks: Vec<Marks>,
    /// For each mark, the places that have it, by its number.
    places: [BTreeSet<(u64, usize)>; Mark::ALL.len()],
    /// The order of the names, as it was looked up last.
    order: NameOrder,
}

/// Places in the order of their names. Those that have come since that was looked up are not among them.
#[derive(Clone, Default, Debug)]
struct NameOrder {
    places: Vec<usize>,
    /// Whether the entry in a place is among them, by place.
    has: Vec<bool>,
}

// === impl EntryIndex ===

impl EntryIndex {
    pub(super) fn new(slots: &[Option<Box<Slot>>]) -> EntryIndex {
        let mut index = EntryIndex {
            hasher: hasher(),
            by_name: Table::new(),
            marks: Vec::new(),
            places: Default::default(),
            order: NameOrder::default(),
        };
        for place in (0..slots.len()).filter(|&place| slots[place].is_some()) {
            index.insert(slots, place);
        }
        index
    }

    /// The places of that mark.
    pub(super) fn of(&self, mark: Mark) -> &BTreeSet<(u64, usize)> {
        &self.places[mark as usize]
    }

    /// The place of `resource`, if it is there.
    pub(super) fn find(&self, slots: &[Option<Box<Slot>>], resource: &ResourceId) -> Option<usize> {
        self.by_name.get(self.found(slots, resource)?).copied()
    }

    fn found(&self, slots: &[Option<Box<Slot>>], resource: &ResourceId) -> Option<usize> {
        self.by_name.find(hash(&self.hasher, resource), |&place| *name(slots, place) == *resource)
    }

    pub(super) fn insert(&mut self, slots: &[Option<Box<Slot>>], place: usize) {
        let hash_of = |&place: &usize| hash(&self.hasher, name(slots, place));
        self.by_name.insert(hash_of(&place), place, hash_of);
        if self.marks.len() <= place {
            self.marks.resize(place + 1, Marks::NONE);
        }
        self.order.forget(place);
        if let Some(slot) = &slots[place] {
            self.note(place, Marks::of(&slot.entry));
        }
    }

    pub(super) fn remove(&mut self, slots: &[Option<Box<Slot>>], place: usize) {
        if let Some(found) = self.found(slots, name(slots, place)) {
            self.by_name.take_out(found, |&place| hash(&self.hasher, name(slots, place)));
        }
        self.note(place, Marks::NONE);
        self.order.forget(place);
    }

    /// The entry in `place` has these marks from here on.
    pub(super) fn note(&mut self, place: usize, marks: Marks) {
        let before = std::mem::replace(&mut self.marks[place], marks);
        for mark in Mark::ALL {
            self.move_mark(mark, place, [before.get(mark), marks.get(mark)]);
        }
    }

    /// The entries have these marks from here on, by place.
    pub(super) fn note_all(&mut self, marks: Vec<Marks>) {
        let before = std::mem::replace(&mut self.marks, marks);
        let mut moved = [0; Mark::ALL.len()];
        for (old, new) in before.iter().zip(&self.marks) {
            for mark in Mark::ALL {
                moved[mark as usize] += usize::from(old.get(mark) != new.get(mark));
            }
        }
        for mark in Mark::ALL {
            match moved[mark as usize] {
                0 => {}
                moved if self.are_many(moved) => self.sort_anew(mark),
                _ => {
                    for (place, old) in before.iter().enumerate() {
                        self.move_mark(mark, place, [old.get(mark), self.marks[place].get(mark)]);
                    }
                }
            }
        }
    }

    /// Whether so many entries are many among all.
    pub(super) fn are_many(&self, entries: usize) -> bool {
        entries > self.marks.len() / MANY
    }

    /// The places among `places`, each once, in the order of their names.
    pub(super) fn in_order(&mut self, slots: &[Option<Box<Slot>>], places: &[usize]) -> Vec<usize> {
        let mut are_wanted = vec![false; slots.len()];
        places.iter().for_each(|&place| are_wanted[place] = true);
        let order = self.order.up_to_date(slots);
        order.iter().copied().filter(|&place| are_wanted[place]).collect()
    }

    fn move_mark(&mut self, mark: Mark, place: usize, [old, new]: [u64; 2]) {
        if old == new {
            return;
        }
        let places = &mut self.places[mark as usize];
        if old != Mark::ABSENT {
            places.remove(&(old, place));
        }
        if new != Mark::ABSENT {
            places.insert((new, place));
        }
    }

    fn sort_anew(&mut self, mark: Mark) {
        let numbers = self.marks.iter().enumerate().map(|(place, marks)| (marks.get(mark), place));
        self.places[mark as usize] = numbers.filter(|&(number, _)| number != Mark::ABSENT).collect();
    }
}

// === impl NameOrder ===

impl NameOrder {
    /// There is another entry in `place`, or none.
    fn forget(&mut self, place: usize) {
        if let Some(has) = self.has.get_mut(place) {
            *has = false;
        }
    }

    /// The places of all entries.
    fn up_to_date(&mut self, slots: &[Option<Box<Slot>>]) -> &[usize] {
        self.places.retain(|&place| self.has[place]);
        let known = self.places.len();
        self.has.resize(slots.len(), false);
        for (place, has) in self.has.iter_mut().enumerate() {
            if slots[place].is_some() && !std::mem::replace(has, true) {
                self.places.push(place);
            }
        }
        if self.places.len() > known {
            // Those that were in order are one run for this sort, and are not compared with each other.
            self.places.sort_by(|&one, &other| name(slots, one).cmp(name(slots, other)));
        }
        &self.places
    }
}

fn name(slots: &[Option<Box<Slot>>], place: usize) -> &ResourceId {
    match &slots[place] {
        Some(slot) => &slot.entry.resource,
        None => unreachable!("there is an entry in place {place}"),
    }
}

fn hash(hasher: &RandomState, resource: &ResourceId) -> u32 {
    hasher.hash_one(resource.as_str()) as u32
}
