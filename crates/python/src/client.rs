//! The client, as Python sees it.

use std::sync::Arc;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arguments::Units;
use crate::connection::Connection;
use crate::gauge::Gauge;
use crate::options::Options;
use crate::promise::{nothing, promise};
use crate::rate::Rate;
use crate::runtime::wait;
use crate::settings::Settings;
use crate::together::Together;

/// A client of one node: it holds the leases of everything opened from it, and renews them in the background.
#[pyclass(frozen, module = "lessor")]
pub(crate) struct Client {
    connection: Arc<Connection>,
}

#[pymethods]
impl Client {
    #[new]
    #[pyo3(signature = (*addresses, **settings))]
    #[pyo3(
        text_signature = "(*addresses, id=None, timeout=None, transport=None, ca=None, cert=None, key=None, \
                             server_identity=None, token=None, token_file=None)"
    )]
    fn new(
        py: Python<'_>,
        addresses: &Bound<'_, PyTuple>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Client> {
        let servers: Vec<String> = addresses.extract()?;
        if servers.is_empty() {
            return Err(PyTypeError::new_err("Client() wants the address of a server, as in \"host:port\""));
        }
        let connection = Connection::new(servers, Settings::read(settings)?);
        connection.client(py)?;
        Ok(Client { connection })
    }

    #[getter]
    fn id(&self, py: Python<'_>) -> PyResult<&str> {
        self.connection.client_id(py)
    }

    #[getter]
    fn closed(&self) -> bool {
        self.connection.is_closed()
    }

    #[pyo3(signature = (name, **options))]
    #[pyo3(text_signature = "($self, name, *, wants=None, max_wants=None, priority=None, fallback=None, \
                             max_wait=None, max_waiters=None, burst=None, most_domains=None, degraded=None)")]
    fn rate(&self, py: Python<'_>, name: String, options: Option<&Bound<'_, PyDict>>) -> PyResult<Rate> {
        Rate::open(py, &self.connection, name, Options::of_rate(options)?)
    }

    #[pyo3(signature = (name, **options))]
    #[pyo3(text_signature = "($self, name, *, wants=None, max_wants=None, priority=None, fallback=None, \
                             max_wait=None, max_waiters=None)")]
    fn gauge(&self, py: Python<'_>, name: String, options: Option<&Bound<'_, PyDict>>) -> PyResult<Gauge> {
        Gauge::open(py, &self.connection, name, Options::of_gauge(options)?)
    }

    #[staticmethod]
    #[pyo3(signature = (*, min=Units(1), copies=Units(1)))]
    #[pyo3(text_signature = "(*, min=1, copies=1)")]
    fn together(min: Units, copies: Units) -> Together {
        Together::between(min, copies)
    }

    #[pyo3(signature = (*, domains=0))]
    fn metrics(&self, py: Python<'_>, domains: usize) -> PyResult<String> {
        let client = self.connection.client(py)?;
        // Domains are looked at one after the other.
        py.detach(|| {
            let (mut registry, mut page) = (Registry::default(), String::new());
            registry.register_collector(Box::new(client.collector(domains)));
            encode(&mut page, &registry).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
            Ok(page)
        })
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        crate::fork::look();
        self.connection.take().map_or(Ok(()), |client| wait(py, client.close()))
    }

    fn close_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        crate::fork::look();
        let client = self.connection.take();
        let closing = async {
            if let Some(client) = client {
                client.close().await;
            }
        };
        promise(py, closing, nothing)
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_raised))]
    fn __exit__(&self, py: Python<'_>, _raised: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py)
    }

    fn __aenter__<'py>(slf: PyRef<'_, Self>, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let this = Py::from(slf).into_any();
        crate::promise::ready(py, this)
    }

    #[pyo3(signature = (*_raised))]
    fn __aexit__<'py>(&self, py: Python<'py>, _raised: &Bound<'_, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        self.close_async(py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let servers = self.connection.servers.join(", ");
        match self.id(py) {
            Ok(id) if !self.closed() => format!("<lessor.Client {id:?} of {servers}>"),
            Ok(id) => format!("<lessor.Client {id:?} of {servers}, closed>"),
            Err(_) => format!("<lessor.Client of {servers}, closed>"),
        }
    }
}
