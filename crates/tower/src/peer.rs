//! Addresses as keys: the peer of the connection, or the client that trusted proxies name.

use std::io::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{Extensions, Request};
use ipnet::IpNet;

use crate::key::{Key, Name, Unkeyed};

/// The header in which proxies name the client before them.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address of the peer of the connection: an IPv4 address, or the first 64 bits of an IPv6 address, as whoever has one has
/// all of those.
///
/// It is what axum's `ConnectInfo<SocketAddr>` says with the feature `axum`, tonic's `TcpConnectInfo` with the feature
/// `tonic`, or else a [`SocketAddr`] among the extensions of the request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PeerIp {
    is_exact: bool,
}

/// The address of the client as trusted proxies name it in `X-Forwarded-For`: the last address there that is not a trusted
/// proxy's itself. From any other peer the header is not read, and the peer is the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForwardedFor {
    trusted: Vec<IpNet>,
    is_exact: bool,
}

// === impl PeerIp ===

impl PeerIp {
    /// The address of the peer, of IPv6 its first 64 bits.
    #[must_use]
    pub fn new() -> PeerIp {
        PeerIp::default()
    }

    /// The whole address of IPv6 too.
    #[must_use]
    pub fn exact(self) -> PeerIp {
        PeerIp { is_exact: true }
    }
}

impl<B> Key<B> for PeerIp {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        push(peer(request.extensions())?, self.is_exact, name);
        Ok(())
    }
}

// === impl ForwardedFor ===

impl ForwardedFor {
    /// Proxies in these networks are believed.
    #[must_use]
    pub fn trusting(trusted: impl IntoIterator<Item = IpNet>) -> ForwardedFor {
        ForwardedFor { trusted: trusted.into_iter().collect(), is_exact: false }
    }

    /// The whole address of IPv6, and not only its first 64 bits.
    #[must_use]
    pub fn exact(self) -> ForwardedFor {
        ForwardedFor { is_exact: true, ..self }
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&address))
    }

    /// The client: from the peer back along the proxies, as long as they are trusted and name who was before them.
    fn client<B>(&self, request: &Request<B>) -> Result<IpAddr, Unkeyed> {
        let mut client = peer(request.extensions())?;
        for value in request.headers().get_all(FORWARDED_FOR).iter().rev() {
            for hop in value.to_str().unwrap_or_default().rsplit(',') {
                if !self.is_trusted(client) {
                    return Ok(client);
                }
                // What a trusted proxy does not know it cannot name: it stands for whoever was before it.
                let Some(before) = parse(hop.trim()) else { return Ok(client) };
                client = before;
            }
        }
        Ok(client)
    }
}

impl<B> Key<B> for ForwardedFor {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        push(self.client(request)?, self.is_exact, name);
        Ok(())
    }
}

/// The peer of the connection, an IPv4 address as such.
fn peer(extensions: &Extensions) -> Result<IpAddr, Unkeyed> {
    #[cfg(feature = "axum")]
    if let Some(axum::extract::ConnectInfo(peer)) = extensions.get::<axum::extract::ConnectInfo<SocketAddr>>()
    {
        return Ok(peer.ip().to_canonical());
    }
    #[cfg(feature = "tonic")]
    if let Some(peer) = extensions
        .get::<tonic::transport::server::TcpConnectInfo>()
        .and_then(tonic::transport::server::TcpConnectInfo::remote_addr)
    {
        return Ok(peer.ip().to_canonical());
    }
    let peer = extensions.get::<SocketAddr>().map(|peer| peer.ip().to_canonical());
    peer.ok_or_else(|| Unkeyed::misconfigured("the peer's address is not known"))
}

/// An address with or without a port.
fn parse(hop: &str) -> Option<IpAddr> {
    let address = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|socket| socket.ip()));
    address.ok().map(|address| address.to_canonical())
}

fn push(address: IpAddr, is_exact: bool, name: &mut Name) {
    let address = match address {
        IpAddr::V6(address) if !is_exact => {
            let net = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(net))
        }
        address => address,
    };
    // As long as an address of IPv6 can be in text.
    let mut text = [0; 45];
    let mut rest = &mut text[..];
    let is_written = write!(rest, "{address}").is_ok();
    let left = rest.len();
    debug_assert!(is_written, "an address is no longer than that");
    name.push(&text[..text.len() - left]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(peer: &str, forwarded: &[&str]) -> Request<()> {
        let mut builder = Request::builder().extension(peer.parse::<SocketAddr>().unwrap());
        for value in forwarded {
            builder = builder.header(FORWARDED_FOR, *value);
        }
        builder.body(()).unwrap()
    }

    fn check<K: Key<()>>(key: &K, peer: &str, forwarded: &[&str], wanted: &str) {
        let mut name = Name::default();
        key.key(&request(peer, forwarded), &mut name).unwrap();
        assert_eq!(name.domain(), Some(wanted), "{peer} {forwarded:?}");
    }

    #[test]
    fn a_peer_is_its_address_or_its_network() {
        check(&PeerIp::new(), "10.1.2.3:80", &[], "10.1.2.3");
        check(&PeerIp::new(), "[2001:db8:1:2:3:4:5:6]:80", &[], "2001:db8:1:2::");
        check(&PeerIp::new().exact(), "[2001:db8:1:2:3:4:5:6]:80", &[], "2001:db8:1:2:3:4:5:6");
        check(&PeerIp::new(), "[::ffff:10.1.2.3]:80", &["1.1.1.1"], "10.1.2.3");
        let unkeyed = PeerIp::new().key(&Request::new(()), &mut Name::default()).unwrap_err();
        assert_eq!((unkeyed.status().as_u16(), unkeyed.why()), (500, "the peer's address is not known"));
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        let nets = ["10.0.0.0/8", "fd00::/8"].map(|net| net.parse().unwrap());
        let key = ForwardedFor::trusting(nets);
        check(&key, "10.0.0.1:80", &["203.0.113.7"], "203.0.113.7");
        check(&key, "10.0.0.1:80", &["203.0.113.7, 10.0.0.2"], "203.0.113.7");
        check(&key, "10.0.0.1:80", &["6.6.6.6, 203.0.113.7"], "203.0.113.7");
        check(&key, "10.0.0.1:80", &["6.6.6.6", "203.0.113.7:1234, 10.0.0.2"], "203.0.113.7");
        check(&key, "[fd00::1]:80", &["[2001:db8:1:2:3::]:443"], "2001:db8:1:2::");
        // A stranger writes what it likes.
        check(&key, "203.0.113.9:80", &["10.0.0.1"], "203.0.113.9");
        // What is no address ends the walk at the proxy that passed it on.
        check(&key, "10.0.0.1:80", &["203.0.113.7, unknown"], "10.0.0.1");
        check(&key, "10.0.0.1:80", &["203.0.113.7, unknown, 10.0.0.2"], "10.0.0.2");
        check(&key, "10.0.0.1:80", &[], "10.0.0.1");
        check(&key, "10.0.0.1:80", &["10.0.0.3"], "10.0.0.3");
    }
}
