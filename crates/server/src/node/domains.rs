//! The synchronisation of domains beside the leases: in the node, as long as nobody has taken it out, or elsewhere, where it is
//! told what it has to know.

use std::collections::{BTreeMap, VecDeque};

use lessor_proto::message::{DomainNews, DomainReport, Down};
use lessor_proto::{ResourceId, Time};

use super::parent::Above;
use super::{Node, NodeStatus, Peer};
use crate::domain_sync::{DomainEvent, DomainOutput, DomainSync};
use crate::mutation::Rules;
use crate::plan::{DomainsForecast, NodePlan};
use crate::resource::Resource;

/// The part of a node that has to do with shared domains.
#[derive(Clone, Debug)]
pub(crate) struct Sharing {
    place: SyncPlace,
    /// The resources whose domains are shared, and the version of the policies.
    served: BTreeMap<ResourceId, u32>,
    /// The streams on which the node above grants them.
    above: BTreeMap<ResourceId, u64>,
}

/// Where the synchronisation is.
#[derive(Clone, Debug)]
enum SyncPlace {
    /// In the node.
    Inside(DomainSync),
    /// Elsewhere; what it has to know is fetched from here.
    Outside(VecDeque<DomainEvent>),
}

// === impl Sharing ===

impl Sharing {
    pub(super) fn new(rules: Rules) -> Sharing {
        let place = SyncPlace::Inside(DomainSync::with_rules(rules));
        Sharing { place, served: BTreeMap::new(), above: BTreeMap::new() }
    }

    pub(super) fn note(&mut self, now: Time, event: DomainEvent) {
        match &mut self.place {
            SyncPlace::Inside(sync) => sync.handle(now, event),
            SyncPlace::Outside(events) => events.push_back(event),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        match &self.place {
            SyncPlace::Inside(sync) => sync.next_deadline(),
            SyncPlace::Outside(_) => None,
        }
    }

    /// The stream of `peer` takes something again.
    pub(super) fn ready(&mut self, now: Time, peer: Peer) {
        if let SyncPlace::Inside(sync) = &mut self.place {
            sync.ready(now, peer);
        }
    }

    /// Adds the domains of each resource that `status` shows, if they are not driven beside the node.
    pub(super) fn describe(&self, now: Time, status: &mut NodeStatus, most: usize) {
        let SyncPlace::Inside(sync) = &self.place else { return };
        for row in &mut status.resources {
            row.resource.domains = sync.status(now, &row.resource.resource, most);
        }
    }
}

// === impl Node ===

impl Node {
    /// Hands over the synchronisation of domains, which is driven beside this node from here on: it is to handle each of
    /// [`Node::next_domain_event`], what comes up streams from domains is for it, and what it says goes down streams past this
    /// node.
    pub fn take_domain_sync(&mut self) -> DomainSync {
        match std::mem::replace(&mut self.sharing.place, SyncPlace::Outside(VecDeque::new())) {
            SyncPlace::Inside(sync) => sync,
            SyncPlace::Outside(events) => {
                self.sharing.place = SyncPlace::Outside(events);
                DomainSync::default()
            }
        }
    }

    /// The next thing that the synchronisation of domains has to know, where it was [taken out](Node::take_domain_sync).
    pub fn next_domain_event(&mut self) -> Option<DomainEvent> {
        match &mut self.sharing.place {
            SyncPlace::Inside(_) => None,
            SyncPlace::Outside(events) => events.pop_front(),
        }
    }

    /// Hears a report of what domains did at the other end.
    pub(super) fn on_domains(&mut self, now: Time, peer: Peer, report: Box<DomainReport>) {
        self.sharing.note(now, DomainEvent::Reported { peer, report });
    }

    /// Lets the synchronisation of domains know by what policies those of a resource are shared, if that has changed.
    pub(super) fn note_policies(&mut self, now: Time, id: &ResourceId) {
        let policies = self.resources.get(id).and_then(Resource::shared_policies);
        let version = policies.as_ref().map(|policies| policies.version());
        if self.sharing.served.get(id).copied() == version {
            return;
        }
        match version {
            Some(version) => _ = self.sharing.served.insert(id.clone(), version),
            None => _ = self.sharing.served.remove(id),
        }
        self.sharing.note(now, DomainEvent::Serves { resource: id.clone(), policies });
        self.sharing.above.remove(id);
        self.note_streams(now, std::slice::from_ref(id));
    }

    /// Lets it know on which streams the node above grants what.
    pub(super) fn note_streams(&mut self, now: Time, ids: &[ResourceId]) {
        let Some(session) = self.parent.as_ref().map(Above::session) else { return };
        for id in ids {
            if !self.sharing.served.contains_key(id) {
                continue;
            }
            let stream = session.stream_of(id);
            if self.sharing.above.get(id).copied() == stream {
                continue;
            }
            match stream {
                Some(stream) => _ = self.sharing.above.insert(id.clone(), stream),
                None => _ = self.sharing.above.remove(id),
            }
            self.sharing.note(now, DomainEvent::Attended { resource: id.clone(), stream });
        }
    }

    /// The same of all, as a stream may have ended.
    pub(super) fn note_all_streams(&mut self, now: Time) {
        let ids: Vec<ResourceId> = self.sharing.above.keys().cloned().collect();
        self.note_streams(now, &ids);
    }

    /// The version of the policies by which the domains of a resource are shared, if they are.
    #[must_use]
    pub fn domain_version(&self, id: &ResourceId) -> Option<u32> {
        self.sharing.served.get(id).copied()
    }

    /// The stream on which the node above is told what the domains of a resource did, if there is one.
    #[must_use]
    pub fn domain_stream(&self, id: &ResourceId) -> Option<u64> {
        self.sharing.above.get(id).copied()
    }

    /// Whether a domain is [hot](DomainSync::is_hot), where the synchronisation of domains is in this node.
    #[must_use]
    pub fn is_domain_hot(&self, id: &ResourceId, domain: &str) -> bool {
        matches!(&self.sharing.place, SyncPlace::Inside(sync) if sync.is_hot(id.as_str(), domain))
    }

    /// Says how hot domains would stand under the policies of a plan, where the synchronisation of domains is in this node.
    pub(super) fn rehearse_domains(&self, now: Time, plan: &mut NodePlan) {
        let SyncPlace::Inside(sync) = &self.sharing.place else { return };
        for (id, policies) in plan.other_policies() {
            let names = sync.ranked(now, id.as_str(), DomainsForecast::MOST);
            let rehearsed = names.iter().filter_map(|name| sync.rehearse(now, id.as_str(), name, &policies));
            plan.hear_domains(&id, &rehearsed.collect::<Vec<_>>());
        }
    }

    /// The node above tells what domains did elsewhere.
    pub(super) fn learn_domains(&mut self, now: Time, news: Box<DomainNews>) {
        self.sharing.note(now, DomainEvent::Told { news });
    }

    /// Says to the node above what domains did below, where the synchronisation of domains was
    /// [taken out](Node::take_domain_sync). Without a stream that is lost, and is said again on the next.
    pub fn tell_above(&mut self, report: DomainReport) {
        if let Some(above) = &mut self.parent {
            above.tell(report);
        }
    }

    /// Lets the synchronisation of domains know that these do not listen to a resource any more.
    pub(super) fn note_silent(&mut self, now: Time, id: &ResourceId, silent: Vec<Peer>) {
        for peer in silent {
            self.sharing.note(now, DomainEvent::Released { peer, resources: vec![id.clone()] });
        }
    }

    /// Says what the synchronisation of domains has to say next, and returns whether there was anything.
    pub(super) fn say_domains(&mut self, now: Time) -> bool {
        let SyncPlace::Inside(sync) = &mut self.sharing.place else { return false };
        let peers = &mut self.streams.peers;
        match sync.poll(now, |peer| !peers.is_busy(peer)) {
            Some(DomainOutput::News { peer, news }) => {
                peers.say(peer, Down::Domains(news));
                true
            }
            Some(DomainOutput::Report(report)) => {
                self.tell_above(report);
                true
            }
            None => false,
        }
    }
}
