//! A rate, as Python sees it.

use std::sync::Arc;

use lessor_client::Denied;
use lessor_client::internals::limiter::Limiter;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Seconds, Units};
use crate::connection::Connection;
use crate::domain::Domain;
use crate::handle::Handle;
use crate::lease::Lease;
use crate::options::Options;
use crate::promise::{nothing, promise};
use crate::raise;
use crate::runtime::wait;

/// An open rate: units a second.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Rate {
    pub(crate) handle: Arc<Handle<Limiter>>,
}

async fn acquire(rate: &lessor_client::Rate, n: Units, timeout: Option<Seconds>) -> Result<(), Denied> {
    match timeout {
        Some(Seconds(timeout)) => rate.acquire_within(n.0, timeout).await,
        None => rate.acquire(n.0).await,
    }
}

// === impl Rate ===

impl Rate {
    pub(crate) fn open(
        py: Python<'_>,
        connection: &Arc<Connection>,
        name: String,
        options: Options,
    ) -> PyResult<Rate> {
        let handle = Handle::open(py, connection, name, options, |client, name, options| {
            let mut opening = options.apply(client.rate(name)).domains(options.domains);
            if let Some(burst) = options.burst {
                opening = opening.burst(burst);
            }
            opening.open()
        })?;
        Ok(Rate { handle })
    }
}

#[pymethods]
impl Rate {
    #[getter]
    fn name(&self) -> &str {
        &self.handle.name
    }

    #[getter]
    fn lease(&self, py: Python<'_>) -> PyResult<Lease> {
        self.handle.lease(py)
    }

    #[inline]
    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn try_acquire(&self, py: Python<'_>, n: Units) -> PyResult<bool> {
        Ok(self.handle.resource(py)?.try_acquire(n.0).is_ok())
    }

    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn acquire_nowait(&self, py: Python<'_>, n: Units) -> PyResult<()> {
        let granted = self.handle.resource(py)?.try_acquire(n.0);
        granted.map_err(|denied| raise::denied(py, &self.handle.name, &denied))
    }

    #[pyo3(signature = (n=Units(1), timeout=None), text_signature = "($self, n=1, timeout=None)")]
    fn acquire(&self, py: Python<'_>, n: Units, timeout: Option<Seconds>) -> PyResult<()> {
        let rate = self.handle.resource_to_wait_for(py)?;
        let granted = wait(py, acquire(rate, n, timeout))?;
        granted.map_err(|denied| raise::denied(py, &self.handle.name, &denied))
    }

    #[pyo3(signature = (n=Units(1), timeout=None), text_signature = "($self, n=1, timeout=None)")]
    fn acquire_async<'py>(
        &self,
        py: Python<'py>,
        n: Units,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let rate = self.handle.resource_to_wait_for(py)?.clone();
        let granted = async move { acquire(&rate, n, timeout).await };
        let name = self.handle.name.clone();
        promise(py, granted, move |py, granted| match granted {
            Ok(()) => nothing(py, ()),
            Err(denied) => Err(raise::denied(py, &name, &denied)),
        })
    }

    fn settle(&self, py: Python<'_>, granted: Units, actual: Units) -> PyResult<()> {
        self.handle.resource(py)?.settle(granted.0, actual.0);
        Ok(())
    }

    fn set_wants(&self, py: Python<'_>, wants: f64) -> PyResult<()> {
        self.handle.set_wants(py, Some(wants))
    }

    fn measure_wants(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.set_wants(py, None)
    }

    fn set_kill_switch(&self, py: Python<'_>, killed: bool) -> PyResult<()> {
        self.handle.resource(py)?.set_kill_switch(killed);
        Ok(())
    }

    fn domain(&self, name: String) -> Domain {
        Domain::new(Arc::clone(&self.handle), name)
    }

    #[pyo3(signature = (cost=None, key=None, timeout=None), text_signature = "($self, cost=1, key=None, timeout=None)")]
    fn limited<'py>(
        slf: &Bound<'py, Self>,
        cost: Option<&Bound<'py, PyAny>>,
        key: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keywords = PyDict::new(slf.py());
        if let Some(cost) = cost {
            keywords.set_item("cost", cost)?;
        }
        keywords.set_item("key", key)?;
        keywords.set_item("timeout", timeout)?;
        slf.py().import("lessor._limited")?.getattr("limited_by_rate")?.call((slf,), Some(&keywords))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.handle.describe(py, "Rate", "/s")
    }
}
