//! The options of a server: where it serves, whom it believes, how it finds who leads.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use lessor_client::{BearerToken, Tls};

use super::address_budget::AddressLimits;
use super::admin::AdminOptions;
use super::build::Build;
use super::driver;
use super::etcd::{self, Election, EtcdOptions, TemplateWatch};
use super::more_pages::MorePages;
use super::random;
use super::tls::TlsOptions;
use crate::access::Access;
use crate::election::ElectionConfig;
use crate::node::NodeConfig;
use crate::token::TokenKeys;

/// The options that a server is told at its start, besides those of its node.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to serve gRPC and HTTP; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to serve HTTP besides.
    pub http: Option<SocketAddr>,
    /// The TLS of both; absent: both are plain.
    pub tls: Option<TlsOptions>,
    /// Where to serve the same as at `listen` in plain besides, for clients that speak no TLS.
    pub plain: Option<SocketAddr>,
    /// The TLS towards the node above; absent: it is spoken to in plain.
    pub parent_tls: Option<Tls>,
    /// The token by which the servers of the node above know this one; absent: they know it by its certificate, if at all.
    pub parent_token: Option<BearerToken>,
    /// The TLS towards the other tasks of the node, of which the leader's pages are shown here; absent: they are spoken to in plain,
    /// and not at all where this one speaks TLS.
    pub peer_tls: Option<Tls>,
    /// The address that clients are told, `host:port`; absent: the one it listens at.
    pub advertise: Option<String>,
    /// The time that requests in flight may take to end in a drain.
    pub drain: Duration,
    /// Connections at a time, all ports together; more wait until one has gone. Where HTTP has a port of its own, some of them are
    /// kept for it: probes and monitors are answered also when clients take all others.
    pub connections: usize,
    /// Connections from one address at a time; more are turned away. Absent: half of those of a port.
    pub connections_per_address: Option<usize>,
    /// The limits of all who come from one address together.
    pub address_limits: AddressLimits,
    /// The time that a request may take to arrive and be answered; what takes longer is given up, with all that was kept of it.
    pub request_time: Duration,
    /// The time for which a stream may read nothing of what is there for it; then it is ended.
    pub unread_time: Duration,
    /// Streams at a time, all connections together; more are refused.
    pub streams: usize,
    /// Bytes in one message that is received; larger ones are refused.
    pub request_bytes: usize,
    /// The options by which the task that leads the node is found; absent: this is the only one.
    pub election: Option<ElectionOptions>,
    /// Where a server that is the only one of its node remembers what is out; absent: nowhere. Of no account where there is an
    /// election.
    pub state: Option<PathBuf>,
    /// The state of the templates where they are followed at etcd; absent: they are not.
    pub templates: Option<TemplateWatch>,
    /// The rules of access; absent: everybody may everything.
    pub access: Option<Access>,
    /// The keys by which bearer tokens are believed; absent: none is.
    pub auth_keys: Option<TokenKeys>,
    /// The port of operators; absent: there is none.
    pub admin: Option<AdminOptions>,
    /// More pages than its own; absent: there are none.
    pub pages: Option<MorePages>,
    /// The names under which browsers may ask for pages in plain, beside addresses and that which clients are told.
    pub page_hosts: Vec<String>,
    /// The program that this is, for those who watch it.
    pub build: Build,
    /// The longest pause of the runtime: after that the process is said to be not alive.
    pub longest_pause: Duration,
    /// A second clock by which it is told for how long the lock of the node was held at once, such as the processor time of the
    /// thread; absent: it is told by the usual one only.
    pub meter: Option<fn() -> Duration>,
}

/// The options by which one task of several is found to lead their node.
#[derive(Clone, Debug)]
pub struct ElectionOptions {
    /// The etcd that all tasks of the node ask.
    pub etcd: EtcdOptions,
    /// Keys in etcd begin with that.
    pub prefix: String,
    /// The time for which a task is still the leader for others when nothing is heard of it.
    pub ttl: Duration,
    /// The time for which it is the leader for itself; less, as clocks differ.
    pub authority: Duration,
    /// The interval at which it says that it lives.
    pub keep_alive: Duration,
}

// === impl ServerOptions ===

impl ServerOptions {
    /// A server at `listen`, with ten seconds to drain, for ten thousand connections and a hundred thousand streams, of which
    /// no message has more than 4 MiB.
    #[must_use]
    pub fn new(listen: SocketAddr) -> ServerOptions {
        ServerOptions {
            listen,
            http: None,
            tls: None,
            plain: None,
            parent_tls: None,
            peer_tls: None,
            parent_token: None,
            advertise: None,
            drain: Duration::from_secs(10),
            connections: 10_000,
            connections_per_address: None,
            address_limits: AddressLimits::default(),
            request_time: Duration::from_secs(30),
            unread_time: Duration::from_secs(60),
            streams: 100_000,
            request_bytes: 4 << 20,
            election: None,
            state: None,
            templates: None,
            access: None,
            auth_keys: None,
            admin: None,
            pages: None,
            page_hosts: Vec::new(),
            build: Build::default(),
            longest_pause: driver::LONGEST_PAUSE,
            meter: None,
        }
    }
}

// === impl ElectionOptions ===

impl ElectionOptions {
    /// With the times that suit most: another task leads ten seconds after one has vanished, and one that is cut off
    /// grants nothing after four.
    #[must_use]
    pub fn new(etcd: EtcdOptions) -> ElectionOptions {
        ElectionOptions {
            etcd,
            prefix: "lessor".to_owned(),
            ttl: Duration::from_secs(10),
            authority: Duration::from_secs(4),
            keep_alive: Duration::from_secs(1),
        }
    }

    pub(super) fn start(
        self,
        node: &NodeConfig,
        address: &str,
    ) -> Result<Election, etcd::ElectionStartError> {
        let nonce = random::number();
        let usual = ElectionConfig::new(node.name.as_str(), address, nonce);
        let config = ElectionConfig {
            prefix: self.prefix,
            ttl: self.ttl,
            authority: self.authority,
            keep_alive: self.keep_alive,
            // A short authority must leave time for another try all the same.
            call_timeout: usual.call_timeout.min(self.authority / 2),
            drift: node.drift,
            has_parent: node.parent.is_some(),
            ..usual
        };
        Election::start(self.etcd, config)
    }
}
