//! Turns of a table: locks and waits that begin and end.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::caller::{PoolLock, PoolWait};
use super::caller_id::CallerId;
use super::key::{PoolGauge, PoolKey};
use super::table::PoolTable;
use super::{PoolAnswer, PoolFault};

// === impl PoolTable ===

impl<P> PoolTable<P> {
    /// The lock that somebody waited for is its own.
    pub(super) fn grant(&mut self, caller: CallerId, permit: Option<P>, now: Time) {
        let Some(wait) = self.end_wait(caller) else { return };
        let waited = now.since(wait.since);
        self.counts.waiting += waited;
        match wait.for_anyone {
            true => self.counts.waiting_for_anyone += waited,
            false => self.counts.waiting_for_me += waited,
        }
        self.lock(caller, wait.gauge, permit, now);
        self.said.push((caller, PoolAnswer::Locked));
    }

    /// The answer to a caller for whom nothing is leased. Where the door is open it has the lock, if there is a place.
    pub(super) fn without_lease(&mut self, caller: CallerId, gauge: Arc<PoolGauge>, now: Time) -> PoolAnswer {
        let has_place = self.keys.get(&gauge.key).is_none_or(|line| line.working < gauge.workers);
        if self.rules.is_open && has_place {
            self.counts.opened += 1;
            self.lock(caller, gauge, None, now);
            return PoolAnswer::Locked;
        }
        self.forget(&gauge.key);
        if self.rules.is_open { PoolAnswer::Timeout } else { PoolAnswer::Fault(PoolFault::NoLease) }
    }

    pub(super) fn lock(&mut self, caller: CallerId, gauge: Arc<PoolGauge>, permit: Option<P>, now: Time) {
        let line = self.key(&gauge.key);
        line.working += 1;
        line.gauge(&gauge.key, gauge.workers).working += 1;
        self.counts.working += 1;
        self.counts.acquired += 1;
        self.touched.push(Arc::clone(&gauge));
        if let Some(of) = self.callers.get_mut(&caller) {
            of.locks.push(PoolLock { gauge, since: now, permit });
        }
    }

    pub(super) fn end_lock(&mut self, lock: PoolLock<P>, now: Time) -> (Arc<PoolGauge>, Time) {
        let PoolLock { gauge, since, permit } = lock;
        drop(permit);
        let line = self.key(&gauge.key);
        line.working -= 1;
        line.gauge(&gauge.key, gauge.workers).working -= 1;
        self.counts.working -= 1;
        self.counts.processed += 1;
        self.counts.processing += now.since(since);
        self.touch_all(&gauge);
        (gauge, since)
    }

    pub(super) fn end_wait(&mut self, caller: CallerId) -> Option<PoolWait> {
        let wait = self.callers.get_mut(&caller)?.wait.take()?;
        let line = self.key(&wait.gauge.key);
        line.leave(caller, wait.for_anyone);
        line.gauge(&wait.gauge.key, wait.gauge.workers).waiting -= 1;
        self.counts.waiters -= 1;
        self.touched.push(Arc::clone(&wait.gauge));
        Some(wait)
    }

    /// All who wait for anybody to do the work of a key go on.
    pub(super) fn finish(&mut self, key: &[u8], gained: Duration, now: Time) {
        let waiting =
            self.keys.get_mut(key).map(|known| std::mem::take(&mut known.for_anyone)).unwrap_or_default();
        for waiter in waiting {
            if let Some(wait) = self.end_wait(waiter) {
                self.counts.waiting_for_good += now.since(wait.since);
                self.counts.gained += gained;
                self.said.push((waiter, PoolAnswer::Done));
            }
        }
    }

    /// A job with a unit of a gauge was done at another door, no later than `at`: all go on who wait for anybody to do the work of
    /// its key, and have waited since then.
    pub fn finish_elsewhere(&mut self, gauge: &Arc<PoolGauge>, at: Time, now: Time) {
        // Whether or not anybody goes on: who waits still is to be told of the next one.
        self.touched.push(Arc::clone(gauge));
        let Some(line) = self.keys.get(&gauge.key) else { return };
        let has_waited = |caller: &&CallerId| {
            let wait = self.callers.get(*caller).and_then(|of| of.wait.as_ref());
            wait.is_some_and(|wait| wait.job_since() <= at)
        };
        for waiter in line.for_anyone.iter().filter(has_waited).copied().collect::<Vec<_>>() {
            if let Some(wait) = self.end_wait(waiter) {
                self.counts.waiting_for_good += now.since(wait.since);
                self.counts.done_elsewhere += 1;
                self.said.push((waiter, PoolAnswer::Done));
            }
        }
        self.forget(&gauge.key);
    }

    /// A place is free, for callers of any number of workers.
    pub(super) fn touch_all(&mut self, gauge: &PoolGauge) {
        if let Some(line) = self.keys.get(&gauge.key) {
            self.touched.extend(line.gauges().cloned());
        }
    }

    pub(super) fn key(&mut self, key: &[u8]) -> &mut PoolKey {
        self.keys.entry(key.into()).or_default()
    }

    /// Forgets a key for which nobody works or waits.
    pub(super) fn forget(&mut self, key: &[u8]) {
        if self.keys.get(key).is_some_and(|line| line.count() == 0) {
            self.keys.remove(key);
        }
    }
}
