//! An admin port whose program around it fails.
#![cfg(all(feature = "shell", unix))]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Epoch;
use lessor_server::node::NodeConfig;
use lessor_server::repository::Repository;
use lessor_server::shell::{AdminAddress, AdminOptions, Levers, ReadFile, Server, ServerOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any machine should take.
const AGES: Duration = Duration::from_secs(30);

/// Levers that break.
#[derive(Debug)]
struct Brittle;

impl Levers for Brittle {
    fn reload(&self) -> Pin<Box<dyn Future<Output = Vec<ReadFile>> + Send + '_>> {
        Box::pin(async { panic!("it breaks") })
    }

    fn log_filter(&self) -> String {
        "info".to_owned()
    }

    fn set_log_filter(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn an_act_that_breaks_has_an_outcome_and_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.log");
    let any = ([127, 0, 0, 1], 0).into();
    let admin = AdminOptions {
        address: AdminAddress::Tcp(any),
        is_wanted: true,
        audit_log: Some(file.clone()),
        levers: Arc::new(Brittle),
    };
    let options = ServerOptions { admin: Some(admin), ..ServerOptions::new(any) };
    let config = NodeConfig::new("root", Epoch(1));
    let server = Server::start(options, config, Repository::default()).await.unwrap();
    let Some(AdminAddress::Tcp(address)) = server.admin_address() else { panic!("it is at an address") };
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "POST /admin/reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let body = "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::time::timeout(AGES, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    let lines = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| (line["call"].as_u64(), line["outcome"].as_str(), &line["act"])).collect();
    let act = "reload".into();
    assert_eq!(told, [(Some(1), Some("begun"), &act), (Some(1), Some("failed"), &act)]);
    assert_eq!(lines[1]["status"], 500);
    assert!(server.drain().await);
}
