//! Scope `shared`: clients tell each other what domains do, through the server to which they have a stream.
//!
//! Each client decides by itself, on its own hits and on those of others that it was told of. What it knows is never more
//! than what was done, so as far as one tier and the hard limit go, what it refuses would be refused by whoever knew
//! everything. Only a tier that others have entered may allow more than is known here; so entering a tier is told at once,
//! and who can wait [asks](Domains::ask) before it is refused.
//!
//! Most domains are far from every limit, and of those next to nothing is told. Each of n clients keeps to itself hits of up to
//! 1/(2n) of the limit, so that together they keep back less than half of it. From the rest the server sees when a domain
//! has used up half. Then the domain is *hot*: all clients tell everything of it at short intervals, and those that use it
//! are told what the others did.
//!
//! Times travel on the server's clock, and are rather too early than too late (see `clocks.rs`): a hit of another client
//! ceases to count up to a round trip too soon, and never too late.
//!
//! When a stream ends, what is known stays. On the next one everything is told again, and what is told from there replaces
//! what others had told before.

use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lessor_algorithms::tiers::{MergeEntry, TierState};
use lessor_proto::message::{
    DomainEntry, DomainHits, DomainNews, DomainReport, LONGEST_DOMAIN, MOST_DOMAINS, MOST_ENTRIES,
};
use lessor_proto::{ResourceId, Time};

use super::clocks::{Clocks, Unconfirmed};
use super::policies::Scope;
use super::shard::Record;
use super::sharing::is_share;
use super::store::{Domains, lock};
use super::telling::Telling;
use super::wire::{entry_at, told_at};

/// The interval at which hits of hot domains are told.
pub const CADENCE: Duration = Duration::from_millis(100);
/// The least time between two reports, however many questions there are.
const PAUSE: Duration = Duration::from_millis(5);
/// Without news for longer than this others are out of hearing; the server has some four times as often.
pub const HEARING: Duration = Duration::from_secs(1);

/// The exchange between the clients of a resource.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The number of clients that tell each other; 0 as long as there is no hearing.
    members: AtomicU32,
    /// Set when [`Domains::tell_at`] becomes earlier.
    is_called: AtomicBool,
    /// When news came last, in nanoseconds.
    pub(super) news_at: AtomicU64,
    talk: Mutex<Talk>,
}

/// The state of the exchange on a stream.
#[derive(Debug, Default)]
pub(super) struct Talk {
    stream: Option<u64>,
    /// Something was heard that answers what was told since the stream is attended to.
    has_begun: bool,
    clocks: Clocks,
    unconfirmed: Unconfirmed,
    /// The number of the last report.
    last: u64,
    /// The last report that the server has taken up.
    heard: u64,
    /// The next report is to be answered at once.
    asks: bool,
    /// The next report is to be sent at once.
    is_urgent: bool,
    told_at: Option<Time>,
    /// The domains that have something to tell, each once.
    listed: VecDeque<Arc<str>>,
    pub(super) hot: BTreeSet<Arc<str>>,
    waiting: Vec<Waker>,
}

/// Resolves when the server has answered a report, and never if the stream ends before that.
#[derive(Debug)]
pub(crate) struct Heard<'a> {
    exchange: &'a Exchange,
    id: u64,
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new() -> Exchange {
        Exchange {
            members: AtomicU32::new(0),
            is_called: AtomicBool::new(false),
            news_at: AtomicU64::new(0),
            talk: Mutex::default(),
        }
    }

    pub(super) fn talk(&self) -> MutexGuard<'_, Talk> {
        lock(&self.talk)
    }

    pub(super) fn members(&self) -> u32 {
        self.members.load(Ordering::Relaxed)
    }

    /// Puts a domain on the list of those who have something to tell.
    pub(super) fn list(&self, record: &mut Record, is_urgent: bool) {
        let Some(telling) = &mut record.telling else { return };
        let mut talk = self.talk();
        let is_listed = std::mem::replace(&mut telling.is_listed, true);
        let is_first = talk.listed.is_empty();
        if !is_listed {
            talk.listed.push_back(Arc::from(record.name.as_str()));
        }
        if is_first || is_urgent && !talk.is_urgent {
            self.is_called.store(true, Ordering::Release);
        }
        talk.is_urgent |= is_urgent;
    }
}

// === impl Domains ===

impl Domains {
    /// From here on reports go up `stream`, if there is one, and news come down it. What was told on another one is told again.
    pub fn attend(&self, stream: Option<u64>) {
        let stream = stream.filter(|_| self.scope() == Scope::Shared);
        let mut talk = self.exchange.talk();
        if talk.stream == stream {
            return;
        }
        self.exchange.members.store(0, Ordering::Relaxed);
        let (listed, waiting) = (std::mem::take(&mut talk.listed), std::mem::take(&mut talk.waiting));
        *talk = Talk { stream, listed, asks: stream.is_some(), ..Talk::default() };
        drop(talk);
        // Who waits for an answer that will not come finds out that nobody is heard.
        waiting.into_iter().for_each(Waker::wake);
    }

    /// When to [`Domains::tell`], if anything is to be told.
    #[must_use]
    pub fn tell_at(&self) -> Option<Time> {
        let talk = self.exchange.talk();
        talk.stream?;
        let after = |pause| talk.told_at.map_or(Time::ZERO, |at| at + pause);
        if talk.asks || talk.is_urgent {
            return Some(after(PAUSE));
        }
        let is_known = talk.clocks.there(Time::ZERO, Time::ZERO).is_some();
        (is_known && !talk.listed.is_empty()).then(|| after(CADENCE))
    }

    /// Whether something has happened since this was last asked that makes [`Domains::tell_at`] earlier.
    pub fn take_call(&self) -> bool {
        let called = &self.exchange.is_called;
        called.load(Ordering::Relaxed) && called.swap(false, Ordering::AcqRel)
    }

    /// Makes the report to be sent on the stream, as of `now`.
    pub fn tell(&self, now: Time, resource: &ResourceId) -> Option<DomainReport> {
        let policies = self.policies();
        let (asks, clocks, most) = {
            let mut talk = self.exchange.talk();
            talk.stream?;
            talk.is_urgent = false;
            (std::mem::take(&mut talk.asks), talk.clocks, talk.listed.len().min(MOST_DOMAINS))
        };
        let version = policies?.version();
        let mut domains = Vec::new();
        let mut entries = 0;
        for _ in 0..most {
            if clocks.there(now, now).is_none() || entries > MOST_ENTRIES / 2 {
                break;
            }
            let Some(name) = self.exchange.talk().listed.pop_front() else { break };
            let hits = self.told_of(now, &clocks, name);
            entries += hits.as_ref().map_or(0, |hits| hits.entries.len());
            domains.extend(hits);
        }
        let mut talk = self.exchange.talk();
        if domains.is_empty() && !asks {
            return None;
        }
        talk.last += 1;
        talk.told_at = Some(now);
        let id = talk.last;
        talk.unconfirmed.note(now, id);
        Some(DomainReport { resource: resource.clone(), version, id, ask: asks, below: None, domains })
    }

    /// Takes in what others did, as the server tells it.
    pub fn learn(&self, now: Time, news: &DomainNews) {
        let (clocks, hot) = {
            let mut talk = self.exchange.talk();
            // What was said to whom this has taken the place of speaks of other reports.
            talk.has_begun |= news.begins;
            if talk.stream.is_none() || !talk.has_begun {
                return;
            }
            let Talk { unconfirmed, clocks, .. } = &mut *talk;
            unconfirmed.hear(now, news, clocks);
            (talk.clocks, talk.note_heat(news))
        };
        self.exchange.members.store(news.members.max(1), Ordering::Relaxed);
        self.exchange.news_at.store(now.as_nanos(), Ordering::Relaxed);
        if news.begins {
            self.tell_all(now);
        }
        hot.iter().for_each(|name| self.heat(name, true));
        if self.policies().is_some_and(|policies| policies.version() == news.version) {
            news.domains.iter().for_each(|hits| self.learn_of(now, &clocks, hits));
        }
        news.calm.iter().for_each(|name| self.heat(name, false));
        let waiting = self.exchange.talk().answer(news.heard);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Asks the server for all that it knows, if it is in hearing. [`Domains::has_heard`] says when it has answered.
    pub fn ask(&self) -> Option<u64> {
        let mut talk = self.exchange.talk();
        talk.stream?;
        talk.asks = true;
        self.exchange.is_called.store(true, Ordering::Release);
        Some(talk.last + 1)
    }

    /// Whether the server has answered question `id`, or there is nobody any more who would.
    #[must_use]
    pub fn has_heard(&self, id: u64) -> bool {
        let talk = self.exchange.talk();
        talk.stream.is_none() || talk.heard >= id
    }

    pub(crate) fn heard(&self, id: u64) -> Heard<'_> {
        Heard { exchange: &self.exchange, id }
    }

    /// A stream has begun: of whatever is worth it everything is told.
    fn tell_all(&self, now: Time) {
        let members = self.exchange.members();
        for mut shard in self.shards() {
            for record in shard.records_mut() {
                let is_much = |tier: TierState| is_share(tier.hits, tier.limit, members);
                let has_much = record.history.tiers(&record.contract, now.as_nanos()).any(is_much);
                match &mut record.telling {
                    Some(telling) => telling.begin(),
                    None if has_much && record.name.as_str().len() <= LONGEST_DOMAIN => {
                        record.telling = Some(Box::new(Telling::new(&record.history, false)));
                    }
                    None => continue,
                }
                self.exchange.list(record, true);
            }
        }
    }

    /// A domain is hot, or not any more.
    fn heat(&self, name: &str, is_hot: bool) {
        let hash = self.hash(name);
        let mut shard = self.shard(hash);
        let Some(record) = shard.find(hash, name) else { return };
        match &mut record.telling {
            Some(telling) if is_hot => telling.is_hot = true,
            Some(telling) => telling.cool(),
            None if is_hot => record.telling = Some(Box::new(Telling::new(&record.history, true))),
            None => return,
        }
        if record.telling.as_ref().is_some_and(|telling| telling.is_hot && telling.has_news()) {
            self.exchange.list(record, true);
        }
    }

    /// The hits of one domain that are to be told.
    fn told_of(&self, now: Time, clocks: &Clocks, name: Arc<str>) -> Option<DomainHits> {
        let hash = self.hash(&name);
        let mut shard = self.shard(hash);
        // It is off the list even if it follows no policies, so that it comes onto it again when it does.
        shard.find(hash, &name)?.telling.as_mut()?.is_listed = false;
        let record = self.record(&mut shard, now, hash, &name)?;
        let telling = record.telling.as_mut()?;
        let (all, entries) = telling.tell(&record.contract, now.as_nanos());
        let there = |entry: &MergeEntry| told_at(entry, clocks.there(now, Time::from_nanos(entry.at))?);
        Some(DomainHits { domain: name, all, others: 0, entries: entries.iter().filter_map(there).collect() })
    }

    /// Takes in what others did with one domain.
    fn learn_of(&self, now: Time, clocks: &Clocks, hits: &DomainHits) {
        let here = |told: &DomainEntry| entry_at(told, clocks.here(now, told.at)?);
        let entries: Vec<MergeEntry> = hits.entries.iter().filter_map(here).collect();
        let hash = self.hash(&hits.domain);
        let mut shard = self.shard(hash);
        let Some(record) = self.record(&mut shard, now, hash, &hits.domain) else { return };
        let Record { history, contract, telling, .. } = record;
        let telling = telling.get_or_insert_with(|| Box::new(Telling::new(history, true)));
        telling.others = hits.others;
        if hits.all {
            let debt = history.debt();
            *history = telling.with_others(contract, &entries);
            history.settle(contract, now.as_nanos(), debt.into());
        } else {
            entries.iter().for_each(|entry| history.merge(contract, entry));
        }
    }
}

// === impl Talk ===

impl Talk {
    /// Notes that report `heard` is answered: only now are the news known here. Returns those who wait for that.
    fn answer(&mut self, heard: u64) -> Vec<Waker> {
        self.heard = self.heard.max(heard);
        std::mem::take(&mut self.waiting)
    }

    /// Which domains are hot. Returns those that are to be looked at because of it.
    fn note_heat(&mut self, news: &DomainNews) -> Vec<Arc<str>> {
        if news.begins {
            self.hot.clear();
        }
        self.hot.extend(news.hot.iter().cloned());
        for name in &news.calm {
            self.hot.remove(name);
        }
        news.hot.clone()
    }
}

// === impl Heard ===

impl Future for Heard<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut talk = self.exchange.talk();
        if talk.stream.is_none() || talk.heard >= self.id {
            return Poll::Ready(());
        }
        if !talk.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            talk.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
