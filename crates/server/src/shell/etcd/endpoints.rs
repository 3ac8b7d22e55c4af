//! The members of etcd. Calls go to one of them, until one fails there; then to the next.
//!
//! Each has a connection of its own: a balancer over all of them would go on sending calls to one that is dead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use tokio::sync::OnceCell;
use tonic::transport::Uri;

use super::{ElectionStartError, EtcdOptions};

/// The interval at which a silent connection is tried. Etcd ends connections that are tried more often than
/// every five seconds.
const TRY: Duration = Duration::from_secs(6);
/// The time that a try may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The members of etcd.
pub(super) struct Endpoints {
    all: Vec<Arc<Endpoint>>,
    current: usize,
}

/// A member of etcd.
pub(super) struct Endpoint {
    number: usize,
    url: String,
    options: ConnectOptions,
    client: OnceCell<Client>,
    /// The cluster that has answered there last; 0 before the first answer.
    cluster: AtomicU64,
}

// === impl Endpoints ===

impl Endpoints {
    pub(super) fn new(options: EtcdOptions, call_timeout: Duration) -> Result<Endpoints, ElectionStartError> {
        if options.endpoints.is_empty() {
            return Err(ElectionStartError::NoEndpoint);
        }
        // No timeout on the connection as a whole: it would cut watches too.
        let mut connect = ConnectOptions::new()
            .with_keep_alive(TRY, PATIENCE)
            // Etcd takes it amiss where nothing is under way.
            .with_keep_alive_while_idle(false)
            .with_connect_timeout(call_timeout)
            .with_require_leader(true);
        if let Some((name, password)) = options.user {
            connect = connect.with_user(name, password).with_auto_token_refresh(true);
        }
        if let Some(tls) = &options.tls {
            connect = connect.with_tls(tls.options());
        }
        let mut all = Vec::with_capacity(options.endpoints.len());
        for (number, url) in options.endpoints.into_iter().enumerate() {
            check(&url, options.tls.is_some())?;
            let options = connect.clone();
            all.push(Arc::new(Endpoint {
                number,
                url,
                options,
                client: OnceCell::new(),
                cluster: AtomicU64::new(0),
            }));
        }
        Ok(Endpoints { all, current: 0 })
    }

    /// Where calls go at present.
    pub(super) fn current(&self) -> Arc<Endpoint> {
        Arc::clone(&self.all[self.current])
    }

    /// The cluster that has answered at one of them last, if one has.
    pub(super) fn cluster(&self, number: usize) -> Option<u64> {
        Some(self.all[number].cluster.load(Ordering::Relaxed)).filter(|&cluster| cluster != 0)
    }

    /// A call has failed at one of them: others go to the next, unless they do already.
    pub(super) fn failed(&mut self, number: usize) {
        if self.current == number {
            self.current = (number + 1) % self.all.len();
        }
    }
}

fn check(url: &str, has_certificates: bool) -> Result<(), ElectionStartError> {
    let found = url.to_owned();
    let uri = url.parse::<Uri>().ok().filter(|uri| uri.port().is_some());
    match (uri.as_ref().and_then(Uri::scheme_str), has_certificates) {
        (Some("http"), false) | (Some("https"), true) => Ok(()),
        (Some("http"), true) => Err(ElectionStartError::NotEncrypted { found }),
        (Some("https"), false) => Err(ElectionStartError::NoAuthority { found }),
        _ => Err(ElectionStartError::Endpoint { found }),
    }
}

// === impl Endpoint ===

impl Endpoint {
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// An answer came from that cluster.
    pub(super) fn note_cluster(&self, cluster: u64) {
        self.cluster.store(cluster, Ordering::Relaxed);
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The connection, made at the first call. Where there is a password this asks for a token.
    pub(super) async fn client(&self) -> Result<Client, etcd_client::Error> {
        let connect = || Client::connect([self.url.as_str()], Some(self.options.clone()));
        self.client.get_or_try_init(connect).await.cloned()
    }
}
