//! Some of the domains: their histories, under one lock.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::Contract;
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::lookup::Lookup;
use super::policies::{Policies, Rule};
use super::record::{Record, Terms};
use crate::decision::Ground;
use crate::table::Table;

/// The least time between two sweeps that are made because a shard is full.
const SWEEP: Duration = Duration::from_secs(1);

/// Domains, by name.
#[derive(Debug)]
pub(super) struct Shard {
    records: Table<Record>,
    /// Of names.
    hasher: RandomState,
    /// The terms in force that its domains follow, by the addresses of their contracts.
    terms: BTreeMap<usize, Arc<Terms>>,
    swept: Time,
    pub(super) counts: DomainCounts,
}

/// The terms in force.
pub(super) struct InForce<'a> {
    pub(super) generation: u32,
    /// The policies, which are asked for only where they are needed.
    pub(super) policies: &'a dyn Fn() -> Option<Arc<Policies>>,
    /// The most domains in a shard.
    pub(super) most: usize,
}

// === impl Shard ===

impl Shard {
    pub(super) fn new(hasher: RandomState) -> Shard {
        Shard {
            records: Table::new(),
            hasher,
            terms: BTreeMap::new(),
            swept: Time::ZERO,
            counts: DomainCounts::default(),
        }
    }

    /// Looks a domain up, which is remembered from here on if it follows policies; and the counters.
    #[inline]
    pub(super) fn look_up(
        &mut self,
        now: Time,
        hash: u64,
        name: &str,
        in_force: &InForce<'_>,
    ) -> (Lookup<'_>, &mut DomainCounts) {
        self.make_room(now, in_force.most);
        let Shard { records, hasher, terms, counts, .. } = self;
        let found = match records.find(place(hash), |record| record.is(name)) {
            Some(found) if records.at(found).generation() == in_force.generation => {
                Lookup::Tracked(records.at(found))
            }
            Some(found) => match contract(name, in_force) {
                Ok(contract) => {
                    records.at(found).follow(now, shared(terms, contract, in_force.generation));
                    Lookup::Tracked(records.at(found))
                }
                // Its hits stay as long as they count: policies that went away by mistake come back.
                Err(other) => other,
            },
            None => match contract(name, in_force) {
                Ok(_) if records.len() >= in_force.most => Lookup::Full,
                Ok(contract) => {
                    let record = Record::new(name, shared(terms, contract, in_force.generation));
                    let hash_of = |record: &Record| place(hasher.hash_one(record.name()));
                    Lookup::Tracked(records.insert(place(hash), record, hash_of))
                }
                Err(other) => other,
            },
        };
        (found, counts)
    }

    /// The record of a domain, if there is one.
    pub(super) fn find(&mut self, hash: u64, name: &str) -> Option<&mut Record> {
        let found = self.records.find(place(hash), |record| record.is(name))?;
        Some(self.records.at(found))
    }

    /// Forgets who is idle, and gives back memory.
    pub(super) fn sweep(&mut self, now: Time) {
        self.swept = now;
        let Shard { records, hasher, .. } = self;
        let is_kept = |record: &mut Record| {
            let contract = Arc::clone(record.contract());
            record.history.rest(&contract, now.as_nanos());
            !record.history.is_idle(&contract, now.as_nanos())
        };
        records.retain(is_kept, |record| place(hasher.hash_one(record.name())));
    }

    /// All of them, in no order.
    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        self.records.iter()
    }

    /// All of them, in no order.
    pub(super) fn records_mut(&mut self) -> impl Iterator<Item = &mut Record> {
        self.records.iter_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    #[inline]
    fn make_room(&mut self, now: Time, most: usize) {
        if self.records.len() >= most && now >= self.swept + SWEEP {
            self.sweep(now);
        }
    }
}

/// The part of the hash of a name by which its record is found. Some of the other bits have chosen the shard.
#[inline]
fn place(hash: u64) -> u32 {
    hash as u32
}

/// The terms of those who follow `contract` under the policies in force.
fn shared(terms: &mut BTreeMap<usize, Arc<Terms>>, contract: Arc<Contract>, generation: u32) -> Arc<Terms> {
    if terms.values().next().is_some_and(|terms| terms.generation != generation) {
        terms.clear();
    }
    // As long as the terms are there the contract is, and nothing else at its address.
    let address = Arc::as_ptr(&contract).addr();
    Arc::clone(terms.entry(address).or_insert_with(|| Arc::new(Terms { contract, generation })))
}

/// The contract that a domain follows, or what is found of one that follows none.
fn contract<'a>(name: &str, in_force: &InForce<'_>) -> Result<Arc<Contract>, Lookup<'a>> {
    let Some(policies) = (in_force.policies)() else { return Err(Lookup::Ungoverned(Ground::NoPolicies)) };
    match policies.rule(name) {
        Rule::Contract(contract) => Ok(contract),
        Rule::Unconfigured => Err(Lookup::Ungoverned(Ground::Unconfigured)),
        Rule::Ignored => Err(Lookup::Ungoverned(Ground::Ignored)),
        Rule::Refused => Err(Lookup::Refused),
    }
}
