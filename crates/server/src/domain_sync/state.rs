//! The state of one domain: what each of those that use it did, and all of them together.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use lessor_algorithms::tiers::{Contract, Domain, MergeEntry, Status, TierState, coarsened};
use lessor_client::internals::domain::{entry_at, is_share, message_at};
use lessor_proto::Time;
use lessor_proto::message::{DomainEntry, DomainHits, HolderKind};

use super::marking::{Marked, Marking};
use super::origin::DeltaOrigin;
use super::part::UserPart;
use super::remainder::{sorted, without};
use super::rounds::Rounds;
use super::schedule::UpdateSchedule;
use super::subscriber::PendingUpdate;
use super::sum::DomainSum;
use crate::mutation::{Rule, Rules};
use crate::streams::Peer;

/// The most entries about one domain.
const MOST_ENTRIES: usize = 512;

/// The number of those in a round that is not kept any more that are let go of for each that is looked at.
const LET_GO: usize = 4;

/// The state of one domain.
#[derive(Clone, Debug)]
pub(super) struct DomainState {
    pub(super) contract: Arc<Contract>,
    /// Those that use it, or did as long as that counts.
    parts: BTreeMap<DeltaOrigin, UserPart>,
    /// The hits of all of them.
    sum: DomainSum,
    /// The number of times that somebody was told what is not so.
    corrections: u64,
    /// All of the sum in few entries, as long as nothing changes.
    whole: Option<Vec<MergeEntry>>,
    /// The hits that were said since it is hot.
    pub(super) rounds: Rounds,
    /// The rounds by the policies of before, while not all that use it have been looked at since.
    former: Option<Rounds>,
    /// When those that use it are to be told.
    pub(super) schedule: UpdateSchedule,
    /// Hits that were made below and not told above.
    pub(super) untold: u32,
    /// The round of the way up in which something of it was said last.
    pub(super) said_above: Option<u64>,
    /// The number of those who use it elsewhere, as the node above says.
    pub(super) others_above: usize,
    rules: Rules,
}

/// The outcome of a report.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// It takes the place of what was said before.
    pub(super) is_replaced: bool,
    /// A tier is entered with it: others cannot wait for that.
    pub(super) is_entered: bool,
    /// Nothing was known of whoever reported it.
    pub(super) is_new: bool,
}

// === impl DomainState ===

impl DomainState {
    pub(super) fn new(now: Time, contract: Arc<Contract>, rules: Rules) -> DomainState {
        DomainState {
            contract,
            parts: BTreeMap::new(),
            sum: DomainSum::default(),
            corrections: 0,
            whole: None,
            rounds: Rounds::default(),
            former: None,
            schedule: UpdateSchedule::new(now),
            untold: 0,
            said_above: None,
            others_above: 0,
            rules,
        }
    }

    /// From here on hits count by `contract`. Who was not told something is told everything instead, by the tiers that there
    /// are then; who that is, the next walk through those that use it finds out.
    pub(super) fn follow(&mut self, now: Time, contract: &Arc<Contract>, is_hot: bool) {
        self.refresh(now);
        self.rounds.close();
        let before = std::mem::take(&mut self.rounds);
        self.rounds = Rounds::after(&before);
        // Where some have not been looked at since the last change, they are told everything.
        match self.former.take() {
            None if is_hot => self.former = Some(before),
            former => former.into_iter().chain([before]).for_each(|rounds| self.rounds.retire(rounds)),
        }
        self.schedule.walk_after(None);
        self.sum.swap(&self.contract, contract, now);
        self.contract = Arc::clone(contract);
        self.whole = None;
    }

    /// `origin` says what it did, or all that it did. What is said to have been later than now was now. Of a hot domain it is
    /// kept for those that are to be told.
    pub(super) fn take(
        &mut self,
        now: Time,
        origin: &DeltaOrigin,
        (all, is_hot): (bool, bool),
        entries: &[DomainEntry],
    ) -> Taken {
        let known: Vec<DomainEntry> =
            entries.iter().map(|entry| DomainEntry { at: entry.at.min(now), ..*entry }).collect();
        let is_new = !self.parts.contains_key(origin);
        let all = all && self.rules.keep(Rule::AnewReplaces);
        let is_replaced = all && !is_new;
        let (contract, corrections) = (&self.contract, self.corrections);
        let fresh = || UserPart::new(contract, corrections);
        let part = self.parts.entry(origin.clone()).or_insert_with(fresh);
        if all {
            part.clear(contract);
        }
        if *origin != DeltaOrigin::Above {
            let hits = known.iter().filter(|entry| entry.policy == 0).map(|entry| entry.hits);
            self.untold = hits.fold(self.untold, u32::saturating_add);
        }
        for entry in known.iter().filter_map(|known| entry_at(known, known.at)) {
            part.history(now, contract).merge(contract, &entry);
            if !is_replaced {
                self.sum.add(contract, origin, &entry);
            }
        }
        self.whole = None;
        match (is_hot, is_replaced) {
            (false, false) => {}
            (true, false) => self.rounds.add(origin, &known),
            (_, true) => {
                self.sum.spoil();
                // What `origin` was told is so all the same. To tell it everything would make a node do the same, for ever.
                self.correct(Some(origin));
            }
        }
        Taken { is_replaced, is_entered: known.iter().any(|entry| entry.is_entered), is_new }
    }

    /// The next slice of the walk, of at most `most` of those that use it; `peer_of` says on which stream each listens.
    pub(super) fn mark(
        &mut self,
        now: Time,
        marking: &Marking,
        most: usize,
        peer_of: impl Fn(&DeltaOrigin) -> Option<Peer>,
    ) -> Marked {
        let from = marking.after.as_ref().map_or(Bound::Unbounded, Bound::Excluded);
        let (rounds, former, corrections) = (&self.rounds, &self.former, self.corrections);
        let (mut peers, mut looked_at, mut last) = (Vec::new(), 0, None);
        for (origin, part) in self.parts.range_mut((from, Bound::Unbounded)).take(most) {
            (looked_at, last) = (looked_at + 1, Some(origin));
            part.history(now, &self.contract);
            let is_before = part.cursor < rounds.first();
            if is_before && former.as_ref().is_some_and(|former| !former.has_news(part.cursor, origin)) {
                part.cursor = rounds.first();
            }
            let is_misled = part.corrected < corrections;
            if marking.is_all || is_misled || rounds.has_news(part.cursor, origin) {
                peers.extend(peer_of(origin));
            }
        }
        let last = last.filter(|_| looked_at == most).cloned();
        if last.is_none()
            && let Some(former) = self.former.take()
        {
            self.rounds.retire(former);
        }
        self.rounds.let_go(LET_GO * most);
        Marked { peers, looked_at, last }
    }

    /// Goes on with the walk that adds up what all of them did, if there is one, by at most `left`, which is lowered by as many.
    /// Returns whether it has come to its end.
    pub(super) fn add_up(&mut self, now: Time, left: &mut usize) -> bool {
        if !self.sum.is_stale() {
            return true;
        }
        self.whole = None;
        self.sum.walk(now, &self.contract, &mut self.parts, left)
    }

    /// Whether what all of them did is to be added up by such a walk.
    pub(super) fn is_left_to_walk(&self) -> bool {
        self.sum.is_left_to_walk(&self.parts)
    }

    /// The number of those who use it, as far as is known.
    pub(super) fn users(&self) -> usize {
        self.users_below() + self.others_above
    }

    /// The number of those who have reported it here.
    pub(super) fn users_below(&self) -> usize {
        self.parts.len() - usize::from(self.parts.contains_key(&DeltaOrigin::Above))
    }

    /// Whether it is known what the node above was not told yet.
    pub(super) fn is_known_above(&self) -> bool {
        self.parts.contains_key(&DeltaOrigin::Above)
    }

    /// From here on it is known what the node above was not told yet.
    pub(super) fn open_above(&mut self) {
        let (contract, corrections) = (&self.contract, self.corrections);
        self.parts.entry(DeltaOrigin::Above).or_insert_with(|| UserPart::new(contract, corrections));
    }

    /// Another life of a node says all that there is below it: what lives of that name said that are not there any more does
    /// not count beside it.
    pub(super) fn succeed(&mut self, origin: &DeltaOrigin, is_there: impl Fn(&DeltaOrigin) -> bool) {
        let DeltaOrigin::Below(HolderKind::Node, name, _) = origin else { return };
        let life = |life| DeltaOrigin::Below(HolderKind::Node, name.clone(), life);
        let lives = self.parts.range(life(0)..=life(u64::MAX)).map(|(other, _)| other);
        let gone: Vec<DeltaOrigin> =
            lives.filter(|&other| other != origin && !is_there(other)).cloned().collect();
        for other in &gone {
            self.parts.remove(other);
            self.sum.spoil();
        }
        if !gone.is_empty() {
            self.correct(None);
        }
    }

    /// All of them were told what is not so, but for this one.
    fn correct(&mut self, but: Option<&DeltaOrigin>) {
        let before = self.corrections;
        self.corrections += 1;
        if let Some(part) = but.and_then(|origin| self.parts.get_mut(origin))
            && part.corrected == before
        {
            part.corrected = self.corrections;
        }
    }

    /// Whether hits that were made below are worth being told above, where so many nodes tell each other.
    pub(super) fn has_share(&mut self, now: Time, nodes: u32) -> bool {
        self.refresh(now);
        let mut tiers = self.sum.total().tiers(&self.contract, now.as_nanos());
        self.users_below() > 0 && tiers.any(|tier| is_share(tier.hits, tier.limit, nodes))
    }

    /// The hits of all of them, as of `now`.
    pub(super) fn look(&self, now: Time) -> Domain {
        self.sum.look(now, &self.contract, &self.parts)
    }

    /// Whether half of some limit is used up, or a tier was entered that matters to others.
    pub(super) fn is_warm(&mut self, now: Time) -> bool {
        self.uses(now, 2)
    }

    /// Whether less than a quarter of each limit is used up, and no tier was entered that matters to others.
    pub(super) fn is_calm(&mut self, now: Time) -> bool {
        !self.uses(now, 4)
    }

    /// Forgets what does not count, and those who have not used it for long enough and are not to be kept: of at most `most`
    /// that come after `from`. Returns how many were looked at, and the last of them if there are more.
    pub(super) fn rest(
        &mut self,
        now: Time,
        from: Option<&DeltaOrigin>,
        most: usize,
        is_kept: impl Fn(&DeltaOrigin) -> bool,
    ) -> (usize, Option<DeltaOrigin>) {
        let (contract, nanos) = (&self.contract, now.as_nanos());
        let from = from.map_or(Bound::Unbounded, Bound::Excluded);
        let (mut looked_at, mut last, mut gone) = (0, None, Vec::new());
        for (origin, part) in self.parts.range_mut((from, Bound::Unbounded)).take(most) {
            let history = part.history(now, contract);
            history.rest(contract, nanos);
            if history.is_idle(contract, nanos) && !is_kept(origin) {
                gone.push(origin.clone());
            }
            (looked_at, last) = (looked_at + 1, Some(origin));
        }
        let last = last.filter(|_| looked_at == most).cloned();
        gone.iter().for_each(|origin| _ = self.parts.remove(origin));
        if last.is_none() {
            self.sum.rest(contract, now);
            self.whole = None;
        }
        (looked_at, last)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    /// Lets go of as much of what is not kept any more as `most` that use it can be looked at for. Returns whether there is more.
    pub(super) fn let_go(&mut self, most: usize) -> bool {
        self.rounds.let_go(LET_GO * most)
    }

    /// Whether others than `origin` said something of which it was not told.
    pub(super) fn has_news(&self, origin: &DeltaOrigin) -> bool {
        let has_news =
            |part: &UserPart| part.corrected < self.corrections || self.rounds.has_news(part.cursor, origin);
        self.parts.get(origin).is_some_and(has_news)
    }

    /// The hits that `origin` is to be told, if there are any.
    pub(super) fn hits_for(
        &mut self,
        now: Time,
        name: Arc<str>,
        origin: &DeltaOrigin,
        pending: PendingUpdate,
    ) -> Option<DomainHits> {
        let &UserPart { cursor, corrected, .. } = self.parts.get(origin)?;
        let is_misled = corrected < self.corrections;
        let is_all = pending == PendingUpdate::All || is_misled;
        let own = self.rules.keep(Rule::OwnKept).then_some(origin);
        let rest = if is_all { None } else { self.rounds.news(cursor, own) };
        if rest.as_ref().is_some_and(Vec::is_empty) {
            return None;
        }
        let all = rest.is_none();
        let entries = rest.unwrap_or_else(|| self.all_but(now, origin));
        let next = self.rounds.next();
        let part = self.parts.get_mut(origin)?;
        if self.rules.keep(Rule::ToldOnce) {
            part.cursor = next;
        }
        // By a sum that is to be added up again it is misled.
        let is_misled = all && self.sum.is_stale();
        part.corrected = self.corrections.saturating_sub(is_misled.into());
        let others = u32::try_from(self.users().saturating_sub(1)).unwrap_or(u32::MAX);
        Some(DomainHits { domain: name, all, others, entries })
    }

    /// Everything that counts of what others than `origin` did, as far as it was said: the total less what `origin` did. Of
    /// hits that were told as one none is left that it made itself.
    fn all_but(&mut self, now: Time, origin: &DeltaOrigin) -> Vec<DomainEntry> {
        self.rounds.close();
        self.refresh(now);
        let nanos = now.as_nanos();
        let is_own = self.rules.keep(Rule::OwnKept);
        let own = self.parts.get(origin).filter(|_| is_own);
        let own = own.map(|part| part.export(now, &self.contract));
        let (contract, total) = (&self.contract, self.sum.total());
        let whole =
            self.whole.get_or_insert_with(|| coarsened(sorted(total.export(contract, nanos)), MOST_ENTRIES));
        let entries = without(whole.clone(), &sorted(own.unwrap_or_default()));
        entries.iter().filter_map(|entry| message_at(entry, Time::from_nanos(entry.at))).collect()
    }

    /// Whether one part in so many of some limit is used up, or a tier was entered that matters to others.
    fn uses(&mut self, now: Time, part: u64) -> bool {
        self.refresh(now);
        let uses = |hits: u32, limit: u32| hits > 0 && u64::from(hits) * part >= u64::from(limit);
        let nanos = now.as_nanos();
        let hard = self.contract.hard_limit();
        let total = self.sum.total();
        hard.is_some_and(|hard| uses(total.hits_in_second(&self.contract, nanos), hard))
            || total
                .tiers(&self.contract, nanos)
                .any(|tier| uses(tier.hits, tier.limit) || self.is_entered(&tier))
    }

    /// Whether a tier was entered that others have to know of.
    fn is_entered(&self, tier: &TierState) -> bool {
        let rests = || !self.contract.policies()[tier.policy].tiers()[tier.tier - 1].cooldown.is_zero();
        tier.status != Status::Inactive && (tier.tier > 1 || self.users() > 1 && rests())
    }

    fn refresh(&mut self, now: Time) {
        if self.sum.refresh(now, &self.contract, &self.parts) {
            self.whole = None;
        }
    }
}
