//! The table of a door: callers with what they have and wait for, and keys with those who work on them.

use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use lessor_proto::Time;

use super::caller::{PoolCaller, PoolWait};
use super::caller_id::CallerId;
use super::key::{PoolGauge, PoolKey};
use super::{LOCKS, PoolAnswer, PoolCommand, PoolCounts, PoolFault, PoolRequest, PoolRules};

/// The units of gauges, as the table sees them.
pub trait PoolUnits {
    /// A unit. It comes back when it is dropped.
    type Permit;

    /// Takes a unit that is at hand, past nobody who waits for one.
    ///
    /// # Errors
    /// When there is none here.
    fn take(&mut self, gauge: &Arc<PoolGauge>) -> Result<Self::Permit, NoUnit>;

    /// A job was done with a unit of the gauge, which is given back behind that.
    fn job_done(&mut self, gauge: &PoolGauge, now: Time);

    /// Whether it is known how many units there are here, be it none.
    fn is_leased(&self, gauge: &PoolGauge) -> bool;
}

/// A door that is open looks again after so long whether there is a place for who waits without a lease, or longer.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The reason why no unit was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoUnit {
    /// None is here at this moment. One may come.
    NotHere,
    /// None ever comes: there are too many keys, or the server refuses this one.
    Never,
}

/// Callers and keys of one door, with units of the type `P`.
#[derive(Debug)]
pub struct PoolTable<P> {
    pub(super) callers: HashMap<CallerId, PoolCaller<P>, FixedState>,
    pub(super) keys: HashMap<Box<[u8]>, PoolKey, FixedState>,
    pub(super) rules: PoolRules,
    pub(super) counts: PoolCounts,
    pub(super) began: Time,
    pub(super) next: u64,
    /// Answers to callers who waited.
    pub(super) said: Vec<(CallerId, PoolAnswer)>,
    /// Gauges of which another number of units is needed than before, perhaps.
    pub(super) touched: Vec<Arc<PoolGauge>>,
}

/// A request that is read, with what there is for its key.
struct AdmittedRequest {
    gauge: Arc<PoolGauge>,
    /// Whether fewer work at this door than may.
    has_place: bool,
    for_anyone: bool,
    wait: Duration,
}

// === impl PoolTable ===

impl<P> PoolTable<P> {
    /// A table without callers.
    #[must_use]
    pub fn new(rules: PoolRules, now: Time) -> PoolTable<P> {
        PoolTable {
            callers: HashMap::default(),
            keys: HashMap::default(),
            rules,
            counts: PoolCounts::default(),
            began: now,
            next: 0,
            said: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Goes by these rules from here on. What is held stays.
    pub fn set_rules(&mut self, rules: PoolRules) {
        self.rules = rules;
    }

    /// A new caller.
    pub fn enter(&mut self) -> CallerId {
        let caller = CallerId(self.next);
        self.next += 1;
        self.callers.insert(caller, PoolCaller::default());
        caller
    }

    /// Hears a line, and returns the answer; nothing where the caller waits from here on.
    pub fn hear(
        &mut self,
        caller: CallerId,
        line: &[u8],
        now: Time,
        units: &mut impl PoolUnits<Permit = P>,
    ) -> Option<PoolAnswer> {
        match PoolCommand::read(line) {
            PoolCommand::Acquire { for_anyone, words } => match self.admit(caller, words, for_anyone) {
                Ok(asked) => self.acquire(caller, asked, now, units),
                Err(answer) => Some(answer),
            },
            PoolCommand::Release => Some(self.release(caller, now, units)),
            PoolCommand::Figures(name) => {
                let text = self.counts().text(name, now.since(self.began));
                Some(text.map_or(PoolAnswer::Fault(PoolFault::WrongStat), PoolAnswer::Figures))
            }
            PoolCommand::Unknown => Some(PoolAnswer::Fault(PoolFault::BadCommand)),
        }
    }

    /// Checks a request, in the order in which callers expect it.
    fn admit(
        &mut self,
        caller: CallerId,
        words: &[u8],
        for_anyone: bool,
    ) -> Result<AdmittedRequest, PoolAnswer> {
        let of = self.callers.get(&caller).ok_or(PoolAnswer::Fault(PoolFault::BadCommand))?;
        if of.count() >= LOCKS {
            self.counts.lock_mismatch += 1;
            return Err(PoolAnswer::LockHeld);
        }
        if of.wait.is_some() {
            self.counts.lock_while_waiting += 1;
            return Err(PoolAnswer::Fault(PoolFault::WaitForResponse));
        }
        let request = PoolRequest::read(words).filter(|request| request.workers <= self.rules.workers);
        let PoolRequest { key, workers, queue, seconds } =
            request.ok_or(PoolAnswer::Fault(PoolFault::BadSyntax))?;
        let (count, working) = self.keys.get(key).map_or((0, 0), |known| (known.count(), known.working));
        if count >= queue as usize {
            self.counts.full_queues += 1;
            return Err(PoolAnswer::QueueFull);
        }
        let has_place = working < workers;
        if seconds == 0 && !has_place {
            return Err(PoolAnswer::Timeout);
        }
        let gauge = Arc::clone(&self.key(key).gauge(key, workers).gauge);
        Ok(AdmittedRequest { gauge, has_place, for_anyone, wait: Duration::from_secs(seconds.into()) })
    }

    fn acquire(
        &mut self,
        caller: CallerId,
        asked: AdmittedRequest,
        now: Time,
        units: &mut impl PoolUnits<Permit = P>,
    ) -> Option<PoolAnswer> {
        let AdmittedRequest { gauge, has_place, for_anyone, wait } = asked;
        if has_place {
            match units.take(&gauge) {
                Ok(permit) => {
                    self.lock(caller, gauge, Some(permit), now);
                    return Some(PoolAnswer::Locked);
                }
                Err(NoUnit::Never) => return Some(self.without_lease(caller, gauge, now)),
                Err(NoUnit::NotHere) => {}
            }
        }
        // One who does not wait does so for units that lie elsewhere: that none is here does not say that none is free.
        let (wait, brief) = (if wait.is_zero() { self.rules.wait } else { wait }, now + self.rules.wait);
        let deadline = now + wait;
        let doubts = (brief < deadline).then_some(brief);
        let line = self.key(&gauge.key);
        if for_anyone { &mut line.for_anyone } else { &mut line.for_me }.push_back(caller);
        line.gauge(&gauge.key, gauge.workers).waiting += 1;
        self.counts.waiters += 1;
        self.touched.push(Arc::clone(&gauge));
        let asks_until = has_place.then_some(brief.min(deadline));
        let wait = PoolWait { gauge, for_anyone, since: now, deadline, asks_until, doubts };
        if let Some(of) = self.callers.get_mut(&caller) {
            of.wait = Some(wait);
        }
        None
    }

    /// Gives back the newest lock, or gives up the wait; whoever waits for anybody is done then, here and at other doors.
    fn release(&mut self, caller: CallerId, now: Time, units: &mut impl PoolUnits<Permit = P>) -> PoolAnswer {
        let (gauge, since) = match self.end_wait(caller) {
            Some(wait) => {
                units.job_done(&wait.gauge, now);
                (wait.gauge, wait.since)
            }
            None => match self.callers.get_mut(&caller).and_then(|of| of.locks.pop()) {
                Some(lock) => {
                    units.job_done(&lock.gauge, now);
                    self.end_lock(lock, now)
                }
                None => {
                    self.counts.release_mismatch += 1;
                    return PoolAnswer::NotLocked;
                }
            },
        };
        self.counts.releases += 1;
        self.finish(&gauge.key, now.since(since), now);
        self.forget(&gauge.key);
        PoolAnswer::Released
    }

    /// Takes a unit that has come for a gauge, for the oldest caller who waits for itself, or else for anybody. Returns it if
    /// nobody does.
    pub fn serve(&mut self, gauge: &PoolGauge, permit: P, now: Time) -> Option<P> {
        let Some(line) = self.keys.get(&gauge.key).filter(|known| known.working < gauge.workers) else {
            return Some(permit);
        };
        let waits = |caller: &&CallerId| {
            let wait = self.callers.get(*caller).and_then(|of| of.wait.as_ref());
            wait.is_some_and(|wait| wait.gauge.workers == gauge.workers)
        };
        let first = line.for_me.iter().find(waits).or_else(|| line.for_anyone.iter().find(waits)).copied();
        match first {
            Some(caller) => {
                self.grant(caller, Some(permit), now);
                None
            }
            None => Some(permit),
        }
    }

    /// The server refuses a gauge: nobody waits for it any more.
    pub fn refuse(&mut self, gauge: &PoolGauge, now: Time) {
        let Some(line) = self.keys.get(&gauge.key) else { return };
        let waiting: Vec<CallerId> = line.for_me.iter().chain(&line.for_anyone).copied().collect();
        for caller in waiting {
            let wait = self.callers.get(&caller).and_then(|of| of.wait.as_ref());
            if wait.is_some_and(|wait| wait.gauge.workers == gauge.workers)
                && let Some(wait) = self.end_wait(caller)
            {
                let answer = self.without_lease(caller, wait.gauge, now);
                self.said.push((caller, answer));
            }
        }
        self.forget(&gauge.key);
    }

    /// Decides of a wait for which it is time. Returns the answer, if that is the end of it.
    pub fn expire(
        &mut self,
        caller: CallerId,
        now: Time,
        units: &impl PoolUnits<Permit = P>,
    ) -> Option<PoolAnswer> {
        let brief = now + self.rules.wait.max(LOOK_AGAIN);
        let wait = self.callers.get_mut(&caller)?.wait.as_mut().filter(|wait| wait.due() <= now)?;
        let is_leased = units.is_leased(&wait.gauge);
        let is_full = self.keys.get(&wait.gauge.key).is_some_and(|line| line.working >= wait.gauge.workers);
        if now < wait.deadline && (is_leased || self.rules.is_open && is_full) {
            wait.doubts = (!is_leased).then_some(brief);
            return None;
        }
        let wait = self.end_wait(caller)?;
        let answer = match is_leased {
            true => {
                self.counts.wasted += now.since(wait.since);
                PoolAnswer::Timeout
            }
            false => self.without_lease(caller, Arc::clone(&wait.gauge), now),
        };
        self.forget(&wait.gauge.key);
        Some(answer)
    }

    /// The caller is gone: what it had is free, and nobody is told that the work was done.
    pub fn leave(&mut self, caller: CallerId, now: Time) {
        let ended = self.end_wait(caller).map(|wait| wait.gauge);
        let locks = self.callers.remove(&caller).map(|of| of.locks).unwrap_or_default();
        let ended = ended.into_iter().chain(locks.into_iter().rev().map(|lock| self.end_lock(lock, now).0));
        for gauge in ended.collect::<Vec<_>>() {
            self.forget(&gauge.key);
        }
    }

    /// The answers to callers who waited, since the last call.
    pub fn said(&mut self) -> Vec<(CallerId, PoolAnswer)> {
        std::mem::take(&mut self.said)
    }

    /// The gauges of which another number of units may be needed than at the last call.
    pub fn touched(&mut self) -> Vec<Arc<PoolGauge>> {
        std::mem::take(&mut self.touched)
    }

    /// An answer could not be sent.
    pub fn send_failed(&mut self) {
        self.counts.failed_sends += 1;
    }
}
