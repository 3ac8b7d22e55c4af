//! Delta replication with acknowledgements, at one client: what its domains do goes up a stream, and what others do comes down.
//!
//! Each client decides by itself, on its own hits and on those of others that it knows. What it knows is never more than what
//! was done, so as far as one tier and the hard limit go, what it refuses would be refused by whoever knew everything. Only a
//! tier that others have entered may allow more than is known here; so the delta in which a tier is entered is sent at once,
//! and who can wait [asks](super::Domains::ask) before it is refused.
//!
//! Most domains are far from every limit, and of those next to nothing is sent. Each of n clients keeps to itself hits of up to
//! 1/(2n) of the limit ([`is_share`]), so that together they keep back less than half of it. From the rest the server sees when
//! a domain has used up half. Then the domain is *hot*: all clients send every delta of it at short intervals, and those that
//! use it receive updates of what the others did.
//!
//! Reports are numbered, and an update acknowledges all reports up to a number. Who has asked waits until the number of the
//! question is acknowledged *and* the update that says so is taken up. When a stream ends, what is known stays. On the next
//! one all state is sent again, not deltas, and the first update replaces what others had sent before.
//!
//! [`DomainSync`] decides what to send and when, and has no lock. The hits that are sent are in the [records](super::record) of
//! the domains, behind other locks: so a message is made in two steps, a [`Draft`] of the names whose deltas it is to have, and
//! [`DomainSync::next_message`] when these have been filled in.

mod clocks;
mod entry;
mod handle;
mod outgoing;
mod stream;
#[cfg(test)]
mod tests;
mod worth;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use lessor_proto::message::{DomainHits, DomainNews, DomainReport, MOST_DOMAINS, MOST_ENTRIES};
use lessor_proto::{ResourceId, Time};

pub use self::clocks::Clocks;
pub use self::entry::{entry_at, message_at};
pub(crate) use self::handle::Acked;
pub(super) use self::handle::SyncHandle;
pub(super) use self::outgoing::Outgoing;
pub use self::stream::DeltaStream;
pub use self::worth::{is_marked, is_share, least_limit};

/// The interval at which deltas of hot domains are sent.
pub const CADENCE: Duration = Duration::from_millis(100);
/// Without an update for longer than this others are unreachable; the server sends one some four times as often.
pub const UNREACHABLE_AFTER: Duration = Duration::from_secs(1);

/// The replication of the domains of one resource at one client.
#[derive(Debug, Default)]
pub(super) struct DomainSync {
    stream: DeltaStream,
    /// The last report that is acknowledged, and whose acknowledging update is taken up.
    acked: u64,
    /// The domains with an outgoing delta, each once.
    queue: VecDeque<Arc<str>>,
    hot: BTreeSet<Arc<str>>,
    /// Those who wait for an acknowledgement.
    waiting: Vec<Waker>,
}

/// A message that is being made.
#[derive(Debug)]
pub(super) struct Draft {
    is_question: bool,
    pub(super) clocks: Clocks,
    /// The domains whose deltas are still to be filled in, in their order.
    names: VecDeque<Arc<str>>,
    entries: usize,
    domains: Vec<DomainHits>,
}

// === impl DomainSync ===

impl DomainSync {
    /// Sends on `stream` from here on, if there is one. All state is sent again on it. Returns those who wait for an
    /// acknowledgement that will not come, if it is another stream than before.
    pub(super) fn attend(&mut self, stream: Option<u64>) -> Option<Vec<Waker>> {
        if self.stream.id() == stream {
            return None;
        }
        let (queue, waiting) = (std::mem::take(&mut self.queue), std::mem::take(&mut self.waiting));
        *self = DomainSync { stream: DeltaStream::on(stream), queue, ..DomainSync::default() };
        Some(waiting)
    }

    /// Queues the delta of domain `name`. Returns whether [`DomainSync::next_deadline`] may be earlier because of it.
    pub(super) fn queue_delta(&mut self, name: &str, delta: &mut Outgoing, is_urgent: bool) -> bool {
        let is_earlier = self.queue.is_empty() || is_urgent && !self.stream.is_urgent();
        if !std::mem::replace(&mut delta.is_queued, true) {
            self.queue.push_back(Arc::from(name));
        }
        if is_urgent {
            self.stream.hurry();
        }
        is_earlier
    }

    /// When the next message is to be sent, if one is.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.stream.next_deadline(!self.queue.is_empty(), CADENCE)
    }

    /// Begins a message with the deltas that are queued, as many as fit; nothing without a stream.
    pub(super) fn draft(&mut self) -> Option<Draft> {
        let is_question = self.stream.take_question()?;
        let fits = if self.stream.has_begun() { self.queue.len().min(MOST_DOMAINS) } else { 0 };
        let names = self.queue.drain(..fits).collect();
        Some(Draft { is_question, clocks: *self.stream.clocks(), names, entries: 0, domains: Vec::new() })
    }

    /// The message that was drafted, as it is sent at `now`; nothing if there is nothing to say. Deltas that did not fit are
    /// the first of the next.
    pub(super) fn next_message(
        &mut self,
        now: Time,
        resource: &ResourceId,
        version: u32,
        draft: Draft,
    ) -> Option<DomainReport> {
        draft.names.into_iter().rev().for_each(|name| self.queue.push_front(name));
        if draft.domains.is_empty() && !draft.is_question {
            return None;
        }
        if !draft.domains.is_empty() {
            self.stream.placed(now, &draft.clocks);
        }
        let (id, resource) = (self.stream.sent(now), resource.clone());
        let (ask, domains) = (draft.is_question, draft.domains);
        Some(DomainReport { resource, version, id, ask, below: None, domains })
    }

    /// Takes up what an update says of the stream and of hot domains. Returns by which clocks its hits are to be read; nothing
    /// if it is none of this stream.
    pub(super) fn on_update(&mut self, now: Time, update: &DomainNews) -> Option<Clocks> {
        if !self.stream.on_update(now, update) {
            return None;
        }
        if update.begins {
            self.hot.clear();
        }
        self.hot.extend(update.hot.iter().cloned());
        for name in &update.calm {
            self.hot.remove(name);
        }
        Some(*self.stream.clocks())
    }

    /// Whether what was said of hits is to be said again at `now`, as it is known by now that they were made later.
    pub(super) fn take_misplaced(&mut self, now: Time) -> bool {
        self.stream.take_misplaced(now)
    }

    /// All reports up to `id` are acknowledged, and the update that says so is taken up. Returns those who wait for that.
    pub(super) fn on_ack(&mut self, id: u64) -> Vec<Waker> {
        self.acked = self.acked.max(id);
        std::mem::take(&mut self.waiting)
    }

    /// Has the next report ask for all that the server knows. Returns the number by which that is
    /// [acknowledged](DomainSync::is_acked); nothing without a stream.
    pub(super) fn ask(&mut self) -> Option<u64> {
        self.stream.ask()
    }

    /// Whether question `id` is acknowledged, or nobody is there any more who would.
    pub(super) fn is_acked(&self, id: u64) -> bool {
        self.stream.id().is_none() || self.acked >= id
    }

    /// The same, where `waker` is woken when it may be.
    pub(super) fn poll_acked(&mut self, id: u64, waker: &Waker) -> bool {
        let is_acked = self.is_acked(id);
        if !is_acked && !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
        is_acked
    }

    pub(super) fn is_hot(&self, name: &str) -> bool {
        self.hot.contains(name)
    }
}

// === impl Draft ===

impl Draft {
    /// The next domain whose delta is to be filled in; nothing if all are, or no more fit.
    pub(super) fn next_name(&mut self) -> Option<Arc<str>> {
        if self.entries > MOST_ENTRIES / 2 { None } else { self.names.pop_front() }
    }

    pub(super) fn add(&mut self, hits: DomainHits) {
        self.entries += hits.entries.len();
        self.domains.push(hits);
    }
}
