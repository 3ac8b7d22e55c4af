//! The lives that were heard of under one name of a node, and whether two of them go on side by side.

use std::time::Duration;

use lessor_proto::{Incarnation, Time};

/// Which life of a node reports: all leaders of one line are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeLife {
    Line(u64),
    Alone(Incarnation),
}

/// The lives that were heard of lately under one name.
#[derive(Clone, Default, Debug)]
pub(super) struct Lives {
    lives: Vec<Heard>,
    /// One has gone on after another had begun.
    are_two: bool,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    life: NodeLife,
    first: Time,
    last: Time,
}

/// Lives that are remembered of one name.
const MOST_LIVES: usize = 16;

// === impl Lives ===

impl Lives {
    /// Whether one has gone on after another had begun.
    pub(super) fn are_two(&self) -> bool {
        self.are_two
    }

    /// Whether none was heard of lately.
    pub(super) fn is_empty(&self) -> bool {
        self.lives.is_empty()
    }

    /// One, which was heard of at `now`.
    pub(super) fn of(now: Time, life: NodeLife) -> Lives {
        Lives { lives: vec![Heard { life, first: now, last: now }], are_two: false }
    }

    /// One was heard of at `now`. Returns whether it is news that there are two, or that there is only one.
    pub(super) fn hear(&mut self, now: Time, life: NodeLife, patience: Duration) -> bool {
        let were_two = self.are_two;
        self.forget(now, patience);
        match self.lives.iter().position(|heard| heard.life == life) {
            Some(place) => {
                let before = std::mem::replace(&mut self.lives[place].last, now);
                // Another has begun since this one was last heard of, and this one lives.
                self.are_two |= self.lives.iter().any(|other| other.life != life && other.first >= before);
            }
            None => {
                if self.lives.len() == MOST_LIVES {
                    self.lives.remove(0);
                }
                self.lives.push(Heard { life, first: now, last: now });
            }
        }
        self.are_two != were_two
    }

    /// Forgets those that were not heard of for so long.
    pub(super) fn forget(&mut self, now: Time, patience: Duration) {
        self.lives.retain(|heard| now < heard.last + patience);
        self.are_two &= self.lives.len() > 1;
    }
}
