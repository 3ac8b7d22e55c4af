//! The holders of one resource: by who they are, by slot, and by when they need attention.

use std::collections::BTreeMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use lessor_proto::{Amount, Epoch, Incarnation, Time};

use super::child::Child;
use crate::repository::Template;
use crate::resource::calendar::{Calendar, Tick};
use crate::resource::identity::{Holder, Life};
use crate::resource::slab::{Slab, Slot};
use crate::token::PollerLife;

#[derive(Clone, Debug)]
pub(crate) struct Children {
    slab: Slab<Child>,
    by_name: HashTable<Slot>,
    hasher: FixedState,
    seed: u64,
    calendar: Calendar,
    /// In which line of succession nodes stand that stand in one.
    lines: BTreeMap<Slot, u64>,
}

// === impl Children ===

impl Children {
    /// `seed` decides where names fall in the table, so that nobody can choose names that fall together.
    pub(crate) fn new(seed: u64) -> Children {
        Children {
            slab: Slab::new(),
            by_name: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            seed,
            calendar: Calendar::default(),
            lines: BTreeMap::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    #[inline]
    pub(crate) fn at(&self, slot: Slot) -> &Child {
        self.slab.at(slot)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, slot: Slot) -> &mut Child {
        self.slab.at_mut(slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Child> {
        self.slab.iter().map(|(_, child)| child)
    }

    /// All of them, with where they are.
    pub(crate) fn iter_slots(&self) -> impl Iterator<Item = (Slot, &Child)> {
        self.slab.iter()
    }

    /// Those at `slot` and after it, with where they are.
    pub(crate) fn iter_from(&self, slot: Slot) -> impl Iterator<Item = (Slot, &Child)> {
        self.slab.iter_from(slot)
    }

    /// The child at `slot`, if there is one.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Child> {
        self.slab.get(slot)
    }

    /// The child at `slot` is the one of a line of succession.
    pub(crate) fn note_line(&mut self, slot: Slot, line: u64) {
        self.lines.insert(slot, line);
    }

    /// The child that a request comes from, if it is known.
    pub(crate) fn locate(&self, holder: Holder<'_>) -> Option<Slot> {
        match holder.life {
            Life::Incarnation(incarnation) => {
                let life = PollerLife { epoch: Epoch::default(), session: incarnation };
                self.find(holder, life, true)
            }
            Life::Leader { line, .. } => self.lives(holder).find(|slot| self.lines.get(slot) == Some(&line)),
            Life::Session(life) => self.find(holder, life, false),
            Life::Unnamed(has) => self.recognise(holder, has.capacity),
            Life::New => None,
        }
    }

    /// All lives of one id.
    pub(crate) fn lives(&self, holder: Holder<'_>) -> impl Iterator<Item = Slot> {
        let slots = self.by_name.iter_hash(self.hash(holder.name)).copied();
        slots.filter(move |&slot| self.slab.at(slot).is_life_of(holder.kind, holder.name))
    }

    /// The life of an id to be freed when one of them, it is not known which, gives back all it has: one whose charge all
    /// others cover for as long as it lasts. If there is none, nothing is freed before it ends. Where two processes without
    /// incarnation have one id, one that had nothing any more can free what the other has: the wire does not tell.
    pub(crate) fn dispensable(&self, holder: Holder<'_>) -> Option<Slot> {
        let counted = || self.lives(holder).filter(|&slot| !self.slab.at(slot).flags.incarnated);
        let account = |slot: Slot| &self.slab.at(slot).account;
        let least = counted().min_by_key(|&slot| (account(slot).charge(), account(slot).last_end(), slot))?;
        let (charge, end) = (account(least).charge(), account(least).last_end());
        let covered = |slot: Slot| charge == Amount::ZERO || account(slot).covers_until(charge) >= end;
        counted().filter(|&slot| slot != least).all(covered).then_some(least)
    }

    pub(crate) fn insert(&mut self, child: Child) -> Slot {
        let hash = self.hash(&child.name);
        let slot = self.slab.insert(child);
        let (slab, hasher) = (&self.slab, &self.hasher);
        self.by_name.insert_unique(hash, slot, |&slot| hasher.hash_one(slab.at(slot).name.as_str()));
        slot
    }

    /// Where the child stands in the agenda is out of date from here on, which the agenda finds out by itself.
    pub(crate) fn remove(&mut self, slot: Slot) -> Child {
        let hash = self.hash(&self.slab.at(slot).name);
        if let Ok(entry) = self.by_name.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
        self.lines.remove(&slot);
        let child = self.slab.remove(slot).expect("a child is removed once");
        if self.by_name.len() * 4 < self.by_name.capacity() && self.by_name.capacity() > 64 {
            let (slab, hasher) = (&self.slab, &self.hasher);
            let room = self.by_name.len() * 2;
            self.by_name.shrink_to(room, |&slot| hasher.hash_one(slab.at(slot).name.as_str()));
        }
        child
    }

    /// Puts a child on the agenda, unless it stands there early enough already.
    pub(crate) fn schedule(&mut self, slot: Slot, terms: &Template) {
        let child = self.slab.at_mut(slot);
        let tick = Tick::after(child.attention(terms));
        if child.due == Tick::default() || tick < child.due {
            child.due = tick;
            self.calendar.add(tick, slot);
        }
    }

    /// The children whose time has come, in the order in which they were put on the agenda.
    pub(crate) fn due(&mut self, now: Time) -> Option<Vec<Slot>> {
        let (tick, mut slots) = self.calendar.pop(now)?;
        slots.retain(|&slot| match self.slab.get(slot) {
            Some(child) if child.due == tick => {
                self.slab.at_mut(slot).due = Tick::default();
                true
            }
            _ => false,
        });
        Some(slots)
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.calendar.next_deadline()
    }

    fn find(&self, holder: Holder<'_>, life: PollerLife, incarnated: bool) -> Option<Slot> {
        let is_it = |slot: &Slot| {
            self.slab.at(*slot).is(holder.kind, holder.name, life, incarnated)
                && (self.lines.is_empty() || !self.lines.contains_key(slot))
        };
        self.by_name.find(self.hash(holder.name), is_it).copied()
    }

    /// The life that shows a lease of `amount` without our token. Where several may be it, the one that covers that much
    /// for the shortest time, if it covers nothing else: then it does not matter which it was, as the others cover for
    /// at least as long what this one did. Else it cannot be told, and the holder is taken for one more.
    fn recognise(&self, holder: Holder<'_>, amount: Amount) -> Option<Slot> {
        let candidates = || self.lives(holder).filter(|&slot| self.slab.at(slot).may_show(amount));
        let account = |slot: Slot| &self.slab.at(slot).account;
        match candidates().count() {
            0 | 1 => candidates().next(),
            _ => {
                let first = candidates().min_by_key(|&slot| (account(slot).covers_until(amount), slot));
                first.filter(|&slot| account(slot).entries().iter().all(|entry| entry.amount == amount))
            }
        }
    }

    /// A mark of the life of that number, from which the number cannot be found.
    pub(crate) fn mark(&self, session: Incarnation) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&session.0.to_le_bytes());
        let mut mark = [0; 4];
        hasher.finalize_xof().fill(&mut mark);
        format!("{:08x}", u32::from_le_bytes(mark))
    }

    fn hash(&self, name: &str) -> u64 {
        self.hasher.hash_one(name)
    }
}
