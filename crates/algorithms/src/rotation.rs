//! Time-sharing of whole units: who holds the units that cannot be divided, quantum after quantum.
//!
//! Of three licences for ten clients everyone's share is 0.3, and nobody can hold that. What can be done is that three at a
//! time hold one, for a *quantum* of time, and that everyone's turn comes as often as the share says. A client with a
//! share of 2.3 holds two for good (see [`parts`]) and takes turns for a third.
//!
//! The measure is the *lag*: the quanta a client should have had by its fraction less those it had. The rule is
//! pseudo-deadlines (Baruah, Cohen, Plaxton and Varvel, "Proportionate progress", Algorithmica 15, 1996): a client may
//! have its next quantum once its lag would otherwise become positive, and must have it before its lag reaches 1. The
//! earliest deadline is served first. Deadlines alone fail from three units on: where they tie, the ones pressed harder
//! by the deadlines after this one must go first (the two tie-breaks of PD2: Anderson and Srinivasan, "Mixed
//! Pfair/ERfair scheduling of asynchronous periodic tasks", Journal of Computer and System Sciences 68, 2004). Only what
//! ties in all of that is free to be decided by [`Rotate`].
//!
//! As long as claims stay the same, every lag stays between -1 and 1. So with a fraction of r the first quantum comes
//! after waiting for fewer than 1 / r quanta, and between two of them lie fewer than 2 / r. Where all fractions are equal and
//! ties go to the least recently served, that is a round: fewer than 1 / r.
//!
//! Claims may change between turns in any way. A lag is kept as it is, so nobody who has waited long waits from the
//! beginning because the fractions changed. The number of units may change between turns too: then somebody loses the unit
//! that a turn gave, or has one more, and that counts by the part of the quantum that is left ([`Rotation::correct`]).
//!
//! ```
//! use lessor_algorithms::rotation::{Rotate, Rotation};
//!
//! let claims = [("ann", 0.5), ("bob", 0.5), ("cid", 0.5), ("dot", 0.5)];
//! let mut rotation = Rotation::new(Rotate::Fair);
//! assert_eq!(rotation.turn(claims, 2), ["ann", "bob"]);
//! assert_eq!(rotation.turn(claims, 2), ["cid", "dot"]);
//! assert_eq!(rotation.turn(claims, 2), ["ann", "bob"]);
//! ```

use std::cmp::{Ordering, Reverse};

/// One quantum, in the grains in which lags are counted. Integers, so that lags are sums without rounding; so small that
/// a fraction loses nothing that a share has.
const ONE: i64 = 1 << 52;
/// Grains that do not matter: a third is no whole number of grains, and yet three thirds must be one. They are missed
/// only after 2^31 quanta.
const TOLERANCE: i64 = 1 << 20;
/// The distance from a whole number within which a share counts as that number.
const NEARLY_WHOLE: f64 = 1e-9;
/// There are no fractions from this share on.
const ALL_WHOLE: f64 = (1_u64 << 53) as f64;

/// The order of clients where more of them may have a unit than there are units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rotate {
    /// Where the deadlines tie, the one that has waited longest.
    Fair,
    /// Where the deadlines tie, the one that holds a unit, and then the one that has waited longest. Fewer units move (a
    /// third less among 10 for 3, hardly fewer among 100 for 7), and some wait longer.
    Sticky,
    /// A client that holds a unit keeps it as long as there is one; free ones go to the greatest fractions. Nobody
    /// takes turns.
    None,
}

/// Whose turn it is, for the clients of one resource.
///
/// A turn costs O(n) in the number of claims that come in ascending order, and O(n log n) otherwise.
#[derive(Clone, Debug)]
pub struct Rotation<Id> {
    rotate: Rotate,
    /// Those that had a claim at the last turn, in ascending order.
    candidates: Vec<Candidate<Id>>,
    /// The number of turns that there were.
    turns: u64,
}

/// The state of a client that is kept from turn to turn.
#[derive(Clone, Copy, Debug)]
struct Member {
    /// The service that it should have had by now less the service it had, in grains.
    lag: i64,
    /// The turn at which it began to wait: that of its first claim, or the one after it last got a unit.
    waits_since: u64,
    /// Whether it got a unit at the last turn.
    holds: bool,
}

/// A claim of the last turn, and what is remembered of the client.
#[derive(Clone, Debug)]
struct Candidate<Id> {
    id: Id,
    member: Member,
    /// Of a unit, in grains.
    fraction: i64,
}

/// The order among those with the same deadline, the least first: whether the window ends with it; group deadline, the
/// latest first; whether a tie goes to others; the beginning of the wait.
type Rank = (bool, Reverse<i64>, bool, u64);

/// The deadline of one that must not have a unit at this turn, behind all others.
const NEVER: i64 = i64::MAX;

/// A share in units as the whole units that are held for good, and the fraction of one more.
///
/// What is within 10^-9 of a whole number counts as that, lest a rounding error of the share set a unit in motion. Shares
/// beyond `u64::MAX` count as that many units.
///
/// # Panics
///
/// If the share is negative or not a number.
#[must_use]
pub fn parts(share: f64) -> (u64, f64) {
    assert!(share >= 0.0, "share {share} is no amount");
    if share >= ALL_WHOLE {
        return (share as u64, 0.0);
    }
    // Casts, as rounding is a call of a function where the processor has no instruction for it.
    let (below, nearest) = (share as i64, (share + 0.5) as i64);
    if (share - nearest as f64).abs() <= NEARLY_WHOLE {
        return (nearest.unsigned_abs(), 0.0);
    }
    (below.unsigned_abs(), share - below as f64)
}

// === impl Rotation ===

impl<Id: Ord + Clone> Rotation<Id> {
    /// No members yet.
    #[must_use]
    pub fn new(rotate: Rotate) -> Rotation<Id> {
        Rotation { rotate, candidates: Vec::new(), turns: 0 }
    }

    /// The order in which turns are taken.
    #[must_use]
    pub fn rotate(&self) -> Rotate {
        self.rotate
    }

    /// Takes turns in another way from the next turn on. Lags are kept, except by [`Rotate::None`], which has none.
    pub fn set_rotate(&mut self, rotate: Rotate) {
        self.rotate = rotate;
    }

    /// Begins a quantum: says who holds one unit more than its whole ones until the next turn, in ascending order.
    ///
    /// A claim is a client and the fraction of a unit that it should have on average. There are `units` units for all of
    /// them, which is what the whole parts leave of the capacity. If the fractions come to more than that, all are
    /// scaled down by the same factor; if they come to less, some units stay free, now and then or always, because
    /// nobody gets more than the fraction says. (Under [`Rotate::None`] everyone may.) A fraction of 0 gets nothing.
    ///
    /// Who has no claim is forgotten, and begins anew if it comes back; to be remembered, claim a fraction of 0.
    /// The order of the claims does not matter.
    ///
    /// # Panics
    ///
    /// If a fraction is not within 0 and 1, or a client has two claims.
    pub fn turn(&mut self, claims: impl IntoIterator<Item = (Id, f64)>, units: u64) -> Vec<Id> {
        self.remember(claims);
        if self.rotate == Rotate::None {
            self.candidates.iter_mut().for_each(|candidate| candidate.member.lag = 0);
        } else {
            scale(&mut self.candidates, units);
        }
        self.choose(units);
        for candidate in &mut self.candidates {
            candidate.advance(self.turns);
            if self.rotate == Rotate::None {
                candidate.member.lag = 0;
            }
        }
        self.turns += 1;
        let holders = self.candidates.iter().filter(|candidate| candidate.member.holds);
        holders.map(|candidate| candidate.id.clone()).collect()
    }

    /// After how many turns, the next one included, a client will have got a unit if its fraction is `fraction` from
    /// then on: 1 if the next turn will give it one. For a client that has no claim yet, the same if it joins at the next
    /// turn. `None` if the fraction is 0, and under [`Rotate::None`].
    ///
    /// A promise while claims stay the same; when they change, the units of the moment may be too few for all whose
    /// deadlines have come near.
    ///
    /// # Panics
    ///
    /// If the fraction is not within 0 and 1.
    #[must_use]
    pub fn turns_until(&self, id: &Id, fraction: f64) -> Option<u64> {
        let fraction = grains(fraction);
        if fraction == 0 || self.rotate == Rotate::None {
            return None;
        }
        let at = self.candidates.binary_search_by(|candidate| candidate.id.cmp(id));
        let lag = at.map_or(0, |at| self.candidates[at].member.lag);
        Some(deadline(lag, fraction).max(1).unsigned_abs())
    }

    /// Counts what a client had of a unit since the last turn beside what that turn said: for the part `part` of a quantum, from
    /// 0 to 1, it has a unit that it was not given there, or, if that is negative, has not the one that it was given. So whoever
    /// loses a unit in the middle of its quantum, time after time, is served first in the end. Nobody's lag comes to be less
    /// than -1 by that, nor more than 1: a unit that is to spare is no debt for long. A client that had no claim at the last
    /// turn joins now. Under [`Rotate::None`] nothing counts.
    ///
    /// # Panics
    ///
    /// If the part is not within -1 and 1.
    pub fn correct(&mut self, id: &Id, part: f64) {
        assert!((-1.0..=1.0).contains(&part), "part {part} is not within -1 and 1");
        if self.rotate == Rotate::None {
            return;
        }
        let at = self.candidates.binary_search_by(|candidate| candidate.id.cmp(id)).unwrap_or_else(|at| {
            self.candidates.insert(at, Candidate::new(id.clone(), 0, self.turns));
            at
        });
        let (member, grains) = (&mut self.candidates[at].member, grains(part.abs()));
        member.holds = part > 0.0;
        if member.holds {
            member.lag = member.lag.min((member.lag - grains).max(-ONE));
            member.waits_since = self.turns;
        } else {
            member.lag = member.lag.max((member.lag + grains).min(ONE));
        }
    }

    /// Takes up the claims, with what is remembered of each client. Who has none is forgotten.
    fn remember(&mut self, claims: impl IntoIterator<Item = (Id, f64)>) {
        let mut claims = claims.into_iter();
        // Most often the same clients have claims as at the last turn, and come in their order.
        let mut same = 0;
        let other = loop {
            let Some((id, fraction)) = claims.next() else { break None };
            let Some(candidate) = self.candidates.get_mut(same).filter(|candidate| candidate.id == id) else {
                break Some((id, fraction));
            };
            candidate.fraction = grains(fraction);
            same += 1;
        };
        let before = self.candidates.split_off(same);
        let joins = |(id, fraction)| Candidate::new(id, grains(fraction), self.turns);
        self.candidates.extend(other.into_iter().chain(claims).map(joins));
        self.candidates.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        assert!(self.candidates.is_sorted_by(|a, b| a.id < b.id), "a client has two claims");
        let mut before = before.as_slice();
        for candidate in &mut self.candidates {
            while let [first, rest @ ..] = before {
                match first.id.cmp(&candidate.id) {
                    Ordering::Greater => break,
                    Ordering::Equal => candidate.member = first.member,
                    Ordering::Less => {}
                }
                before = rest;
            }
        }
    }

    /// Decides for each candidate whether it holds one of the units.
    fn choose(&mut self, units: u64) {
        let units = usize::try_from(units).unwrap_or(usize::MAX);
        let deadlines: Vec<i64> = self.candidates.iter().map(|one| one.deadline(self.rotate)).collect();
        let mut order: Vec<i64> = deadlines.iter().copied().filter(|&deadline| deadline < NEVER).collect();
        let last = match units < order.len() {
            true => *order.select_nth_unstable(units).1,
            false => NEVER,
        };
        // Not all of those with the last deadline can have one.
        let mut tied: Vec<(Rank, usize)> = Vec::new();
        let mut left = units;
        for (at, (candidate, &deadline)) in self.candidates.iter_mut().zip(&deadlines).enumerate() {
            if deadline == last && last < NEVER {
                tied.push((candidate.rank(self.rotate, last), at));
            }
            candidate.member.holds = deadline < last;
            left -= usize::from(candidate.member.holds);
        }
        if left < tied.len() {
            tied.select_nth_unstable(left);
        }
        tied.iter().take(left).for_each(|&(_, at)| self.candidates[at].member.holds = true);
    }
}

// === impl Candidate ===

impl<Id> Candidate<Id> {
    /// One that joins at this turn.
    fn new(id: Id, fraction: i64, turn: u64) -> Candidate<Id> {
        Candidate { id, member: Member { lag: 0, waits_since: turn, holds: false }, fraction }
    }

    /// Its deadline; [`NEVER`] if it must not have a unit at this turn.
    fn deadline(&self, rotate: Rotate) -> i64 {
        let lag = self.member.lag;
        match rotate {
            _ if self.fraction == 0 => NEVER,
            Rotate::None => 0,
            _ if lag + self.fraction <= TOLERANCE => NEVER,
            _ => deadline(lag, self.fraction),
        }
    }

    /// Its rank among those with the same deadline.
    fn rank(&self, rotate: Rotate, deadline: i64) -> Rank {
        let Member { lag, waits_since, holds } = self.member;
        if rotate == Rotate::None {
            return (!holds, Reverse(self.fraction), false, waits_since);
        }
        // Then the window of the quantum after this one does not begin before this one has ended, and being late here
        // presses nobody there.
        let ends_here = lag + deadline * self.fraction <= ONE + TOLERANCE;
        let group = Reverse(group_deadline(lag, self.fraction, deadline));
        (ends_here, group, rotate == Rotate::Sticky && !holds, waits_since)
    }

    /// Lets a quantum pass, with a unit or without.
    fn advance(&mut self, turn: u64) {
        self.member.lag += self.fraction;
        if self.member.holds {
            self.member.lag -= ONE;
            self.member.waits_since = turn + 1;
        }
    }
}

// === windows ===

/// Within how many quanta from here the next one must be had, lest the lag exceed 1. Less than 1 is too late already.
fn deadline(lag: i64, fraction: i64) -> i64 {
    div_ceil(ONE - TOLERANCE - lag, fraction)
}

/// In how many quanta the pressure ends that one missed deadline puts on those after it; 0 if there is none.
///
/// With a fraction of a half or more most windows are two quanta long and overlap, so who is served last thing in one can
/// only be served last thing in the next. That ends with a quantum in which no deadline falls: quanta without a
/// deadline come at the rate of 1 - fraction, and this is the first of them from `deadline` on.
fn group_deadline(lag: i64, fraction: i64, deadline: i64) -> i64 {
    let pause = ONE - fraction;
    if fraction < ONE / 2 {
        return 0;
    }
    if pause <= TOLERANCE {
        return i64::MAX;
    }
    let pauses = div_ceil(deadline * pause - lag - TOLERANCE, ONE);
    div_ceil(pauses * ONE + lag - TOLERANCE, pause)
}

/// Divides all fractions by the same factor if they come to more than `units`.
fn scale<Id>(candidates: &mut [Candidate<Id>], units: u64) {
    let sum: i128 = candidates.iter().map(|candidate| i128::from(candidate.fraction)).sum();
    if sum > i128::from(units) * i128::from(ONE) {
        let factor = units as f64 * ONE as f64 / sum as f64;
        for candidate in candidates {
            candidate.fraction = (candidate.fraction as f64 * factor) as i64;
        }
    }
}

fn grains(fraction: f64) -> i64 {
    assert!((0.0..=1.0).contains(&fraction), "fraction {fraction} is not within 0 and 1");
    let exact = fraction * ONE as f64;
    let below = exact as i64;
    below + i64::from(exact - below as f64 >= 0.5)
}

/// The least whole number not below the quotient; `divisor` is positive.
fn div_ceil(number: i64, divisor: i64) -> i64 {
    -(-number).div_euclid(divisor)
}
