//! The domains of all resources whose clients share them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use lessor_client::internals::domain::Policies;
use lessor_proto::message::{DomainNews, DomainReport, Hello};
use lessor_proto::{ResourceId, Time};

use super::shared::{DomainStatus, DomainsStatus, RehearsedDomain, SLICE, SharedDomains};
use crate::mutation::Rules;
use crate::streams::{Peer, PeerTable};

/// The synchronisation of the domains of a node: a mind of its own, which hears from the mind that leases what it has to know,
/// and which that one never waits for.
#[derive(Clone, Debug, Default)]
pub struct DomainSync {
    /// The resources whose domains are shared, and what there is of them once a client has reported any.
    resources: BTreeMap<ResourceId, Shared>,
    streams: PeerTable<SyncStream>,
    /// When resources have something to say.
    timeline: BTreeSet<(Time, ResourceId)>,
    rules: Rules,
}

/// A resource whose domains are shared.
#[derive(Clone, Debug)]
struct Shared {
    policies: Arc<Policies>,
    domains: Option<Box<SharedDomains>>,
    /// The stream on which the node above grants it.
    stream: Option<u64>,
    /// Where it stands on the timeline.
    booked: Option<Time>,
}

/// A stream.
#[derive(Clone, Debug)]
struct SyncStream {
    hello: Hello,
    /// Of whose domains something was reported on it.
    resources: BTreeSet<ResourceId>,
}

/// An event that the synchronisation has to know.
#[derive(Clone, PartialEq, Debug)]
pub enum DomainEvent {
    /// The domains of a resource follow these policies and are shared; absent: they are not shared, or the resource is gone.
    Serves {
        /// The resource.
        resource: ResourceId,
        /// The policies, of scope `shared`.
        policies: Option<Arc<Policies>>,
    },
    /// A stream was opened.
    Opened {
        /// Its number.
        peer: Peer,
        /// The one who opened it.
        hello: Hello,
    },
    /// A stream has ended.
    Closed {
        /// Its number.
        peer: Peer,
    },
    /// The holder at the other end of a stream has given resources back.
    Released {
        /// The number of the stream.
        peer: Peer,
        /// Which.
        resources: Vec<ResourceId>,
    },
    /// A holder says what its domains did.
    Reported {
        /// The number of the stream.
        peer: Peer,
        /// The report that came.
        report: Box<DomainReport>,
    },
    /// A resource is granted by the node above on this stream, or on none.
    Attended {
        /// The resource.
        resource: ResourceId,
        /// The number of the stream.
        stream: Option<u64>,
    },
    /// The node above tells what others did.
    Told {
        /// The news that came.
        news: Box<DomainNews>,
    },
}

/// An output of the synchronisation.
#[derive(Clone, PartialEq, Debug)]
pub enum DomainOutput {
    /// Send this down a stream.
    News {
        /// The number of the stream.
        peer: Peer,
        /// The hits of others.
        news: Box<DomainNews>,
    },
    /// Say this to the node above.
    Report(DomainReport),
}

// === impl DomainSync ===

impl DomainSync {
    /// The same with other rules.
    #[must_use]
    pub fn with_rules(rules: Rules) -> DomainSync {
        DomainSync { rules, ..DomainSync::default() }
    }

    /// Something has happened.
    pub fn handle(&mut self, now: Time, event: DomainEvent) {
        match event {
            DomainEvent::Serves { resource, policies: Some(policies) } => {
                self.serve(now, &resource, policies);
            }
            DomainEvent::Serves { resource, policies: None } => {
                if let Some(Shared { booked: Some(at), .. }) = self.resources.remove(&resource) {
                    self.timeline.remove(&(at, resource));
                }
            }
            DomainEvent::Opened { peer, hello } => {
                self.streams.insert(peer, SyncStream { hello, resources: BTreeSet::new() });
            }
            DomainEvent::Closed { peer } => {
                let Some(stream) = self.streams.remove(peer) else { return };
                for id in &stream.resources {
                    self.with(id, |domains| domains.leave(peer));
                }
            }
            DomainEvent::Released { peer, resources } => {
                let Some(stream) = self.streams.get_mut(peer) else { return };
                for id in &resources {
                    stream.resources.remove(id);
                }
                for id in &resources {
                    self.with(id, |domains| domains.leave(peer));
                }
            }
            DomainEvent::Reported { peer, report } => self.hear(now, peer, *report),
            DomainEvent::Attended { resource, stream } => {
                if let Some(shared) = self.resources.get_mut(&resource) {
                    shared.stream = stream;
                    self.with(&resource, |domains| domains.attend(stream));
                }
            }
            DomainEvent::Told { news } => _ = self.with(&news.resource, |domains| domains.learn(now, &news)),
        }
    }

    /// The stream of `peer` takes something again.
    pub fn ready(&mut self, now: Time, peer: Peer) {
        // Where no resource has shared domains nothing waits for a stream.
        let Some(stream) = self.streams.get(peer).filter(|_| !self.resources.is_empty()) else { return };
        for id in stream.resources.clone() {
            self.with(&id, |domains| domains.resume(now, peer));
        }
    }

    /// The next thing to be said at `now`; nothing if all is said until [`DomainSync::next_deadline`], which has come already where
    /// more is to be done than in one turn. `takes` says whether a stream takes something: what is for one that does not is kept
    /// until [`DomainSync::ready`].
    pub fn poll(&mut self, now: Time, mut takes: impl FnMut(Peer) -> bool) -> Option<DomainOutput> {
        let mut left = SLICE;
        while left > 0 {
            let id = self.timeline.first().filter(|(at, _)| *at <= now).map(|(_, id)| id.clone())?;
            let output = self.with(&id, |domains| {
                domains.advance(now, &mut left);
                if let Some(report) = domains.report(now) {
                    return Some(DomainOutput::Report(report));
                }
                let peer = domains.next_due(now)?;
                if !takes(peer) {
                    domains.put_off(peer);
                    left = left.saturating_sub(1);
                    return None;
                }
                let news = Box::new(domains.news(now, peer)?);
                Some(DomainOutput::News { peer, news })
            });
            if let Some(output) = output.flatten() {
                return Some(output);
            }
        }
        None
    }

    /// When to poll again, if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.timeline.first().map(|&(at, _)| at)
    }

    /// Whether a domain of a resource is hot: whatever is said of it is told to all who use it.
    #[must_use]
    pub fn is_hot(&self, resource: &str, domain: &str) -> bool {
        let shared = self.resources.get(resource).and_then(|shared| shared.domains.as_ref());
        shared.is_some_and(|domains| domains.hot.contains(domain))
    }

    /// The names of the hot domains of a resource, those with the least left first, at most `most` of them.
    #[must_use]
    pub fn ranked(&self, now: Time, resource: &str, most: usize) -> Vec<Arc<str>> {
        let domains = self.resources.get(resource).and_then(|shared| shared.domains.as_ref());
        domains.map_or_else(Vec::new, |domains| domains.ranked(now, most))
    }

    /// The status of one domain of a resource, if it is told of.
    #[must_use]
    pub fn domain(&self, now: Time, resource: &str, name: &str) -> Option<DomainStatus> {
        self.resources.get(resource)?.domains.as_ref()?.one_status(now, name)
    }

    /// The stand of one domain of a resource under other policies, if it is told of.
    #[must_use]
    pub fn rehearse(
        &self,
        now: Time,
        resource: &str,
        name: &Arc<str>,
        policies: &Policies,
    ) -> Option<RehearsedDomain> {
        self.resources.get(resource)?.domains.as_ref()?.rehearse(now, name, policies)
    }

    /// The status of the domains of a resource, with at most `most` of them one by one; nothing where no client has
    /// reported any.
    #[must_use]
    pub fn status(&self, now: Time, resource: &str, most: usize) -> Option<DomainsStatus> {
        self.resources.get(resource)?.domains.as_ref().map(|domains| domains.status(now, most))
    }

    fn serve(&mut self, now: Time, id: &ResourceId, policies: Arc<Policies>) {
        let fresh = || Shared { policies: Arc::clone(&policies), domains: None, stream: None, booked: None };
        let shared = self.resources.entry(id.clone()).or_insert_with(fresh);
        if shared.policies.version() != policies.version() {
            shared.policies = Arc::clone(&policies);
            self.with(id, |domains| domains.follow(now, policies));
        }
    }

    fn hear(&mut self, now: Time, peer: Peer, report: DomainReport) {
        let Some(SyncStream { hello, resources }) = self.streams.get_mut(peer) else { return };
        let Some(shared) = self.resources.get_mut(&report.resource) else { return };
        let (id, policies) = (report.resource.clone(), &shared.policies);
        resources.insert(id.clone());
        let rules = self.rules;
        let fresh = || Box::new(SharedDomains::new(now, id.clone(), Arc::clone(policies), rules));
        let domains = shared.domains.get_or_insert_with(fresh);
        domains.attend(shared.stream);
        domains.hear(now, peer, hello, report);
        self.book(&id);
    }

    /// Does something with the domains of a resource, if there are any, and puts it where it belongs on the timeline.
    fn with<R>(&mut self, id: &ResourceId, act: impl FnOnce(&mut SharedDomains) -> R) -> Option<R> {
        let result = self.resources.get_mut(id)?.domains.as_mut().map(|domains| act(domains));
        self.book(id);
        result
    }

    fn book(&mut self, id: &ResourceId) {
        let Some(shared) = self.resources.get_mut(id) else { return };
        let wake = shared.domains.as_ref().and_then(|domains| domains.wake());
        let before = std::mem::replace(&mut shared.booked, wake);
        if before == wake {
            return;
        }
        if let Some(at) = before {
            self.timeline.remove(&(at, id.clone()));
        }
        if let Some(at) = wake {
            self.timeline.insert((at, id.clone()));
        }
    }
}
