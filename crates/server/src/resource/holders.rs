//! The holders of a resource: what each wants and is charged for, the totals of that, and whose turn it is.
//!
//! A demand counts in the shares of all, in those of the holders that draw no incarnation, and in the turns that are taken.
//! So it is changed here only, by [`Holders::insert`], [`Holders::change`], [`Holders::withdraw`] and [`Holders::remove`], and
//! each says whether that has [moved](Moved) what all want together. In the same way every change of a charge goes through
//! [`Holders::charge`].

mod child;
mod children;
mod life_flags;
mod polls;
mod reserve;
mod rotation;
mod seats;
mod totals;
mod unenforced;

use std::time::Duration;

use lessor_algorithms::{SharePolicy, Shares};
use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, Time};

use super::idlers::Idlers;
use super::said::SaidDemands;
use super::slab::Slot;
use crate::ledger::{Account, Ledger};
use crate::repository::Template;

pub(super) use self::child::{Child, Claimed, Demands, Knows};
use self::children::Children;
pub(super) use self::reserve::Short;
pub(super) use self::rotation::{UnitClaim, UnitRotation};
use self::totals::LegacyTotals;
use self::unenforced::UnenforcedTally;

/// All holders of one resource.
#[derive(Clone, Debug)]
pub(super) struct Holders {
    children: Children,
    shares: Shares,
    /// The totals of the holders that draw no incarnation.
    legacy: LegacyTotals,
    /// The turns that holders take.
    rotation: UnitRotation,
    /// The step that the level was cut to last, where that is done.
    step: f64,
    /// When one of them was last heard of.
    touched: Time,
    /// The number of times that a life of a holder went on after another had begun.
    duplicates: u64,
    /// Those that make room if there is none.
    idlers: Idlers,
    /// The demands that were said, of those whose demands are cut.
    said: SaidDemands,
    /// The units that were asked for while everything was let pass, once there is something to be said of that.
    unenforced: Option<Box<UnenforcedTally>>,
}

/// Whether what all holders want together has moved: then so have the shares, and the node above is to be told.
#[must_use = "those who listen and the node above are to be told"]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moved(pub(super) bool);

// === impl Holders: demands ===

impl Holders {
    /// Nobody holds anything of what `template` says. `seed` decides where names fall in hash tables.
    pub(super) fn new(now: Time, template: &Template, seed: u64) -> Holders {
        Holders {
            children: Children::new(seed),
            shares: Shares::new(template.policy, template.shared().as_f64()),
            legacy: LegacyTotals::default(),
            rotation: UnitRotation::new(template),
            step: 0.0,
            touched: now,
            duplicates: 0,
            idlers: Idlers::default(),
            said: SaidDemands::default(),
            unenforced: None,
        }
    }

    /// One more holder.
    pub(super) fn insert(&mut self, child: Child) -> (Slot, Moved) {
        self.legacy.add(child.flags.incarnated);
        let slot = self.children.insert(child);
        self.enter(slot);
        self.rotation.spoil();
        (slot, Moved(true))
    }

    /// The holder at `slot` wants this from here on.
    pub(super) fn change(&mut self, slot: Slot, demands: Demands) -> Moved {
        let child = self.children.at(slot);
        if child.demands == demands && !child.flags.withdrawn {
            return Moved(false);
        }
        self.leave(slot);
        let child = self.children.at_mut(slot);
        (child.demands, child.flags.withdrawn) = (demands, false);
        self.enter(slot);
        self.rotation.spoil();
        Moved(true)
    }

    /// The demands of the holder at `slot` count as this from here on, as far as they count.
    pub(super) fn restate(&mut self, slot: Slot, demands: Demands) -> Moved {
        let child = self.children.at_mut(slot);
        if child.flags.withdrawn {
            child.demands = demands;
            return Moved(false);
        }
        self.change(slot, demands)
    }

    /// The demands of the holder at `slot` do not count until it is heard of again.
    pub(super) fn withdraw(&mut self, slot: Slot) -> Moved {
        if self.children.at(slot).flags.withdrawn {
            return Moved(false);
        }
        self.leave(slot);
        self.children.at_mut(slot).flags.withdrawn = true;
        self.rotation.spoil();
        Moved(true)
    }

    /// The holder at `slot` is forgotten, which is charged for nothing any more.
    pub(super) fn remove(&mut self, slot: Slot) -> Moved {
        self.idlers.remove(slot);
        self.said.forget(slot);
        self.leave(slot);
        self.rotation.leave(slot);
        self.rotation.spoil();
        let child = self.children.remove(slot);
        self.legacy.remove(child.flags.incarnated);
        Moved(true)
    }

    /// Changes the charge of the holder at `slot`, and the sum of those that draw no incarnation with it.
    pub(super) fn charge<T>(
        &mut self,
        slot: Slot,
        ledger: &mut Ledger,
        change: impl FnOnce(&mut Ledger, &mut Account) -> T,
    ) -> T {
        let (child, before) = (self.children.at_mut(slot), ledger.lent());
        let outcome = change(ledger, &mut child.account);
        if !child.flags.incarnated {
            self.legacy.move_lent(before, ledger.lent());
        }
        outcome
    }

    fn enter(&mut self, slot: Slot) {
        let child = self.children.at(slot);
        for demand in child.demands.iter() {
            self.shares.insert(&demand);
            self.legacy.enter(child.flags.incarnated, &demand);
        }
    }

    fn leave(&mut self, slot: Slot) {
        let child = self.children.at(slot);
        if !child.flags.withdrawn {
            for demand in child.demands.iter() {
                self.shares.remove(&demand);
                self.legacy.leave(child.flags.incarnated, &demand);
            }
        }
    }
}

// === impl Holders: the whole ===

impl Holders {
    /// The shares of all.
    pub(super) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The totals of those that draw no incarnation.
    pub(super) fn legacy(&self) -> &LegacyTotals {
        &self.legacy
    }

    /// The turns that holders take.
    pub(super) fn rotation(&self) -> &UnitRotation {
        &self.rotation
    }

    /// The same, to take one.
    pub(super) fn rotation_mut(&mut self) -> &mut UnitRotation {
        &mut self.rotation
    }

    /// Those that make room if there is none.
    pub(super) fn idlers(&self) -> &Idlers {
        &self.idlers
    }

    /// The same, to note one or to take one.
    pub(super) fn idlers_mut(&mut self) -> &mut Idlers {
        &mut self.idlers
    }

    /// The units that were asked for while everything was let pass, as they were said.
    pub(super) fn unenforced(&self) -> Unenforced {
        self.unenforced.as_ref().map(|tally| tally.sums()).unwrap_or_default()
    }

    /// Whether the holder at `slot` has said that it counts them.
    pub(super) fn counts_units(&self, slot: Slot) -> bool {
        self.unenforced.as_ref().is_some_and(|tally| tally.counts(slot))
    }

    /// The tally of them.
    pub(super) fn tally_mut(&mut self) -> &mut UnenforcedTally {
        self.unenforced.get_or_insert_default()
    }

    /// The demands that were said, of those whose demands are cut.
    pub(super) fn said(&self) -> &SaidDemands {
        &self.said
    }

    /// The same, to note one.
    pub(super) fn said_mut(&mut self) -> &mut SaidDemands {
        &mut self.said
    }

    /// Shares are as `template` says from here on.
    pub(super) fn configure(&mut self, template: &Template) {
        self.shares.set_policy(template.policy);
        self.shares.set_capacity(template.shared().as_f64());
        self.rotation.configure(template);
    }

    /// No template says how to share any more.
    pub(super) fn set_policy(&mut self, policy: SharePolicy) {
        self.shares.set_policy(policy);
    }

    /// The whole that is shared is `capacity` from here on, of which those that draw no incarnation may have `part`.
    pub(super) fn set_capacity(&mut self, capacity: Amount, part: Amount) {
        self.shares.set_capacity(capacity.as_f64());
        self.legacy.set_capacity(part);
        self.rotation.spoil();
    }

    /// Shares the part that those that draw no incarnation may have of the capacity, where `terms` limit it.
    pub(super) fn share_part(&mut self, terms: &Template) {
        let counts = |child: &&Child| !child.flags.incarnated && !child.flags.withdrawn;
        let counted = self.children.iter().filter(counts).map(|child| &child.demands);
        self.legacy.share_part(terms, self.shares.policy(), counted);
    }

    /// The step that the level was cut to last.
    pub(super) fn step(&self) -> f64 {
        self.step
    }

    /// The level is cut to `step` from here on.
    pub(super) fn set_step(&mut self, step: f64) {
        self.step = step;
    }

    /// Somebody was heard of at `now`.
    pub(super) fn touch(&mut self, now: Time) {
        self.touched = now;
    }

    /// Since when nobody has been heard of for `time` if nobody is until then.
    pub(super) fn untouched_from(&self, time: Duration) -> Time {
        self.touched + time
    }

    /// A life of a holder may have gone on after another had begun.
    pub(super) fn note_duplicate(&mut self, is_one: bool) {
        self.duplicates += u64::from(is_one);
    }

    /// The number of times that a life of a holder went on after another had begun.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }
}

// === impl Holders: one by one ===

impl Holders {
    /// All of them, by who they are.
    pub(super) fn children(&self) -> &Children {
        &self.children
    }

    /// The holder at `slot`, which must be there.
    #[inline]
    pub(super) fn at(&self, slot: Slot) -> &Child {
        self.children.at(slot)
    }

    /// The same, to change what is neither its demand nor its charge.
    #[inline]
    pub(super) fn at_mut(&mut self, slot: Slot) -> &mut Child {
        self.children.at_mut(slot)
    }

    /// The holder at `slot` is the one of a line of succession.
    pub(super) fn note_line(&mut self, slot: Slot, line: u64) {
        self.children.note_line(slot, line);
    }

    /// Looks after the holder at `slot` when `terms` say, if nothing is heard of it.
    pub(super) fn schedule(&mut self, slot: Slot, terms: &Template) {
        self.children.schedule(slot, terms);
    }

    /// Those to be looked after by `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<Vec<Slot>> {
        self.children.due(now)
    }
}
