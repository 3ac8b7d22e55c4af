//! The runtime of the process, and waits on it.

use std::future::Future;
use std::mem;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::fork::{self, PerProcess};

/// The time between two looks whether a signal has come: Python sees one only when it is asked.
const LOOK: Duration = Duration::from_millis(50);

static RUNTIME: PerProcess<Runtime> = PerProcess::new();

/// The runtime of this process, with two workers, made at first use.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    fork::look();
    RUNTIME.get_or_make(|| {
        let runtime =
            Builder::new_multi_thread().worker_threads(2).thread_name("lessor").enable_all().build();
        runtime.map_err(|error| PyRuntimeError::new_err(format!("no threads for lessor: {error}")))
    })
}

/// Waits for `future` while other threads of Python run. A signal whose handler raises ends the wait, and drops the
/// future.
pub(crate) fn wait<F>(py: Python<'_>, future: F) -> PyResult<F::Output>
where
    F: Future + Send,
    F::Output: Send,
{
    let runtime = runtime()?;
    let generation = fork::generation();
    let mut future = Box::pin(future);
    // What is there at once is had without giving the interpreter's lock away.
    let first = {
        let _entered = runtime.enter();
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    if let Poll::Ready(output) = first {
        return Ok(output);
    }
    loop {
        let done = py.detach(|| runtime.block_on(async { timeout(LOOK, &mut future).await }));
        if let Ok(output) = done {
            return Ok(output);
        }
        let signals = py.check_signals();
        if fork::generation() != generation {
            // The handler has forked, and this is the child: what is waited for is the parent's.
            mem::forget(future);
            signals?;
            return Err(PyRuntimeError::new_err("the process has forked while it waited"));
        }
        signals?;
    }
}
