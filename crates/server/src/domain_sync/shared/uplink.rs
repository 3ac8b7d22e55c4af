//! The way up: a node is a subscriber of the one above it, as its clients are its own.
//!
//! It says what those below it did, as one, and is told what others did. What came from above is never said up, and what
//! others below did is never told as come from above: both are parts of the domain's state, and each is told the others.
//!
//! The hits that the node above knows are of any leader of this node, also of an earlier one whose clients are back or not. So of each domain
//! everything is said first, which takes the place of that, and only then what is new.
//!
//! So long as a domain is not hot above, each of m nodes keeps to itself hits of up to 1/(4m) of the limit, and each of n
//! clients of up to 1/(4n), so that together less than half is kept back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_client::internals::domain::{DeltaStream, entry_at, is_marked, is_share, least_limit};
use lessor_proto::Time;
use lessor_proto::message::{
    Census, DomainEntry, DomainHits, DomainNews, DomainReport, MOST_DOMAINS, MOST_ENTRIES,
};

use super::SharedDomains;
use crate::domain_sync::origin::DeltaOrigin;
use crate::domain_sync::subscriber::PendingUpdate;
use crate::mutation::Rule;

/// The least time between two reports of what is not urgent.
const PACE: Duration = Duration::from_millis(50);

/// The subscription of a node at the one above: the hits that are said there, and those that it said.
#[derive(Clone, Debug, Default)]
pub(super) struct Uplink {
    /// The next report is to be acknowledged at once when it is the first of the stream, or below has changed.
    stream: DeltaStream,
    /// Holders below the one above; nobody as long as it is not heard.
    pub(super) census: Census,
    /// The census of those below that it was told.
    told_census: Census,
    pub(super) hot: BTreeSet<Arc<str>>,
    pending: BTreeMap<Arc<str>, PendingUpdate>,
    /// By which policies hits are counted above.
    version: u32,
    /// The number of times that what had been said before was not to be relied upon: on another stream, or by other policies.
    /// In each round the first that is said of a domain is everything, as it takes the place of that.
    round: u64,
}

// === impl Uplink ===

impl Uplink {
    /// When a report is to be made, if one is.
    pub(super) fn due(&self) -> Option<Time> {
        self.stream.next_deadline(!self.pending.is_empty(), PACE)
    }

    pub(super) fn is_heard(&self) -> bool {
        self.stream.has_begun()
    }

    pub(super) fn owe(&mut self, name: &Arc<str>, pending: PendingUpdate) {
        let owed = self.pending.entry(Arc::clone(name)).or_insert(pending);
        if pending == PendingUpdate::All {
            *owed = pending;
        }
    }

    /// Those below have said this of a domain, and `untold` hits that were not told above.
    pub(super) fn note(
        &mut self,
        name: &Arc<str>,
        contract: &Contract,
        entries: &[DomainEntry],
        untold: u32,
    ) {
        if !self.is_heard() {
            return;
        }
        let is_hot = self.hot.contains(name);
        let matters = |entry: &DomainEntry| is_hot && entry.is_entered || is_mark(contract, entry);
        let is_marked = entries.iter().any(matters);
        if is_marked {
            self.stream.hurry();
        }
        // What is hot above goes up round by round.
        let is_much = || is_share(untold, least_limit(contract), self.census.nodes.saturating_mul(2));
        if is_marked || !is_hot && is_much() {
            self.owe(name, PendingUpdate::Rest);
        }
    }
}

fn is_mark(contract: &Contract, entry: &DomainEntry) -> bool {
    entry_at(entry, entry.at).is_some_and(|entry| is_marked(contract, &entry))
}

// === impl SharedDomains ===

impl SharedDomains {
    /// That there are more below, or far fewer, is said at once.
    pub(super) fn say_census(&mut self) {
        let (below, told) = (self.below, self.uplink.told_census);
        let is_more = below.clients > told.clients || below.nodes > told.nodes;
        if self.uplink.is_heard() && (is_more || told.clients > below.clients.saturating_mul(4)) {
            self.uplink.stream.ask();
        }
    }

    /// From here on reports go up `stream`, if there is one, and news come down it. What was said on another is said again.
    pub(crate) fn attend(&mut self, stream: Option<u64>) {
        if self.uplink.stream.id() != stream {
            let round = self.uplink.round + 1;
            self.uplink = Uplink { stream: DeltaStream::on(stream), round, ..Uplink::default() };
            self.walks.end_anew();
        }
    }

    /// The report that is due above at `now`.
    pub(crate) fn report(&mut self, now: Time) -> Option<DomainReport> {
        self.uplink.due().filter(|at| *at <= now)?;
        let ask = self.uplink.stream.take_question()?;
        let mut domains = Vec::new();
        let mut entries = 0;
        while self.uplink.is_heard()
            && domains.len() < MOST_DOMAINS
            && entries < MOST_ENTRIES / 2
            && let Some((name, pending)) = self.uplink.pending.pop_first()
        {
            let hits = self.said_of(now, name, pending);
            entries += hits.as_ref().map_or(0, |hits| hits.entries.len());
            domains.extend(hits);
        }
        if domains.is_empty() && !ask {
            return None;
        }
        if !domains.is_empty() {
            let clocks = *self.uplink.stream.clocks();
            self.uplink.stream.placed(now, &clocks);
        }
        let census = self.below;
        self.uplink.told_census = census;
        let id = self.uplink.stream.sent(now);
        let (resource, version) = (self.resource.clone(), self.policies.version());
        Some(DomainReport { resource, version, id, ask, below: Some(census), domains })
    }

    /// Takes up the hits of others, as the node above tells them.
    pub(crate) fn learn(&mut self, now: Time, news: &DomainNews) {
        let uplink = &mut self.uplink;
        if !uplink.stream.on_update(now, news) {
            return;
        }
        uplink.census = Census { clients: news.members, nodes: news.nodes.max(1) };
        let is_ours = news.version == self.policies.version();
        if news.begins {
            uplink.hot.clear();
        }
        let is_misplaced = uplink.stream.take_misplaced(now);
        let is_anew = news.begins || is_ours && uplink.version != news.version || is_misplaced;
        uplink.version = news.version;
        if is_anew {
            self.begin_anew(now);
        }
        for name in &news.hot {
            self.uplink.hot.insert(Arc::clone(name));
            self.uplink.owe(name, PendingUpdate::All);
            if !self.hot.contains(name) {
                self.make_hot(now, name);
            }
        }
        for name in &news.calm {
            self.uplink.hot.remove(name);
        }
        if is_ours {
            news.domains.iter().for_each(|hits| self.learn_of(now, hits));
        }
    }

    /// Everything is to be said anew: what was said before was said to others, or by other policies.
    pub(super) fn begin_anew(&mut self, now: Time) {
        if self.rules.keep(Rule::SaidAnew) {
            self.uplink.round += 1;
            self.walks.begin_anew(now);
        }
    }

    /// The hits of one domain that are said above.
    fn said_of(&mut self, now: Time, name: Arc<str>, pending: PendingUpdate) -> Option<DomainHits> {
        let state = self.domains.get_mut(&name).filter(|state| state.users_below() > 0)?;
        let round = self.uplink.round;
        let is_first = state.said_above != Some(round) && self.rules.keep(Rule::AllSaidFirst);
        // Rounds are kept of what is hot.
        let is_rest = self.hot.contains(&name) && !is_first;
        let pending = if is_rest { pending } else { PendingUpdate::All };
        state.said_above = Some(round);
        state.open_above();
        state.rounds.close();
        let mut hits = state.hits_for(now, name, &DeltaOrigin::Above, pending)?;
        hits.others = 0;
        state.untold = 0;
        let clocks = self.uplink.stream.clocks();
        hits.entries.retain_mut(|entry| match clocks.there(now, entry.at) {
            Some(at) => {
                entry.at = at;
                true
            }
            None => false,
        });
        Some(hits)
    }

    /// Takes up the hits of others with one domain.
    fn learn_of(&mut self, now: Time, hits: &DomainHits) {
        let clocks = self.uplink.stream.clocks();
        let here = |entry: &DomainEntry| Some(DomainEntry { at: clocks.here(now, entry.at)?, ..*entry });
        let entries: Vec<DomainEntry> = hits.entries.iter().filter_map(here).collect();
        let (name, all, others) = (Arc::clone(&hits.domain), hits.all, hits.others);
        let hits = DomainHits { domain: Arc::clone(&name), all, others, entries };
        if !self.rules.keep(Rule::ToldBelow) {
            return;
        }
        self.take(now, None, &DeltaOrigin::Above, hits);
        if let Some(state) = self.domains.get_mut(&name) {
            state.others_above = others as usize;
        }
    }
}
