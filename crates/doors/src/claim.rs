//! Claims: so many hits of a key of a limit, and what a call with any number of them is answered.
//!
//! Most of them are *firm*: all of a call are granted together, or none is. The rest stands beside them. Claims in *quota mode*
//! refuse a call only where all of them do; those in *shadow* never, and count what they would refuse; a *look* takes nothing; what
//! is *given back* was taken by an earlier call; and what is charged *after* the answer is owed where it is not there.
//!
//! A call that is refused takes nothing of anything, whichever of its claims refused it.

use std::future::Future;
use std::time::Duration;

use smallvec::SmallVec;

use crate::rules::{Charge, Limit, Rule, RuleSet};

mod decide;

/// A number of hits of a key of a limit.
#[derive(Clone, Debug)]
pub struct Claim<'r> {
    /// The rule whose limit it is; absent: the call brought the limit with it.
    pub rule: Option<&'r Rule>,
    /// The limit.
    pub limit: &'r Limit,
    /// The key; empty where there is but one.
    pub key: Box<str>,
    /// The hits, as the caller named them.
    pub hits: u64,
    /// The part that it has in the answer.
    pub mode: Mode,
    /// The descriptor that it comes from, by its place in the call; 0 where there is but one.
    pub descriptor: usize,
}

/// The part of a claim in the answer to its call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Granted with all others, or not at all.
    Firm,
    /// Refuses where all of this mode do.
    Quota,
    /// Never refuses.
    Shadow,
    /// Takes nothing, and refuses where nothing is left.
    Look,
    /// Gives back.
    GiveBack,
    /// Takes what is there, and owes the rest.
    After,
}

/// The verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// There was room for it.
    Within,
    /// There was none.
    Over {
        /// When it makes sense to come again; absent where that never helps.
        retry_after: Option<Duration>,
    },
    /// Nothing is leased, so nobody knows.
    NoLease {
        /// When it makes sense to come again, as far as that is known.
        retry_after: Option<Duration>,
    },
}

/// The standing of a key of a limit, as far as it is known here: hints, and no promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The hits that are left, rounded down.
    pub remaining: u32,
    /// The time until there are more.
    pub reset: Duration,
}

/// The answer to one claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Answered {
    /// The verdict.
    pub verdict: Verdict,
    /// The standing after it.
    pub standing: Standing,
}

/// The answer to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallAnswer {
    /// The fate of the call.
    pub overall: Overall,
    /// The answers to its claims, in their order.
    pub claims: SmallVec<[Answered; 4]>,
}

/// The fate of a call: the later of these where its parts differ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Overall {
    /// It passes.
    Granted,
    /// It is not known, as nothing is leased.
    NoLease,
    /// A limit refuses it.
    Refused,
}

/// Hits that leases are asked for: those of all claims on the same key, added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask<'a> {
    /// The limit.
    pub limit: &'a Limit,
    /// The key.
    pub key: &'a str,
    /// The hits.
    pub hits: u32,
    /// Whether a server is asked before others' hits refuse it.
    pub is_confirmed: bool,
}

/// The leases that claims are answered from.
pub trait Leases {
    /// Takes the hits of all of `asks`, or of none; waits for as long as `wait` for what lies elsewhere.
    ///
    /// # Errors
    /// A verdict for each of them: those that are within were not what it failed for.
    fn take(
        &self,
        asks: &[Ask<'_>],
        wait: Duration,
    ) -> impl Future<Output = Result<(), SmallVec<[Verdict; 4]>>> + Send;

    /// Takes the hits of one key where they lie at hand, and returns the standing after that; absent: they do not, or nobody knows
    /// at once. Nothing is taken or asked for then.
    fn take_at_hand(&self, ask: &Ask<'_>) -> Option<Standing>;

    /// Gives hits back.
    fn give_back(&self, ask: &Ask<'_>);

    /// Takes hits that were used already: those that are there, and the rest when it comes.
    fn charge(&self, ask: &Ask<'_>);

    /// The standing of a key.
    fn standing(&self, limit: &Limit, key: &str) -> Standing;
}

/// A call: its claims, in a set.
#[derive(Clone, Debug)]
pub struct Call<'r> {
    /// The set of the rules.
    pub set: &'r RuleSet,
    /// The claims.
    pub claims: Vec<Claim<'r>>,
}

// === impl Mode ===

impl Mode {
    /// The mode of a claim on a rule of `set`, for so many hits.
    #[must_use]
    pub fn of(set: &RuleSet, rule: &Rule, hits: u64) -> Mode {
        match (hits, rule.charge) {
            (0, _) => Mode::Look,
            (_, Charge::After) => Mode::After,
            _ if set.manner.shadow || rule.shadow => Mode::Shadow,
            _ if rule.quota => Mode::Quota,
            _ => Mode::Firm,
        }
    }
}

// === impl Verdict ===

impl Verdict {
    /// Whether there was no room.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self, Verdict::Over { .. })
    }
}

// === impl Claim ===

impl Claim<'_> {
    /// The verdict on what no lease can change: more hits than there ever are in a window.
    fn foregone(&self) -> Option<Verdict> {
        let is_asked = !matches!(self.mode, Mode::Look | Mode::GiveBack);
        let is_over = is_asked && self.hits > u64::from(self.limit.units) || self.limit.units == 0;
        is_over.then_some(Verdict::Over { retry_after: None })
    }

    /// The hits that leases are asked for.
    fn ask(&self) -> Ask<'_> {
        Ask {
            limit: self.limit,
            key: &self.key,
            hits: u32::try_from(self.hits).unwrap_or(u32::MAX),
            is_confirmed: self.rule.is_some_and(|rule| rule.ask),
        }
    }

    fn is_same(&self, other: &Claim<'_>) -> bool {
        self.limit.index == other.limit.index && self.key == other.key
    }
}

#[cfg(test)]
mod tests;
