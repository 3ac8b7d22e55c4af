//! A server of Lessor with the templates of some rules, and doors with those rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lessor_client::Client;
use lessor_doors::rules::RuleBook;
use lessor_doors::rules::document::DoorsFile;
use lessor_doors::rules::ratelimit::join;
use lessor_doors::rules::templates::templates;
use lessor_doors::shell::{DoorAddress, Doors, Listening};
use lessor_envoy_proto::rate_limit_service_client::RateLimitServiceClient;
use lessor_envoy_proto::{Entry, RateLimitDescriptor, RateLimitRequest};
use lessor_proto::Epoch;
use lessor_server::node::NodeConfig;
use lessor_server::shell::source;
use lessor_server::shell::{Server, ServerOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tonic::transport::Channel;

/// A server and its doors.
pub(crate) struct House {
    pub(crate) doors: Arc<Doors>,
    pub(crate) rls: RateLimitServiceClient<Channel>,
    pub(crate) http: String,
    listening: Listening,
    client: Client,
    server: Server,
    directory: tempfile::TempDir,
}

/// Rules of the rate limit service whose answers wait for long, so that no test depends on how fast a lease comes.
pub(crate) const PATIENT: &str = "wait: 30s\nratelimit: [service.yaml]";

/// The rules of a `doors.yaml` and of files of the rate limit service.
pub(crate) fn rules(doors: &str, service: &[&str]) -> RuleBook {
    let doors = DoorsFile::parse("doors.yaml", doors).unwrap_or_else(|faults| panic!("{faults}"));
    let files: Vec<(String, String)> =
        service.iter().map(|text| ("service.yaml".to_owned(), (*text).to_owned())).collect();
    join(doors, &files).unwrap_or_else(|faults| panic!("{}", faults.join("\n")))
}

async fn start(state: &Path, templates: &str) -> Server {
    let options =
        ServerOptions { state: Some(state.to_owned()), ..ServerOptions::new(([127, 0, 0, 1], 0).into()) };
    let repository = source::parse("templates.yaml", templates).unwrap_or_else(|faults| panic!("{faults}"));
    Server::start(options, NodeConfig::new("root", Epoch(1)), repository).await.expect("a server")
}

/// A server that leases at once: it begins behind another that has left a record in which nothing is out.
pub(crate) async fn server(state: &Path, templates: &str) -> Server {
    let nothing = "resources: [{identifier_glob: none, capacity: 0, algorithm: {kind: FAIR_SHARE, lease_length: 1, \
                   refresh_interval: 1, learning_mode_duration: 0}}]";
    soon(start(state, nothing).await.drain()).await;
    start(state, templates).await
}

impl House {
    pub(crate) async fn open(book: RuleBook) -> House {
        let directory = tempfile::tempdir().expect("a directory");
        let server = server(directory.path(), &templates(&book)).await;
        let client = Client::builder(server.address().to_string()).id("doors").build().expect("a client");
        let doors = Arc::new(Doors::new(client.clone(), book));
        let mut listening = Listening::new(Arc::clone(&doors), 100);
        let anywhere: DoorAddress = "127.0.0.1:0".parse().expect("an address");
        let rls = listening.open_rls(&anywhere).await.expect("a port").to_string();
        let http = listening.open_http(&anywhere).await.expect("a port").to_string();
        let rls = connect(&rls).await;
        House { doors, rls, http, listening, client, server, directory }
    }

    /// Opens a door for HTTP at a socket of the file system.
    pub(crate) async fn open_beside(&mut self) -> PathBuf {
        let path = self.directory.path().join("http.sock");
        self.listening.open_http(&DoorAddress::Path(path.clone())).await.expect("a socket");
        path
    }

    pub(crate) async fn close(self) {
        let House { doors, rls, listening, client, server, .. } = self;
        drop((rls, doors));
        assert!(soon(listening.drain(Duration::from_secs(20))).await, "all requests were answered");
        soon(client.close()).await;
        soon(server.drain()).await;
    }
}

/// A client of the service at an address.
pub(crate) async fn connect(address: &str) -> RateLimitServiceClient<Channel> {
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
    RateLimitServiceClient::new(endpoint.connect().await.expect("a connection"))
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), future).await.expect("within a minute")
}

pub(crate) fn descriptor(entries: &[(&str, &str)]) -> RateLimitDescriptor {
    let entry = |&(key, value): &(&str, &str)| Entry { key: key.to_owned(), value: value.to_owned() };
    RateLimitDescriptor { entries: entries.iter().map(entry).collect(), ..RateLimitDescriptor::default() }
}

pub(crate) fn request(domain: &str, descriptors: &[RateLimitDescriptor]) -> RateLimitRequest {
    RateLimitRequest { domain: domain.to_owned(), descriptors: descriptors.to_vec(), hits_addend: 0 }
}

/// An answer over HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// Sends bytes as they are, and reads until the connection is closed.
pub(crate) async fn raw(address: &str, request: &[u8]) -> Answer {
    converse(TcpStream::connect(address).await.expect("a connection"), request).await
}

/// The same over a socket of the file system.
pub(crate) async fn raw_beside(path: &Path, request: &[u8]) -> Answer {
    converse(UnixStream::connect(path).await.expect("a connection"), request).await
}

async fn converse(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Answer {
    stream.write_all(request).await.expect("it takes them");
    let mut text = Vec::new();
    soon(stream.read_to_end(&mut text)).await.expect("an answer");
    let text = String::from_utf8(text).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a header");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answer { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// A request of HTTP/1.1 with these fields, each with its line's end.
pub(crate) async fn http(address: &str, line: &str, fields: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: doors\r\nconnection: close\r\ncontent-length: {length}\r\n{fields}\r\n{body}"
    );
    raw(address, request.as_bytes()).await
}
