//! A permit of a gauge, as Python sees it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tokio::time::timeout as within;

use crate::arguments::Seconds;
use crate::fork::Owned;
use crate::promise::{nothing, promise, ready};
use crate::runtime::wait;

/// Units of a gauge in use, until they are released.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Permit {
    gauge: String,
    units: u32,
    held: Slip<lessor_client::Permit>,
}

/// A permit that can be released, of the process that took it.
#[derive(Debug)]
pub(crate) struct Slip<T> {
    held: Mutex<Option<Owned<T>>>,
}

// === impl Slip ===

impl<T> Slip<T> {
    pub(crate) fn new(permit: T) -> Slip<T> {
        Slip { held: Mutex::new(Some(Owned::new(permit))) }
    }

    /// The view that `look` has of it; nothing once it is released, or in another process.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        self.lock().as_ref().and_then(Owned::get).map(look)
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut T)) {
        if let Some(held) = self.lock().as_mut().and_then(Owned::get_mut) {
            change(held);
        }
    }

    pub(crate) fn release(&self) {
        let held = self.lock().take();
        drop(held);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Owned<T>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Permit ===

impl Permit {
    pub(crate) fn new(gauge: &str, permit: lessor_client::Permit) -> Permit {
        Permit { gauge: gauge.to_owned(), units: permit.units(), held: Slip::new(permit) }
    }
}

#[pymethods]
impl Permit {
    #[getter]
    fn gauge(&self) -> &str {
        &self.gauge
    }

    #[getter]
    fn units(&self) -> u32 {
        self.held.look(lessor_client::Permit::units).unwrap_or(0)
    }

    #[getter]
    fn expired(&self) -> bool {
        self.held.look(lessor_client::Permit::is_expired).unwrap_or(true)
    }

    #[getter]
    fn remaining(&self) -> Option<f64> {
        let remaining = self.held.look(lessor_client::Permit::remaining).unwrap_or(Some(Duration::ZERO));
        remaining.as_ref().map(Duration::as_secs_f64)
    }

    #[pyo3(signature = (timeout=None))]
    fn wait_expired(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<bool> {
        let Some(term) = self.held.look(lessor_client::Permit::without_units) else { return Ok(true) };
        match timeout {
            Some(Seconds(time)) => wait(py, async { within(time, term.expired()).await.is_ok() }),
            None => wait(py, async { term.expired().await }).map(|()| true),
        }
    }

    fn wait_expired_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let term = self.held.look(lessor_client::Permit::without_units);
        let end = async move {
            if let Some(term) = term {
                term.expired().await;
            }
        };
        promise(py, end, nothing)
    }

    fn shrink(&self, units: crate::arguments::Units) {
        self.held.change(|permit| permit.shrink(units.0));
    }

    fn release(&self) {
        self.held.release();
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, _raised: &Bound<'_, PyTuple>) {
        self.release();
    }

    fn __aenter__<'py>(slf: PyRef<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ready(py, Py::from(slf).into_any())
    }

    #[pyo3(signature = (*_raised))]
    fn __aexit__<'py>(&self, py: Python<'py>, _raised: &Bound<'_, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.release();
        ready(py, py.None())
    }

    fn __repr__(&self) -> String {
        let state = match self.held.look(lessor_client::Permit::remaining) {
            None => "released".to_owned(),
            Some(None) => "without end".to_owned(),
            Some(Some(Duration::ZERO)) => "expired".to_owned(),
            Some(Some(time)) => format!("for {:.1} s at the least", time.as_secs_f64()),
        };
        format!("<lessor.Permit: {} of {:?}, {state}>", self.units, self.gauge)
    }
}
