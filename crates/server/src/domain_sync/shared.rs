//! The domains of one resource that clients share.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_client::domain::{HEARING, Policies, Rule};
use lessor_proto::message::{DomainHits, DomainNews, DomainReport, Hello, MOST_DOMAINS, MOST_ENTRIES};
use lessor_proto::{ClientId, ResourceId, Time};

use super::heat::Heat;
use super::state::{DomainState, Taken};
use super::subscriber::Subscriber;
use crate::node::Peer;

/// The most domains of a resource that are told of; more are left to each client alone.
const MOST_TOLD: usize = 100_000;
/// The most of them that may be hot.
const MOST_HOT: usize = 10_000;
/// So long news wait for others that go along.
const PACE: Duration = Duration::from_millis(50);
/// As long for each member waits what all members are told.
const PER_MEMBER: Duration = Duration::from_micros(100);
/// How often those who serve a hot domain hear something, so that they know that somebody is there.
const TICK: Duration = Duration::from_millis(250);
/// How often it is looked at what has cooled down.
const SWEEP: Duration = Duration::from_secs(1);
/// Domains looked at in a sweep.
const SWEPT: usize = 4_096;

const _: () = assert!(TICK.as_nanos() * 4 <= HEARING.as_nanos());

/// One life of one client.
pub(super) type Origin = (ClientId, u64);

/// What the clients of one resource tell each other.
#[derive(Clone, Debug)]
pub(crate) struct SharedDomains {
    resource: ResourceId,
    policies: Arc<Policies>,
    pub(super) domains: BTreeMap<Arc<str>, DomainState>,
    pub(super) hot: BTreeSet<Arc<str>>,
    heat: Heat,
    pub(super) members: BTreeMap<Peer, Subscriber>,
    by_origin: BTreeMap<Origin, Peer>,
    /// Who is to be told something when.
    due: BTreeSet<(Time, Peer)>,
    next_sweep: Time,
    /// Where the next sweep goes on.
    swept: Option<Arc<str>>,
    /// Reports that were passed over because there were too many domains.
    pub(super) passed_over: u64,
}

// === impl SharedDomains ===

impl SharedDomains {
    pub(crate) fn new(now: Time, resource: ResourceId, policies: Arc<Policies>) -> SharedDomains {
        SharedDomains {
            resource,
            policies,
            domains: BTreeMap::new(),
            hot: BTreeSet::new(),
            heat: Heat::default(),
            members: BTreeMap::new(),
            by_origin: BTreeMap::new(),
            due: BTreeSet::new(),
            next_sweep: now + SWEEP,
            swept: None,
            passed_over: 0,
        }
    }

    /// Other policies are in force. Histories keep what the tiers have in common.
    pub(crate) fn follow(&mut self, now: Time, policies: Arc<Policies>) {
        self.policies = policies;
        let policies = &self.policies;
        self.domains.retain(|name, state| match policies.rule(name) {
            Rule::Contract(contract) => {
                state.follow(now, &contract);
                true
            }
            Rule::Unconfigured | Rule::Ignored | Rule::Refused => false,
        });
        let gone: Vec<Arc<str>> =
            self.hot.iter().filter(|name| !self.domains.contains_key(*name)).cloned().collect();
        gone.iter().for_each(|name| self.set_heat(now, name, false));
        self.members.values_mut().for_each(Subscriber::owe_by_others);
    }

    /// A client that listens on `peer` says what its domains did.
    pub(crate) fn hear(&mut self, now: Time, peer: Peer, hello: &Hello, report: DomainReport) {
        let origin = (hello.holder.clone(), hello.incarnation);
        // Nothing overtakes on a stream: lower numbers are of who begins again, and knows nothing of what was told before.
        if self.members.get(&peer).is_some_and(|member| report.id <= member.heard) {
            self.leave(peer);
        }
        self.join(now, peer, &origin);
        let Some(member) = self.members.get_mut(&peer) else { return };
        (member.heard, member.heard_at) = (report.id, now);
        if report.version == self.policies.version() {
            for hits in report.domains {
                self.take(now, peer, &origin, hits);
            }
        }
        if report.ask {
            self.schedule(peer, now);
        }
    }

    /// Nobody listens on `peer` any more. What was said there still counts.
    pub(crate) fn leave(&mut self, peer: Peer) {
        let Some(member) = self.members.remove(&peer) else { return };
        if let Some(at) = member.due {
            self.due.remove(&(at, peer));
        }
        if self.by_origin.get(&member.origin) == Some(&peer) {
            self.by_origin.remove(&member.origin);
        }
    }

    /// When there is something to tell or to look at.
    pub(crate) fn wake(&self) -> Option<Time> {
        let sweep = (!self.domains.is_empty() || !self.members.is_empty()).then_some(self.next_sweep);
        let due = self.due.first().map(|&(at, _)| at);
        due.into_iter().chain(sweep).chain(self.heat.due()).min()
    }

    /// Lets cool down what has, and forgets what is over.
    pub(crate) fn advance(&mut self, now: Time) {
        if self.heat.is_due(now) {
            let behind =
                |(&peer, member): (&Peer, &Subscriber)| (!self.heat.is_known(member)).then_some(peer);
            let behind: Vec<Peer> = self.members.iter().filter_map(behind).collect();
            behind.into_iter().for_each(|peer| self.schedule(peer, now));
        }
        if now < self.next_sweep {
            return;
        }
        self.next_sweep = now + SWEEP;
        let is_calm = |name: &Arc<str>| self.domains.get(name).is_none_or(|state| state.is_calm(now));
        let calm: Vec<Arc<str>> = self.hot.iter().filter(|&name| is_calm(name)).cloned().collect();
        calm.iter().for_each(|name| self.set_heat(now, name, false));
        self.sweep(now);
        self.look_after_members(now);
    }

    /// The next one who is to be told something; the caller either tells it or puts it off.
    pub(crate) fn next_due(&mut self, now: Time) -> Option<Peer> {
        let &(at, peer) = self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&(at, peer));
        self.members.get_mut(&peer)?.due = None;
        Some(peer)
    }

    /// The stream of `peer` takes nothing now. What is to be told is kept until [`SharedDomains::resume`].
    pub(crate) fn put_off(&mut self, peer: Peer) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.is_put_off = true;
        }
    }

    /// The stream of `peer` takes something again.
    pub(crate) fn resume(&mut self, now: Time, peer: Peer) {
        let member = self.members.get_mut(&peer);
        if member.is_some_and(|member| std::mem::take(&mut member.is_put_off)) {
            self.schedule(peer, now);
        }
    }

    /// What is to be told to `peer`: everything, or as much as goes into a message, and the rest soon.
    pub(crate) fn news(&mut self, now: Time, peer: Peer) -> Option<DomainNews> {
        // Rather too many: who knows of fewer than there are keeps too much to itself.
        let count = self.members.len().next_power_of_two();
        let member = self.members.get_mut(&peer)?;
        self.heat.catch_up(member, &self.hot);
        let mut news = DomainNews {
            resource: self.resource.clone(),
            version: self.policies.version(),
            now,
            heard: member.heard,
            heard_at: member.heard_at,
            members: u32::try_from(count).unwrap_or(u32::MAX),
            begins: std::mem::take(&mut member.begins),
            hot: Vec::new(),
            calm: Vec::new(),
            domains: Vec::new(),
        };
        member.told_members = count;
        while news.hot.len() + news.calm.len() < MOST_DOMAINS
            && let Some((name, is_hot)) = member.heat.pop_first()
        {
            if is_hot { news.hot.push(name) } else { news.calm.push(name) }
        }
        let mut entries = 0;
        while entries < MOST_ENTRIES / 2
            && news.domains.len() < MOST_DOMAINS
            && let Some((name, pending)) = member.pending.pop_first()
        {
            let Some(state) = self.domains.get(&name) else { continue };
            let hits = state.hits_for(now, name, &member.origin, pending);
            entries += hits.entries.len();
            news.domains.push(hits);
        }
        let next = match (member.has_news(), member.takes_part) {
            (true, _) => Some(now),
            (false, true) => Some(now + TICK),
            (false, false) => None,
        };
        if let Some(at) = next {
            self.schedule(peer, at);
        }
        Some(news)
    }

    fn join(&mut self, now: Time, peer: Peer, origin: &Origin) {
        if self.members.contains_key(&peer) {
            return;
        }
        self.members.insert(peer, Subscriber::new(now, origin.clone()));
        self.by_origin.insert(origin.clone(), peer);
    }

    /// What one client says of one domain.
    fn take(&mut self, now: Time, peer: Peer, origin: &Origin, hits: DomainHits) {
        let name = hits.domain;
        if !self.domains.contains_key(&name) {
            let is_full = self.domains.len() >= MOST_TOLD;
            let Some(contract) = self.contract(&name) else { return };
            if is_full {
                self.passed_over += 1;
                return;
            }
            self.domains.insert(Arc::clone(&name), DomainState::new(contract));
        }
        let state = self.domains.get_mut(&name).expect("it has just been made");
        let taken = state.take(now, origin, hits.all, &hits.entries);
        let (is_warm, is_hot) = (state.is_warm(now), self.hot.contains(&name));
        if is_hot {
            self.pass_on(now, &name, origin, &taken);
            if taken.is_new || hits.all {
                self.tell_all(now, peer, &name);
            }
        } else if is_warm && self.hot.len() < MOST_HOT {
            self.set_heat(now, &name, true);
        }
    }

    /// A hot domain has made hits at `origin`: the others that serve it are told.
    fn pass_on(&mut self, now: Time, name: &Arc<str>, origin: &Origin, taken: &Taken) {
        let Some(state) = self.domains.get(name) else { return };
        let peers: Vec<Peer> = state
            .origins()
            .filter(|&other| other != origin)
            .filter_map(|other| self.by_origin.get(other).copied())
            .collect();
        let at = if taken.is_entered { now } else { now + PACE };
        for peer in peers {
            if let Some(member) = self.members.get_mut(&peer) {
                match taken.is_replaced {
                    true => member.owe_all(name),
                    false => member.owe(name, &taken.entries),
                }
                self.schedule(peer, at);
            }
        }
    }

    /// `peer` serves a hot domain, and is told at once what the others did.
    fn tell_all(&mut self, now: Time, peer: Peer, name: &Arc<str>) {
        if let Some(member) = self.members.get_mut(&peer) {
            member.owe_all(name);
            member.takes_part = true;
            self.schedule(peer, now);
        }
    }

    /// A domain is hot from here on, or not any more: all are told, and those who serve it what the others did.
    fn set_heat(&mut self, now: Time, name: &Arc<str>, is_hot: bool) {
        match is_hot {
            true => self.hot.insert(Arc::clone(name)),
            false => self.hot.remove(name),
        };
        // Telling all of many takes long, and of many each keeps so little to itself that it is not urgent.
        let members = u32::try_from(self.members.len()).unwrap_or(u32::MAX);
        self.heat.note(name, is_hot, now + PACE.max(PER_MEMBER * members));
        if !is_hot {
            return;
        }
        let Some(state) = self.domains.get(name) else { return };
        let serving: Vec<Peer> =
            state.origins().filter_map(|origin| self.by_origin.get(origin).copied()).collect();
        for peer in serving {
            self.tell_all(now, peer, name);
        }
    }

    /// Some of the domains, in their order: whoever has not used them for long enough is forgotten.
    fn sweep(&mut self, now: Time) {
        let from = match &self.swept {
            None => Bound::Unbounded,
            Some(name) => Bound::Excluded(Arc::clone(name)),
        };
        let mut idle = Vec::new();
        let mut last = None;
        for (name, state) in self.domains.range_mut((from, Bound::Unbounded)).take(SWEPT) {
            // Who serves a hot one is to go on hearing of it.
            let is_hot = self.hot.contains(name);
            state.rest(now, |origin| is_hot && self.by_origin.contains_key(origin));
            if state.is_idle() {
                idle.push(Arc::clone(name));
            }
            last = Some(Arc::clone(name));
        }
        self.swept = last;
        for name in idle {
            self.domains.remove(&name);
            if self.hot.contains(&name) {
                self.set_heat(now, &name, false);
            }
        }
    }

    /// Who serves a hot domain has to hear something now and then; and all hear how many they are when that has changed
    /// much.
    fn look_after_members(&mut self, now: Time) {
        let states = self.hot.iter().filter_map(|name| self.domains.get(name));
        let serving: BTreeSet<Peer> = states
            .flat_map(DomainState::origins)
            .filter_map(|origin| self.by_origin.get(origin).copied())
            .collect();
        let count = self.members.len();
        let mut due = Vec::new();
        for (&peer, member) in &mut self.members {
            member.takes_part = serving.contains(&peer);
            let is_news = count > member.told_members || member.told_members > count * 4;
            if member.due.is_none() && (member.takes_part || is_news) {
                due.push(peer);
            }
        }
        due.into_iter().for_each(|peer| self.schedule(peer, now + PACE));
    }

    /// `peer` is told something at that time, if not before.
    fn schedule(&mut self, peer: Peer, at: Time) {
        let Some(member) = self.members.get_mut(&peer) else { return };
        if member.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = member.due.replace(at) {
            self.due.remove(&(due, peer));
        }
        self.due.insert((at, peer));
    }

    fn contract(&self, name: &str) -> Option<Arc<Contract>> {
        match self.policies.rule(name) {
            Rule::Contract(contract) => Some(contract),
            Rule::Unconfigured | Rule::Ignored | Rule::Refused => None,
        }
    }
}
