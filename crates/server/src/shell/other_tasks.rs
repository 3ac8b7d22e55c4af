//! The other tasks of the node, as this one reaches whoever of them leads: over TLS where this task speaks it, as they do then too.

use std::sync::Arc;

use lessor_client::internals::tls::{ClientTls, Connector, Protocol};

/// The way to the other tasks of the node.
#[derive(Clone, Debug)]
pub(super) struct OtherTasks {
    /// The certificates of theirs that are believed, and what is shown to them; absent: none is.
    tls: Option<Arc<ClientTls>>,
    speaks_tls: bool,
}

// === impl OtherTasks ===

impl OtherTasks {
    pub(super) fn new(tls: Option<Arc<ClientTls>>, speaks_tls: bool) -> OtherTasks {
        OtherTasks { tls, speaks_tls }
    }

    /// Whether this task speaks TLS, as the others of its node then do.
    pub(super) fn speak_tls(&self) -> bool {
        self.speaks_tls
    }

    pub(super) fn connector(&self, protocol: Protocol) -> Connector {
        Connector::new(self.tls.clone(), protocol)
    }

    /// The scheme and the authority of an address that a task has advertised.
    pub(super) fn parts<'a>(&self, advertised: &'a str) -> (&'a str, &'a str) {
        let scheme = if self.speaks_tls { "https" } else { "http" };
        advertised.split_once("://").unwrap_or((scheme, advertised))
    }
}
