//! The listener that is woken when something is refused, so that more is asked for at once.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;

use crate::demand::haste::KnockGate;

/// Nobody is told.
const SHUT: u8 = 0;
const KNOCKED: u8 = 1;
const OPEN: u8 = 2;

#[derive(Debug)]
pub(super) struct Knocker {
    gate: AtomicU8,
    waker: OnceLock<Waker>,
}

// === impl Knocker ===

impl Knocker {
    pub(super) const fn new() -> Knocker {
        Knocker { gate: AtomicU8::new(SHUT), waker: OnceLock::new() }
    }

    /// Wakes `waker` at the next refusal. The first to ask for that stays the one.
    pub(super) fn set_waker(&self, waker: Waker) {
        if self.waker.set(waker).is_ok() {
            self.set(KnockGate::Open);
        }
    }

    pub(super) fn set(&self, gate: KnockGate) {
        let gate = match gate {
            KnockGate::Open => OPEN,
            KnockGate::Knocked => KNOCKED,
            KnockGate::Shut => SHUT,
        };
        self.gate.store(gate, Relaxed);
    }

    /// Whether what is allowed may not be all that can be had.
    pub(super) fn is_hopeful(&self) -> bool {
        self.gate.load(Relaxed) != SHUT
    }

    /// Something was refused, or soon will be.
    #[inline]
    pub(super) fn knock(&self) {
        if self.gate.load(Relaxed) == OPEN {
            self.knock_once();
        }
    }

    #[cold]
    fn knock_once(&self) {
        if self.gate.compare_exchange(OPEN, KNOCKED, Relaxed, Relaxed).is_ok()
            && let Some(waker) = self.waker.get()
        {
            waker.wake_by_ref();
        }
    }
}
