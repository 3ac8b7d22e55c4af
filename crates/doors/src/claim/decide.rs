//! The decision on a call: looks, quotas, then all that is firm in one step, and at last what refuses nothing.

use std::time::Duration;

use smallvec::SmallVec;

use super::{Answered, Ask, Call, CallAnswer, Claim, Leases, Mode, Overall, Verdict};
use crate::rules::Fail;

type Verdicts = SmallVec<[Option<Verdict>; 4]>;

// === impl Call ===

impl Call<'_> {
    /// The answer, where the call is one claim whose hits lie at hand, as nearly all are; absent: it is to be decided.
    #[must_use]
    pub fn at_once(&self, leases: &impl Leases) -> Option<CallAnswer> {
        let [claim] = &self.claims[..] else { return None };
        let is_taken = matches!(claim.mode, Mode::Firm | Mode::Quota | Mode::Shadow);
        if !is_taken || claim.foregone().is_some() {
            return None;
        }
        let standing = leases.take_at_hand(&claim.ask())?;
        let answered = Answered { verdict: Verdict::Within, standing };
        Some(CallAnswer { overall: Overall::Granted, claims: std::iter::once(answered).collect() })
    }

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

    /// Whether an answer to one of its claims refuses it.
    #[must_use]
    pub fn refuses(&self, claim: &Claim<'_>, answered: &Answered) -> bool {
        let is_of_weight = matches!(claim.mode, Mode::Firm | Mode::Quota | Mode::Look);
        is_of_weight && self.alone(claim, Some(answered.verdict)) == Overall::Refused
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
