//! One holder of one resource, as the grantor remembers it. There may be millions: every byte here counts.

use std::cmp::Ordering;
use std::num::NonZeroU32;

use compact_str::CompactString;
use lessor_algorithms::Demand;
use lessor_proto::message::{Band, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};

use super::life_flags::LifeFlags;
use crate::ledger::Account;
use crate::repository::Template;
use crate::resource::calendar::Tick;
use crate::resource::identity::{Holder, Life};
use crate::token::PollerLife;

/// The value of `heard` for a holder that was not charged for what it showed.
const NOTHING_SHOWN: u64 = u64::MAX;
/// The same for one that was never granted anything, not even nothing.
const UNANSWERED: u64 = u64::MAX - 1;

#[derive(Clone, Debug)]
pub(crate) struct Child {
    /// The id of the client or node.
    pub(crate) name: CompactString,
    /// Which life of it: its session is drawn by the holder if it is incarnated, which has begun in epoch 0 then, and else counted
    /// by this server.
    pub(crate) life: PollerLife,
    /// The account of what it is charged for.
    pub(super) account: Account,
    pub(super) demands: Demands,
    /// Its last report.
    pub(crate) last: LastReport,
    /// The number of the next grant within the round.
    next_seq: u32,
    /// Where it stands in the agenda.
    pub(crate) due: Tick,
    pub(crate) kind: HolderKind,
    /// The number of times that the numbers of grants have come to their end.
    round: u8,
    /// Of which sort this life is, and what others mean for it.
    pub(crate) flags: LifeFlags,
    /// It was charged for what it has from an earlier leader, which happens once.
    pub(crate) claimed: Claimed,
    /// Its knowledge of domains.
    pub(crate) knows: Knows,
}

/// The last report of a holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastReport {
    /// Of one that draws an incarnation the greatest report id heard, as wants of older reports are out of date; of
    /// others, who number nothing, the millionths of the lease that they last showed and were charged for, by which those
    /// who forget our fields are known again when an answer was lost.
    heard: u64,
    /// When it was last heard of.
    pub(crate) basis: Time,
}

/// The part of what a holder has from an earlier leader for which it was charged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    /// It has not claimed anything.
    Nothing,
    /// Less than it showed.
    Less,
    /// All that it showed.
    All,
}

/// Which policies of domains a holder has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knows {
    /// It does not know what domains are.
    Nothing,
    /// Those in force.
    These,
    /// Others, or none where there are some.
    Others,
}

/// The demands of a holder: nearly always one; from a node, one for each band.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Demands {
    One {
        wants: f64,
        weight: NonZeroU32,
        priority: i32,
    },
    /// Behind a thin pointer, so that it is no larger than one.
    Many(Box<Several>),
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Several(Vec<Demand>);

// === impl Child ===

impl Child {
    /// Whether it is the holder with this identity among all holders of the resource.
    pub(crate) fn is(&self, kind: HolderKind, name: &str, life: PollerLife, incarnated: bool) -> bool {
        self.life == life && self.flags.incarnated == incarnated && self.is_life_of(kind, name)
    }

    pub(crate) fn is_life_of(&self, kind: HolderKind, name: &str) -> bool {
        self.kind == kind && self.name == name
    }

    /// The first that is heard of it.
    pub(crate) fn new(now: Time, holder: Holder<'_>, life: PollerLife, demands: Demands) -> Child {
        let incarnated = matches!(holder.life, Life::Incarnation(_) | Life::Leader { .. });
        Child {
            name: CompactString::new(holder.name),
            life,
            account: Account::default(),
            demands,
            last: LastReport { heard: if incarnated { 0 } else { UNANSWERED }, basis: now },
            next_seq: 1,
            round: 0,
            due: Tick::default(),
            kind: holder.kind,
            flags: LifeFlags { incarnated, ..LifeFlags::default() },
            claimed: Claimed::Nothing,
            knows: Knows::Nothing,
        }
    }

    /// The account of what it is charged for.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    pub(crate) fn demands(&self) -> &Demands {
        &self.demands
    }

    /// Whether its demands do not count, as another life of it has appeared and it has been silent since.
    pub(crate) fn is_withdrawn(&self) -> bool {
        self.flags.withdrawn
    }

    /// The last report that counts its wants; absent where reports are not numbered.
    pub(crate) fn report_id(&self) -> Option<ReportId> {
        (self.flags.incarnated && self.last.heard > 0).then_some(ReportId(self.last.heard))
    }

    /// Whether something as late as `id` was heard of it before.
    pub(crate) fn has_heard(&self, id: Option<ReportId>) -> bool {
        self.flags.incarnated && id.is_some_and(|id| !self.is_later(id))
    }

    /// Whether report `id` comes after all that were heard. Numbers go round: one just behind the greatest is a small one.
    fn is_later(&self, id: ReportId) -> bool {
        self.last.heard == 0 && id.0 > 0 || id.0.wrapping_sub(self.last.heard).wrapping_sub(1) < u64::MAX / 2
    }

    /// Whether a report is news: later than all before, or not numbered. It is the last one from here on.
    pub(crate) fn hear(&mut self, now: Time, report_id: Option<ReportId>, shown: Option<Amount>) -> bool {
        if self.flags.incarnated {
            if self.has_heard(report_id) {
                return false;
            }
            self.last.heard = report_id.map_or(self.last.heard, |id| id.0);
        } else if let Some(shown) = shown.filter(|&shown| self.account.oldest_of(shown).is_some()) {
            self.last.heard = shown.as_micros();
        }
        self.last.basis = now;
        true
    }

    /// Numbers its next grant in epoch `epoch` above the one that it shows that it has adopted. Nobody is believed
    /// to have been granted half of all numbers there are, or one who lies could use them up.
    pub(crate) fn go_on_after_shown(&mut self, report: &Report, epoch: Epoch) {
        let shown = report.has.as_ref().and_then(|has| has.order).filter(|order| order.epoch == epoch);
        if let Some(order) = shown {
            self.go_on_after(order.seq);
        }
    }

    fn go_on_after(&mut self, seq: u64) {
        let (round, number) = parts(seq);
        if let Ok(round) = u8::try_from(round)
            && round <= u8::MAX / 2
            && (round, number) >= (self.round, self.next_seq)
        {
            if round > self.round {
                self.account.renumber(FIRST);
            }
            (self.round, self.next_seq) = (round, number);
            let _ = self.take_seq();
        }
    }

    /// The number of the next grant within the round, which it is from here on. When a round is over, all grants that
    /// still count are numbered as its first ones in the next, and what is said of their old numbers promises nothing. Nothing
    /// after 2^40 grants of one resource to one holder in one epoch.
    pub(crate) fn take_seq(&mut self) -> Option<u32> {
        if self.next_seq == u32::MAX {
            self.round = self.round.checked_add(1)?;
            self.account.renumber(FIRST);
            self.next_seq = FIRST + 1;
        }
        let seq = self.next_seq;
        self.next_seq += 1;
        Some(seq)
    }

    /// Something is granted to it, or nothing.
    pub(crate) fn note_answer(&mut self) {
        if !self.flags.incarnated && self.last.heard == UNANSWERED {
            self.last.heard = NOTHING_SHOWN;
        }
    }

    /// Whether it is a life of a holder without incarnation that was never answered: that is any life of its id which shows none.
    pub(crate) fn is_unanswered(&self) -> bool {
        !self.flags.incarnated && self.last.heard == UNANSWERED && self.account.is_empty()
    }

    /// The number of the last grant as its holder knows it.
    pub(crate) fn last_seq(&self) -> u64 {
        self.on_the_wire(self.next_seq - 1)
    }

    /// A number of this round as its holder knows it.
    pub(crate) fn on_the_wire(&self, seq: u32) -> u64 {
        u64::from(self.round) << 32 | u64::from(seq)
    }

    /// Up to which number of this round a holder has promised something that shows grant `seq`; nothing if it shows one
    /// of a round before.
    pub(crate) fn in_round(&self, seq: u64) -> Option<u64> {
        let (round, number) = parts(seq);
        match round.cmp(&u32::from(self.round)) {
            Ordering::Less => None,
            Ordering::Equal => Some(number.into()),
            Ordering::Greater => Some(u64::MAX),
        }
    }

    /// Another leader speaks for the node from here on; its reports are numbered anew.
    pub(crate) fn succeed(&mut self, incarnation: Incarnation) {
        self.life.session = incarnation;
        self.last.heard = 0;
    }

    /// Whether it may be the one that shows a lease of `amount` and nothing else: it was granted that much, or has shown
    /// such a grant before and may have missed the answers since. What it showed without a grant anybody of its id may
    /// show, who would then use what this one is charged for.
    pub(crate) fn may_show(&self, amount: Amount) -> bool {
        let has_nothing = amount == Amount::ZERO && self.account.is_empty();
        let has_shown = self.last.heard < UNANSWERED && self.last.heard == amount.as_micros();
        !self.flags.incarnated && (has_nothing || has_shown || self.account.oldest_of(amount).is_some())
    }

    /// When it should be looked at next, if nothing is heard of it.
    pub(crate) fn attention(&self, terms: &Template) -> Time {
        let missed = self.flags.is_to_be_withdrawn().then(|| self.last.basis + terms.refresh_interval * 2);
        let end = self.account.next_end().unwrap_or_else(|| self.forgotten_at(terms));
        missed.map_or(end, |missed| missed.min(end))
    }

    /// Until when it is remembered if it has nothing and is not heard of: for as long as it would have if it had.
    pub(crate) fn forgotten_at(&self, terms: &Template) -> Time {
        self.last.basis + terms.lease_length
    }
}

// === impl Demands ===

impl Demands {
    pub(crate) fn from_bands(bands: &[Band]) -> Demands {
        match bands {
            [Band { priority, subclients, wants }] => Demands::One {
                wants: *wants,
                weight: NonZeroU32::new(*subclients).expect("checked at the door"),
                priority: narrow(*priority),
            },
            bands => Demands::Many(Box::new(Several(bands.iter().map(demand).collect()))),
        }
    }

    /// The sum of what each of them gets by `share`. It is asked for in each decision, and nearly always there is one.
    #[inline]
    pub(crate) fn sum(&self, mut share: impl FnMut(Demand) -> f64) -> f64 {
        match self {
            Demands::One { wants, weight, priority } => {
                share(Demand { priority: (*priority).into(), weight: weight.get(), wants: *wants })
            }
            Demands::Many(many) => many.0.iter().copied().map(share).sum(),
        }
    }

    /// One by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Demand> {
        let (one, many) = match self {
            Demands::One { wants, weight, priority } => {
                (Some(Demand { priority: (*priority).into(), weight: weight.get(), wants: *wants }), &[][..])
            }
            Demands::Many(many) => (None, &many.0[..]),
        };
        one.into_iter().chain(many.iter().copied())
    }

    pub(crate) fn wants(&self) -> f64 {
        match self {
            Demands::One { wants, .. } => *wants,
            Demands::Many(many) => many.0.iter().map(|demand| demand.wants).sum(),
        }
    }

    pub(crate) fn weight(&self) -> u64 {
        match self {
            Demands::One { weight, .. } => weight.get().into(),
            Demands::Many(many) => many.0.iter().map(|demand| u64::from(demand.weight)).sum(),
        }
    }
}

fn demand(band: &Band) -> Demand {
    Demand { priority: narrow(band.priority).into(), weight: band.subclients, wants: band.wants }
}

/// Priorities beyond 32 bits are taken for the nearest within.
fn narrow(priority: i64) -> i32 {
    i32::try_from(priority).unwrap_or(if priority > 0 { i32::MAX } else { i32::MIN })
}

/// The number within a round that all grants get that were made before it.
const FIRST: u32 = 1;

/// The round that a grant was made in, and its number there.
fn parts(seq: u64) -> (u32, u32) {
    ((seq >> 32) as u32, (seq & u64::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests;
