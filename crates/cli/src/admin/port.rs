//! The admin port of a server, as its callers reach it: over the network, or at a socket of this machine.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

use crate::http;
use crate::tls::ClientTlsFlags;

/// The way to an admin port.
#[derive(Clone, Debug, Args)]
pub(super) struct PortFlags {
    /// The admin port of the server, as its --admin says: unix:/var/lib/lessor/admin.sock where it has a --state-dir and says
    /// nothing
    #[arg(long, env = "LESSOR_ADMIN", value_name = "HOST:PORT|unix:PATH")]
    admin: String,
    /// As the server says it, in JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    tls: ClientTlsFlags,
}

/// An admin port.
pub(crate) struct AdminPort {
    /// Where it is, as its caller has said it.
    at: String,
    tls: ClientTlsFlags,
    /// The address as it is put into requests.
    base: Uri,
    /// The path of the socket; absent: it is at the network.
    socket: Option<PathBuf>,
}

/// An answer of an admin port.
pub(crate) struct AdminAnswer {
    at: String,
    status: StatusCode,
    /// The text, if that is JSON.
    pub(crate) said: Option<Value>,
    text: String,
}

/// An act may wait for a disk, for another task to lead, or for all tasks to judge something.
const TIMEOUT: Duration = Duration::from_secs(30);

// === impl PortFlags ===

impl PortFlags {
    pub(super) fn open(&self) -> anyhow::Result<AdminPort> {
        AdminPort::new(&self.admin, &self.tls)
    }
}

// === impl AdminPort ===

impl AdminPort {
    pub(crate) fn new(at: &str, tls: &ClientTlsFlags) -> anyhow::Result<AdminPort> {
        let port = |base, socket| AdminPort { at: at.to_owned(), tls: tls.clone(), base, socket };
        if let Some(path) = at.strip_prefix("unix:") {
            if path.is_empty() {
                bail!("--admin unix: wanted a path behind it");
            }
            return Ok(port(Uri::from_static("http://localhost/"), Some(PathBuf::from(path))));
        }
        let base = http::uri(at, "/", tls);
        let base = base.with_context(|| format!("--admin {at:?}: wanted HOST:PORT or unix:PATH"))?;
        Ok(port(base, None))
    }

    /// Calls an act, and returns what came of it.
    pub(crate) async fn call(&self, method: Method, act: &str, body: Option<Value>) -> anyhow::Result<Value> {
        self.ask(method, &format!("/admin/{act}"), body).await?.done()
    }

    /// The page at a path of the same port.
    pub(crate) async fn page(&self, path: &str) -> anyhow::Result<Value> {
        self.ask(Method::GET, path, None).await?.done()
    }

    /// Calls for what is at a path, whatever comes of it.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<AdminAnswer> {
        let at = &self.at;
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(path.parse()?);
        let uri = Uri::from_parts(parts)?;
        let mut request = Request::builder().method(method);
        if let Some(token) = self.tls.token() {
            request = request.header(AUTHORIZATION, token.http_header(&uri)?);
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        let body = Full::new(Bytes::from(body.map_or(String::new(), |body| body.to_string())));
        let request = request.uri(uri).body(body)?;
        let asked = async {
            let response = match &self.socket {
                Some(path) => at_socket(path, request).await?,
                None => http::send(request, &self.tls, at).await?,
            };
            http::read(response).await
        };
        let waited = tokio::time::timeout(TIMEOUT, asked).await;
        let (status, text) = waited.map_err(|_| anyhow!("{at}: no answer in {TIMEOUT:?}"))??;
        Ok(AdminAnswer { at: at.clone(), status, said: serde_json::from_str(&text).ok(), text })
    }
}

// === impl AdminAnswer ===

impl AdminAnswer {
    /// The outcome of what was done.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn done(self) -> anyhow::Result<Value> {
        let AdminAnswer { at, status, said, text } = self;
        match said {
            Some(answer) if status == StatusCode::OK => Ok(answer),
            Some(problem) if problem["detail"].is_string() => bail!("{at}: {}", explain(status, &problem)),
            // As pages say it.
            Some(problem) if problem["error"].is_string() => {
                bail!("{at}: {}: {}", status.as_u16(), problem["error"].as_str().unwrap_or_default())
            }
            _ if status == StatusCode::NOT_FOUND => {
                bail!(
                    "{at}: that is no admin port: it answers 404; wanted what the server's --admin says, not --listen or --http"
                )
            }
            _ => bail!("{at}: {status}: {}", text.trim()),
        }
    }
}

async fn at_socket(path: &Path, mut request: Request<Full<Bytes>>) -> anyhow::Result<Response<Incoming>> {
    let stream = UnixStream::connect(path).await.map_err(|fault| no_socket(path, &fault))?;
    let uri = request.uri().path_and_query().map(|rest| rest.as_str().parse()).transpose()?;
    *request.uri_mut() = uri.unwrap_or_default();
    request.headers_mut().insert(HOST, hyper::header::HeaderValue::from_static("localhost"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // It ends with the request.
    tokio::spawn(connection);
    sender.send_request(request).await.with_context(|| format!("no answer at {}", path.display()))
}

/// The fault of a socket, and what to do about it.
fn no_socket(path: &Path, fault: &io::Error) -> anyhow::Error {
    let path = path.display();
    match fault.kind() {
        io::ErrorKind::NotFound => {
            anyhow!(
                "{path}: there is no such socket; is the server running, with --state-dir or --admin unix:{path}?"
            )
        }
        io::ErrorKind::ConnectionRefused => {
            anyhow!("{path}: nobody listens there: the server has ended without removing it; start it again")
        }
        io::ErrorKind::PermissionDenied => {
            anyhow!(
                "{path}: permission denied: the user of the server alone may open it; call this as that user, with sudo -u"
            )
        }
        _ => anyhow!("{path}: {fault}"),
    }
}

/// The problem that a server has with a call, and what to do about it.
fn explain(status: StatusCode, problem: &Value) -> String {
    let detail = problem["detail"].as_str().unwrap_or_default();
    match (status, problem["identity"].as_str(), problem["role"].as_str()) {
        (StatusCode::FORBIDDEN, Some(identity), Some(role)) => {
            format!("403: {detail}\nwhat the rules say of it: lessor can {identity:?} {role} --access FILE")
        }
        _ => format!("{}: {detail}", status.as_u16()),
    }
}
