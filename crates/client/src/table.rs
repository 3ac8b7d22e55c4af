//! Records by the hash of their names, each in the place that its hash says or in one soon after it.
//!
//! To look for one of a million records is to wait for memory. Where tags or indices lie apart from the records, as in most
//! tables, that is two waits, one after the other: what is apart does not stay in the cache either. Here it is one, and
//! sometimes a neighbour. From four to six places in nine are taken, or fewer after many were given back.
//!
//! A record does not keep its hash: whoever moves records says how it is found.

use std::hash::RandomState;

/// The least number of places in a table that is not empty.
const LEAST: usize = 8;

/// Records in places.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    /// Between the place that the hash of a record says and the one where it is, all are taken. At least one is free, or
    /// there are none.
    places: Vec<Option<T>>,
    len: usize,
}

/// A hasher of names, which others may choose: where a record lies they do not know, and nothing goes by that.
#[expect(
    clippy::disallowed_methods,
    reason = "it is drawn against those who choose names; nothing depends on it"
)]
pub(crate) fn hasher() -> RandomState {
    RandomState::new()
}

// === impl Table ===

impl<T> Table<T> {
    /// Without any place.
    pub(crate) const fn new() -> Table<T> {
        Table { places: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// In no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// In no order.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.places.iter_mut().flatten()
    }

    /// Where the record is of this hash that `is_it`.
    #[inline]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        let mut place = self.home(hash);
        while let Some(record) = self.places.get(place)? {
            if is_it(record) {
                return Some(place);
            }
            place = self.after(place);
        }
        None
    }

    /// The record in a place that was found.
    #[inline]
    pub(crate) fn at(&mut self, place: usize) -> &mut T {
        self.places[place].as_mut().unwrap_or_else(|| unreachable!("a record was found at {place}"))
    }

    /// The same to be read.
    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        self.places.get(place)?.as_ref()
    }

    /// Adds a record of this hash that is not in it; `hash_of` says those of others. Places that were found before are others
    /// then.
    pub(crate) fn insert(&mut self, hash: u32, record: T, hash_of: impl Fn(&T) -> u32) -> &mut T {
        if 3 * (self.len + 1) > 2 * self.places.len() {
            self.resize((self.places.len() * 3 / 2).max(LEAST), hash_of);
        }
        self.put(hash, record)
    }

    /// Takes out what is in a place, and gives back memory if few are left. Places that were found before may be others then.
    pub(crate) fn take_out(&mut self, place: usize, hash_of: impl Fn(&T) -> u32) -> Option<T> {
        let gone = self.remove(place, &hash_of);
        self.shrink(hash_of);
        gone
    }

    /// Takes out what is in a place. Places that were found before may be others then.
    fn remove(&mut self, mut free: usize, hash_of: impl Fn(&T) -> u32) -> Option<T> {
        let gone = self.places.get_mut(free)?.take()?;
        self.len -= 1;
        let mut place = self.after(free);
        // Those behind it move up, unless they would come to lie before the place that their hash says.
        while let Some(record) = &self.places[place] {
            if self.way(self.home(hash_of(record)), place) >= self.way(free, place) {
                self.places.swap(free, place);
                free = place;
            }
            place = self.after(place);
        }
        Some(gone)
    }

    /// Takes out all that are not to be kept, and gives back memory if few are left. May ask twice for the same.
    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(&mut T) -> bool, hash_of: impl Fn(&T) -> u32) {
        for place in 0..self.places.len() {
            // What moves up to this place is looked at here.
            while self.places[place].as_mut().is_some_and(|record| !is_kept(record)) {
                self.remove(place, &hash_of);
            }
        }
        self.shrink(hash_of);
    }

    /// Gives back memory if few are left.
    fn shrink(&mut self, hash_of: impl Fn(&T) -> u32) {
        let least = if self.len > 0 { (2 * self.len).max(LEAST) } else { 0 };
        if 4 * self.len < self.places.len() && least < self.places.len() {
            self.resize(least, hash_of);
        }
    }

    /// Moves all records to so many places.
    fn resize(&mut self, places: usize, hash_of: impl Fn(&T) -> u32) {
        let mut free = Vec::new();
        free.resize_with(places, || None);
        let taken = std::mem::replace(&mut self.places, free);
        self.len = 0;
        for record in taken.into_iter().flatten() {
            self.put(hash_of(&record), record);
        }
    }

    /// Puts a record of this hash into the first free place, of which there is one.
    fn put(&mut self, hash: u32, record: T) -> &mut T {
        let mut place = self.home(hash);
        while self.places[place].is_some() {
            place = self.after(place);
        }
        self.len += 1;
        self.places[place].insert(record)
    }

    /// The place that a hash says: it is as far from the first as the hash is from 0.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        ((u64::from(hash) * self.places.len() as u64) >> 32) as usize
    }

    /// The next place; that after the last is the first.
    #[inline]
    fn after(&self, place: usize) -> usize {
        if place + 1 < self.places.len() { place + 1 } else { 0 }
    }

    /// The number of places by which `to` is behind `from`.
    fn way(&self, from: usize, to: usize) -> usize {
        if from <= to { to - from } else { to + self.places.len() - from }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Its name and its value. Hashes of different names may be equal.
    struct Pair(u32, u32);

    /// Half of all lie close together at the end, so that what is behind it is at the beginning.
    fn hash_of(name: u32) -> u32 {
        if name.is_multiple_of(2) { u32::MAX - name / 8 } else { name.wrapping_mul(0x9e37_79b9) }
    }

    fn hash(pair: &Pair) -> u32 {
        hash_of(pair.0)
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Set(u32, u32),
        Remove(u32),
        /// Keeps names that this does not divide.
        Retain(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            10 => (0..150u32, any::<u32>()).prop_map(|(name, value)| Step::Set(name, value)),
            3 => (0..150u32).prop_map(Step::Remove),
            1 => (1..9u32).prop_map(Step::Retain),
        ]
    }

    fn find(table: &Table<Pair>, name: u32) -> Option<usize> {
        table.find(hash_of(name), |pair| pair.0 == name)
    }

    fn go(table: &mut Table<Pair>, step: Step) {
        match step {
            Step::Set(name, value) => {
                let pair = match find(table, name) {
                    Some(place) => table.at(place),
                    None => table.insert(hash_of(name), Pair(name, 0), hash),
                };
                pair.1 = value;
            }
            Step::Remove(name) => {
                let removed = find(table, name).and_then(|place| table.take_out(place, hash));
                assert!(removed.is_none_or(|pair| pair.0 == name));
            }
            Step::Retain(of) => table.retain(|pair| !pair.0.is_multiple_of(of), hash),
        }
    }

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in prop::collection::vec(step(), 1..300)) {
            let (mut table, mut map) = (Table::new(), BTreeMap::new());
            for step in steps {
                go(&mut table, step);
                match step {
                    Step::Set(name, value) => _ = map.insert(name, value),
                    Step::Remove(name) => _ = map.remove(&name),
                    Step::Retain(of) => map.retain(|name, _| !name.is_multiple_of(of)),
                }
                prop_assert_eq!(table.iter().map(|pair| (pair.0, pair.1)).collect::<BTreeMap<_, _>>(), map.clone());
                prop_assert_eq!(table.len(), map.len());
                for name in 0..150 {
                    let found = find(&table, name).map(|place| table.at(place).1);
                    prop_assert_eq!(found, map.get(&name).copied());
                }
            }
        }
    }

    #[test]
    fn what_is_given_back_takes_no_memory() {
        let mut table = Table::new();
        (0..100_000).for_each(|name| _ = table.insert(hash_of(2 * name + 1), Pair(2 * name + 1, 0), hash));
        assert!(table.places.len() < 100_000 * 9 / 4);
        table.retain(|pair| pair.0 < 200, hash);
        assert_eq!((table.len(), table.places.len()), (100, 200));
        table.retain(|_| false, hash);
        assert_eq!((table.len(), table.places.capacity()), (0, 0));
    }
}
