//! The members of etcd. Calls go to one of them, until one fails there; then to the next.
//!
//! Each has a connection of its own: a balancer over all of them would go on sending calls to one that is dead.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use tokio::sync::OnceCell;
use tonic::transport::Uri;

use super::fault::ElectionStartError;
use super::options::EtcdOptions;
use super::secrets::EtcdSecrets;

/// The interval at which a silent connection is tried. Etcd ends connections that are tried more often than
/// every five seconds.
const TRY: Duration = Duration::from_secs(6);
/// The time that a try may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The members of etcd.
pub(super) struct Endpoints {
    all: Vec<Arc<Endpoint>>,
    current: usize,
    settings: Settings,
}

/// The settings of all connections, but for their secrets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// The time that a connection, or a call, may take.
    pub(super) patience: Duration,
}

/// A connection to a member, which is made at its first call.
struct Link {
    options: ConnectOptions,
    client: OnceCell<Client>,
}

/// A member of etcd.
pub(super) struct Endpoint {
    number: usize,
    url: String,
    /// The connection in use: another may take its place.
    link: Mutex<Arc<Link>>,
    /// The cluster that has answered there last; 0 before the first answer.
    cluster: AtomicU64,
}

// === impl Endpoints ===

impl Endpoints {
    pub(super) fn new(options: EtcdOptions, call_timeout: Duration) -> Result<Endpoints, ElectionStartError> {
        if options.endpoints.is_empty() {
            return Err(ElectionStartError::NoEndpoint);
        }
        let settings = Settings { patience: call_timeout };
        let connect = settings.options(&options.secrets);
        let mut all = Vec::with_capacity(options.endpoints.len());
        for (number, url) in options.endpoints.into_iter().enumerate() {
            check(&url, options.secrets.tls.is_some())?;
            let link = Mutex::new(Link::new(connect.clone()));
            all.push(Arc::new(Endpoint { number, url, link, cluster: AtomicU64::new(0) }));
        }
        Ok(Endpoints { all, current: 0, settings })
    }

    /// All of them.
    pub(super) fn all(&self) -> &[Arc<Endpoint>] {
        &self.all
    }

    pub(super) fn settings(&self) -> Settings {
        self.settings
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

// === impl Settings ===

impl Settings {
    /// The options of a connection with these secrets.
    pub(super) fn options(self, secrets: &EtcdSecrets) -> ConnectOptions {
        // No timeout on the connection as a whole: it would cut watches too.
        let mut connect = ConnectOptions::new()
            .with_keep_alive(TRY, PATIENCE)
            // Etcd takes it amiss where nothing is under way.
            .with_keep_alive_while_idle(false)
            .with_connect_timeout(self.patience)
            .with_require_leader(true);
        if let Some((name, password)) = &secrets.user {
            connect = connect.with_user(name, password).with_auto_token_refresh(true);
        }
        if let Some(tls) = &secrets.tls {
            connect = connect.with_tls(tls.options());
        }
        connect
    }
}

// === impl Link ===

impl Link {
    fn new(options: ConnectOptions) -> Arc<Link> {
        Arc::new(Link { options, client: OnceCell::new() })
    }

    /// The connection to `url`. Where there is a password this asks for a token.
    async fn client(&self, url: &str) -> Result<Client, etcd_client::Error> {
        let connect = || Client::connect([url], Some(self.options.clone()));
        self.client.get_or_try_init(connect).await.cloned()
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

    /// The connection, made at the first call.
    pub(super) async fn client(&self) -> Result<Client, etcd_client::Error> {
        let link = Arc::clone(&self.link());
        link.client(&self.url).await
    }

    /// Calls go over another connection with these options from here on, if `key` can be read over it within `patience`.
    pub(super) async fn renew(
        &self,
        options: ConnectOptions,
        key: &str,
        patience: Duration,
    ) -> Result<(), String> {
        let link = Link::new(options);
        let read = async { link.client(&self.url).await?.get(key, None).await };
        match tokio::time::timeout(patience, read).await {
            Ok(Ok(_)) => {
                *self.link() = link;
                Ok(())
            }
            Ok(Err(error)) => Err(format!("{}: {error}", self.url)),
            Err(_) => Err(format!("{}: no answer in {patience:?}", self.url)),
        }
    }

    fn link(&self) -> MutexGuard<'_, Arc<Link>> {
        // Nothing that is done with it can fail half way.
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_refused_at_the_start() {
        let start = |endpoints: &[&str]| {
            let options = EtcdOptions::new(endpoints.iter().copied());
            Endpoints::new(options, Duration::from_secs(1)).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(start(&[]), "no etcd endpoint is given, at least one is wanted");
        for bad in ["::", "http://a", "a:1", "ftp://a:1"] {
            let told = format!("etcd endpoint {bad:?} is not like http://host:port or https://host:port");
            assert_eq!(start(&["http://a:1", bad]), told);
        }
        assert_eq!(
            start(&["https://a:1"]),
            "etcd endpoint \"https://a:1\" is https, and there is no certificate of an authority to know it by"
        );
    }
}
