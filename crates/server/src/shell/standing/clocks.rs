//! The clocks of leaders, and the epochs that they belong to: asked by a task that stands by, with the same question by
//! which clients find them.

use std::pin::Pin;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::message::Whereabouts;
use lessor_proto::wire::DiscoveryRequest;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::{Epoch, Time};
use tonic::transport::{Channel, Endpoint};
use tracing::debug;

/// The interval at which a leader is asked. Its clock is known the better the later the last answer came.
const PACE: Duration = Duration::from_secs(5);
/// The same until it has answered for the first time: it may not lead yet.
const FIRST_PACE: Duration = Duration::from_millis(500);
/// The time that it has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

type Question = Pin<Box<dyn Future<Output = Option<(Time, Whereabouts)>> + Send>>;

/// The questions to whoever leads.
#[derive(Default)]
pub(super) struct Clocks {
    leader: Option<CapacityClient<Channel>>,
    next: Time,
    /// Whether the leader has answered.
    heard: bool,
    question: Option<Question>,
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
    /// The leader is there from here on; absent: nobody is known to lead.
    pub(super) fn follow(&mut self, address: Option<&str>) {
        // What an answer is about stands in it, but the one to the last question may come too late to be of use.
        self.question = None;
        self.leader = address.and_then(|address| {
            let uri = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
            let endpoint = Endpoint::from_shared(uri).ok()?.timeout(PATIENCE).connect_timeout(PATIENCE);
            Some(CapacityClient::new(endpoint.connect_lazy()))
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
        let Some(leader) = self.leader.clone() else { return std::future::pending().await };
        clock::sleep_until(self.next).await;
        self.next = clock::now() + if self.heard { PACE } else { FIRST_PACE };
        self.question = Some(Box::pin(ask(leader)));
        None
    }

    fn note(&mut self, answer: Option<(Time, Whereabouts)>) -> Option<ClockAnswer> {
        let (asked, whereabouts) = answer?;
        let (true, Some(epoch), Some(shown)) = (whereabouts.is_leader, whereabouts.epoch, whereabouts.clock)
        else {
            return None;
        };
        debug!(epoch = epoch.0, %asked, %shown, "clock of the leader");
        (self.next, self.heard) = (asked + PACE, true);
        Some(ClockAnswer { epoch, asked, shown })
    }
}

/// When it was asked, and what the answer was.
async fn ask(mut leader: CapacityClient<Channel>) -> Option<(Time, Whereabouts)> {
    let asked = clock::now();
    let answer = leader.discovery(DiscoveryRequest {}).await;
    // One that does not answer is asked again.
    Some((asked, Whereabouts::from_wire(answer.ok()?.into_inner())))
}
