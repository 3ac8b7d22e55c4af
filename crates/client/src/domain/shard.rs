//! Some of the domains: their histories, under one lock.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Domain};
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::decision::Ground;
use super::name::Name;
use super::policies::{Policies, Rule};
use super::table::{Hashed, Table};
use super::telling::Telling;

/// The least time between two sweeps that are made because a shard is full.
const SWEEP: Duration = Duration::from_secs(1);

/// Domains, by name.
#[derive(Debug)]
pub(super) struct Shard {
    records: Table<Record>,
    swept: Time,
    pub(super) counts: DomainCounts,
}

/// A domain that follows policies.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) name: Name,
    pub(super) history: Domain,
    /// The contract that the history is about.
    pub(super) contract: Arc<Contract>,
    /// Under which terms that was found.
    generation: u32,
    hash: u32,
    /// Since it was first heard of, or was last idle.
    pub(super) granted: u64,
    pub(super) refused: u64,
    /// The state of what others are told of it, if they are.
    pub(super) telling: Option<Box<Telling>>,
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
    pub(super) fn new() -> Shard {
        Shard { records: Table::new(), swept: Time::ZERO, counts: DomainCounts::default() }
    }

    /// The record of a domain, made if need be, and the counters; or why there is none, where nothing is the ground: it is
    /// refused.
    pub(super) fn record(
        &mut self,
        now: Time,
        hash: u64,
        name: &str,
        in_force: &InForce<'_>,
    ) -> (Result<&mut Record, Option<Ground>>, &mut DomainCounts) {
        self.make_room(now, in_force.most);
        let Shard { records, counts, .. } = self;
        let record = match records.find(place(hash), |record| record.name.is(name)) {
            Some(found) if records.at(found).generation == in_force.generation => Ok(records.at(found)),
            Some(found) => match contract(name, in_force) {
                Ok(contract) => {
                    records.at(found).follow(now, contract, in_force.generation);
                    Ok(records.at(found))
                }
                // Its hits stay as long as they count: policies that went away by mistake come back.
                Err(ground) => Err(ground),
            },
            None => match contract(name, in_force) {
                Ok(_) if records.len() >= in_force.most => Err(Some(Ground::Untracked)),
                Ok(contract) => Ok(records.insert(Record::new(hash, name, contract, in_force.generation))),
                Err(ground) => Err(ground),
            },
        };
        (record, counts)
    }

    /// The record of a domain, if there is one.
    pub(super) fn find(&mut self, hash: u64, name: &str) -> Option<&mut Record> {
        let found = self.records.find(place(hash), |record| record.name.is(name))?;
        Some(self.records.at(found))
    }

    /// Forgets who is idle, and gives back memory.
    pub(super) fn sweep(&mut self, now: Time) {
        self.swept = now;
        self.records.retain(|record| {
            record.history.rest(&record.contract, now.as_nanos());
            !record.history.is_idle(&record.contract, now.as_nanos())
        });
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

    fn make_room(&mut self, now: Time, most: usize) {
        if self.records.len() >= most && now >= self.swept + SWEEP {
            self.sweep(now);
        }
    }
}

/// The part of the hash of a name that says the place of its record. Some of the lower bits have chosen the
/// shard.
fn place(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The contract that a domain follows, or on which ground it needs none.
fn contract(name: &str, in_force: &InForce<'_>) -> Result<Arc<Contract>, Option<Ground>> {
    let Some(policies) = (in_force.policies)() else { return Err(Some(Ground::NoPolicies)) };
    match policies.rule(name) {
        Rule::Contract(contract) => Ok(contract),
        Rule::Unconfigured => Err(Some(Ground::Unconfigured)),
        Rule::Ignored => Err(Some(Ground::Ignored)),
        Rule::Refused => Err(None),
    }
}

// === impl Record ===

impl Record {
    fn new(hash: u64, name: &str, contract: Arc<Contract>, generation: u32) -> Record {
        Record {
            name: name.into(),
            history: Domain::new(),
            contract,
            generation,
            hash: place(hash),
            granted: 0,
            refused: 0,
            telling: None,
        }
    }

    /// The number of other clients that use the domain too, as far as is known here.
    pub(super) fn others(&self) -> u32 {
        self.telling.as_ref().map_or(0, |telling| telling.others)
    }

    /// Follows other policies from here on; what did not change keeps its hits.
    fn follow(&mut self, now: Time, contract: Arc<Contract>, generation: u32) {
        if contract != self.contract {
            self.history.swap(&self.contract, &contract, now.as_nanos());
            if let Some(telling) = &mut self.telling {
                telling.swap(&self.contract, &contract, now.as_nanos());
            }
        }
        (self.contract, self.generation) = (contract, generation);
    }
}

impl Hashed for Record {
    fn hash(&self) -> u32 {
        self.hash
    }
}
