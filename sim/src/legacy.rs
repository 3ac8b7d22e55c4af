//! A client as Doorman's are, but one that keeps to its lease: it draws no incarnation, polls by its timer alone, and
//! shows the whole lease that it has each time, or of that the fields that Doorman knows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::Rung;
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::session::{Action, Change};
use lessor_proto::message::{Answer, Ask, Band, Bands, Grant, Has, HolderKind, Lasts, Report};
use lessor_proto::{ClientId, ReportId, ResourceId, Time};
use lessor_server::repository::Legacy as Counts;
use lessor_server::token::PolledLease as Token;

/// One life of such a client.
#[derive(Debug)]
pub(crate) struct Legacy {
    id: ClientId,
    servers: Vec<Arc<str>>,
    turn: usize,
    leader: Option<Arc<str>>,
    timeout: Duration,
    /// It forgets the fields that Doorman does not know.
    forgets: bool,
    leases: Vec<PolledLease>,
    last_id: ReportId,
    in_flight: Option<(ReportId, Time)>,
    due: Time,
    changes: VecDeque<Change>,
}

#[derive(Debug)]
struct PolledLease {
    resource: ResourceId,
    priority: i64,
    wants: f64,
    has: Option<Has>,
    end: Time,
    told: Allowance,
    counts: Counts,
}

/// The wait after trouble, and the shortest time between two requests.
const PAUSE: Duration = Duration::from_secs(1);

// === impl Legacy ===

impl Legacy {
    pub(crate) fn new(now: Time, id: ClientId, servers: Vec<Arc<str>>, timeout: Duration) -> Legacy {
        Legacy {
            id,
            servers,
            turn: 0,
            leader: None,
            timeout,
            forgets: false,
            leases: Vec::new(),
            last_id: ReportId::default(),
            in_flight: None,
            due: now,
            changes: VecDeque::new(),
        }
    }

    /// The same, but one that shows nothing of a lease but how much it is and its date.
    pub(crate) fn forgetful(self) -> Legacy {
        Legacy { forgets: true, ..self }
    }

    /// It goes on with what it has for as long as that counts.
    pub(crate) fn add(&mut self, resource: ResourceId, wants: f64, priority: i64, counts: Counts) {
        let (has, end, told) = (None, Time::ZERO, Allowance::NOTHING);
        self.leases.push(PolledLease { resource, priority, wants, has, end, told, counts });
    }

    pub(crate) fn set_wants(&mut self, resource: &ResourceId, wants: f64) {
        let found = self.leases.iter_mut().find(|lease| lease.resource == *resource);
        found.expect("a resource of this client").wants = wants;
    }

    pub(crate) fn next_deadline(&self) -> Time {
        let work = match self.in_flight {
            Some((_, sent)) => sent + self.timeout,
            None => self.due,
        };
        let live = self.leases.iter().filter(|lease| lease.told != Allowance::NOTHING);
        live.map(|lease| lease.end).min().unwrap_or(Time::MAX).min(work)
    }

    pub(crate) fn poll(&mut self, now: Time) -> Option<Action> {
        if let Some((id, sent)) = self.in_flight
            && now >= sent + self.timeout
        {
            self.on_failure(now, id);
        }
        self.settle(now);
        if let Some(change) = self.changes.pop_front() {
            return Some(Action::Change(change));
        }
        if self.in_flight.is_some() || now < self.due {
            return None;
        }
        self.last_id = self.last_id.next();
        self.in_flight = Some((self.last_id, now));
        let ask = Ask {
            kind: HolderKind::Client,
            holder: self.id.clone(),
            incarnation: None,
            report_id: None,
            target_epoch: None,
            reports: self.leases.iter().map(PolledLease::report).collect(),
            line: None,
        };
        let to = self.leader.as_ref().unwrap_or(&self.servers[self.turn]).clone();
        Some(Action::Ask { id: self.last_id, to, ask })
    }

    pub(crate) fn on_answer(&mut self, now: Time, id: ReportId, answer: Answer) {
        let Some((_, sent)) = self.in_flight.take_if(|(asked, _)| *asked == id) else { return };
        if let Some(leader) = answer.redirect {
            self.leader = leader.address.map(Into::into);
            self.due = now + PAUSE;
            return;
        }
        // One that has no lease asks again after the shortest time that Doorman's client allows.
        let granted = answer.grants.len() == self.leases.len();
        let mut wait = Duration::from_secs(if granted { 60 } else { 5 });
        for grant in answer.grants {
            let found = self.leases.iter_mut().find(|lease| lease.resource == grant.resource);
            let lease = found.expect("a resource that was asked for");
            lease.end = sent + lease.counts.counted(grant.length);
            wait = wait.min(grant.refresh_interval);
            lease.has = Some(lease.adopt(grant, self.forgets));
        }
        self.due = sent + wait.max(PAUSE);
    }

    pub(crate) fn on_failure(&mut self, now: Time, id: ReportId) {
        if self.in_flight.take_if(|(asked, _)| *asked == id).is_some() {
            self.leader = None;
            self.turn = (self.turn + 1) % self.servers.len();
            self.due = now + PAUSE;
        }
    }

    fn settle(&mut self, now: Time) {
        for lease in &mut self.leases {
            let allowance = match &lease.has {
                Some(has) if now < lease.end => Allowance::new(Some(has.capacity), lease.end),
                _ => Allowance::NOTHING,
            };
            if allowance != lease.told {
                lease.told = allowance;
                let resource = lease.resource.clone();
                self.changes.push_back(Change {
                    resource,
                    allowance,
                    rung: Rung::Leased,
                    fault: None,
                    learns_until: None,
                    bound_by: None,
                    domains: None,
                });
            }
        }
    }
}

// === impl PolledLease ===

impl PolledLease {
    /// The lease as it is shown from here on: on the wire it has its length and its date.
    fn adopt(&self, grant: Grant, forgets: bool) -> Has {
        let Grant { capacity, order, token, length, .. } = grant;
        // Where the answer has no token, it is the lease that was shown, or not known what its date is, but no less than that.
        let before = self.has.as_ref().map_or(0, |has| has.expiry);
        let expiry = Token::read(&token).map_or(before, |lease| lease.expiry);
        if forgets {
            return Has { capacity, order: None, token: Vec::new(), lasts: None, expiry };
        }
        let length = Duration::from_millis(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        let lasts = Some(Lasts { length, remaining: length, counts: Duration::ZERO });
        Has { capacity, order, token, lasts, expiry }
    }

    fn report(&self) -> Report {
        let band = Band { priority: self.priority, subclients: 1, wants: self.wants };
        let bands: Bands = [band].into_iter().collect();
        Report {
            resource: self.resource.clone(),
            bands,
            has: self.has.clone(),
            held: None,
            domains: None,
            integer: None,
            peak: None,
            unenforced: None,
        }
    }
}
