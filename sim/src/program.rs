//! A client's program, and its use of what it may use: it takes hits from the real limiter, and keeps permits of the
//! real gauge for as long as its operations last. What was let through is counted here by itself, and not as the
//! enforcers count.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::limiter::{Limiter, SentUnits, UnitWish};
use lessor_client::{Denied, Permit};
use lessor_proto::message::Unenforced;
use lessor_proto::{Amount, ResourceId, Time};
use lessor_server::repository::Kind;

use self::beside::Alone;
use self::bucket::Bucket;
use self::leasing::Leasing;
use self::measured::{Measured, Said};
use self::window::WindowUses;
use crate::clock::Clock;

mod beside;
pub(crate) mod bucket;
pub(crate) mod leasing;
pub(crate) mod measured;
pub(crate) mod window;

/// The enforcer of one holding, and what its program has taken of it.
#[derive(Debug)]
pub(crate) enum Program {
    /// Of a rate.
    Hits(Box<Hits>),
    /// Of a gauge.
    Units(Units),
    /// Of a limit on windows.
    Uses(WindowUses),
}

/// Hits that a limiter has let through.
#[derive(Debug)]
pub(crate) struct Hits {
    limiter: Limiter,
    /// The units that the allowances have brought, and the hits have not taken.
    due: Bucket,
    /// Units that were sent, each until it may not be used any more.
    sent: VecDeque<Time>,
    allowance: Allowance,
    /// Absent where the program states what it wants.
    measured: Option<Measured>,
    /// Absent where it has no domains.
    leasing: Option<Leasing>,
    /// Present where a second limit may be tried.
    alone: Option<Alone<Limiter>>,
}

/// Operations under permits of a gauge.
#[derive(Debug, Default)]
pub(crate) struct Units {
    gauge: Semaphore,
    operations: Vec<Operation>,
    /// Present where a second limit may be tried.
    alone: Option<Alone<Semaphore>>,
}

#[derive(Debug)]
struct Operation {
    permit: Permit,
    /// When it is done, in real time.
    done: Time,
    /// The same of the gauge that is alone.
    _alone: Option<Permit>,
}

/// An amount in use, and the time until which it is, by the clock of its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Used {
    pub(crate) micros: u64,
    pub(crate) until: Time,
}

/// The outcome of one attempt to hit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hit {
    Granted,
    /// By a unit that was asked for, which was judged when it was sent.
    Sent,
    /// The limiter let it through, and the allowances had not brought it.
    Unfounded,
    /// The limiter refused it, and everything is let pass.
    Passed,
    /// It makes sense to try again in so long.
    Denied(Option<Duration>),
}

/// The burst that a limiter may save up if nobody says how much.
pub(crate) const BURST: Duration = Limiter::DEFAULT_BURST;

// === impl Program ===

impl Program {
    /// Of a rate it may be measured what is wanted, from `now` on.
    pub(crate) fn new(kind: Kind, measured_from: Option<Time>) -> Program {
        match kind {
            Kind::Rate => {
                let limiter = Limiter::default();
                let measured = measured_from.map(|now| Measured::new(now, &limiter));
                let (due, sent, allowance) = (Bucket::default(), VecDeque::new(), Allowance::NOTHING);
                Program::Hits(Box::new(Hits {
                    limiter,
                    due,
                    sent,
                    allowance,
                    measured,
                    leasing: None,
                    alone: None,
                }))
            }
            Kind::Gauge => Program::Units(Units::default()),
        }
    }

    /// The client says that so much may be used from here on, by which hits are judged.
    pub(crate) fn note(&mut self, now: Time, allowance: Allowance) {
        if let Program::Hits(hits) = self {
            hits.bring(now);
            hits.allowance = allowance;
            if allowance.asked == Amount::ZERO {
                hits.sent.clear();
            }
            hits.due.limit(hits.most());
        }
    }

    /// The enforcer is told so.
    pub(crate) fn allow(&mut self, now: Time, allowance: Allowance) {
        match self {
            Program::Hits(hits) => {
                hits.limiter.allow(now, allowance);
                hits.alone.iter().for_each(|alone| alone.enforcer.allow(now, allowance));
                if let Some(measured) = &mut hits.measured {
                    measured.follow(now, allowance, &hits.limiter);
                }
            }
            Program::Units(units) => {
                units.gauge.allow(now, allowance);
                units.alone.iter().for_each(|alone| alone.enforcer.allow(now, allowance));
            }
            Program::Uses(uses) => uses.allow(now, allowance),
        }
    }

    /// The units that are out, whatever has become of their lease, as the driver of a client reads them.
    pub(crate) fn in_use(&self, local: Time) -> Amount {
        match self {
            Program::Hits(_) => Amount::ZERO,
            Program::Units(units) => Amount::from_units(units.gauge.in_use().into()),
            Program::Uses(uses) => uses.in_use(local),
        }
    }

    /// The amount that each operation uses, until the end that its permit tells it; and each use of a window, until that has passed
    /// in real time. It is `now`, and that is the clock of the machine.
    pub(crate) fn used(&self, now: Time, clock: Clock) -> Vec<Used> {
        let operations = match self {
            Program::Hits(_) => &[][..],
            Program::Units(units) => &units.operations,
            Program::Uses(uses) => return uses.used(now, clock),
        };
        let used = |operation: &Operation| Used {
            micros: u64::from(operation.permit.units() - operation.permit.unenforced())
                * Amount::MICROS_PER_UNIT,
            until: operation.permit.deadline().unwrap_or(Time::MAX),
        };
        operations.iter().map(used).collect()
    }

    /// Begins an operation on up to `most` units that takes until `done`, if there is one to be had.
    pub(crate) fn begin(&mut self, local: Time, most: u32, done: Time) -> bool {
        let Program::Units(units) = self else { return false };
        let permit = units.gauge.try_acquire_between(1, most, || local);
        let same = units.alone.as_mut().and_then(|alone| alone.begin(permit.as_ref().ok(), most, local));
        let Ok(permit) = permit else { return false };
        units.operations.push(Operation { permit, done, _alone: same });
        true
    }

    /// Operations come to their end, in real time.
    pub(crate) fn finish(&mut self, now: Time) {
        if let Program::Units(units) = self {
            units.operations.retain(|operation| now < operation.done);
        }
    }

    /// Operations stop whose permits say that the lease behind them has ended.
    pub(crate) fn stop_overdue(&mut self, local: Time) {
        if let Program::Units(units) = self {
            units.operations.retain(|operation| !operation.permit.is_expired_at(local));
        }
    }

    /// The units that were asked for while everything was let pass, as the enforcer counts them.
    pub(crate) fn unenforced(&self) -> Unenforced {
        match self {
            Program::Hits(hits) => hits.limiter.unenforced_counts(),
            Program::Units(units) => units.gauge.unenforced_counts(),
            Program::Uses(uses) => uses.unenforced(),
        }
    }

    /// Units have been sent.
    pub(crate) fn bring(&mut self, sent: SentUnits, local: Time) {
        if let Program::Hits(hits) = self {
            let (kept, keep) = sent.keep.unwrap_or_default();
            hits.sent.extend((0..kept).map(|_| local + keep));
            hits.limiter.bring(sent, local);
            hits.alone.iter().for_each(|alone| alone.enforcer.bring(sent, local));
        }
    }

    /// The wish that the limiter has of its grantor.
    pub(crate) fn wish(&self, local: Time) -> Option<UnitWish> {
        match self {
            Program::Hits(hits) => {
                // The other is asked as well, and what it says is not sent.
                hits.alone.iter().for_each(|alone| _ = alone.enforcer.wish(local));
                hits.limiter.wish(local)
            }
            Program::Units(_) | Program::Uses(_) => None,
        }
    }

    /// The measurement of its demand, if it is measured.
    pub(crate) fn measured(&self) -> Option<&Measured> {
        match self {
            Program::Hits(hits) => hits.measured.as_ref(),
            Program::Units(_) | Program::Uses(_) => None,
        }
    }

    /// The rate that flows in at the client of a lease that brings less than a unit in the burst, in millionths a
    /// second.
    pub(crate) fn small_rate(&self) -> Option<u64> {
        match self {
            Program::Hits(hits) => hits.is_small().then(|| hits.rate()),
            Program::Units(_) | Program::Uses(_) => None,
        }
    }

    /// Returns what the driver has to say of a demand that is measured.
    pub(crate) fn say(&mut self, now: Time, rests: bool) -> Option<Said> {
        let Program::Hits(hits) = self else { return None };
        hits.measured.as_mut()?.say(now, &hits.limiter, rests)
    }

    /// The program states what it wants, where that was measured.
    pub(crate) fn state(&mut self, wants: f64) -> Option<Said> {
        let Program::Hits(hits) = self else { return None };
        Some(hits.measured.as_mut()?.state(wants))
    }

    /// The uses of windows, if it is about those.
    pub(crate) fn uses(&mut self) -> Option<&mut WindowUses> {
        match self {
            Program::Uses(uses) => Some(uses),
            Program::Hits(_) | Program::Units(_) => None,
        }
    }

    /// One hit, if it is to be had.
    pub(crate) fn hit(&mut self, local: Time) -> Hit {
        let Program::Hits(hits) = self else { return Hit::Denied(None) };
        let passed = hits.limiter.unenforced();
        let answer = hits.limiter.try_acquire(1, || local);
        hits.alone.iter_mut().for_each(|alone| alone.hit(&answer, local));
        match answer {
            Ok(()) if hits.limiter.unenforced() > passed => Hit::Passed,
            Err(Denied::Spent { retry_after }) => Hit::Denied(Some(retry_after)),
            Err(_) => Hit::Denied(None),
            Ok(()) => hits.judge(local),
        }
    }

    /// One hit of a domain, if it is to be had.
    pub(crate) fn ask(&mut self, domain: &str, local: Time) -> Hit {
        let Program::Hits(hits) = self else { return Hit::Denied(None) };
        let Some(leasing) = &hits.leasing else { return Hit::Denied(None) };
        let passed = hits.limiter.unenforced();
        match leasing.request(&hits.limiter, domain, local) {
            decision if decision.is_granted() && hits.limiter.unenforced() > passed => Hit::Passed,
            decision if decision.is_granted() => hits.judge(local),
            decision => Hit::Denied(decision.retry_at.map(|at| at.since(local))),
        }
    }

    /// The same program with the domains of the resource `of`, if it has any.
    pub(crate) fn with_domains(mut self, of: Option<ResourceId>) -> Program {
        if let Program::Hits(hits) = &mut self {
            hits.leasing = of.map(Leasing::new);
        }
        self
    }

    /// The domains and their leases, if it has any.
    pub(crate) fn leasing(&mut self) -> Option<&mut Leasing> {
        match self {
            Program::Hits(hits) => hits.leasing.as_mut(),
            Program::Units(_) | Program::Uses(_) => None,
        }
    }
}

// === impl Hits ===

impl Hits {
    /// Adds what the allowance has brought until `now`.
    fn bring(&mut self, now: Time) {
        let rate = self.rate();
        self.due.fill(now, self.allowance.until, rate);
        self.due.limit(self.most());
    }

    /// Looks whether what was let through was brought by the allowances, or sent.
    fn judge(&mut self, local: Time) -> Hit {
        self.bring(local);
        self.sent.retain(|&until| local < until);
        if self.sent.pop_front().is_some() {
            return Hit::Sent;
        }
        // Of a lease that brings less than a unit in the burst, units come when they are due: all together judge them.
        if self.due.take(1) || self.is_small() { Hit::Granted } else { Hit::Unfounded }
    }

    fn rate(&self) -> u64 {
        let capacity = self.allowance.capacity.unwrap_or(Amount::MAX);
        capacity.saturating_sub(self.allowance.asked).as_micros()
    }

    /// Whether something flows in, and less than a unit in the burst.
    fn is_small(&self) -> bool {
        let brought = bucket::brought(self.rate(), self.allowance.burst.unwrap_or(BURST));
        brought > 0 && brought <= u128::from(Amount::MICROS_PER_UNIT)
    }

    /// The most that may be saved up under the allowance, in millionths: where that is less than a unit, one unit
    /// more.
    fn most(&self) -> u128 {
        let unit = u128::from(Amount::MICROS_PER_UNIT);
        let burst = bucket::brought(self.rate(), self.allowance.burst.unwrap_or(BURST));
        // A little less than a unit is rounded up to one here, and down by the limiter.
        if burst == 0 {
            return 0;
        }
        if burst <= unit { burst + unit } else { burst }
    }
}
