//! The turns in which a connection is read: one that says something without a pause is not read on until other tasks have had the
//! thread. The runtime counts reads and not bytes, so a turn would be thousands of calls otherwise.

use std::task::{Context, Poll, ready};

/// Bytes that are read in one turn.
const TURN: usize = 16 << 10;

/// The turn of one connection.
#[derive(Debug)]
pub(super) struct ReadTurn {
    /// Bytes that are left of it.
    left: usize,
}

// === impl ReadTurn ===

impl Default for ReadTurn {
    fn default() -> ReadTurn {
        ReadTurn { left: TURN }
    }
}

impl ReadTurn {
    /// Reads some bytes, as soon as it is the connection's turn; `read` returns what came of it, and how many there were.
    pub(super) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Context<'_>) -> Poll<(T, usize)>,
    ) -> Poll<T> {
        if self.left == 0 {
            self.left = TURN;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        // Whoever waits for more has the thread to itself no longer.
        let left = std::mem::replace(&mut self.left, TURN);
        let (read, bytes) = ready!(read(cx));
        self.left = left.saturating_sub(bytes);
        Poll::Ready(read)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn who_speaks_without_a_pause_is_read_a_turn_at_a_time_and_woken_for_the_next() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut turn = ReadTurn::default();
        let mut read = |bytes: Option<usize>| {
            let read = |_: &mut Context<'_>| bytes.map_or(Poll::Pending, |bytes| Poll::Ready(((), bytes)));
            (turn.poll(&mut cx, read).is_ready(), woken.0.load(Ordering::Relaxed))
        };
        for _ in 0..2 {
            assert_eq!(read(Some(TURN / 2)), (true, 0));
        }
        assert_eq!(read(Some(1)), (false, 1), "others have the thread");
        assert_eq!(read(Some(TURN / 2)), (true, 1));
        assert_eq!(read(None), (false, 1), "its peer will wake it");
        for _ in 0..2 {
            assert_eq!(read(Some(TURN / 2)), (true, 1), "a pause begins a turn");
        }
        assert_eq!(read(Some(1)), (false, 2));
    }
}
