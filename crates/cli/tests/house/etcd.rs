//! An etcd of one member in a directory of its own, which ends with the test.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions, GetOptions};
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::{AGES, page};

/// An etcd that runs, or could.
pub(crate) struct Etcd {
    directory: TempDir,
    /// For clients, for other members, and for who asks how it is.
    ports: [u16; 3],
    /// The flags that it is given besides.
    flags: Vec<String>,
    scheme: &'static str,
    child: Option<Child>,
}

/// The number of attempts to start it, and that of checks whether it serves.
const STARTS: usize = 3;
const LOOKS: usize = 300;

// === impl Etcd ===

impl Etcd {
    /// One that serves; nothing, and it is said, if none is installed.
    ///
    /// # Panics
    /// When there must be one, and there is none, or it does not start.
    pub(crate) async fn started() -> Option<Etcd> {
        Etcd::started_with("http", Vec::new()).await
    }

    /// The same of one that is told more, as how it proves who it is at `https`.
    pub(crate) async fn started_with(scheme: &'static str, flags: Vec<String>) -> Option<Etcd> {
        if !is_there("etcd", "--version", "etcd-server") {
            return None;
        }
        let mut etcd = Etcd { directory: directory(), ports: free_ports(), flags, scheme, child: None };
        for _ in 0..STARTS {
            if etcd.start().await {
                return Some(etcd);
            }
            // Somebody may have taken a port.
            etcd.kill();
            etcd.ports = free_ports();
        }
        panic!("etcd does not start: {}", etcd.log());
    }

    /// Starts it, with what it had when it was killed, and says whether it serves.
    pub(crate) async fn start(&mut self) -> bool {
        let [client, peer, health] = self.ports;
        let (client, peer) =
            (format!("{}://127.0.0.1:{client}", self.scheme), format!("http://127.0.0.1:{peer}"));
        let health = SocketAddr::from(([127, 0, 0, 1], health));
        let path = self.directory.path();
        let log = std::fs::File::options().create(true).append(true).open(path.join("log")).unwrap();
        let mut etcd = Command::new("etcd");
        etcd.args(["--name", "one", "--logger", "zap"]).arg("--data-dir").arg(path.join("data"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("one={peer}")]);
        etcd.args(["--listen-metrics-urls", &format!("http://{health}")]).args(&self.flags);
        etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(etcd.spawn().unwrap());
        let mut timer = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..LOOKS {
            timer.tick().await;
            if self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                return false;
            }
            // It listens before it serves, and says so on that page.
            if TcpStream::connect(health).await.is_ok() && page::get(health, "/health").await.code == 200 {
                return true;
            }
        }
        false
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.ports[0]))
    }

    /// The same as tasks are told.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address())
    }

    /// Ends it as a crash does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Keeps a copy of all that it has, as of a machine that was stopped. Call it when it was killed.
    pub(crate) fn keep_copy(&self) {
        copy(&self.directory.path().join("data"), &self.directory.path().join("copy"));
    }

    /// Has what it had when the copy was made, and nothing else. Call it when it was killed.
    pub(crate) fn put_copy_back(&self) {
        let data = self.directory.path().join("data");
        std::fs::remove_dir_all(&data).unwrap();
        copy(&self.directory.path().join("copy"), &data);
    }

    /// Returns all keys and values but those that end with a lease.
    pub(crate) async fn backup(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let got = self.client().await.get("", Some(GetOptions::new().with_all_keys())).await.unwrap();
        let lasting = got.kvs().iter().filter(|stored| stored.lease() == 0);
        lasting.map(|stored| (stored.key().to_vec(), stored.value().to_vec())).collect()
    }

    /// Ends it, and starts one in its place that has nothing but this, in a cluster that is set up with that token: what
    /// `etcdctl snapshot restore` makes, but for the revisions. Returns whether it has the id of the one before.
    pub(crate) async fn restore(&mut self, backup: Vec<(Vec<u8>, Vec<u8>)>, token: &str) -> bool {
        let before = self.cluster_id().await;
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("data")).unwrap();
        self.flags.extend(["--initial-cluster-token".to_owned(), token.to_owned()]);
        assert!(self.start().await, "etcd does not start: {}", self.log());
        let mut client = self.client().await;
        for (key, value) in backup {
            client.put(key, value, None).await.unwrap();
        }
        self.cluster_id().await == before
    }

    /// Writes a key by hand.
    pub(crate) async fn put(&self, key: &str, value: &str) {
        self.client().await.put(key, value, None).await.unwrap();
    }

    async fn cluster_id(&self) -> u64 {
        self.client().await.get("any", None).await.unwrap().header().unwrap().cluster_id()
    }

    async fn client(&self) -> Client {
        let options = ConnectOptions::new().with_timeout(AGES);
        Client::connect([self.url()], Some(options)).await.unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// In memory where that can be had: how slow a disk is is not looked at here, and etcd waits for it with every write.
fn directory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Copies a directory with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => _ = std::fs::copy(entry.path(), to).unwrap(),
        }
    }
}

fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Whether a program is installed, which Debian has in `package`. That it is not is said.
///
/// # Panics
/// When it is not, and must be.
pub(crate) fn is_there(program: &str, argument: &str, package: &str) -> bool {
    let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    said(found.is_ok_and(|status| status.success()), program, package)
}

/// Says that a program is not installed, where it is not, and returns whether it is.
///
/// # Panics
/// When it is not, and must be.
pub(crate) fn said(is_there: bool, program: &str, package: &str) -> bool {
    if !is_there {
        let must = std::env::var_os("LESSOR_REQUIRE_ETCD").is_some_and(|value| value == "1");
        assert!(!must, "LESSOR_REQUIRE_ETCD=1, and {program} is not installed");
        // Past the harness, which would show it only if the test failed.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {program} is not installed (Debian: {package})");
    }
    is_there
}
