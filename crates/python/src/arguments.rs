//! Arguments: numbers of units, and times as seconds or as a `timedelta`.

use std::time::Duration;

use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A number of units.
#[derive(Clone, Copy)]
pub(crate) struct Units(pub(crate) u32);

/// A length of time that may be infinite, which [`Duration::MAX`] stands for.
#[derive(Clone, Copy)]
pub(crate) struct Seconds(pub(crate) Duration);

// === impl Units ===

impl<'a, 'py> FromPyObject<'a, 'py> for Units {
    type Error = PyErr;

    #[inline]
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Units> {
        given.extract().map(Units).map_err(|error| Units::fault(&given, error))
    }
}

impl Units {
    /// The least that is of use of so many units: all of them, if nothing is said.
    #[inline]
    pub(crate) fn least(self, min: Option<Units>) -> PyResult<u32> {
        match min {
            None => Ok(self.0),
            Some(min) if min.0 <= self.0 => Ok(min.0),
            Some(min) => {
                let fault =
                    format!("min of {}; wanted no more than the {} that are asked for", min.0, self.0);
                Err(PyValueError::new_err(fault))
            }
        }
    }

    #[cold]
    fn fault(given: &Bound<'_, PyAny>, error: PyErr) -> PyErr {
        if !error.is_instance_of::<PyOverflowError>(given.py()) {
            return error;
        }
        PyValueError::new_err(format!("{given} units; wanted a whole number from 0 to {}", u32::MAX))
    }
}

// === impl Seconds ===

impl<'a, 'py> FromPyObject<'a, 'py> for Seconds {
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Seconds> {
        let seconds = match given.getattr_opt("total_seconds")? {
            Some(timedelta) => timedelta.call0()?.extract::<f64>()?,
            None => given.extract::<f64>()?,
        };
        if seconds.is_nan() || seconds < 0.0 {
            let text = format!("a time of {}; wanted seconds, or a timedelta, of at least 0", &*given);
            return Err(PyValueError::new_err(text));
        }
        Ok(Seconds(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
}
