//! More pages than those of the server itself: made by whoever starts it of what it has, and served at the same ports.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;

use super::driver::Driver;
use super::etcd::RevisionStore;
use super::gate::Gate;
use super::tls::certificates::Certificates;

/// The parts of a server that pages are made of.
#[derive(Clone, Debug)]
pub struct PageParts {
    /// The driver of its node.
    pub driver: Arc<Driver>,
    /// The gate, which says who may see what.
    pub gate: Arc<Gate>,
    /// The templates at etcd, over the connections of this task; absent: they are not followed there.
    pub store: Option<Arc<RevisionStore>>,
    /// The certificates in force.
    pub(super) certificates: Arc<Certificates>,
    /// The word to stop: what is served without an end has to end then, or the server waits for it.
    pub stopped: watch::Receiver<bool>,
}

/// The pages that were made, by the port at which they are served. They have `/` as well, which the server then leaves to them.
#[derive(Clone, Debug)]
pub struct MadePages {
    /// Where gRPC is served, and at the port of HTTP alone.
    pub public: Router,
    /// At the port of operators.
    pub admin: Router,
}

/// A way to make more pages.
#[derive(Clone)]
pub struct MorePages(Arc<dyn Fn(PageParts) -> MadePages + Send + Sync>);

// === impl PageParts ===

impl PageParts {
    /// The dates since 1970 on which the certificates in force end, each with its use.
    #[must_use]
    pub fn certificate_ends(&self) -> Vec<(&'static str, Duration)> {
        self.certificates.ends()
    }
}

// === impl MorePages ===

impl MorePages {
    /// The pages that `make` makes, once, on the runtime of the server.
    #[must_use]
    pub fn new(make: impl Fn(PageParts) -> MadePages + Send + Sync + 'static) -> MorePages {
        MorePages(Arc::new(make))
    }

    pub(super) fn make(&self, parts: PageParts) -> MadePages {
        (self.0)(parts)
    }
}

impl fmt::Debug for MorePages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MorePages").finish_non_exhaustive()
    }
}
