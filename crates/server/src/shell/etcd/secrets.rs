//! Secrets towards etcd: who calls, and who is believed.

use std::fmt;
use std::sync::Arc;

use super::tls::EtcdTls;

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

    pub(super) async fn read(&self) -> Result<EtcdSecrets, String> {
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
