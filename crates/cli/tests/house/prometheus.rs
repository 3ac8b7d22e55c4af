//! A Prometheus on loopback, with the rules of the repository, which ends with the test.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpStream;

use super::etcd::is_there;
use super::{page, repository_file};

/// A Prometheus that runs.
pub(crate) struct Prometheus {
    directory: TempDir,
    address: SocketAddr,
    child: Child,
}

/// The number of attempts to start it, and that of checks whether it serves.
const STARTS: usize = 3;
const LOOKS: usize = 300;

/// The alerts of the repository.
pub(crate) const RULES: &str = "deploy/prometheus/lessor.rules.yaml";

// === impl Prometheus ===

impl Prometheus {
    /// One that scrapes `targets` and looks at the rules once a second; nothing, and it is said, if none is installed.
    ///
    /// # Panics
    /// When there must be one, and there is none, or it does not start.
    pub(crate) async fn started(targets: &[SocketAddr]) -> Option<Prometheus> {
        if !is_there("prometheus", "--version", "prometheus") {
            return None;
        }
        for _ in 0..STARTS {
            if let Some(prometheus) = Prometheus::start(targets).await {
                return Some(prometheus);
            }
        }
        panic!("prometheus does not start");
    }

    async fn start(targets: &[SocketAddr]) -> Option<Prometheus> {
        let directory = tempfile::tempdir().unwrap();
        let rules = repository_file(RULES).canonicalize().unwrap();
        let targets: Vec<String> = targets.iter().map(ToString::to_string).collect();
        let config = serde_json::json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [rules],
            "scrape_configs": [{"job_name": "lessor", "static_configs": [{"targets": targets}]}],
        });
        // JSON is YAML.
        let path = directory.path().join("prometheus.yaml");
        std::fs::write(&path, config.to_string()).unwrap();
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!("--storage.tsdb.path={}", directory.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .args(["--log.level=error"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let mut prometheus = Prometheus { directory, address, child: child.unwrap() };
        let mut timer = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..LOOKS {
            timer.tick().await;
            // Somebody may have taken the port.
            if prometheus.child.try_wait().unwrap().is_some() {
                return None;
            }
            if TcpStream::connect(address).await.is_ok() && page::get(address, "/-/ready").await.code == 200 {
                return Some(prometheus);
            }
        }
        None
    }

    /// The series that an expression has.
    ///
    /// # Panics
    /// When it is no expression.
    pub(crate) async fn query(&self, expression: &str) -> Vec<Value> {
        let page = page::get(self.address, &format!("/api/v1/query?query={}", escaped(expression))).await;
        assert_eq!(page.code, 200, "{expression}: {}", page.body);
        let mut answer: Value = serde_json::from_str(&page.body).unwrap();
        match answer["data"]["result"].take() {
            Value::Array(series) => series,
            other => panic!("{expression}: {other}"),
        }
    }

    /// The alerts that are pending or firing: the name, the state and the labels of each.
    pub(crate) async fn alerts(&self) -> Vec<Value> {
        let page = page::get(self.address, "/api/v1/alerts").await.json();
        page["data"]["alerts"].as_array().unwrap().clone()
    }

    /// The rules that are looked at, each with how that went.
    pub(crate) async fn rules(&self) -> Vec<Value> {
        let page = page::get(self.address, "/api/v1/rules").await.json();
        let groups = page["data"]["groups"].as_array().unwrap();
        groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // One that has ended by itself need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// `text` as a part of a query.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
