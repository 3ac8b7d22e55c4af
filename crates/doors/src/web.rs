//! Requests that proxies forward: what is known of the client's request, and how much of it is believed.
//!
//! A proxy says in fields of its own what it was asked. Those are believed of peers that are trusted only, and of one family only,
//! which the set names: nginx passes fields of the other one on as the client has sent them. Nothing is ever taken from the query
//! of the check itself, as some proxies put the client's query there. A peer that is not trusted is its own client, and all that is
//! known of it is its address.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, HOST};
use http::{HeaderMap, HeaderName, Method};
use ipnet::IpNet;

use crate::attribute::{Attribute, Attributes, masked};
use crate::malformed::Malformed;
use crate::shown::ShownPeer;

mod path;

use self::path::{decoded, normalised};

/// The fields in which a proxy says what it was asked.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Forwarded {
    /// `X-Forwarded-Method`, `-Uri`, `-Host`, `-Proto` and `-For`, as Traefik and Caddy set them.
    #[default]
    XForwarded,
    /// `X-Original-Method`, `-URI`, `-Host`, `-Proto`, and `X-Real-IP`, as nginx is told to set them.
    XOriginal,
}

/// The peers that are believed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trusted {
    networks: Vec<IpNet>,
}

/// The peer that has sent a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WebPeer<'a> {
    /// The address; absent: it came over a socket of this machine's file system.
    pub address: Option<IpAddr>,
    /// Whether it has shown a certificate that is believed, and is trusted for it.
    pub is_certified: bool,
    /// The peer as its connection shows it.
    pub shown: &'a ShownPeer,
}

/// A request of a client, as a proxy forwards it.
#[derive(Clone, Debug)]
pub struct WebRequest<'a> {
    headers: &'a HeaderMap,
    shown: &'a ShownPeer,
    is_trusted: bool,
    method: Cow<'a, str>,
    path: Option<Cow<'a, str>>,
    query: Option<&'a str>,
    host: Option<&'a str>,
    scheme: Option<&'a str>,
    address: Option<IpAddr>,
    content_length: Option<&'a str>,
    timeout: Option<&'a str>,
}

struct Names {
    method: HeaderName,
    uri: HeaderName,
    host: HeaderName,
    proto: HeaderName,
    length: HeaderName,
}

static X_FORWARDED: Names = Names {
    method: HeaderName::from_static("x-forwarded-method"),
    uri: HeaderName::from_static("x-forwarded-uri"),
    host: HeaderName::from_static("x-forwarded-host"),
    proto: HeaderName::from_static("x-forwarded-proto"),
    length: HeaderName::from_static("x-forwarded-content-length"),
};
static X_ORIGINAL: Names = Names {
    method: HeaderName::from_static("x-original-method"),
    uri: HeaderName::from_static("x-original-uri"),
    host: HeaderName::from_static("x-original-host"),
    proto: HeaderName::from_static("x-original-proto"),
    length: HeaderName::from_static("x-original-content-length"),
};
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static X_REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
static X_LESSOR_TIMEOUT: HeaderName = HeaderName::from_static("x-lessor-timeout");

/// The bytes of a path that is looked at.
const PATH_BYTES: usize = 8 << 10;

// === impl Trusted ===

impl Trusted {
    /// Those in these networks, and loopback.
    #[must_use]
    pub fn new(mut networks: Vec<IpNet>) -> Trusted {
        let loopback = ["127.0.0.0/8", "::1/128"];
        networks.extend(loopback.iter().filter_map(|network| network.parse::<IpNet>().ok()));
        Trusted { networks }
    }

    /// Whether an address is one of them. A peer without address came over a socket of this machine's file system.
    #[must_use]
    pub fn contains(&self, address: Option<IpAddr>) -> bool {
        address.is_none_or(|address| {
            self.networks.iter().any(|network| network.contains(&address.to_canonical()))
        })
    }
}

impl Default for Trusted {
    fn default() -> Trusted {
        Trusted::new(Vec::new())
    }
}

// === impl Forwarded ===

impl Forwarded {
    fn names(self) -> &'static Names {
        match self {
            Forwarded::XForwarded => &X_FORWARDED,
            Forwarded::XOriginal => &X_ORIGINAL,
        }
    }
}

// === impl WebRequest ===

impl<'a> WebRequest<'a> {
    /// The request that a peer forwards in these fields.
    ///
    /// # Errors
    /// When a field stands there twice, is no text, or too long.
    pub fn read(
        (method, headers): (&'a Method, &'a HeaderMap),
        WebPeer { address: peer, is_certified, shown }: WebPeer<'a>,
        forwarded: Forwarded,
        trusted: &Trusted,
    ) -> Result<WebRequest<'a>, Malformed> {
        let own = Cow::Borrowed(method.as_str());
        let mut request = WebRequest {
            headers,
            shown,
            is_trusted: is_certified || trusted.contains(peer),
            method: own,
            path: None,
            query: None,
            host: None,
            scheme: None,
            address: peer,
            content_length: None,
            timeout: None,
        };
        if !request.is_trusted {
            return Ok(request);
        }
        let names = forwarded.names();
        let wanted =
            [&names.method, &names.uri, &names.host, &names.proto, &names.length, &HOST, &X_LESSOR_TIMEOUT];
        let [method, uri, host, scheme, content_length, own_host, timeout] = each_once(headers, wanted)?;
        if let Some(method) = method {
            request.method = Cow::Borrowed(method);
        }
        if let Some(uri) = uri {
            if uri.len() > PATH_BYTES {
                let found = format!("is of {} bytes", uri.len());
                return Err(Malformed {
                    field: names.uri.to_string(),
                    found,
                    wanted: format!("at most {PATH_BYTES}"),
                });
            }
            let (path, query) = uri.split_once('?').map_or((uri, None), |(path, query)| (path, Some(query)));
            request.path = Some(normalised(path));
            request.query = query;
        }
        request.host = host.or(own_host);
        request.scheme = scheme;
        request.content_length = content_length;
        request.timeout = timeout;
        request.address = match forwarded {
            Forwarded::XForwarded => client(headers, peer, trusted),
            Forwarded::XOriginal => {
                let [real] = each_once(headers, [&X_REAL_IP])?;
                real.and_then(|address| address.trim().parse().ok()).or(peer)
            }
        };
        Ok(request)
    }

    /// The time for which a trusted peer waits, as `X-Lessor-Timeout` says it in milliseconds.
    ///
    /// # Errors
    /// When it is no number.
    pub fn timeout(&self) -> Result<Option<Duration>, Malformed> {
        let Some(text) = self.timeout else { return Ok(None) };
        let millis = text.parse().map_err(|_| Malformed {
            field: X_LESSOR_TIMEOUT.to_string(),
            found: format!("is {:?}", text.chars().take(40).collect::<String>()),
            wanted: "milliseconds, as in 20".to_owned(),
        })?;
        Ok(Some(Duration::from_millis(millis)))
    }
}

impl Attributes for WebRequest<'_> {
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        let believed = |name: &HeaderName| {
            let value = self.headers.get(name).filter(|_| self.is_trusted)?;
            Some(String::from_utf8_lossy(value.as_bytes()))
        };
        match attribute {
            Attribute::Method => Some(Cow::Borrowed(&self.method)),
            Attribute::Path => self.path.as_deref().map(Cow::Borrowed),
            Attribute::Host => self.host.map(Cow::Borrowed),
            Attribute::Scheme => self.scheme.map(Cow::Borrowed),
            Attribute::Query(name) => parameter(self.query?, name),
            Attribute::Header(name) => believed(name),
            Attribute::Cookie(name) => {
                let cookies = self.headers.get(COOKIE).filter(|_| self.is_trusted)?.to_str().ok()?;
                let pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
                pairs.into_iter().find(|(known, _)| *known == &**name).map(|(_, value)| Cow::Borrowed(value))
            }
            Attribute::Authenticated => believed(&AUTHORIZATION).map(|_| Cow::Borrowed("true")),
            Attribute::RemoteAddress(bits) => self.address.map(|address| {
                Cow::Owned(match bits {
                    Some(bits) => masked(address, *bits),
                    None => address.to_canonical().to_string(),
                })
            }),
            Attribute::ContentLength => self.content_length.map(Cow::Borrowed),
            Attribute::PeerUser | Attribute::PeerProgram | Attribute::PeerIdentity => {
                self.shown.value(attribute)
            }
            Attribute::Entry(_) => None,
        }
    }
}

/// The values of fields that may stand there once each, by one look at all that stand there: a request has few, and to look each of
/// these up by its hash takes longer.
fn each_once<'h, const N: usize>(
    headers: &'h HeaderMap,
    names: [&HeaderName; N],
) -> Result<[Option<&'h str>; N], Malformed> {
    let mut values = [None; N];
    for (name, value) in headers {
        let Some(place) = names.iter().position(|wanted| *wanted == name) else { continue };
        let wrong = |found: &str| Malformed {
            field: name.to_string(),
            found: found.to_owned(),
            wanted: "one field of printable characters".to_owned(),
        };
        let value = value.to_str().map_err(|_| wrong("has other characters"))?;
        if values[place].replace(value).is_some() {
            return Err(wrong("stands there twice"));
        }
    }
    Ok(values)
}

/// The last address in `X-Forwarded-For` that is not itself trusted: what stands before it, the client may have written.
fn client(headers: &HeaderMap, peer: Option<IpAddr>, trusted: &Trusted) -> Option<IpAddr> {
    let lines = headers.get_all(&X_FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok());
    let hops: Vec<&str> = lines.flat_map(|line| line.split(',')).map(str::trim).collect();
    let mut last = peer;
    for hop in hops.into_iter().rev() {
        let Ok(address) = hop.parse() else { break };
        last = Some(address);
        if !trusted.contains(last) {
            break;
        }
    }
    last
}

/// The value of a parameter of a query, decoded.
fn parameter<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let (_, value) = pairs.into_iter().find(|(known, _)| decoded(known, true) == name)?;
    Some(Cow::Owned(decoded(value, true)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shown::NOBODY;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|&(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).fold(
            HeaderMap::new(),
            |mut headers, (name, value)| {
                headers.append(name, value);
                headers
            },
        )
    }

    fn value(
        fields: &[(&'static str, &'static str)],
        peer: &str,
        forwarded: Forwarded,
        name: &str,
    ) -> Result<Option<String>, String> {
        let headers = headers(fields);
        let trusted = Trusted::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let request = WebRequest::read(
            (&Method::GET, &headers),
            WebPeer { address: peer.parse().ok(), is_certified: false, shown: &NOBODY },
            forwarded,
            &trusted,
        );
        let request = request.map_err(|fault| fault.to_string())?;
        Ok(request.value(&Attribute::new(name).unwrap()).map(Cow::into_owned))
    }

    #[test]
    fn a_trusted_peer_says_what_it_was_asked_in_the_fields_of_its_family() {
        let fields = [
            ("x-forwarded-uri", "/a/%2e%2e/b?q=1%202&cost=0"),
            ("x-forwarded-method", "PUT"),
            ("x-original-uri", "/free"),
            ("x-real-ip", "192.0.2.9"),
            ("cookie", "id=7; plan=gold"),
            ("x-tenant", "acme"),
        ];
        let of = |name: &str| value(&fields, "10.0.0.1", Forwarded::XForwarded, name).unwrap();
        assert_eq!(of("path").as_deref(), Some("/b"));
        assert_eq!(of("method").as_deref(), Some("PUT"));
        assert_eq!(of("query.q").as_deref(), Some("1 2"));
        assert_eq!(of("cookie.plan").as_deref(), Some("gold"));
        assert_eq!(of("header.x-tenant").as_deref(), Some("acme"));
        assert_eq!((of("authenticated"), of("content_length"), of("entry.x")), (None, None, None));
        let of = |name: &str| value(&fields, "10.0.0.1", Forwarded::XOriginal, name).unwrap();
        assert_eq!(
            (of("path").as_deref(), of("remote_address").as_deref()),
            (Some("/free"), Some("192.0.2.9"))
        );
        let of = |name: &str| value(&fields, "192.0.2.1", Forwarded::XForwarded, name).unwrap();
        assert_eq!((of("path"), of("header.x-tenant"), of("cookie.id")), (None, None, None));
        assert_eq!(
            (of("method").as_deref(), of("remote_address").as_deref()),
            (Some("GET"), Some("192.0.2.1"))
        );
    }

    #[test]
    fn the_client_is_the_last_hop_that_is_not_trusted() {
        let client = |chain: &'static [(&'static str, &'static str)], peer: &str| {
            value(chain, peer, Forwarded::XForwarded, "remote_address").unwrap()
        };
        let forged = &[("x-forwarded-for", "1.1.1.1, 192.0.2.7"), ("x-forwarded-for", "10.0.0.5")];
        assert_eq!(client(forged, "10.0.0.1").as_deref(), Some("192.0.2.7"));
        assert_eq!(
            client(&[("x-forwarded-for", "garbage, 10.0.0.5")], "10.0.0.1").as_deref(),
            Some("10.0.0.5")
        );
        assert_eq!(client(&[], "10.0.0.1").as_deref(), Some("10.0.0.1"));
        assert_eq!(client(&[("x-forwarded-for", "::ffff:192.0.2.7")], "::1").as_deref(), Some("192.0.2.7"));
        assert_eq!(client(&[("x-forwarded-for", "1.1.1.1")], "192.0.2.1").as_deref(), Some("192.0.2.1"));
    }

    #[test]
    fn a_field_that_stands_there_twice_is_malformed() {
        let twice = [("x-forwarded-uri", "/free"), ("x-forwarded-uri", "/paid")];
        assert_eq!(
            value(&twice, "10.0.0.1", Forwarded::XForwarded, "path").unwrap_err(),
            "x-forwarded-uri stands there twice; wanted one field of printable characters"
        );
        assert_eq!(value(&twice, "10.0.0.1", Forwarded::XOriginal, "path"), Ok(None));
    }
}
