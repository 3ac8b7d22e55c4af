//! A node and clients that tell each other what their domains do, by hand-made messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_proto::message::{
    DomainEntry, DomainHits, DomainNews, DomainReport, Down, Hello, HolderKind, Report, StreamReport, Up,
};
use lessor_proto::{Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer, StatusQuery};
use lessor_server::repository::{Domains, Template};
use lessor_server::resource::DomainsStatus;

use super::holders::{client, repository, resource, template, wants};

/// The most outputs of the node at one moment.
const OUTPUTS: usize = 1_000;
/// The most times that the node has something to do by itself between two heartbeats.
const LOOKS: usize = 1_000;
/// The interval at which clients say that they are there.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// The time for which one that serves a hot domain waits for news other than of entering a tier.
pub(crate) const PACE: Duration = Duration::from_millis(50);

/// Each domain may hit so often in ten seconds, for a minute at a time.
pub(crate) fn policies(limit: u32) -> Arc<Policies> {
    of_tiers(&[limit])
}

pub(crate) fn of_tiers(limits: &[u32]) -> Arc<Policies> {
    let tier = |&limit| Tier {
        limit,
        window: Duration::from_secs(10),
        active: Duration::from_secs(60),
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    let policy = TierPolicy::new(limits.iter().map(tier).collect(), None, None).expect("it holds together");
    let rules = Rules { default: Some(Contract::from(policy)), ..Rules::default() };
    Arc::new(Policies::new(rules).expect("nothing stands twice"))
}

fn with(policies: &Arc<Policies>) -> Template {
    Template {
        domains: Some(Domains { policies: Arc::clone(policies), changes: Vec::new() }),
        ..template(100.0)
    }
}

/// A node and the clients that have a stream to it.
pub(crate) struct Square {
    pub(crate) now: Time,
    pub(crate) node: Node,
    /// The version of the policies that clients count by.
    pub(crate) version: u32,
    clients: BTreeMap<&'static str, Talker>,
    names: BTreeMap<Peer, &'static str>,
    /// The clients that do not read.
    pub(crate) stuck: BTreeSet<&'static str>,
    beaten: Time,
    /// The news that was told, and to whom, since this was last asked.
    pub(crate) told: Vec<(&'static str, DomainNews)>,
}

struct Talker {
    peer: Peer,
    /// The last report of what it wants, and the last of its domains.
    reports: u64,
    id: u64,
}

// === impl Square ===

impl Square {
    pub(crate) fn of(limit: u32, clients: &[&'static str]) -> Square {
        let policies = policies(limit);
        let mut square = Square {
            now: Time::ZERO,
            node: Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(&policies))),
            version: policies.version(),
            clients: BTreeMap::new(),
            names: BTreeMap::new(),
            stuck: BTreeSet::new(),
            beaten: Time::ZERO,
            told: Vec::new(),
        };
        clients.iter().for_each(|name| square.join(name));
        square
    }

    /// Opens a stream and asks for the resource, as who begins does; and for what there is of domains.
    pub(crate) fn join(&mut self, name: &'static str) {
        let hello = Hello::new(HolderKind::Client, client(name), Incarnation(1));
        let peer = self.node.connect(self.now, hello);
        let reports = self.clients.get(name).map_or(0, |before| before.reports);
        self.clients.insert(name, Talker { peer, reports, id: 0 });
        self.names.insert(peer, name);
        let wants = wants(1.0).bands;
        let report = Report {
            resource: resource(),
            bands: wants,
            has: None,
            held: None,
            domains: Some(self.version),
            integer: None,
            peak: None,
            unenforced: None,
        };
        self.report(name, vec![report]);
        self.report_domains(name, true, Vec::new());
    }

    /// `name` tells anew on the stream that it has, as who opens the resource again does, or whose clock was wrong.
    pub(crate) fn begin_again(&mut self, name: &str) {
        self.clients.get_mut(name).expect("it has joined").id = 0;
        self.report_domains(name, true, Vec::new());
    }

    fn report(&mut self, name: &str, reports: Vec<Report>) {
        let client = self.clients.get_mut(name).expect("it has joined");
        client.reports += 1;
        let renew_all = reports.is_empty();
        let report = StreamReport { id: ReportId(client.reports), target_epoch: None, renew_all, reports };
        self.node.receive(self.now, client.peer, Up::Report(report));
        self.drain();
    }

    pub(crate) fn report_domains(&mut self, name: &str, ask: bool, domains: Vec<DomainHits>) {
        let client = self.clients.get_mut(name).expect("it has joined");
        client.id += 1;
        let (version, id) = (self.version, client.id);
        let report = DomainReport { resource: resource(), version, id, ask, below: None, domains };
        self.node.receive(self.now, client.peer, Up::Domains(Box::new(report)));
        self.drain();
    }

    /// `name` has made so many hits of the domain now, beside those that it has told of.
    pub(crate) fn hit(&mut self, name: &str, domain: &str, hits: u32) {
        let hits = self.hits(domain, false, hits);
        self.report_domains(name, false, vec![hits]);
    }

    /// `name` has made so many hits of the domain in all, and now.
    pub(crate) fn hit_in_all(&mut self, name: &str, domain: &str, hits: u32) {
        let hits = self.hits(domain, true, hits);
        self.report_domains(name, false, vec![hits]);
    }

    fn hits(&self, domain: &str, all: bool, hits: u32) -> DomainHits {
        let entry = DomainEntry { policy: 0, tier: 1, at: self.now, hits, is_entered: all };
        DomainHits { domain: domain.into(), all, others: 0, entries: vec![entry] }
    }

    pub(crate) fn drain(&mut self) {
        for _ in 0..OUTPUTS {
            match self.node.poll(self.now) {
                None => return,
                Some(Output::Send { peer, down }) => {
                    let name = self.names[&peer];
                    if let Down::Domains(news) = down {
                        self.told.push((name, *news));
                    }
                    if !self.stuck.contains(name) {
                        self.node.ready(self.now, peer);
                    }
                }
                // Another stream of the same client has taken its place.
                Some(Output::Close { .. }) => {}
                Some(other) => panic!("not expected: {other:?}"),
            }
        }
        panic!("it does not come to an end");
    }

    /// Time passes, in which clients say nothing but that they are there.
    pub(crate) fn later(&mut self, duration: Duration) {
        let end = self.now + duration;
        for _ in 0..LOOKS {
            let beat = self.beaten + HEARTBEAT;
            self.now = self.node.next_deadline().unwrap_or(Time::MAX).min(beat).max(self.now);
            if self.now > end {
                self.now = end;
                return;
            }
            if self.now >= beat {
                self.beaten = self.now;
                let names: Vec<_> = self.clients.keys().copied().collect();
                names.iter().for_each(|name| self.report(name, Vec::new()));
            }
            self.drain();
        }
        panic!("it is looked at too often");
    }

    pub(crate) fn unstick(&mut self, name: &str) {
        self.stuck.remove(name);
        self.node.ready(self.now, self.clients[name].peer);
        self.drain();
    }

    pub(crate) fn leave(&mut self, name: &'static str) -> Peer {
        self.clients.remove(name).expect("it has joined").peer
    }

    pub(crate) fn configure(&mut self, policies: &Arc<Policies>) {
        self.node.reload(self.now, repository(with(policies)));
        self.drain();
    }

    /// Takes the news that a client was told since this was last asked.
    pub(crate) fn told(&mut self, name: &str) -> Vec<DomainNews> {
        let (told, others) = std::mem::take(&mut self.told).into_iter().partition(|(who, _)| *who == name);
        self.told = others;
        let told: Vec<(_, DomainNews)> = told;
        told.into_iter().map(|(_, news)| news).collect()
    }

    /// Takes the hits that a client was told of since this was last asked: their domain, whether they are all, the
    /// number of others, and the number of hits.
    pub(crate) fn told_of(&mut self, name: &str) -> Vec<(String, bool, u32, u32)> {
        let domains = self.told(name).into_iter().flat_map(|news| news.domains);
        let row = |hits: DomainHits| {
            let sum = hits.entries.iter().map(|entry| entry.hits).sum();
            (hits.domain.to_string(), hits.all, hits.others, sum)
        };
        domains.map(row).collect()
    }

    pub(crate) fn forget_what_was_told(&mut self) {
        self.told.clear();
    }

    pub(crate) fn status(&self, most: usize) -> DomainsStatus {
        let query = StatusQuery { holders: most, domains: most, ..StatusQuery::default() };
        let mut rows = self.node.status(self.now, &query).resources;
        rows.pop().expect("a resource").resource.domains.expect("its clients tell each other")
    }

    /// Hits of the one hot domain that count, by the status.
    pub(crate) fn counted(&self) -> u32 {
        let status = self.status(10);
        let [row] = &status.busiest[..] else { panic!("one hot domain: {status:?}") };
        row.hits_in_tier
    }

    /// Two clients that have made four and three of ten hits, and a third that has made none.
    pub(crate) fn heated() -> Square {
        let mut square = Square::of(10, &["a", "b", "c"]);
        square.hit_in_all("a", "tenant", 4);
        square.hit_in_all("b", "tenant", 3);
        square.later(PACE);
        square.forget_what_was_told();
        square
    }
}
