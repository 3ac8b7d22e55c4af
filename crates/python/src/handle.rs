//! The handle of an open resource, which each process opens for itself.

use std::sync::Arc;

use lessor_client::{OpenError, Resource};
use pyo3::prelude::*;

use crate::connection::Connection;
use crate::fork::{self, PerProcess};
use crate::lease::Lease;
use crate::options::Options;
use crate::raise;

/// A way to open a resource.
type Open<E> = fn(&lessor_client::Client, &str, &Options) -> Result<Resource<E>, OpenError>;

/// An open resource.
pub(crate) struct Handle<E> {
    pub(crate) name: String,
    connection: Arc<Connection>,
    options: Options,
    open: Open<E>,
    resource: PerProcess<Resource<E>>,
}

// === impl Handle ===

impl<E> Handle<E> {
    pub(crate) fn open(
        py: Python<'_>,
        connection: &Arc<Connection>,
        name: String,
        options: Options,
        open: Open<E>,
    ) -> PyResult<Arc<Handle<E>>> {
        let (connection, resource) = (Arc::clone(connection), PerProcess::new());
        let handle = Arc::new(Handle { name, connection, options, open, resource });
        handle.resource(py)?;
        Ok(handle)
    }

    /// The resource of this process.
    #[inline]
    pub(crate) fn resource(&self, py: Python<'_>) -> PyResult<&Resource<E>> {
        match self.resource.get() {
            Some(resource) => Ok(resource),
            None => self.reopen(py),
        }
    }

    /// The same, for what waits: it looks whether this is another process, which costs a call of the system.
    pub(crate) fn resource_to_wait_for(&self, py: Python<'_>) -> PyResult<&Resource<E>> {
        fork::look();
        self.resource(py)
    }

    #[cold]
    fn reopen(&self, py: Python<'_>) -> PyResult<&Resource<E>> {
        let client = self.connection.client(py)?;
        self.resource.get_or_make(|| {
            (self.open)(client, &self.name, &self.options)
                .map_err(|error| raise::not_opened(py, &self.name, &error))
        })
    }

    pub(crate) fn lease(&self, py: Python<'_>) -> PyResult<Lease> {
        Ok(Lease::new(self.resource(py)?.lease()))
    }

    pub(crate) fn set_wants(&self, py: Python<'_>, wants: Option<f64>) -> PyResult<()> {
        let resource = self.resource(py)?;
        match wants {
            Some(wants) if !wants.is_finite() || wants < 0.0 => {
                let text = format!("wants of {wants}; wanted a finite number of at least 0");
                return Err(pyo3::exceptions::PyValueError::new_err(text));
            }
            Some(wants) => resource.set_wants(wants),
            None => resource.measure_wants(),
        }
        Ok(())
    }

    /// The kind of the resource, its name and its lease, for people.
    pub(crate) fn describe(&self, py: Python<'_>, kind: &str, unit: &str) -> String {
        let lease = match self.lease(py) {
            Ok(lease) if !self.connection.is_closed() => lease.describe(unit),
            _ => "closed".to_owned(),
        };
        format!("<lessor.{kind} {:?}: {lease}>", self.name)
    }
}
