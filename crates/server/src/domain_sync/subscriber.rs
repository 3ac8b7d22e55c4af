//! A client that tells and is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use lessor_proto::Time;
use lessor_proto::message::DomainEntry;

use super::shared::Origin;

/// With more entries than this about one domain, everything is told instead.
const MOST_PENDING: usize = 256;

/// A client that tells and is told, by the stream on which it listens.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) origin: Origin,
    /// Its last report, and when it came.
    pub(super) heard: u64,
    pub(super) heard_at: Time,
    /// It was told nothing yet.
    pub(super) begins: bool,
    /// Which domains have become hot, or not, and are still to be told.
    pub(super) heat: BTreeMap<Arc<str>, bool>,
    /// How much of what has become hot or not is told, or in `heat`; nothing before it was told all that are hot.
    pub(super) heat_seen: Option<u64>,
    /// What others did since it was last told.
    pub(super) pending: BTreeMap<Arc<str>, Pending>,
    /// Whether it serves a hot domain, or did a short while ago.
    pub(super) takes_part: bool,
    /// How many members it was told that there are.
    pub(super) told_members: usize,
    /// There is something to tell, and its stream took nothing.
    pub(super) is_put_off: bool,
    /// When it is to be told something.
    pub(super) due: Option<Time>,
}

/// What is to be told of one domain.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Pending {
    /// Everything that others did and that still counts.
    All,
    /// These.
    Some(Vec<DomainEntry>),
}

// === impl Subscriber ===

impl Subscriber {
    pub(super) fn new(now: Time, origin: Origin) -> Subscriber {
        Subscriber {
            origin,
            heard: 0,
            heard_at: now,
            begins: true,
            heat: BTreeMap::new(),
            heat_seen: None,
            pending: BTreeMap::new(),
            takes_part: false,
            told_members: 0,
            is_put_off: false,
            due: None,
        }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.heat.is_empty() || !self.pending.is_empty()
    }

    pub(super) fn owe(&mut self, name: &Arc<str>, entries: &[DomainEntry]) {
        let pending = self.pending.entry(Arc::clone(name)).or_insert_with(|| Pending::Some(Vec::new()));
        let Pending::Some(owed) = pending else { return };
        match owed.len() + entries.len() > MOST_PENDING {
            true => *pending = Pending::All,
            false => owed.extend_from_slice(entries),
        }
    }

    pub(super) fn owe_all(&mut self, name: &Arc<str>) {
        self.pending.insert(Arc::clone(name), Pending::All);
    }

    /// Other policies are in force: what is owed was counted in the tiers of those before, so everything is told instead.
    pub(super) fn owe_by_others(&mut self) {
        self.pending.values_mut().for_each(|pending| *pending = Pending::All);
    }
}
