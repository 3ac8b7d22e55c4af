//! The presence of a task at etcd: its report under a lease, and what the other tasks of its node report.

use std::time::Duration;

use lessor_proto::Time;

use super::config::{FollowerConfig, TaskStanding};
use super::lane::Job;
use crate::election::call::{Answer, Call, Failure, LeaseId, Stored};
use crate::revision::{FORM, TaskReport};

/// The presence of a task.
#[derive(Clone, Debug)]
pub(super) struct Presence {
    pub(super) standing: TaskStanding,
    lease: Option<ReportLease>,
    /// The report that stands at etcd.
    written: Option<TaskReport>,
    /// When the other reports are to be read.
    pub(super) peers_at: Time,
    peers: Vec<TaskReport>,
    /// Until when these say something.
    peers_until: Time,
}

/// The lease under which the report stands.
#[derive(Clone, Copy, Debug)]
struct ReportLease {
    id: LeaseId,
    keep_at: Time,
    until: Time,
}

/// The length of that lease.
const LENGTH: Duration = Duration::from_secs(30);
/// The interval at which it is renewed, and at which other reports are read.
const RHYTHM: Duration = Duration::from_secs(10);
/// The most other tasks of a node.
pub(super) const MOST_PEERS: usize = 128;

// === impl Presence ===

impl Presence {
    pub(super) fn new(now: Time) -> Presence {
        Presence {
            standing: TaskStanding::default(),
            lease: None,
            written: None,
            peers_at: now,
            peers: Vec::new(),
            peers_until: Time::ZERO,
        }
    }

    /// The report as far as it is known here.
    pub(super) fn report(&self, config: &FollowerConfig) -> TaskReport {
        TaskReport {
            form: FORM,
            node: config.node.clone(),
            address: config.address.clone(),
            leads: self.standing.leads,
            record: self.standing.record,
            binary: config.binary.clone(),
            features: config.level,
            ..TaskReport::default()
        }
    }

    /// Whether another task of the node stands and has that number in force, or a greater one.
    pub(super) fn has_one_ahead(&self, now: Time, number: u64) -> bool {
        now < self.peers_until && self.peers.iter().any(|peer| peer.stands && peer.in_force >= number)
    }

    pub(super) fn on_peers(&mut self, now: Time, config: &FollowerConfig, stored: &[Stored]) {
        let own = config.keys.task(&config.node, config.nonce);
        let read = stored.iter().filter(|stored| stored.key != own.as_bytes());
        let read = read.filter_map(|stored| TaskReport::decode("", &stored.value).ok());
        // The name of another node may begin with this one's, and a slash.
        self.peers = read.filter(|report| report.node == config.node).collect();
        (self.peers_at, self.peers_until) = (now + RHYTHM, now + LENGTH);
    }

    /// A lease that was not renewed in time has ended.
    pub(super) fn expire(&mut self, now: Time) {
        if self.lease.take_if(|lease| lease.until <= now).is_some() {
            self.written = None;
        }
    }

    pub(super) fn next_call(&mut self, now: Time, key: String, report: TaskReport) -> Option<(Job, Call)> {
        let Some(ReportLease { id: lease, keep_at, .. }) = self.lease else {
            return Some((Job::Grant, Call::GrantLease { ttl: LENGTH }));
        };
        if keep_at <= now {
            return Some((Job::KeepAlive, Call::KeepAlive { lease }));
        }
        if self.written.as_ref() == Some(&report) {
            return None;
        }
        let value = report.encode();
        Some((Job::Report(Box::new(report)), Call::Put { lease, key, value }))
    }

    pub(super) fn on_answer(&mut self, now: Time, sent: Time, job: Job, answer: &Answer) {
        match (job, answer) {
            (Job::Grant, &Answer::Granted { lease: id, ttl }) => {
                self.lease = Some(ReportLease { id, keep_at: now + RHYTHM, until: sent + ttl });
            }
            (Job::KeepAlive, &Answer::KeptAlive { ttl }) => {
                if ttl.is_zero() {
                    (self.lease, self.written) = (None, None);
                }
                if let Some(lease) = &mut self.lease {
                    (lease.keep_at, lease.until) = (now + RHYTHM, sent + ttl);
                }
            }
            (Job::Report(report), Answer::Put) => self.written = Some(*report),
            // An answer to another question tells nothing.
            _ => {}
        }
    }

    pub(super) fn failed(&mut self, job: &Job, failure: &Failure) {
        if matches!(job, Job::Report(_) | Job::KeepAlive) && *failure == Failure::LeaseNotFound {
            (self.lease, self.written) = (None, None);
        }
    }

    /// When a call is due, if this is to be reported.
    pub(super) fn next_deadline(&self, report: &TaskReport) -> Time {
        match self.lease {
            Some(lease) if self.written.as_ref() == Some(report) => lease.keep_at,
            _ => Time::ZERO,
        }
    }

    /// When something ends here.
    pub(super) fn ends(&self) -> Time {
        self.lease.map_or(Time::MAX, |lease| lease.until)
    }

    /// Ends the lease, and the report with it.
    pub(super) fn leave(&mut self) -> Option<Call> {
        self.written = None;
        self.lease.take().map(|lease| Call::Revoke { lease: lease.id })
    }
}
