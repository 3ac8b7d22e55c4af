//! Attributes of requests, which rules name in their conditions and keys.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::HeaderName;

/// An attribute of a request.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Attribute {
    /// The method.
    Method,
    /// The path without its query, decoded once, and without `//` and dots.
    Path,
    /// The host that was asked for.
    Host,
    /// `http` or `https`.
    Scheme,
    /// A parameter of the query.
    Query(Box<str>),
    /// A field of the header.
    Header(HeaderName),
    /// A cookie.
    Cookie(Box<str>),
    /// `true` where there is a field `Authorization`.
    Authenticated,
    /// The address of the client, cut to so many bits where that is said.
    RemoteAddress(Option<u8>),
    /// The bytes of the body, as the request says them.
    ContentLength,
    /// The number of the user at the other end of a socket of the file system.
    PeerUser,
    /// The path of the program there.
    PeerProgram,
    /// The identity in the certificate that the peer has shown.
    PeerIdentity,
    /// An entry of a descriptor, or a value by that name that a program gives.
    Entry(Box<str>),
}

/// The attributes of one request.
pub trait Attributes {
    /// The value of one, if the request has it.
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>>;
}

const NAMES: &str = "method, path, host, scheme, query.NAME, header.NAME, cookie.NAME, authenticated, remote_address, \
                     remote_address/BITS, content_length, peer.uid, peer.exe, san or entry.NAME";

// === impl Attribute ===

impl Attribute {
    /// The attribute of that name.
    ///
    /// # Errors
    /// When there is none of it.
    pub fn new(name: &str) -> Result<Attribute, String> {
        let wrong = || format!("{name:?} is no attribute; wanted {NAMES}");
        Ok(match name {
            "method" => Attribute::Method,
            "path" => Attribute::Path,
            "host" => Attribute::Host,
            "scheme" => Attribute::Scheme,
            "authenticated" => Attribute::Authenticated,
            "remote_address" => Attribute::RemoteAddress(None),
            "content_length" => Attribute::ContentLength,
            "peer.uid" => Attribute::PeerUser,
            "peer.exe" => Attribute::PeerProgram,
            "san" => Attribute::PeerIdentity,
            _ => {
                if let Some(bits) = name.strip_prefix("remote_address/") {
                    let bits = bits.parse().ok().filter(|bits| (1..=128).contains(bits));
                    let wanted =
                        || format!("{name:?} is no attribute; wanted 1 to 128 bits, as in remote_address/24");
                    return Ok(Attribute::RemoteAddress(Some(bits.ok_or_else(wanted)?)));
                }
                let (kind, of) = name.split_once('.').filter(|(_, of)| !of.is_empty()).ok_or_else(wrong)?;
                match kind {
                    "query" => Attribute::Query(of.into()),
                    "header" => Attribute::Header(of.parse().map_err(|_| {
                        format!("{name:?} is no attribute; wanted a field's name, as in header.x-tenant")
                    })?),
                    "cookie" => Attribute::Cookie(of.into()),
                    "entry" => Attribute::Entry(of.into()),
                    _ => return Err(wrong()),
                }
            }
        })
    }

    /// Whether the connection shows it, and no request says it.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        matches!(self, Attribute::PeerUser | Attribute::PeerProgram | Attribute::PeerIdentity)
    }

    /// The name of a descriptor's entry that holds it, or of a value that a program gives.
    #[must_use]
    pub fn entry(&self) -> Cow<'_, str> {
        match self {
            Attribute::Entry(name) => Cow::Borrowed(name),
            Attribute::Method => Cow::Borrowed("method"),
            Attribute::Path => Cow::Borrowed("path"),
            Attribute::RemoteAddress(_) => Cow::Borrowed("remote_address"),
            other => Cow::Owned(other.to_string()),
        }
    }

    /// The value of it where `raw` is that of its entry.
    #[must_use]
    pub fn of_entry<'v>(&self, raw: &'v str) -> Cow<'v, str> {
        match self {
            Attribute::RemoteAddress(Some(bits)) => match raw.parse() {
                Ok(address) => Cow::Owned(masked(address, *bits)),
                Err(_) => Cow::Borrowed(raw),
            },
            _ => Cow::Borrowed(raw),
        }
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attribute::Method => f.write_str("method"),
            Attribute::Path => f.write_str("path"),
            Attribute::Host => f.write_str("host"),
            Attribute::Scheme => f.write_str("scheme"),
            Attribute::Query(name) => write!(f, "query.{name}"),
            Attribute::Header(name) => write!(f, "header.{name}"),
            Attribute::Cookie(name) => write!(f, "cookie.{name}"),
            Attribute::Authenticated => f.write_str("authenticated"),
            Attribute::RemoteAddress(None) => f.write_str("remote_address"),
            Attribute::RemoteAddress(Some(bits)) => write!(f, "remote_address/{bits}"),
            Attribute::ContentLength => f.write_str("content_length"),
            Attribute::PeerUser => f.write_str("peer.uid"),
            Attribute::PeerProgram => f.write_str("peer.exe"),
            Attribute::PeerIdentity => f.write_str("san"),
            Attribute::Entry(name) => write!(f, "entry.{name}"),
        }
    }
}

/// An address cut to `bits`: up to 32 are of IPv4, and those of IPv6 are cut to the 64 that a host has then; more are of IPv6.
#[must_use]
pub fn masked(address: IpAddr, bits: u8) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32_u32.saturating_sub(bits.into())).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).to_string()
        }
        IpAddr::V6(address) => {
            let bits = if bits <= 32 { 64 } else { bits.min(128) };
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).to_string()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_names() {
        for name in [
            "method",
            "path",
            "query.q",
            "header.x-tenant",
            "cookie.id",
            "remote_address/24",
            "peer.uid",
            "san",
            "entry.user",
        ] {
            assert_eq!(Attribute::new(name).unwrap().to_string(), name);
        }
        assert_eq!(Attribute::new("header.X-Tenant").unwrap().to_string(), "header.x-tenant");
        for name in
            ["metod", "header.", "header", "jwt.sub", "remote_address/0", "remote_address/x", "peer.gid"]
        {
            assert!(Attribute::new(name).unwrap_err().contains("is no attribute; wanted"), "{name}");
        }
    }

    #[test]
    fn fields_have_names_that_fields_can_have() {
        assert_eq!(
            Attribute::new("header.x tenant").unwrap_err(),
            "\"header.x tenant\" is no attribute; wanted a field's name, as in header.x-tenant"
        );
    }

    #[test]
    fn addresses_are_cut() {
        let cut = |address: &str, bits| masked(address.parse().unwrap(), bits);
        assert_eq!(cut("10.1.2.3", 24), "10.1.2.0");
        assert_eq!(cut("10.1.2.3", 64), "10.1.2.3");
        assert_eq!(cut("::ffff:10.1.2.3", 24), "10.1.2.0");
        assert_eq!(cut("2001:db8:1:2:3::4", 24), "2001:db8:1:2::");
        assert_eq!(cut("2001:db8:1:2:3::4", 48), "2001:db8:1::");
    }
}
