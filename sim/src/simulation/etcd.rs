//! The way to etcd: calls take a while to get there and answers to get back, if they do; and what goes wrong with it.

use std::time::Duration;

use lessor_proto::Time;
use lessor_server::election::Candidate;
use lessor_server::election::call::{Answer, Call, Failure, Watched};

use super::{Event, Simulation};
use crate::actor::Actor;
use crate::event::{Caller, SentCall};
use crate::plan::{Election, EtcdPlan};
use crate::registry::{Outcome, Registry};
use crate::trace::{Happening, Speaker};

/// The etcd of the simulation, and the way there.
#[derive(Debug)]
pub(crate) struct Office {
    pub(crate) registry: Registry,
    /// Calls that wait until it goes on.
    waiting: Vec<Event>,
    /// Until when it cannot be reached.
    away: Time,
    /// When the next lease of each site ends, for which an event has been put down.
    ends: Vec<Time>,
}

/// Nothing is under way for longer than that.
const LONGEST: Duration = Duration::from_secs(60);

// === impl Office ===

impl Office {
    pub(crate) fn new(registry: Registry, sites: usize) -> Office {
        Office { registry, waiting: Vec::new(), away: Time::ZERO, ends: vec![Time::MAX; sites] }
    }

    /// Whether it answers nobody at present.
    pub(super) fn is_away(&self, now: Time) -> bool {
        self.registry.is_frozen() || now < self.away
    }
}

// === calls ===

impl Simulation {
    /// A task makes a call.
    pub(super) fn call_etcd(&mut self, task: u32, id: u64, call: Call) {
        if self.is_lost_to_etcd(task) {
            self.progress.tally.etcd_lost += 1;
            return;
        }
        let caller = self.caller(task);
        let delay = self.etcd_delay();
        if self.now < self.etcd().away {
            // Nobody listens there, or nothing gets there.
            if self.rng.chance(500) {
                let failure = Failure::Unavailable("connection refused".to_owned());
                self.later(delay, Event::EtcdAnswers { caller, id, result: Box::new(Err(failure)) });
            }
            return;
        }
        let sent = self.now;
        self.later(delay, Event::EtcdCall { caller, id, call: Box::new(SentCall { sent, call }) });
    }

    /// A call arrives.
    pub(super) fn at_etcd(&mut self, caller: Caller, id: u64, call: Box<SentCall>) {
        if self.etcd().registry.is_frozen() {
            self.etcd_mut().waiting.push(Event::EtcdCall { caller, id, call });
            return;
        }
        let (now, site) = (self.now, self.tree.tasks[caller.task as usize].site);
        if self.etcd().registry.is_elsewhere(site, call.sent) {
            return;
        }
        self.progress.tally.etcd_late += u64::from(now.since(call.sent) > self.etcd_plan().call_timeout);
        let Outcome { result, is_news, written } = self.etcd_mut().registry.carry_out(now, site, &call.call);
        if let Some((by, leads)) = written.filter(|(by, leads)| by.is_none() || by != leads) {
            self.oracle.fail(15, || format!("site {site}: a write of epoch {by:?} in that of {leads:?}"));
        }
        self.see_to_leases(site);
        if is_news {
            self.show(site);
        }
        if self.is_lost_to_etcd(caller.task) {
            self.progress.tally.etcd_lost += 1;
            self.progress.tally.etcd_unanswered += u64::from(written.is_some());
            return;
        }
        let delay = self.etcd_delay();
        self.later(delay, Event::EtcdAnswers { caller, id, result: Box::new(result) });
    }

    /// An answer arrives.
    pub(super) fn etcd_answers(&mut self, caller: Caller, id: u64, result: Result<Answer, Failure>) {
        let now = self.local(Actor::Task(caller.task));
        if let Some(candidate) = self.candidate_of(caller) {
            candidate.on_answer(now, id, result);
            self.oracle.touched.voted.push(self.tree.tasks[caller.task as usize].site);
            self.drive_elector(caller.task);
        }
    }

    /// A lease at a site may end.
    pub(super) fn leases_end(&mut self, site: u32) {
        let now = self.now;
        let etcd = self.etcd_mut();
        if etcd.ends[site as usize] != now {
            return;
        }
        etcd.ends[site as usize] = Time::MAX;
        if !etcd.registry.is_frozen() {
            etcd.registry.advance(now, site);
            self.see_to_leases(site);
            self.show(site);
        }
    }

    /// Puts down when the next lease at a site ends.
    fn see_to_leases(&mut self, site: u32) {
        let now = self.now;
        let etcd = self.etcd_mut();
        let next = etcd.registry.next_end(site).max(now + Duration::from_nanos(1));
        let ends = &mut etcd.ends[site as usize];
        if next < *ends || *ends <= now {
            *ends = next;
            if next < Time::MAX {
                self.queue.put(next, Event::LeasesEnd(site));
            }
        }
    }

    fn candidate_of(&mut self, caller: Caller) -> Option<&mut Candidate> {
        let found = &mut self.tree.tasks[caller.task as usize];
        found.candidate.as_deref_mut().filter(|_| found.births == caller.birth)
    }

    fn caller(&self, task: u32) -> Caller {
        Caller { task, birth: self.tree.tasks[task as usize].births }
    }

    fn is_lost_to_etcd(&mut self, task: u32) -> bool {
        let cut = self.tree.tasks[task as usize].etcd.cut > self.now;
        cut || self.faulty() && self.rng.chance(self.rules.faults.etcd_loss)
    }

    fn etcd_delay(&mut self) -> Duration {
        let link = self.etcd_plan().link;
        let usual = self.rng.time(link.latency, link.latency + link.jitter);
        if self.faulty() && self.rng.chance(self.rules.faults.etcd_slow) {
            return usual + self.rng.exponential(self.rules.faults.slow_mean).min(LONGEST);
        }
        usual
    }

    fn etcd(&self) -> &Office {
        self.tree.etcd.as_ref().expect("a simulation with an etcd")
    }

    fn etcd_mut(&mut self) -> &mut Office {
        self.tree.etcd.as_mut().expect("a simulation with an etcd")
    }

    pub(super) fn etcd_plan(&self) -> EtcdPlan {
        match (self.rules.election, self.rules.memory.etcd) {
            (Election::Etcd(plan), _) | (Election::Alone, Some(plan)) => plan,
            (Election::Alone, None) => EtcdPlan::default(),
        }
    }
}

// === watches ===

impl Simulation {
    /// A task watches a key. Watches begin at once, or not at all.
    pub(super) fn watch_etcd(&mut self, task: u32, id: u64, key: &str, from_revision: u64) {
        let (site, number) = (self.tree.tasks[task as usize].site, self.watch_number(task, id));
        let now = self.now;
        if self.is_lost_to_etcd(task) || self.etcd().registry.is_frozen() || now < self.etcd().away {
            let delay = self.etcd_delay();
            let (caller, watched) = (self.caller(task), Box::new(Watched::Ended(Failure::Timeout)));
            self.later(delay, Event::EtcdShows { caller, id, watched });
            return;
        }
        self.etcd_mut().registry.store(site).watch(number, key, from_revision);
        self.tree.tasks[task as usize].etcd.watching.insert(id);
        self.show(site);
    }

    pub(super) fn unwatch_etcd(&mut self, task: u32, id: u64) {
        let (site, number) = (self.tree.tasks[task as usize].site, self.watch_number(task, id));
        self.tree.tasks[task as usize].etcd.watching.remove(&id);
        self.etcd_mut().registry.store(site).unwatch(number);
    }

    /// The process of a task has ended, and its connections with it.
    pub(super) fn forget_watches(&mut self, task: u32) {
        for id in std::mem::take(&mut self.tree.tasks[task as usize].etcd.watching) {
            self.unwatch_etcd(task, id);
        }
    }

    /// Something is seen on a watch.
    pub(super) fn etcd_shows(&mut self, caller: Caller, id: u64, watched: Watched) {
        let now = self.local(Actor::Task(caller.task));
        if let Some(candidate) = self.candidate_of(caller) {
            candidate.on_watched(now, id, watched);
            self.drive_elector(caller.task);
        }
    }

    /// Sends what is to be seen to those who watch a site.
    fn show(&mut self, site: u32) {
        for task in self.tree.sites[site as usize].tasks.clone() {
            for id in self.tree.tasks[task as usize].etcd.watching.clone() {
                let number = self.watch_number(task, id);
                for watched in self.etcd_mut().registry.store(site).watched(number) {
                    if self.tree.tasks[task as usize].etcd.cut > self.now {
                        continue;
                    }
                    let at =
                        (self.now + self.etcd_delay()).max(self.tree.tasks[task as usize].etcd.seen_until);
                    self.tree.tasks[task as usize].etcd.seen_until = at;
                    let caller = self.caller(task);
                    self.queue.put(at, Event::EtcdShows { caller, id, watched: Box::new(watched) });
                }
            }
        }
    }

    fn watch_number(&self, task: u32, id: u64) -> u64 {
        let found = &self.tree.tasks[task as usize];
        u64::from(found.number) << 56 | u64::from(found.births) << 32 | id
    }
}

// === what goes wrong with it ===

impl Simulation {
    /// It does nothing until `until`, and then all at once.
    pub(super) fn freeze_etcd(&mut self) -> bool {
        let until = self.spell();
        let Some(etcd) = self.tree.etcd.as_mut().filter(|etcd| !etcd.registry.is_frozen()) else {
            return false;
        };
        etcd.registry.freeze(until);
        self.note(Speaker::Simulation, Happening::Etcd, [0, until.as_nanos(), 0]);
        self.queue.put(until, Event::EtcdThaws);
        true
    }

    pub(super) fn thaw_etcd(&mut self) {
        let now = self.now;
        if !self.etcd_mut().registry.thaw(now) {
            return;
        }
        for event in std::mem::take(&mut self.etcd_mut().waiting) {
            let delay = self.rng.time(Duration::ZERO, Duration::from_millis(5));
            self.later(delay, event);
        }
        (0..self.tree.sites.len() as u32).for_each(|site| self.see_to_leases(site));
    }

    /// It cannot be reached for so long. Whether there is one.
    pub fn lose_etcd_for(&mut self, time: Duration) -> bool {
        let until = self.now + time;
        self.lose_etcd(until)
    }

    pub(super) fn lose_etcd(&mut self, until: Time) -> bool {
        let Some(etcd) = &mut self.tree.etcd else { return false };
        etcd.away = until;
        self.note(Speaker::Simulation, Happening::Etcd, [1, until.as_nanos(), 0]);
        true
    }

    /// A site has another etcd from here on, which is empty. Nobody stands for election there yet.
    pub(super) fn replace_etcd(&mut self, site: u32) {
        let now = self.now;
        if let Some(etcd) = &mut self.tree.etcd {
            etcd.registry.replace(now, site);
            etcd.ends[site as usize] = Time::MAX;
        }
    }

    /// It begins anew: leases last their whole ttl from here on, and nobody watches.
    pub(super) fn restart_etcd(&mut self) -> bool {
        let now = self.now;
        let Some(etcd) = &mut self.tree.etcd else { return false };
        etcd.registry.restart(now);
        self.restart_templates();
        self.note(Speaker::Simulation, Happening::Etcd, [2, now.as_nanos(), 0]);
        for task in 0..self.tree.tasks.len() as u32 {
            for id in std::mem::take(&mut self.tree.tasks[task as usize].etcd.watching) {
                let (caller, failure) = (self.caller(task), Failure::Unavailable("restarted".to_owned()));
                let watched = Box::new(Watched::Ended(failure));
                let delay = self.rng.time(Duration::ZERO, Duration::from_millis(50));
                self.later(delay, Event::EtcdShows { caller, id, watched });
            }
        }
        true
    }

    pub(super) fn compact_etcd(&mut self) -> bool {
        let now = self.now;
        let Some(etcd) = &mut self.tree.etcd else { return false };
        etcd.registry.compact();
        self.compact_templates();
        self.note(Speaker::Simulation, Happening::Etcd, [3, now.as_nanos(), 0]);
        true
    }

    /// The clock of etcd runs at another rate.
    pub(super) fn set_etcd_rate(&mut self, rate: u64) {
        let now = self.now;
        if let Some(etcd) = &mut self.tree.etcd {
            etcd.registry.set_rate(now, rate);
            etcd.ends.fill(Time::MAX);
            (0..self.tree.sites.len() as u32).for_each(|site| self.see_to_leases(site));
        }
    }

    /// Somebody deletes the key of the leader of a site: another one is elected, and nobody tells the old one.
    pub fn depose(&mut self, site: u32) -> bool {
        let now = self.now;
        let Some(etcd) = self.tree.etcd.as_mut().filter(|etcd| !etcd.registry.is_frozen()) else {
            return false;
        };
        if !etcd.registry.depose(now, site) {
            return false;
        }
        self.note(Speaker::Site(site), Happening::Etcd, [4, now.as_nanos(), 0]);
        self.show(site);
        true
    }

    /// A watch of a task dies, and nobody tells it.
    pub(super) fn deafen_one(&mut self) -> bool {
        self.deafen_follower();
        let task = self.any_task();
        if self.tree.etcd.is_none() || self.tree.tasks[task as usize].etcd.watching.is_empty() {
            return false;
        }
        let site = self.tree.tasks[task as usize].site;
        for id in self.tree.tasks[task as usize].etcd.watching.clone() {
            let number = self.watch_number(task, id);
            self.etcd_mut().registry.store(site).unwatch(number);
        }
        true
    }
}
