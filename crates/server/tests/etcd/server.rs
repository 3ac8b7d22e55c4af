//! An etcd of one member in a directory of its own, which ends with the test.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use tempfile::TempDir;

/// An etcd that runs, or could.
pub(super) struct Etcd {
    directory: TempDir,
    ports: [u16; 2],
    child: Option<Child>,
}

/// The number of times that a start is tried, and that it is asked whether it serves.
const STARTS: usize = 3;
const LOOKS: usize = 150;

// === impl Etcd ===

impl Etcd {
    /// Where one could run; nothing, and it is said, if none is installed.
    ///
    /// # Panics
    /// When there must be one, and there is none.
    pub(super) fn new() -> Option<Etcd> {
        let found =
            Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        if found.is_ok_and(|status| status.success()) {
            let directory = tempfile::tempdir().unwrap();
            return Some(Etcd { directory, ports: free_ports(), child: None });
        }
        let must = std::env::var_os("LESSOR_REQUIRE_ETCD").is_some_and(|value| value == "1");
        assert!(!must, "LESSOR_REQUIRE_ETCD=1, and etcd is not installed");
        // Past the harness, which would show it only if the test failed.
        let _ = writeln!(std::io::stderr(), "SKIPPED: etcd is not installed (Debian: etcd-server)");
        None
    }

    /// One that serves.
    pub(super) async fn started() -> Option<Etcd> {
        let mut etcd = Etcd::new()?;
        for _ in 0..STARTS {
            if etcd.start().await {
                return Some(etcd);
            }
            // Somebody may have taken a port.
            etcd.ports = free_ports();
        }
        panic!("etcd does not start: {}", etcd.log());
    }

    /// Starts it, with what it had when it was killed, and says whether it serves.
    pub(super) async fn start(&mut self) -> bool {
        let [client, peer] = self.ports.map(|port| format!("http://127.0.0.1:{port}"));
        let path = self.directory.path();
        let log = std::fs::File::options().create(true).append(true).open(path.join("log")).unwrap();
        let mut etcd = Command::new("etcd");
        etcd.args(["--name", "one", "--logger", "zap"]).arg("--data-dir").arg(path.join("data"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("one={peer}")]);
        etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(etcd.spawn().unwrap());
        for _ in 0..LOOKS {
            if self.child.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some()) {
                return false;
            }
            if let Some(mut client) = self.client().await
                && client.get("any", None).await.is_ok()
            {
                return true;
            }
            super::task::pass(Duration::from_millis(100)).await;
        }
        false
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports[0])
    }

    pub(super) async fn client(&self) -> Option<Client> {
        let options = ConnectOptions::new().with_timeout(Duration::from_secs(2));
        Client::connect([self.url()], Some(options)).await.ok()
    }

    /// Ends it as a crash does.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Freezes it.
    pub(super) fn stop(&self) {
        self.signal("-STOP");
    }

    pub(super) fn go_on(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("it runs");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(sent.success());
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

fn free_ports() -> [u16; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// A port at which nobody listens.
pub(super) fn dead_url() -> String {
    format!("http://127.0.0.1:{}", free_ports()[0])
}
