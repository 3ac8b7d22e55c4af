//! Rounds of one hot domain: the hits that clients said in each are told as one sum to all that use the domain, less those that
//! each of them said itself.

use std::collections::{BTreeMap, VecDeque};

use lessor_proto::Time;
use lessor_proto::message::DomainEntry;

use super::origin::DeltaOrigin;

/// The span in which hits of one tier are told as made with the first of them.
const GRAIN: u64 = 20_000_000;
/// The most sums of one round; with more, everything is told instead.
const MOST_SUMS: usize = 256;
/// The most rounds that are kept for those that were not told of them.
const MOST_ROUNDS: usize = 64;
/// The most entries of several rounds; with more, everything is told instead.
const MOST_ENTRIES: usize = 512;

/// The rounds of one domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The hits that were said since the last round was closed.
    open: Round,
    closed: VecDeque<Round>,
    /// Rounds that are not kept any more. Of many that said something it takes long to let go of one, so that is done in slices.
    retired: Vec<Round>,
    /// The number of the first one that is closed and kept.
    first: u64,
    /// More was said than one round holds: whoever was told of less than the next one is told everything.
    is_broken: bool,
}

/// The hits that were said in one round.
#[derive(Clone, Debug, Default)]
struct Round {
    sums: BTreeMap<GrainKey, Sum>,
    /// The hits of each that said something; of few places, in no order.
    said: BTreeMap<DeltaOrigin, Vec<(GrainKey, u32)>>,
    /// When each tier was entered, at the earliest, by two of those that said so.
    entered: BTreeMap<(u32, u32), Entered>,
}

/// A policy, a tier of it, and a grain of time.
type GrainKey = (u32, u32, u64);

/// The hits of one place.
#[derive(Clone, Copy, Debug)]
struct Sum {
    /// The first of them.
    at: Time,
    hits: u32,
}

/// The earliest two, of different origins.
#[derive(Clone, Debug)]
struct Entered {
    first: (Time, DeltaOrigin),
    second: Option<(Time, DeltaOrigin)>,
}

// === impl Rounds ===

impl Rounds {
    /// None yet, where these were those before.
    pub(super) fn after(before: &Rounds) -> Rounds {
        Rounds { first: before.next() + 1, ..Rounds::default() }
    }

    /// These are not asked for any more.
    pub(super) fn retire(&mut self, former: Rounds) {
        self.retired.extend(former.closed.into_iter().chain(former.retired).chain([former.open]));
    }

    /// Lets go of so much of what is not kept. Returns whether there is more of it.
    pub(super) fn let_go(&mut self, most: usize) -> bool {
        let mut left = most;
        while let Some(round) = self.retired.last_mut().filter(|_| left > 0) {
            left -= round.let_go(left);
            if left > 0 {
                self.retired.pop();
            }
        }
        !self.retired.is_empty()
    }

    /// Adds the hits that `origin` said.
    pub(super) fn add(&mut self, origin: &DeltaOrigin, entries: &[DomainEntry]) {
        if self.is_broken {
            return;
        }
        entries.iter().for_each(|entry| self.open.add(origin, entry));
        if self.open.sums.len() > MOST_SUMS {
            self.clear();
        }
    }

    /// Forgets all rounds: what was told is not so, or not by what counts now, and everybody is told everything.
    pub(super) fn clear(&mut self) {
        self.is_broken = true;
        self.retired.push(std::mem::take(&mut self.open));
    }

    /// Closes the round in which something was said. Returns whether there is one.
    pub(super) fn close(&mut self) -> bool {
        if std::mem::take(&mut self.is_broken) {
            self.first += self.closed.len() as u64 + 1;
            self.retired.extend(self.closed.drain(..));
            return true;
        }
        if self.open.is_empty() {
            return false;
        }
        self.closed.push_back(std::mem::take(&mut self.open));
        if self.closed.len() > MOST_ROUNDS {
            self.retired.extend(self.closed.pop_front());
            self.first += 1;
        }
        true
    }

    /// The number of the first that is kept.
    pub(super) fn first(&self) -> u64 {
        self.first
    }

    /// The number of the round that is open.
    pub(super) fn next(&self) -> u64 {
        self.first + self.closed.len() as u64
    }

    /// Whether anybody but `origin` said something in a closed round from number `from` on.
    pub(super) fn has_news(&self, from: u64, origin: &DeltaOrigin) -> bool {
        from < self.first || self.since(from).any(|round| !round.is_only_of(origin))
    }

    /// The hits that others than `origin` said in the closed rounds from number `from` on, or all of them; nothing where that is
    /// not known any more, or too much.
    pub(super) fn news(&self, from: u64, origin: Option<&DeltaOrigin>) -> Option<Vec<DomainEntry>> {
        if from < self.first || self.is_broken {
            return None;
        }
        let mut entries = Vec::new();
        for round in self.since(from) {
            round.tell(origin, &mut entries);
            if entries.len() > MOST_ENTRIES {
                return None;
            }
        }
        Some(entries)
    }

    fn since(&self, from: u64) -> impl Iterator<Item = &Round> {
        let known = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        self.closed.range(known.min(self.closed.len())..)
    }
}

// === impl Round ===

impl Round {
    fn add(&mut self, origin: &DeltaOrigin, entry: &DomainEntry) {
        if entry.is_entered {
            let found = (entry.at, origin.clone());
            match self.entered.get_mut(&(entry.policy, entry.tier)) {
                Some(entered) => entered.add(found),
                None => {
                    let entered = Entered { first: found, second: None };
                    self.entered.insert((entry.policy, entry.tier), entered);
                }
            }
        }
        // Who has only entered a tier has said something as well.
        let said = self.said.entry(origin.clone()).or_default();
        if entry.hits == 0 {
            return;
        }
        let place = (entry.policy, entry.tier, entry.at.as_nanos() / GRAIN);
        let sum = self.sums.entry(place).or_insert(Sum { at: entry.at, hits: 0 });
        (sum.at, sum.hits) = (sum.at.min(entry.at), sum.hits.saturating_add(entry.hits));
        match said.iter_mut().find(|(own, _)| *own == place) {
            Some((_, own)) => *own = own.saturating_add(entry.hits),
            None => said.push((place, entry.hits)),
        }
    }

    /// Lets go of the hits of at most so many of those that said something. Returns of how many.
    fn let_go(&mut self, most: usize) -> usize {
        (0..most).take_while(|_| self.said.pop_first().is_some()).count()
    }

    fn is_empty(&self) -> bool {
        self.said.is_empty()
    }

    fn is_only_of(&self, origin: &DeltaOrigin) -> bool {
        self.said.len() == 1 && self.said.contains_key(origin)
    }

    /// Adds what others than `origin` said to `entries`.
    fn tell(&self, origin: Option<&DeltaOrigin>, entries: &mut Vec<DomainEntry>) {
        for (&(policy, tier), entered) in &self.entered {
            if let Some(at) = entered.by_others_than(origin) {
                entries.push(DomainEntry { policy, tier, at, hits: 0, is_entered: true });
            }
        }
        let own = origin.and_then(|origin| self.said.get(origin));
        for (place @ &(policy, tier, _), sum) in &self.sums {
            let own = own.and_then(|own| own.iter().find(|(own, _)| own == place));
            let hits = sum.hits.saturating_sub(own.map_or(0, |&(_, hits)| hits));
            if hits > 0 {
                entries.push(DomainEntry { policy, tier, at: sum.at, hits, is_entered: false });
            }
        }
    }
}

// === impl Entered ===

impl Entered {
    fn add(&mut self, found: (Time, DeltaOrigin)) {
        if found.1 == self.first.1 {
            self.first.0 = self.first.0.min(found.0);
        } else if self.second.as_ref().is_none_or(|second| second.1 == found.1 || found.0 < second.0) {
            let at =
                self.second.take().filter(|second| second.1 == found.1).map_or(found.0, |second| second.0);
            self.second = Some((at.min(found.0), found.1));
        }
        if let Some(second) = &mut self.second
            && second.0 < self.first.0
        {
            std::mem::swap(&mut self.first, second);
        }
    }

    fn by_others_than(&self, origin: Option<&DeltaOrigin>) -> Option<Time> {
        match origin == Some(&self.first.1) {
            true => self.second.as_ref().map(|second| second.0),
            false => Some(self.first.0),
        }
    }
}

#[cfg(test)]
mod tests;
