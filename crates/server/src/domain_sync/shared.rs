//! The domains of one resource that clients share.

mod rehearsal;
mod status;
mod uplink;
mod walks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_client::internals::domain::{Policies, Rule, UNREACHABLE_AFTER};
use lessor_proto::message::{
    Census, DomainHits, DomainNews, DomainReport, Hello, HolderKind, MOST_DOMAINS, MOST_ENTRIES,
};
use lessor_proto::{ResourceId, Time};

use self::uplink::Uplink;
use self::walks::{SWEEP, Walks};
use super::hot_set::HotSet;
use super::marking::Marking;
use super::origin::DeltaOrigin;
use super::state::DomainState;
use super::subscriber::{PendingUpdate, Subscriber};
use super::subscribers::Subscribers;
use crate::mutation::{self, Rules};
use crate::streams::Peer;

pub use self::rehearsal::RehearsedDomain;
pub use self::status::{DomainStatus, DomainTierStatus, DomainsStatus};
pub(super) use self::walks::SLICE;

/// The most domains of a resource that are told of; more are left to each client alone.
const MOST_TOLD: usize = 100_000;
/// The most of them that may be hot.
const MOST_HOT: usize = 10_000;
/// The time for which news waits for other news to go along with it.
const PACE: Duration = Duration::from_millis(50);
/// As long for each subscriber waits what all of them are told.
const PER_MEMBER: Duration = Duration::from_micros(100);
/// With so many that use a domain, news that cannot wait do so for as long as it takes to tell all.
const CROWD: usize = 64;
/// The time to tell one of them.
const PER_USER: Duration = Duration::from_micros(20);
/// The interval at which those who serve a hot domain hear something, so that they know that somebody is there.
const TICK: Duration = Duration::from_millis(250);

const _: () = assert!(TICK.as_nanos() * 4 <= UNREACHABLE_AFTER.as_nanos());

/// The hits that the clients of one resource tell each other.
#[derive(Clone, Debug)]
pub(crate) struct SharedDomains {
    resource: ResourceId,
    policies: Arc<Policies>,
    /// The subscription at the node above.
    uplink: Uplink,
    /// All that members stand for.
    below: Census,
    domains: BTreeMap<Arc<str>, DomainState>,
    pub(super) hot: BTreeSet<Arc<str>>,
    hot_set: HotSet,
    members: Subscribers,
    /// Of which domains those that use them are to be told when.
    rounds: BTreeSet<(Time, Arc<str>)>,
    /// The walks through many that go on, or are due.
    walks: Walks,
    rules: Rules,
    /// Reports that were passed over because there were too many domains.
    passed_over: u64,
}

// === impl SharedDomains ===

impl SharedDomains {
    pub(crate) fn new(
        now: Time,
        resource: ResourceId,
        policies: Arc<Policies>,
        rules: Rules,
    ) -> SharedDomains {
        SharedDomains {
            resource,
            policies,
            uplink: Uplink::default(),
            below: Census::default(),
            domains: BTreeMap::new(),
            hot: BTreeSet::new(),
            hot_set: HotSet::default(),
            members: Subscribers::default(),
            rounds: BTreeSet::new(),
            walks: Walks::from(now + SWEEP),
            rules,
            passed_over: 0,
        }
    }

    /// Other policies are in force. Histories keep what the tiers have in common.
    pub(crate) fn follow(&mut self, now: Time, policies: Arc<Policies>) {
        self.policies = policies;
        let policies = &self.policies;
        let hot = &self.hot;
        self.domains.retain(|name, state| match policies.rule(name) {
            Rule::Contract(contract) => {
                state.follow(now, &contract, hot.contains(name));
                true
            }
            Rule::Unconfigured | Rule::Ignored | Rule::Refused => false,
        });
        let gone: Vec<Arc<str>> =
            self.hot.iter().filter(|name| !self.domains.contains_key(*name)).cloned().collect();
        gone.iter().for_each(|name| self.set_hot(now, name, false));
        let hot: Vec<Arc<str>> = self.hot.iter().cloned().collect();
        hot.iter().for_each(|name| self.expect(name, now));
        self.hear_anew(now);
        // What was said above by others is not taken up there, and what came from there was not here.
        if self.uplink.is_heard() {
            self.begin_anew(now);
        }
    }

    /// A member that spoke by the policies that are in force from here on, before they were, was not understood: it begins anew.
    fn hear_anew(&mut self, now: Time) {
        if !self.rules.keep(mutation::Rule::PassedOverAnew) {
            return;
        }
        let version = self.policies.version();
        let mut concerned = Vec::new();
        for (peer, member) in self.members.iter_mut() {
            if member.passed_over == Some(version) {
                member.begin_anew();
                concerned.push(peer);
            }
        }
        concerned.into_iter().for_each(|peer| self.schedule(peer, now));
    }

    /// A client that listens on `peer` says what its domains did.
    pub(crate) fn hear(&mut self, now: Time, peer: Peer, hello: &Hello, report: DomainReport) {
        let line = hello.line.filter(|_| hello.kind == HolderKind::Node);
        let origin =
            DeltaOrigin::Below(hello.kind, hello.holder.clone(), line.unwrap_or(hello.incarnation.0));
        let census = match (hello.kind, report.below) {
            (HolderKind::Client, _) => Census { clients: 1, nodes: 0 },
            (HolderKind::Node, below) => {
                let Census { clients, nodes } = below.unwrap_or_default();
                Census { clients, nodes: nodes.saturating_add(1) }
            }
        };
        // Nothing overtakes on a stream: lower numbers are of who begins again, and knows nothing of what was told before.
        if self.members.get(peer).is_some_and(|member| report.id <= member.heard) {
            self.leave(peer);
        }
        self.members.join(now, peer, &origin);
        let Some(member) = self.members.get_mut(peer) else { return };
        (member.heard, member.heard_at) = (report.id, now);
        let before = std::mem::replace(&mut member.census, census);
        self.below = added(less(self.below, before), census);
        if report.version == self.policies.version() {
            for hits in report.domains {
                self.take(now, Some(peer), &origin, hits);
            }
        } else if !report.domains.is_empty() {
            member.passed_over = Some(report.version);
        }
        if report.ask {
            self.tell_known(peer);
            self.schedule(peer, now);
        }
    }

    /// Nobody listens on `peer` any more. What was said there still counts.
    pub(crate) fn leave(&mut self, peer: Peer) {
        if let Some(member) = self.members.leave(peer) {
            self.below = less(self.below, member.census);
        }
    }

    /// When there is something to tell or to look at.
    pub(crate) fn wake(&self) -> Option<Time> {
        let is_any = !self.domains.is_empty() || !self.members.is_empty();
        let walk = if is_any { Some(self.walks.due()) } else { None };
        let due = self.members.next_deadline();
        let round = self.rounds.first().map(|&(at, _)| at);
        due.into_iter().chain(walk).chain(round).chain(self.hot_set.due()).chain(self.uplink.due()).min()
    }

    /// The next one who is to be told something; the caller either tells it or puts it off.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Peer> {
        self.members.next_due(now)
    }

    /// The stream of `peer` takes nothing now. What is to be told is kept until [`SharedDomains::resume`].
    pub(crate) fn put_off(&mut self, peer: Peer) {
        if let Some(member) = self.members.get_mut(peer) {
            member.is_put_off = true;
        }
    }

    /// The stream of `peer` takes something again.
    pub(crate) fn resume(&mut self, now: Time, peer: Peer) {
        let member = self.members.get_mut(peer);
        if member.is_some_and(|member| std::mem::take(&mut member.is_put_off)) {
            self.schedule(peer, now);
        }
    }

    /// Returns the news for `peer`: everything, or as much as goes into a message, and the rest soon.
    pub(crate) fn news(&mut self, now: Time, peer: Peer) -> Option<DomainNews> {
        let all = self.all();
        let member = self.members.get_mut(peer)?;
        let count = count_for(member, all);
        self.hot_set.catch_up(member, &self.hot);
        let mut news = DomainNews {
            resource: self.resource.clone(),
            version: self.policies.version(),
            now,
            heard: if self.rules.keep(mutation::Rule::DomainAck) { member.heard } else { 0 },
            heard_at: member.heard_at,
            members: count,
            nodes: all.nodes,
            begins: std::mem::take(&mut member.begins),
            hot: Vec::new(),
            calm: Vec::new(),
            domains: Vec::new(),
        };
        member.told_members = count;
        if news.begins {
            member.serves.retain(|name| self.hot.contains(name));
        }
        while news.hot.len() + news.calm.len() < MOST_DOMAINS
            && let Some((name, is_hot)) = member.hot.changes.pop_first()
        {
            match is_hot {
                true => news.hot.push(name),
                false => {
                    member.serves.remove(&name);
                    news.calm.push(name);
                }
            }
        }
        let mut entries = 0;
        while entries < MOST_ENTRIES / 2
            && news.domains.len() < MOST_DOMAINS
            && let Some((name, pending)) = member.pending.pop_first()
        {
            let Some(state) = self.domains.get_mut(&name) else { continue };
            let Some(hits) = state.hits_for(now, name, &member.origin, pending) else { continue };
            entries += hits.entries.len();
            news.domains.push(hits);
        }
        let next = match (member.has_news(), !member.serves.is_empty()) {
            (true, _) => Some(now),
            (false, true) => Some(now + TICK),
            (false, false) => None,
        };
        if let Some(at) = next {
            self.schedule(peer, at);
        }
        Some(news)
    }

    /// Takes up the hits that one client says of one domain.
    fn take(&mut self, now: Time, peer: Option<Peer>, origin: &DeltaOrigin, hits: DomainHits) {
        let name = hits.domain;
        if !self.domains.contains_key(&name) {
            let is_full = self.domains.len() >= MOST_TOLD;
            let Some(contract) = self.contract(&name) else { return };
            if is_full {
                self.passed_over += 1;
                return;
            }
            self.domains.insert(Arc::clone(&name), DomainState::new(now, contract, self.rules));
        }
        let is_hot = self.hot.contains(&name);
        let state = self.domains.get_mut(&name).expect("it has just been made");
        if hits.all {
            state.succeed(origin, |other| self.members.of(other).is_some());
        }
        let taken = state.take(now, origin, (hits.all, is_hot), &hits.entries);
        if *origin != DeltaOrigin::Above {
            self.uplink.note(&name, &state.contract, &hits.entries, state.untold);
        }
        if is_hot {
            let crowd = if state.users() < CROWD { 0 } else { state.users() };
            let soon = state.schedule.told_at + PER_USER * u32::try_from(crowd).unwrap_or(u32::MAX);
            let at = if taken.is_entered { soon.max(now) } else { now + PACE };
            self.expect(&name, at);
            if let Some(peer) = peer.filter(|_| taken.is_new || hits.all) {
                self.tell_all(now, peer, &name);
            }
        } else if taken.is_replaced || state.is_left_to_walk() {
            // To add up what all did takes long, so that is not done for each that says everything anew.
            self.expect(&name, now + PACE);
        } else if state.is_warm(now) && self.hot.len() < MOST_HOT {
            self.set_hot(now, &name, true);
        }
    }

    /// A domain is hot above.
    fn make_hot(&mut self, now: Time, name: &Arc<str>) {
        if self.hot.len() < MOST_HOT {
            self.set_hot(now, name, true);
        }
    }

    /// Those who tell each other, here or in all of the tree as far as that is known. Rather too many: who knows of fewer than
    /// there are keeps too much to itself.
    fn all(&self) -> Census {
        let above = self.uplink.census;
        let clients = self.below.clients.max(above.clients).max(1).next_power_of_two();
        Census { clients, nodes: self.below.nodes.max(above.nodes) }
    }

    /// `peer` asks what is known: it is told what others said a moment ago as well.
    fn tell_known(&mut self, peer: Peer) {
        let Some(member) = self.members.get_mut(peer) else { return };
        for name in &member.serves {
            if let Some(state) = self.domains.get_mut(name).filter(|state| state.schedule.is_due()) {
                state.rounds.close();
                if state.has_news(&member.origin) {
                    member.pending.entry(Arc::clone(name)).or_insert(PendingUpdate::Rest);
                }
            }
        }
    }

    /// `peer` serves a hot domain, and is told at once what the others did.
    fn tell_all(&mut self, now: Time, peer: Peer, name: &Arc<str>) {
        if let Some(member) = self.members.get_mut(peer) {
            member.owe_all(name);
            self.schedule(peer, now);
        }
    }

    /// A domain is hot from here on, or not any more: all are told, and those who serve it what the others did.
    fn set_hot(&mut self, now: Time, name: &Arc<str>, is_hot: bool) {
        match is_hot {
            true => self.hot.insert(Arc::clone(name)),
            false => self.hot.remove(name),
        };
        // Telling all of many takes long, and of many each keeps so little to itself that it is not urgent.
        let members = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.hot_set.note(name, is_hot, now + PACE.max(PER_MEMBER * members));
        if let Some(state) = self.domains.get_mut(name) {
            state.rounds.clear();
            state.rounds.close();
            state.schedule.set_walk(is_hot.then_some(Marking { is_all: true, after: None }));
        }
        if is_hot {
            self.begin_walk(now, name);
        }
    }

    /// `peer` is told something at that time, if not before.
    fn schedule(&mut self, peer: Peer, at: Time) {
        self.members.schedule(peer, at);
    }

    fn contract(&self, name: &str) -> Option<Arc<Contract>> {
        match self.policies.rule(name) {
            Rule::Contract(contract) => Some(contract),
            Rule::Unconfigured | Rule::Ignored | Rule::Refused => None,
        }
    }
}

/// The number of those that tell each other, as `member` is told: twice as many where nodes keep something to
/// themselves as well.
fn count_for(member: &Subscriber, all: Census) -> u32 {
    let is_shared = all.nodes > 0 && !member.is_node();
    all.clients.saturating_mul(if is_shared { 2 } else { 1 })
}

fn added(one: Census, other: Census) -> Census {
    Census {
        clients: one.clients.saturating_add(other.clients),
        nodes: one.nodes.saturating_add(other.nodes),
    }
}

fn less(one: Census, other: Census) -> Census {
    Census {
        clients: one.clients.saturating_sub(other.clients),
        nodes: one.nodes.saturating_sub(other.nodes),
    }
}
