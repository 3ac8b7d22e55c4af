//! The etcd of a simulation: a simulated one for each site, as no call touches the keys of two, behind one clock, which freezes
//! as a whole. It knows what a successor would read, and which epochs were ended by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::{Amount, Epoch, ResourceId, Time};
use lessor_server::election::call::{Answer, Call, Failure, Txn};
use lessor_server::election::record::RecordKeys;
use lessor_server::record::{Record, RestOver, Unknown};

use crate::clock::Clock;
use crate::etcd::Etcd;

/// The etcd of a simulation.
#[derive(Debug)]
pub struct Registry {
    clock: Clock,
    parts: Vec<Part>,
    /// Until when it does nothing.
    frozen: Option<Time>,
}

/// The state that it keeps for one site.
#[derive(Debug)]
struct Part {
    store: Etcd,
    keys: RecordKeys,
    record: Record,
    /// The amounts that marks say are left from before a leader, each with the number of that leader's epoch.
    left: BTreeMap<ResourceId, (Amount, Epoch)>,
    /// Epochs whose keys were deleted by hand, and when.
    forced: Vec<(u64, Time)>,
    /// Numbers of epochs, and the revisions at which their keys were made.
    epochs: BTreeMap<Epoch, u64>,
    /// When it was begun.
    since: Time,
}

/// The outcome of a call.
#[derive(Debug)]
pub struct Outcome {
    /// The answer of etcd.
    pub result: Result<Answer, Failure>,
    /// Whether those who watch may have something to see.
    pub is_news: bool,
    /// Of a write that was made: the epoch that says it wrote, and that of the leader.
    pub written: Option<(Option<u64>, Option<u64>)>,
}

/// It forgets what has been when there is more of it than that, but not the last half.
const HISTORY: usize = 256;

// === impl Registry ===

impl Registry {
    /// An empty one, with a part for the site of each name, whose keys are under `prefix`.
    pub fn new(clock: Clock, prefix: &str, names: impl IntoIterator<Item = String>) -> Registry {
        let part = |name: String| Part {
            store: Etcd::new(),
            keys: RecordKeys::new(prefix, &name),
            record: Record::default(),
            left: BTreeMap::new(),
            forced: Vec::new(),
            epochs: BTreeMap::new(),
            since: Time::ZERO,
        };
        Registry { clock, parts: names.into_iter().map(part).collect(), frozen: None }
    }

    /// The store that is kept for a site.
    pub fn store(&mut self, site: u32) -> &mut Etcd {
        &mut self.parts[site as usize].store
    }

    /// The record that a successor at a site would read.
    #[must_use]
    pub fn record(&self, site: u32) -> &Record {
        &self.parts[site as usize].record
    }

    /// The epoch at a site whose key is there, by the revision of that.
    #[must_use]
    pub fn leads(&self, site: u32) -> Option<u64> {
        let part = &self.parts[site as usize];
        part.store.get(&part.keys.leader).map(|stored| stored.create_revision)
    }

    /// The revision of the key of an epoch.
    #[must_use]
    pub fn key_of(&self, site: u32, epoch: Epoch) -> Option<u64> {
        self.parts[site as usize].epochs.get(&epoch).copied()
    }

    /// An epoch has this number, and its key was made at `revision`.
    pub fn learn(&mut self, site: u32, epoch: Epoch, revision: u64) {
        if epoch > Epoch::default() {
            self.parts[site as usize].epochs.insert(epoch, revision);
        }
    }

    /// From `now` on there is another etcd for a site, which is empty.
    pub fn replace(&mut self, now: Time, site: u32) {
        let part = &mut self.parts[site as usize];
        let keys = part.keys.clone();
        *part = Part {
            store: Etcd::new(),
            keys,
            record: Record::default(),
            left: BTreeMap::new(),
            forced: Vec::new(),
            epochs: BTreeMap::new(),
            since: now,
        };
    }

    /// Whether a call about a site that was made at `sent` is for another etcd than there is now.
    #[must_use]
    pub fn is_elsewhere(&self, site: u32, sent: Time) -> bool {
        sent < self.parts[site as usize].since
    }

    /// When the key of an epoch, which was made at `revision`, was deleted by hand, if it was.
    #[must_use]
    pub fn forced(&self, site: u32, revision: u64) -> Option<Time> {
        let forced = &self.parts[site as usize].forced;
        forced.iter().find(|(found, _)| *found == revision).map(|&(_, at)| at)
    }

    /// A call about a site takes effect.
    pub fn carry_out(&mut self, now: Time, site: u32, call: &Call) -> Outcome {
        let part = &mut self.parts[site as usize];
        let before = part.store.revision();
        let result = part.store.carry_out(self.clock.at(now), call);
        let is_news = part.store.revision() != before;
        let by = match (call, &result) {
            (Call::Write(txn), Ok(Answer::Written { .. })) => {
                let by = part.take_over(txn);
                Some(by.map(|epoch| part.epochs.get(&epoch).copied().unwrap_or(epoch.0)))
            }
            _ => None,
        };
        if part.store.remembers() > HISTORY {
            part.store.compact(part.store.revision().saturating_sub(HISTORY as u64 / 2));
        }
        Outcome { result, is_news, written: by.map(|by| (by, self.leads(site))) }
    }

    /// Ends the leases at a site that have run out.
    pub fn advance(&mut self, now: Time, site: u32) {
        let local = self.clock.at(now);
        self.store(site).advance(local);
    }

    /// When the next lease at a site ends.
    #[must_use]
    pub fn next_end(&self, site: u32) -> Time {
        self.clock.when(self.parts[site as usize].store.next_end())
    }

    /// Somebody deletes the key of the leader of a site. Whether there was one.
    pub fn depose(&mut self, now: Time, site: u32) -> bool {
        let Some(epoch) = self.leads(site) else { return false };
        let part = &mut self.parts[site as usize];
        part.forced.push((epoch, now));
        let key = part.keys.leader.clone();
        part.store.delete(&key);
        true
    }

    /// Begins anew: leases last their whole ttl from here on, and nobody watches.
    pub fn restart(&mut self, now: Time) {
        let local = self.clock.at(now);
        self.parts.iter_mut().for_each(|part| part.store.restart(local));
    }

    /// Forgets what has been, but not what there is.
    pub fn compact(&mut self) {
        self.parts.iter_mut().for_each(|part| part.store.compact(part.store.revision()));
    }

    /// Its clock runs at `rate` from `now` on.
    pub fn set_rate(&mut self, now: Time, rate: u64) {
        self.clock.set_rate(now, rate);
    }

    /// Whether it does nothing at present.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// It does nothing until `until`.
    pub fn freeze(&mut self, until: Time) {
        self.frozen = Some(until);
    }

    /// It goes on, if it is time. Whether it does.
    pub fn thaw(&mut self, now: Time) -> bool {
        self.frozen.take_if(|until| *until <= now).is_some()
    }
}

// === impl Part ===

impl Part {
    /// Takes over what a transaction has put, and gives back which epoch says that it did so.
    fn take_over(&mut self, txn: &Txn) -> Option<Epoch> {
        let (mut by, mut rest_over) = (None, None);
        for (key, value) in &txn.puts {
            let words: Vec<&str> = value.split(' ').collect();
            let after = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
            let number = |name: &str| after(name).and_then(|word| word.parse::<u64>().ok());
            let length = |name: &str| number(name).map(Duration::from_nanos).unwrap_or_default();
            if *key == self.keys.epoch {
                by = number("epoch").map(Epoch);
                self.record.longest_lease = length("longest_lease_ns");
                self.record.longest_safe_lease = length("longest_safe_lease_ns");
                self.record.authority = length("authority_ns");
                self.record.closed = after("closed") == Some("yes");
                self.record.unknown = match after("unknown") {
                    Some("floors") => Unknown::Floors,
                    Some(_) => Unknown::All,
                    None => Unknown::Nothing,
                };
                self.record.epoch = by.unwrap_or_default();
                let over = |name: &str| number(name).map(Duration::from_nanos);
                rest_over = over("rest_over_ns").zip(over("safe_rest_over_ns"));
            } else if let Some(id) = self.resource(key) {
                let mark = Amount::from_micros(number("millionths").unwrap_or(0));
                self.left.remove(&id);
                let rest = number("rest").map(Amount::from_micros).zip(number("in_epoch").map(Epoch));
                self.left.extend(rest.map(|rest| (id.clone(), rest)));
                self.record.marks.insert(id, mark);
            }
        }
        for id in txn.deletes.iter().filter_map(|key| self.resource(key)).collect::<Vec<_>>() {
            self.record.marks.remove(&id);
            self.left.remove(&id);
        }
        // It counts beside a header of the same leader that says for how long.
        let of_it = |(_, (_, epoch)): &(&ResourceId, &(Amount, Epoch))| *epoch == self.record.epoch;
        let left = self.left.iter().filter(|_| rest_over.is_some()).filter(of_it);
        self.record.rests = left.map(|(id, &(amount, _))| (id.clone(), amount)).collect();
        let (lease, safe_lease) = rest_over.unwrap_or_default();
        self.record.rest_over = RestOver { lease, safe_lease };
        by
    }

    fn resource(&self, key: &str) -> Option<ResourceId> {
        ResourceId::new(key.strip_prefix(self.keys.marks.as_str())?, 256).ok()
    }
}
