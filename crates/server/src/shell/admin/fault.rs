//! The faults by which a server has no admin port.

use std::path::PathBuf;

use super::options::AdminAddress;

/// Why an admin port cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum AdminFault {
    /// The address cannot be had.
    #[error("--admin {address}: cannot listen there: {source}")]
    Listen {
        /// The address.
        address: AdminAddress,
        /// Why not.
        source: std::io::Error,
    },
    /// Another process serves there.
    #[error(
        "--admin {address}: another process serves there, and lives; wanted another path, or that one to be ended"
    )]
    Taken {
        /// The address.
        address: AdminAddress,
    },
    /// There is something else.
    #[error(
        "--admin {address}: there is a file that is no socket; wanted a path at which nothing is, or an old socket"
    )]
    NoSocket {
        /// The address.
        address: AdminAddress,
    },
    /// The audit log cannot be written.
    #[error("--audit-log {}: {source}", .path.display())]
    AuditLog {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
}
