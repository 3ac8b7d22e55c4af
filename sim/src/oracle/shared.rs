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
mod log;

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_client::Ground;
use lessor_proto::Time;

use self::links::{DomainLink, Path};
use self::log::{DomainHit, HitLog};
use super::entries::Entries;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::plan::SharedDomainPlan;

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
    log: HitLog,
    entries: Entries,
    links: BTreeMap<Actor, DomainLink>,
    /// The leaders at which the domain is hot, each with the time since when.
    hot: BTreeMap<u32, Time>,
    pub(crate) counts: DomainCounts,
}

/// The counts of hits that were judged.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct DomainCounts {
    /// Those that were granted.
    pub(crate) hits: u64,
    /// Those of them beside which half of the limit was to be known at least.
    pub(crate) known: u64,
    pub(crate) refusals: u64,
    /// The hits of others that clients were to know of in the end.
    pub(crate) learnt: u64,
}

// === impl DomainJudge ===

impl DomainJudge {
    pub(crate) fn new(plan: &SharedDomainPlan) -> DomainJudge {
        DomainJudge {
            window: plan.window,
            hard_limit: plan.hard_limit,
            log: HitLog::new(plan.window, plan.limits[0]),
            entries: Entries::new(plan),
            links: BTreeMap::new(),
            hot: BTreeMap::new(),
            counts: DomainCounts::default(),
        }
    }
}

// === judgement ===

impl DomainJudge {
    /// The hits that a client must know of where the domain is used up: its own, and those of others that have been told.
    fn must_know(&self, facts: &Facts<'_>, client: u32, from: Time) -> usize {
        self.told_by(facts, client, from, |_| true)
    }

    /// The hits that it must know of, however much of the domain is used: where a server has not found it to be hot for long
    /// enough, nothing is told of it.
    fn must_know_of_hot(&self, facts: &Facts<'_>, client: u32, from: Time) -> usize {
        let since = facts.before(facts.settling());
        self.told_by(facts, client, from, |task| self.hot.get(&task).is_some_and(|&hot| hot <= since))
    }

    /// The hits since `from` that a client made, or that others made and were told it by servers of which all tell.
    fn told_by(&self, facts: &Facts<'_>, client: u32, from: Time, tells: impl Fn(u32) -> bool) -> usize {
        let Some(shared) = facts.domain else { return 0 };
        let before = |level: usize| facts.before(SETTLING * u32::try_from(level).unwrap_or(1));
        let own = self.path(facts, client, before);
        let paths: BTreeMap<u32, Path> =
            shared.users.keys().map(|&other| (other, self.path(facts, other, before))).collect();
        let is_known = |hit: &&DomainHit| {
            if facts.process(Actor::Client(hit.client)).life != hit.life || hit.at < from {
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
        self.log.hits().filter(is_known).count()
    }

    /// Whether a client has made a hit that counts, and long enough ago that all servers know that it is to be told.
    fn serves(&self, facts: &Facts<'_>, client: u32) -> bool {
        let life = facts.process(Actor::Client(client)).life;
        let (from, to) = (facts.before(self.window.saturating_sub(EARLY)), facts.before(facts.settling()));
        let made =
            |hit: &DomainHit| (hit.client, hit.life) == (client, life) && from <= hit.at && hit.at <= to;
        self.log.hits().any(made)
    }

    /// The hits that a client may have forgotten too early, because it knew of more than may be made.
    fn forgotten(&self, facts: &Facts<'_>, client: u32) -> usize {
        let Some(shared) = facts.domain else { return 0 };
        let full_at = shared.users.get(&client).and_then(|user| user.full_at);
        let is_full = |at: &Time| facts.now.since(*at) <= self.window + EARLY;
        full_at.filter(is_full).map_or(0, |_| self.log.excess(facts.now))
    }

    /// A client has granted a hit: there was room for it among those that it must know of. Who is out of hearing grants the least
    /// beside as many as may be made, also of its own. The breach, if there was none.
    fn hit(&mut self, facts: &Facts<'_>, client: u32, ground: Ground, enters: bool) -> Option<String> {
        let shared = facts.domain?;
        let limit = shared.users.get(&client).and_then(|user| shared.limit_of(user));
        let window = self.window.saturating_sub(EARLY);
        let counting = self.entries.must_count_from(facts.now, EARLY);
        let known = self.must_know(facts, client, facts.before(window).max(counting));
        let excess = self.forgotten(facts, client);
        let is_unheard =
            ground == Ground::Unheard && self.path(facts, client, |_| facts.before(SETTLING)).is_empty();
        let serves = self.serves(facts, client) && !is_unheard;
        self.counts.hits += 1;
        self.counts.known += u64::from(serves && limit.is_some_and(|limit| known * 2 >= limit as usize));
        let breach = limit.filter(|&limit| serves && known >= limit as usize + excess).map(|limit| {
            let all = self.log.count(facts.now, self.window);
            let table = self.log.table(facts.now);
            format!(
                "client {client} grants a hit beside {known} that it must know of, where {limit} may be made ({all} were, {excess} without room):{table}"
            )
        });
        self.take_down(facts, client, enters);
        breach
    }

    /// Puts a hit of a client into the log, and the entry into the tier that it may have made.
    fn take_down(&mut self, facts: &Facts<'_>, client: u32, enters: bool) {
        let (now, life) = (facts.now, facts.process(Actor::Client(client)).life);
        if enters {
            let active = self.entries.active_since(now, EARLY);
            let is_known = active.is_some_and(|since| self.must_know(facts, client, since) > 0);
            self.entries.enter(now, (client, life), is_known);
        }
        self.log.make(now, (client, life), now.since(self.entries.last()));
    }

    /// A client has refused a hit: somebody used what it may do. The breach, if nobody did.
    fn refusal(&mut self, facts: &Facts<'_>, client: u32) -> Option<String> {
        let shared = facts.domain?;
        let limit = shared.limit_of(shared.users.get(&client)?)?;
        let life = facts.process(Actor::Client(client)).life;
        let counting = facts.now.since(self.entries.may_count_from(client, life, TOO_LATE));
        let made = self.log.count(facts.now, counting.min(self.window + TOO_LATE));
        let in_second = self.log.count(facts.now, SECOND + TOO_LATE);
        self.counts.refusals += 1;
        let is_hard = self.hard_limit.is_some_and(|hard| in_second >= hard as usize);
        (made < limit as usize && !is_hard).then(|| {
            format!("client {client} refuses a hit, and {made} of {limit} were made by anybody ({in_second} in a second, by any clock)")
        })
    }

    /// A client that serves the domain knows what everybody did, and nothing else. The breach, if it does not.
    fn knowledge(&mut self, facts: &Facts<'_>, client: u32) -> Option<String> {
        let shared = facts.domain?;
        let user = shared.users.get(&client)?;
        let limit = shared.limit_of(user)?;
        let now = facts.local(Actor::Client(client));
        let serves = self.serves(facts, client);
        let most = self.log.count(facts.now, self.window + TOO_LATE);
        let counting = self.entries.must_count_from(facts.now, EARLY);
        let from = facts.before(self.window.saturating_sub(EARLY)).max(counting);
        let least = self.must_know_of_hot(facts, client, from);
        let least = least.saturating_sub(self.forgotten(facts, client));
        let known = user.known(now)? as usize;
        let is_too_little = serves && known < least;
        let own = self.log.hits().filter(|hit| hit.client == client).count();
        self.counts.learnt += if serves { least.saturating_sub(own) as u64 } else { 0 };
        (is_too_little || known > most).then(|| {
            format!("client {client} knows of {known} hits, and is to know of {least} to {most} ({limit} may be made)")
        })
    }
}

// === impl Oracle ===

impl Oracle {
    /// The clients share a domain, of which a judge keeps the log.
    pub(crate) fn share(&mut self, plan: &SharedDomainPlan) {
        self.judge = Some(Box::new(DomainJudge::new(plan)));
    }

    pub(crate) fn change_domain_limit(&mut self, now: Time, limit: u32) {
        if let Some(judge) = &mut self.judge {
            judge.log.change_limit(now, limit);
        }
    }

    pub(crate) fn domain_counts(&self) -> DomainCounts {
        self.judge.as_ref().map(|judge| judge.counts).unwrap_or_default()
    }

    /// Looks at all links on which clients hear of each other.
    pub(crate) fn watch_links(&mut self, facts: &Facts<'_>) {
        if let Some(judge) = &mut self.judge {
            judge.watch_links(facts);
        }
    }

    /// A client has granted a hit on this ground; `enters` if it began an entry into the tier.
    pub(crate) fn judge_hit(&mut self, facts: &Facts<'_>, client: u32, ground: Ground, enters: bool) {
        let breach = self.judge.as_mut().and_then(|judge| judge.hit(facts, client, ground, enters));
        self.fail_with(29, breach);
    }

    /// A client has refused a hit.
    pub(crate) fn judge_refusal(&mut self, facts: &Facts<'_>, client: u32) {
        let breach = self.judge.as_mut().and_then(|judge| judge.refusal(facts, client));
        self.fail_with(30, breach);
    }

    /// Everybody who serves the domain knows what everybody did, and nothing else.
    pub(crate) fn judge_known(&mut self, facts: &Facts<'_>) {
        for &client in facts.domain.iter().flat_map(|shared| shared.users.keys()) {
            let breach = self.judge.as_mut().and_then(|judge| judge.knowledge(facts, client));
            self.fail_with(31, breach);
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// The moment so long ago.
    fn before(&self, time: Duration) -> Time {
        Time::from_nanos(
            self.now.as_nanos().saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}
