//! Hits of domains that are said while nobody understands them: a node is cut off from the one above for a while, or has older
//! policies than its client. They are said again.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules, Scope};
use lessor_proto::message::{DomainEntry, DomainHits, DomainReport, Hello, HolderKind};
use lessor_proto::{ClientId, Incarnation, ResourceId, Time};
use lessor_server::domain_sync::{DomainEvent, DomainOutput, DomainSync};
use lessor_server::node::Peer;
use lessor_sim::mutation::Mutation;

/// Outputs in one moment, at the most.
const OUTPUTS: usize = 1_000;
const DOMAIN: &str = "tenant";
/// The hits that may be made in a minute.
const LIMIT: u32 = 10;
/// The stream of the client.
const CLIENT: u64 = 7;

/// A node, the one above, and the client below it.
struct Pair {
    now: Time,
    version: u32,
    above: DomainSync,
    node: DomainSync,
    /// The stream between them, if there is one.
    stream: Option<u64>,
    reports: u64,
    /// The node has told the client to begin anew.
    begins: bool,
}

// === impl Pair ===

impl Pair {
    fn new(without: Option<Mutation>) -> Pair {
        let now = Time::ZERO + Duration::from_secs(1);
        let (above, node) = (serving(now, without), serving(now, without));
        let version = policies(LIMIT).version();
        let mut pair = Pair { now, version, above, node, stream: None, reports: 0, begins: false };
        pair.greet();
        pair
    }

    /// Another process leads the node from here on, to which nothing was said.
    fn replace_node(&mut self, without: Option<Mutation>) {
        (self.node, self.reports) = (serving(self.now, without), 0);
        self.greet();
        self.report(Vec::new());
    }

    /// The client opens a stream.
    fn greet(&mut self) {
        let opened = DomainEvent::Opened { peer: Peer::from(CLIENT), hello: hello(HolderKind::Client) };
        self.node.handle(self.now, opened);
    }

    /// From here on the two speak on this stream, or on none.
    fn speak_on(&mut self, stream: Option<u64>) {
        if let Some(before) = std::mem::replace(&mut self.stream, stream) {
            self.above.handle(self.now, DomainEvent::Closed { peer: Peer::from(before) });
        }
        if let Some(stream) = stream {
            let opened = DomainEvent::Opened { peer: Peer::from(stream), hello: hello(HolderKind::Node) };
            self.above.handle(self.now, opened);
        }
        self.node.handle(self.now, DomainEvent::Attended { resource: resource(), stream });
        self.pass(Duration::from_secs(1));
    }

    /// The client has made so many hits, and no others.
    fn hit(&mut self, hits: u32) {
        let entry = DomainEntry { policy: 0, tier: 1, at: self.now, hits, is_entered: true };
        self.report(vec![DomainHits { domain: DOMAIN.into(), all: true, others: 0, entries: vec![entry] }]);
    }

    fn report(&mut self, domains: Vec<DomainHits>) {
        self.reports += 1;
        let (resource, version, id) = (resource(), self.version, self.reports);
        let report = DomainReport { resource, version, id, ask: true, below: None, domains };
        let (peer, report) = (Peer::from(CLIENT), Box::new(report));
        self.node.handle(self.now, DomainEvent::Reported { peer, report });
        self.pass(Duration::from_secs(1));
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        for _ in 0..OUTPUTS {
            if self.exchange() {
                continue;
            }
            let due = [&self.above, &self.node].into_iter().filter_map(DomainSync::next_deadline).min();
            match due.filter(|due| *due <= end) {
                Some(due) => self.now = self.now.max(due),
                None => return self.now = end,
            }
        }
        panic!("it does not come to an end");
    }

    /// Whether anything was said.
    fn exchange(&mut self) -> bool {
        match (self.node.poll(self.now, |_| true), self.stream) {
            (Some(DomainOutput::Report(report)), Some(stream)) => {
                let (peer, report) = (Peer::from(stream), Box::new(report));
                self.above.handle(self.now, DomainEvent::Reported { peer, report });
                return true;
            }
            (Some(DomainOutput::News { news, .. }), _) => {
                self.begins |= news.begins;
                return true;
            }
            (Some(_), _) => return true,
            (None, _) => {}
        }
        if let Some(DomainOutput::News { news, .. }) = self.above.poll(self.now, |_| true) {
            self.node.handle(self.now, DomainEvent::Told { news });
            return true;
        }
        false
    }

    /// Hits that count at the node above.
    fn counted(&self) -> u32 {
        self.counted_by(&self.above)
    }

    fn counted_by(&self, sync: &DomainSync) -> u32 {
        let status = sync.status(self.now, resource().as_str(), 1);
        status.and_then(|status| status.busiest.first().map(|row| row.hits_in_tier)).unwrap_or(0)
    }
}

fn resource() -> ResourceId {
    ResourceId::new("db", 256).expect("a name")
}

/// A node is always one of the same line.
fn hello(kind: HolderKind) -> Hello {
    let line = (kind == HolderKind::Node).then_some(5);
    let holder = ClientId::new("one", 256).expect("a name");
    Hello { line, ..Hello::new(kind, holder, Incarnation(1)) }
}

/// A synchronisation that serves the domains.
fn serving(now: Time, without: Option<Mutation>) -> DomainSync {
    let mut sync = DomainSync::with_rules(without.map(Mutation::node).unwrap_or_default());
    sync.handle(now, DomainEvent::Serves { resource: resource(), policies: Some(policies(LIMIT)) });
    sync
}

/// The policies of so many hits in a minute.
fn policies(limit: u32) -> Arc<Policies> {
    let (window, active) = (Duration::from_secs(60), Duration::from_secs(60));
    let tier =
        Tier { limit, window, active, cooldown: Duration::ZERO, is_skippable: false, kind: Window::Exact };
    let contract = Contract::from(TierPolicy::new(vec![tier], None, None).expect("it holds together"));
    let rules = Rules { scope: Scope::Shared, default: Some(contract), ..Rules::default() };
    Arc::new(Policies::new(rules).expect("nothing stands twice"))
}

/// Of ten hits in a minute a client makes seven before its node hears of the one above, which is told of them when it is there.
pub(crate) fn cut_off_for_a_while(without: Option<Mutation>) -> Option<String> {
    let mut pair = Pair::new(without);
    pair.speak_on(Some(1));
    pair.speak_on(None);
    pair.hit(7);
    pair.speak_on(Some(2));
    let counted = pair.counted();
    (counted != 7).then(|| format!("{counted} hits of 7 are known above"))
}

/// A client makes seven hits of ten, so that the domain is hot above, and its node is replaced by the next in its line. That one hears
/// that the domain is hot before the client is back, and is then told everything that it did.
pub(crate) fn heard_of_before_its_clients_are_back(without: Option<Mutation>) -> Option<String> {
    let mut pair = Pair::new(without);
    pair.speak_on(Some(1));
    pair.hit(7);
    pair.replace_node(without);
    pair.speak_on(Some(2));
    pair.hit(7);
    let counted = pair.counted();
    (counted != 7).then(|| format!("{counted} hits of 7 are known above"))
}

/// A client makes seven hits by policies that its node does not have yet, and has said all of them when that has. One that begins
/// anew says them again.
pub(crate) fn spoken_of_by_later_policies(without: Option<Mutation>) -> Option<String> {
    let mut pair = Pair::new(without);
    let later = policies(LIMIT - 1);
    pair.version = later.version();
    pair.hit(7);
    pair.begins = false;
    pair.node.handle(pair.now, DomainEvent::Serves { resource: resource(), policies: Some(later) });
    pair.pass(Duration::from_secs(1));
    if pair.begins {
        pair.hit(7);
    }
    let counted = pair.counted_by(&pair.node);
    (counted != 7).then(|| format!("{counted} hits of 7 are known"))
}
