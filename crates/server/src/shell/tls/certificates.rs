//! All certificates of a server: its own, and those that it shows to the node above. Their files are watched together.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::TlsFault;
use lessor_client::internals::tls::ClientTls;
use tokio::sync::{Notify, watch};
use tracing::{error, info};

use super::ServerTls;
use crate::shell::source::read;
use crate::shell::watched::WatchedFiles;

/// Everything that is read again when its files change.
#[derive(Debug, Default)]
pub(in crate::shell) struct Certificates {
    pub(in crate::shell) server: Option<Arc<ServerTls>>,
    pub(in crate::shell) parent: Option<Arc<ClientTls>>,
    reloads: AtomicU64,
    failures: AtomicU64,
    /// Somebody wants them to be read again.
    asked: Notify,
}

/// The names of the sets.
const SERVERS: &str = "the server's";
const PARENTS: &str = "those for the node above";

// === impl Certificates ===

impl Certificates {
    pub(in crate::shell) fn new(
        server: Option<Arc<ServerTls>>,
        parent: Option<Arc<ClientTls>>,
    ) -> Certificates {
        Certificates { server, parent, ..Certificates::default() }
    }

    /// Reads all files again soon.
    pub(in crate::shell) fn ask(&self) {
        self.asked.notify_one();
    }

    /// Sets put in force since the start, and sets that could not be.
    pub(in crate::shell) fn reloads(&self) -> (u64, u64) {
        (self.reloads.load(Ordering::Relaxed), self.failures.load(Ordering::Relaxed))
    }

    /// The ends of the certificates in force, each with its use, since the beginning of 1970.
    pub(in crate::shell) fn ends(&self) -> Vec<(&'static str, Duration)> {
        let shown = self.server.as_ref().map(|tls| tls.renewed.current());
        let parent = self.parent.as_ref().map(|tls| tls.renewed().current());
        let ends = [
            ("server", shown.as_ref().map(|shown| shown.ends)),
            ("client_ca", shown.as_ref().and_then(|shown| shown.authorities_end)),
            ("parent", parent.and_then(|credentials| credentials.ends)),
        ];
        ends.into_iter().filter_map(|(name, end)| Some((name, end?))).collect()
    }

    fn paths(&self) -> Vec<PathBuf> {
        let server = self.server.iter().flat_map(|tls| tls.renewed.paths());
        let parent = self.parent.iter().flat_map(|tls| tls.renewed().paths());
        server.chain(parent).map(PathBuf::from).collect()
    }

    /// Reads all files again, and puts in force what can be used.
    fn refresh(&self) {
        if let Some(server) = &self.server {
            self.note(SERVERS, server.renewed.refresh());
        }
        if let Some(parent) = &self.parent {
            self.note(PARENTS, parent.renewed().refresh());
        }
    }

    /// The same at once; returns of each set whether what is in its files is in force, and else why not.
    pub(in crate::shell) fn read_again(&self) -> Vec<(&'static str, Result<(), String>)> {
        self.refresh();
        let server = self.server.as_ref().map(|tls| (SERVERS, tls.renewed.fault()));
        let parent = self.parent.as_ref().map(|tls| (PARENTS, tls.renewed().fault()));
        let in_force = |fault: Option<TlsFault>| fault.map_or(Ok(()), |fault| Err(fault.to_string()));
        server.into_iter().chain(parent).map(|(which, fault)| (which, in_force(fault))).collect()
    }

    fn note(&self, which: &str, outcome: Result<bool, TlsFault>) {
        match outcome {
            Ok(false) => {}
            Ok(true) => {
                self.reloads.fetch_add(1, Ordering::Relaxed);
                info!(which, "certificates in force");
            }
            Err(fault) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                error!(which, %fault, "certificates cannot be used: the earlier ones stay in force");
            }
        }
    }

    /// Reads files again when they change, or somebody asks, until stopped.
    pub(in crate::shell) async fn keep(self: Arc<Certificates>, mut stopped: watch::Receiver<bool>) {
        let paths = self.paths();
        if paths.is_empty() {
            return;
        }
        let mut watched = WatchedFiles::new(paths, read);
        loop {
            // Before they are read: what changes meanwhile is seen in the next round.
            watched.look().await;
            let this = Arc::clone(&self);
            let refreshed = tokio::task::spawn_blocking(move || this.refresh());
            refreshed.await.expect("reading certificates does not panic");
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                () = watched.changed() => {}
                () = self.asked.notified() => {}
            }
        }
    }
}
