//! Jobs of a resource: who waits for one to be done elsewhere, and who is asked to say so.
//!
//! A job is what somebody does with units of a gauge for others who wait until it is done. Parties are the holders below and the
//! node above, which are one like the other: each asks once and is told once, of a job of another that was done since it began to
//! wait; and each is asked once, while another waits, and is heard once. So a message leads to one message to a party at the most,
//! a party that was not asked is not heard, and where nobody waits nothing is said.
//!
//! When a job was done is said as how long ago that was, and seems later for each step on the way, and clocks run differently: so
//! jobs are told apart by a number, and each is told to a party once. What seems to lie behind a wait by one might do so for ever.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lessor_proto::Time;

use crate::mutation::{Rule, Rules};
use crate::streams::Peer;

#[cfg(test)]
mod tests;

/// A party to the jobs of a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum JobParty {
    /// The node above.
    Above,
    /// The holder at the other end of a stream.
    Below(Peer),
}

/// A word to a party.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JobWord {
    /// A job was done elsewhere, then.
    Done(Time),
    /// It is to say so when one is done, or was since then.
    Asks(Time),
}

/// The jobs of a resource, as long as somebody below may wait or was asked.
#[derive(Clone, Debug)]
pub(crate) struct JobBoard {
    /// The parties, each with the number of the last job that it was told of.
    parties: BTreeMap<JobParty, u64>,
    /// Those that are not asked.
    idle: BTreeSet<JobParty>,
    /// Those that wait, and since when.
    waits: BTreeMap<JobParty, Time>,
    /// The last job that was done, and the last one of another party.
    done: [Option<DoneJob>; 2],
    /// The number of jobs that were done.
    jobs: u64,
    /// The words that were not taken yet.
    words: VecDeque<(JobParty, JobWord)>,
    /// Whether some were left when others were taken.
    is_speaking: bool,
    rules: Rules,
}

/// A job that was done.
#[derive(Clone, Copy, Debug)]
struct DoneJob {
    number: u64,
    at: Time,
    by: JobParty,
}

// === impl JobBoard ===

impl JobBoard {
    /// A board of these, of which nobody waits.
    pub(crate) fn new(parties: impl IntoIterator<Item = JobParty>, rules: Rules) -> JobBoard {
        let idle: BTreeSet<JobParty> = parties.into_iter().collect();
        let parties = idle.iter().map(|&party| (party, 0)).collect();
        JobBoard {
            parties,
            idle,
            waits: BTreeMap::new(),
            done: [None; 2],
            jobs: 0,
            words: VecDeque::new(),
            is_speaking: false,
            rules,
        }
    }

    /// A party comes. Where somebody waits it is asked as the others were.
    pub(crate) fn join(&mut self, party: JobParty) {
        if self.parties.contains_key(&party) {
            return;
        }
        self.parties.insert(party, 0);
        self.idle.insert(party);
        if self.rules.keep(Rule::JobsOfLate) {
            self.ask_idle();
        }
    }

    /// A party is gone. Returns whether there is none below any more, nor has the node above asked for the jobs of those that come.
    pub(crate) fn leave(&mut self, party: JobParty) -> bool {
        self.parties.remove(&party);
        self.idle.remove(&party);
        self.waits.remove(&party);
        let is_asked_for = self.waits.contains_key(&JobParty::Above);
        !is_asked_for && self.parties.keys().all(|party| *party == JobParty::Above)
    }

    /// A party says when its last job was done, and since when it waits for one of another.
    pub(crate) fn hear(&mut self, from: JobParty, done: Option<Time>, asks: Option<Time>) {
        if !self.parties.contains_key(&from) {
            return;
        }
        // Of one that was not asked nobody wants to hear.
        if let Some(at) = done
            && self.idle.insert(from)
        {
            self.note_done(from, at);
        }
        if let Some(since) = asks {
            match self.last_done(from, since) {
                Some(job) => self.tell(from, job),
                None => _ = self.waits.insert(from, since),
            }
        }
        self.ask_idle();
    }

    /// The next words, in order, and so many at the most.
    pub(crate) fn take_words(&mut self, most: usize) -> Vec<(JobParty, JobWord)> {
        let words = self.words.drain(..most.min(self.words.len())).collect();
        self.is_speaking = !self.words.is_empty();
        words
    }

    /// Whether words were left when others were taken, so that whoever took them comes again.
    pub(crate) fn is_speaking(&self) -> bool {
        self.is_speaking
    }

    /// A job of `by` was done: all others who waited then are told.
    fn note_done(&mut self, by: JobParty, at: Time) {
        self.jobs += 1;
        let job = DoneJob { number: self.jobs, at, by };
        let [last, other] = self.done;
        self.done = [Some(job), if last.is_some_and(|last| last.by == by) { other } else { last }];
        let waits = self.waits.iter().filter(|(party, since)| **party != by && **since <= at);
        for party in waits.map(|(&party, _)| party).collect::<Vec<_>>() {
            self.tell(party, job);
        }
    }

    /// The last job of another party, if that was done since then, and `party` was not told of it.
    fn last_done(&self, party: JobParty, since: Time) -> Option<DoneJob> {
        let job = self.done.into_iter().flatten().find(|job| job.by != party)?;
        let told = self.parties.get(&party).copied().unwrap_or_default();
        (job.at >= since && told < job.number).then_some(job)
    }

    /// Tells a party of a job. It waits no more.
    fn tell(&mut self, party: JobParty, job: DoneJob) {
        self.parties.insert(party, job.number);
        self.waits.remove(&party);
        self.words.push_back((party, JobWord::Done(job.at)));
    }

    /// Asks those that are not asked, each for whoever else has waited for the longest.
    fn ask_idle(&mut self) {
        if self.idle.is_empty() {
            return;
        }
        let first = self.waits.iter().min_by_key(|(_, since)| **since).map(|(&party, &since)| (party, since));
        let Some((oldest, since)) = first else { return };
        let others = self.waits.iter().filter(|(party, _)| **party != oldest);
        let next = others.map(|(_, &since)| since).min();
        for party in std::mem::take(&mut self.idle) {
            match if party == oldest { next } else { Some(since) } {
                Some(since) => self.words.push_back((party, JobWord::Asks(since))),
                // Nobody but itself waits.
                None => _ = self.idle.insert(party),
            }
        }
    }
}
