//! The synchronisation behind its lock, and what each request reads of it without the lock.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use lessor_proto::Time;
use lessor_proto::message::DomainNews;

use super::{DomainSync, Outgoing, UNREACHABLE_AFTER};

/// A [`DomainSync`] that is shared by reference. Its lock is taken under those of shards, and none under it.
#[derive(Debug, Default)]
pub(in crate::domain) struct SyncHandle {
    sync: Mutex<DomainSync>,
    /// The number of clients that replicate; 0 as long as no update has come.
    members: AtomicU32,
    /// When an update came last, in nanoseconds.
    updated_at: AtomicU64,
    /// Set when [`DomainSync::next_deadline`] becomes earlier.
    is_earlier: AtomicBool,
}

/// Resolves when a question is acknowledged, and when the stream ends before that.
#[derive(Debug)]
pub(crate) struct Acked<'a> {
    sync: &'a SyncHandle,
    id: u64,
}

// === impl SyncHandle ===

impl SyncHandle {
    pub(in crate::domain) fn lock(&self) -> MutexGuard<'_, DomainSync> {
        // No code of others runs under it, so a poisoned one is as good as any.
        self.sync.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::domain) fn members(&self) -> u32 {
        self.members.load(Ordering::Relaxed)
    }

    /// Whether no update has come for so long that others are unreachable.
    pub(in crate::domain) fn is_unreachable(&self, now: Time) -> bool {
        now > Time::from_nanos(self.updated_at.load(Ordering::Relaxed)) + UNREACHABLE_AFTER
    }

    /// See [`DomainSync::attend`].
    pub(in crate::domain) fn attend(&self, stream: Option<u64>) {
        let mut sync = self.lock();
        let Some(waiting) = sync.attend(stream) else { return };
        self.members.store(0, Ordering::Relaxed);
        drop(sync);
        waiting.into_iter().for_each(std::task::Waker::wake);
    }

    /// See [`DomainSync::queue_delta`].
    pub(in crate::domain) fn queue_delta(&self, name: &str, delta: &mut Outgoing, is_urgent: bool) {
        if self.lock().queue_delta(name, delta, is_urgent) {
            self.is_earlier.store(true, Ordering::Release);
        }
    }

    /// An update of `members` clients has come.
    pub(in crate::domain) fn publish(&self, now: Time, update: &DomainNews) {
        self.members.store(update.members.max(1), Ordering::Relaxed);
        self.updated_at.store(now.as_nanos(), Ordering::Relaxed);
    }

    /// See [`DomainSync::on_ack`].
    pub(in crate::domain) fn on_ack(&self, id: u64) {
        let waiting = self.lock().on_ack(id);
        waiting.into_iter().for_each(std::task::Waker::wake);
    }

    /// See [`DomainSync::ask`].
    pub(in crate::domain) fn ask(&self) -> Option<u64> {
        let question = self.lock().ask()?;
        self.is_earlier.store(true, Ordering::Release);
        Some(question)
    }

    /// Whether something has happened since this was last asked that makes [`DomainSync::next_deadline`] earlier.
    pub(in crate::domain) fn take_earlier(&self) -> bool {
        self.is_earlier.load(Ordering::Relaxed) && self.is_earlier.swap(false, Ordering::AcqRel)
    }

    pub(in crate::domain) fn acked(&self, id: u64) -> Acked<'_> {
        Acked { sync: self, id }
    }
}

// === impl Acked ===

impl Future for Acked<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.sync.lock().poll_acked(self.id, cx.waker()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}
