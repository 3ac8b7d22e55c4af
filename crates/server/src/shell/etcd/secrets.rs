//! Secrets towards etcd: who calls, and who is believed. Files that hold them are read again while the task stands.
//!
//! A lease of etcd belongs to no connection, nor to who has made it: a leader goes on over another one as the same. So a
//! connection is made anew with what has changed, tried, and only then put in the place of the one before, which may still be
//! good where the other end has not changed yet. Calls under way and a watch end where they began.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use tracing::{debug, info, warn};

use super::EtcdTls;
use super::endpoints::{Endpoint, Endpoints, Settings};

/// The secrets of a task: the caller that it is, and the authorities that it believes.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct EtcdSecrets {
    /// The user who calls, and the password, where etcd asks for it.
    pub user: Option<(String, String)>,
    /// Certificates, where members are at `https://`.
    pub tls: Option<EtcdTls>,
}

/// A way to read them again: the secrets as they are, or why they cannot be used.
#[derive(Clone)]
pub struct SecretSource(Arc<dyn Fn() -> Result<EtcdSecrets, String> + Send + Sync>);

/// The interval at which they are read again, and at which those that did not work are tried again.
const LOOK: Duration = Duration::from_secs(1);

/// The follower of a source.
pub(super) struct SecretFollower {
    source: SecretSource,
    settings: Settings,
    all: Vec<Arc<Endpoint>>,
    /// A key that this task may read.
    key: String,
    /// Those that were read last, and can be used as far as is known.
    latest: EtcdSecrets,
    /// By endpoint, those in force.
    in_force: Vec<EtcdSecrets>,
    /// The fault that was said last.
    said: Option<String>,
}

// === impl EtcdSecrets ===

/// Without the password.
impl fmt::Debug for EtcdSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("EtcdSecrets").field("user", &user).field("tls", &self.tls).finish()
    }
}

// === impl SecretSource ===

impl SecretSource {
    /// A source that is asked by `read`, which may wait for files.
    #[must_use]
    pub fn new(read: impl Fn() -> Result<EtcdSecrets, String> + Send + Sync + 'static) -> SecretSource {
        SecretSource(Arc::new(read))
    }

    async fn read(&self) -> Result<EtcdSecrets, String> {
        let source = Arc::clone(&self.0);
        let read = tokio::task::spawn_blocking(move || source()).await;
        read.unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl fmt::Debug for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretSource(…)")
    }
}

// === impl SecretFollower ===

impl SecretFollower {
    /// Follows `source` from `secrets` on, which all endpoints have in force.
    pub(super) fn new(
        source: SecretSource,
        secrets: &EtcdSecrets,
        endpoints: &Endpoints,
        key: String,
    ) -> SecretFollower {
        let all = endpoints.all().to_vec();
        let in_force = vec![secrets.clone(); all.len()];
        SecretFollower {
            source,
            settings: endpoints.settings(),
            all,
            key,
            latest: secrets.clone(),
            in_force,
            said: None,
        }
    }

    /// Until it is aborted.
    pub(super) async fn run(mut self) {
        loop {
            clock::sleep_until(clock::now() + LOOK).await;
            match self.source.read().await {
                Ok(secrets) => {
                    if secrets == self.latest && self.in_force.iter().all(|in_force| *in_force == secrets) {
                        self.said = None;
                        continue;
                    }
                    self.latest = secrets;
                    self.put_in_force().await;
                }
                // They may be being replaced.
                Err(fault) => self.say(format!("cannot be used: {fault}")),
            }
        }
    }

    /// Tries what was read last where it is not in force.
    async fn put_in_force(&mut self) {
        let mut faults = Vec::new();
        for (endpoint, in_force) in self.all.iter().zip(&mut self.in_force) {
            if *in_force == self.latest {
                continue;
            }
            match endpoint.renew(self.settings.options(&self.latest), &self.key, self.settings.patience).await
            {
                Ok(()) => {
                    info!(endpoint = endpoint.url(), "etcd is called with the secrets that have changed");
                    *in_force = self.latest.clone();
                }
                Err(fault) => faults.push(fault),
            }
        }
        match faults.is_empty() {
            true => self.said = None,
            false => self.say(format!("do not work yet: {}", faults.join("; "))),
        }
    }

    /// Says a fault aloud when it is another than the last.
    fn say(&mut self, fault: String) {
        match self.said.as_ref() == Some(&fault) {
            true => debug!(%fault, "secrets for etcd, again"),
            false => warn!(%fault, "the secrets for etcd have changed, and those before stay in force"),
        }
        self.said = Some(fault);
    }
}
