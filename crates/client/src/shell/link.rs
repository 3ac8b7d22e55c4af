//! The way to the servers: a gRPC channel for each address.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Hello, HolderKind, Leader, Release, Whereabouts};
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::{DiscoveryRequest, GetCapacityRequest, GetServerCapacityRequest};
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};

use super::bearer::{Authorization, BearerToken, Server};
use super::clock;
use super::connector::{Connector, Protocol};
use super::status::{failure, is_broken_off};
use super::stream::Stream;
use super::tls::ClientTls;
use crate::session::Failure;

/// Channels kept open at most: redirects may name any number of addresses over the months.
const CHANNELS: usize = 16;
/// The most times that one question is put, where connections end with it on its way. The second time the channel may not have
/// heard yet that the connection has ended, and give it the question once more; after that it certainly has.
const TRIES: u32 = 3;
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Channels by address; connected when first used, and again after they broke.
#[derive(Debug)]
pub(super) struct Link {
    channels: BTreeMap<Arc<str>, Server>,
    /// The longest wait for an answer.
    timeout: Duration,
    /// With it everything goes over TLS.
    tls: Option<Arc<ClientTls>>,
    /// With it every server knows who calls.
    token: Option<BearerToken>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Answer),
    Released(Option<Leader>),
    Failed(Failure),
}

// === impl Link ===

impl Link {
    pub(super) fn new(timeout: Duration) -> Link {
        Link { channels: BTreeMap::new(), timeout, tls: None, token: None }
    }

    pub(super) fn with_tls(self, tls: Option<Arc<ClientTls>>) -> Link {
        Link { tls, ..self }
    }

    pub(super) fn with_token(self, token: Option<BearerToken>) -> Link {
        Link { token, ..self }
    }

    pub(super) fn ask(&mut self, to: &Arc<str>, ask: &Ask) -> impl Future<Output = Outcome> + Send + use<> {
        let (client, question, timeout) = (self.client(to), Question::of(ask), self.timeout);
        async move {
            let client = match client {
                Ok(client) => client,
                Err(failure) => return Outcome::Failed(failure),
            };
            let answer = question.put_until_taken(client).await;
            answer.map_or_else(|fault| Outcome::Failed(fault.failure(timeout)), Outcome::Answered)
        }
    }

    pub(super) fn release(
        &mut self,
        to: &Arc<str>,
        release: &Release,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        let (client, request, timeout) = (self.client(to), release.to_wire(), self.timeout);
        async move {
            let answer = match client {
                Ok(mut client) => {
                    client.release_capacity(request).await.map_err(|status| failure(&status, timeout))
                }
                Err(failure) => Err(failure),
            };
            answer.map_or_else(Outcome::Failed, |answer| {
                let mastership = answer.into_inner().mastership;
                Outcome::Released(mastership.map(|mastership| Leader { address: mastership.master_address }))
            })
        }
    }

    /// Opens a stream to `to`, on which it says hello.
    pub(super) fn open(&mut self, id: u64, to: &Arc<str>, hello: Hello) -> Stream {
        Stream::open(id, self.client(to), hello, self.timeout)
    }

    /// Asks the server at `to` who leads.
    pub(super) async fn discover(&mut self, to: &Arc<str>) -> Result<Whereabouts, Failure> {
        let timeout = self.timeout;
        let answer = self.client(to)?.discovery(DiscoveryRequest {}).await;
        answer
            .map(|answer| Whereabouts::from_wire(answer.into_inner()))
            .map_err(|status| failure(&status, timeout))
    }

    fn client(&mut self, to: &Arc<str>) -> Result<Server, Failure> {
        if let Some(client) = self.channels.get(to) {
            return Ok(client.clone());
        }
        let endpoint = endpoint(to, self.timeout, self.tls.is_some())?;
        let connector = Connector::new(self.tls.clone(), Protocol::Http2);
        if let Some(token) = &self.token {
            let checked = token.check_way(endpoint.uri());
            checked.map_err(|fault| Failure::Unreachable(fault.to_string()))?;
        }
        let channel = Channel::new(connector, endpoint);
        let client = CapacityClient::with_interceptor(channel, Authorization(self.token.clone()));
        if self.channels.len() == CHANNELS {
            self.channels.clear();
        }
        self.channels.insert(to.clone(), client.clone());
        Ok(client)
    }
}

/// Why a question has no answer.
enum Unanswered {
    /// The connection ended with the question on its way.
    BrokenOff(Status),
    /// The server says so, or there is no connection.
    Status(Status),
    Malformed(String),
}

/// A request as clients put it, or as nodes do.
#[derive(Clone)]
enum Question {
    Client(GetCapacityRequest),
    Node(GetServerCapacityRequest),
}

// === impl Question ===

impl Question {
    fn of(ask: &Ask) -> Question {
        match ask.kind {
            HolderKind::Client => Question::Client(ask.to_wire()),
            HolderKind::Node => Question::Node(ask.to_node_wire()),
        }
    }

    /// Puts it again where the connection ends with it on its way: a report may come twice, and there is another one at once.
    async fn put_until_taken(self, server: Server) -> Result<Answer, Unanswered> {
        for _ in 1..TRIES {
            match self.clone().put(server.clone()).await {
                Err(Unanswered::BrokenOff(_)) => {}
                answer => return answer,
            }
        }
        self.put(server).await
    }

    async fn put(self, mut server: Server) -> Result<Answer, Unanswered> {
        // Before the request leaves: a Doorman server's dates are counted from here.
        let sent = clock::wall();
        let answer = match self {
            Question::Client(request) => {
                let answer = server.get_capacity(request).await.map_err(Unanswered::of)?;
                Answer::from_wire(answer.into_inner(), sent)
            }
            Question::Node(request) => {
                let answer = server.get_server_capacity(request).await.map_err(Unanswered::of)?;
                Answer::from_node_wire(answer.into_inner(), sent)
            }
        };
        answer.map_err(|malformed| Unanswered::Malformed(malformed.to_string()))
    }
}

// === impl Unanswered ===

impl Unanswered {
    fn of(status: Status) -> Unanswered {
        if is_broken_off(&status) { Unanswered::BrokenOff(status) } else { Unanswered::Status(status) }
    }

    fn failure(self, timeout: Duration) -> Failure {
        match self {
            Unanswered::BrokenOff(status) | Unanswered::Status(status) => failure(&status, timeout),
            Unanswered::Malformed(fault) => Failure::Malformed(fault),
        }
    }
}

/// The endpoint at `host:port`, or at a whole URI, which is of the kind that was chosen: nobody is led from TLS to a plain
/// port.
pub(super) fn endpoint(address: &str, timeout: Duration, is_secure: bool) -> Result<Endpoint, Failure> {
    let scheme = if is_secure { "https" } else { "http" };
    let uri = if address.contains("://") { address.to_owned() } else { format!("{scheme}://{address}") };
    let endpoint = Endpoint::from_shared(uri)
        .map_err(|fault| Failure::Unreachable(format!("{address:?} is no address: {fault}")))?;
    if let Some(fault) = fault_of(address, endpoint.uri()) {
        return Err(Failure::Unreachable(format!("{address:?} {fault}; wanted HOST:PORT")));
    }
    match (is_secure, endpoint.uri().scheme_str()) {
        (true, Some("https")) | (false, Some("http")) => {}
        (true, _) => {
            let fault = format!("{address:?} is no address for TLS; wanted https:// or HOST:PORT");
            return Err(Failure::Unreachable(fault));
        }
        (false, Some("https")) => {
            let fault = format!(
                "{address:?} needs to be told whom to believe; wanted the settings of TLS, with a CA"
            );
            return Err(Failure::Unreachable(fault));
        }
        (false, _) => {
            let fault = format!("{address:?} is no address; wanted http://, https:// or HOST:PORT");
            return Err(Failure::Unreachable(fault));
        }
    }
    Ok(endpoint
        .timeout(timeout)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true))
}

/// The part of an address that would be passed over in silence: a port that is none, in whose place that of the scheme would
/// be asked, or a path.
fn fault_of(address: &str, uri: &Uri) -> Option<&'static str> {
    let Some(authority) = uri.authority().filter(|authority| !authority.host().is_empty()) else {
        return Some("names no host");
    };
    let behind_host = authority.as_str().rsplit(['@', ']']).next().unwrap_or_default();
    match authority.port_u16() {
        Some(0) => Some("has 0 for a port"),
        None if behind_host.contains(':') => Some("has a port that is no number from 1 to 65535"),
        None if !address.contains("://") => Some("has no port"),
        _ => {
            uri.path_and_query().is_some_and(|path| path != "/").then_some("has a path, which no server has")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_would_lead_elsewhere_is_refused() {
        let told = |address| endpoint(address, Duration::from_secs(1), false).unwrap_err().to_string();
        for (address, fault) in [
            ("web-1", "has no port"),
            ("[::1]", "has no port"),
            ("web-1:", "no number from 1 to 65535"),
            ("web-1:99999", "no number from 1 to 65535"),
            ("http://[::1]:99999", "no number from 1 to 65535"),
            ("web-1:0", "has 0 for a port"),
            (":15000", "names no host"),
            ("web-1:15000/status", "has a path"),
            ("unix:/run/lessor.sock", "no number from 1 to 65535"),
        ] {
            let told = told(address);
            assert!(told.contains(&format!("{address:?}")) && told.contains(fault), "{address}: {told}");
            assert!(told.ends_with("; wanted HOST:PORT"), "{told}");
        }
        for address in ["web-1:15000", "web-1:15000/", "[::1]:15000", "http://web-1", "http://web-1:15000/"] {
            assert!(endpoint(address, Duration::from_secs(1), false).is_ok(), "{address}");
        }
    }

    #[test]
    fn an_address_may_be_a_uri_but_not_nonsense() {
        let is_one = |address, is_secure| endpoint(address, Duration::from_secs(1), is_secure).is_ok();
        assert!(is_one("127.0.0.1:1", false) && is_one("http://[::1]:1", false));
        assert!(!is_one("two words", false) && !is_one("ftp://a:1", false) && !is_one("/a", false));
    }

    #[test]
    fn nobody_is_led_from_tls_to_a_plain_port() {
        let of = |address, is_secure| endpoint(address, Duration::from_secs(1), is_secure);
        assert_eq!(of("a:1", true).unwrap().uri().scheme_str(), Some("https"));
        assert!(of("https://a:1", true).is_ok());
        let told = |address, is_secure| of(address, is_secure).unwrap_err().to_string();
        assert!(told("http://a:1", true).contains("\"http://a:1\" is no address for TLS"));
        assert!(told("https://a:1", false).contains("whom to believe"));
    }
}
