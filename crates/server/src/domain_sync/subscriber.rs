//! A client that tells and is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lessor_proto::Time;
use lessor_proto::message::{Census, HolderKind};

use super::origin::DeltaOrigin;

/// A client that tells and is told, by the stream on which it listens.
#[derive(Clone, Debug)]
pub(super) struct Subscriber {
    pub(super) origin: DeltaOrigin,
    /// Its last report, and when it came.
    pub(super) heard: u64,
    pub(super) heard_at: Time,
    /// It was told nothing yet, or begins anew.
    pub(super) begins: bool,
    /// The version of the policies by which it said something last that was passed over, as others were in force here.
    pub(super) passed_over: Option<u32>,
    /// Its knowledge of which domains are hot.
    pub(super) hot: HotKnowledge,
    /// Of which domains it is to be told what others did.
    pub(super) pending: BTreeMap<Arc<str>, PendingUpdate>,
    /// The hot domains that it serves.
    pub(super) serves: BTreeSet<Arc<str>>,
    /// Those for whom it stands.
    pub(super) census: Census,
    /// The number of members that it was told last.
    pub(super) told_members: u32,
    /// There is something to tell, and its stream took nothing.
    pub(super) is_put_off: bool,
    /// When it is to be told something.
    pub(super) due: Option<Time>,
}

/// The knowledge of a subscriber of which domains are hot.
#[derive(Clone, Debug, Default)]
pub(super) struct HotKnowledge {
    /// Which have become hot, or not, and are still to be told.
    pub(super) changes: BTreeMap<Arc<str>, bool>,
    /// The number of changes in the log that it was told, or that are in `changes`; absent before it was told all that are hot.
    pub(super) seen: Option<u64>,
}

/// The news of one domain that is still to be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PendingUpdate {
    /// Everything that others did and that still counts.
    All,
    /// The hits that it was not told yet.
    Rest,
}

// === impl Subscriber ===

impl Subscriber {
    pub(super) fn new(now: Time, origin: DeltaOrigin) -> Subscriber {
        Subscriber {
            origin,
            heard: 0,
            heard_at: now,
            begins: true,
            passed_over: None,
            hot: HotKnowledge::default(),
            pending: BTreeMap::new(),
            serves: BTreeSet::new(),
            census: Census::default(),
            told_members: 0,
            is_put_off: false,
            due: None,
        }
    }

    /// It says all anew, and is told all anew, as if its stream had just begun.
    pub(super) fn begin_anew(&mut self) {
        (self.hot.seen, self.passed_over) = (None, None);
        self.pending = self.serves.iter().map(|name| (Arc::clone(name), PendingUpdate::All)).collect();
    }

    pub(super) fn is_node(&self) -> bool {
        matches!(self.origin, DeltaOrigin::Below(HolderKind::Node, ..))
    }

    pub(super) fn has_news(&self) -> bool {
        !self.hot.changes.is_empty() || !self.pending.is_empty()
    }

    /// It is to be told what others did with a domain since it was last told.
    pub(super) fn owe(&mut self, name: &Arc<str>) {
        self.pending.entry(Arc::clone(name)).or_insert(PendingUpdate::Rest);
    }

    /// It is to be told everything that others did with a domain that it serves.
    pub(super) fn owe_all(&mut self, name: &Arc<str>) {
        self.pending.insert(Arc::clone(name), PendingUpdate::All);
        self.serves.insert(Arc::clone(name));
    }
}
