//! The connections that are open, one by one, for operators who ask who is there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lessor_client::internals::clock;
use lessor_proto::{Identity, Time};

use super::caller::LocalProcess;
use super::driver::{Driver, Port};

/// The connections that are open, by number.
#[derive(Debug, Default)]
pub(in crate::shell) struct ConnectionTable(Mutex<Rows>);

#[derive(Debug, Default)]
struct Rows {
    last: u64,
    open: BTreeMap<u64, OpenConnection>,
}

/// A connection that is open.
#[derive(Clone, Debug)]
pub(in crate::shell) struct OpenConnection {
    pub(in crate::shell) port: Port,
    pub(in crate::shell) address: SocketAddr,
    /// The process at the other end of a socket of this machine.
    pub(in crate::shell) process: Option<LocalProcess>,
    /// The identity that the connection proves.
    pub(in crate::shell) identity: Identity,
    /// The identity in the token with which the last stream on it was opened, where that is another.
    pub(in crate::shell) bearer: Option<Arc<str>>,
    pub(in crate::shell) since: Time,
    /// Streams that are open on it.
    pub(in crate::shell) streams: usize,
}

/// A row of the table, until it is dropped.
#[derive(Debug)]
pub(in crate::shell) struct ListedConnection {
    driver: Arc<Driver>,
    number: u64,
}

/// A stream that is counted at its connection, until it is dropped.
#[derive(Debug)]
pub(in crate::shell) struct ListedStream {
    driver: Arc<Driver>,
    number: u64,
}

// === impl ConnectionTable ===

impl ConnectionTable {
    /// The connections that are open, the oldest first, no more than `most`; and how many there are in all.
    pub(in crate::shell) fn list(&self, most: usize) -> (Vec<OpenConnection>, usize) {
        let rows = self.rows();
        (rows.open.values().take(most).cloned().collect(), rows.open.len())
    }

    /// Locks the table, also after a panic: every change of it is one step.
    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl OpenConnection ===

impl OpenConnection {
    /// A connection that begins now.
    pub(in crate::shell) fn new(port: Port, address: SocketAddr, identity: Identity) -> OpenConnection {
        OpenConnection {
            port,
            address,
            process: None,
            identity,
            bearer: None,
            since: clock::now(),
            streams: 0,
        }
    }
}

// === impl ListedConnection ===

impl ListedConnection {
    /// Lists a connection.
    pub(in crate::shell) fn new(driver: &Arc<Driver>, connection: OpenConnection) -> ListedConnection {
        let mut rows = driver.traffic().table.rows();
        rows.last += 1;
        let number = rows.last;
        rows.open.insert(number, connection);
        drop(rows);
        ListedConnection { driver: Arc::clone(driver), number }
    }

    /// The number by which its requests name it.
    pub(in crate::shell) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ListedConnection {
    fn drop(&mut self) {
        self.driver.traffic().table.rows().open.remove(&self.number);
    }
}

// === impl ListedStream ===

impl ListedStream {
    /// Counts a stream that is opened on the connection of that number by whoever bears the token of `bearer`, if it shows one.
    pub(in crate::shell) fn new(driver: &Arc<Driver>, number: u64, bearer: Option<&str>) -> ListedStream {
        if let Some(row) = driver.traffic().table.rows().open.get_mut(&number) {
            row.streams += 1;
            row.bearer = bearer.filter(|&text| text != row.identity.as_str()).map(Arc::from);
        }
        ListedStream { driver: Arc::clone(driver), number }
    }
}

impl Drop for ListedStream {
    fn drop(&mut self) {
        if let Some(row) = self.driver.traffic().table.rows().open.get_mut(&self.number) {
            row.streams -= 1;
        }
    }
}
