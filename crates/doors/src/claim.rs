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

use crate::rules::{Charge, Fail, Limit, Rule, RuleSet};

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

    /// Gives hits back.
    fn give_back(&self, ask: &Ask<'_>);

    /// Takes hits that were used already: those that are there, and the rest when it comes.
    fn charge(&self, ask: &Ask<'_>);

    /// The standing of a key.
    fn standing(&self, limit: &Limit, key: &str) -> Standing;
}

type Verdicts = SmallVec<[Option<Verdict>; 4]>;

/// A call: its claims, in a set.
#[derive(Clone, Debug)]
pub struct Call<'r> {
    /// The set of the rules.
    pub set: &'r RuleSet,
    /// The claims.
    pub claims: SmallVec<[Claim<'r>; 4]>,
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

// === impl Call ===

impl Call<'_> {
    /// Asks `leases` for all of it.
    pub async fn decide(&self, leases: &impl Leases, wait: Duration) -> CallAnswer {
        let mut verdicts: Verdicts = self.claims.iter().map(Claim::foregone).collect();
        self.look(leases, &mut verdicts);
        if self.state(&verdicts, Mode::Look) == Overall::Granted {
            self.take_quotas(leases, wait, &mut verdicts).await;
        }
        if self.overall(&verdicts) == Overall::Granted {
            self.take_firm(leases, wait, &mut verdicts).await;
        }
        let overall = self.overall(&verdicts);
        match overall {
            Overall::Granted => self.take_rest(leases, wait, &mut verdicts).await,
            Overall::Refused | Overall::NoLease => self.undo_quotas(leases, &verdicts),
        }
        for claim in self.of(Mode::GiveBack) {
            leases.give_back(&claim.1.ask());
        }
        self.answer(leases, overall, &verdicts)
    }

    fn of(&self, mode: Mode) -> impl Iterator<Item = (usize, &Claim<'_>)> {
        self.claims.iter().enumerate().filter(move |(_, claim)| claim.mode == mode)
    }

    fn fail(&self, claim: &Claim<'_>) -> Fail {
        claim.rule.and_then(|rule| rule.fail).unwrap_or(self.set.manner.fail)
    }

    /// The fate that the verdict on a claim would be for its call.
    fn alone(&self, claim: &Claim<'_>, verdict: Option<Verdict>) -> Overall {
        match (verdict, self.fail(claim)) {
            (None | Some(Verdict::Within), _) | (Some(Verdict::NoLease { .. }), Fail::Open) => {
                Overall::Granted
            }
            (Some(Verdict::Over { .. }), _) | (Some(Verdict::NoLease { .. }), Fail::Closed) => {
                Overall::Refused
            }
            (Some(Verdict::NoLease { .. }), Fail::Error) => Overall::NoLease,
        }
    }

    /// The fate that claims of that mode are for the call, by the verdicts that there are.
    fn state(&self, verdicts: &Verdicts, mode: Mode) -> Overall {
        let each = self.of(mode).map(|(place, claim)| self.alone(claim, verdicts[place]));
        match mode {
            Mode::Firm | Mode::Look => each.max().unwrap_or(Overall::Granted),
            // One that grants is enough, and it is not known whether one would that nobody knows of.
            Mode::Quota => each.min().unwrap_or(Overall::Granted),
            Mode::Shadow | Mode::GiveBack | Mode::After => Overall::Granted,
        }
    }

    fn overall(&self, verdicts: &Verdicts) -> Overall {
        let states = [Mode::Firm, Mode::Look, Mode::Quota].map(|mode| self.state(verdicts, mode));
        states.into_iter().max().unwrap_or(Overall::Granted)
    }

    fn look(&self, leases: &impl Leases, verdicts: &mut Verdicts) {
        for (place, claim) in self.of(Mode::Look) {
            let standing = leases.standing(claim.limit, &claim.key);
            let is_full = standing.remaining == 0;
            let over = Verdict::Over { retry_after: Some(standing.reset) };
            verdicts[place].get_or_insert(if is_full { over } else { Verdict::Within });
        }
    }

    /// Takes claims in quota mode, each by itself.
    async fn take_quotas(&self, leases: &impl Leases, wait: Duration, verdicts: &mut Verdicts) {
        for (place, claim) in self.of(Mode::Quota) {
            if verdicts[place].is_none() {
                verdicts[place] = Some(take_one(leases, &claim.ask(), wait).await);
            }
        }
    }

    /// Takes all firm claims, or none. Without a lease, those that are to pass then are left out.
    async fn take_firm(&self, leases: &impl Leases, wait: Duration, verdicts: &mut Verdicts) {
        loop {
            let waiting: SmallVec<[usize; 4]> = self
                .of(Mode::Firm)
                .filter(|&(place, _)| verdicts[place].is_none())
                .map(|(place, _)| place)
                .collect();
            // Which of the asks is that of a claim.
            let mut asks: SmallVec<[Ask<'_>; 4]> = SmallVec::new();
            let mut firsts: SmallVec<[usize; 4]> = SmallVec::new();
            let mut of: SmallVec<[usize; 4]> = SmallVec::new();
            for &place in &waiting {
                let claim = &self.claims[place];
                let same = firsts.iter().position(|&first| self.claims[first].is_same(claim));
                of.push(same.unwrap_or(asks.len()));
                match same {
                    Some(same) => asks[same].hits = asks[same].hits.saturating_add(claim.ask().hits),
                    None => {
                        asks.push(claim.ask());
                        firsts.push(place);
                    }
                }
            }
            if asks.is_empty() {
                return;
            }
            let is_too_much = |ask: &Ask<'_>| ask.hits > ask.limit.units;
            let taken = match asks.iter().any(is_too_much) {
                true => Err(asks
                    .iter()
                    .map(|ask| match is_too_much(ask) {
                        true => Verdict::Over { retry_after: None },
                        false => Verdict::Within,
                    })
                    .collect()),
                false => leases.take(&asks, wait).await,
            };
            let Err(refused) = taken else {
                waiting.iter().for_each(|&place| verdicts[place] = Some(Verdict::Within));
                return;
            };
            if !self.leave_out(&waiting, &of, &refused, verdicts) {
                return;
            }
        }
    }

    /// Notes what was refused. Returns whether the rest is to be asked for again, without those that pass without a lease.
    fn leave_out(
        &self,
        waiting: &[usize],
        of: &[usize],
        refused: &[Verdict],
        verdicts: &mut Verdicts,
    ) -> bool {
        let verdict = |index: usize| refused.get(of[index]).copied().unwrap_or(Verdict::Within);
        let passes = |index: usize| {
            let claim = &self.claims[waiting[index]];
            matches!(verdict(index), Verdict::NoLease { .. }) && self.fail(claim) == Fail::Open
        };
        let is_any_open = (0..waiting.len()).any(passes);
        for (index, &place) in waiting.iter().enumerate() {
            if !is_any_open || passes(index) {
                verdicts[place] = Some(verdict(index));
            }
        }
        is_any_open
    }

    /// Takes what cannot refuse a call that passes.
    async fn take_rest(&self, leases: &impl Leases, wait: Duration, verdicts: &mut Verdicts) {
        for (place, claim) in self.of(Mode::Shadow) {
            if verdicts[place].is_none() {
                verdicts[place] = Some(take_one(leases, &claim.ask(), wait).await);
            }
        }
        for (place, claim) in self.of(Mode::After) {
            if verdicts[place].is_none() {
                leases.charge(&claim.ask());
                verdicts[place] = Some(Verdict::Within);
            }
        }
    }

    /// Gives back what quotas took of a call that does not pass.
    fn undo_quotas(&self, leases: &impl Leases, verdicts: &Verdicts) {
        for (place, claim) in self.of(Mode::Quota) {
            if verdicts[place] == Some(Verdict::Within) {
                leases.give_back(&claim.ask());
            }
        }
    }

    fn answer(&self, leases: &impl Leases, overall: Overall, verdicts: &Verdicts) -> CallAnswer {
        let answered = |(place, claim): (usize, &Claim<'_>)| {
            let verdict = verdicts[place].unwrap_or(Verdict::Within);
            let mut standing = leases.standing(claim.limit, &claim.key);
            if let Verdict::Over { retry_after } = verdict {
                standing.remaining = 0;
                standing.reset = retry_after.unwrap_or_else(|| claim.limit.window.length());
            }
            Answered { verdict, standing }
        };
        CallAnswer { overall, claims: self.claims.iter().enumerate().map(answered).collect() }
    }
}

async fn take_one(leases: &impl Leases, ask: &Ask<'_>, wait: Duration) -> Verdict {
    match leases.take(std::slice::from_ref(ask), wait).await {
        Ok(()) => Verdict::Within,
        Err(refused) => refused.first().copied().unwrap_or(Verdict::Within),
    }
}

#[cfg(test)]
mod tests;
