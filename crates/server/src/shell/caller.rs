//! The caller at the other end of a connection: where it is, and who it proves to be.
//!
//! Every request carries it in its extensions, over gRPC and HTTP, on every port: nothing above the acceptor knows whether
//! a connection speaks TLS.

use std::net::{Ipv6Addr, SocketAddr};

use lessor_proto::Identity;

use crate::node::ConnectionMark;

/// The caller of a connection. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The address that it calls from.
    pub address: SocketAddr,
    /// The identity that it has proved, or `plain` or `anonymous` where it has proved none.
    pub identity: Identity,
    /// The mark by which the mind knows its connection.
    pub(super) mark: Option<ConnectionMark>,
}

// === impl Caller ===

impl Caller {
    /// The caller of a request that came without one: nobody that anything is known of.
    pub(super) fn unknown() -> Caller {
        let address = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        Caller { address, identity: Identity::anonymous(), mark: None }
    }
}
