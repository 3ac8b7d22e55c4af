//! Writes the record: in batches, one after the other, each as often as it takes.
//!
//! A write whose answer is lost is repeated until it is known to be there. The repetition is harmless, but the first may
//! still be on its way in etcd, and arrive after a later write has put something else: a mark that has been raised
//! would be lowered again. So every batch also puts the header, with a number, and is carried out only right behind the batch
//! before it. If it is refused for that, and the header bears its own number, it had been carried out before.

use std::collections::{BTreeMap, VecDeque};

use lessor_proto::{Epoch, ResourceId, Time};

use super::call::{Answer, Call, Failure, Guard, Order, Stored, Txn};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::event::Ticket;
use super::mutation::ElectionRule;
use super::record::{EarlierStops, Mark, RecordHeader, RecordKeys, Rest, Stop};
use super::retry::Retry;
use crate::record::{EarlierStop, EtcdCluster, Record, RecordChange, Terms};

/// Operations in one transaction, with that of the header; etcd takes 128.
const OPERATIONS: usize = 100;
/// Bytes of keys and values in one transaction; etcd takes 1.5 MB.
const BYTES: usize = 1 << 19;

/// The end of the record that is being written.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    queue: VecDeque<Item>,
    /// At which the leader's key was created.
    revision: u64,
    /// As it is in the record when everything up to the batch in hand has been written.
    header: RecordHeader,
    /// Of the header in the record.
    mod_revision: u64,
    batch: Option<WriteBatch>,
    tickets: u64,
    /// When the leader has stopped, once the header says that it has.
    stopped: Option<Time>,
    /// When those before it had, if the batch in hand says so.
    earlier: Option<Vec<EarlierStop>>,
    /// The etcd, if the batch in hand says which it is.
    cluster: Option<EtcdCluster>,
}

#[derive(Clone, Debug)]
enum Item {
    Terms(Terms),
    Mark(ResourceId, Option<Mark>),
    Earlier(Vec<EarlierStop>),
    Close(Time),
    End(Ticket),
}

/// The writes that are made at once.
#[derive(Clone, Debug)]
struct WriteBatch {
    txn: Txn,
    tickets: Vec<Ticket>,
    write: Retry,
}

/// The outcome of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Wrote {
    Nothing,
    /// These are done.
    Tickets(Vec<Ticket>),
    /// Somebody else may write.
    Deposed,
}

// === impl Writer ===

impl Writer {
    /// Goes on behind the header that was put at `mod_revision`. The first batch puts `first`, in the epoch `epoch` of the line of
    /// `record`, and at which etcd that is.
    pub(super) fn new(
        revision: u64,
        record: &Record,
        epoch: Epoch,
        first: RecordChange,
        mod_revision: u64,
    ) -> Writer {
        let Record { line, first_epoch, read_at: cluster, .. } = *record;
        let terms = Terms::default();
        let header = RecordHeader { epoch, write: 0, closed: false, terms, line, first_epoch };
        let mut writer = Writer {
            queue: VecDeque::new(),
            revision,
            header,
            mod_revision,
            batch: None,
            tickets: 0,
            stopped: None,
            earlier: None,
            cluster,
        };
        writer.push(first);
        writer
    }

    pub(super) fn push(&mut self, mut change: RecordChange) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.queue.extend(change.terms.map(Item::Terms));
        self.queue.extend(change.earlier.map(Item::Earlier));
        self.queue.extend(change.deletes.into_iter().map(|resource| Item::Mark(resource, None)));
        for (resource, amount) in change.marks {
            let proof = change.proofs.remove(&resource);
            let epoch = self.header.epoch;
            let rest = change.rests.get(&resource).map(|&amount| Rest { amount, epoch });
            let kind = change.kinds.get(&resource).copied();
            self.queue.push_back(Item::Mark(resource, Some(Mark { amount, kind, rest, proof })));
        }
        self.queue.push_back(Item::End(ticket));
        ticket
    }

    /// Says, behind all else, that the epoch has ended.
    pub(super) fn close(&mut self, now: Time) {
        self.queue.push_back(Item::Close(now));
    }

    /// Everything is written.
    pub(super) fn is_done(&self) -> bool {
        self.queue.is_empty() && self.batch.is_none()
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>) {
        if self.batch.is_none() && !self.queue.is_empty() {
            self.batch = Some(self.next_batch(context.now, context.keys, context.config));
        }
        let Some(WriteBatch { txn, write, .. }) = &mut self.batch else { return };
        write.advance(context, || Call::Write(txn.clone()));
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.batch.as_ref().is_some_and(|batch| batch.write.awaits(id))
    }

    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        result: Result<Answer, Failure>,
    ) -> Wrote {
        let Some(batch) = &mut self.batch else { return Wrote::Nothing };
        let Some(call) = batch.write.take_any() else { return Wrote::Nothing };
        let failure = match result {
            Ok(Answer::Written { revision }) => {
                context.out.succeeded(call);
                return self.written(revision);
            }
            Ok(Answer::Refused { guard, order }) => {
                context.out.succeeded(call);
                return self.refused(guard.as_ref(), order.as_ref());
            }
            Ok(other) => Failure::unexpected(&other),
            Err(failure) => failure,
        };
        batch.write.failed(context, call, &failure);
        Wrote::Nothing
    }

    pub(super) fn next_deadline(&self) -> Time {
        match &self.batch {
            Some(batch) => batch.write.next_deadline(),
            None if self.queue.is_empty() => Time::MAX,
            None => Time::ZERO,
        }
    }

    fn written(&mut self, revision: u64) -> Wrote {
        self.mod_revision = revision;
        Wrote::Tickets(self.batch.take().map(|batch| batch.tickets).unwrap_or_default())
    }

    fn refused(&mut self, guard: Option<&Stored>, order: Option<&Stored>) -> Wrote {
        if guard.is_none_or(|leader| leader.create_revision != self.revision) {
            return Wrote::Deposed;
        }
        let found = order.and_then(|stored| Some((RecordHeader::decode(stored).ok()?, stored.mod_revision)));
        match found {
            Some((header, mod_revision))
                if (header.epoch, header.write) == (self.header.epoch, self.header.write) =>
            {
                self.written(mod_revision)
            }
            // Somebody writes who does not ask whose record it is: it cannot be trusted to hold what we say.
            _ => Wrote::Deposed,
        }
    }

    /// As much as fits of what is to be written. Of two marks of one resource the later counts.
    fn next_batch(&mut self, now: Time, keys: &RecordKeys, config: &ElectionConfig) -> WriteBatch {
        let (mut marks, mut tickets, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
        while let Some(item) = self.queue.pop_front() {
            match item {
                Item::Terms(terms) => self.header.terms = terms,
                Item::Close(at) => {
                    self.header.closed = true;
                    self.stopped = Some(at);
                }
                Item::Earlier(stops) => self.earlier = Some(stops),
                Item::End(ticket) => tickets.push(ticket),
                Item::Mark(resource, mark) => {
                    let proof = mark.as_ref().and_then(|mark| mark.proof.as_ref());
                    let token = proof.map_or(0, |it| it.token.len());
                    // Without the token the value is shorter than 192 bytes.
                    bytes += keys.marks.len() + resource.as_str().len() + 192 + token * 2;
                    let is_full = marks.len() + 1 >= OPERATIONS || (bytes > BYTES && !marks.is_empty());
                    if is_full && !marks.contains_key(&resource) {
                        self.queue.push_front(Item::Mark(resource, mark));
                        break;
                    }
                    marks.insert(resource, mark);
                }
            }
        }
        self.header.write += 1;
        let txn = self.txn(&marks, keys, config);
        (self.earlier, self.cluster) = (None, None);
        WriteBatch { txn, tickets, write: Retry::new(now, config.keep_alive) }
    }

    fn txn(
        &self,
        marks: &BTreeMap<ResourceId, Option<Mark>>,
        keys: &RecordKeys,
        config: &ElectionConfig,
    ) -> Txn {
        let mut puts = vec![(keys.epoch.clone(), self.header.encode())];
        let RecordHeader { epoch, write, .. } = self.header;
        puts.extend(self.stopped.map(|clock| (keys.stop.clone(), Stop { epoch, write, clock }.encode())));
        let earlier = self.earlier.clone().map(|stops| EarlierStops { epoch, stops });
        puts.extend(earlier.map(|earlier| (keys.earlier.clone(), earlier.encode())));
        puts.extend(self.cluster.map(|cluster| (keys.cluster.clone(), cluster.encode())));
        let mut deletes = Vec::new();
        for (resource, mark) in marks {
            match mark {
                Some(mark) => puts.push((keys.mark(resource), mark.encode())),
                None => deletes.push(keys.mark(resource)),
            }
        }
        let mut txn = Txn {
            guard: Guard { key: keys.leader.clone(), create_revision: self.revision },
            order: Order { key: keys.epoch.clone(), mod_revision: self.mod_revision },
            puts,
            deletes,
        };
        // A key that nobody ever creates holds any order and any guard.
        if !config.rules.keep(ElectionRule::Order) {
            txn.order = Order { key: format!("{}none", keys.node), mod_revision: 0 };
        }
        if !config.rules.keep(ElectionRule::Guard) {
            txn.guard = Guard { key: format!("{}none", keys.node), create_revision: 0 };
        }
        txn
    }
}

#[cfg(test)]
mod tests;
