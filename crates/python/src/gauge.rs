//! A gauge, as Python sees it.

use std::sync::Arc;

use lessor_client::Denied;
use lessor_client::internals::gauge::Semaphore;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arguments::{Seconds, Units};
use crate::connection::Connection;
use crate::handle::Handle;
use crate::lease::Lease;
use crate::options::Options;
use crate::permit::Permit;
use crate::promise::promise;
use crate::raise;
use crate::runtime::wait;

/// An open gauge: whole units in use at the same time.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Gauge {
    pub(crate) handle: Arc<Handle<Semaphore>>,
}

async fn acquire(
    gauge: &lessor_client::Gauge,
    n: Units,
    timeout: Option<Seconds>,
) -> Result<lessor_client::Permit, Denied> {
    match timeout {
        Some(Seconds(timeout)) => gauge.acquire_within(n.0, timeout).await,
        None => gauge.acquire(n.0).await,
    }
}

// === impl Gauge ===

impl Gauge {
    pub(crate) fn open(
        py: Python<'_>,
        connection: &Arc<Connection>,
        name: String,
        options: Options,
    ) -> PyResult<Gauge> {
        let open = |client: &lessor_client::Client, name: &str, options: &Options| {
            options.apply(client.gauge(name)).open()
        };
        Ok(Gauge { handle: Handle::open(py, connection, name, options, open)? })
    }

    fn permit(&self, py: Python<'_>, permit: Result<lessor_client::Permit, Denied>) -> PyResult<Permit> {
        let permit = permit.map_err(|denied| raise::denied(py, &self.handle.name, &denied))?;
        Ok(Permit::new(&self.handle.name, permit))
    }
}

#[pymethods]
impl Gauge {
    #[getter]
    fn name(&self) -> &str {
        &self.handle.name
    }

    #[getter]
    fn lease(&self, py: Python<'_>) -> PyResult<Lease> {
        self.handle.lease(py)
    }

    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn try_acquire(&self, py: Python<'_>, n: Units) -> PyResult<Option<Permit>> {
        let permit = self.handle.resource(py)?.try_acquire(n.0).ok();
        Ok(permit.map(|permit| Permit::new(&self.handle.name, permit)))
    }

    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn acquire_nowait(&self, py: Python<'_>, n: Units) -> PyResult<Permit> {
        self.permit(py, self.handle.resource(py)?.try_acquire(n.0))
    }

    #[pyo3(signature = (n=Units(1), timeout=None), text_signature = "($self, n=1, timeout=None)")]
    fn acquire(&self, py: Python<'_>, n: Units, timeout: Option<Seconds>) -> PyResult<Permit> {
        let gauge = self.handle.resource_to_wait_for(py)?;
        let permit = wait(py, acquire(gauge, n, timeout))?;
        self.permit(py, permit)
    }

    #[pyo3(signature = (n=Units(1), timeout=None), text_signature = "($self, n=1, timeout=None)")]
    fn acquire_async<'py>(
        &self,
        py: Python<'py>,
        n: Units,
        timeout: Option<Seconds>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let gauge = self.handle.resource_to_wait_for(py)?.clone();
        let permit = async move { acquire(&gauge, n, timeout).await };
        let name = self.handle.name.clone();
        let promised = promise(py, permit, move |py, permit| match permit {
            Ok(permit) => Ok(Py::new(py, Permit::new(&name, permit))?.into_any()),
            Err(denied) => Err(raise::denied(py, &name, &denied)),
        })?;
        py.import("lessor._acquiring")?.getattr("Acquiring")?.call1((promised,))
    }

    fn set_wants(&self, py: Python<'_>, wants: f64) -> PyResult<()> {
        self.handle.set_wants(py, Some(wants))
    }

    fn measure_wants(&self, py: Python<'_>) -> PyResult<()> {
        self.handle.set_wants(py, None)
    }

    #[pyo3(signature = (cost=None, timeout=None), text_signature = "($self, cost=1, timeout=None)")]
    fn limited<'py>(
        slf: &Bound<'py, Self>,
        cost: Option<&Bound<'py, PyAny>>,
        timeout: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keywords = PyDict::new(slf.py());
        if let Some(cost) = cost {
            keywords.set_item("cost", cost)?;
        }
        keywords.set_item("timeout", timeout)?;
        slf.py().import("lessor._limited")?.getattr("limited_by_gauge")?.call((slf,), Some(&keywords))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        self.handle.describe(py, "Gauge", " units")
    }
}
