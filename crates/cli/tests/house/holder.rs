//! A client as it may be written by anybody: it speaks Doorman's wire, and believes what its last answer says.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::{GetCapacityRequest, Lease, ReleaseCapacityRequest, ResourceRequest};
use lessor_proto::{Amount, Time};
use tokio::time::timeout;
use tonic::Status;
use tonic::transport::Channel;

use super::AGES;

/// The behaviour of a client towards fields that it does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nature {
    /// Sends the whole lease back, as Doorman's client for Go does.
    Echoes,
    /// Sends back Doorman's three fields and no other.
    Forgets,
    /// Knows everything: incarnation, reports, and promises of what it holds.
    Knows,
}

impl Nature {
    pub(crate) const ALL: [Nature; 3] = [Nature::Echoes, Nature::Forgets, Nature::Knows];
}

/// A client of one resource.
#[derive(Clone, Debug)]
pub(crate) struct Holder {
    pub(crate) id: String,
    pub(crate) resource: String,
    pub(crate) nature: Nature,
    pub(crate) wants: f64,
    pub(crate) lease: Option<Lease>,
    incarnation: u64,
    reports: u64,
    /// The most that it uses, and the end of that.
    holds: f64,
    end: Time,
}

// === impl Holder ===

impl Holder {
    pub(crate) fn new(id: impl Into<String>, nature: Nature, resource: &str, wants: f64) -> Holder {
        let incarnation = rand::random();
        let (id, resource) = (id.into(), resource.to_owned());
        Holder {
            id,
            resource,
            nature,
            wants,
            lease: None,
            incarnation,
            reports: 0,
            holds: 0.0,
            end: Time::ZERO,
        }
    }

    /// The amount that it would use at this moment.
    pub(crate) fn holds(&self) -> Amount {
        if clock::now() < self.end { Amount::from_f64(self.holds) } else { Amount::ZERO }
    }

    /// When what it holds ends, if nothing more is granted.
    pub(crate) fn end(&self) -> Time {
        self.end
    }

    /// The capacity that the last answer gave.
    pub(crate) fn capacity(&self) -> f64 {
        self.lease.as_ref().map_or(0.0, Lease::capacity)
    }

    /// The time that it is to wait until it asks again.
    pub(crate) fn refresh_interval(&self) -> Duration {
        Duration::from_secs(self.lease.as_ref().map_or(1, |lease| lease.refresh_interval().unsigned_abs()))
    }

    /// Another process under the same id, which knows nothing of this one.
    pub(crate) fn reborn(&self) -> Holder {
        Holder::new(self.id.clone(), self.nature, &self.resource, self.wants)
    }

    /// The next request. From here on it keeps to what the request promises.
    pub(crate) fn request(&mut self) -> GetCapacityRequest {
        self.reports += 1;
        let knows = self.nature == Nature::Knows;
        if knows {
            self.holds = self.holds.min(self.wants);
        }
        // One that knows everything shows nothing that has ended; Doorman's clients show what they were told last.
        let has = self.lease.clone().filter(|_| !knows || clock::now() < self.end);
        let held = has.as_ref().filter(|_| knows).map(|_| self.holds);
        GetCapacityRequest {
            client_id: Some(self.id.clone()),
            incarnation: knows.then_some(self.incarnation),
            report_id: knows.then_some(self.reports),
            resource: vec![ResourceRequest {
                has: match self.nature {
                    Nature::Forgets => has.as_ref().map(three_fields),
                    _ => has,
                },
                held,
                ..ask(&self.resource, self.wants)
            }],
            ..GetCapacityRequest::default()
        }
    }

    /// Asks, and believes the answer.
    pub(crate) async fn report(&mut self, server: &mut CapacityClient<Channel>) -> Result<f64, Status> {
        let request = self.request();
        self.send(server, request).await
    }

    /// Asks, and never hears the answer.
    pub(crate) async fn ask_in_vain(&mut self, server: &mut CapacityClient<Channel>) -> Result<(), Status> {
        let request = self.request();
        timeout(AGES, server.get_capacity(request)).await.expect("an answer in time").map(drop)
    }

    /// Asks with these words, and believes the answer.
    pub(crate) async fn send(
        &mut self,
        server: &mut CapacityClient<Channel>,
        request: GetCapacityRequest,
    ) -> Result<f64, Status> {
        let sent = clock::now();
        let answer =
            timeout(AGES, server.get_capacity(request)).await.expect("an answer in time")?.into_inner();
        assert_eq!(answer.mastership, None, "the only server is the leader");
        let [response] = &answer.response[..] else { panic!("one answer to one question: {answer:?}") };
        assert_eq!(response.resource_id, self.resource);
        self.adopt(sent, response.gets.clone());
        Ok(self.capacity())
    }

    /// Takes the lease in the answer to the request sent then, and uses it for as long as anybody may.
    pub(crate) fn adopt(&mut self, sent: Time, lease: Lease) {
        let length = Duration::from_millis(lease.duration_ms.expect("how long it lasts"));
        let date = Duration::from_secs(lease.expiry_time().unsigned_abs());
        // Who goes by the date, as Doorman's clients do, stops no later. Lengths are cut to whole milliseconds, and the date of
        // a lease that a successor gives back is the one that it had.
        let latest = clock::wall().since_epoch + length + Duration::from_millis(1);
        assert!(date <= latest, "{date:?} is late: {lease:?}");
        self.end = sent + length;
        self.holds = lease.capacity();
        self.lease = Some(lease);
    }

    /// Uses nothing any more, and says so.
    pub(crate) async fn release(&mut self, server: &mut CapacityClient<Channel>) -> Result<(), Status> {
        self.end = Time::ZERO;
        self.lease = None;
        let request = ReleaseCapacityRequest {
            client_id: Some(self.id.clone()),
            resource_id: vec![self.resource.clone()],
            incarnation: (self.nature == Nature::Knows).then_some(self.incarnation),
            report_id: None,
        };
        timeout(AGES, server.release_capacity(request)).await.expect("an answer in time").map(drop)
    }
}

/// A question about one resource, from somebody who has nothing of it.
pub(crate) fn ask(resource: &str, wants: f64) -> ResourceRequest {
    ResourceRequest {
        resource_id: Some(resource.to_owned()),
        priority: Some(0),
        wants: Some(wants),
        ..ResourceRequest::default()
    }
}

/// A lease of so much as it comes from a client of Doorman's, or from one that makes it up.
pub(crate) fn claim(capacity: f64) -> Lease {
    Lease {
        expiry_time: Some(i64::MAX),
        refresh_interval: Some(1),
        capacity: Some(capacity),
        ..Lease::default()
    }
}

fn three_fields(lease: &Lease) -> Lease {
    let Lease { expiry_time, refresh_interval, capacity, .. } = *lease;
    Lease { expiry_time, refresh_interval, capacity, ..Lease::default() }
}

/// The fair share of everybody: one who wants less than an equal share of what is left gets what it wants, the
/// others share the rest.
pub(crate) fn fair_shares(capacity: f64, wants: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wants.len()).collect();
    order.sort_by(|&a, &b| wants[a].total_cmp(&wants[b]));
    let mut shares = vec![0.0; wants.len()];
    let mut left = capacity;
    for (place, &index) in order.iter().enumerate() {
        shares[index] = wants[index].min(left / (wants.len() - place) as f64);
        left -= shares[index];
    }
    shares
}
