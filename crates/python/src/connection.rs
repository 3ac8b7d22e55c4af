//! The connection of a client: its settings, and the client of this process that is built from them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use lessor_client::{Builder, Client};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::fork::PerProcess;
use crate::raise;
use crate::runtime::{runtime, wait};
use crate::settings::Settings;

/// The time that leases are given to be released in when the interpreter ends.
const AT_EXIT: Duration = Duration::from_secs(1);

/// All connections, for the end.
static CONNECTIONS: Mutex<Vec<Weak<Connection>>> = Mutex::new(Vec::new());

/// The settings of a client, and the client that each process builds from them.
pub(crate) struct Connection {
    pub(crate) servers: Vec<String>,
    settings: Settings,
    is_closed: AtomicBool,
    client: PerProcess<Client>,
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new(servers: Vec<String>, settings: Settings) -> Arc<Connection> {
        let (is_closed, client) = (AtomicBool::new(false), PerProcess::new());
        let made = Arc::new(Connection { servers, settings, is_closed, client });
        let mut connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&made));
        made
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// The client of this process.
    pub(crate) fn client(&self, py: Python<'_>) -> PyResult<&Client> {
        let runtime = runtime()?;
        if self.is_closed() {
            return Err(raise::closed(py, ""));
        }
        self.client.get_or_make(|| {
            let _entered = runtime.enter();
            let (first, others) = self.servers.split_first().expect("a client has a server");
            let builder = others.iter().fold(Client::builder(first), Builder::server);
            self.settings.apply(builder).build().map_err(|error| raise::not_built(py, &error))
        })
    }

    /// The id by which servers know the client of this process, also once that is closed.
    pub(crate) fn client_id(&self, py: Python<'_>) -> PyResult<&str> {
        let client = self.client.get().map_or_else(|| self.client(py), Ok)?;
        Ok(client.id().as_str())
    }

    /// The client of this process to be closed, the first time that it is asked for.
    pub(crate) fn take(&self) -> Option<Client> {
        match self.is_closed.swap(true, Ordering::Relaxed) {
            false => self.client.get().cloned(),
            true => None,
        }
    }
}

/// Closes what is open when the interpreter ends, and waits a second for that.
#[pyfunction]
pub(crate) fn close_all(py: Python<'_>) -> PyResult<()> {
    crate::fork::look();
    let open: Vec<Client> = {
        let connections = CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().filter_map(Weak::upgrade).filter_map(|connection| connection.take()).collect()
    };
    if open.is_empty() {
        return Ok(());
    }
    let runtime = runtime()?;
    let closing: Vec<_> = open.into_iter().map(|client| runtime.spawn(client.close())).collect();
    wait(py, async {
        let all = async {
            for closing in closing {
                // One that failed keeps nobody.
                let _ = closing.await;
            }
        };
        let _ = timeout(AT_EXIT, all).await;
    })
}
