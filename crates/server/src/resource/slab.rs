//! A store of children under small numbers, in chunks: it never moves what it holds, and gives memory back when a chunk
//! empties. New children go to the lowest chunk with room, so that it stays compact.

use std::collections::BTreeSet;

const CHUNK: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;

/// The place of a child. It is used again after the child has been removed.
pub(crate) type Slot = u32;

#[derive(Clone, Debug)]
pub(crate) struct Slab<T> {
    chunks: Vec<SlabChunk<T>>,
    with_room: BTreeSet<usize>,
    len: usize,
}

#[derive(Clone, Debug)]
struct SlabChunk<T> {
    places: Vec<Option<T>>,
    free: Vec<u16>,
    len: usize,
}

// === impl Slab ===

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { chunks: Vec::new(), with_room: BTreeSet::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        let (chunk, place) = split(slot);
        self.chunks.get(chunk)?.places.get(place)?.as_ref()
    }

    /// The child at `slot`, which must be there.
    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> &T {
        self.get(slot).expect("a slot is forgotten when its child is removed")
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut T {
        let (chunk, place) = split(slot);
        let child = self.chunks.get_mut(chunk).and_then(|chunk| chunk.places.get_mut(place)?.as_mut());
        child.expect("a slot is forgotten when its child is removed")
    }

    pub(crate) fn insert(&mut self, value: T) -> Slot {
        let index = self.with_room.first().copied().unwrap_or_else(|| {
            self.chunks.push(SlabChunk { places: Vec::new(), free: Vec::new(), len: 0 });
            self.with_room.insert(self.chunks.len() - 1);
            self.chunks.len() - 1
        });
        let chunk = &mut self.chunks[index];
        let place = chunk.insert(value);
        if chunk.len == CHUNK {
            self.with_room.remove(&index);
        }
        self.len += 1;
        Slot::try_from(index << CHUNK_BITS | place).expect("fewer than four thousand million children")
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<T> {
        let (index, place) = split(slot);
        let chunk = self.chunks.get_mut(index)?;
        let value = chunk.places.get_mut(place)?.take()?;
        chunk.free.push(u16::try_from(place).expect("a chunk is small"));
        chunk.len -= 1;
        self.len -= 1;
        self.with_room.insert(index);
        if chunk.len == 0 {
            chunk.places = Vec::new();
            chunk.free = Vec::new();
        }
        Some(value)
    }

    /// All of them, by slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Slot, &T)> {
        self.iter_from(0)
    }

    /// Those at `slot` and after it, by slot.
    pub(crate) fn iter_from(&self, slot: Slot) -> impl Iterator<Item = (Slot, &T)> {
        let (first, place) = split(slot);
        self.chunks.iter().enumerate().skip(first).flat_map(move |(index, chunk)| {
            let before = if index == first { place } else { 0 };
            let places = chunk.places.iter().enumerate().skip(before);
            places.filter_map(move |(place, value)| {
                Some(((index << CHUNK_BITS | place) as Slot, value.as_ref()?))
            })
        })
    }
}

// === impl SlabChunk ===

impl<T> SlabChunk<T> {
    fn insert(&mut self, value: T) -> usize {
        self.len += 1;
        if let Some(place) = self.free.pop() {
            self.places[usize::from(place)] = Some(value);
            return place.into();
        }
        // Small resources stay small; from half a chunk on it is taken whole, so that growing leaves nothing over.
        if self.places.len() == CHUNK / 2 {
            self.places.reserve_exact(CHUNK / 2);
        }
        self.places.push(Some(value));
        self.places.len() - 1
    }
}

#[inline]
fn split(slot: Slot) -> (usize, usize) {
    let slot = slot as usize;
    (slot >> CHUNK_BITS, slot & (CHUNK - 1))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keeps_what_a_map_keeps(steps in prop::collection::vec((any::<bool>(), 0usize..3000), 1..3000)) {
            let mut slab = Slab::new();
            let mut model = BTreeMap::new();
            for (number, (insert, which)) in steps.into_iter().enumerate() {
                if insert {
                    let slot = slab.insert(number);
                    prop_assert!(model.insert(slot, number).is_none(), "slot {} was taken", slot);
                } else if let Some((&slot, _)) = model.iter().nth(which % model.len().max(1)) {
                    prop_assert_eq!(slab.remove(slot), model.remove(&slot));
                    prop_assert!(slab.get(slot).is_none());
                }
                prop_assert_eq!(slab.len(), model.len());
            }
            let kept: Vec<_> = slab.iter().map(|(slot, &value)| (slot, value)).collect();
            let after = |from: Slot| kept.iter().copied().filter(move |&(slot, _)| slot >= from);
            for from in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3_000] {
                let from = Slot::try_from(from).unwrap();
                let rest = slab.iter_from(from).map(|(slot, &value)| (slot, value));
                prop_assert!(rest.eq(after(from)), "from {}", from);
            }
            prop_assert_eq!(kept, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_empty_chunk_gives_its_memory_back() {
        let mut slab = Slab::new();
        let slots: Vec<_> = (0..4 * CHUNK).map(|value| slab.insert(value)).collect();
        for &slot in &slots[CHUNK..] {
            slab.remove(slot);
        }
        assert_eq!(slab.chunks.iter().map(|chunk| chunk.places.capacity()).sum::<usize>(), CHUNK);
    }
}
