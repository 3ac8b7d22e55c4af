//! The way to the servers: a gRPC channel for each address, and what their statuses mean for a session.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::message::{Answer, Ask, Leader, Release, Whereabouts};
use lessor_proto::wire::DiscoveryRequest;
use lessor_proto::wire::capacity_client::CapacityClient;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::clock;
use crate::session::Failure;

/// Channels kept open at most: redirects may name any number of addresses over the months.
const CHANNELS: usize = 16;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(5);

/// Channels by address; connected when first used, and again after they broke.
#[derive(Debug)]
pub(super) struct Link {
    channels: BTreeMap<Arc<str>, CapacityClient<Channel>>,
    /// How long to wait for an answer, at the longest.
    timeout: Duration,
}

/// What came of a request.
#[derive(Debug)]
pub(super) enum Outcome {
    Answered(Answer),
    Released(Option<Leader>),
    Failed(Failure),
}

// === impl Link ===

impl Link {
    pub(super) fn new(timeout: Duration) -> Link {
        Link { channels: BTreeMap::new(), timeout }
    }

    pub(super) fn ask(&mut self, to: &Arc<str>, ask: &Ask) -> impl Future<Output = Outcome> + Send + use<> {
        let (client, request, timeout) = (self.client(to), ask.to_wire(), self.timeout);
        async move {
            // Before the request leaves: a Doorman server's dates are counted from here.
            let sent = clock::wall();
            let answer = match client {
                Ok(mut client) => {
                    client.get_capacity(request).await.map_err(|status| failure(&status, timeout))
                }
                Err(failure) => Err(failure),
            };
            let checked = answer.and_then(|answer| {
                Answer::from_wire(answer.into_inner(), sent)
                    .map_err(|malformed| Failure::Malformed(malformed.to_string()))
            });
            checked.map_or_else(Outcome::Failed, Outcome::Answered)
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

    /// Who leads, says the server at `to`.
    pub(super) async fn discover(&mut self, to: &Arc<str>) -> Result<Whereabouts, Failure> {
        let timeout = self.timeout;
        let answer = self.client(to)?.discovery(DiscoveryRequest {}).await;
        answer
            .map(|answer| Whereabouts::from_wire(answer.into_inner()))
            .map_err(|status| failure(&status, timeout))
    }

    fn client(&mut self, to: &Arc<str>) -> Result<CapacityClient<Channel>, Failure> {
        if let Some(client) = self.channels.get(to) {
            return Ok(client.clone());
        }
        let client = CapacityClient::new(endpoint(to, self.timeout)?.connect_lazy());
        if self.channels.len() == CHANNELS {
            self.channels.clear();
        }
        self.channels.insert(to.clone(), client.clone());
        Ok(client)
    }
}

/// The endpoint at `host:port`, or at a whole URI.
pub(super) fn endpoint(address: &str, timeout: Duration) -> Result<Endpoint, Failure> {
    let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
    let endpoint = Endpoint::from_shared(uri)
        .map_err(|fault| Failure::Unreachable(format!("{address:?} is no address: {fault}")))?;
    Ok(endpoint
        .timeout(timeout)
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

/// A status says whether the request is at fault or the server.
fn failure(status: &Status, timeout: Duration) -> Failure {
    match status.code() {
        // The second is what the channel's own timeout looks like.
        Code::DeadlineExceeded | Code::Cancelled if is_timeout(status) => {
            Failure::Timeout(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX))
        }
        Code::InvalidArgument | Code::NotFound | Code::ResourceExhausted | Code::OutOfRange => {
            Failure::Refused(status.message().to_owned())
        }
        _ => Failure::Unreachable(with_causes(status)),
    }
}

fn is_timeout(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded || status.message() == "Timeout expired"
}

/// "transport error" alone helps nobody: what lies below it is said too.
fn with_causes(status: &Status) -> String {
    let mut text = format!("{:?}: {}", status.code(), status.message());
    let mut cause = status.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            let _ = write!(text, ": {said}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_who_is_at_fault() {
        let failure = |status: &Status| failure(status, Duration::from_secs(5));
        let refused = failure(&Status::not_found("no template matches \"x\""));
        assert_eq!(refused, Failure::Refused("no template matches \"x\"".into()));
        assert_eq!(failure(&Status::cancelled("Timeout expired")), Failure::Timeout(5_000));
        assert_eq!(failure(&Status::internal("oh")), Failure::Unreachable("Internal: oh".into()));
    }

    #[test]
    fn an_address_may_be_a_uri_but_not_nonsense() {
        assert!(endpoint("127.0.0.1:1", Duration::from_secs(1)).is_ok());
        assert!(endpoint("http://[::1]:1", Duration::from_secs(1)).is_ok());
        assert!(endpoint("two words", Duration::from_secs(1)).is_err());
    }
}
