//! The store of revisions at etcd, as operators reach it: what stands there, and one compare-and-swap that changes it.

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{
    Client, Compare, CompareOp, Error, GetOptions, GetResponse, PutOptions, SortOrder, SortTarget, Txn, TxnOp,
};

use super::calls::failure;
use super::endpoints::{Endpoint, Endpoints};
use super::fault::ElectionStartError;
use super::options::EtcdOptions;
use crate::election::call::Failure;
use crate::overrides::{Override, Overrides};
use crate::revision::{
    BadRevision, Digest, PushFreeze, Revision, RevisionDocument, RevisionHead, RevisionKeys, TaskReport,
    pack, unpack,
};

/// The store of revisions, and of the overrides beside them.
pub struct RevisionStore {
    endpoints: Vec<Arc<Endpoint>>,
    keys: RevisionKeys,
}

/// A fault of the store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreFault {
    /// No member does what is asked of it.
    #[error(transparent)]
    Etcd(#[from] Failure),
    /// Something there cannot be read.
    #[error(transparent)]
    Bad(#[from] BadRevision),
}

/// The head, and when it was put there last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredHead {
    /// The head; absent: there is none.
    pub head: Option<RevisionHead>,
    /// The revision of etcd at which it was put; 0: there is none.
    pub mod_revision: i64,
}

/// The outcome of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CommitOutcome {
    /// It is in force from here on.
    Committed,
    /// Somebody else was faster.
    Faster,
    /// Nobody may push.
    Frozen(PushFreeze),
}

/// The outcome of putting an override there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverrideOutcome {
    /// It is there, and tasks put it in force as they read it.
    Put,
    /// There are as many as may be.
    Full,
}

/// The outcome of a sweep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Swept {
    /// The revisions that were removed.
    pub revisions: usize,
    /// The documents that belonged to no revision any more, or never had.
    pub documents: usize,
}

/// The time that a call may take at one member.
const PATIENCE: Duration = Duration::from_secs(5);
/// The most keys that are deleted in one transaction: etcd takes 128 operations.
const BATCH: usize = 100;
/// Overrides that are read: one more than may be.
const MOST_READ: i64 = Overrides::MOST as i64 + 1;

impl fmt::Debug for RevisionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevisionStore").field("keys", &self.keys).finish_non_exhaustive()
    }
}

// === impl RevisionStore ===

impl RevisionStore {
    /// The store with those keys.
    ///
    /// # Errors
    /// When the options cannot work.
    pub fn new(options: EtcdOptions, keys: RevisionKeys) -> Result<RevisionStore, ElectionStartError> {
        Ok(RevisionStore::at(&Endpoints::new(options, PATIENCE)?, keys))
    }

    /// The same at members that somebody speaks to already.
    pub(super) fn at(endpoints: &Endpoints, keys: RevisionKeys) -> RevisionStore {
        RevisionStore { endpoints: endpoints.all().to_vec(), keys }
    }

    /// Its keys.
    #[must_use]
    pub fn keys(&self) -> &RevisionKeys {
        &self.keys
    }

    /// The head.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn head(&self) -> Result<StoredHead, StoreFault> {
        let key = self.keys.head();
        let got = self.get(&key, None).await?;
        let Some(stored) = got.kvs().first() else { return Ok(StoredHead { head: None, mod_revision: 0 }) };
        let head = RevisionHead::decode(&key, stored.value())?;
        Ok(StoredHead { head: Some(head), mod_revision: stored.mod_revision() })
    }

    /// The revision of that number, and its digest, if it is there.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn revision(&self, number: u64) -> Result<Option<(Revision, Digest)>, StoreFault> {
        let key = self.keys.revision(number);
        let got = self.get(&key, None).await?;
        Ok(got.kvs().first().map(|stored| Revision::decode(&key, stored.value())).transpose()?)
    }

    /// The last revisions, the newest first, each with its digest or its fault.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn revisions(
        &self,
        most: usize,
    ) -> Result<Vec<Result<(Revision, Digest), BadRevision>>, StoreFault> {
        let options = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Key, SortOrder::Descend)
            .with_limit(i64::try_from(most).unwrap_or(i64::MAX));
        let got = self.get(&self.keys.revisions(), Some(options)).await?;
        let decode = |stored: &etcd_client::KeyValue| {
            Revision::decode(&String::from_utf8_lossy(stored.key()), stored.value())
        };
        Ok(got.kvs().iter().map(decode).collect())
    }

    /// The text of a document.
    ///
    /// # Errors
    /// When it is not there, or cannot be read.
    pub async fn document(&self, document: &RevisionDocument) -> Result<String, StoreFault> {
        let key = self.keys.blob(&document.blob);
        let got = self.get(&key, None).await?;
        let stored = got.kvs().first();
        let stored =
            stored.ok_or_else(|| BadRevision::missing(&key, "a document that the revision names"))?;
        Ok(unpack(&key, document, stored.value())?)
    }

    /// The reports of all tasks, and the faults of those that cannot be read.
    ///
    /// # Errors
    /// When none can be read.
    pub async fn tasks(&self) -> Result<(Vec<TaskReport>, Vec<BadRevision>), StoreFault> {
        let got = self.get(&self.keys.tasks(), Some(GetOptions::new().with_prefix())).await?;
        let (mut reports, mut faults) = (Vec::new(), Vec::new());
        for stored in got.kvs() {
            match TaskReport::decode(&String::from_utf8_lossy(stored.key()), stored.value()) {
                Ok(report) => reports.push(report),
                Err(fault) => faults.push(fault),
            }
        }
        Ok((reports, faults))
    }

    /// Puts documents there that are not.
    ///
    /// # Errors
    /// When one is too large, or cannot be put.
    pub async fn put_documents(&self, texts: &[(RevisionDocument, String)]) -> Result<(), StoreFault> {
        for (document, text) in texts {
            let key = self.keys.blob(&document.blob);
            let packed = pack(&key, text)?;
            let (key, packed) = (key.as_str(), &packed);
            self.with(|mut client| async move {
                let absent = Compare::create_revision(key, CompareOp::Equal, 0);
                let put = TxnOp::put(key, packed.clone(), None);
                client.txn(Txn::new().when([absent]).and_then([put])).await
            })
            .await?;
        }
        Ok(())
    }

    /// Puts a draft there that ends after so long.
    ///
    /// # Errors
    /// When it is not valid, or cannot be put.
    pub async fn put_draft(&self, id: &str, revision: &Revision, ttl: Duration) -> Result<(), StoreFault> {
        let key = self.keys.draft(id);
        let text = revision.encode(&key)?;
        self.put_for(&key, &text, ttl).await
    }

    /// Removes a draft.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn remove_draft(&self, id: &str) -> Result<(), StoreFault> {
        self.delete(&self.keys.draft(id)).await.map(|_| ())
    }

    /// Puts a revision in force in the place of the head that was read, if nothing has moved it since and all its documents
    /// are there.
    ///
    /// # Errors
    /// When it is not valid, or etcd does not answer: then it may be in force all the same.
    pub async fn commit(&self, revision: &Revision, base: &StoredHead) -> Result<CommitOutcome, StoreFault> {
        let (head_key, key, freeze) =
            (self.keys.head(), self.keys.revision(revision.number), self.keys.freeze());
        let text = revision.encode(&key)?;
        let head = revision.head(Digest::of(&text));
        let mut when = vec![
            Compare::mod_revision(head_key.as_str(), CompareOp::Equal, base.mod_revision),
            Compare::create_revision(key.as_str(), CompareOp::Equal, 0),
            Compare::create_revision(freeze.as_str(), CompareOp::Equal, 0),
        ];
        // Somebody may be sweeping what belongs to no revision.
        let blobs = revision.documents.iter().map(|document| self.keys.blob(&document.blob));
        when.extend(blobs.map(|blob| Compare::create_revision(blob, CompareOp::Greater, 0)));
        let (key, head_key, text, when) = (key.as_str(), head_key.as_str(), text.as_str(), &when);
        let committed = self
            .with(|mut client| async move {
                let puts = [TxnOp::put(key, text, None), TxnOp::put(head_key, head.encode(), None)];
                Ok(client.txn(Txn::new().when(when.clone()).and_then(puts)).await?.succeeded())
            })
            .await?;
        if committed || self.head().await?.head == Some(head) {
            // Where a member had done it and could not say so, the next has refused it.
            return Ok(CommitOutcome::Committed);
        }
        Ok(match self.freeze().await? {
            Some(freeze) => CommitOutcome::Frozen(freeze),
            None => CommitOutcome::Faster,
        })
    }

    /// The freeze, if there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn freeze(&self) -> Result<Option<PushFreeze>, StoreFault> {
        let key = self.keys.freeze();
        let got = self.get(&key, None).await?;
        Ok(got.kvs().first().map(|stored| PushFreeze::decode(&key, stored.value())).transpose()?)
    }

    /// Lets nobody push for so long.
    ///
    /// # Errors
    /// When that cannot be put there.
    pub async fn set_freeze(&self, freeze: &PushFreeze, time: Duration) -> Result<(), StoreFault> {
        self.put_for(&self.keys.freeze(), &freeze.encode(), time).await
    }

    /// Lets everybody push again. Whether somebody had forbidden it.
    ///
    /// # Errors
    /// When that cannot be removed.
    pub async fn lift_freeze(&self) -> Result<bool, StoreFault> {
        self.delete(&self.keys.freeze()).await
    }

    /// The overrides, the oldest first, each or its fault.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn overrides(&self) -> Result<Vec<Result<Override, BadRevision>>, StoreFault> {
        let options = GetOptions::new()
            .with_prefix()
            .with_sort(SortTarget::Mod, SortOrder::Ascend)
            .with_limit(MOST_READ);
        let got = self.get(&self.keys.overrides(), Some(options)).await?;
        let decode = |stored: &etcd_client::KeyValue| {
            Override::decode(&String::from_utf8_lossy(stored.key()), stored.value())
        };
        Ok(got.kvs().iter().map(decode).collect())
    }

    /// Puts an override there, which ends by itself: unless there are too many already.
    ///
    /// # Errors
    /// When it cannot be put. Then it may be there all the same.
    pub async fn put_override(&self, it: &Override) -> Result<OverrideOutcome, StoreFault> {
        if self.overrides().await?.len() >= Overrides::MOST {
            return Ok(OverrideOutcome::Full);
        }
        let time = Duration::from_secs(it.seconds);
        self.put_for(&self.keys.override_of(&it.id), &it.encode(), time).await?;
        Ok(OverrideOutcome::Put)
    }

    /// Ends an override before its time. Whether it was there.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub async fn lift_override(&self, id: &str) -> Result<bool, StoreFault> {
        self.delete(&self.keys.override_of(id)).await
    }

    /// Removes all revisions but the last `keep` and that of the head, and the documents that belong to none of those.
    ///
    /// # Errors
    /// When something cannot be read or removed.
    pub async fn sweep(&self, keep: usize) -> Result<Swept, StoreFault> {
        let head = self.head().await?;
        let all = self.keys_below(&self.keys.revisions()).await?;
        let head_key = head.head.map(|head| self.keys.revision(head.number));
        let older = &all[..all.len().saturating_sub(keep)];
        let gone: Vec<&String> = older.iter().filter(|key| Some(*key) != head_key.as_ref()).collect();
        self.delete_all(&gone, &head).await?;
        // What a draft names is about to be pushed.
        let drafts = self.get(&self.keys.drafts(), Some(GetOptions::new().with_prefix())).await?;
        let drafts = drafts.kvs().iter().map(|stored| Revision::decode("draft", stored.value()));
        let mut kept: Vec<Revision> = drafts.filter_map(Result::ok).map(|(draft, _)| draft).collect();
        for found in self.revisions(usize::MAX).await? {
            // Of one that cannot be read nobody knows what belongs to it.
            kept.push(found?.0);
        }
        let documents = kept.iter().flat_map(|revision| &revision.documents);
        let named: BTreeSet<String> = documents.map(|document| self.keys.blob(&document.blob)).collect();
        let blobs = self.keys_below(&self.keys.blobs()).await?;
        let unnamed: Vec<&String> = blobs.iter().filter(|key| !named.contains(*key)).collect();
        self.delete_all(&unnamed, &head).await?;
        Ok(Swept { revisions: gone.len(), documents: unnamed.len() })
    }

    async fn keys_below(&self, prefix: &str) -> Result<Vec<String>, StoreFault> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let got = self.get(prefix, Some(options)).await?;
        let keys = got.kvs().iter().map(|stored| String::from_utf8_lossy(stored.key()).into_owned());
        let mut keys: Vec<String> = keys.collect();
        keys.sort_unstable();
        Ok(keys)
    }

    /// Deletes keys, as long as nothing is pushed meanwhile.
    async fn delete_all(&self, keys: &[&String], head: &StoredHead) -> Result<(), StoreFault> {
        let head_key = self.keys.head();
        let (head_key, mod_revision) = (head_key.as_str(), head.mod_revision);
        for batch in keys.chunks(BATCH) {
            let deleted = self
                .with(|mut client| async move {
                    let same = Compare::mod_revision(head_key, CompareOp::Equal, mod_revision);
                    let deletes: Vec<TxnOp> =
                        batch.iter().map(|key| TxnOp::delete(key.as_str(), None)).collect();
                    Ok(client.txn(Txn::new().when([same]).and_then(deletes)).await?.succeeded())
                })
                .await?;
            if !deleted {
                let why = "somebody has pushed meanwhile; nothing that is in force was removed, try again";
                return Err(Failure::Refused(why.to_owned()).into());
            }
        }
        Ok(())
    }

    async fn delete(&self, key: &str) -> Result<bool, StoreFault> {
        self.with(|mut client| async move { Ok(client.delete(key, None).await?.deleted() > 0) }).await
    }

    async fn get(&self, key: &str, options: Option<GetOptions>) -> Result<GetResponse, StoreFault> {
        let options = &options;
        self.with(|mut client| async move { client.get(key, options.clone()).await }).await
    }

    /// Puts a key that ends after so long.
    async fn put_for(&self, key: &str, text: &str, time: Duration) -> Result<(), StoreFault> {
        let seconds = i64::try_from(time.as_secs().max(1)).unwrap_or(i64::MAX);
        self.with(|mut client| async move {
            let lease = client.lease_grant(seconds, None).await?.id();
            client.put(key, text, Some(PutOptions::new().with_lease(lease))).await?;
            Ok(())
        })
        .await
    }

    /// Calls one member after the other, until one answers or says no.
    async fn with<T, F>(&self, call: impl Fn(Client) -> F) -> Result<T, StoreFault>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut last = Failure::Timeout;
        for endpoint in &self.endpoints {
            let called = async { call(endpoint.client().await?).await };
            last = match within(called).await {
                Some(Ok(answer)) => return Ok(answer),
                Some(Err(error)) => failure(&error, endpoint),
                None => Failure::Unavailable(format!("{}: no answer in {PATIENCE:?}", endpoint.url())),
            };
            if matches!(last, Failure::Refused(_)) {
                break;
            }
        }
        Err(last.into())
    }
}

async fn within<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(PATIENCE, future).await.ok()
}
