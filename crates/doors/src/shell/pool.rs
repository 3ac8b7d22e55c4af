//! The door for PoolCounter: connections that say lines, and tasks that wait for units on behalf of those who wait.

mod jobs;
mod units;

use std::collections::{BTreeMap, VecDeque};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use lessor_client::internals::clock;
use lessor_client::internals::jobs::GaugeJobs;
use lessor_client::{Denied, Gauge, Permit};
use lessor_proto::Time;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use self::units::{HeldUnit, PoolGauges};
use super::Doors;
use super::connection::DoorConnection;
use super::figures::{AnswerLabel, DoorKind};
use super::listener::DoorListener;
use super::readiness::Readiness;
use crate::pool::{CallerId, PoolAnswer, PoolFault, PoolGauge, PoolLine, PoolLines, PoolRules, PoolTable};

/// The bytes by which it is known that a peer speaks: a line may be as short as this.
pub(super) const GREETING: usize = 1;
/// The interval at which idle gauges are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// The bytes that are read at a time.
const READ: usize = 2_048;
/// The lines with which no more is read until they are answered.
const PENDING: usize = 64;

/// The door.
#[derive(Debug)]
pub(super) struct PoolDoor {
    doors: Arc<Doors>,
    is_open: bool,
    state: Mutex<PoolState>,
}

/// All that changes of a door.
#[derive(Debug)]
struct PoolState {
    table: PoolTable<HeldUnit>,
    gauges: PoolGauges,
    /// The answers to callers, in the order in which they were decided.
    mailboxes: BTreeMap<CallerId, UnboundedSender<PoolAnswer>>,
    /// The tasks that wait for units of gauges, by name, to be told when another number is needed.
    waiters: BTreeMap<Box<str>, Arc<Notify>>,
}

/// The place of a caller in the table, which it leaves when this is dropped.
struct CallerPlace {
    door: Arc<PoolDoor>,
    caller: CallerId,
}

// === impl PoolDoor ===

impl PoolDoor {
    pub(super) fn new(doors: Arc<Doors>, is_open: bool) -> Arc<PoolDoor> {
        let gauges = PoolGauges::new(doors.client().clone(), doors.figures.pool.clone(), doors.keys.most);
        let table = PoolTable::new(PoolDoor::rules_of(&doors, is_open), clock::now());
        let state = PoolState { table, gauges, mailboxes: BTreeMap::new(), waiters: BTreeMap::new() };
        Arc::new(PoolDoor { doors, is_open, state: Mutex::new(state) })
    }

    /// The rules of the book in force. Where that has no word for PoolCounter any more nothing is good syntax.
    fn rules_of(doors: &Doors, is_open: bool) -> PoolRules {
        let rules = doors.in_force.load();
        PoolRules { workers: rules.book().pool.unwrap_or(0), wait: rules.book().wait, is_open }
    }

    fn enter(self: &Arc<PoolDoor>) -> (CallerPlace, UnboundedReceiver<PoolAnswer>) {
        let (mailbox, answers) = unbounded_channel();
        let mut state = self.lock();
        let caller = state.table.enter();
        state.mailboxes.insert(caller, mailbox);
        (CallerPlace { door: Arc::clone(self), caller }, answers)
    }

    /// When there is something to be decided of a caller, whether it works or waits, and whether its next line has to wait.
    fn look(&self, caller: CallerId) -> (Option<Time>, bool, bool) {
        let table = &self.lock().table;
        (table.due(caller), table.is_busy(caller), table.is_asking(caller, clock::now()))
    }

    fn hear(self: &Arc<PoolDoor>, caller: CallerId, line: &PoolLine) {
        let rules = PoolDoor::rules_of(&self.doors, self.is_open);
        let mut state = self.lock();
        let PoolState { table, gauges, .. } = &mut *state;
        table.set_rules(rules);
        let answer = match line {
            PoolLine::Whole(line) => table.hear(caller, line, clock::now(), gauges),
            PoolLine::TooLong => Some(PoolAnswer::Fault(PoolFault::BadCommand)),
        };
        if let Some(answer) = answer {
            self.say(&state, caller, answer);
        }
        self.attend(&mut state);
    }

    /// Decides of the wait of a caller.
    fn expire(self: &Arc<PoolDoor>, caller: CallerId) {
        let mut state = self.lock();
        let PoolState { table, gauges, .. } = &mut *state;
        if let Some(answer) = table.expire(caller, clock::now(), gauges) {
            self.say(&state, caller, answer);
        }
        self.attend(&mut state);
    }

    /// Takes the answer of a gauge to one of those who wait for a unit of it.
    fn deliver(self: &Arc<PoolDoor>, gauge: &Arc<PoolGauge>, answer: Result<Permit, Denied>) {
        let mut state = self.lock();
        match answer {
            Ok(permit) => {
                // The unit may be that of a job that was done: who waited for that hears of it first.
                state.take_job(gauge);
                let unit = state.gauges.unit(permit);
                drop(state.table.serve(gauge, unit, clock::now()));
            }
            // The server refuses it, or the client is closed.
            Err(_) => state.table.refuse(gauge, clock::now()),
        }
        self.attend(&mut state);
    }

    /// Does what follows from a change: says what is to be said, asks for as many units as are needed, and waits for those that
    /// are missing.
    fn attend(self: &Arc<PoolDoor>, state: &mut PoolState) {
        for gauge in state.table.touched() {
            let (working, wanted) = state.table.need(&gauge);
            state.gauges.want(&gauge, working + wanted);
            state.await_job(&gauge);
            match state.waiters.get(&gauge.name) {
                Some(told) => told.notify_one(),
                None if wanted > 0 => {
                    let Some(way) = state.gauges.way(&gauge) else { continue };
                    let told = Arc::new(Notify::new());
                    state.waiters.insert(gauge.name.clone(), Arc::clone(&told));
                    tokio::spawn(Arc::clone(self).wait(gauge, way, told));
                }
                None => {}
            }
        }
        for (caller, answer) in state.table.said() {
            self.say(state, caller, answer);
        }
        self.doors.figures.pool.show(&state.table.counts());
    }

    /// Waits for units of a gauge as long as somebody waits for one, and for jobs that are done elsewhere.
    async fn wait(
        self: Arc<PoolDoor>,
        gauge: Arc<PoolGauge>,
        (handle, mut jobs): (Gauge, GaugeJobs),
        told: Arc<Notify>,
    ) {
        let mut waits = FuturesUnordered::new();
        loop {
            let wanted = {
                let mut state = self.lock();
                let wanted = state.table.need(&gauge).1 as usize;
                if wanted == 0 {
                    state.waiters.remove(&gauge.name);
                    return;
                }
                wanted
            };
            if waits.len() > wanted {
                waits.clear();
            }
            while waits.len() < wanted {
                waits.push(handle.acquire_within(1, Duration::MAX));
            }
            tokio::select! {
                () = told.notified() => {}
                _ = jobs.elsewhere() => self.hear_elsewhere(&gauge),
                Some(answer) = waits.next() => self.deliver(&gauge, answer),
            }
        }
    }

    fn say(&self, state: &PoolState, caller: CallerId, answer: PoolAnswer) {
        let label = match &answer {
            PoolAnswer::Locked => Some(AnswerLabel::Granted),
            PoolAnswer::Timeout | PoolAnswer::QueueFull => Some(AnswerLabel::Refused),
            PoolAnswer::Done => Some(AnswerLabel::Done),
            PoolAnswer::Fault(PoolFault::NoLease) => Some(AnswerLabel::NoLease),
            PoolAnswer::Fault(_) | PoolAnswer::LockHeld | PoolAnswer::NotLocked => {
                Some(AnswerLabel::Malformed)
            }
            PoolAnswer::Released | PoolAnswer::Figures(_) => None,
        };
        if let Some(label) = label {
            self.doors.figures.request(DoorKind::Pool, "", label);
        }
        if label == Some(AnswerLabel::NoLease) {
            self.doors.figures.no_lease.inc();
        }
        if let Some(mailbox) = state.mailboxes.get(&caller) {
            // The connection may be at its end.
            let _ = mailbox.send(answer);
        }
    }

    /// No code of others runs under this lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CallerPlace ===

impl Drop for CallerPlace {
    fn drop(&mut self) {
        let mut state = self.door.lock();
        state.mailboxes.remove(&self.caller);
        state.table.leave(self.caller, clock::now());
        self.door.attend(&mut state);
    }
}

/// Serves connections until it ends. Those that have a lock or wait for one go on.
pub(super) async fn serve(mut listener: DoorListener, door: Arc<PoolDoor>, readiness: Readiness) {
    let (mut connections, mut ended) = (JoinSet::new(), pin!(readiness.clone().ended()));
    let mut sweep = clock::now() + SWEEP;
    loop {
        tokio::select! {
            () = &mut ended => break,
            Some(connection) = listener.accept() => {
                connections.spawn(converse(connection, Arc::clone(&door), readiness.clone()));
            }
            Some(_) = connections.join_next() => {}
            () = clock::sleep_until(sweep) => {
                sweep = clock::now() + SWEEP;
                door.lock().gauges.sweep(clock::now());
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection.
async fn converse(mut connection: DoorConnection, door: Arc<PoolDoor>, readiness: Readiness) {
    connection.keep_alive();
    let (place, mut answers) = door.enter();
    let caller = place.caller;
    let (mut lines, mut pending, mut bytes) = (PoolLines::default(), VecDeque::new(), [0; READ]);
    let (mut ended, mut is_ended) = (pin!(readiness.ended()), false);
    loop {
        let (due, is_busy, is_asking) = door.look(caller);
        if !is_asking && let Some(line) = pending.pop_front() {
            door.hear(caller, &line);
            continue;
        }
        if is_ended && !is_busy && answers.is_empty() {
            return;
        }
        // Who has a lock may be silent for as long as its work takes.
        connection.bear(is_busy);
        tokio::select! {
            biased;
            Some(answer) = answers.recv() => {
                connection.bear(false);
                if connection.write_all(answer.text().as_bytes()).await.is_err() {
                    door.lock().table.send_failed();
                    return;
                }
            }
            read = connection.read(&mut bytes), if pending.len() < PENDING => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => {
                    let mut rest = &bytes[..count];
                    pending.extend(std::iter::from_fn(|| lines.next(&mut rest)));
                }
            },
            () = clock::sleep_until(due.unwrap_or(Time::MAX)) => {
                door.expire(caller);
            }
            () = &mut ended, if !is_ended => is_ended = true,
        }
    }
}
