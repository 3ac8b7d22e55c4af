//! The options of a task that asks etcd: where that is, and how to speak to it.

use super::secrets::{EtcdSecrets, SecretSource};

/// Where etcd is, and how to speak to it.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Members, as `http://host:port` or `https://host:port`; at least one. Each call goes to one of them, and to the next
    /// after a failure.
    pub endpoints: Vec<String>,
    /// The secrets at first: the caller, and the authorities that are believed.
    pub secrets: EtcdSecrets,
    /// Where these are read again while the task stands; absent: they stay as they are.
    pub source: Option<SecretSource>,
}

// === impl EtcdOptions ===

impl EtcdOptions {
    /// Members without certificates and passwords.
    #[must_use]
    pub fn new(endpoints: impl IntoIterator<Item = impl Into<String>>) -> EtcdOptions {
        let endpoints = endpoints.into_iter().map(Into::into).collect();
        EtcdOptions { endpoints, secrets: EtcdSecrets::default(), source: None }
    }
}
