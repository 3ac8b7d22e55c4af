//! The heads that a follower knows: the one that was seen last, the one in force, and those that it does not follow.

use crate::revision::{RefusedRevision, RevisionHead};

/// The heads, as values.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownHeads {
    /// The head that was seen last.
    pub(super) seen: Option<RevisionHead>,
    in_force: Option<RevisionHead>,
    refused: Option<Refusing>,
    /// The head below the one in force of which was said that it is not followed.
    behind: Option<RevisionHead>,
}

/// A head that is refused.
#[derive(Clone, Debug)]
pub(super) struct Refusing {
    pub(super) head: Option<RevisionHead>,
    pub(super) refused: RefusedRevision,
    /// It could not be read, and perhaps can be later.
    pub(super) is_damaged: bool,
}

// === impl KnownHeads ===

impl KnownHeads {
    /// With one in force, and nothing seen.
    pub(super) fn in_force_is(in_force: RevisionHead) -> KnownHeads {
        KnownHeads { in_force: Some(in_force), ..KnownHeads::default() }
    }

    pub(super) fn in_force(&self) -> Option<RevisionHead> {
        self.in_force
    }

    pub(super) fn refused(&self) -> Option<&RefusedRevision> {
        self.refused.as_ref().map(|refusing| &refusing.refused)
    }

    /// Whether the number in force stands at etcd with another content.
    pub(super) fn is_in_conflict(&self) -> bool {
        let same =
            |seen: RevisionHead| self.in_force.is_some_and(|it| it.number == seen.number && it != seen);
        self.seen.is_some_and(same)
    }

    /// Forgets a head that was damaged: it may have been mended.
    pub(super) fn forget_damage(&mut self) {
        self.refused.take_if(|refusing| refusing.is_damaged);
    }

    /// There is no head. Returns whether there was one.
    pub(super) fn forget_seen(&mut self) -> bool {
        self.refused = None;
        self.seen.take().is_some()
    }

    /// `head` was seen. Returns whether it is refused; another one is not any more.
    pub(super) fn see(&mut self, head: RevisionHead) -> bool {
        self.seen = Some(head);
        let is_refused = self.refused.as_ref().is_some_and(|refusing| refusing.head == Some(head));
        if !is_refused {
            self.refused = None;
        }
        is_refused
    }

    /// The head that was seen is the one in force.
    pub(super) fn catch_up(&mut self) {
        self.behind = None;
    }

    /// `head` is below the one in force. Returns whether that is news.
    pub(super) fn fall_behind(&mut self, head: RevisionHead) -> bool {
        self.behind.replace(head) != Some(head)
    }

    /// A head is refused. Returns whether that is news.
    pub(super) fn refuse(&mut self, refusing: Refusing) -> bool {
        let refused = refusing.refused.clone();
        self.refused.replace(refusing).is_none_or(|before| before.refused != refused)
    }

    /// `head` is in force from here on.
    pub(super) fn put_in_force(&mut self, head: RevisionHead) {
        (self.in_force, self.refused, self.behind) = (Some(head), None, None);
    }
}
