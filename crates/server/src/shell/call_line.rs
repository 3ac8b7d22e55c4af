//! The line of the calls that a budget cannot pay for yet. The first of them waits until it can, and the others for the first: if
//! each looked again whenever there is something to pay with, a flood would have the server do little else.

use std::sync::atomic::{AtomicUsize, Ordering};

use lessor_client::internals::clock;
use lessor_proto::Time;
use tokio::sync::Mutex;

/// The line of one budget.
#[derive(Debug, Default)]
pub(super) struct CallLine {
    /// Calls that are in it, the first among them.
    waiting: AtomicUsize,
    /// Held by the first; others have it in the order in which they came.
    turn: Mutex<()>,
}

/// A place in a line, until this is dropped.
struct Place<'a>(&'a AtomicUsize);

// === impl CallLine ===

impl CallLine {
    /// Waits until a call is paid for. `pay` tries to at a moment, and returns when to try again otherwise; `waits` is told first
    /// where it takes any time.
    pub(super) async fn pay(&self, pay: impl Fn(Time) -> Result<(), Time>, waits: impl FnOnce()) {
        if self.waiting.load(Ordering::Relaxed) == 0 && pay(clock::now()).is_ok() {
            return;
        }
        waits();
        let _place = Place::take(&self.waiting);
        let _turn = self.turn.lock().await;
        while let Err(at) = pay(clock::now()) {
            clock::sleep_until(at).await;
        }
    }
}

// === impl Place ===

impl Place<'_> {
    fn take(waiting: &AtomicUsize) -> Place<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Place(waiting)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use futures_util::future::join_all;
    use futures_util::{FutureExt, poll};

    use super::*;

    /// Calls that come one after the other, to a budget that has what a test gives it.
    #[derive(Default)]
    struct Calls {
        line: CallLine,
        budget: Cell<usize>,
        throttled: Cell<usize>,
        tried: RefCell<Vec<usize>>,
        served: RefCell<Vec<usize>>,
    }

    impl Calls {
        async fn call(&self, number: usize) {
            let pay = |now| {
                self.tried.borrow_mut().push(number);
                let left = self.budget.get().checked_sub(1).ok_or(now + Duration::from_millis(1))?;
                self.budget.set(left);
                Ok(())
            };
            self.line.pay(pay, || self.throttled.set(self.throttled.get() + 1)).await;
            self.served.borrow_mut().push(number);
        }
    }

    async fn pause() {
        clock::sleep_until(clock::now() + Duration::from_millis(20)).await;
    }

    #[tokio::test]
    async fn a_flood_is_served_in_its_order_and_only_the_first_looks_again() {
        let calls = Calls::default();
        calls.budget.set(2);
        let refill = async {
            pause().await;
            let mut tried = calls.tried.borrow().clone();
            tried.dedup();
            assert_eq!(tried, [0, 1, 2], "those who were paid for, and the first who was not");
            calls.budget.set(98);
        };
        futures_util::join!(join_all((0..100).map(|number| calls.call(number))), refill);
        assert_eq!(*calls.served.borrow(), (0..100).collect::<Vec<_>>());
        assert_eq!((calls.throttled.get(), calls.budget.get()), (98, 0));
        calls.budget.set(1);
        calls.call(100).await;
        assert_eq!(calls.throttled.get(), 98, "nobody is in the line");
    }

    #[tokio::test]
    async fn who_comes_later_stands_behind_and_who_gives_up_lets_the_next_one_go_on() {
        let calls = Calls::default();
        let mut waiting: Vec<_> = (0..3).map(|number| calls.call(number).boxed_local()).collect();
        for call in &mut waiting {
            assert!(poll!(call).is_pending());
        }
        // There is something to pay with again, and it is for those who were there.
        calls.budget.set(2);
        let mut late = calls.call(3).boxed_local();
        assert!(poll!(&mut late).is_pending());
        drop(waiting.remove(0));
        join_all(waiting).await;
        assert_eq!(*calls.served.borrow(), [1, 2]);
        calls.budget.set(1);
        late.await;
        assert_eq!(*calls.served.borrow(), [1, 2, 3]);
    }
}
