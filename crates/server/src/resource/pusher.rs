//! The pusher of a resource: who listens, who of them is short of its share, whether all of them have been told what is due
//! to them, and when they are looked at next.
//!
//! Whatever moves a share or frees capacity leaves the resource *unsettled*. It is settled at the next look, which comes at
//! once, but not sooner after the last one than that one was worth. Who does not listen any more is short of nothing, asks
//! for no units, and is told of nothing: that is one step here, so that nobody has to remember the others.

use std::time::Duration;

use lessor_proto::{Amount, Time};

use super::batch::Batch;
use super::calendar::earliest;
use super::feeding::{SLICE, Turn};
use super::shortage::Shortage;
use super::slab::Slot;
use super::streaming::{Rank, Streaming, Told};
use super::units::Pool;
use crate::streams::Peer;

/// Those who listen to a resource, and what is to be done about them.
#[derive(Clone, Debug)]
pub(super) struct Pusher {
    listeners: Streaming,
    /// Streams on which nobody listens any more, as far as the synchronisation of domains has not heard of it.
    silent: Vec<Peer>,
    /// Those who are short of their share.
    shortage: Shortage,
    /// Whether they are served one by one or together.
    batch: Batch,
    /// Units for those whose leases are too small to save one up.
    pool: Pool,
    /// Something has moved shares or freed capacity since those who listen were last told what that means for them.
    unsettled: bool,
    /// Not before then are they told again.
    next_look: Time,
}

/// The least time between two looks at a resource.
const LEAST_PACE: Duration = Duration::from_micros(200);
/// The same while a batch gathers.
const GATHERING_PACE: Duration = Duration::from_millis(1);
/// The time that one grant adds to that, and one holder that was looked at.
const PACE_PER_GRANT: Duration = Duration::from_micros(20);
const PACE_PER_LOOK: Duration = Duration::from_micros(1);

// === impl Pusher: the pace ===

impl Pusher {
    /// Nobody listens at `now`.
    pub(super) fn new(now: Time) -> Pusher {
        Pusher {
            listeners: Streaming::default(),
            silent: Vec::new(),
            shortage: Shortage::default(),
            batch: Batch::default(),
            pool: Pool::default(),
            unsettled: false,
            next_look: now,
        }
    }

    /// Those who listen may be due something else than they were told.
    pub(super) fn unsettle(&mut self) {
        self.unsettled = true;
    }

    /// The same if something `has_moved`.
    pub(super) fn unsettle_if(&mut self, has_moved: bool) {
        self.unsettled |= has_moved;
    }

    /// Whether those who listen are to be told at `now` what has changed for them.
    pub(super) fn is_unsettled(&self, now: Time) -> bool {
        self.is_awaited() && self.next_look <= now
    }

    /// Whether a look is to come: something has moved, or not all have been looked at since then.
    fn is_awaited(&self) -> bool {
        self.unsettled || self.listeners.is_in_round()
    }

    /// A look begins: whatever moves from here on is for the next one.
    pub(super) fn begin_look(&mut self) {
        if std::mem::take(&mut self.unsettled) {
            self.listeners.begin_round();
        }
    }

    /// A look at `now` has told and tried so many, and has looked at `others` one by one.
    pub(super) fn end_look(&mut self, now: Time, turn: Turn, others: &[Slot]) {
        match turn.told >= SLICE {
            // Some of these may be due something as well.
            true => self.unsettled = true,
            false => self.listeners.pass_others(others),
        }
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let pace = PACE_PER_GRANT * count(turn.told) + PACE_PER_LOOK * count(others.len() + turn.tries);
        let least = if self.batch.is_gathering() { GATHERING_PACE } else { LEAST_PACE };
        self.next_look = now + least.max(pace);
    }

    /// Drops recalls that have not brought anything for too long, and lets a batch go that has gathered long enough.
    pub(super) fn advance(&mut self, now: Time) {
        self.shortage.set_now(now);
        self.unsettled |= self.shortage.lapse(now);
        self.unsettled |= self.batch.next_deadline().is_some_and(|at| at <= now);
    }

    /// When it has to be looked at, if nothing else happens.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        let unsettled = self.is_awaited().then_some(self.next_look);
        let batch = self.batch.next_deadline().map(|at| at.max(self.next_look));
        earliest([unsettled, self.shortage.next_deadline(), batch, self.pool.wake()])
    }
}

// === impl Pusher: who listens ===

impl Pusher {
    /// Those who listen.
    pub(super) fn listeners(&self) -> &Streaming {
        &self.listeners
    }

    /// Whether anybody listens.
    pub(super) fn has_listeners(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// The stream on which the holder at `slot` listens.
    pub(super) fn peer(&self, slot: Slot) -> Option<Peer> {
        self.listeners.peer(slot)
    }

    /// The holder at `slot` listens on `peer` from here on, and on nothing else.
    pub(super) fn attach(&mut self, slot: Slot, peer: Peer) {
        if self.listeners.peer(slot) != Some(peer) {
            self.pool.leave(slot);
        }
        self.listeners.attach(slot, peer);
    }

    /// The holder at `slot` listens no more; where domains `are_shared` their synchronisation is to hear of it.
    pub(super) fn detach(&mut self, slot: Slot, are_shared: bool) {
        self.silent.extend(self.listeners.peer(slot).filter(|_| are_shared));
        self.shortage.forget(slot);
        self.give_up(slot);
    }

    /// Somebody else speaks for the holder at `slot`, and does not listen yet.
    pub(super) fn give_up(&mut self, slot: Slot) {
        self.listeners.remove(slot);
        self.pool.leave(slot);
    }

    /// Whether there are streams on which nobody listens any more, of which nobody has asked yet.
    pub(super) fn has_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// Returns the streams on which nobody listens any more, since this was last asked.
    pub(super) fn take_silent(&mut self) -> Vec<Peer> {
        std::mem::take(&mut self.silent)
    }

    /// The holder at `slot` is to be told again, if it listens, whatever it was told.
    pub(super) fn owe(&mut self, slot: Slot) {
        self.listeners.owe(slot);
    }

    /// Those who could not be told anything may be told something now.
    pub(super) fn resume(&mut self) {
        self.listeners.resume();
    }

    /// The holder at `slot` was told something.
    pub(super) fn tell(&mut self, slot: Slot, told: Told) {
        self.listeners.tell(slot, told);
    }

    /// The holder at `slot` cannot be told anything now, whatever its stream takes.
    pub(super) fn stall(&mut self, slot: Slot) {
        self.listeners.stall(slot);
    }

    /// The stream of the holder at `slot` takes nothing.
    pub(super) fn park(&mut self, slot: Slot) {
        self.listeners.park(slot);
    }

    /// The stream of the holder at `slot` may take something again.
    pub(super) fn unpark(&mut self, slot: Slot) {
        self.unsettled |= self.listeners.unpark(slot) && !self.shortage.is_empty();
    }

    /// Where the holder at `slot` stands from here on, which is charged for `coming` beyond its last grant.
    pub(super) fn rank(&mut self, slot: Slot, rank: Option<Rank>, coming: Amount) {
        self.shortage.give_back(slot, coming);
        self.listeners.rank(slot, rank);
    }
}

// === impl Pusher: who is short ===

impl Pusher {
    /// Those who are short of their share.
    pub(super) fn shortage(&self) -> &Shortage {
        &self.shortage
    }

    /// The same, to take what it has measured.
    pub(super) fn shortage_mut(&mut self) -> &mut Shortage {
        &mut self.shortage
    }

    /// The holder at `slot` misses so much of its share; nothing: it is not short.
    pub(super) fn set_missing(&mut self, slot: Slot, missing: Amount) {
        self.shortage.set(slot, missing);
    }

    /// The same of one that has just been heard.
    pub(super) fn hear_missing(&mut self, now: Time, slot: Slot, missing: Amount) {
        self.shortage.set_now(now);
        let was_short = self.shortage.has(slot);
        self.shortage.set(slot, missing);
        let is_short = self.shortage.has(slot);
        if is_short && !was_short {
            self.batch.join(now);
        }
        self.unsettled |= is_short;
    }

    /// The holder at `slot` is due nothing any more.
    pub(super) fn forget_missing(&mut self, slot: Slot) {
        self.shortage.forget(slot);
    }

    /// `amount` was recalled from the holder at `slot`.
    pub(super) fn note_recall(&mut self, now: Time, slot: Slot, amount: Amount) {
        self.shortage.recall(now, slot, amount);
    }

    /// Whether recalls are made one by one or together.
    pub(super) fn batch(&mut self) -> &mut Batch {
        &mut self.batch
    }

    /// Units for those whose leases are too small to save one up.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The same, to change it.
    pub(super) fn pool_mut(&mut self) -> &mut Pool {
        &mut self.pool
    }

    /// The same, beside those who listen.
    pub(super) fn pool_and_listeners(&mut self) -> (&mut Pool, &Streaming) {
        (&mut self.pool, &self.listeners)
    }
}
