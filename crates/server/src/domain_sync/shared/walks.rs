//! Walks through many: rounds that end, domains that cool down, subscribers that are looked after, and what is said anew above.
//!
//! A lock is held meanwhile, and there may be ten thousand of each. So a walk is done in slices, and goes on with the next
//! turn where it stopped.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use lessor_proto::Time;

use super::{MOST_HOT, PACE, SharedDomains, count_for};
use crate::domain_sync::marking::Marking;
use crate::domain_sync::origin::DeltaOrigin;
use crate::domain_sync::subscriber::{PendingUpdate, Subscriber};
use crate::streams::Peer;

/// The most subscribers, users or domains that are looked at in one turn.
pub(in crate::domain_sync) const SLICE: usize = 16;
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
        if self.hot_set.is_due(now) {
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
        let Some(before) = state.schedule.expect(at) else { return };
        if let Some(due) = before {
            self.rounds.remove(&(due, Arc::clone(name)));
        }
        self.rounds.insert((at, Arc::clone(name)));
    }

    /// The walk that was set for a domain begins with the next turn.
    pub(super) fn begin_walk(&mut self, now: Time, name: &Arc<str>) {
        let Some(state) = self.domains.get_mut(name) else { return };
        let Some(before) = state.schedule.bring_forward(now) else { return };
        if let Some(due) = before {
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
        let (mut behind, mut looked_at, mut last) = (Vec::new(), 0, None);
        for (peer, member) in self.members.after(after).take(*left) {
            (looked_at, last) = (looked_at + 1, Some(peer));
            if !self.hot_set.is_known(member) {
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
                let due_after = state.schedule.end();
                let again = state.is_left_to_walk().then_some(now + PACE);
                if let Some(due) = due_after.or(again) {
                    self.expect(&name, due);
                }
            }
        }
    }

    /// Closes the round of a domain: the hits that were said meanwhile go to those that use it. Returns whether all of them
    /// were looked at.
    fn end_round(&mut self, now: Time, name: &Arc<str>, left: &mut usize) -> bool {
        let Some(state) = self.domains.get_mut(name) else { return true };
        if !state.schedule.is_walking() && !state.add_up(now, left) {
            return false;
        }
        if !self.begin_round_end(now, name) {
            return true;
        }
        let Some(state) = self.domains.get_mut(name) else { return true };
        let Some(marking) = state.schedule.walk().cloned() else { return true };
        let members = &self.members;
        let marked = state.mark(now, &marking, *left, |origin| members.of(origin));
        *left -= marked.looked_at;
        let is_over = marked.last.is_none();
        state.schedule.walk_after(marked.last);
        for peer in marked.peers {
            if marking.is_all {
                self.tell_all(now, peer, name);
                continue;
            }
            if let Some(member) = self.members.get_mut(peer) {
                member.owe(name);
            }
            self.schedule(peer, now);
        }
        is_over
    }

    /// Begins the walk through those that use a domain, unless it has begun. Returns whether there is one.
    fn begin_round_end(&mut self, now: Time, name: &Arc<str>) -> bool {
        let Some(state) = self.domains.get_mut(name) else { return false };
        if state.schedule.is_walking() {
            return true;
        }
        state.schedule.told_at = now;
        if !self.hot.contains(name) {
            if state.is_warm(now) && self.hot.len() < MOST_HOT {
                self.set_hot(now, name, true);
                return true;
            }
            return false;
        }
        state.rounds.close();
        state.schedule.set_walk(Some(Marking::default()));
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
                DeltaOrigin::Below(..) => is_hot && self.members.of(origin).is_some(),
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
                self.set_hot(now, &name, false);
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
        calm.iter().for_each(|name| self.set_hot(now, name, false));
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
        let (mut due, mut looked_at, mut last) = (Vec::new(), 0, None);
        for (peer, member) in self.members.after(after).take(*left) {
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
mod tests;
