//! The meeting of the records of domains with their [synchronisation](super::sync), for whoever drives a client.

use std::sync::Arc;

use lessor_proto::message::{DomainHits, DomainNews, DomainReport};
use lessor_proto::{ResourceId, Time};

use super::rules::Scope;
use super::store::Domains;
use super::sync::{Acked, Clocks};

// === impl Domains ===

impl Domains {
    /// From here on reports go up `stream`, if there is one, and updates come down it. What was sent on another one is sent
    /// again.
    pub fn attend(&self, stream: Option<u64>) {
        self.sync.attend(stream.filter(|_| self.scope() == Scope::Shared));
    }

    /// When the [next message](Domains::next_message) is to be sent, if there is one.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.sync.lock().next_deadline()
    }

    /// Whether something has happened since this was last asked that makes [`Domains::next_deadline`] earlier.
    pub fn take_earlier(&self) -> bool {
        self.sync.take_earlier()
    }

    /// The message to be sent on the stream, as of `now`.
    pub fn next_message(&self, now: Time, resource: &ResourceId) -> Option<DomainReport> {
        let version = self.policies()?.version();
        let mut draft = self.sync.lock().draft()?;
        while let Some(name) = draft.next_name() {
            if let Some(hits) = self.export(now, &draft.clocks, name) {
                draft.add(hits);
            }
        }
        self.sync.lock().next_message(now, resource, version, draft)
    }

    /// Takes up an update of what others did.
    pub fn on_update(&self, now: Time, update: &DomainNews) {
        let Some(clocks) = self.sync.lock().on_update(now, update) else { return };
        self.sync.publish(now, update);
        if update.begins {
            self.shards().for_each(|mut shard| {
                shard.records_mut().for_each(|record| record.begin(now, &self.sync));
            });
        } else if self.sync.lock().take_misplaced(now) {
            self.resend();
        }
        update.hot.iter().for_each(|name| self.set_hot(name, true));
        if self.policies().is_some_and(|policies| policies.version() == update.version) {
            update.domains.iter().for_each(|hits| self.merge(now, &clocks, hits));
        }
        update.calm.iter().for_each(|name| self.set_hot(name, false));
        self.sync.on_ack(update.heard);
    }

    /// Asks the server for all that it knows, if it can be reached. [`Domains::is_acked`] says when the update with that has
    /// come.
    pub fn ask(&self) -> Option<u64> {
        self.sync.ask()
    }

    /// Whether question `id` is acknowledged, or there is nobody any more who would.
    #[must_use]
    pub fn is_acked(&self, id: u64) -> bool {
        self.sync.lock().is_acked(id)
    }

    pub(super) fn acked(&self, id: u64) -> Acked<'_> {
        self.sync.acked(id)
    }

    /// Has all of every domain said again that is replicated.
    pub(super) fn resend(&self) {
        self.shards().for_each(|mut shard| shard.records_mut().for_each(|record| record.resend(&self.sync)));
    }

    fn set_hot(&self, name: &str, is_hot: bool) {
        let hash = self.hash(name);
        if let Some(record) = self.shard(hash).find(hash, name) {
            record.set_hot(is_hot, &self.sync);
        }
    }

    fn export(&self, now: Time, clocks: &Clocks, name: Arc<str>) -> Option<DomainHits> {
        let hash = self.hash(&name);
        let mut shard = self.shard(hash);
        // It is off the queue even if it follows no policies, so that it comes onto it again when it does.
        shard.find(hash, &name)?.delta_mut()?.is_queued = false;
        self.record(&mut shard, now, hash, &name)?.export(now, clocks, name)
    }

    fn merge(&self, now: Time, clocks: &Clocks, hits: &DomainHits) {
        let hash = self.hash(&hits.domain);
        let mut shard = self.shard(hash);
        if let Some(record) = self.record(&mut shard, now, hash, &hits.domain) {
            record.merge(now, clocks, hits);
        }
    }
}
