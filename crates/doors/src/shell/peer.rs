//! The peer of a connection, as far as it is known.

use std::net::IpAddr;

use crate::web::Trusted;

/// The peer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) struct PeerAddress {
    /// The address; absent: it came over a socket of the file system.
    pub(super) address: Option<IpAddr>,
    /// The user at the other end of such a socket, as the system says.
    pub(super) user: Option<u32>,
    /// Whether it has shown a certificate that is believed.
    pub(super) is_certified: bool,
}

// === impl PeerAddress ===

impl PeerAddress {
    pub(super) fn at(address: IpAddr) -> PeerAddress {
        PeerAddress { address: Some(address), ..PeerAddress::default() }
    }

    /// Whether it is one of those that the rules trust, or has shown a certificate.
    pub(super) fn is_trusted(self, trusted: &Trusted) -> bool {
        self.is_certified || trusted.contains(self.address)
    }
}
