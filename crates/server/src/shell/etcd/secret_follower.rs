//! The follower of secrets towards etcd: files that hold them are read again while the task stands.
//!
//! A lease of etcd belongs to no connection, nor to who has made it: a leader goes on over another one as the same. So a
//! connection is made anew with what has changed, tried, and only then put in the place of the one before, which may still be
//! good where the other end has not changed yet. Calls under way and a watch end where they began.

use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::clock;
use tracing::{debug, info, warn};

use super::endpoints::{Endpoint, Endpoints, Settings};
use super::secrets::{EtcdSecrets, SecretSource};

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
