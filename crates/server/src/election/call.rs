//! Single calls of etcd, what it answers, and what can go wrong with them.
//!
//! A call that failed with [`Failure::Timeout`] or [`Failure::Unavailable`] may have been carried out, or may be yet: the
//! candidate never takes it that it was not.

use std::time::Duration;

use crate::record::EtcdCluster;

/// The number of a lease of etcd.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LeaseId(pub i64);

/// An action for the driver of a candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// Make a call, at one member of etcd, and hand in what came of it with its number.
    Call {
        /// The number.
        id: u64,
        /// The call.
        call: Call,
    },
    /// Watch a key from a revision on, and hand in what is seen with the number.
    Watch {
        /// The number.
        id: u64,
        /// The key.
        key: String,
        /// The first revision that is wanted.
        from_revision: u64,
    },
    /// End a watch: nothing that it still sees may be handed in.
    Unwatch {
        /// The number.
        id: u64,
    },
}

/// A call of etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// A lease of that length, or whatever etcd makes of it.
    GrantLease {
        /// Whole seconds.
        ttl: Duration,
    },
    /// Renews a lease.
    KeepAlive {
        /// Which.
        lease: LeaseId,
    },
    /// In one transaction: puts the key with the lease if there is no such key, or else reads it.
    Campaign {
        /// The lease that the key ends with.
        lease: LeaseId,
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Puts the key with the lease, whether it is there or not.
    Put {
        /// The lease that the key ends with.
        lease: LeaseId,
        /// The key.
        key: String,
        /// Its value.
        value: String,
    },
    /// Reads a key, linearizably.
    Read {
        /// The key.
        key: String,
    },
    /// Reads keys that begin with `prefix` in their order, linearizably.
    ReadRecord {
        /// The beginning of the keys.
        prefix: String,
        /// Only those behind this one.
        after: Option<Vec<u8>>,
        /// The most keys to read.
        limit: usize,
    },
    /// Writes into the record.
    Write(Txn),
    /// Ends a lease, and deletes the keys that have it.
    Revoke {
        /// Which.
        lease: LeaseId,
    },
}

/// Puts and deletes, all of them or none: if the guard holds and the order does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Txn {
    /// The guard: only the task that put the leader's key may write, for as long as that key is there.
    pub guard: Guard,
    /// Behind which write this one comes.
    pub order: Order,
    /// Keys and values, each key once.
    pub puts: Vec<(String, String)>,
    /// Keys that are in no put.
    pub deletes: Vec<String>,
}

/// A key was created at that revision, and has not been deleted since.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// The key.
    pub key: String,
    /// The revision.
    pub create_revision: u64,
}

/// A key was last put at that revision; 0: there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// The key.
    pub key: String,
    /// The revision.
    pub mod_revision: u64,
}

/// A key and what etcd knows of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: Vec<u8>,
    /// When it was created.
    pub create_revision: u64,
    /// When it was last put.
    pub mod_revision: u64,
    /// The lease that it ends with.
    pub lease: Option<LeaseId>,
}

/// An answer of etcd.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// [`Call::GrantLease`].
    Granted {
        /// Its number.
        lease: LeaseId,
        /// For how long.
        ttl: Duration,
    },
    /// [`Call::KeepAlive`].
    KeptAlive {
        /// For how long from the moment at which etcd did so; zero: there is no such lease.
        ttl: Duration,
    },
    /// [`Call::Campaign`]: the key was put.
    Won {
        /// By the revision at which that was.
        revision: u64,
    },
    /// [`Call::Campaign`]: there is such a key.
    Held {
        /// The key.
        by: Stored,
        /// The revision at which it was read.
        revision: u64,
    },
    /// [`Call::Put`].
    Put,
    /// [`Call::Read`].
    Read {
        /// The key, if there is one.
        stored: Option<Stored>,
        /// The revision at which it was read.
        revision: u64,
    },
    /// [`Call::ReadRecord`].
    Record {
        /// The keys.
        stored: Vec<Stored>,
        /// Whether there are more.
        more: bool,
        /// The etcd that has them; absent: it does not say.
        cluster: Option<EtcdCluster>,
    },
    /// [`Call::Write`].
    Written {
        /// The revision of all that was put.
        revision: u64,
    },
    /// [`Call::Write`]: the guard or the order did not hold, and nothing was written.
    Refused {
        /// The key of the guard.
        guard: Option<Stored>,
        /// The key of the order.
        order: Option<Stored>,
    },
    /// [`Call::Revoke`].
    Revoked,
}

/// Why a call got no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    /// The member could not be reached, broke off, or says that it cannot serve.
    #[error("no answer from etcd: {0}")]
    Unavailable(String),
    /// No answer in time.
    #[error("no answer from etcd in time")]
    Timeout,
    /// The lease has ended, or never was.
    #[error("etcd knows no such lease")]
    LeaseNotFound,
    /// Etcd says no, and will have done nothing.
    #[error("refused by etcd: {0}")]
    Refused(String),
}

/// An observation on a watch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Watched {
    /// The key was put.
    Put(Stored),
    /// The key was deleted, or has ended with its lease.
    Deleted,
    /// Revisions from the wanted one on are gone; nothing more will be seen.
    Compacted,
    /// Nothing more will be seen.
    Ended(Failure),
}

/// Kinds of calls that fail together: where etcd lacks a quorum, or room, or a permission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Lease,
    Read,
    Write,
}

// === impl Call ===

impl Call {
    pub(super) fn class(&self) -> Class {
        match self {
            Call::GrantLease { .. } | Call::KeepAlive { .. } | Call::Revoke { .. } => Class::Lease,
            Call::Read { .. } | Call::ReadRecord { .. } => Class::Read,
            Call::Campaign { .. } | Call::Put { .. } | Call::Write(_) => Class::Write,
        }
    }
}

// === impl Failure ===

impl Failure {
    /// An answer to another question.
    pub(super) fn unexpected(answer: &Answer) -> Failure {
        Failure::Unavailable(format!("it answered something else: {answer:?}"))
    }
}
