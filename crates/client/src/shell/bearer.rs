//! The token by which servers know this process where it has no certificate.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

    /// The content of the header of HTTP that says it.
    ///
    /// # Errors
    /// When its file cannot be read, or holds no token.
    pub fn http_header(&self) -> Result<http::HeaderValue, TokenFault> {
        let header = self.header(clock::now()).map_err(TokenFault)?;
        let mut value =
            http::HeaderValue::from_bytes(header.as_bytes()).map_err(|_| TokenFault(NONE.to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
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
                let text = std::fs::read_to_string(path)
                    .map_err(|error| format!("cannot read the token in {}: {error}", path.display()))?;
                let header = header(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
                *read = Some(Read { at: now, header: header.clone() });
                Ok(header)
            }
        }
    }
}

fn header(token: &str) -> Result<MetadataValue<Ascii>, String> {
    let header = format!("Bearer {}", token.trim()).parse::<MetadataValue<Ascii>>();
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
    fn a_file_is_read_again_after_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let token = BearerToken::file(&path);
        assert!(token.header(Time::ZERO).unwrap_err().starts_with("cannot read the token in "));
        std::fs::write(&path, "one\n").unwrap();
        assert_eq!(token.header(Time::ZERO).unwrap(), "Bearer one");
        std::fs::write(&path, "two\n").unwrap();
        assert_eq!(token.header(Time::ZERO + FRESH / 2).unwrap(), "Bearer one");
        assert_eq!(token.header(Time::ZERO + FRESH).unwrap(), "Bearer two");
    }
}
