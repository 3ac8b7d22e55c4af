//! Keys: whose request it is, as the name of a domain.

use std::fmt::Write as _;

use http::{HeaderName, Request, StatusCode};

/// The longest name of a domain in bytes; longer ones are cut, and told apart by a hash.
const LONGEST: usize = 200;
/// Bytes of a longer name that are kept.
const KEPT: usize = 160;

/// An extractor of a key: the name of the domain that a request belongs to.
///
/// It may be a closure: `|request: &Request<B>, name: &mut Name| { name.push(tenant(request)); Ok(()) }`. A key that pushes
/// nothing leaves the request to the whole resource, without a domain.
pub trait Key<B> {
    /// Pushes the parts of the name.
    ///
    /// # Errors
    /// When the request has no such key. It is answered with what [`Unkeyed`] says then, and costs nothing.
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed>;
}

/// The name of a domain, part by part.
///
/// Parts are joined by `/`. What has a meaning in names (`%`, `/`, `|`, `,`, `=`), spaces, control characters and bytes that
/// are not UTF-8 are percent-encoded in them, so that a client cannot write the name of another's domain. A name of more than
/// 200 bytes keeps the first 160 of them and ends in a hash of it all.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Name {
    text: String,
    parts: usize,
}

/// Why a request has no key, and the status to answer it with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unkeyed {
    status: StatusCode,
    why: String,
}

/// The key of all requests: they share the whole resource.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Global;

/// The value of a header, such as a tenant's name. Whoever sends the request chooses it: it should be set, or checked, by
/// something in front of this that is trusted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header(HeaderName);

/// The route that matched, as it was written: `/users/{id}`. The layer has to stand within the router
/// (`Router::route_layer`, or `Router::layer` after the routes).
#[cfg(feature = "axum")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MatchedPath;

// === impl Name ===

impl Name {
    pub(crate) fn within(mut buffer: String) -> Name {
        buffer.clear();
        Name { text: buffer, parts: 0 }
    }

    /// Adds a part.
    pub fn push(&mut self, part: impl AsRef<[u8]>) {
        if self.parts > 0 {
            self.text.push('/');
        }
        self.parts += 1;
        let part = part.as_ref();
        let is_plain =
            |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'%' | b'/' | b'|' | b',' | b'=');
        if let Some(text) = part.iter().all(is_plain).then(|| str::from_utf8(part).ok()).flatten() {
            return self.text.push_str(text);
        }
        for chunk in part.utf8_chunks() {
            for letter in chunk.valid().chars() {
                match letter {
                    '%' | '/' | '|' | ',' | '=' => self.escape(letter as u8),
                    _ if letter.is_control() || letter.is_whitespace() => {
                        let mut bytes = [0; 4];
                        letter.encode_utf8(&mut bytes).bytes().for_each(|byte| self.escape(byte));
                    }
                    _ => self.text.push(letter),
                }
            }
            chunk.invalid().iter().for_each(|&byte| self.escape(byte));
        }
    }

    fn escape(&mut self, byte: u8) {
        // Writing to a string does not fail.
        let _ = write!(self.text, "%{byte:02X}");
    }

    /// The domain; `None` where no part was pushed.
    pub(crate) fn domain(&mut self) -> Option<&str> {
        if self.text.len() > LONGEST {
            let hash = blake3::hash(self.text.as_bytes()).to_hex();
            self.text.truncate(self.text.floor_char_boundary(KEPT));
            self.text.push('~');
            self.text.push_str(&hash[..16]);
        }
        (self.parts > 0).then_some(self.text.as_str())
    }

    pub(crate) fn into_buffer(self) -> String {
        self.text
    }
}

// === impl Unkeyed ===

impl Unkeyed {
    /// The request is at fault: 400.
    pub fn bad_request(why: impl Into<String>) -> Unkeyed {
        Unkeyed { status: StatusCode::BAD_REQUEST, why: why.into() }
    }

    /// The service is at fault, as it is not set up for the key: 500.
    pub fn misconfigured(why: impl Into<String>) -> Unkeyed {
        Unkeyed { status: StatusCode::INTERNAL_SERVER_ERROR, why: why.into() }
    }

    /// The status to answer with.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The reason.
    #[must_use]
    pub fn why(&self) -> &str {
        &self.why
    }
}

// === impl Key ===

impl<B, F: Fn(&Request<B>, &mut Name) -> Result<(), Unkeyed>> Key<B> for F {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        self(request, name)
    }
}

impl<B> Key<B> for Global {
    fn key(&self, _: &Request<B>, _: &mut Name) -> Result<(), Unkeyed> {
        Ok(())
    }
}

impl Header {
    /// The header of that name, in lower case.
    ///
    /// # Panics
    /// When it is no name of a header, or has letters in upper case.
    #[must_use]
    pub fn new(name: &'static str) -> Header {
        Header(HeaderName::from_static(name))
    }
}

impl From<HeaderName> for Header {
    fn from(name: HeaderName) -> Header {
        Header(name)
    }
}

impl<B> Key<B> for Header {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        let mut values = request.headers().get_all(&self.0).iter();
        match (values.next(), values.next()) {
            (Some(value), None) => {
                name.push(value);
                Ok(())
            }
            (None, _) => Err(Unkeyed::bad_request(format!("the header {} is missing", self.0))),
            (Some(_), Some(_)) => {
                Err(Unkeyed::bad_request(format!("the header {} stands there twice", self.0)))
            }
        }
    }
}

#[cfg(feature = "axum")]
impl<B> Key<B> for MatchedPath {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        let path = request.extensions().get::<axum::extract::MatchedPath>();
        let path = path.ok_or_else(|| Unkeyed::misconfigured("no route has matched yet"))?;
        name.push(path.as_str());
        Ok(())
    }
}

impl<B, P: Key<B>, Q: Key<B>> Key<B> for (P, Q) {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        self.0.key(request, name)?;
        self.1.key(request, name)
    }
}

impl<B, P: Key<B>, Q: Key<B>, R: Key<B>> Key<B> for (P, Q, R) {
    fn key(&self, request: &Request<B>, name: &mut Name) -> Result<(), Unkeyed> {
        self.0.key(request, name)?;
        self.1.key(request, name)?;
        self.2.key(request, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<K: Key<()>>(key: &K, request: &Request<()>, wanted: Option<&str>) {
        let mut name = Name::default();
        key.key(request, &mut name).unwrap();
        assert_eq!(name.domain(), wanted);
    }

    fn with(value: &[u8]) -> Request<()> {
        Request::builder().header("x-tenant", value).body(()).unwrap()
    }

    #[test]
    fn what_has_a_meaning_in_names_is_encoded() {
        let tenant = Header::new("x-tenant");
        check(&tenant, &with(b"acme"), Some("acme"));
        check(&tenant, &with(b"a/b|c,d=e f%2F"), Some("a%2Fb%7Cc%2Cd%3De%20f%252F"));
        check(&tenant, &with("größe".as_bytes()), Some("größe"));
        check(&tenant, &with(b"\xff\xfe"), Some("%FF%FE"));
        check(&tenant, &with(b""), Some(""));
    }

    #[test]
    fn parts_are_joined_and_nothing_is_the_whole_resource() {
        let method = |request: &Request<()>, name: &mut Name| {
            name.push(request.method().as_str());
            Ok(())
        };
        check(&(Header::new("x-tenant"), method), &with(b"acme"), Some("acme/GET"));
        check(&(Global, Header::new("x-tenant"), Global), &with(b"acme"), Some("acme"));
        check(&(Header::new("x-tenant"), method), &with(b""), Some("/GET"));
        check(&Global, &with(b"acme"), None);
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let name = |value: &str| {
            let mut name = Name::default();
            name.push(value);
            name.domain().unwrap().to_owned()
        };
        let (one, other) = (name(&"x".repeat(201)), name(&"x".repeat(202)));
        assert_eq!((one.len(), other.len()), (177, 177));
        assert_ne!(one, other);
        assert_eq!(name(&"x".repeat(200)).len(), 200);
        assert!(name(&"ä".repeat(300)).len() <= 177);
    }

    #[test]
    fn a_header_that_is_missing_or_stands_twice_is_no_key() {
        let why = |request: &Request<()>| {
            let unkeyed = Header::new("x-tenant").key(request, &mut Name::default()).unwrap_err();
            (unkeyed.status().as_u16(), unkeyed.why().to_owned())
        };
        assert_eq!(why(&Request::new(())), (400, "the header x-tenant is missing".to_owned()));
        let twice = Request::builder().header("x-tenant", "a").header("x-tenant", "b").body(()).unwrap();
        assert_eq!(why(&twice), (400, "the header x-tenant stands there twice".to_owned()));
    }
}
