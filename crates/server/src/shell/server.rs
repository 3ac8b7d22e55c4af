//! A server that runs: where it serves, what it can be asked for, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::warn;

use super::admin::{AdminAddress, ServedAdmin};
use super::driver::Driver;
use super::gate::Gate;
use super::standing;
use super::tls::certificates::Certificates;

/// A server that runs.
#[derive(Debug)]
pub struct Server {
    pub(super) driver: Arc<Driver>,
    pub(super) gate: Arc<Gate>,
    pub(super) address: SocketAddr,
    pub(super) plain_address: Option<SocketAddr>,
    pub(super) certificates: Arc<Certificates>,
    pub(super) http: Option<SocketAddr>,
    pub(super) admin: Option<ServedAdmin>,
    pub(super) drain: Duration,
    pub(super) stop: watch::Sender<bool>,
    pub(super) tasks: Vec<JoinHandle<()>>,
}

// === impl Server ===

impl Server {
    /// Where it serves gRPC and HTTP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it serves the same in plain, if it does.
    #[must_use]
    pub fn plain_address(&self) -> Option<SocketAddr> {
        self.plain_address
    }

    /// Reads certificates, keys, authorities and revocations again soon, as it does when their files change.
    pub fn renew_certificates(&self) {
        self.certificates.ask();
    }

    /// Where it serves operators, if it does.
    #[must_use]
    pub fn admin_address(&self) -> Option<&AdminAddress> {
        self.admin.as_ref().map(|served| &served.address)
    }

    /// Opens the audit log anew, as it may have been moved away: soon, by a task of the runtime that this is called on.
    pub fn reopen_audit_log(&self) {
        if let Some(admin) = &self.admin {
            admin.audit.reopen_soon();
        }
    }

    /// Where it serves HTTP alone.
    #[must_use]
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http
    }

    /// The driver of its node.
    #[must_use]
    pub fn driver(&self) -> &Arc<Driver> {
        &self.driver
    }

    /// The gate, which says who may what.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Waits until the node has failed one of its own checks, and its books cannot be trusted any more. The server answers
    /// nothing from then on: whoever runs it calls [`Server::abandon`] and ends the process.
    pub async fn broken(&self) {
        self.driver.until_broken().await;
    }

    /// Ends a server whose node is broken: it leads no more, so that another task may at once, and what is written already
    /// stays written. Nothing in flight is waited for.
    pub async fn abandon(mut self) {
        self.stop.send_replace(true);
        let tasks = std::mem::take(&mut self.tasks);
        let handles: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let ended = async {
            for task in tasks {
                let _ = task.await;
            }
        };
        let _ = tokio::time::timeout(standing::RESIGNATION, ended).await;
        handles.iter().for_each(tokio::task::AbortHandle::abort);
    }

    /// Takes no more connections, answers what is in flight, closes streams, and ends. Holders live on their leases meanwhile. Gives back
    /// whether everything had ended in time.
    pub async fn drain(mut self) -> bool {
        self.driver.start_draining();
        self.stop.send_replace(true);
        self.driver.close_streams();
        let tasks = std::mem::take(&mut self.tasks);
        let handles: Vec<_> = tasks.iter().map(JoinHandle::abort_handle).collect();
        let ended = tokio::time::timeout(self.drain, async {
            for task in tasks {
                // A task that panicked has ended too.
                let _ = task.await;
            }
        });
        let in_time = ended.await.is_ok();
        if !in_time {
            warn!(after = ?self.drain, "drain cut short");
            handles.iter().for_each(tokio::task::AbortHandle::abort);
        }
        in_time
    }
}

/// A server that is dropped without a drain ends at once.
impl Drop for Server {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}
