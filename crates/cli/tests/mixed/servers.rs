//! Servers of either version.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::CAPACITY;
use crate::house::{House, binary, eventually, template};

/// Seconds that a lease lasts, for the shortest `--ttl` in the tests to be well within it.
pub(crate) const LEASE: u32 = 20;

/// A version of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Version {
    /// The one that is tested.
    This,
    /// The one beside it.
    Other,
}

/// The binaries of both.
#[derive(Clone, Debug)]
pub(crate) struct Versions {
    other: PathBuf,
}

/// A server of one of them.
pub(crate) struct Server {
    house: House,
    version: Version,
    address: SocketAddr,
    node: &'static str,
    flags: Vec<String>,
    _directory: TempDir,
}

// === impl Version ===

impl Version {
    pub(crate) const BOTH: [Version; 2] = [Version::This, Version::Other];

    pub(crate) fn other(self) -> Version {
        if self == Version::This { Version::Other } else { Version::This }
    }
}

// === impl Versions ===

impl Versions {
    pub(crate) fn new(other: PathBuf) -> Versions {
        assert!(other.is_file(), "LESSOR_OTHER={} is no file", other.display());
        Versions { other }
    }

    pub(crate) fn program(&self, version: Version) -> &Path {
        match version {
            Version::This => Path::new(env!("CARGO_BIN_EXE_lessor")),
            Version::Other => &self.other,
        }
    }
}

/// Starts a server of that version, at a port that is free.
pub(crate) async fn serve(
    versions: &Versions,
    version: Version,
    node: &'static str,
    flags: &[&str],
) -> Server {
    let flags = flags.iter().map(ToString::to_string).collect();
    start(versions, version, node, flags, "127.0.0.1:0").await
}

async fn start(
    versions: &Versions,
    version: Version,
    node: &'static str,
    flags: Vec<String>,
    listen: &str,
) -> Server {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("lessor.yaml");
    let algorithm = format!(
        "{{kind: FAIR_SHARE, lease_length: {LEASE}, refresh_interval: 2, learning_mode_duration: 0}}"
    );
    std::fs::write(&config, template("*", CAPACITY, &algorithm)).unwrap();
    let mut command = binary(versions.program(version), &["serve", "--node", node, "--listen", listen]);
    command.args(["--http", "127.0.0.1:0", "--log-format", "json", "--config"]).arg(&config).args(&flags);
    let house = House::run(command).await;
    let address = house.address();
    Server { house, version, address, node, flags, _directory: directory }
}

// === impl Server ===

impl Server {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) async fn metric(&self, name: &str) -> f64 {
        self.house.metric(name).await
    }

    /// Once it leads and may act.
    pub(crate) async fn leads(&self) {
        let what = format!("{:?} leads", self.version);
        eventually(&what, async || self.house.page("/status").await.json()["leads"] == true).await;
    }

    /// Nothing is handed out twice, nobody was cut off, and nothing came that it did not know.
    pub(crate) async fn is_in_order(&self, when: &str) {
        let page = self.house.page("/metrics").await.body;
        let value = |name: &str| {
            let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.map(|value| value.parse::<f64>().unwrap())
        };
        let who = format!("{:?} as {}, {when}", self.version, self.node);
        assert_eq!(value("lessor_overcommitment{resource=\"db\"}"), Some(0.0), "{who}");
        let outstanding = value("lessor_outstanding{resource=\"db\"}").unwrap();
        assert!(outstanding <= CAPACITY, "{who}: {outstanding} is out");
        assert_eq!(value("lessor_streams_ended_total{why=\"fault\"}"), Some(0.0), "{who}");
        for from in ["below", "above"] {
            let unknown = value(&format!("lessor_unknown_messages_total{{from=\"{from}\"}}"));
            // Versions before this figure end the stream instead, which is looked at above.
            assert!(unknown.is_none_or(|count| count == 0.0), "{who}: {unknown:?} from {from}");
        }
    }

    /// Ends it in order, or as a crash does.
    pub(crate) async fn end(&mut self, is_crash: bool) {
        if is_crash {
            return self.house.crash().await;
        }
        self.house.signal(rustix::process::Signal::TERM);
        let status = self.house.ended().await;
        assert!(status.success(), "{:?}: {status}", self.version);
    }

    /// Another process in its place, once it has ended.
    pub(crate) async fn start_again(self, versions: &Versions) -> Server {
        let Server { version, address, node, flags, .. } = self;
        start(versions, version, node, flags, &address.to_string()).await
    }

    pub(crate) async fn stop(self) {
        self.house.stop().await;
    }
}
