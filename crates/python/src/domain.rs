//! A domain of a rate, as Python sees it.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::Denied;
use lessor_client::internals::limiter::Limiter;
use pyo3::prelude::*;

use crate::arguments::{Seconds, Units};
use crate::decision::Decision;
use crate::handle::Handle;
use crate::promise::promise;
use crate::raise;
use crate::runtime::wait;

/// Letters of the hash that a long name ends in.
const HASHED: usize = 16;

/// The domain of one tenant in an open rate.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Domain {
    rate: Arc<Handle<Limiter>>,
    name: String,
}

/// The hash that the name of a domain ends in where it is too long: see `lessor_tower::Name`.
#[pyfunction]
pub(crate) fn short_name(name: &str) -> String {
    blake3::hash(name.as_bytes()).to_hex()[..HASHED].to_owned()
}

// === impl Domain ===

impl Domain {
    pub(crate) fn new(rate: Arc<Handle<Limiter>>, name: String) -> Domain {
        Domain { rate, name }
    }

    fn raise(&self, py: Python<'_>, denied: &Denied) -> PyErr {
        raise::denied(py, &format!("{}[{}]", self.rate.name, self.name), denied)
    }

    fn granted(
        &self,
        py: Python<'_>,
        decision: Result<lessor_client::Decision, Denied>,
    ) -> PyResult<Decision> {
        decision.map(|decision| Decision::new(decision, None)).map_err(|denied| self.raise(py, &denied))
    }

    /// The decision, whether it grants or not. Where nothing is leased there is none.
    fn decided(
        &self,
        py: Python<'_>,
        decision: Result<lessor_client::Decision, Denied>,
    ) -> PyResult<Decision> {
        match decision {
            Ok(decision) => Ok(Decision::new(decision, None)),
            Err(denied) => match &denied {
                Denied::Domain(denial) => {
                    let after = denied.retry_after().as_ref().map(Duration::as_secs_f64);
                    Ok(Decision::new(denial.decision, after))
                }
                _ => Err(self.raise(py, &denied)),
            },
        }
    }
}

#[pymethods]
impl Domain {
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn try_acquire(&self, py: Python<'_>, n: Units) -> PyResult<bool> {
        Ok(self.rate.resource(py)?.domain(&self.name).try_acquire(n.0).is_ok())
    }

    #[pyo3(signature = (n=Units(1)), text_signature = "($self, n=1)")]
    fn acquire_nowait(&self, py: Python<'_>, n: Units) -> PyResult<Decision> {
        self.granted(py, self.rate.resource(py)?.domain(&self.name).try_acquire(n.0))
    }

    #[pyo3(signature = (copies=Units(1), min=None), text_signature = "($self, copies=1, min=None)")]
    fn request(&self, py: Python<'_>, copies: Units, min: Option<Units>) -> PyResult<Decision> {
        let min = copies.least(min)?;
        self.decided(py, self.rate.resource(py)?.domain(&self.name).request(copies.0, min))
    }

    #[pyo3(signature = (copies=Units(1), min=None), text_signature = "($self, copies=1, min=None)")]
    fn confirmed(&self, py: Python<'_>, copies: Units, min: Option<Units>) -> PyResult<Decision> {
        let (rate, min) = (self.rate.resource_to_wait_for(py)?, copies.least(min)?);
        let decision = wait(py, async { rate.domain(&self.name).confirmed(copies.0, min).await })?;
        self.decided(py, decision)
    }

    #[pyo3(signature = (n=Units(1), timeout=None, min=None), text_signature = "($self, n=1, timeout=None, min=None)")]
    fn acquire(
        &self,
        py: Python<'_>,
        n: Units,
        timeout: Option<Seconds>,
        min: Option<Units>,
    ) -> PyResult<Decision> {
        let (rate, min) = (self.rate.resource_to_wait_for(py)?, n.least(min)?);
        let decision = wait(py, async {
            let domain = rate.domain(&self.name);
            match timeout {
                Some(Seconds(timeout)) => domain.acquire_within(n.0, min, timeout).await,
                None => domain.acquire_some(n.0, min).await,
            }
        })?;
        self.granted(py, decision)
    }

    #[pyo3(signature = (n=Units(1), timeout=None, min=None), text_signature = "($self, n=1, timeout=None, min=None)")]
    fn acquire_async<'py>(
        &self,
        py: Python<'py>,
        n: Units,
        timeout: Option<Seconds>,
        min: Option<Units>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (rate, min) = (self.rate.resource_to_wait_for(py)?.clone(), n.least(min)?);
        let this = Domain::new(Arc::clone(&self.rate), self.name.clone());
        let name = self.name.clone();
        let decision = async move {
            let domain = rate.domain(&name);
            match timeout {
                Some(Seconds(timeout)) => domain.acquire_within(n.0, min, timeout).await,
                None => domain.acquire_some(n.0, min).await,
            }
        };
        promise(py, decision, move |py, decision| Ok(Py::new(py, this.granted(py, decision)?)?.into_any()))
    }

    #[pyo3(signature = (copies=Units(1), min=None), text_signature = "($self, copies=1, min=None)")]
    fn peek(&self, py: Python<'_>, copies: Units, min: Option<Units>) -> PyResult<Decision> {
        let min = copies.least(min)?;
        let decision = self.rate.resource(py)?.domain(&self.name).peek(copies.0, min);
        let now = lessor_client::internals::clock::now();
        let after = decision.retry_at.map(|at| at.since(now).as_secs_f64());
        Ok(Decision::new(decision, after))
    }

    fn settle(&self, py: Python<'_>, granted: Units, actual: Units) -> PyResult<()> {
        self.rate.resource(py)?.domain(&self.name).settle(granted.0, actual.0);
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<lessor.Domain {:?} of {:?}>", self.name, self.rate.name)
    }
}
