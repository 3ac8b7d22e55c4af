//! A table by small numbers: a value stands where its number says, and is found without a search.
//!
//! Numbers are given out compactly, by a slab or a list of those that are free, so that there are few gaps. A part of the table
//! that is empty gives its memory back. The order is that of the numbers.

/// Values by small numbers.
#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    chunks: Vec<Chunk<T>>,
    len: usize,
}

#[derive(Clone, Debug)]
struct Chunk<T> {
    places: Vec<Option<T>>,
    len: usize,
}

const CHUNK_BITS: u32 = 6;
const CHUNK: usize = 1 << CHUNK_BITS;

// === impl Table ===

impl<T> Default for Table<T> {
    fn default() -> Table<T> {
        Table { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Table<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (chunk, place) = split(number);
        self.chunks.get(chunk)?.places.get(place)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        let (chunk, place) = split(number);
        self.chunks.get_mut(chunk)?.places.get_mut(place)?.as_mut()
    }

    /// Puts a value where `number` says. Returns the one that stood there.
    pub(crate) fn insert(&mut self, number: u32, value: T) -> Option<T> {
        let (chunk, place) = split(number);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || Chunk { places: Vec::new(), len: 0 });
        }
        let chunk = &mut self.chunks[chunk];
        if chunk.places.len() <= place {
            // A small table stays small; from half a chunk on it is taken whole.
            if place >= CHUNK / 2 {
                chunk.places.reserve_exact(CHUNK - chunk.places.len());
            }
            chunk.places.resize_with(place + 1, || None);
        }
        let before = chunk.places[place].replace(value);
        let fresh = usize::from(before.is_none());
        (chunk.len, self.len) = (chunk.len + fresh, self.len + fresh);
        before
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let (index, place) = split(number);
        let chunk = self.chunks.get_mut(index)?;
        let value = chunk.places.get_mut(place)?.take()?;
        (chunk.len, self.len) = (chunk.len - 1, self.len - 1);
        if chunk.len == 0 {
            chunk.places = Vec::new();
        }
        while self.chunks.last().is_some_and(|chunk| chunk.len == 0) {
            self.chunks.pop();
        }
        Some(value)
    }

    /// All of them with their numbers, in the order of these.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        self.chunks.iter().enumerate().flat_map(|(index, chunk)| {
            let places = chunk.places.iter().enumerate();
            places.filter_map(move |(place, value)| {
                Some(((index << CHUNK_BITS | place) as u32, value.as_ref()?))
            })
        })
    }
}

fn split(number: u32) -> (usize, usize) {
    let number = number as usize;
    (number >> CHUNK_BITS, number & (CHUNK - 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_what_a_map_keeps(steps in prop::collection::vec((any::<bool>(), 0u32..300), 1..1000)) {
            let (mut table, mut model) = (Table::default(), BTreeMap::new());
            for (value, (insert, number)) in steps.into_iter().enumerate() {
                match insert {
                    true => prop_assert_eq!(table.insert(number, value), model.insert(number, value)),
                    false => prop_assert_eq!(table.remove(number), model.remove(&number)),
                }
                prop_assert_eq!(table.get(number), model.get(&number));
                prop_assert_eq!((table.len(), table.is_empty()), (model.len(), model.is_empty()));
            }
            let kept: Vec<_> = table.iter().map(|(number, &value)| (number, value)).collect();
            prop_assert_eq!(kept, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_is_empty_gives_its_memory_back() {
        let mut table = Table::default();
        for number in 0..4 * CHUNK as u32 {
            table.insert(number, number);
        }
        for number in 0..4 * CHUNK as u32 {
            table.remove(number);
        }
        assert!(table.chunks.is_empty());
    }
}
