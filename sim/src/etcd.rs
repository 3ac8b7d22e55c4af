//! An etcd that is simulated: keys with revisions, leases that end, transactions, and watches with their history.
//!
//! It is exact where the election leans on it, and harsh where etcd promises little: a lease ends in the very moment at which
//! it may, and its ttl is rounded up to whole seconds, at least two. Messages, and what becomes of them, are the
//! business of whoever uses it: [`Etcd::carry_out`] is the moment at which a call takes effect, if it does.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::call::{Answer, Call, Failure, LeaseId, Stored, Txn, Watched};
use lessor_server::record::EtcdCluster;

/// A simulated etcd.
#[derive(Clone, Debug, Default)]
pub struct Etcd {
    revision: u64,
    /// Nothing of this revision or earlier is remembered, but what there still is.
    compacted: u64,
    keys: BTreeMap<String, Stored>,
    leases: BTreeMap<LeaseId, EtcdLease>,
    granted: i64,
    history: Vec<KeyChange>,
    watches: BTreeMap<u64, KeyWatch>,
}

#[derive(Clone, Copy, Debug)]
struct EtcdLease {
    ttl: Duration,
    ends: Time,
}

/// A change of a key at a revision.
#[derive(Clone, Debug)]
struct KeyChange {
    revision: u64,
    key: String,
    stored: Option<Stored>,
}

#[derive(Clone, Debug)]
struct KeyWatch {
    key: String,
    /// Whether all keys are watched that begin so.
    is_prefix: bool,
    /// The next revision that is to be shown.
    next: u64,
}

/// It is one cluster, which elects its own leader once.
const CLUSTER: EtcdCluster = EtcdCluster { id: 1, term: 2 };
/// The shortest lease that it grants.
const SHORTEST: Duration = Duration::from_secs(2);

// === impl Etcd ===

impl Etcd {
    /// An empty one.
    #[must_use]
    pub fn new() -> Etcd {
        Etcd { revision: 1, ..Etcd::default() }
    }

    /// The last revision.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// A key, if it is there.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Stored> {
        self.keys.get(key)
    }

    /// When the next lease ends, by the clock of etcd.
    #[must_use]
    pub fn next_end(&self) -> Time {
        self.leases.values().map(|lease| lease.ends).min().unwrap_or(Time::MAX)
    }

    /// Ends the leases that end at `now` or before, and their keys with them.
    pub fn advance(&mut self, now: Time) {
        let ended: Vec<LeaseId> =
            self.leases.iter().filter(|(_, lease)| lease.ends <= now).map(|(id, _)| *id).collect();
        for id in ended {
            self.end(id);
        }
    }

    /// Carries out a call, by the clock of etcd.
    ///
    /// # Errors
    /// When there is no such lease, or the transaction is none that etcd would take.
    pub fn carry_out(&mut self, now: Time, call: &Call) -> Result<Answer, Failure> {
        self.advance(now);
        match call {
            Call::GrantLease { ttl } => {
                let seconds = ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0);
                let ttl = Duration::from_secs(seconds).max(SHORTEST);
                self.granted += 1;
                let lease = LeaseId(self.granted);
                self.leases.insert(lease, EtcdLease { ttl, ends: now + ttl });
                Ok(Answer::Granted { lease, ttl })
            }
            Call::KeepAlive { lease } => {
                let Some(lease) = self.leases.get_mut(lease) else {
                    return Ok(Answer::KeptAlive { ttl: Duration::ZERO });
                };
                lease.ends = now + lease.ttl;
                Ok(Answer::KeptAlive { ttl: lease.ttl })
            }
            Call::Revoke { lease } => match self.leases.contains_key(lease) {
                true => {
                    self.end(*lease);
                    Ok(Answer::Revoked)
                }
                false => Err(Failure::LeaseNotFound),
            },
            Call::Campaign { lease, key, value } => self.campaign(*lease, key, value),
            Call::Put { lease, key, value } => match self.leases.contains_key(lease) {
                true => {
                    self.revision += 1;
                    self.set(key, value.as_bytes(), Some(*lease));
                    Ok(Answer::Put)
                }
                false => Err(Failure::LeaseNotFound),
            },
            Call::Read { key } => {
                Ok(Answer::Read { stored: self.keys.get(key).cloned(), revision: self.revision })
            }
            Call::ReadRecord { prefix, after, limit } => {
                let is_wanted = |key: &str| {
                    key.starts_with(prefix.as_str())
                        && after.as_ref().is_none_or(|after| key.as_bytes() > after.as_slice())
                };
                let mut stored: Vec<Stored> = self
                    .keys
                    .iter()
                    .filter(|(key, _)| is_wanted(key))
                    .map(|(_, stored)| stored.clone())
                    .collect();
                let more = stored.len() > *limit;
                stored.truncate(*limit);
                Ok(Answer::Record { stored, more, cluster: Some(CLUSTER) })
            }
            Call::Write(txn) => self.write(txn),
        }
    }

    /// Deletes a key by hand.
    pub fn delete(&mut self, key: &str) {
        if self.keys.contains_key(key) {
            self.revision += 1;
            self.remove(key);
        }
    }

    /// Puts a key by hand.
    pub fn put(&mut self, key: &str, value: &str) {
        self.revision += 1;
        self.set(key, value.as_bytes(), None);
    }

    /// The same with a value that need not be text.
    pub fn put_bytes(&mut self, key: &str, value: &[u8]) {
        self.revision += 1;
        self.set(key, value, None);
    }

    /// The number of changes that it remembers.
    #[must_use]
    pub fn remembers(&self) -> usize {
        self.history.len()
    }

    /// Forgets what has been up to `revision`, but what there still is.
    pub fn compact(&mut self, revision: u64) {
        self.compacted = self.compacted.max(revision.min(self.revision));
        self.history.retain(|change| change.revision > self.compacted);
    }

    /// Starts again: leases last their whole ttl from here on, and nobody watches.
    pub fn restart(&mut self, now: Time) {
        self.leases.values_mut().for_each(|lease| lease.ends = now + lease.ttl);
        self.watches.clear();
    }

    /// This is a copy that takes the place of `other`: leases that it grants are none of those that the other has granted.
    pub fn go_on_from(&mut self, other: &Etcd) {
        self.granted = self.granted.max(other.granted);
    }

    /// Begins to watch, under a number of the caller's.
    pub fn watch(&mut self, id: u64, key: &str, from_revision: u64) {
        self.watches.insert(id, KeyWatch { key: key.to_owned(), is_prefix: false, next: from_revision });
    }

    /// The same of all keys that begin so.
    pub fn watch_prefix(&mut self, id: u64, prefix: &str, from_revision: u64) {
        self.watches.insert(id, KeyWatch { key: prefix.to_owned(), is_prefix: true, next: from_revision });
    }

    /// Ends a watch.
    pub fn unwatch(&mut self, id: u64) {
        self.watches.remove(&id);
    }

    /// Returns what there is to be seen on a watch since the last time; nothing after [`Watched::Compacted`].
    pub fn watched(&mut self, id: u64) -> Vec<Watched> {
        let Some(watch) = self.watches.get_mut(&id) else { return Vec::new() };
        if watch.next <= self.compacted {
            self.watches.remove(&id);
            return vec![Watched::Compacted];
        }
        let from = watch.next;
        watch.next = watch.next.max(self.revision + 1);
        let is_seen = |change: &&KeyChange| match watch.is_prefix {
            true => change.key.starts_with(&watch.key),
            false => change.key == watch.key,
        };
        let changes = self.history.iter().filter(|change| change.revision >= from).filter(is_seen);
        changes.map(|change| change.stored.clone().map_or(Watched::Deleted, Watched::Put)).collect()
    }

    fn campaign(&mut self, lease: LeaseId, key: &str, value: &str) -> Result<Answer, Failure> {
        if let Some(by) = self.keys.get(key) {
            return Ok(Answer::Held { by: by.clone(), revision: self.revision });
        }
        if !self.leases.contains_key(&lease) {
            return Err(Failure::LeaseNotFound);
        }
        self.revision += 1;
        self.set(key, value.as_bytes(), Some(lease));
        Ok(Answer::Won { revision: self.revision })
    }

    fn write(&mut self, txn: &Txn) -> Result<Answer, Failure> {
        let mut written: Vec<&str> = txn.puts.iter().map(|(key, _)| key.as_str()).collect();
        written.extend(txn.deletes.iter().map(String::as_str));
        if written.len() > 128 {
            return Err(Failure::Refused("too many operations in txn request".to_owned()));
        }
        written.sort_unstable();
        if written.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Failure::Refused("duplicate key given in txn request".to_owned()));
        }
        let guard = self.keys.get(&txn.guard.key);
        let order = self.keys.get(&txn.order.key);
        let holds = guard.map_or(0, |stored| stored.create_revision) == txn.guard.create_revision
            && order.map_or(0, |stored| stored.mod_revision) == txn.order.mod_revision;
        if !holds {
            return Ok(Answer::Refused { guard: guard.cloned(), order: order.cloned() });
        }
        self.revision += 1;
        txn.puts.iter().for_each(|(key, value)| self.set(key, value.as_bytes(), None));
        txn.deletes.iter().for_each(|key| self.remove(key));
        Ok(Answer::Written { revision: self.revision })
    }

    fn end(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
        let keys: Vec<String> = self
            .keys
            .iter()
            .filter(|(_, stored)| stored.lease == Some(lease))
            .map(|(key, _)| key.clone())
            .collect();
        if !keys.is_empty() {
            self.revision += 1;
        }
        keys.iter().for_each(|key| self.remove(key));
    }

    fn set(&mut self, key: &str, value: &[u8], lease: Option<LeaseId>) {
        let stored = Stored {
            key: key.into(),
            value: value.into(),
            create_revision: self.keys.get(key).map_or(self.revision, |stored| stored.create_revision),
            mod_revision: self.revision,
            lease,
        };
        self.keys.insert(key.to_owned(), stored.clone());
        self.history.push(KeyChange { revision: self.revision, key: key.to_owned(), stored: Some(stored) });
    }

    fn remove(&mut self, key: &str) {
        if self.keys.remove(key).is_some() {
            self.history.push(KeyChange { revision: self.revision, key: key.to_owned(), stored: None });
        }
    }
}

#[cfg(test)]
mod tests;
