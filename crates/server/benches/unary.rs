//! Unary `GetCapacity` calls a second, against a bare tonic echo of the same messages in the same run: both over
//! loopback, in one process with the load generator, by turns, with the same transport settings; once without TLS, and once
//! both behind it.
//!
//! `cargo bench -p lessor-server --bench unary`; `-- tls 1000` measures one of the pairs.

mod echo;
#[allow(dead_code, reason = "the decision bench uses the rest")]
mod population;

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::{Amount, Epoch, wire};
use lessor_server::node::NodeConfig;
use lessor_server::shell::{Server, ServerOptions, TlsOptions};
use rcgen::CertifiedKey;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::NoServerSessionStorage;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use population::repository;

const CONNECTIONS: usize = 4;
/// Calls under way on each connection.
const DEPTH: usize = 16;
/// Short, and many by turns, so that what else the machine does falls on both alike.
const TURN: Duration = Duration::from_millis(400);
const TURNS: usize = 25;
const CLIENTS: [usize; 4] = [10, 1_000, 10_000, 100_000];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    Plain,
    Tls,
}

/// A certificate that is believed, in files and as text.
struct Pki {
    folder: TempDir,
    certificate: String,
    config: Arc<ServerConfig>,
}

// === impl Transport ===

impl Transport {
    fn name(self) -> &'static str {
        match self {
            Transport::Plain => "plain",
            Transport::Tls => "tls",
        }
    }
}

// === impl Pki ===

impl Pki {
    fn new() -> Pki {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let CertifiedKey { cert, signing_key } = made;
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("certificate.pem"), cert.pem()).expect("a file");
        fs::write(folder.path().join("key.pem"), signing_key.serialize_pem()).expect("a file");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key");
        // The settings of the server.
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has ciphers for both versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key that can sign");
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Pki { folder, certificate: cert.pem(), config: Arc::new(config) }
    }
}

#[tokio::main]
async fn main() {
    let wanted: Vec<String> = env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let is_wanted = |what: &str, is_one: fn(&str) -> bool| {
        let mut of_kind = wanted.iter().filter(|wanted| is_one(wanted)).peekable();
        of_kind.peek().is_none() || of_kind.any(|wanted| wanted == what)
    };
    let pki = Pki::new();
    println!(
        "{:>6} {:>8} {:>12} {:>12} {:>7} (quartiles)",
        "", "clients", "echo calls/s", "calls/s", "ratio"
    );
    for transport in [Transport::Plain, Transport::Tls] {
        for clients in CLIENTS {
            let is_number = |wanted: &str| wanted.parse::<usize>().is_ok();
            if is_wanted(transport.name(), |wanted| wanted.parse::<usize>().is_err())
                && is_wanted(&clients.to_string(), is_number)
            {
                compare(transport, &pki, clients).await;
            }
        }
    }
}

/// Measures the server beside the echo, both with so many clients.
async fn compare(transport: Transport, pki: &Pki, clients: usize) {
    let echo = echo(transport, pki).await;
    let server = server(transport, pki).await;
    let echo = Load::new(transport, pki, echo, clients).await;
    let ours = Load::new(transport, pki, server.address(), clients).await;
    // Everybody has a lease, and connections are warm.
    ours.every_client_once().await;
    echo.run().await;
    let mut ratios = Vec::new();
    let mut sums = (0.0, 0.0);
    for _ in 0..TURNS {
        let (peer, own) = (echo.run().await, ours.run().await);
        ratios.push(own / peer);
        sums = (sums.0 + peer, sums.1 + own);
    }
    ratios.sort_by(f64::total_cmp);
    let (low, middle, high) = (ratios[TURNS / 4], ratios[TURNS / 2], ratios[TURNS * 3 / 4]);
    let (peer, own) = (sums.0 / TURNS as f64, sums.1 / TURNS as f64);
    let name = transport.name();
    println!("{name:>6} {clients:>8} {peer:>12.0} {own:>12.0} {middle:>7.3} ({low:.3} to {high:.3})");
    server.drain().await;
}

async fn echo(transport: Transport, pki: &Pki) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    if transport == Transport::Plain {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(echo::service().serve_with_incoming(incoming));
        return address;
    }
    let acceptor = TlsAcceptor::from(Arc::clone(&pki.config));
    let (sender, incoming) = mpsc::channel(CONNECTIONS);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            stream.set_nodelay(true).expect("a socket");
            if sender.send(acceptor.accept(stream).await).await.is_err() {
                return;
            }
        }
    });
    tokio::spawn(echo::service().serve_with_incoming(ReceiverStream::new(incoming)));
    address
}

async fn server(transport: Transport, pki: &Pki) -> Server {
    let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    if transport == Transport::Tls {
        let file = |name| pki.folder.path().join(name);
        options.tls = Some(TlsOptions::new(file("certificate.pem"), file("key.pem")));
    }
    let capacity = Amount::from_units(1_000_000);
    Server::start(options, NodeConfig::new("root", Epoch(1)), repository(capacity)).await.expect("a port")
}

/// A load generator with its own connections.
struct Load {
    channels: Vec<Channel>,
    clients: Arc<Vec<wire::GetCapacityRequest>>,
}

impl Load {
    async fn new(transport: Transport, pki: &Pki, server: SocketAddr, clients: usize) -> Load {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let scheme = if transport == Transport::Tls { "https" } else { "http" };
            let endpoint = Channel::from_shared(format!("{scheme}://{server}")).expect("an address");
            let mut endpoint = endpoint.tcp_nodelay(true);
            if transport == Transport::Tls {
                let certificate = Certificate::from_pem(&pki.certificate);
                let tls = ClientTlsConfig::new().ca_certificate(certificate).domain_name("localhost");
                endpoint = endpoint.tls_config(tls).expect("a certificate");
            }
            channels.push(endpoint.connect().await.expect("it listens"));
        }
        Load { channels, clients: Arc::new((0..clients).map(request).collect()) }
    }

    async fn every_client_once(&self) {
        let mut client = CapacityClient::new(self.channels[0].clone());
        for request in self.clients.iter() {
            client.get_capacity(request.clone()).await.expect("it answers");
        }
    }

    /// Calls a second over one turn.
    async fn run(&self) -> f64 {
        let calls = Arc::new(AtomicU64::new(0));
        let start = clock::now();
        let mut tasks = Vec::new();
        for place in 0..CONNECTIONS * DEPTH {
            let mut client = CapacityClient::new(self.channels[place % CONNECTIONS].clone());
            let (clients, calls) = (Arc::clone(&self.clients), Arc::clone(&calls));
            tasks.push(tokio::spawn(async move {
                // Every task walks all clients from its own beginning, in steps that reach all of them.
                let mut which = place * 7_919;
                while clock::now().since(start) < TURN {
                    which = (which + 6_700_417) % clients.len();
                    client.get_capacity(clients[which].clone()).await.expect("it answers");
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            }));
        }
        for task in tasks {
            task.await.expect("no task panics");
        }
        calls.load(Ordering::Relaxed) as f64 / clock::now().since(start).as_secs_f64()
    }
}

fn request(number: usize) -> wire::GetCapacityRequest {
    population::ask(number, 10.0 + (number % 17) as f64).to_wire()
}
