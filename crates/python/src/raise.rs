//! Exceptions: those of `lessor`, which are written in Python, with what the client says.

use std::time::Duration;

use lessor_client::{BuildError, Denied, OpenError, TogetherDenied};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::decision::Decision;

/// The name of the exception that `denied` is raised as.
fn class(denied: &Denied) -> &'static str {
    match denied {
        Denied::Closed => "Closed",
        denied if denied.is_over_limit() => "Refused",
        _ => "NoLease",
    }
}

/// The kind of a denial, in a word that programs can compare.
fn kind(denied: &Denied) -> &'static str {
    match denied {
        Denied::NothingLeased => "nothing_leased",
        Denied::Unserved(_) if denied.is_refusal() => "refused_by_server",
        Denied::Unserved(_) => "unserved",
        Denied::Learning { .. } => "learning",
        Denied::Spent { .. } => "spent",
        Denied::AboveBurst { .. } => "above_burst",
        Denied::Full { .. } => "full",
        Denied::OthersWait { .. } => "others_wait",
        Denied::TooManyWaiters { .. } => "too_many_waiters",
        Denied::TooLong { .. } => "too_long",
        Denied::TimedOut { .. } => "timed_out",
        Denied::Domain(_) => "domain",
        Denied::Closed => "closed",
        _ => "other",
    }
}

/// The exception of the package by that name.
fn exception(py: Python<'_>, class: &str, arguments: impl for<'a> pyo3::call::PyCallArgs<'a>) -> PyErr {
    let raised = py
        .import(intern!(py, "lessor._errors"))
        .and_then(|errors| errors.getattr(class))
        .and_then(|class| class.call1(arguments));
    raised.map_or_else(|error| error, PyErr::from_value)
}

/// The exception for a request of `resource` that is denied.
pub(crate) fn denied(py: Python<'_>, resource: &str, denied: &Denied) -> PyErr {
    let after = denied.retry_after().as_ref().map(Duration::as_secs_f64);
    let decision = match denied {
        Denied::Domain(denial) => Some(Decision::new(denial.decision, after)),
        _ => None,
    };
    exception(py, class(denied), (resource, denied.to_string(), kind(denied), after, decision))
}

/// The exception for a request of several resources that is denied.
pub(crate) fn together(py: Python<'_>, names: &[String], denied: &TogetherDenied) -> PyErr {
    let text = denied.to_string();
    let Some((part, denial)) = denied.denial() else { return PyValueError::new_err(text) };
    let after = denied.retry_after().or_else(|| denial.retry_after()).as_ref().map(Duration::as_secs_f64);
    let decision = match &denial {
        Denied::Domain(denial) => Some(Decision::new(denial.decision, after)),
        _ => None,
    };
    let name = names.get(part).map_or("", String::as_str);
    exception(py, class(&denial), (name, text, kind(&denial), after, decision))
}

/// The exception of a client that is closed.
pub(crate) fn closed(py: Python<'_>, resource: &str) -> PyErr {
    denied(py, resource, &Denied::Closed)
}

/// The exception for a resource that cannot be opened.
pub(crate) fn not_opened(py: Python<'_>, resource: &str, error: &OpenError) -> PyErr {
    match error {
        OpenError::Name { .. } => exception(py, "BadName", (resource, error.to_string())),
        OpenError::Wants(_) | OpenError::OtherKind { .. } => PyValueError::new_err(error.to_string()),
        OpenError::Closed(_) => closed(py, resource),
    }
}

/// The exception for a client that cannot be built.
pub(crate) fn not_built(py: Python<'_>, error: &BuildError) -> PyErr {
    match error {
        BuildError::Id { id, .. } => exception(py, "BadName", (id, error.to_string())),
        BuildError::Address(_) | BuildError::Tls(_) | BuildError::NoRuntime => {
            PyValueError::new_err(error.to_string())
        }
    }
}
