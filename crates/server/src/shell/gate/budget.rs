//! Budgets: the work that an identity may cause, over all its connections.
//!
//! A purse is kept until nobody pays out of it and it is full again. Where nothing proves an identity, each address has a purse of its
//! own.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_proto::Time;
use lessor_proto::message::Refusal;

use super::super::address_budget::{network, sweep};
use super::super::call_line::CallLine;
use crate::access::{Budget, Tempo};

/// The purses of all identities that have one.
#[derive(Debug, Default)]
pub(super) struct Budgets(Mutex<Purses>);

/// The purses by identity, and by address where nothing proves that.
type Purses = BTreeMap<(Box<str>, Option<IpAddr>), Arc<Purse>>;

/// The means of one identity.
#[derive(Debug)]
pub(in crate::shell) struct Purse {
    budget: Budget,
    reports: Option<Mutex<Tempo>>,
    calls: CallLine,
    /// Shared with the purse that this one has replaced: those streams are still there.
    streams: Arc<AtomicU32>,
}

/// A stream that is paid for until it gives way or is dropped.
#[derive(Debug)]
pub(in crate::shell) struct PaidStream {
    /// The count that it is in.
    streams: Option<Arc<AtomicU32>>,
}

/// The time in which reports may come that are then sent at once.
const BURST: Duration = Duration::from_secs(2);

// === impl Budgets ===

impl Budgets {
    /// The purse of an identity, or of one of its addresses, with that budget; absent: the budget says nothing.
    pub(super) fn purse(
        &self,
        identity: &str,
        address: Option<IpAddr>,
        budget: Budget,
    ) -> Option<Arc<Purse>> {
        if budget == Budget::default() {
            return None;
        }
        let mut purses = self.purses();
        let key = (Box::from(identity), address.map(network));
        let known = purses.get(&key);
        if let Some(same) = known.filter(|purse| purse.budget == budget) {
            return Some(Arc::clone(same));
        }
        let streams = known.map(|purse| Arc::clone(&purse.streams)).unwrap_or_default();
        sweep(&mut purses, Purse::is_full);
        let purse = Arc::new(Purse::new(budget, streams));
        purses.insert(key, Arc::clone(&purse));
        Some(purse)
    }

    /// Locks the table, also after a panic: every change of it is one step.
    fn purses(&self) -> MutexGuard<'_, Purses> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Purse ===

impl Purse {
    fn new(budget: Budget, streams: Arc<AtomicU32>) -> Purse {
        let reports = budget.reports.map(|rate| Mutex::new(Tempo::new(rate, BURST)));
        Purse { budget, reports, calls: CallLine::default(), streams }
    }

    /// The calls that wait until they are paid for.
    pub(in crate::shell) fn calls(&self) -> &CallLine {
        &self.calls
    }

    /// Pays for a report at `now`.
    ///
    /// # Errors
    /// When there is nothing left, with the moment at which there will be.
    pub(in crate::shell) fn pay_report(&self, now: Time) -> Result<(), Time> {
        let Some(pace) = &self.reports else { return Ok(()) };
        pace.lock().unwrap_or_else(PoisonError::into_inner).take(now)
    }

    /// Whether another like it is as good.
    fn is_full(&self, now: Time) -> bool {
        let is_idle = |pace: &Mutex<Tempo>| pace.lock().unwrap_or_else(PoisonError::into_inner).is_idle(now);
        self.reports.as_ref().is_none_or(is_idle)
    }

    /// Pays for a stream.
    ///
    /// # Errors
    /// When there are as many as there may be.
    pub(in crate::shell) fn pay_stream(self: &Arc<Purse>) -> Result<PaidStream, Refusal> {
        let before = self.streams.fetch_add(1, Ordering::Relaxed);
        let paid = PaidStream { streams: Some(Arc::clone(&self.streams)) };
        match self.budget.streams {
            Some(limit) if before >= limit => {
                let (count, limit) = (before as usize + 1, limit as usize);
                Err(Refusal::Exhausted { what: "streams of this identity".to_owned(), count, limit })
            }
            _ => Ok(paid),
        }
    }

    /// Takes a stream out of the count if there are more than there may be, as the budget has become smaller. Of those that ask at
    /// the same moment just as many give way as are too many.
    pub(in crate::shell) fn gives_way(&self, paid: &mut PaidStream) -> bool {
        let Some(limit) = self.budget.streams else { return false };
        paid.give_way(limit)
    }

    /// The number of resources that one stream may hold, if it is limited.
    pub(in crate::shell) fn resources(&self) -> Option<usize> {
        self.budget.resources.map(|most| most as usize)
    }
}

// === impl PaidStream ===

impl PaidStream {
    fn give_way(&mut self, limit: u32) -> bool {
        let Some(streams) = &self.streams else { return true };
        let fewer = |count: u32| (count > limit).then(|| count - 1);
        let gives_way = streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer).is_ok();
        if gives_way {
            self.streams = None;
        }
        gives_way
    }
}

impl Drop for PaidStream {
    fn drop(&mut self) {
        if let Some(streams) = &self.streams {
            streams.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn of_streams_that_are_asked_at_the_same_moment_just_so_many_give_way() {
        let with = |streams| Budget { streams: Some(streams), ..Budget::default() };
        let budgets = Budgets::default();
        for (most, limit) in [(8, 7), (8, 1), (8, 0), (8, 8)] {
            let before = budgets.purse("web", None, with(most)).unwrap();
            let mut paid: Vec<PaidStream> = (0..most).map(|_| before.pay_stream().unwrap()).collect();
            let purse = budgets.purse("web", None, with(limit)).unwrap();
            let ways: Vec<bool> = thread::scope(|scope| {
                let asks = paid.iter_mut().map(|paid| scope.spawn(|| purse.gives_way(paid)));
                let asks: Vec<_> = asks.collect();
                asks.into_iter().map(|ask| ask.join().unwrap()).collect()
            });
            assert_eq!(ways.iter().filter(|gives_way| !**gives_way).count(), limit as usize);
            assert!(purse.pay_stream().is_err(), "all places are taken");
            drop(paid);
            assert_eq!(purse.streams.load(Ordering::Relaxed), 0, "each is counted out once");
        }
    }
}
