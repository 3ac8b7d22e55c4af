//! A clock that a test moves, and tasks that run only when they are woken, so that a lost wake-up is a failed test.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use lessor_proto::Time;

use super::Clock;

#[derive(Default)]
struct State {
    now: Time,
    sleepers: Vec<(Time, Waker)>,
}

/// Stands still until moved.
#[derive(Clone, Default)]
pub(crate) struct FakeClock(Arc<Mutex<State>>);

/// Futures and what became of them.
pub(crate) struct Tasks<'a, T> {
    clock: FakeClock,
    tasks: Vec<Task<'a, T>>,
    finished: Vec<(usize, T)>,
}

struct Task<'a, T> {
    woken: Arc<Flag>,
    /// Gone when it has finished or was cancelled.
    future: Option<Pin<Box<dyn Future<Output = T> + 'a>>>,
}

struct Flag(AtomicBool);

impl Clock for FakeClock {
    fn now(&self) -> Time {
        self.0.lock().unwrap().now
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> + Send {
        std::future::poll_fn(move |cx| {
            let mut state = self.0.lock().unwrap();
            if state.now >= at {
                return Poll::Ready(());
            }
            state.sleepers.push((at, cx.waker().clone()));
            Poll::Pending
        })
    }
}

impl FakeClock {
    /// Moves on to the next sleeper's moment, or to `end`.
    fn step(&self, end: Time) {
        let mut state = self.0.lock().unwrap();
        let next = state.sleepers.iter().map(|&(at, _)| at).min().unwrap_or(end).min(end);
        state.now = state.now.max(next);
        let now = state.now;
        let (due, later): (Vec<_>, Vec<_>) = state.sleepers.drain(..).partition(|&(at, _)| at <= now);
        state.sleepers = later;
        drop(state);
        for (_, waker) in due {
            waker.wake();
        }
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl<'a, T> Tasks<'a, T> {
    pub(crate) fn new(clock: &FakeClock) -> Tasks<'a, T> {
        Tasks { clock: clock.clone(), tasks: Vec::new(), finished: Vec::new() }
    }

    /// Adds a task, runs it until it waits, and returns its number.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = T> + 'a) -> usize {
        self.tasks
            .push(Task { woken: Arc::new(Flag(AtomicBool::new(true))), future: Some(Box::pin(future)) });
        self.run();
        self.tasks.len() - 1
    }

    /// Runs whatever was woken.
    pub(crate) fn run(&mut self) {
        let mut busy = true;
        while busy {
            busy = false;
            for (index, task) in self.tasks.iter_mut().enumerate() {
                let woken = task.woken.0.swap(false, Ordering::SeqCst);
                let Some(future) = task.future.as_mut().filter(|_| woken) else {
                    continue;
                };
                busy = true;
                let waker = Waker::from(Arc::clone(&task.woken));
                if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                    task.future = None;
                    self.finished.push((index, value));
                }
            }
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.clock.now() + time;
        self.run();
        while self.clock.now() < end {
            self.clock.step(end);
            self.run();
        }
    }

    /// Drops a task.
    pub(crate) fn cancel(&mut self, task: usize) {
        self.tasks[task].future = None;
        self.run();
    }

    /// Takes the tasks that finished since the last call, in order.
    pub(crate) fn finished(&mut self) -> Vec<(usize, T)> {
        std::mem::take(&mut self.finished)
    }
}
