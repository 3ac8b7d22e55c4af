//! The faults by which a task does not stand for election.

use crate::election::BadConfig;

/// Why a task cannot stand for election.
#[derive(Debug, thiserror::Error)]
pub enum ElectionStartError {
    /// It is set up in a way that cannot work.
    #[error(transparent)]
    Config(#[from] BadConfig),
    /// No member of etcd is named.
    #[error("no etcd endpoint is given, at least one is wanted")]
    NoEndpoint,
    /// A member is at no address.
    #[error("etcd endpoint {found:?} is not like http://host:port or https://host:port")]
    Endpoint {
        /// The endpoint.
        found: String,
    },
    /// Nobody at a member would be believed.
    #[error("etcd endpoint {found:?} is https, and there is no certificate of an authority to know it by")]
    NoAuthority {
        /// The endpoint.
        found: String,
    },
    /// A member would be spoken to without certificates, though there are some.
    #[error("etcd endpoint {found:?} is http, and there are certificates: wanted https")]
    NotEncrypted {
        /// The endpoint.
        found: String,
    },
}
