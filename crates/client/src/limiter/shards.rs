//! Tokens near the threads that spend them, and counts of what they did: one cache line each, so that threads do not
//! disturb each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use lessor_proto::Amount;

/// The number of shards. Threads beyond this number share.
const SHARDS: usize = 16;
/// Tokens for a shard while there is no limit.
const UNLIMITED_SHARE: u64 = 1024;
/// A shard holds what the rate brings in this many nanoseconds, at most.
const SHARE_NANOS: u128 = 1_000_000;
/// All shards together hold this part of the burst at most.
const SHARDS_PART: u64 = 2;
/// With less in a shard than this, there are none: every other permit would go to the bucket anyway.
const MIN_SHARE: u64 = 2;

/// Counts of tokens. They grow only under the lock of the central bucket and shrink without it; every change is one
/// atomic step on one word, so no ordering between words is needed.
#[derive(Debug)]
pub(super) struct Shards([TokenShard; SHARDS]);

/// Two lines wide, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug)]
struct TokenShard {
    tokens: AtomicU64,
    /// Units that were asked for here and denied, since the beginning.
    denied: AtomicU64,
    /// Units that were asked for here and granted by the meter, since the beginning.
    metered: AtomicU64,
}

static NEXT_LANE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static LANE: Cell<Option<usize>> = const { Cell::new(None) };
}

// === impl Shards ===

impl Shards {
    pub(super) const fn new() -> Shards {
        Shards([const { TokenShard::new() }; SHARDS])
    }

    /// Spends `n` tokens of this thread's shard if they are there: the fast path.
    #[inline]
    pub(super) fn spend(&self, n: u32) -> bool {
        let (tokens, n) = (&self.mine().tokens, u64::from(n));
        let mut there = tokens.load(Relaxed);
        while there >= n {
            match tokens.compare_exchange_weak(there, there - n, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(changed) => there = changed,
            }
        }
        false
    }

    /// Tokens in this thread's shard.
    pub(super) fn in_mine(&self) -> u64 {
        self.mine().tokens.load(Relaxed)
    }

    /// Puts tokens into this thread's shard; under the central lock only.
    pub(super) fn lend(&self, tokens: u64) {
        self.mine().tokens.fetch_add(tokens, Relaxed);
    }

    /// Tokens in all shards: at least as many as there are a moment later, for whoever holds the central lock.
    pub(super) fn total(&self) -> u64 {
        self.0.iter().map(|shard| shard.tokens.load(Relaxed)).sum()
    }

    /// Takes all tokens out of all shards.
    pub(super) fn collect(&self) -> u64 {
        self.0.iter().map(|shard| shard.tokens.swap(0, Relaxed)).sum()
    }

    /// Counts units that were denied.
    pub(super) fn count_denied(&self, n: u32) {
        self.mine().denied.fetch_add(u64::from(n), Relaxed);
    }

    /// Units denied so far.
    pub(super) fn denied(&self) -> u64 {
        self.0.iter().map(|shard| shard.denied.load(Relaxed)).sum()
    }

    /// Counts units that the meter granted.
    pub(super) fn count_metered(&self, n: u32) {
        self.mine().metered.fetch_add(u64::from(n), Relaxed);
    }

    /// Units granted by the meter so far.
    pub(super) fn metered(&self) -> u64 {
        self.0.iter().map(|shard| shard.metered.load(Relaxed)).sum()
    }

    #[inline]
    fn mine(&self) -> &TokenShard {
        &self.0[lane() % SHARDS]
    }
}

// === impl TokenShard ===

impl TokenShard {
    const fn new() -> TokenShard {
        TokenShard { tokens: AtomicU64::new(0), denied: AtomicU64::new(0), metered: AtomicU64::new(0) }
    }
}

/// The number of tokens that a shard may hold.
pub(super) fn share(rate: u64, burst_micros: u64) -> u64 {
    if rate == 0 {
        return UNLIMITED_SHARE;
    }
    let income = u128::from(rate) * SHARE_NANOS / 1_000_000_000 / u128::from(Amount::MICROS_PER_UNIT);
    let part = burst_micros / Amount::MICROS_PER_UNIT / (SHARDS as u64 * SHARDS_PART);
    let share = u64::try_from(income).unwrap_or(u64::MAX).min(part);
    if share < MIN_SHARE { 0 } else { share }
}

/// This thread's number, in the order in which threads first came here.
#[inline]
fn lane() -> usize {
    LANE.get().unwrap_or_else(next_lane)
}

/// Makes this thread one of that lane, so that a test can play several threads.
#[cfg(test)]
pub(super) fn sit(lane: usize) {
    LANE.set(Some(lane));
}

#[cold]
fn next_lane() -> usize {
    let lane = NEXT_LANE.fetch_add(1, Relaxed);
    LANE.set(Some(lane));
    lane
}
