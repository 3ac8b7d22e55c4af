//! Claims, asked of the client: all of a call that are firm go through one request of several resources.

use std::time::Duration;

use lessor_client::internals::clock;
use lessor_client::{Bound, Decision, Denied, Price, Together, TogetherAnswer, TogetherDenied, WindowUsage};
use smallvec::SmallVec;

use super::in_force::{InForce, Opened};
use crate::claim::{Ask, Leases, Standing, Verdict};
use crate::rules::Limit;

type PartVerdicts = SmallVec<[Verdict; 4]>;

// === impl InForce ===

impl Leases for InForce {
    async fn take(&self, asks: &[Ask<'_>], wait: Duration) -> Result<(), PartVerdicts> {
        // Nothing has to agree on one key that has units at hand.
        if let [ask] = asks
            && self.take_at_hand(ask).is_some()
        {
            return Ok(());
        }
        // Two keys of a shared limit are one rate, which stands in a request once: the second is asked for behind the first.
        let mut verdicts: PartVerdicts = asks.iter().map(|_| Verdict::Within).collect();
        let mut taken: SmallVec<[usize; 4]> = SmallVec::new();
        while taken.len() < asks.len() {
            let mut round: SmallVec<[usize; 4]> = SmallVec::new();
            for place in 0..asks.len() {
                let is_same = |other: &usize| {
                    asks[*other].limit.index == asks[place].limit.index
                        && !asks[place].limit.kind.is_of_windows()
                };
                if !taken.contains(&place) && !round.iter().any(is_same) {
                    round.push(place);
                }
            }
            if let Err(refused) = self.take_together(asks, &round, wait).await {
                round.iter().zip(refused).for_each(|(&place, verdict)| verdicts[place] = verdict);
                taken.iter().for_each(|&place| self.give_back(&asks[place]));
                return Err(verdicts);
            }
            taken.extend(round);
        }
        Ok(())
    }

    fn take_at_hand(&self, ask: &Ask<'_>) -> Option<Standing> {
        match self.opened(ask.limit) {
            Some(Opened::Windows(windows)) => {
                windows.take_at_hand(ask.key, ask.hits).map(|usage| standing(ask.limit, &usage))
            }
            Some(Opened::Rate(_)) | None => None,
        }
    }

    fn give_back(&self, ask: &Ask<'_>) {
        match self.opened(ask.limit) {
            Some(Opened::Windows(windows)) => {
                windows.refund(ask.key, ask.hits);
            }
            Some(Opened::Rate(rate)) if !ask.key.is_empty() => rate.domain(ask.key).settle(ask.hits, 0),
            // What a rate has brought does not come back.
            Some(Opened::Rate(_)) | None => {}
        }
    }

    fn charge(&self, ask: &Ask<'_>) {
        match self.opened(ask.limit) {
            Some(Opened::Windows(windows)) => match windows.try_acquire(ask.key, ask.hits) {
                Ok(()) => {}
                Err(Denied::WindowFull { uses, leased, .. }) if leased > uses => {
                    let there = windows.try_acquire(ask.key, leased - uses).map_or(0, |()| leased - uses);
                    self.owed.inc_by(u64::from(ask.hits - there));
                }
                Err(_) => {
                    self.owed.inc_by(ask.hits.into());
                }
            },
            Some(Opened::Rate(rate)) if ask.key.is_empty() => rate.settle(0, ask.hits),
            Some(Opened::Rate(rate)) => rate.domain(ask.key).settle(0, ask.hits),
            None => {}
        }
    }

    fn standing(&self, limit: &Limit, key: &str) -> Standing {
        let whole = Standing { remaining: limit.units, reset: limit.window.length() };
        match self.opened(limit) {
            Some(Opened::Windows(windows)) => {
                windows.usage(key).map_or(whole, |usage| standing(limit, &usage))
            }
            Some(Opened::Rate(rate)) if !key.is_empty() => {
                let decision = rate.domain(key).peek(1, 1);
                let remaining = match decision.tier_limit {
                    0 => limit.units,
                    tier => tier.saturating_sub(decision.hits_in_tier),
                };
                let after = decision.retry_at.map(|at| at.since(clock::now()));
                Standing { remaining, reset: after.unwrap_or(limit.window.length()) }
            }
            Some(Opened::Rate(_)) | None => whole,
        }
    }
}

impl InForce {
    /// Takes the asks of a round, of which no two are of one rate, or none of them.
    async fn take_together(
        &self,
        asks: &[Ask<'_>],
        round: &[usize],
        wait: Duration,
    ) -> Result<(), PartVerdicts> {
        let closed =
            || -> PartVerdicts { round.iter().map(|_| Verdict::NoLease { retry_after: None }).collect() };
        let mut request = Together::once().max_wait(wait);
        for &place in round {
            let ask = &asks[place];
            let price = Price::Once(ask.hits);
            request = match self.opened(ask.limit).ok_or_else(closed)? {
                Opened::Windows(windows) => request.window(windows, ask.key, price),
                Opened::Rate(rate) if ask.key.is_empty() => request.rate(rate, price),
                Opened::Rate(rate) => request.domain(rate, ask.key, price),
            };
        }
        let taken = match wait.is_zero() {
            true => request.try_acquire(),
            false => request.acquire().await,
        };
        taken.map(drop).map_err(|denied| {
            let limits: SmallVec<[&Limit; 4]> = round.iter().map(|&place| asks[place].limit).collect();
            verdicts(&denied, &limits)
        })
    }
}

/// The standing of a key of which so much is used.
fn standing(limit: &Limit, usage: &WindowUsage) -> Standing {
    Standing {
        remaining: limit.units.saturating_sub(usage.uses),
        reset: usage.frees_in.unwrap_or(limit.window.length()),
    }
}

/// The verdicts on the parts of a request that was denied, which are of these limits.
fn verdicts(denied: &TogetherDenied, limits: &[&Limit]) -> PartVerdicts {
    let mut verdicts: PartVerdicts = limits.iter().map(|_| Verdict::Within).collect();
    match (denied.refusal(), denied.denial()) {
        (Some(refusal), _) => {
            // Where a limit is used up as a whole nobody waits for what others have elsewhere: those refuse nothing then.
            let is_used_up = refusal
                .answers
                .iter()
                .zip(limits)
                .any(|(answer, limit)| lies_here(answer, limit) == Some(true));
            for ((verdict, answer), limit) in verdicts.iter_mut().zip(&refusal.answers).zip(limits) {
                let is_on_its_way = is_used_up && lies_here(answer, limit) == Some(false);
                if answer.is_refusal() && !is_on_its_way {
                    *verdict = match answer {
                        TogetherAnswer::Denied(denied) => verdict_of(denied),
                        TogetherAnswer::Domain(decision) => of_domain(decision, refusal.retry_after),
                        TogetherAnswer::Taken(_) | TogetherAnswer::Agreed => Verdict::Within,
                    };
                }
            }
        }
        (None, Some((part, denied))) => {
            if let Some(verdict) = verdicts.get_mut(part) {
                *verdict = verdict_of(&denied);
            }
        }
        (None, None) => {}
    }
    if verdicts.iter().all(|verdict| *verdict == Verdict::Within) {
        // It cannot be as a whole: more is wanted than ever comes together.
        verdicts.iter_mut().for_each(|verdict| *verdict = Verdict::Over { retry_after: None });
    }
    verdicts
}

/// Whether all units of a window that refuses lie here; absent of other answers.
fn lies_here(answer: &TogetherAnswer, limit: &Limit) -> Option<bool> {
    match answer {
        TogetherAnswer::Denied(Denied::WindowFull { leased, .. }) => Some(*leased >= limit.units),
        _ => None,
    }
}

/// The verdict on a key of a shared limit that is refused. What its policies do not say is no limit, nor is an empty lease that
/// nobody knows an end of.
fn of_domain(decision: &Decision, retry_after: Option<Duration>) -> Verdict {
    match decision.bound {
        Some(Bound::Lease) if decision.retry_at.is_none() => Verdict::NoLease { retry_after },
        Some(Bound::Unconfigured | Bound::Sublease | Bound::Asking | Bound::Crowded | Bound::Unleasable) => {
            Verdict::NoLease { retry_after }
        }
        _ => Verdict::Over { retry_after },
    }
}

fn verdict_of(denied: &Denied) -> Verdict {
    let retry_after = denied.retry_after();
    match denied.is_over_limit() {
        true => Verdict::Over { retry_after },
        false => Verdict::NoLease { retry_after },
    }
}
