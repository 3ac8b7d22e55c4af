//! A server with TLS in this process, its files, and what the tests have in common.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lessor_client::{Client, ConnectError, Rate, Rung, Tls};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::metrics::Metrics;
use lessor_server::shell::{Server, ServerOptions, TlsClients, TlsOptions};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::pki::{Authority, Issued};

/// Longer than anything should take on any machine.
const AGES: Duration = Duration::from_secs(60);

/// The files of a server.
pub(crate) struct Files {
    folder: TempDir,
}

/// A server of a hundred units of everything.
pub(crate) struct House {
    pub(crate) server: Server,
    pub(crate) files: Files,
}

// === impl Files ===

impl Files {
    /// The files of a server that shows `own`, and believes clients of `clients`, which has revoked nothing.
    pub(crate) fn new(own: &Issued, clients: &Authority) -> Files {
        let files = Files { folder: tempfile::tempdir().unwrap() };
        files.put("cert.pem", &own.certificate);
        files.put("key.pem", &own.key);
        files.put("ca.pem", &clients.pem);
        files.put("crl.pem", &clients.revoked(&[]));
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a file in place of another, in one step.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let aside = self.path(&format!("{name}.aside"));
        fs::write(&aside, text).unwrap();
        fs::rename(aside, self.path(name)).unwrap();
    }

    /// The options that name all of them.
    pub(crate) fn options(&self) -> TlsOptions {
        let clients =
            TlsClients { ca: self.path("ca.pem"), revoked: Some(self.path("crl.pem")), required: true };
        TlsOptions { clients: Some(clients), ..TlsOptions::new(self.path("cert.pem"), self.path("key.pem")) }
    }
}

// === impl House ===

impl House {
    /// A server that shows `own` and believes clients of `clients`.
    pub(crate) async fn open(own: &Issued, clients: &Authority) -> House {
        House::open_with(Files::new(own, clients), |_| ()).await
    }

    pub(crate) async fn open_with(files: Files, set: impl FnOnce(&mut ServerOptions)) -> House {
        let repository = Repository::new(vec![Template {
            safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
            ..Template::new(Glob::new("*").unwrap(), Amount::from_units(100))
        }]);
        let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        options.tls = Some(files.options());
        set(&mut options);
        let config = NodeConfig::new("root", Epoch(1));
        let server = Server::start(options, config, repository.unwrap()).await.unwrap();
        House { server, files }
    }

    /// The address, by the name that certificates have.
    pub(crate) fn address(&self) -> String {
        format!("https://localhost:{}", self.server.address().port())
    }

    /// The value of a line of `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = Metrics::new(self.server.driver().clone()).encode().unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        value.trim_end_matches(".0").parse().unwrap()
    }

    /// The number of handshakes that ended so.
    pub(crate) fn handshakes(&self, result: &str) -> u64 {
        self.metric(&format!("lessor_handshakes_total{{result=\"{result}\"}}"))
    }
}

/// Settings that believe servers of `authority`, and show `own`.
pub(crate) fn tls(authority: &Authority, own: &Issued) -> Tls {
    Tls::ca(authority.pem.as_str()).identity(own.certificate.as_str(), own.key.as_str())
}

pub(crate) async fn connect(address: &str, tls: Tls) -> Result<Client, String> {
    let builder = Client::builder(address).tls(tls).timeout(Duration::from_secs(10));
    soon(builder.connect()).await.map_err(|fault: ConnectError| fault.to_string())
}

/// Waits until some of a resource is leased.
pub(crate) async fn leased(resource: &mut Rate) {
    soon(async {
        while resource.lease().rung != Rung::Leased {
            resource.changed().await.unwrap();
        }
    })
    .await;
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(AGES, future).await.expect("in time")
}

/// Waits until `holds`.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let mut timer = tokio::time::interval(Duration::from_millis(5));
    let waiting = async {
        while !holds().await {
            timer.tick().await;
        }
    };
    assert!(timeout(AGES, waiting).await.is_ok(), "never: {what}");
}
