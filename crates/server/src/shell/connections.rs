//! The connections that are open, one by one, for operators who ask who is there.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lessor_client::internals::clock;
use lessor_proto::Time;

use super::caller::Caller;
use super::port_name::Port;

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
    pub(in crate::shell) caller: Caller,
    /// The identity in the token with which the last stream on it was opened, where that is another.
    pub(in crate::shell) bearer: Option<Arc<str>>,
    pub(in crate::shell) since: Time,
    /// Streams that are open on it.
    pub(in crate::shell) streams: usize,
}

/// A row of the table, until it is dropped.
#[derive(Debug)]
pub(in crate::shell) struct ListedConnection {
    table: Arc<ConnectionTable>,
    number: u64,
}

/// A stream that is counted at its connection, until it is dropped.
#[derive(Debug)]
pub(in crate::shell) struct ListedStream {
    table: Arc<ConnectionTable>,
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
    pub(in crate::shell) fn new(port: Port, caller: Caller) -> OpenConnection {
        OpenConnection { port, caller, bearer: None, since: clock::now(), streams: 0 }
    }
}

// === impl ListedConnection ===

impl ListedConnection {
    /// Lists a connection.
    pub(in crate::shell) fn new(
        table: &Arc<ConnectionTable>,
        connection: OpenConnection,
    ) -> ListedConnection {
        let mut rows = table.rows();
        rows.last += 1;
        let number = rows.last;
        rows.open.insert(number, connection);
        drop(rows);
        ListedConnection { table: Arc::clone(table), number }
    }

    /// The number by which its requests name it.
    pub(in crate::shell) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for ListedConnection {
    fn drop(&mut self) {
        self.table.rows().open.remove(&self.number);
    }
}

// === impl ListedStream ===

impl ListedStream {
    /// Counts a stream that is opened on the connection of that number by whoever bears the token of `bearer`, if it shows one.
    pub(in crate::shell) fn new(
        table: &Arc<ConnectionTable>,
        number: u64,
        bearer: Option<&str>,
    ) -> ListedStream {
        if let Some(row) = table.rows().open.get_mut(&number) {
            row.streams += 1;
            row.bearer = bearer.filter(|&text| text != row.caller.identity.as_str()).map(Arc::from);
        }
        ListedStream { table: Arc::clone(table), number }
    }
}

impl Drop for ListedStream {
    fn drop(&mut self) {
        if let Some(row) = self.table.rows().open.get_mut(&self.number) {
            row.streams -= 1;
        }
    }
}
