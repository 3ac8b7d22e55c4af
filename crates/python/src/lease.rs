//! A lease at one moment.

use std::time::Duration;

use lessor_client::{Amount, LeaseState};
use pyo3::prelude::*;

/// The state of a lease at one moment.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Lease {
    state: LeaseState,
    remaining: Option<Duration>,
}

// === impl Lease ===

impl Lease {
    pub(crate) fn new(state: LeaseState) -> Lease {
        let remaining = state.remaining();
        Lease { state, remaining }
    }

    /// The capacity, the rung and the time that is left, for people.
    pub(crate) fn describe(&self, unit: &str) -> String {
        let capacity =
            self.capacity().map_or_else(|| "without limit".to_owned(), |units| format!("{units}{unit}"));
        let remaining = match self.remaining {
            Some(time) if !time.is_zero() => format!(" for {:.1} s", time.as_secs_f64()),
            Some(_) | None => String::new(),
        };
        let learning = if self.state.is_learning { ", learning" } else { "" };
        let unenforced = if self.state.unenforced { ", and everything passes" } else { "" };
        format!("{capacity}, {}{remaining}{learning}{unenforced}", self.rung())
    }
}

#[pymethods]
impl Lease {
    #[getter]
    fn capacity(&self) -> Option<f64> {
        self.state.capacity.map(Amount::as_f64)
    }

    #[getter]
    fn remaining(&self) -> Option<f64> {
        self.remaining.as_ref().map(Duration::as_secs_f64)
    }

    #[getter]
    fn rung(&self) -> &'static str {
        self.state.rung.name()
    }

    #[getter]
    fn learning(&self) -> bool {
        self.state.is_learning
    }

    #[getter]
    fn unenforced(&self) -> bool {
        self.state.unenforced
    }

    #[getter]
    fn wants(&self) -> f64 {
        self.state.wants
    }

    #[getter]
    fn last_error(&self) -> Option<String> {
        self.state.last_error.as_ref().map(ToString::to_string)
    }

    fn __repr__(&self) -> String {
        format!("<lessor.Lease: {}>", self.describe(""))
    }
}
