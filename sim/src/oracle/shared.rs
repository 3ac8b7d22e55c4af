//! The judge of clients that share a domain: nobody grants what was used up by all that must be known, and nobody refuses
//! what nobody used.
//!
//! The judge keeps the log of all hits that were made, wherever that was, and watches the *links*: the stream of each client
//! and of each server to the one above. A link is *clear* while nothing on it is late, lost or held back, both ends run,
//! and both go by the same limit. Where all links between two clients have been clear for the *settling time*, what one
//! did before that is to be known to the other:
//!
//! - each server counts who is there once a second, and so does each on the way up and down: two seconds a level;
//! - of a domain that is not hot as much is kept back as is less than half of the limit, so one that is used up is hot; of one
//!   that is not used up so much is to be known only where all servers on the way have found it to be hot;
//! - what is hot is told within 100 ms by a client, 50 ms by a server on the way up, and 50 ms on the way down, and twice
//!   that where it becomes hot meanwhile; and each way takes 100 ms at the most.
//!
//! Three and a half seconds a level are more than all of that.
//!
//! A client that has not used the domain for a while is told nothing of it, and grants its first hit on what it knows itself. So
//! only those are judged that have.
//!
//! Who knows of as many hits as may be made remembers further ones as made with an earlier one, and forgets them too early. So
//! where a client knew of so many within the last window, as many are allowed for as were made without room.

mod links;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lessor_client::Ground;
use lessor_proto::Time;

use self::links::{DomainLink, Path};
use super::entries::Entries;
use crate::plan::SharedDomainPlan;
use crate::process::Actor;
use crate::simulation::Simulation;

/// The time within which all is known, for each level of servers between two clients.
const SETTLING: Duration = Duration::from_millis(3_500);
/// By so much a hit of another may be placed too early: by the ways of the messages that told of it, and grains.
const EARLY: Duration = Duration::from_secs(2);
/// By so much it may be placed too late: by clocks that drift apart.
const TOO_LATE: Duration = Duration::from_secs(1);
/// The hits of a second count so much longer.
const SECOND: Duration = Duration::from_millis(1_100);

/// The log of all hits, and the links.
#[derive(Debug)]
pub(crate) struct DomainJudge {
    window: Duration,
    hard_limit: Option<u32>,
    hits: VecDeque<DomainHit>,
    entries: Entries,
    /// The limits that were configured, and when.
    limits: Vec<(Time, u32)>,
    links: BTreeMap<Actor, DomainLink>,
    /// The leaders at which the domain is hot, each with the time since when.
    hot: BTreeMap<u32, Time>,
}

/// A hit that was made.
#[derive(Clone, Copy, Debug)]
struct DomainHit {
    at: Time,
    client: u32,
    life: u32,
    /// There was room for it, whoever knew of it.
    had_room: bool,
}

// === impl DomainJudge ===

impl DomainJudge {
    pub(crate) fn new(plan: &SharedDomainPlan) -> DomainJudge {
        DomainJudge {
            window: plan.window,
            hard_limit: plan.hard_limit,
            hits: VecDeque::new(),
            entries: Entries::new(plan),
            limits: vec![(Time::ZERO, plan.limits[0])],
            links: BTreeMap::new(),
            hot: BTreeMap::new(),
        }
    }

    pub(crate) fn change_limit(&mut self, now: Time, limit: u32) {
        self.limits.push((now, limit));
    }

    fn make(&mut self, now: Time, client: u32, life: u32) {
        let counting = now.since(self.entries.last());
        let made = self.count(now, counting.min(self.window + TOO_LATE));
        let had_room = made < self.least_limit(now) as usize;
        self.hits.push_back(DomainHit { at: now, client, life, had_room });
        while self.hits.front().is_some_and(|hit| now.since(hit.at) > self.window * 4) {
            self.hits.pop_front();
        }
    }

    /// The hits of the time before `now`.
    fn count(&self, now: Time, time: Duration) -> usize {
        self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= time).count()
    }

    /// The hits without room, of the last two windows.
    fn excess(&self, now: Time) -> usize {
        let recent = self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= self.window * 2 + EARLY);
        recent.filter(|hit| !hit.had_room).count()
    }

    /// The hits of the last two windows, the latest first: how long ago, by whom, and whether there was room.
    fn table(&self, now: Time) -> String {
        let recent = self.hits.iter().rev().take_while(|hit| now.since(hit.at) <= self.window * 2);
        let row = |hit: &DomainHit| {
            let sign = if hit.had_room { "" } else { "!" };
            format!(" {:.3}:c{}{sign}", now.since(hit.at).as_secs_f64(), hit.client)
        };
        recent.map(row).collect()
    }

    /// The least limit that anybody may go by, or may have gone by in the last windows.
    fn least_limit(&self, now: Time) -> u32 {
        let ends = |index: usize| self.limits.get(index + 1).map_or(Time::MAX, |&(at, _)| at);
        let recent = self.limits.iter().enumerate();
        let recent = recent.filter(|&(index, _)| now.since(ends(index).min(now)) <= self.window * 4);
        recent.map(|(_, &(_, limit))| limit).min().unwrap_or(0)
    }
}

// === judgement ===

impl Simulation {
    /// The hits that a client must know of where the domain is used up: its own, and those of others that have been told.
    fn must_know(&self, client: u32, from: Time) -> usize {
        self.told_by(client, from, |_| true)
    }

    /// The hits that it must know of, however much of the domain is used: where a server has not found it to be hot for long
    /// enough, nothing is told of it.
    fn must_know_of_hot(&self, client: u32, from: Time) -> usize {
        let Some(shared) = &self.domain else { return 0 };
        let since = self.before(self.settling());
        self.told_by(client, from, |task| shared.judge.hot.get(&task).is_some_and(|&hot| hot <= since))
    }

    /// The hits since `from` that a client made, or that others made and were told it by servers of which all tell.
    fn told_by(&self, client: u32, from: Time, tells: impl Fn(u32) -> bool) -> usize {
        let Some(shared) = &self.domain else { return 0 };
        let before = |level: usize| self.before(SETTLING * u32::try_from(level).unwrap_or(1));
        let own = self.path(client, before);
        let paths: BTreeMap<u32, Path> =
            shared.users.keys().map(|&other| (other, self.path(other, before))).collect();
        let is_known = |hit: &&DomainHit| {
            if self.process(Actor::Client(hit.client)).life != hit.life || hit.at < from {
                return false;
            }
            if hit.client == client {
                return true;
            }
            let Some(path) = paths.get(&hit.client) else { return false };
            // The first server to which both have a way.
            let meets = own.iter().enumerate().find_map(|(up, &(task, since, is_flawed))| {
                let down = path.iter().position(|&(other, ..)| other == task)?;
                let (_, other_since, other_flawed) = path[down];
                if !own[..=up].iter().chain(&path[..=down]).all(|&(task, ..)| tells(task)) {
                    return None;
                }
                Some((up.max(down) + 1, since.max(other_since), is_flawed || other_flawed))
            });
            meets.is_some_and(|(level, since, is_flawed)| {
                let told = before(level);
                hit.at <= told && since <= told && (hit.at >= since || !is_flawed)
            })
        };
        shared.judge.hits.iter().filter(is_known).count()
    }

    /// Whether a client has made a hit that counts, and long enough ago that all servers know that it is to be told.
    fn serves(&self, client: u32) -> bool {
        let Some(shared) = &self.domain else { return false };
        let life = self.process(Actor::Client(client)).life;
        let (from, to) =
            (self.before(shared.judge.window.saturating_sub(EARLY)), self.before(self.settling()));
        let made =
            |hit: &DomainHit| (hit.client, hit.life) == (client, life) && from <= hit.at && hit.at <= to;
        shared.judge.hits.iter().any(made)
    }

    /// The hits that a client may have forgotten too early, because it knew of more than may be made.
    fn forgotten(&self, client: u32) -> usize {
        let Some(shared) = &self.domain else { return 0 };
        let full_at = shared.users.get(&client).and_then(|user| user.full_at);
        let is_full = |at: &Time| self.now.since(*at) <= shared.judge.window + EARLY;
        full_at.filter(is_full).map_or(0, |_| shared.judge.excess(self.now))
    }

    fn before(&self, time: Duration) -> Time {
        Time::from_nanos(
            self.now.as_nanos().saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        )
    }

    /// A client has granted a hit: there was room for it among those that it must know of. Who is out of hearing grants the least
    /// beside as many as may be made, also of its own.
    pub(crate) fn judge_hit(&mut self, client: u32, ground: Ground, enters: bool) {
        let Some(shared) = &self.domain else { return };
        let limit = shared.users.get(&client).and_then(|user| shared.limit_of(user));
        let window = shared.judge.window.saturating_sub(EARLY);
        let counting = shared.judge.entries.must_count_from(self.now, EARLY);
        let known = self.must_know(client, self.before(window).max(counting));
        let excess = self.forgotten(client);
        let is_unheard = ground == Ground::Unheard && self.path(client, |_| self.before(SETTLING)).is_empty();
        let serves = self.serves(client) && !is_unheard;
        let all = shared.judge.count(self.now, shared.judge.window);
        self.counts.domain_hits += 1;
        self.counts.domain_hits_known +=
            u64::from(serves && limit.is_some_and(|limit| known * 2 >= limit as usize));
        if let Some(limit) = limit.filter(|_| serves)
            && known >= limit as usize + excess
        {
            self.oracle.fail(29, || {
                format!(
                    "client {client} grants a hit beside {known} that it must know of, where {limit} may be made ({all} were, {excess} without room):{}",
                    shared.judge.table(self.now)
                )
            });
        }
        let life = self.process(Actor::Client(client)).life;
        let now = self.now;
        let active = shared.judge.entries.active_since(now, EARLY);
        let is_known = enters && active.is_some_and(|since| self.must_know(client, since) > 0);
        if let Some(shared) = &mut self.domain {
            if enters {
                shared.judge.entries.enter(now, (client, life), is_known);
            }
            shared.judge.make(now, client, life);
        }
    }

    /// A client has refused a hit: somebody used what it may do.
    pub(crate) fn judge_refusal(&mut self, client: u32) {
        let Some(shared) = &self.domain else { return };
        let Some(limit) = shared.users.get(&client).and_then(|user| shared.limit_of(user)) else { return };
        let judge = &shared.judge;
        let life = self.process(Actor::Client(client)).life;
        let counting = self.now.since(judge.entries.may_count_from(client, life, TOO_LATE));
        let made = judge.count(self.now, counting.min(judge.window + TOO_LATE));
        let in_second = judge.count(self.now, SECOND + TOO_LATE);
        self.counts.domain_refusals += 1;
        let is_hard = judge.hard_limit.is_some_and(|hard| in_second >= hard as usize);
        if made < limit as usize && !is_hard {
            self.oracle.fail(30, || {
                format!("client {client} refuses a hit, and {made} of {limit} were made by anybody ({in_second} in a second, by any clock)")
            });
        }
    }

    /// Everybody who serves the domain knows what everybody did, and nothing else.
    pub(crate) fn judge_known(&mut self) {
        let Some(shared) = &self.domain else { return };
        let users: Vec<u32> = shared.users.keys().copied().collect();
        for client in users {
            self.judge_known_by(client);
        }
    }

    fn judge_known_by(&mut self, client: u32) {
        let Some(shared) = &self.domain else { return };
        let Some(user) = shared.users.get(&client) else { return };
        let Some(limit) = shared.limit_of(user) else { return };
        let now = self.local(Actor::Client(client));
        let judge = &shared.judge;
        let serves = self.serves(client);
        let most = judge.count(self.now, judge.window + TOO_LATE);
        let counting = judge.entries.must_count_from(self.now, EARLY);
        let from = self.before(judge.window.saturating_sub(EARLY)).max(counting);
        let least = self.must_know_of_hot(client, from);
        let least = least.saturating_sub(self.forgotten(client));
        let Some(known) = user.known(now).map(|known| known as usize) else { return };
        let is_too_little = serves && known < least;
        let own = judge.hits.iter().filter(|hit| hit.client == client).count();
        self.counts.domain_hits_learnt += if serves { least.saturating_sub(own) as u64 } else { 0 };
        if is_too_little || known > most {
            self.oracle.fail(31, || {
                format!("client {client} knows of {known} hits, and is to know of {least} to {most} ({limit} may be made)")
            });
        }
    }
}
