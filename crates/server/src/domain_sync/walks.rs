//! Walks through many: rounds that end, domains that cool down, subscribers that are looked after, and what is said anew above.
//!
//! A lock is held meanwhile, and there may be ten thousand of each. So a walk is done in slices, and goes on with the next
//! turn where it stopped.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::shared::{DeltaOrigin, MOST_HOT, PACE, SharedDomains, count_for};
use super::state::Marking;
use super::subscriber::{PendingUpdate, Subscriber};
use crate::node::Peer;

/// The most subscribers, users or domains that are looked at in one turn.
pub(super) const SLICE: usize = 16;
/// The interval at which domains that have cooled down are looked for.
pub(super) const SWEEP: Duration = Duration::from_secs(1);
/// The time after which a sweep goes on where there are more.
const GO_ON: Duration = Duration::from_millis(30);
/// Those that use domains, of all that are looked at in one go of a sweep.
const SWEPT: usize = 128;

/// The walks through many, and where each goes on.
#[derive(Clone, Debug)]
pub(super) struct Walks {
    /// When the next look begins at what has cooled down, and at subscribers.
    next_look: Time,
    look: Option<Look>,
    next_sweep: Time,
    /// Where the next sweep goes on.
    swept: Option<(Arc<str>, Option<DeltaOrigin>)>,
    /// Since when subscribers are told which domains have become hot, and who was looked at last.
    informing: Option<(Time, Option<Peer>)>,
    /// Since when everything is said anew above, and the last domain that was looked at.
    anew: Option<(Time, Option<Arc<str>>)>,
}

/// A look at what has cooled down, and then at all subscribers.
#[derive(Clone, Debug)]
struct Look {
    since: Time,
    stage: LookStage,
}

/// The part of a look, and the last that was looked at.
#[derive(Clone, Debug)]
enum LookStage {
    Hot(Option<Arc<str>>),
    Subscribers(Option<Peer>),
}

// === impl Walks ===

impl Walks {
    pub(super) fn from(at: Time) -> Walks {
        Walks { next_look: at, look: None, next_sweep: at, swept: None, informing: None, anew: None }
    }

    /// When one begins or goes on.
    pub(super) fn due(&self) -> Time {
        let look = self.look.as_ref().map_or(self.next_look, |look| look.since);
        let begun = [self.informing.as_ref().map(|(at, _)| *at), self.anew.as_ref().map(|(at, _)| *at)];
        begun.into_iter().flatten().fold(look.min(self.next_sweep), Time::min)
    }

    /// Everything is to be said anew above.
    pub(super) fn begin_anew(&mut self, now: Time) {
        self.anew = Some((now, None));
    }

    /// Nobody above is to be told anything.
    pub(super) fn end_anew(&mut self) {
        self.anew = None;
    }
}

// === impl SharedDomains ===

impl SharedDomains {
    /// Does what is due, of at most `left` that are looked at; lowers that by as many.
    pub(crate) fn advance(&mut self, now: Time, left: &mut usize) {
        if self.heat.is_due(now) {
            self.walks.informing = Some((now, None));
        }
        self.inform(now, left);
        self.end_rounds(now, left);
        self.say_next_anew(now, left);
        if *left > 0 && now >= self.walks.next_sweep {
            self.sweep(now);
        }
        if self.walks.look.is_none() && now >= self.walks.next_look {
            self.walks.next_look = now + SWEEP;
            self.walks.look = Some(Look { since: now, stage: LookStage::Hot(None) });
        }
        self.look(now, left);
    }

    /// Those that use a domain are to be told at that time, if not before.
    pub(super) fn expect(&mut self, name: &Arc<str>, at: Time) {
        let Some(state) = self.domains.get_mut(name) else { return };
        if state.marking.is_some() {
            state.due_after = Some(state.due_after.map_or(at, |due| due.min(at)));
            return;
        }
        if state.due.is_some_and(|due| due <= at) {
            return;
        }
        if let Some(due) = state.due.replace(at) {
            self.rounds.remove(&(due, Arc::clone(name)));
        }
        self.rounds.insert((at, Arc::clone(name)));
    }

    /// The walk that was set for a domain begins with the next turn.
    pub(super) fn begin_walk(&mut self, now: Time, name: &Arc<str>) {
        let Some(state) = self.domains.get_mut(name) else { return };
        if state.due.is_some_and(|due| due <= now) {
            return;
        }
        if let Some(due) = state.due.replace(now) {
            self.rounds.remove(&(due, Arc::clone(name)));
        }
        self.rounds.insert((now, Arc::clone(name)));
    }

    /// Subscribers that do not know which domains have become hot, or calm, are to be told.
    fn inform(&mut self, now: Time, left: &mut usize) {
        if *left == 0 {
            return;
        }
        let Some((since, after)) = self.walks.informing.take() else { return };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut behind, mut looked_at, mut last) = (Vec::new(), 0, None);
        for (&peer, member) in self.members.range((from, Bound::Unbounded)).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(peer));
            if !self.heat.is_known(member) {
                behind.push(peer);
            }
        }
        if looked_at == *left {
            self.walks.informing = Some((since, last));
        }
        *left -= looked_at;
        behind.into_iter().for_each(|peer| self.schedule(peer, now));
    }

    fn end_rounds(&mut self, now: Time, left: &mut usize) {
        while *left > 0
            && let Some((at, name)) = self.rounds.first().filter(|(at, _)| *at <= now).cloned()
        {
            *left -= 1;
            if !self.end_round(now, &name, left) {
                return;
            }
            self.rounds.remove(&(at, Arc::clone(&name)));
            if let Some(state) = self.domains.get_mut(&name) {
                (state.due, state.marking) = (None, None);
                let again = state.is_left_to_walk().then_some(now + PACE);
                if let Some(due) = state.due_after.take().or(again) {
                    self.expect(&name, due);
                }
            }
        }
    }

    /// Closes the round of a domain: the hits that were said meanwhile go to those that use it. Returns whether all of them
    /// were looked at.
    fn end_round(&mut self, now: Time, name: &Arc<str>, left: &mut usize) -> bool {
        let Some(state) = self.domains.get_mut(name) else { return true };
        if state.marking.is_none() && !state.add_up(now, left) {
            return false;
        }
        if !self.begin_round_end(now, name) {
            return true;
        }
        let Some(state) = self.domains.get_mut(name) else { return true };
        let Some(marking) = state.marking.clone() else { return true };
        let by_origin = &self.by_origin;
        let marked = state.mark(now, &marking, *left, |origin| by_origin.get(origin).copied());
        *left -= marked.looked_at;
        let is_over = marked.last.is_none();
        if let Some(marking) = &mut state.marking {
            marking.after = marked.last;
        }
        for peer in marked.peers {
            if marking.is_all {
                self.tell_all(now, peer, name);
                continue;
            }
            if let Some(member) = self.members.get_mut(&peer) {
                member.owe(name);
            }
            self.schedule(peer, now);
        }
        is_over
    }

    /// Begins the walk through those that use a domain, unless it has begun. Returns whether there is one.
    fn begin_round_end(&mut self, now: Time, name: &Arc<str>) -> bool {
        let Some(state) = self.domains.get_mut(name) else { return false };
        if state.marking.is_some() {
            return true;
        }
        state.told_at = now;
        if !self.hot.contains(name) {
            if state.is_warm(now) && self.hot.len() < MOST_HOT {
                self.set_heat(now, name, true);
                return true;
            }
            return false;
        }
        state.rounds.close();
        state.marking = Some(Marking::default());
        if self.uplink.hot.contains(name) && (state.has_news(&DeltaOrigin::Above) || !state.is_known_above())
        {
            self.uplink.owe(name, PendingUpdate::Rest);
        }
        true
    }

    /// A stream to the node above has begun: of whatever is worth it everything is said.
    fn say_next_anew(&mut self, now: Time, left: &mut usize) {
        if *left == 0 {
            return;
        }
        let Some((since, after)) = self.walks.anew.take() else { return };
        let nodes = self.uplink.census.nodes.saturating_mul(2);
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut looked_at, mut last) = (0, None);
        for (name, state) in self.domains.range_mut((from, Bound::Unbounded)).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(name));
            if self.uplink.hot.contains(name) || state.has_share(now, nodes) {
                self.uplink.owe(name, PendingUpdate::All);
            }
        }
        if looked_at == *left {
            self.walks.anew = Some((since, last.cloned()));
        }
        *left -= looked_at;
    }

    /// Some of the domains, in their order: whoever has not used them for long enough is forgotten.
    fn sweep(&mut self, now: Time) {
        let (swept, mut left) = (self.walks.swept.take(), SWEPT);
        let from = swept.as_ref().map_or(Bound::Unbounded, |(name, _)| Bound::Included(Arc::clone(name)));
        let mut idle = Vec::new();
        for (name, state) in self.domains.range_mut((from, Bound::Unbounded)) {
            if left == 0 {
                self.walks.swept = Some((Arc::clone(name), None));
                break;
            }
            let begun = swept.as_ref().filter(|(begun, _)| begun == name).and_then(|(_, last)| last.as_ref());
            // Who serves a hot one is to go on hearing of it.
            let is_hot = self.hot.contains(name);
            let above = &self.uplink.hot;
            let is_kept = |origin: &DeltaOrigin| match origin {
                DeltaOrigin::Above => above.contains(name),
                DeltaOrigin::Below(..) => is_hot && self.by_origin.contains_key(origin),
            };
            let (looked_at, last) = state.rest(now, begun, left, is_kept);
            let is_more = state.let_go(left);
            left = left.saturating_sub(looked_at.max(1));
            if state.is_idle() && !is_more {
                idle.push(Arc::clone(name));
            }
            if last.is_some() || is_more {
                self.walks.swept = Some((Arc::clone(name), last));
                break;
            }
        }
        self.walks.next_sweep = now + if self.walks.swept.is_some() { GO_ON } else { SWEEP };
        for name in idle {
            self.domains.remove(&name);
            if self.hot.contains(&name) {
                self.set_heat(now, &name, false);
            }
        }
    }

    /// Lets cool down what has; then lets those who serve a hot domain hear something now and then, and all subscribers how
    /// many they are when that has changed much.
    fn look(&mut self, now: Time, left: &mut usize) {
        while *left > 0
            && let Some(Look { since, stage }) = self.walks.look.take()
        {
            let next = match stage {
                LookStage::Hot(after) => match self.cool_down(now, after, left) {
                    None => {
                        self.say_census();
                        Some(LookStage::Subscribers(None))
                    }
                    after => Some(LookStage::Hot(after)),
                },
                LookStage::Subscribers(after) => {
                    let after = self.look_after(now, after, left);
                    after.map(|after| LookStage::Subscribers(Some(after)))
                }
            };
            self.walks.look = next.map(|stage| Look { since, stage });
        }
    }

    /// Looks at some of the hot domains, and returns the last of them if there may be more.
    fn cool_down(&mut self, now: Time, after: Option<Arc<str>>, left: &mut usize) -> Option<Arc<str>> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (domains, above) = (&mut self.domains, &self.uplink.hot);
        let (mut calm, mut looked_at, mut last) = (Vec::new(), 0, None);
        for name in self.hot.range((from, Bound::Unbounded)).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(Arc::clone(name)));
            let state = domains.get_mut(name);
            if !above.contains(name) && state.is_none_or(|state| state.is_calm(now)) {
                calm.push(Arc::clone(name));
            }
        }
        let last = last.filter(|_| looked_at == *left);
        *left -= looked_at;
        calm.iter().for_each(|name| self.set_heat(now, name, false));
        last
    }

    /// Looks after some of the subscribers, and returns the last of them if there may be more.
    fn look_after(&mut self, now: Time, after: Option<Peer>, left: &mut usize) -> Option<Peer> {
        let all = self.all();
        let is_owed = |member: &Subscriber| {
            let count = count_for(member, all);
            let is_news = count > member.told_members || member.told_members > count * 4;
            member.due.is_none() && (!member.serves.is_empty() || is_news)
        };
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut due, mut looked_at, mut last) = (Vec::new(), 0, None);
        for (&peer, member) in self.members.range((from, Bound::Unbounded)).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(peer));
            if is_owed(member) {
                due.push(peer);
            }
        }
        let last = last.filter(|_| looked_at == *left);
        *left -= looked_at;
        due.into_iter().for_each(|peer| self.schedule(peer, now + PACE));
        last
    }
}

#[cfg(test)]
mod tests {
    use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
    use lessor_client::internals::domain::Policies;
    use lessor_proto::message::{DomainEntry, DomainHits, DomainReport, Hello, HolderKind};
    use lessor_proto::{ClientId, Incarnation, ResourceId};

    use super::*;
    use crate::mutation::Rules;

    const USERS: u64 = 100;
    /// A number of users that are not added up in one go.
    const CROWD: u64 = 600;

    fn domains(now: Time) -> SharedDomains {
        SharedDomains::new(now, ResourceId::new("db", 16).unwrap(), policies(400), Rules::default())
    }

    fn policies(limit: u32) -> Arc<Policies> {
        let (window, active) = (Duration::from_secs(10), Duration::from_secs(60));
        let tier = Tier {
            limit,
            window,
            active,
            cooldown: Duration::ZERO,
            is_skippable: false,
            kind: Window::Exact,
        };
        let contract = Contract::from(TierPolicy::new(vec![tier], None, None).unwrap());
        let rules = lessor_client::internals::domain::Rules { default: Some(contract), ..Default::default() };
        Arc::new(Policies::new(rules).unwrap())
    }

    /// One user says what is new.
    fn hit(domains: &mut SharedDomains, now: Time, user: u64, id: u64, hits: u32) {
        let entry = DomainEntry { policy: 0, tier: 1, at: now, hits, is_entered: id == 1 };
        say(domains, user, id, entry, id == 1);
    }

    /// One user says all that it did.
    fn hit_anew(domains: &mut SharedDomains, now: Time, user: u64, id: u64, hits: u32) {
        let entry = DomainEntry { policy: 0, tier: 1, at: now, hits, is_entered: id == 1 };
        say(domains, user, id, entry, true);
    }

    /// One user says what it did; all of it, or what is new.
    fn say(domains: &mut SharedDomains, user: u64, id: u64, entry: DomainEntry, all: bool) {
        let holder = ClientId::new(format!("web-{user}"), 16).unwrap();
        let hello = Hello { kind: HolderKind::Client, holder, incarnation: Incarnation(1), line: None };
        let now = entry.at;
        let hits = DomainHits { domain: "tenant".into(), all, others: 0, entries: vec![entry] };
        let (resource, version) = (domains.resource.clone(), domains.policies.version());
        let report = DomainReport { resource, version, id, ask: false, below: None, domains: vec![hits] };
        domains.hear(now, Peer::from(user), &hello, report);
    }

    /// Those that are told of hits after one turn.
    fn turn(domains: &mut SharedDomains, now: Time) -> u64 {
        let mut left = SLICE;
        domains.advance(now, &mut left);
        let mut told = 0;
        while let Some(peer) = domains.next_due(now) {
            let news = domains.news(now, peer);
            told += u64::from(news.is_some_and(|news| !news.domains.is_empty()));
        }
        told
    }

    #[test]
    fn the_end_of_a_round_reaches_everybody_and_in_one_turn_no_more_than_a_slice() {
        let mut now = Time::ZERO + Duration::from_secs(1);
        let mut domains = domains(now);
        (0..USERS).for_each(|user| hit(&mut domains, now, user, 1, 3));
        for _ in 0..USERS {
            turn(&mut domains, now);
        }
        assert!(domains.hot.contains("tenant"), "300 of 400 are used up");
        now += PACE;
        hit(&mut domains, now, 0, 2, 1);
        now += PACE;
        let turns: Vec<u64> = (0..USERS).map(|_| turn(&mut domains, now)).collect();
        assert!(turns.iter().all(|&told| told <= SLICE as u64), "{turns:?}");
        assert!(turns.iter().sum::<u64>() >= USERS - 1, "{turns:?}");
    }

    /// Hits that count.
    fn counted(domains: &SharedDomains, now: Time) -> u32 {
        domains.status(now, 1).busiest[0].hits_in_tier
    }

    /// A crowd of which each has made a hit, and knows of all of them.
    fn crowd() -> (Time, SharedDomains) {
        let mut now = Time::ZERO + Duration::from_secs(1);
        let mut domains = domains(now);
        (0..CROWD).for_each(|user| hit(&mut domains, now, user, 1, 1));
        for _ in 0..10 {
            now += PACE;
            (0..CROWD).for_each(|_| _ = turn(&mut domains, now));
        }
        assert_eq!((domains.hot.len(), counted(&domains, now)), (1, 600));
        (now, domains)
    }

    #[test]
    fn what_is_said_anew_is_added_up_in_slices_and_all_are_told_everything_then() {
        let (mut now, mut domains) = crowd();
        hit_anew(&mut domains, now, 5, 2, 41);
        assert_eq!(counted(&domains, now), 600, "it is not added up in the turn of a report");
        assert_eq!(turn(&mut domains, now), 1, "who says everything is told what is known");
        now += PACE;
        let slices = CROWD / SLICE as u64;
        (0..slices).for_each(|_| assert_eq!(turn(&mut domains, now), 0, "everybody is added up first"));
        // Hits that are said meanwhile count, of those who have been added up and of the others.
        hit(&mut domains, now, 6, 2, 2);
        hit(&mut domains, now, CROWD - 1, 2, 3);
        let told: u64 = (0..CROWD).map(|_| turn(&mut domains, now)).sum();
        assert_eq!(counted(&domains, now), 645);
        assert!(told >= CROWD - 1, "{told} are told");
        let state = &domains.domains["tenant"];
        assert!(!state.is_left_to_walk());
    }

    #[test]
    fn what_is_said_anew_while_all_are_added_up_is_added_up_after_that() {
        let (mut now, mut domains) = crowd();
        hit_anew(&mut domains, now, 5, 2, 41);
        now += PACE;
        (0..10).for_each(|_| _ = turn(&mut domains, now));
        hit_anew(&mut domains, now, 6, 2, 11);
        for _ in 0..10 {
            (0..CROWD).for_each(|_| _ = turn(&mut domains, now));
            now += PACE;
        }
        assert_eq!(counted(&domains, now), 650);
        assert!(!domains.domains["tenant"].is_left_to_walk());
    }

    #[test]
    fn other_policies_are_followed_in_slices_and_who_knows_everything_is_told_nothing() {
        let (mut now, mut domains) = crowd();
        domains.follow(now, policies(800));
        let mut told = 0;
        for _ in 0..4 {
            told += (0..CROWD).map(|_| turn(&mut domains, now)).sum::<u64>();
            now += PACE;
        }
        assert_eq!((told, counted(&domains, now)), (0, 600));
        hit(&mut domains, now, 5, 2, 2);
        now += PACE;
        let told: u64 = (0..CROWD).map(|_| turn(&mut domains, now)).sum();
        assert_eq!((counted(&domains, now), told >= CROWD - 1), (602, true));
    }
}
