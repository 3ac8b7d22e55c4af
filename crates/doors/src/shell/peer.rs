//! The peer of a connection, as far as it is known.

use std::net::IpAddr;
use std::sync::Arc;

use lessor_client::internals::tls::identity;
use tokio::net::UnixStream;
use tokio::net::unix::UCred;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::shown::{NOBODY, ShownPeer};
use crate::web::{Trusted, WebPeer};

/// The peer of a connection, and what that shows of it.
#[derive(Clone, Default, Debug)]
pub(super) struct ConnectedPeer {
    pub(super) address: PeerAddress,
    /// Absent: nothing.
    shown: Option<Arc<ShownPeer>>,
}

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

// === impl ConnectedPeer ===

impl ConnectedPeer {
    /// The peer at a port, of which there is no more than its address.
    pub(super) fn at(address: IpAddr) -> ConnectedPeer {
        ConnectedPeer { address: PeerAddress::at(address), shown: None }
    }

    /// The peer at the other end of a socket of the file system.
    pub(super) fn beside(stream: &UnixStream) -> ConnectedPeer {
        let Ok(peer) = stream.peer_cred() else { return ConnectedPeer::default() };
        let shown = ShownPeer {
            user: Some(peer.uid().to_string().into()),
            program: program(&peer),
            ..ShownPeer::default()
        };
        let address = PeerAddress { user: Some(peer.uid()), ..PeerAddress::default() };
        ConnectedPeer { address, shown: Some(Arc::new(shown)) }
    }

    /// The same, which has shown a certificate that is believed.
    pub(super) fn certified(self, certificate: &CertificateDer<'_>) -> ConnectedPeer {
        let identity = identity(certificate).ok().map(|identity| identity.to_string().into());
        let shown =
            identity.map(|identity| Arc::new(ShownPeer { identity: Some(identity), ..NOBODY.clone() }));
        ConnectedPeer { address: PeerAddress { is_certified: true, ..self.address }, shown }
    }

    /// The peer as its connection shows it.
    pub(super) fn shown(&self) -> &ShownPeer {
        self.shown.as_deref().unwrap_or(&NOBODY)
    }

    /// The sender of a request over HTTP.
    pub(super) fn web(&self) -> WebPeer<'_> {
        let PeerAddress { address, is_certified, .. } = self.address;
        WebPeer { address, is_certified, shown: self.shown() }
    }
}

/// The path of the program at the other end, if this process may know it.
fn program(peer: &UCred) -> Option<Box<str>> {
    let path = std::fs::read_link(format!("/proc/{}/exe", peer.pid()?)).ok()?;
    path.to_str().map(Into::into)
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
