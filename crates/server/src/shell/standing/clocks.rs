//! The clocks of leaders, and the epochs that they belong to: asked by a task that stands by, with the same question by
//! which clients find them.

use std::error::Error as _;
use std::pin::Pin;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::internals::tls::Protocol;
use lessor_proto::message::Whereabouts;
use lessor_proto::wire::DiscoveryRequest;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::{Epoch, Time};
use tonic::transport::{Channel, Endpoint};
use tracing::{debug, info, warn};

use super::super::causes::causes;
use super::super::other_tasks::OtherTasks;

/// The interval at which a leader is asked. Its clock is known the better the later the last answer came.
const PACE: Duration = Duration::from_secs(5);
/// The same until it has answered for the first time: it may not lead yet.
const FIRST_PACE: Duration = Duration::from_millis(500);
/// The questions without an answer after which that is said.
const MISSES: u32 = 3;
/// The time that it has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

type Question = Pin<Box<dyn Future<Output = Result<(Time, Whereabouts), String>> + Send>>;

/// The questions to whoever leads.
pub(in super::super) struct Clocks {
    others: OtherTasks,
    leader: Option<Asked>,
    next: Time,
    /// Whether the leader has answered.
    heard: bool,
    question: Option<Question>,
}

/// The leader that is asked.
struct Asked {
    address: String,
    client: CapacityClient<Channel>,
    /// The questions since the last answer.
    misses: u32,
}

/// The answer of a leader: its epoch, and what its clock showed after it was asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockAnswer {
    pub(super) epoch: Epoch,
    /// The moment at which it was asked, by one's own clock.
    pub(super) asked: Time,
    pub(super) shown: Time,
}

// === impl Clocks ===

impl Clocks {
    pub(in super::super) fn new(others: OtherTasks) -> Clocks {
        Clocks { others, leader: None, next: Time::ZERO, heard: false, question: None }
    }

    /// The leader is there from here on; absent: nobody is known to lead.
    pub(super) fn follow(&mut self, address: Option<&str>) {
        // What an answer is about stands in it, but the one to the last question may come too late to be of use.
        self.question = None;
        self.leader = address.and_then(|address| {
            let (scheme, authority) = self.others.parts(address);
            // What is heard decides how long leases of others are waited for: over TLS nobody is believed in plain.
            if self.others.speak_tls() && scheme != "https" {
                warn!(
                    address,
                    "the leader advertises an address without TLS, and is not asked what its clock shows"
                );
                return None;
            }
            let endpoint = Endpoint::from_shared(format!("{scheme}://{authority}")).ok()?;
            let endpoint = endpoint.timeout(PATIENCE).connect_timeout(PATIENCE);
            let channel = Channel::new(self.others.connector(Protocol::Http2), endpoint);
            Some(Asked { address: address.to_owned(), client: CapacityClient::new(channel), misses: 0 })
        });
        (self.next, self.heard) = (clock::now(), false);
    }

    /// Waits until there is something to do, and does it: then it is what the leader answered, if it has. May be dropped at any
    /// time.
    pub(super) async fn go_on(&mut self) -> Option<ClockAnswer> {
        if let Some(question) = &mut self.question {
            let answer = question.await;
            self.question = None;
            return self.note(answer);
        }
        let Some(leader) = &self.leader else { return std::future::pending().await };
        clock::sleep_until(self.next).await;
        self.next = clock::now() + if self.heard { PACE } else { FIRST_PACE };
        self.question = Some(Box::pin(ask(leader.client.clone())));
        None
    }

    fn note(&mut self, answer: Result<(Time, Whereabouts), String>) -> Option<ClockAnswer> {
        let (asked, whereabouts) = match answer {
            Ok(answer) => answer,
            Err(fault) => {
                self.miss(&fault);
                return None;
            }
        };
        if let Some(leader) = &mut self.leader {
            leader.misses = 0;
        }
        let (true, Some(epoch), Some(shown)) = (whereabouts.is_leader, whereabouts.epoch, whereabouts.clock)
        else {
            return None;
        };
        if self.heard {
            debug!(epoch = epoch.0, %asked, %shown, "clock of the leader");
        } else {
            info!(
                epoch = epoch.0,
                "the clock of the leader is known: clients without incarnation would keep their leases"
            );
        }
        (self.next, self.heard) = (asked + PACE, true);
        Some(ClockAnswer { epoch, asked, shown })
    }

    fn miss(&mut self, fault: &str) {
        let Some(leader) = &mut self.leader else { return };
        leader.misses = leader.misses.saturating_add(1);
        if leader.misses == MISSES {
            let address = leader.address.as_str();
            warn!(
                address,
                fault,
                "the leader does not say what its clock shows: clients without incarnation would be newcomers after it"
            );
        }
    }
}

/// When it was asked, and what the answer was, or why there is none: then it is asked again.
async fn ask(mut leader: CapacityClient<Channel>) -> Result<(Time, Whereabouts), String> {
    let asked = clock::now();
    let answer = leader.discovery(DiscoveryRequest {}).await.map_err(|status| match status.source() {
        Some(source) => causes(source),
        None => status.message().to_owned(),
    })?;
    Ok((asked, Whereabouts::from_wire(answer.into_inner())))
}
