//! Options of a resource, by keyword.

use std::time::Duration;

use lessor_client::{Degraded, DomainOptions, Fallback, Opening};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyDict;

use crate::arguments::Seconds;

/// The options with which a resource is opened: see `lessor_client::Opening`.
#[derive(Clone, Default)]
pub(crate) struct Options {
    pub(crate) wants: Option<f64>,
    pub(crate) max_wants: Option<f64>,
    pub(crate) priority: i64,
    pub(crate) fallback: Fallback,
    /// `Duration::MAX` is as long as it takes.
    pub(crate) max_wait: Option<Duration>,
    pub(crate) max_waiters: Option<usize>,
    /// Of a rate.
    pub(crate) burst: Option<Duration>,
    /// Of a rate.
    pub(crate) domains: DomainOptions,
}

// === impl Options ===

impl Options {
    /// The options of a gauge.
    pub(crate) fn of_gauge(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut options = Options::default();
        for (name, value) in given.into_iter().flatten() {
            let name: PyBackedStr = name.extract()?;
            if !options.set(&name, &value)? {
                return Err(unknown("gauge", &name));
            }
        }
        Ok(options)
    }

    /// The options of a rate.
    pub(crate) fn of_rate(given: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
        let mut options = Options::default();
        for (name, value) in given.into_iter().flatten() {
            let name: PyBackedStr = name.extract()?;
            if !options.set(&name, &value)? && !options.set_of_rate(&name, &value)? {
                return Err(unknown("rate", &name));
            }
        }
        Ok(options)
    }

    /// Whether there is such an option. `None` is the same as nothing given.
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "wants" => self.wants = value.extract()?,
            "max_wants" => self.max_wants = value.extract()?,
            "priority" => self.priority = value.extract::<Option<i64>>()?.unwrap_or_default(),
            "fallback" => {
                let words = [
                    ("safe", Fallback::Safe),
                    ("pessimistic", Fallback::Pessimistic),
                    ("optimistic", Fallback::Optimistic),
                ];
                self.fallback = word(name, value, &words)?.unwrap_or_default();
            }
            "max_wait" => self.max_wait = value.extract::<Option<Seconds>>()?.map(|Seconds(time)| time),
            "max_waiters" => self.max_waiters = value.extract()?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn set_of_rate(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        match name {
            "burst" => self.burst = value.extract::<Option<Seconds>>()?.map(|Seconds(time)| time),
            "most_domains" => {
                let most = DomainOptions::default().most;
                self.domains.most = value.extract::<Option<usize>>()?.unwrap_or(most);
            }
            "degraded" => {
                let words = [("refuse", Degraded::Refuse), ("grant_least", Degraded::GrantLeast)];
                self.domains.degraded = word(name, value, &words)?.unwrap_or_default();
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The opening with those options that every resource has.
    pub(crate) fn apply<'a, E>(&self, mut opening: Opening<'a, E>) -> Opening<'a, E> {
        if let Some(wants) = self.wants {
            opening = opening.wants(wants);
        }
        if let Some(most) = self.max_wants {
            opening = opening.max_wants(most);
        }
        if let Some(max_wait) = self.max_wait {
            opening = opening.max_wait(max_wait);
        }
        if let Some(max_waiters) = self.max_waiters {
            opening = opening.max_waiters(max_waiters);
        }
        opening.priority(self.priority).fallback(self.fallback)
    }
}

/// The value that a word stands for.
pub(crate) fn word<T: Copy>(
    name: &str,
    given: &Bound<'_, PyAny>,
    words: &[(&str, T)],
) -> PyResult<Option<T>> {
    let Some(text) = given.extract::<Option<PyBackedStr>>()? else { return Ok(None) };
    let found = words.iter().find(|(word, _)| *word == &*text);
    found.map(|(_, value)| Some(*value)).ok_or_else(|| {
        let wanted: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        PyValueError::new_err(format!("{name}={:?}; wanted one of {wanted:?}", &*text))
    })
}

/// The exception for a keyword that there is none of.
pub(crate) fn unknown(kind: &str, name: &str) -> PyErr {
    PyTypeError::new_err(format!("{kind}() got an unexpected keyword argument {name:?}"))
}
