//! Several resources in one request, as Python sees it.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::limiter::Limiter;
use lessor_client::{Price, TogetherDenied};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{Seconds, Units};
use crate::gauge::Gauge;
use crate::handle::Handle;
use crate::permit::Slip;
use crate::promise::{promise, ready};
use crate::raise;
use crate::rate::Rate;
use crate::runtime::wait;

/// A request of several open resources: all that is wanted of each of them, or nothing of any.
#[pyclass(frozen, module = "lessor")]
#[derive(Clone)]
pub(crate) struct Together {
    min: u32,
    copies: u32,
    parts: Vec<Part>,
}

/// The permit for what several resources have granted.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct TogetherPermit {
    copies: u32,
    bound_by: Option<usize>,
    held: Slip<lessor_client::TogetherPermit>,
}

/// One of the resources.
#[derive(Clone)]
enum Part {
    Gauge(Arc<Handle<Semaphore>>, Price),
    Rate(Arc<Handle<Limiter>>, Price),
    Domain(Arc<Handle<Limiter>>, String, Price),
}

/// The same, opened in this process.
enum Opened {
    Gauge(lessor_client::Gauge, Price),
    Rate(lessor_client::Rate, Price),
    Domain(lessor_client::Rate, String, Price),
}

/// A request, opened in this process.
struct OpenedRequest {
    min: u32,
    copies: u32,
    parts: Vec<Opened>,
}

fn price(once: Option<Units>, each: Option<Units>) -> PyResult<Price> {
    match (once, each) {
        (Some(Units(units)), None) => Ok(Price::Once(units)),
        (None, Some(Units(units))) => Ok(Price::Each(units)),
        (Some(_), Some(_)) | (None, None) => Err(PyTypeError::new_err(
            "the price of a part is once=UNITS or each=UNITS, and one of them is wanted",
        )),
    }
}

// === impl Together ===

impl Together {
    pub(crate) fn between(min: Units, copies: Units) -> Together {
        Together { min: min.0, copies: copies.0.max(min.0), parts: Vec::new() }
    }

    fn with(&self, part: Part) -> Together {
        let mut together = self.clone();
        together.parts.push(part);
        together
    }

    fn open(&self, py: Python<'_>) -> PyResult<OpenedRequest> {
        crate::fork::look();
        let parts = self.parts.iter().map(|part| {
            Ok(match part {
                Part::Gauge(gauge, price) => Opened::Gauge(gauge.resource(py)?.clone(), *price),
                Part::Rate(rate, price) => Opened::Rate(rate.resource(py)?.clone(), *price),
                Part::Domain(rate, name, price) => {
                    Opened::Domain(rate.resource(py)?.clone(), name.clone(), *price)
                }
            })
        });
        Ok(OpenedRequest { min: self.min, copies: self.copies, parts: parts.collect::<PyResult<_>>()? })
    }

    fn names(&self) -> Vec<String> {
        let names = self.parts.iter().map(|part| match part {
            Part::Gauge(gauge, _) => gauge.name.clone(),
            Part::Rate(rate, _) => rate.name.clone(),
            Part::Domain(rate, name, _) => format!("{}[{name}]", rate.name),
        });
        names.collect()
    }
}

// === impl OpenedRequest ===

impl OpenedRequest {
    fn request(&self) -> lessor_client::Together<'_> {
        let request = lessor_client::Together::between(self.min, self.copies);
        self.parts.iter().fold(request, |request, part| match part {
            Opened::Gauge(gauge, price) => request.gauge(gauge, *price),
            Opened::Rate(rate, price) => request.rate(rate, *price),
            Opened::Domain(rate, name, price) => request.domain(rate, name, *price),
        })
    }

    async fn acquire(
        &self,
        timeout: Option<Seconds>,
    ) -> Result<lessor_client::TogetherPermit, TogetherDenied> {
        let request = match timeout {
            Some(Seconds(timeout)) => self.request().max_wait(timeout),
            None => self.request(),
        };
        request.acquire().await
    }
}

#[pymethods]
impl Together {
    #[pyo3(signature = (gauge, *, once=None, each=None))]
    fn gauge(&self, gauge: &Gauge, once: Option<Units>, each: Option<Units>) -> PyResult<Together> {
        Ok(self.with(Part::Gauge(Arc::clone(&gauge.handle), price(once, each)?)))
    }

    #[pyo3(signature = (rate, *, once=None, each=None))]
    fn rate(&self, rate: &Rate, once: Option<Units>, each: Option<Units>) -> PyResult<Together> {
        Ok(self.with(Part::Rate(Arc::clone(&rate.handle), price(once, each)?)))
    }

    #[pyo3(signature = (rate, name, *, once=None, each=None))]
    fn domain(
        &self,
        rate: &Rate,
        name: String,
        once: Option<Units>,
        each: Option<Units>,
    ) -> PyResult<Together> {
        Ok(self.with(Part::Domain(Arc::clone(&rate.handle), name, price(once, each)?)))
    }

    fn try_acquire(&self, py: Python<'_>) -> PyResult<Option<TogetherPermit>> {
        match self.open(py)?.request().try_acquire() {
            Ok(permit) => Ok(Some(TogetherPermit::new(permit))),
            Err(denied) if denied.denial().is_none() => Err(raise::together(py, &[], &denied)),
            Err(_) => Ok(None),
        }
    }

    fn acquire_nowait(&self, py: Python<'_>) -> PyResult<TogetherPermit> {
        let permit = self.open(py)?.request().try_acquire();
        permit.map(TogetherPermit::new).map_err(|denied| raise::together(py, &self.names(), &denied))
    }

    #[pyo3(signature = (timeout=None))]
    fn acquire(&self, py: Python<'_>, timeout: Option<Seconds>) -> PyResult<TogetherPermit> {
        let opened = self.open(py)?;
        let permit = wait(py, async move { opened.acquire(timeout).await })?;
        permit.map(TogetherPermit::new).map_err(|denied| raise::together(py, &self.names(), &denied))
    }

    #[pyo3(signature = (timeout=None))]
    fn acquire_async<'py>(&self, py: Python<'py>, timeout: Option<Seconds>) -> PyResult<Bound<'py, PyAny>> {
        let (opened, names) = (self.open(py)?, self.names());
        let permit = async move { opened.acquire(timeout).await };
        let promised = promise(py, permit, move |py, permit| match permit {
            Ok(permit) => Ok(Py::new(py, TogetherPermit::new(permit))?.into_any()),
            Err(denied) => Err(raise::together(py, &names, &denied)),
        })?;
        py.import("lessor._acquiring")?.getattr("Acquiring")?.call1((promised,))
    }

    fn __repr__(&self) -> String {
        format!("<lessor.Together: {} to {} of {}>", self.min, self.copies, self.names().join(", "))
    }
}

// === impl TogetherPermit ===

impl TogetherPermit {
    fn new(permit: lessor_client::TogetherPermit) -> TogetherPermit {
        TogetherPermit { copies: permit.copies(), bound_by: permit.bound_by(), held: Slip::new(permit) }
    }
}

#[pymethods]
impl TogetherPermit {
    #[getter]
    fn copies(&self) -> u32 {
        self.copies
    }

    #[getter]
    fn bound_by(&self) -> Option<usize> {
        self.bound_by
    }

    #[getter]
    fn expired(&self) -> bool {
        self.held.look(lessor_client::TogetherPermit::is_expired).unwrap_or(true)
    }

    #[getter]
    fn remaining(&self) -> Option<f64> {
        let deadline = self.held.look(lessor_client::TogetherPermit::deadline);
        let remaining = deadline.map_or(Some(Duration::ZERO), |end| end.map(|end| end.since(clock::now())));
        remaining.as_ref().map(Duration::as_secs_f64)
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
        let state = if self.expired() { ", released or expired" } else { "" };
        format!("<lessor.TogetherPermit: {} copies{state}>", self.copies)
    }
}
