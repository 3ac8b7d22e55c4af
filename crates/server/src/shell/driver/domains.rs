//! The synchronisation of domains behind a lock of its own: no lease waits for it.
//!
//! The word of the node on streams and policies comes through a queue, in order. Reports of domains are taken up by
//! whoever reads them; what comes of them is sent by a task that holds the lock for a few messages at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Time;
use lessor_proto::message::DomainReport;
use tokio::sync::{Notify, mpsc, watch};

use super::hold_kind::HoldKind;
use super::mailbox::Mailbox;
use super::{Driver, StreamKey, TICK};
use crate::domain_sync::{DomainEvent, DomainOutput, DomainSync, DomainsStatus};
use crate::node::{Peer, PeerTable};
use crate::plan::{DomainsForecast, NodePlan};

/// Messages that are made under the lock at a time.
const TURN: usize = 16;
/// Domains that are shown under the lock at a time.
const SHOWN: usize = 64;
/// The longest sleep of the task.
const LONGEST: Duration = Duration::from_secs(3_600);

/// A notice of streams and policies, as the leader state gives it.
#[derive(Debug)]
pub(super) enum Notice {
    /// The node was replaced, for the time of this term.
    Anew(u64, Box<DomainSync>),
    /// A stream was opened, down which news go by this.
    Connected(Peer, Arc<Mailbox>),
    /// Something that the synchronisation has to know.
    Event(DomainEvent),
}

/// The synchronisation and its lock.
#[derive(Debug)]
pub(super) struct DomainRoom {
    floor: Mutex<Floor>,
    /// There is something to be looked at.
    pub(super) notifier: Notify,
}

/// The state behind the lock.
#[derive(Debug)]
pub(super) struct Floor {
    sync: DomainSync,
    term: u64,
    notices: mpsc::UnboundedReceiver<Notice>,
    mailboxes: PeerTable<Arc<Mailbox>>,
    /// Until when the task sleeps.
    planned: Time,
}

// === impl DomainRoom ===

impl DomainRoom {
    pub(super) fn new(notices: mpsc::UnboundedReceiver<Notice>) -> DomainRoom {
        let (sync, mailboxes) = (DomainSync::default(), PeerTable::default());
        let floor = Floor { sync, term: 0, notices, mailboxes, planned: Time::MAX };
        DomainRoom { floor: Mutex::new(floor), notifier: Notify::new() }
    }

    /// The status of the domains of a resource, with at most `most` of them one by one: of a few at a time, as others want the
    /// lock as well.
    pub(super) fn status(&self, resource: &str, most: usize) -> Option<DomainsStatus> {
        let mut status = self.with_state(|floor, now| floor.sync.status(now, resource, 0))?;
        let names = self.with_state(|floor, now| floor.sync.ranked(now, resource, most));
        for names in names.chunks(SHOWN) {
            status.busiest.extend(self.with_state(|floor, now| {
                let one = |name: &Arc<str>| floor.sync.domain(now, resource, name);
                names.iter().filter_map(one).collect::<Vec<_>>()
            }));
        }
        Some(status)
    }

    /// Says how hot domains would stand under the policies of a plan: a few at a time, as the status does.
    pub(super) fn rehearse(&self, plan: &mut NodePlan) {
        for (id, policies) in plan.other_policies() {
            let resource = id.as_str();
            let names = self.with_state(|floor, now| floor.sync.ranked(now, resource, DomainsForecast::MOST));
            for names in names.chunks(SHOWN) {
                let rehearsed: Vec<_> = self.with_state(|floor, now| {
                    let one = |name: &Arc<str>| floor.sync.rehearse(now, resource, name, &policies);
                    names.iter().filter_map(one).collect()
                });
                plan.hear_domains(&id, &rehearsed);
            }
        }
    }

    /// Something of the stream `key`, unless that is of an earlier epoch.
    fn with_stream(&self, key: StreamKey, with_state: impl FnOnce(&mut DomainSync, Time, Peer)) {
        self.with_state(|floor, now| {
            if let Some(peer) = key.peer_in(floor.term) {
                with_state(&mut floor.sync, now, peer);
            }
        });
    }

    fn with_state<R>(&self, with_state: impl FnOnce(&mut Floor, Time) -> R) -> R {
        let mut floor = self.floor();
        let now = clock::now();
        floor.hear(now);
        let result = with_state(&mut floor, now);
        if floor.sync.next_deadline().is_some_and(|at| at < floor.planned) {
            self.notifier.notify_one();
        }
        result
    }

    /// Says what is due, as much of it as goes into a turn. Returns when to look again.
    fn turn(&self) -> (Time, Vec<DomainReport>) {
        let mut floor = self.floor();
        let now = clock::now();
        floor.hear(now);
        let Floor { sync, mailboxes, .. } = &mut *floor;
        let takes = |peer| mailboxes.get(peer).is_some_and(|mailbox: &Arc<Mailbox>| mailbox.takes_news());
        let mut reports = Vec::new();
        for _ in 0..TURN {
            match sync.poll(now, takes) {
                // It has room, and only this task fills it; nobody reads it when the stream has ended.
                Some(DomainOutput::News { peer, news }) => {
                    if let Some(mailbox) = mailboxes.get(peer) {
                        mailbox.put_news(news);
                    }
                }
                Some(DomainOutput::Report(report)) => reports.push(report),
                None => break,
            }
        }
        floor.planned = floor.sync.next_deadline().unwrap_or(Time::MAX);
        (floor.planned, reports)
    }

    /// Locks the state, also after a panic: nothing that matters to leases is known here.
    pub(super) fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Floor ===

impl Floor {
    /// Takes up what the leader state has told.
    fn hear(&mut self, now: Time) {
        while let Ok(notice) = self.notices.try_recv() {
            match notice {
                Notice::Anew(term, sync) => {
                    (self.sync, self.term) = (*sync, term);
                    self.mailboxes = PeerTable::default();
                }
                Notice::Connected(peer, mailbox) => self.mailboxes.insert(peer, mailbox),
                Notice::Event(event) => {
                    if let DomainEvent::Closed { peer } = &event {
                        self.mailboxes.remove(*peer);
                    }
                    self.sync.handle(now, event);
                }
            }
        }
    }
}

// === impl Driver ===

impl Driver {
    /// The holder at the other end of a stream says what its domains did.
    pub(in crate::shell) fn receive_domains(&self, key: StreamKey, report: Box<DomainReport>) {
        self.domains.with_stream(key, |sync, now, peer| {
            sync.handle(now, DomainEvent::Reported { peer, report });
        });
    }

    /// The status of the domains of a resource, with at most `most` of the hot ones, those with the least left first; absent
    /// where none are shared. The lock of the node is not taken.
    #[must_use]
    pub fn domains(&self, resource: &str, most: usize) -> Option<DomainsStatus> {
        self.domains.status(resource, most)
    }

    /// The news of domains that came out last for a stream have been taken.
    pub(in crate::shell) fn domains_ready(&self, key: StreamKey) {
        self.domains.with_stream(key, DomainSync::ready);
    }

    /// Says to the node above what domains did below.
    fn tell_above(&self, report: DomainReport) {
        // Of a broken node nothing is expected.
        let _ = self.with_state(HoldKind::Parent, |leader_state, _| {
            if let Some(node) = &mut leader_state.node {
                node.tell_above(report);
            }
        });
    }

    /// Sends what clients are to know of domains, until stopped.
    pub(crate) async fn keep_domains(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        loop {
            let now = clock::now();
            let (at, reports) = self.domains.turn();
            for report in reports {
                self.tell_above(report);
            }
            if at <= now {
                // The lock was free meanwhile; so is to be the processor.
                tokio::task::yield_now().await;
                if *stopped.borrow() {
                    return;
                }
                continue;
            }
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                () = self.domains.notifier.notified() => {}
                () = clock::sleep_until(at.max(now + TICK).min(now + LONGEST)) => {}
            }
        }
    }
}
