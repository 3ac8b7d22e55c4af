//! Rules in force: what is opened for each of their limits, and what each rule has answered.

use std::sync::OnceLock;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use lessor_client::{Client, Rate, Windows};
use prometheus_client::metrics::counter::Counter;

use super::figures::{Figures, RuleCounters, SetCounters};
use crate::claim::{Call, CallAnswer, Claim, Leases, Verdict};
use crate::grant::LimitMark;
use crate::rules::{Limit, LimitKind, RuleBook, RuleSet};

/// The bounds on keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyBounds {
    /// The most keys of a limit that are remembered at a time.
    pub most: usize,
    /// The new keys of a second that one peer may ask for, with ten seconds of them at once; absent: any number.
    pub new_a_second: Option<u32>,
}

/// Rules, and what is leased for them.
#[derive(Debug)]
pub(super) struct InForce {
    book: RuleBook,
    client: Client,
    bounds: KeyBounds,
    opened: Vec<OnceLock<Option<Opened>>>,
    /// The counters of answers, by the index of a set.
    answers: Vec<SetCounters>,
    /// The counters of the rules, by the index of a limit.
    counters: Vec<RuleCounters>,
    /// The limits by their marks, as sets and places in them.
    marks: HashMap<LimitMark, (usize, usize), FixedState>,
    /// Hits that were charged afterwards and were not there.
    pub(super) owed: Counter,
}

/// The handle of a limit.
#[derive(Clone, Debug)]
pub(super) enum Opened {
    /// By keys, each a resource.
    Windows(Windows),
    /// A rate; with domains where it is shared.
    Rate(Rate),
}

// === impl KeyBounds ===

impl Default for KeyBounds {
    /// As many keys of a limit as a server takes of all limits of a client, if nothing else is said there.
    fn default() -> KeyBounds {
        KeyBounds { most: 20_000, new_a_second: None }
    }
}

// === impl InForce ===

impl InForce {
    pub(super) fn new(client: &Client, book: RuleBook, figures: &Figures, bounds: KeyBounds) -> InForce {
        let answers = book.sets().iter().map(|set| SetCounters::new(&set.name)).collect();
        let opened = (0..book.limits()).map(|_| OnceLock::new()).collect();
        let all = book.sets().iter().flat_map(|set| set.limits().map(move |(rule, _)| (&*set.name, rule)));
        let counters = all.map(|(set, rule)| figures.rule(set, rule)).collect();
        figures.loaded(true);
        let owed = figures.owed.clone();
        let marks = book.sets().iter().enumerate().flat_map(|(set, rules)| {
            let marks = rules.limits().map(|(_, limit)| LimitMark::of(limit));
            marks.enumerate().map(move |(place, mark)| (mark, (set, place)))
        });
        let marks = marks.collect();
        InForce { book, client: client.clone(), bounds, opened, answers, counters, marks, owed }
    }

    pub(super) fn book(&self) -> &RuleBook {
        &self.book
    }

    /// The counters of the answers of a set.
    pub(super) fn answers(&self, set: &RuleSet) -> &SetCounters {
        &self.answers[set.index]
    }

    /// The handle of a limit, which is opened when it is asked for first; none, once the client is closed.
    pub(super) fn opened(&self, limit: &Limit) -> Option<&Opened> {
        self.opened.get(limit.index)?.get_or_init(|| self.open(limit)).as_ref()
    }

    /// The handle of a limit that has been asked for.
    pub(super) fn open_already(&self, limit: &Limit) -> Option<&Opened> {
        self.opened.get(limit.index)?.get()?.as_ref()
    }

    /// The limit of that mark, if it is in these rules.
    pub(super) fn marked(&self, mark: LimitMark) -> Option<&Limit> {
        let &(set, place) = self.marks.get(&mark)?;
        self.book.sets()[set].limits().nth(place).map(|(_, limit)| limit)
    }

    /// The hits of a key that can be had here at this moment.
    pub(super) fn at_hand(&self, limit: &Limit, key: &str) -> u32 {
        match self.opened(limit) {
            Some(Opened::Windows(windows)) => {
                windows.usage(key).map_or(limit.units, |usage| usage.leased.saturating_sub(usage.uses))
            }
            Some(Opened::Rate(_)) | None => self.standing(limit, key).remaining,
        }
    }

    fn open(&self, limit: &Limit) -> Option<Opened> {
        let name = &*limit.resource;
        match &limit.kind {
            LimitKind::Exact | LimitKind::Concurrency => {
                let windows = self.client.windows(name).most_keys(self.bounds.most);
                let windows = windows.max_wait(self.book.wait).open();
                windows.ok().map(Opened::Windows)
            }
            LimitKind::Flow | LimitKind::Shared(_) => {
                let rate = self.client.rate(name).max_wait(self.book.wait).open();
                let rate = rate.inspect_err(|fault| tracing::error!(resource = name, %fault, "not opened"));
                rate.ok().map(Opened::Rate)
            }
        }
    }

    /// Counts the answers of rules.
    pub(super) fn count(&self, call: &Call<'_>, answer: &CallAnswer) {
        for (claim, answered) in call.claims.iter().zip(&answer.claims) {
            let Some(counters) = self.counters.get(claim.limit.index) else { continue };
            let hits = u64::from(u32::try_from(claim.hits).unwrap_or(u32::MAX));
            let counter = match answered.verdict {
                Verdict::NoLease { .. } => &counters.no_lease,
                Verdict::Over { .. } if !call.refuses(claim, answered) => &counters.shadow,
                Verdict::Over { .. } => &counters.over,
                Verdict::Within if is_near(claim, answered.standing.remaining, self.book.near) => {
                    &counters.near
                }
                Verdict::Within => &counters.within,
            };
            counter.inc_by(hits);
        }
    }
}

fn is_near(claim: &Claim<'_>, remaining: u32, near: f64) -> bool {
    f64::from(remaining) < f64::from(claim.limit.units) * (1.0 - near)
}
