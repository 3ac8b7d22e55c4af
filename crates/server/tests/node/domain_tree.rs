//! Domains below different leaves: what is told up and down a tree, in which messages take no time.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::{Census, DomainEntry, DomainHits, DomainNews, DomainReport, Hello, HolderKind};
use lessor_proto::{ClientId, Incarnation, Time};
use lessor_server::domain_sync::{DomainEvent, DomainOutput, DomainSync};
use lessor_server::node::Peer;

use super::holders::resource;
use super::square::policies;

/// Messages that one moment may have.
const MESSAGES: usize = 1_000;
/// Clients of a leaf have these numbers and those that follow; the stream to the root has that of its leaf.
const CLIENTS: u64 = 10;

/// A root, two leaves and their clients.
struct Tree {
    now: Time,
    version: u32,
    /// The time by which news of the root are older when they come to a leaf.
    slowness: Duration,
    /// The root, and each leaf.
    nodes: Vec<DomainSync>,
    /// The life of each leaf.
    lives: [u64; 3],
    /// The line of succession in which each leads, if it does in one.
    lines: [Option<u64>; 3],
    /// The number of the last report of each client, by its leaf and its number.
    reports: BTreeMap<(usize, u64), u64>,
    /// The reports of leaves to the root.
    said: Vec<(usize, DomainReport)>,
    /// The news that clients were told.
    told: Vec<((usize, u64), DomainNews)>,
}

impl Tree {
    fn of(limit: u32) -> Tree {
        Tree::in_lines(limit, [None; 3])
    }

    fn in_lines(limit: u32, lines: [Option<u64>; 3]) -> Tree {
        let policies = policies(limit);
        let mut tree = Tree {
            now: Time::ZERO + Duration::from_secs(1),
            version: policies.version(),
            slowness: Duration::ZERO,
            nodes: vec![DomainSync::default(); 3],
            lives: [0; 3],
            lines,
            reports: BTreeMap::new(),
            said: Vec::new(),
            told: Vec::new(),
        };
        for node in &mut tree.nodes {
            let policies = Some(policies.clone());
            node.handle(tree.now, DomainEvent::Serves { resource: resource(), policies });
        }
        tree.join_leaf(1);
        tree.join_leaf(2);
        tree
    }

    /// The stream of a leaf to the root.
    fn stream(&self, leaf: usize) -> u64 {
        leaf as u64 + 100 * self.lives[leaf]
    }

    /// A leaf begins, and opens a stream to the root.
    fn join_leaf(&mut self, leaf: usize) {
        self.lives[leaf] += 1;
        let (number, life) = (self.stream(leaf), self.lives[leaf]);
        let hello =
            Hello { line: self.lines[leaf], ..hello(HolderKind::Node, &format!("leaf-{leaf}"), life) };
        self.nodes[0].handle(self.now, DomainEvent::Opened { peer: Peer::from(number), hello });
        self.nodes[leaf]
            .handle(self.now, DomainEvent::Attended { resource: resource(), stream: Some(number) });
        self.pump();
    }

    /// Another process takes the place of a leaf.
    fn replace_leaf(&mut self, leaf: usize) {
        let peer = Peer::from(self.stream(leaf));
        self.nodes[0].handle(self.now, DomainEvent::Closed { peer });
        self.succeed_leaf(leaf);
    }

    /// The same, and the root has not heard that the stream of the one before has ended.
    fn succeed_leaf(&mut self, leaf: usize) {
        self.nodes[leaf] = DomainSync::default();
        let policies = Some(policies(10));
        self.nodes[leaf].handle(self.now, DomainEvent::Serves { resource: resource(), policies });
        self.reports.retain(|&(of, _), _| of != leaf);
        self.join_leaf(leaf);
    }

    /// Other policies are in force at a node.
    fn configure(&mut self, node: usize, limit: u32) {
        let policies = Some(policies(limit));
        self.nodes[node].handle(self.now, DomainEvent::Serves { resource: resource(), policies });
        self.pump();
    }

    /// A client of a leaf says what it did of a domain; all of it, or what is new.
    fn hit(&mut self, leaf: usize, client: u64, all: bool, hits: u32) {
        let entry = DomainEntry { policy: 0, tier: 1, at: self.now, hits, is_entered: all };
        let hits = DomainHits { domain: "tenant".into(), all, others: 0, entries: vec![entry] };
        self.report(leaf, client, false, vec![hits]);
    }

    /// A client of a leaf asks what is known there, and says nothing.
    fn ask(&mut self, leaf: usize, client: u64) {
        self.report(leaf, client, true, Vec::new());
    }

    fn report(&mut self, leaf: usize, client: u64, ask: bool, domains: Vec<DomainHits>) {
        let peer = Peer::from(CLIENTS + client);
        let of = (leaf, client);
        if !self.reports.contains_key(&of) {
            let hello = hello(HolderKind::Client, &format!("web-{leaf}-{client}"), 1);
            self.nodes[leaf].handle(self.now, DomainEvent::Opened { peer, hello });
        }
        let id = self.reports.entry(of).or_default();
        *id += 1;
        let (resource, version, id) = (resource(), self.version, *id);
        let report = DomainReport { resource, version, id, ask, below: None, domains };
        let report = Box::new(report);
        self.nodes[leaf].handle(self.now, DomainEvent::Reported { peer, report });
        self.pump();
    }

    fn pump(&mut self) {
        for _ in 0..MESSAGES {
            if !(0..3).any(|node| self.say(node)) {
                return;
            }
        }
        panic!("it does not come to an end");
    }

    /// The next thing that a node says goes where it belongs.
    fn say(&mut self, node: usize) -> bool {
        let Some(output) = self.nodes[node].poll(self.now, |_| true) else { return false };
        match output {
            DomainOutput::Report(report) => {
                self.said.push((node, report.clone()));
                let peer = Peer::from(self.stream(node));
                let report = Box::new(report);
                self.nodes[0].handle(self.now, DomainEvent::Reported { peer, report });
            }
            DomainOutput::News { peer, news } if node == 0 => {
                let leaf = if peer == Peer::from(self.stream(1)) { 1 } else { 2 };
                // It was said, and what it acknowledges was heard, when it was that much earlier.
                let earlier = |at: Time| Time::from_nanos(at.as_nanos() - self.slowness.as_nanos() as u64);
                let (now, heard_at) = (earlier(news.now), earlier(news.heard_at));
                let news = Box::new(DomainNews { now, heard_at, ..*news });
                self.nodes[leaf].handle(self.now, DomainEvent::Told { news });
            }
            DomainOutput::News { peer, news } => {
                let client = (0..9).find(|client| peer == Peer::from(CLIENTS + client)).expect("a client");
                self.told.push(((node, client), *news));
            }
        }
        true
    }

    fn later(&mut self, duration: Duration) {
        let end = self.now + duration;
        for _ in 0..MESSAGES {
            let due = self.nodes.iter().filter_map(DomainSync::next_deadline).min().unwrap_or(Time::MAX);
            if due > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(due);
            self.pump();
        }
        panic!("it is looked at too often");
    }

    /// Hits that count at each node.
    fn counted(&self) -> Vec<u32> {
        let counted = |node: &DomainSync| {
            let status = node.status(self.now, "db", 1)?;
            status.busiest.first().map(|row| row.hits_in_tier)
        };
        self.nodes.iter().map(|node| counted(node).unwrap_or(0)).collect()
    }

    /// The hits that a client knows of from what it was told since this was last asked.
    fn told(&mut self, leaf: usize, client: u64) -> u32 {
        let told = std::mem::take(&mut self.told);
        let (told, others): (Vec<_>, Vec<_>) = told.into_iter().partition(|(of, _)| *of == (leaf, client));
        self.told = others;
        told.iter().flat_map(|(_, news)| &news.domains).fold(0, |known, hits| {
            let told: u32 = hits.entries.iter().map(|entry| entry.hits).sum();
            if hits.all { told } else { known + told }
        })
    }
}

fn hello(kind: HolderKind, name: &str, incarnation: u64) -> Hello {
    Hello::new(kind, ClientId::new(name, 256).expect("a name"), Incarnation(incarnation))
}

/// Two clients below different leaves that have made four and three of ten hits.
fn heated() -> Tree {
    heat(Tree::of(10))
}

fn heat(mut tree: Tree) -> Tree {
    tree.hit(1, 0, true, 4);
    tree.hit(2, 0, true, 3);
    tree.later(Duration::from_millis(500));
    tree
}

#[test]
fn clients_of_different_leaves_are_told_what_the_others_did_and_nothing_is_told_back() {
    let mut tree = heated();
    assert_eq!(tree.counted(), [7, 7, 7]);
    assert_eq!((tree.told(1, 0), tree.told(2, 0)), (3, 4));
    let (before, census) = (tree.said.len(), Some(Census { clients: 1, nodes: 0 }));
    assert!(tree.said.iter().any(|(_, report)| report.below == census), "{:?}", tree.said);
    tree.hit(1, 0, false, 1);
    tree.later(Duration::from_millis(500));
    assert_eq!((tree.counted(), tree.told(1, 0), tree.told(2, 0)), (vec![8, 8, 8], 0, 1));
    let said: Vec<usize> = tree.said[before..].iter().map(|(leaf, _)| *leaf).collect();
    assert_eq!(said, [1], "who was told says nothing");
}

#[test]
fn a_client_that_says_everything_anew_is_counted_once_at_every_node() {
    let mut tree = heated();
    tree.hit(1, 0, true, 5);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [8, 8, 8]);
    tree.hit(2, 1, true, 1);
    tree.later(Duration::from_millis(500));
    assert_eq!((tree.counted(), tree.told(2, 1)), (vec![9, 9, 9], 8));
    assert!(tree.said.len() < 30, "it comes to rest: {}", tree.said.len());
}

#[test]
fn a_leaf_that_learns_that_hits_were_later_than_it_said_says_them_again() {
    let said = |tree: &mut Tree| -> Vec<(bool, u32, Time)> {
        let said = std::mem::take(&mut tree.said).into_iter().filter(|(leaf, _)| *leaf == 1);
        let hits = |hits: &DomainHits| {
            let sum = hits.entries.iter().map(|entry| entry.hits).sum();
            Some((hits.all, sum, hits.entries.first()?.at))
        };
        said.flat_map(|(_, report)| report.domains).filter_map(|domain| hits(&domain)).collect()
    };
    for (slowness, is_again) in [(Duration::from_secs(3), true), (Duration::from_millis(400), false)] {
        let mut tree = Tree::of(10);
        tree.later(Duration::from_secs(100));
        tree.slowness = slowness;
        tree.replace_leaf(1);
        let made = tree.now;
        let mut tree = heat(tree);
        let early = Time::from_nanos(made.as_nanos() - slowness.as_nanos() as u64);
        // The clocks may have drifted by a little.
        let near = |at: Time, of: Time| at <= of && of.since(at) < Duration::from_millis(10);
        let first = said(&mut tree);
        assert!(
            !first.is_empty() && first.iter().all(|&(all, hits, at)| all && hits == 4 && near(at, early))
        );
        tree.slowness = Duration::ZERO;
        tree.hit(1, 0, false, 1);
        tree.later(Duration::from_millis(500));
        let said = said(&mut tree);
        let again = said.iter().filter(|&&(all, hits, at)| all && hits == 5 && near(at, made));
        assert_eq!(again.count(), usize::from(is_again), "{said:?}");
        assert_eq!(tree.counted(), [8, 8, 8], "once each");
    }
}

#[test]
fn what_a_leaf_that_is_gone_had_said_does_not_count_beside_what_the_next_one_says() {
    let mut tree = heated();
    tree.replace_leaf(2);
    assert_eq!(tree.counted()[..2], [7, 7], "it counts until then");
    tree.hit(2, 0, true, 3);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [7, 7, 7]);
    tree.hit(2, 0, false, 2);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [9, 9, 9]);
}

#[test]
fn a_leaf_without_a_root_goes_on_with_what_it_knows() {
    let mut tree = heated();
    tree.nodes[1].handle(tree.now, DomainEvent::Attended { resource: resource(), stream: None });
    tree.said.clear();
    tree.hit(1, 0, false, 1);
    tree.later(Duration::from_millis(500));
    assert_eq!((tree.counted(), tree.said.len()), (vec![7, 8, 7], 0));
    let stream = Some(tree.stream(1));
    tree.nodes[1].handle(tree.now, DomainEvent::Attended { resource: resource(), stream });
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [8, 8, 8], "it says everything anew");
}

/// Both are of one line: what the next one says takes the place of what the one before had said, also while that seems to be
/// there.
#[test]
fn a_leaf_that_fails_over_in_its_line_is_counted_once_while_its_last_stream_is_still_there() {
    let mut tree = heat(Tree::in_lines(10, [None, None, Some(5)]));
    tree.succeed_leaf(2);
    tree.hit(2, 0, true, 3);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [7, 7, 7]);
    tree.hit(2, 0, false, 2);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [9, 9, 9]);
}

/// The root knows what the line had said, and the next leader hears that the domain is hot before any client has told it a word.
#[test]
fn a_leaf_that_fails_over_in_its_line_is_counted_once_where_its_clients_come_back_later() {
    let mut tree = heat(Tree::in_lines(10, [None, None, Some(5)]));
    tree.hit(2, 1, true, 2);
    tree.later(Duration::from_millis(500));
    tree.succeed_leaf(2);
    tree.ask(2, 2);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [9, 9, 0], "it counts until then");
    tree.hit(2, 0, true, 3);
    tree.later(Duration::from_millis(500));
    tree.hit(2, 1, true, 2);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [9, 9, 9]);
    assert_eq!((tree.told(1, 0), tree.told(2, 1)), (5, 7));
}

#[test]
fn a_leaf_that_hears_of_other_policies_after_the_root_says_everything_and_is_told_everything() {
    let mut tree = heated();
    tree.configure(0, 20);
    tree.hit(1, 0, false, 2);
    tree.later(Duration::from_secs(1));
    assert_eq!(tree.counted(), [7, 9, 7], "hits that are counted by other tiers are not taken up");
    tree.configure(2, 20);
    tree.version = policies(20).version();
    tree.hit(2, 0, false, 1);
    tree.later(Duration::from_secs(1));
    tree.configure(1, 20);
    tree.later(Duration::from_secs(1));
    assert_eq!(tree.counted(), [10, 10, 10]);
}

#[test]
fn a_leaf_with_other_policies_is_passed_over_until_they_agree_and_then_says_everything() {
    let mut tree = heated();
    tree.configure(1, 20);
    tree.version = policies(20).version();
    tree.hit(1, 0, false, 2);
    tree.later(Duration::from_secs(1));
    assert_eq!(tree.counted(), [7, 9, 7], "hits that are counted by other tiers are not taken up");
    tree.configure(0, 20);
    tree.configure(2, 20);
    tree.later(Duration::from_secs(1));
    assert_eq!(tree.counted(), [9, 9, 9]);
    tree.hit(2, 0, false, 1);
    tree.later(Duration::from_millis(500));
    assert_eq!(tree.counted(), [10, 10, 10]);
}
