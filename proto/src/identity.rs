//! The identity of a peer, as text: what its certificate proves, or how it came without one.
//!
//! A certificate names its bearer in its subject alternative names. Where one of them is a URI, that is the identity, as in
//! SPIFFE, whose standard allows no second one; otherwise the first DNS name is. The common name of the subject is never
//! looked at: nothing says what kind of name it is.

use std::fmt;
use std::sync::Arc;

/// Bytes in an identity, at the most: as long as SPIFFE allows.
const MOST_BYTES: usize = 2_048;
const ANONYMOUS: &str = "anonymous";
const PLAIN: &str = "plain";
/// With that the identity of a user of this machine begins.
const USER: &str = "uid:";

/// The identity of a peer. Clones share the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Arc<str>);

/// Why names give no identity.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadIdentity {
    /// There is neither a URI nor a DNS name.
    #[error(
        "no URI and no DNS name among the subject alternative names, wanted one of them; the common name does not count"
    )]
    Nameless,
    /// There are several URIs.
    #[error("{0} URIs among the subject alternative names, wanted one")]
    SeveralUris(usize),
    /// The text is empty.
    #[error("the name is empty")]
    Empty,
    /// The text is too long.
    #[error("the name has {0} bytes, wanted {MOST_BYTES} at the most")]
    TooLong(usize),
    /// The text has this control character.
    #[error("the name contains the control character {0:?}")]
    Control(char),
    /// The text is that of a peer that came in another way.
    #[error("the name {0:?} stands for peers that have no certificate")]
    Reserved(String),
}

// === impl Identity ===

impl Identity {
    /// The identity of a peer that was asked for a certificate, and has shown none.
    #[must_use]
    pub fn anonymous() -> Identity {
        Identity(ANONYMOUS.into())
    }

    /// The identity of a peer that came without TLS, and so could not be asked.
    #[must_use]
    pub fn plain() -> Identity {
        Identity(PLAIN.into())
    }

    /// The identity of a process of this machine that runs as that user.
    #[must_use]
    pub fn user(uid: u32) -> Identity {
        Identity(format!("{USER}{uid}").into())
    }

    /// The identity that `text` is, as something proves it: 1 to 2,048 bytes without control characters.
    ///
    /// # Errors
    /// When it is none, or would be taken for that of a peer that proves nothing.
    pub fn proved(text: &str) -> Result<Identity, BadIdentity> {
        if text.is_empty() {
            return Err(BadIdentity::Empty);
        }
        if text.len() > MOST_BYTES {
            return Err(BadIdentity::TooLong(text.len()));
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(BadIdentity::Control(control));
        }
        // However it is written: a rule for one of them is for no certificate.
        let lower = text.to_ascii_lowercase();
        if lower == ANONYMOUS || lower == PLAIN || lower.starts_with(USER) {
            return Err(BadIdentity::Reserved(text.to_owned()));
        }
        Ok(Identity(text.into()))
    }

    /// The identity that a certificate with these subject alternative names proves: its URI, or else the first of its DNS
    /// names, in lower case.
    ///
    /// # Errors
    /// When it has several URIs, or no name at all, or one that can be no identity.
    pub fn certified<'a>(
        uris: impl IntoIterator<Item = &'a str>,
        dns_names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Identity, BadIdentity> {
        let mut uris = uris.into_iter();
        match (uris.next(), uris.count()) {
            (Some(uri), 0) => Identity::proved(uri),
            (Some(_), others) => Err(BadIdentity::SeveralUris(others + 1)),
            (None, _) => {
                let name = dns_names.into_iter().next().ok_or(BadIdentity::Nameless)?;
                Identity::proved(&name.to_ascii_lowercase())
            }
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether something proves it: a certificate, or the system that says as which user a process runs.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        !matches!(self.as_str(), ANONYMOUS | PLAIN)
    }
}

impl AsRef<str> for Identity {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "spiffe://acme/ns/shop/sa/web";

    fn certified(uris: &[&str], dns_names: &[&str]) -> Result<String, BadIdentity> {
        let identity = Identity::certified(uris.iter().copied(), dns_names.iter().copied())?;
        assert!(identity.is_proved());
        Ok(identity.to_string())
    }

    #[test]
    fn the_only_uri_comes_before_every_dns_name() {
        assert_eq!(certified(&[WEB], &["web.shop"]), Ok(WEB.to_owned()));
        assert_eq!(certified(&[], &["Web.Shop", "a.shop"]), Ok("web.shop".to_owned()));
        assert_eq!(certified(&[WEB, "spiffe://acme/other"], &["web"]), Err(BadIdentity::SeveralUris(2)));
        assert_eq!(certified(&[WEB, WEB], &[]), Err(BadIdentity::SeveralUris(2)));
        assert_eq!(certified(&[], &[]), Err(BadIdentity::Nameless));
    }

    #[test]
    fn no_certificate_passes_for_a_peer_without_one() {
        for name in ["plain", "anonymous", "PLAIN", "uid:0", "Uid:0"] {
            assert!(matches!(certified(&[name], &[]), Err(BadIdentity::Reserved(_))), "{name}");
            assert!(matches!(certified(&[], &[name]), Err(BadIdentity::Reserved(_))), "{name}");
        }
        assert!(certified(&[], &["plain.example"]).is_ok());
        assert!(!Identity::plain().is_proved() && !Identity::anonymous().is_proved());
        assert_eq!(Identity::user(1_000).as_str(), "uid:1000");
    }

    #[test]
    fn an_identity_is_text_of_some_length() {
        let longest = "a".repeat(MOST_BYTES);
        assert!(Identity::proved(&longest).is_ok());
        assert_eq!(Identity::proved(&(longest + "a")), Err(BadIdentity::TooLong(MOST_BYTES + 1)));
        assert_eq!(Identity::proved(""), Err(BadIdentity::Empty));
        assert_eq!(Identity::proved("a\nb"), Err(BadIdentity::Control('\n')));
    }
}
