//! Futures of asyncio that are fulfilled by futures of Rust.
//!
//! A future that is ready at once takes no task. Else a task of the runtime waits, and hands what comes to one thread,
//! which tells the event loop: so no worker that renews leases ever waits for the interpreter. Objects of Python stay
//! in a table that only threads touch that hold the interpreter's lock.

use std::collections::BTreeMap;
use std::future::Future;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::fork::{Owned, PerProcess};
use crate::runtime::runtime;

/// The futures of asyncio that are waited for, by number.
static PROMISES: Mutex<BTreeMap<u64, Promise>> = Mutex::new(BTreeMap::new());
static NUMBERS: AtomicU64 = AtomicU64::new(0);
static POST: PerProcess<Sender<Delivery>> = PerProcess::new();

/// Something that the thread does that tells event loops.
type Delivery = Box<dyn FnOnce(Python<'_>) + Send>;

/// A future of asyncio, and its loop.
struct Promise {
    event_loop: Py<PyAny>,
    future: Py<PyAny>,
}

/// The callback of a future that is done: what was waited for is given up if that was not the reason.
#[pyclass(frozen)]
struct GiveUp {
    number: u64,
    task: Owned<AbortHandle>,
}

/// The callback by which an event loop fulfils a future.
#[pyclass(frozen)]
struct Fulfil {
    future: Py<PyAny>,
    outcome: Mutex<Option<PyResult<Py<PyAny>>>>,
}

/// A future of the running event loop with what becomes of `future`, which is given up when that is cancelled.
pub(crate) fn promise<'py, F, T>(
    py: Python<'py>,
    future: F,
    convert: impl FnOnce(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let event_loop = py.import("asyncio")?.call_method0("get_running_loop")?;
    let promised = event_loop.call_method0("create_future")?;
    let runtime = runtime()?;
    let mut future = Box::pin(future);
    let first = {
        let _entered = runtime.enter();
        future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    };
    if let Poll::Ready(output) = first {
        fulfil(&promised, convert(py, output))?;
        return Ok(promised);
    }
    let post = post()?.clone();
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let promise = Promise { event_loop: event_loop.unbind(), future: promised.clone().unbind() };
    promises().insert(number, promise);
    let task = runtime.spawn(async move {
        let output = future.await;
        // The thread ends with the interpreter, and nobody waits any more then.
        let _ = post.send(Box::new(move |py| deliver(py, number, |py| convert(py, output))));
    });
    let give_up = GiveUp { number, task: Owned::new(task.abort_handle()) };
    promised.call_method1("add_done_callback", (give_up,))?;
    Ok(promised)
}

fn promises() -> MutexGuard<'static, BTreeMap<u64, Promise>> {
    PROMISES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way to the thread that tells event loops, which begins with the first who needs it.
fn post() -> PyResult<&'static Sender<Delivery>> {
    let made = POST.get_or_make(|| {
        let (post, deliveries) = channel();
        std::thread::Builder::new().name("lessor-asyncio".into()).spawn(move || deliver_all(&deliveries))?;
        Ok::<_, std::io::Error>(post)
    });
    made.map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(format!("no thread for lessor: {error}")))
}

fn deliver_all(deliveries: &Receiver<Delivery>) {
    while let Ok(delivery) = deliveries.recv() {
        let delivered = Python::try_attach(|py| {
            delivery(py);
            deliveries.try_iter().for_each(|delivery| delivery(py));
        });
        if delivered.is_none() {
            return; // the interpreter is ending
        }
    }
}

/// Tells the event loop of a future, unless somebody has given that up.
fn deliver(py: Python<'_>, number: u64, outcome: impl FnOnce(Python<'_>) -> PyResult<Py<PyAny>>) {
    let Some(Promise { event_loop, future }) = promises().remove(&number) else { return };
    let outcome = Mutex::new(Some(outcome(py)));
    // A loop that is closed wants to know nothing, and what came is dropped.
    let _ = event_loop.call_method1(py, "call_soon_threadsafe", (Fulfil { future, outcome },));
}

/// Sets what has come, unless the future was cancelled: then it is dropped, and a permit comes back by that.
fn fulfil(future: &Bound<'_, PyAny>, outcome: PyResult<Py<PyAny>>) -> PyResult<()> {
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match outcome {
        Ok(value) => future.call_method1("set_result", (value,))?,
        Err(error) => future.call_method1("set_exception", (error.into_value(future.py()),))?,
    };
    Ok(())
}

#[pymethods]
impl GiveUp {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        let promise = promises().remove(&self.number);
        match self.task.get() {
            Some(task) if promise.is_some() => task.abort(),
            Some(_) => {}
            // A child of the process that waits: nothing here is its own.
            None => mem::forget(promise),
        }
    }
}

#[pymethods]
impl Fulfil {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner).take();
        outcome.map_or(Ok(()), |outcome| fulfil(self.future.bind(py), outcome))
    }
}

/// The outcome of what cannot fail.
pub(crate) fn nothing(py: Python<'_>, (): ()) -> PyResult<Py<PyAny>> {
    Ok(py.None())
}

/// A future of the running event loop that is done.
pub(crate) fn ready(py: Python<'_>, value: Py<PyAny>) -> PyResult<Bound<'_, PyAny>> {
    let promised = py.import("asyncio")?.call_method0("get_running_loop")?.call_method0("create_future")?;
    promised.call_method1("set_result", (value,))?;
    Ok(promised)
}
