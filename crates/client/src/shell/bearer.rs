//! The token by which servers know this process where it has no certificate.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use lessor_proto::Time;
use lessor_proto::wire::capacity_client::CapacityClient;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::clock;

/// A bearer token, as `lessor token new` prints it. Nothing of it is in any log.
#[derive(Clone)]
pub struct BearerToken(Arc<Origin>);

/// Where a token comes from.
enum Origin {
    Text(String),
    File { path: PathBuf, read: Mutex<Option<Read>> },
}

/// A token that was read from a file.
struct Read {
    at: Time,
    header: MetadataValue<Ascii>,
}

/// Puts the token into every request, if there is one.
#[derive(Clone, Debug)]
pub(super) struct Authorization(pub(super) Option<BearerToken>);

/// A server, called with the token.
pub(super) type Server = CapacityClient<InterceptedService<Channel, Authorization>>;

/// Why there is no token.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TokenFault(String);

const NONE: &str = "the token is no token; wanted one as `lessor token new` prints it";
/// The time for which a token that was read from a file is not read again.
const FRESH: Duration = Duration::from_secs(1);

// === impl BearerToken ===

impl BearerToken {
    /// A token that stays the same.
    #[must_use]
    pub fn text(token: impl Into<String>) -> BearerToken {
        BearerToken(Arc::new(Origin::Text(token.into())))
    }

    /// The token that a file holds, and nothing else beside it. It is read again as time goes on, so that another may take its
    /// place.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> BearerToken {
        BearerToken(Arc::new(Origin::File { path: path.into(), read: Mutex::new(None) }))
    }

    /// The content of the header of HTTP that says it to whoever serves `to`.
    ///
    /// # Errors
    /// When its file cannot be read, or holds no token, or others could read it on the way.
    pub fn http_header(&self, to: &Uri) -> Result<http::HeaderValue, TokenFault> {
        self.check_way(to)?;
        let header = self.header(clock::now()).map_err(TokenFault)?;
        let mut value =
            http::HeaderValue::from_bytes(header.as_bytes()).map_err(|_| TokenFault(NONE.to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Whether nobody else reads what goes to `to`: over TLS, or within this machine.
    ///
    /// # Errors
    /// When others do.
    pub(super) fn check_way(&self, to: &Uri) -> Result<(), TokenFault> {
        let host = to.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let is_loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        if to.scheme() == Some(&Scheme::HTTPS) || host == "localhost" || is_loopback {
            return Ok(());
        }
        Err(TokenFault(format!(
            "a token would go to {host} in plain text, for others to read; wanted TLS, or a loopback address"
        )))
    }

    /// The header that says it.
    fn header(&self, now: Time) -> Result<MetadataValue<Ascii>, String> {
        match &*self.0 {
            Origin::Text(token) => header(token),
            Origin::File { path, read } => {
                let mut read = read.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(last) = read.as_ref().filter(|last| now < last.at + FRESH) {
                    return Ok(last.header.clone());
                }
                // A few hundred bytes, at most once a second.
                let text = read_file(path);
                let text =
                    text.map_err(|error| format!("cannot read the token in {}: {error}", path.display()))?;
                let header = header(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
                *read = Some(Read { at: now, header: header.clone() });
                Ok(header)
            }
        }
    }
}

/// Reads a regular file: another might make its reader wait.
fn read_file(path: &Path) -> io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "is no regular file; wanted one"));
    }
    std::fs::read_to_string(path)
}

/// The header that says `token`. A file that is empty is being written, and holds none.
fn header(token: &str) -> Result<MetadataValue<Ascii>, String> {
    let token = Some(token.trim()).filter(|token| !token.is_empty()).ok_or(NONE)?;
    let header = format!("Bearer {token}").parse::<MetadataValue<Ascii>>();
    let mut header = header.map_err(|_| NONE.to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Origin::Text(_) => f.write_str("BearerToken(…)"),
            Origin::File { path, .. } => f.debug_tuple("BearerToken").field(path).finish(),
        }
    }
}

// === impl Authorization ===

impl Interceptor for Authorization {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(token) = &self.0 {
            let header = token.header(clock::now()).map_err(Status::unavailable)?;
            request.metadata_mut().insert("authorization", header);
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_said_and_shows_nowhere() {
        let token = BearerToken::text("lessor1.secret\n");
        let header = token.header(Time::ZERO).unwrap();
        assert_eq!(header.to_str().unwrap(), "Bearer lessor1.secret");
        assert_eq!(
            (format!("{token:?}"), format!("{header:?}")),
            ("BearerToken(…)".into(), "Sensitive".into())
        );
        assert!(BearerToken::text("a\nb").header(Time::ZERO).unwrap_err().contains("is no token"));
    }

    #[test]
    fn a_token_goes_where_nobody_else_reads_it() {
        let token = BearerToken::text("lessor1.secret");
        let says =
            |to: &'static str| token.http_header(&Uri::from_static(to)).map_err(|fault| fault.to_string());
        for private in
            ["https://root-1:15000", "http://127.0.0.1:1", "http://[::1]:1/status", "http://localhost:1"]
        {
            assert_eq!(says(private).unwrap(), "Bearer lessor1.secret", "{private}");
        }
        for open in ["http://root-1:15000", "http://192.0.2.1:1/status", "http://127.0.0.1.example:1"] {
            assert!(says(open).unwrap_err().contains("in plain text, for others to read"), "{open}");
        }
    }

    #[test]
    fn a_file_is_read_again_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let token = BearerToken::file(&path);
        assert!(token.header(Time::ZERO).unwrap_err().starts_with("cannot read the token in "));
        let folder = BearerToken::file(directory.path()).header(Time::ZERO).unwrap_err();
        assert!(folder.ends_with("is no regular file; wanted one"), "{folder}");
        std::fs::write(&path, "\n").unwrap();
        assert!(token.header(Time::ZERO).unwrap_err().contains("is no token"), "it is being written");
        std::fs::write(&path, "one\n").unwrap();
        assert_eq!(token.header(Time::ZERO).unwrap(), "Bearer one");
        std::fs::write(&path, "two\n").unwrap();
        assert_eq!(token.header(Time::ZERO + FRESH / 2).unwrap(), "Bearer one");
        assert_eq!(token.header(Time::ZERO + FRESH).unwrap(), "Bearer two");
    }
}
