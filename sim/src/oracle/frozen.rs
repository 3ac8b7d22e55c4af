//! The rule about what is frozen: nobody is charged for more of it than before, but for what was counted as out and not to whom.

use std::collections::BTreeMap;

use lessor_proto::Incarnation;
use lessor_proto::message::HolderKind;
use lessor_server::node::{Books, ChildBook};

use super::{Facts, Oracle};

/// A holder, and which life of it if it says so.
type Key = (HolderKind, String, Option<Incarnation>);

/// The books of a frozen resource as they were.
#[derive(Clone, Debug)]
pub(super) struct FrozenBooks {
    charges: BTreeMap<Key, u128>,
    ghost: u128,
}

// === impl FrozenBooks ===

impl FrozenBooks {
    fn new(books: &Books) -> FrozenBooks {
        let mut charges: BTreeMap<Key, u128> = BTreeMap::new();
        for ChildBook { kind, holder, incarnation, charge, .. } in &books.children {
            // All leaders of a node are one holder.
            let life = incarnation.filter(|_| *kind == HolderKind::Client);
            *charges.entry((*kind, holder.to_string(), life)).or_default() += u128::from(charge.as_micros());
        }
        FrozenBooks { charges, ghost: books.ghost.as_micros().into() }
    }

    /// The amount by which holders are charged for more than they were.
    fn gain_since(&self, before: &FrozenBooks) -> u128 {
        let of = |(key, charge): (&Key, &u128)| {
            charge.saturating_sub(before.charges.get(key).copied().unwrap_or_default())
        };
        self.charges.iter().map(of).sum()
    }
}

// === impl Oracle ===

impl Oracle {
    /// Nobody has more of what is frozen than when it was seen last, in all, than has become of the ghost. Not of what is being
    /// learnt: that was out before.
    pub(super) fn check_frozen(&mut self, facts: &Facts<'_>, task: u32, resource: u16, books: &Books) {
        let id = &facts.resources[usize::from(resource)].id;
        let leadership = facts.tasks[task as usize].leadership.as_ref();
        let is_frozen = leadership.is_some_and(|leadership| leadership.node.overrides().freezes(id));
        let now = (is_frozen && !facts.is_learning(task)).then(|| FrozenBooks::new(books));
        let index = self.at(task, resource);
        let before = std::mem::replace(&mut self.seen[index].held_back.frozen, now.clone());
        let (Some(before), Some(now)) = (before, now) else { return };
        let (gain, claimed) = (now.gain_since(&before), before.ghost.saturating_sub(now.ghost));
        if gain > claimed {
            self.fail(39, || {
                format!(
                    "task {task} charges holders of r{resource} for {gain} more, which is frozen, and {claimed} were claimed"
                )
            });
        }
    }
}
