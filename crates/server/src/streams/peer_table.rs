//! A table by stream: what belongs to a stream stands where its number says, and is found without a search.

use super::peer::Peer;
use crate::table::Table;

/// The values that belong to streams. A stream that has ended is not taken for the one that stands in its place.
#[derive(Clone, Debug)]
pub struct PeerTable<T>(Table<(Peer, T)>);

// === impl PeerTable ===

impl<T> Default for PeerTable<T> {
    fn default() -> PeerTable<T> {
        PeerTable(Table::default())
    }
}

impl<T> PeerTable<T> {
    /// The number of streams to which something belongs.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing belongs to any stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    /// The value that belongs to `peer`.
    #[must_use]
    pub fn get(&self, peer: Peer) -> Option<&T> {
        self.0.get(peer.place()).filter(|(of, _)| *of == peer).map(|(_, value)| value)
    }

    /// The same, to change it.
    #[must_use]
    pub fn get_mut(&mut self, peer: Peer) -> Option<&mut T> {
        self.0.get_mut(peer.place()).filter(|(of, _)| *of == peer).map(|(_, value)| value)
    }

    /// Whether something belongs to `peer`.
    #[must_use]
    pub fn contains(&self, peer: Peer) -> bool {
        self.get(peer).is_some()
    }

    /// `value` belongs to `peer` from here on, and nothing to an earlier stream in its place.
    pub fn insert(&mut self, peer: Peer, value: T) {
        self.0.insert(peer.place(), (peer, value));
    }

    /// Nothing belongs to `peer` any more. Returns what did.
    pub fn remove(&mut self, peer: Peer) -> Option<T> {
        self.get(peer)?;
        self.0.remove(peer.place()).map(|(_, value)| value)
    }

    /// All of them, in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Peer, &T)> {
        self.0.iter().map(|(_, (peer, value))| (*peer, value))
    }
}
