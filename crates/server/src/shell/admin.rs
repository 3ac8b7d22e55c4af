//! The admin port: what operators do to a server that runs, apart from what clients and monitors ask.
//!
//! It is a listener of its own, at an address or at a socket of the machine, with places of its own: it answers when clients have
//! taken all others, and no other port serves any of it. It speaks HTTP/1 and JSON under `/admin/`, and answers errors as
//! problem details (RFC 9457).
//!
//! A call takes one way through this: `call` says which act it asks for and with which arguments, the gate whether whoever calls
//! may, `audit` writes that down, `acts` does it, and what came of it is written down before it is answered. An act whose
//! record cannot be written is not done.

mod act;
mod acts;
mod audit;
mod call;
mod fault;
mod foreign_pages;
mod levers;
mod log;
mod operator;
mod options;
mod override_acts;
mod problem;
mod pushes;
mod service;
mod socket;
mod strangers;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use tracing::warn;

pub(super) use self::acts::Rooms;
use self::audit::AuditLog;
pub use self::fault::AdminFault;
pub use self::levers::{Levers, ReadFile};
pub use self::options::{AdminAddress, AdminOptions};
use self::service::AdminService;
use self::socket::SocketFile;
use super::acceptor::{self, Incoming};

/// Places of the admin port, which no other connection takes.
pub(super) const PLACES: usize = 32;
/// Those of them that connections from one address, or those of one user at a socket, may take: nobody takes all.
pub(super) const PLACES_PER_ORIGIN: usize = PLACES / 2;

/// An admin port that is bound, and not served yet.
#[derive(Debug)]
pub(super) struct BoundAdmin {
    incoming: Incoming,
    /// Where it is.
    address: AdminAddress,
    audit: Arc<AuditLog>,
    levers: Arc<dyn Levers>,
    file: Option<SocketFile>,
}

/// An admin port that is served, for as long as this is kept.
#[derive(Debug)]
pub(super) struct ServedAdmin {
    pub(super) address: AdminAddress,
    pub(super) audit: Arc<AuditLog>,
    /// Removed with the port.
    _file: Option<SocketFile>,
}

// === impl BoundAdmin ===

impl BoundAdmin {
    /// Binds; nothing, and that is said, where it cannot be and need not.
    ///
    /// # Errors
    /// When it cannot be, and must.
    pub(super) async fn bind(options: Option<AdminOptions>) -> Result<Option<BoundAdmin>, AdminFault> {
        let Some(options) = options else { return Ok(None) };
        let path = options.audit_log.clone();
        let audit = AuditLog::open(options.audit_log).map_err(|source| {
            let path = path.unwrap_or_default();
            AdminFault::AuditLog { path, source }
        })?;
        let bound = match &options.address {
            AdminAddress::Tcp(address) => bind_tcp(*address).await,
            AdminAddress::Unix(path) => socket::bind(path)
                .await
                .map(|(listener, file)| (Incoming::Unix(listener), options.address.clone(), Some(file))),
        };
        match bound {
            Ok((incoming, address, file)) => {
                let (audit, levers) = (Arc::new(audit), options.levers);
                Ok(Some(BoundAdmin { incoming, address, audit, levers, file }))
            }
            Err(fault) if options.is_wanted => Err(fault),
            Err(fault) => {
                warn!(%fault, "no admin port is served");
                Ok(None)
            }
        }
    }

    /// Whether it is at a socket of this machine, where no TLS is spoken.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.address, AdminAddress::Unix(_))
    }

    /// The listener, its pages with `more` of them, and what to keep for as long as they are served.
    pub(super) fn open(self, rooms: Rooms, more: Router) -> (Incoming, Router, ServedAdmin) {
        let BoundAdmin { incoming, address, audit, levers, file } = self;
        let service = AdminService::new(rooms, levers, Arc::clone(&audit), PLACES);
        (
            incoming,
            foreign_pages::guard(more).merge(service.router()),
            ServedAdmin { address, audit, _file: file },
        )
    }
}

async fn bind_tcp(address: SocketAddr) -> Result<(Incoming, AdminAddress, Option<SocketFile>), AdminFault> {
    let bound = async {
        let listener = acceptor::listen(address)?;
        let local = listener.local_addr()?;
        Ok((Incoming::Tcp(listener), AdminAddress::Tcp(local), None))
    };
    bound.await.map_err(|source| AdminFault::Listen { address: AdminAddress::Tcp(address), source })
}
