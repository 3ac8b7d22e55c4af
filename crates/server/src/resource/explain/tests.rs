//! The law of explanations, over random books: what is said is what is granted; what is named as the bound is what binds, and what
//! is not named is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::SharePolicy;
use lessor_client::Transport;
use lessor_client::internals::allowance::Allowance;
use lessor_proto::message::{Ask, Band, Bands, BoundBy, Grant, Has, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Epoch, Incarnation, ReportId, ResourceId, Time};

use super::super::holders::Demands;
use super::*;
use crate::config::{NodeConfig, ParentConfig};
use crate::date::Date;
use crate::ledger::{Ceiling, Ghost, Ledger, Part};
use crate::record::{Longest, Unknown};
use crate::repository::{Fraction, Glob, Kind, Template};
use crate::resource::learning::Learning;

/// Books that are looked at.
const BOOKS: u64 = 600;
/// Clients of each.
const CLIENTS: u64 = 7;
/// After at most one lift in so many something else binds at the very same amount.
const TIES: usize = 6;

/// Numbers from a seed (SplitMix64).
struct Draw(u64);

/// A resource with the clients that speak to it.
struct Book {
    now: Time,
    config: NodeConfig,
    resource: Resource,
    clients: BTreeMap<u64, Speaker>,
    sessions: u64,
}

/// A client, and what it said and was told last.
#[derive(Clone)]
struct Speaker {
    is_legacy: bool,
    said: u64,
    bands: Bands,
    grant: Option<Grant>,
}

// === impl Draw ===

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }

    /// Whether something is that is so often, of a hundred times.
    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// From 0.1 to 1,000, each size as often.
    fn wants(&mut self) -> f64 {
        (10f64.powf(self.below(4_000) as f64 / 1_000.0) / 10.0 * 1e3).round() / 1e3
    }
}

// === impl Book ===

impl Book {
    fn new(draw: &mut Draw) -> Book {
        let mut template =
            Template::new(Glob::new("*").expect("a glob"), Amount::from_units(10 + draw.below(500)));
        template.policy = match draw.below(8) {
            0 => SharePolicy::Static,
            1 => SharePolicy::ProportionalShare,
            _ => SharePolicy::FairShare,
        };
        let is_leaf = draw.is(30);
        if draw.is(30) && template.policy == SharePolicy::FairShare {
            template.kind = Kind::Gauge;
        }
        if draw.is(30) {
            template.legacy_max_fraction = Fraction::HALF;
        }
        if draw.is(20) {
            template.most_priority = Some(3);
        }
        let mut config = NodeConfig::new("node", Epoch(7));
        if is_leaf {
            let servers = vec![Arc::from("above:1")];
            config.parent = Some(ParentConfig { servers, transport: Transport::Stream, eager: false });
        }
        let now = Time::ZERO + Duration::from_secs(1_000);
        let id = ResourceId::new("db", 64).expect("a name");
        let mut book = Book {
            now,
            resource: Resource::new(now, id, Arc::new(template), context(now, &config, 0)),
            config,
            clients: BTreeMap::new(),
            sessions: 0,
        };
        book.begin(draw);
        book
    }

    /// Adds what there is beside holders.
    fn begin(&mut self, draw: &mut Draw) {
        let capacity = self.resource.terms.capacity;
        if self.resource.is_leased() && self.resource.terms.policy.is_bounded() {
            self.lease(if draw.is(10) { Amount::ZERO } else { capacity });
        }
        if self.resource.terms.policy.is_bounded() && draw.is(25) {
            let parts = 1 + draw.below(4);
            let amount = Amount::from_micros(capacity.as_micros() / parts);
            let end = self.now + Duration::from_secs(40);
            self.resource.ledger.haunt(Ghost::new(Part { amount, end }, Part::default()));
            self.resource.reshare();
        }
        if !self.resource.is_leased() && draw.is(15) {
            self.resource.learning = Learning::new(self.now, self.now + Duration::from_secs(45));
        }
        self.limit_mark(draw);
    }

    fn limit_mark(&mut self, draw: &mut Draw) {
        if draw.is(30) {
            let total = Amount::from_micros(self.resource.ledger.total() as u64)
                .saturating_add(Amount::from_units(draw.below(80)));
            self.resource.set_ceiling(Some(Ceiling { total, lasting: total, rest_end: self.now }));
        }
    }

    fn lease(&mut self, capacity: Amount) {
        let until = self.now + Duration::from_secs(100_000);
        self.resource.lease(Allowance::new(Some(capacity), until), None);
    }

    /// Something happens.
    fn step(&mut self, draw: &mut Draw) {
        self.now += Duration::from_millis(draw.below(9_000));
        self.resource.advance(self.now);
        match draw.below(20) {
            0 | 1 => {
                let capacity = Amount::from_units(5 + draw.below(500));
                self.set_capacity(capacity);
            }
            2 => self.limit_mark(draw),
            3 if draw.is(50) => self.resource.set_frozen(draw.is(70)),
            3 => self.resource.set_ceiling(None),
            _ => {
                let client = draw.below(CLIENTS);
                let bands = bands(draw);
                let shows = draw.is(60);
                self.ask(client, bands, shows);
            }
        }
    }

    fn set_capacity(&mut self, capacity: Amount) {
        let mut template = Arc::clone(&self.resource.terms);
        Arc::make_mut(&mut template).capacity = capacity;
        let config = self.config.clone();
        self.resource.set_template(Some(template), context(self.now, &config, 0));
        if self.resource.is_leased() && self.resource.terms.policy.is_bounded() {
            self.lease(capacity);
        }
    }

    fn ask(&mut self, client: u64, bands: Bands, shows: bool) {
        let speaker = self.clients.entry(client).or_insert_with(|| Speaker {
            is_legacy: client % 3 == 2,
            said: 0,
            bands: Bands::new(),
            grant: None,
        });
        speaker.said += 1;
        speaker.bands = bands;
        // Whoever draws no incarnation is known by what it shows.
        let has = speaker.grant.as_ref().filter(|_| shows || speaker.is_legacy).map(has);
        let (ask, report) = (ask(client, speaker), report(&self.resource, &speaker.bands, has));
        self.sessions += 1;
        let reply =
            self.resource.report(self.now, &ask, &report, context(self.now, &self.config, self.sessions));
        let grant = reply.map(|reply| reply.grant);
        self.clients.get_mut(&client).expect("it was entered").grant = grant;
    }

    fn explain(&self, resource: &Resource, slot: Slot) -> HolderExplanation {
        resource.clone().explain(self.now, slot, context(self.now, &self.config, 0))
    }

    /// The grant of a copy for a report like the last one of a client.
    fn granted(&self, client: u64, slot: Slot) -> Option<Grant> {
        let (mut copy, speaker) = (self.resource.clone(), self.clients[&client].clone());
        let cx = context(self.now, &self.config, u64::MAX);
        if speaker.is_legacy {
            copy.holders.at_mut(slot).last.basis = self.now;
            return copy.answer(self.now, slot, cx).map(|reply| reply.grant);
        }
        let speaker = Speaker { said: speaker.said + 1, ..speaker };
        let report = report(&copy, &speaker.bands, None);
        copy.report(self.now, &ask(client, &speaker), &report, cx).map(|reply| reply.grant)
    }

    /// A copy in which these do not bind.
    fn lifted(&self, slot: Slot, all: impl IntoIterator<Item = BoundBy>) -> Resource {
        let mut book = Book {
            now: self.now,
            config: self.config.clone(),
            resource: self.resource.clone(),
            clients: BTreeMap::new(),
            sessions: 0,
        };
        for by in all {
            book.lift(slot, by);
        }
        book.resource.advance(book.now);
        book.resource
    }

    fn lift(&mut self, slot: Slot, by: BoundBy) {
        let slots: Vec<Slot> = self.resource.holders.children().iter_slots().map(|(slot, _)| slot).collect();
        match lever(by) {
            BoundBy::Level => {
                let all = self.resource.holders.shares().wants() * 10.0 + 100_000.0;
                self.set_capacity(Amount::from_f64(all));
            }
            BoundBy::Wants => {
                self.restate(slot, |demand| Demand { wants: demand.wants * 7.0 + 13.0, ..demand });
            }
            BoundBy::Band => {
                let own = self.resource.holders.at(slot).demands().iter().map(|demand| demand.priority).min();
                let most = own.expect("it wants something");
                for other in slots {
                    let wants = |demand: Demand| if demand.priority > most { 0.0 } else { demand.wants };
                    self.restate(other, |demand| Demand { wants: wants(demand), ..demand });
                }
            }
            BoundBy::OthersOut => {
                for other in slots.into_iter().filter(|&other| other != slot) {
                    self.resource.charge(other, Ledger::close);
                }
                self.resource.reshare();
            }
            BoundBy::KeptFree => {
                for other in slots {
                    self.resource.holders.rotation_mut().keep_free(other, None);
                }
            }
            BoundBy::Ghost => {
                self.resource.ledger.exorcise();
                self.resource.reshare();
            }
            BoundBy::Mark => self.resource.set_ceiling(None),
            BoundBy::Learning => self.resource.learning.end_at(self.now),
            BoundBy::Override => self.resource.set_frozen(false),
            BoundBy::LegacyFraction => {
                let mut template = Arc::clone(&self.resource.terms);
                Arc::make_mut(&mut template).legacy_max_fraction = Fraction::ALL;
                let config = self.config.clone();
                self.resource.set_template(Some(template), context(self.now, &config, 0));
            }
            // These do not happen in these books.
            BoundBy::Claim
            | BoundBy::Superseded
            | BoundBy::OtherKind
            | BoundBy::Recall
            | BoundBy::NoTemplate => {}
            BoundBy::Static | BoundBy::LeaseAbove | BoundBy::Debt | BoundBy::Turn => unreachable!("{by:?}"),
        }
    }

    fn restate(&mut self, slot: Slot, change: impl Fn(Demand) -> Demand) {
        let demands = self.resource.holders.at(slot).demands().iter().map(change);
        let bands: Bands = demands
            .map(|demand| Band { priority: demand.priority, subclients: demand.weight, wants: demand.wants })
            .collect();
        self.resource.set_demands(slot, Demands::from_bands(&bands));
    }
}

fn context(now: Time, config: &NodeConfig, session: u64) -> CallContext<'_> {
    let day = Duration::from_secs(86_400);
    CallContext {
        config,
        since: Time::ZERO + Duration::from_secs(1_000),
        led: now,
        longest: Longest { lease: day, safe_lease: day },
        says_unknown: Unknown::default(),
        learnt_longest: Longest::default(),
        session: Incarnation(session),
        caller: None,
        date: Date::default(),
    }
}

fn bands(draw: &mut Draw) -> Bands {
    let priority = if draw.is(25) { 5 } else { 0 };
    let subclients = if draw.is(20) { 3 } else { 1 };
    let wants = if draw.is(5) { 0.0 } else { draw.wants() };
    Bands::from_slice(&[Band { priority, subclients, wants }])
}

fn ask(client: u64, speaker: &Speaker) -> Ask {
    Ask {
        kind: HolderKind::Client,
        holder: ClientId::new(format!("c{client}"), 64).expect("a name"),
        incarnation: (!speaker.is_legacy).then_some(Incarnation(client + 1)),
        report_id: (!speaker.is_legacy).then_some(ReportId(speaker.said)),
        target_epoch: None,
        line: None,
        reports: Vec::new(),
    }
}

fn report(resource: &Resource, bands: &Bands, has: Option<Has>) -> Report {
    Report {
        resource: resource.id.clone(),
        bands: bands.clone(),
        has,
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    }
}

fn has(grant: &Grant) -> Has {
    Has { capacity: grant.capacity, order: grant.order, token: grant.token.clone(), lasts: None, expiry: 0 }
}

/// The lever that lifts a reason: more capacity is the same, whatever it was too little for.
fn lever(by: BoundBy) -> BoundBy {
    match by {
        BoundBy::Static | BoundBy::LeaseAbove | BoundBy::Debt | BoundBy::Turn => BoundBy::Level,
        by => by,
    }
}

/// Whether the amounts that two explanations say differ by more than that, beside what is rounded.
fn differ_by(most: f64, one: Option<f64>, other: Option<f64>) -> bool {
    (one.unwrap_or(-1.0) - other.unwrap_or(-1.0)).abs() > most + 1e-5
}

#[test]
fn what_is_said_is_what_is_granted_and_what_is_named_is_what_binds() {
    let (mut named, mut lifts) = (BTreeMap::<BoundBy, usize>::new(), 0);
    let mut ties = BTreeMap::<(BoundBy, BoundBy), usize>::new();
    for seed in 0..BOOKS {
        let mut draw = Draw(seed);
        let mut book = Book::new(&mut draw);
        for _ in 0..5 + draw.below(30) {
            book.step(&mut draw);
        }
        book.resource.advance(book.now);
        for &client in book.clients.keys() {
            for slot in book.resource.slots_of(&format!("c{client}")) {
                let said = book.explain(&book.resource, slot);
                let of = format!("seed {seed}, client {client}: {said:#?}\n{:#?}", book.resource.division());
                let granted = book.granted(client, slot);
                assert_eq!(granted.as_ref().map(|grant| grant.capacity.as_f64()), said.gets, "{of}");
                if let Some(grant) = granted {
                    assert_eq!(grant.bound_by, Some(said.bound_by), "{of}");
                }
                *named.entry(said.bound_by).or_default() += 1;

                let parts: BTreeSet<BoundBy> = said.also.iter().copied().chain([said.bound_by]).collect();
                let is_part = |by: &BoundBy| parts.iter().any(|part| lever(*part) == lever(*by));
                let others = BoundBy::ALL.into_iter().filter(|by| !is_part(by));
                for other in others {
                    let without = book.explain(&book.lifted(slot, [other]), slot);
                    // What is changed of a gauge lets all turns begin anew, and one unit goes to another.
                    let turn = if book.resource.terms.kind == Kind::Gauge { 1.0 } else { 0.0 };
                    assert!(
                        !differ_by(turn, said.gets, without.gets),
                        "{other:?} is not named: {without:#?}\n{of}"
                    );
                }
                let without = book.explain(&book.lifted(slot, [said.bound_by]), slot);
                let is_tie = !differ_by(0.0, said.gets, without.gets);
                assert!(!is_tie || without.bound_by != said.bound_by, "it is lifted: {without:#?}\n{of}");
                // Whoever has all it wants may find that nothing is left of what it could want.
                if said.bound_by != BoundBy::Wants {
                    lifts += 1;
                    *ties.entry((said.bound_by, without.bound_by)).or_default() += usize::from(is_tie);
                }
            }
        }
    }
    let tied: usize = ties.values().sum();
    assert!(tied * TIES <= lifts, "{tied} of {lifts} lifts change nothing: {ties:?}");
    let missing: Vec<_> = REACHED.iter().filter(|by| !named.contains_key(by)).collect();
    assert!(missing.is_empty(), "{missing:?} bind nowhere: {named:?}");
}

/// The reasons that occur in these books.
const REACHED: [BoundBy; 12] = [
    BoundBy::Wants,
    BoundBy::Level,
    BoundBy::Band,
    BoundBy::Static,
    BoundBy::Turn,
    BoundBy::OthersOut,
    BoundBy::Ghost,
    BoundBy::Mark,
    BoundBy::LeaseAbove,
    BoundBy::Debt,
    BoundBy::Learning,
    BoundBy::Override,
];
