//! The configuration of a session.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::HolderKind;
use lessor_proto::{ClientId, Drift, Features, Incarnation};

use crate::mutation::HolderRules;
pub(crate) use crate::transport::Transport;

/// The configuration of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionConfig {
    /// Whether a client or a node asks.
    pub kind: HolderKind,
    /// The id of the one who asks.
    pub holder: ClientId,
    /// Which life of it: a random number drawn when the process starts, or the epoch of a node's leader.
    pub incarnation: Incarnation,
    /// Of a node, the line of succession in which the incarnation stands; absent: a life that nobody has preceded.
    pub line: Option<u64>,
    /// `host:port` of the servers of one node, asked in turn; at least one.
    pub servers: Vec<Arc<str>>,
    /// The bounds on the error of clocks.
    pub drift: Drift,
    /// The longest wait for an answer.
    pub timeout: Duration,
    /// The least time between two requests of which the second was not due.
    pub spacing: Duration,
    /// The longest wait after failures; a refresh interval, where that is shorter.
    pub longest_back_off: Duration,
    /// Resources in one request.
    pub batch: usize,
    /// Whether polling asks before its time when there is news. Doorman's clients ask by their timer only, which the server
    /// sets: without this it is the spacing where something waits for them or they for something.
    pub eager: bool,
    /// The way to speak to servers.
    pub transport: Transport,
    /// The least time between two reports on a stream of which the second was not due.
    pub stream_spacing: Duration,
    /// The kinds of message that it knows, as it says in its hello: those of this version, but in tests of earlier ones.
    pub features: Features,
    /// The rules that it goes by: all of them, but in tests.
    pub rules: HolderRules,
}

// === impl SessionConfig ===

impl SessionConfig {
    /// A client of `servers`, with 5 s for an answer, 1 s between requests, 30 s of back-off and 500 resources in one
    /// request at most.
    #[must_use]
    pub fn new(holder: ClientId, incarnation: Incarnation, servers: Vec<Arc<str>>) -> SessionConfig {
        SessionConfig {
            kind: HolderKind::Client,
            holder,
            incarnation,
            line: None,
            servers,
            drift: Drift::DEFAULT,
            timeout: Duration::from_secs(5),
            spacing: Duration::from_secs(1),
            longest_back_off: Duration::from_secs(30),
            batch: 500,
            eager: true,
            transport: Transport::Poll,
            stream_spacing: Duration::from_millis(5),
            features: Features::CURRENT,
            rules: HolderRules::default(),
        }
    }
}
