//! The client: what a program builds once and opens resources from.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::name::BadName;
use lessor_proto::{ClientId, Incarnation};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tracing::{Instrument, info_span};

use super::bearer::BearerToken;
use super::command::Command;
use super::driver::Driver;
use super::line::ParentLine;
use super::link::{Link, endpoint};
use super::metrics::Metrics;
use super::opening::Opening;
use super::registry::Registry;
use super::tls::pem::TlsFault;
use super::tls::{ClientTls, Tls};
use super::windows::WindowsOpening;
use crate::gauge::Semaphore;
use crate::limiter::Limiter;
use crate::session::{Failure, Session, SessionConfig, SessionCounts, Transport};

/// Bytes in a client's id.
const ID_BYTES: usize = 256;

/// A client of one node: it keeps the leases of everything opened from it. Clones are the same client.
///
/// When the last clone and the last resource are dropped, the leases are released as well as can be in the background;
/// [`Client::close`] waits for that.
#[derive(Clone, Debug)]
pub struct Client {
    id: ClientId,
    registry: Arc<Registry>,
    commands: mpsc::UnboundedSender<Command>,
}

/// The settings with which a client is to be built.
#[derive(Clone, Debug)]
#[must_use = "nothing is built without `build` or `connect`"]
pub struct Builder {
    servers: Vec<Arc<str>>,
    id: Option<String>,
    timeout: Duration,
    transport: Transport,
    tls: Option<Tls>,
    token: Option<BearerToken>,
}

/// Why a client was not built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BuildError {
    /// The id cannot be one.
    #[error("the client id {id:?} {fault}; wanted 1 to {ID_BYTES} bytes of text without control characters")]
    Id {
        /// The id that was given.
        id: String,
        /// The fault in it.
        fault: BadName,
    },
    /// The address of a server cannot be one.
    #[error("{}", match .0 { Failure::Unreachable(fault) => fault.clone(), other => other.to_string() })]
    Address(Failure),
    /// Certificates or key cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] TlsFault),
    /// There is no tokio runtime to run the driver on.
    #[error("no tokio runtime; wanted to be called within one")]
    NoRuntime,
}

/// Why a client did not connect.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// It was not even built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// None of the servers answered; each with what happened.
    #[error("no server answers: {0}")]
    NoServer(String),
}

// === impl Client ===

impl Client {
    /// A client of the server at `host:port`.
    pub fn builder(server: impl AsRef<str>) -> Builder {
        Builder {
            servers: vec![server.as_ref().into()],
            id: None,
            timeout: Duration::from_secs(5),
            transport: Transport::default(),
            tls: None,
            token: None,
        }
    }

    /// Its id, as servers know it.
    #[must_use]
    pub fn id(&self) -> &ClientId {
        &self.id
    }

    /// Opens a rate: units a second.
    pub fn rate(&self, name: impl Into<String>) -> Opening<'_, Limiter> {
        Opening::new(&self.registry, &self.commands, name.into())
    }

    /// Opens a gauge: whole units in use at the same time.
    pub fn gauge(&self, name: impl Into<String>) -> Opening<'_, Semaphore> {
        Opening::new(&self.registry, &self.commands, name.into())
    }

    /// Opens limits on the uses in any window, exact over all clients together: of each key that resource whose name is `prefix`
    /// and the key.
    pub fn windows(&self, prefix: impl Into<String>) -> WindowsOpening<'_> {
        WindowsOpening::new(&self.registry, &self.commands, prefix.into())
    }

    /// The counts of what has happened so far, and the open resources. No domain is named.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.registry.metrics(None)
    }

    /// The same with the busiest domains of each rate by name, `most` of them at the most, and all others as one: so what is
    /// made of it has no more labels than that, however many domains there are. It looks at all that are remembered, one
    /// part of 64 after the other, and whoever asks for a domain of that part waits meanwhile.
    #[must_use]
    pub fn metrics_naming(&self, most: usize) -> Metrics {
        self.registry.metrics(Some(most))
    }

    /// The same for a registry of `prometheus-client`, with the `most` busiest domains of each rate by name. It keeps nothing
    /// open: once the client and all that was opened from it are dropped, it has no figures.
    #[cfg(feature = "prometheus")]
    #[must_use]
    pub fn collector(&self, most: usize) -> super::Collector {
        super::Collector::new(&self.registry, most)
    }

    /// Stops: nothing is allowed any more, all leases are released, up to two seconds are spent on that. Handles that are
    /// left grant nothing. Permits of gauges that are still out keep their lease until it ends.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.commands.send(Command::Shutdown { done }).is_ok() {
            // An error means that the driver is gone, which is what was asked for.
            let _ = closed.await;
        }
    }
}

// === impl Builder ===

impl Builder {
    /// Another server of the same node, asked when those before it do not answer.
    pub fn server(mut self, server: impl AsRef<str>) -> Builder {
        self.servers.push(server.as_ref().into());
        self
    }

    /// The id by which servers know this client; without it one is made up. Two processes may have the same: they are told
    /// apart.
    pub fn id(self, id: impl Into<String>) -> Builder {
        Builder { id: Some(id.into()), ..self }
    }

    /// The longest wait for an answer; 5 s without it.
    pub fn timeout(self, timeout: Duration) -> Builder {
        Builder { timeout, ..self }
    }

    /// The way to speak to servers: over a stream without it, and by polling where a server has none.
    pub fn transport(self, transport: Transport) -> Builder {
        Builder { transport, ..self }
    }

    /// Speaks TLS with all servers, also with those that it is sent on to; their addresses are `https://host:port`, or
    /// `host:port`.
    pub fn tls(self, tls: Tls) -> Builder {
        Builder { tls: Some(tls), ..self }
    }

    /// Shows a token to all servers, by which they know who this is where it has no certificate. It goes over TLS, or stays
    /// within this machine.
    pub fn token(self, token: BearerToken) -> Builder {
        Builder { token: Some(token), ..self }
    }

    /// Builds the client. No server needs to answer yet: resources wait for their first lease.
    ///
    /// # Errors
    /// When the id or an address cannot be one, certificates or key cannot be used, or outside of a tokio runtime.
    pub fn build(self) -> Result<Client, BuildError> {
        let tls = self.load_tls()?;
        self.build_with(tls)
    }

    fn load_tls(&self) -> Result<Option<Arc<ClientTls>>, BuildError> {
        let tls = self.tls.as_ref().map(ClientTls::load).transpose()?;
        Ok(tls.map(Arc::new))
    }

    fn link(&self, tls: Option<Arc<ClientTls>>) -> Link {
        Link::new(self.timeout).with_tls(tls).with_token(self.token.clone())
    }

    fn build_with(self, tls: Option<Arc<ClientTls>>) -> Result<Client, BuildError> {
        let runtime = Handle::try_current().map_err(|_| BuildError::NoRuntime)?;
        for server in &self.servers {
            endpoint(server, self.timeout, tls.is_some()).map_err(BuildError::Address)?;
        }
        let incarnation = Incarnation(draw());
        let id = self.id.unwrap_or_else(|| format!("client-{}-{:016x}", std::process::id(), incarnation.0));
        let id = ClientId::new(id.as_str(), ID_BYTES).map_err(|fault| BuildError::Id { id, fault })?;
        let registry = Arc::new(Registry::default());
        registry.count(SessionCounts::default(), self.transport);
        let (commands, inbox) = mpsc::unbounded_channel();
        let config = SessionConfig {
            timeout: self.timeout,
            transport: self.transport,
            ..SessionConfig::new(id.clone(), incarnation, self.servers)
        };
        let line = ParentLine::new(self.timeout).with_tls(tls).with_token(self.token);
        let driver = Driver::new(Session::new(config), line, registry.clone(), inbox);
        runtime.spawn(driver.run().instrument(info_span!("client", %id)));
        Ok(Client { id, registry, commands })
    }

    /// Builds the client when one of its servers answers, and says what is wrong if none does.
    ///
    /// # Errors
    /// As [`Builder::build`], and when no server answers.
    pub async fn connect(self) -> Result<Client, ConnectError> {
        let tls = self.load_tls()?;
        let (servers, link) = (self.servers.clone(), self.link(tls.clone()));
        let client = self.build_with(tls)?;
        reach(&servers, link).await.map(|()| client)
    }

    /// Asks the servers in turn until one answers, on connections of its own, and builds nothing.
    ///
    /// # Errors
    /// When certificates or key cannot be used, and when no server answers.
    pub async fn reach(&self) -> Result<(), ConnectError> {
        let link = self.link(self.load_tls()?);
        reach(&self.servers, link).await
    }
}

/// Asks servers in turn until one answers.
async fn reach(servers: &[Arc<str>], mut link: Link) -> Result<(), ConnectError> {
    let mut failures = Vec::new();
    for server in servers {
        match link.discover(server).await {
            Ok(_) => return Ok(()),
            Err(failure) => failures.push(format!("{server}: {failure}")),
        }
    }
    Err(ConnectError::NoServer(failures.join("; ")))
}

/// A number that no other life of this client has: the standard library's hash keys are drawn from the system.
#[expect(clippy::disallowed_methods, reason = "the place where the body draws")]
fn draw() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.write_u128(super::clock::wall().since_epoch.as_nanos());
    hasher.finish()
}
