//! The actions of a follower, and the events that somebody may want to hear of.

use std::sync::Arc;

use crate::election::call::{Call, Failure};
use crate::overrides::Overrides;
use crate::repository::Repository;
use crate::revision::{BadRevision, LastGood, RefusedRevision};

/// An action for the driver of a follower.
#[derive(Clone, PartialEq, Debug)]
pub enum FollowerAction {
    /// Make a call, at one member of etcd, and hand in what came of it with its number.
    Call {
        /// The number.
        id: u64,
        /// The call.
        call: Call,
    },
    /// Watch all keys that begin so, from a revision on, and hand in what is seen with the number.
    Watch {
        /// The number.
        id: u64,
        /// The beginning of the keys.
        prefix: String,
        /// The first revision that is wanted.
        from_revision: u64,
    },
    /// End a watch: nothing that it still sees may be handed in.
    Unwatch {
        /// The number.
        id: u64,
    },
    /// Check a document, and hand in what came of it with its number.
    Check(RevisionCheck),
    /// Put this in force, and keep it for a start without etcd.
    PutInForce {
        /// The templates, with the number of the revision as their version.
        repository: Repository,
        /// The revision, and the document.
        last_good: Box<LastGood>,
    },
    /// Put these overrides in force, and no others.
    Override(Overrides),
}

/// A document that is to be checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RevisionCheck {
    /// The number of the check.
    pub id: u64,
    /// The name of the document, for faults.
    pub name: String,
    /// The document.
    pub text: Arc<str>,
}

/// An event at a follower.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FollowerEvent {
    /// It cannot put that in force: what was stays.
    Refused(RefusedRevision),
    /// The head is below what is in force, as after a restore of an older copy: what is in force stays.
    Behind {
        /// The number at etcd.
        found: u64,
        /// That in force.
        in_force: u64,
    },
    /// There is no head any more: what is in force stays.
    NoHead,
    /// An override cannot be read, and is not in force.
    BadOverride(BadRevision),
    /// Etcd does not answer, or says no.
    Faulty(Failure),
    /// It answers again.
    Healthy,
}
