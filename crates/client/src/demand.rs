//! An estimate of demand: the amount to ask for next, learned from what was attempted.
//!
//! Time is cut into windows. What was attempted in a window, granted or not, together with what waits at its end, is
//! what the window wanted; the demand follows the greatest want of the last few windows, so a rise counts at once and a
//! fall when the last window that wanted more is forgotten. On top comes a little headroom, so that growth shows as
//! growth.
//!
//! A program that does one thing after the other attempts no more than it is granted. So a window that ends with somebody
//! waiting wanted twice what it was granted, at least: the demand grows until the limiter is not what holds it up.
//!
//! Noise does not travel: while the stated demand lies between what was wanted and twice the headroom above it, it
//! stays. So a constant load leads to one statement; a step up is stated within one window, a step down one window after
//! the windows that are remembered.
//!
//! Besides the mean, which shares are made of, it can say a [peak], which is a claim on what nobody wants.
//!
//! ```
//! use lessor_client::internals::demand::{DemandOptions, Estimator};
//! use lessor_client::internals::limiter::RateUsage;
//! use lessor_proto::{Amount, Time};
//!
//! let second = |s: u64| Time::from_nanos(s * 1_000_000_000);
//! let mut demand = Estimator::new(DemandOptions::default());
//! assert_eq!(demand.wants(), Amount::from_units(1)); // the floor
//! demand.observe_rate(second(0), RateUsage::default());
//! let wants = demand.observe_rate(second(1), RateUsage { attempted: 200, granted: 1, waiting: 0 });
//! assert_eq!(wants, Amount::from_units(220));
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use lessor_proto::{Amount, Time};

use self::haste::{KnockGate, Knocks};
use self::peak::{Attempts, Peak};
use crate::{gauge, limiter};

pub(crate) mod haste;
pub(crate) mod peak;

/// The options of the measurement of demand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DemandOptions {
    /// The shortest time over which a rate is measured.
    pub window: Duration,
    /// For how many windows a want is remembered; at least one.
    pub windows: u32,
    /// The surplus that is asked for beyond what was wanted, in per cent.
    pub headroom_percent: u32,
    /// The least that is asked for, even when idle.
    pub floor: Amount,
    /// The most that is asked for.
    pub most: Amount,
}

/// Watches use and says what we want next.
#[derive(Clone, Debug)]
pub struct Estimator {
    options: DemandOptions,
    /// Said by the program; nothing is measured then.
    fixed: Option<Amount>,
    stated: Amount,
    /// The running window's beginning, and what had been asked for and settled until then.
    begun: Option<(Time, Settled)>,
    /// The greatest want in the running window, for a gauge.
    running_peak: Amount,
    /// The wants of the last windows and the times at which those ended, oldest first; greater ones only, so the
    /// first is the greatest.
    peaks: VecDeque<(Time, Amount)>,
    claims: Option<Claims>,
}

/// The claims on capacity that nobody wants.
#[derive(Clone, Debug)]
struct Claims {
    /// The most that the program wants to have saved up, if it has said so.
    burst: Option<Duration>,
    peak: Peak,
    knocks: Knocks,
    /// The peak that was stated last.
    stated: Amount,
    /// Not before then is it quiet.
    quiet_from: Time,
}

/// Units since the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Settled {
    /// Granted or denied: attempted and not waiting any more.
    all: u64,
    granted: u64,
}

/// Nobody is quiet who has just been refused something.
const QUIET_AFTER_A_KNOCK: Duration = Duration::from_millis(200);

// === impl Settled ===

impl Settled {
    fn of(usage: limiter::RateUsage) -> Settled {
        Settled { all: usage.attempted.saturating_sub(usage.waiting), granted: usage.granted }
    }
}

// === impl DemandOptions ===

impl Default for DemandOptions {
    /// Windows of a second, remembered for three; 10 % headroom; from one unit to anything.
    fn default() -> DemandOptions {
        DemandOptions {
            window: Duration::from_secs(1),
            windows: 3,
            headroom_percent: 10,
            floor: Amount::from_units(1),
            most: Amount::MAX,
        }
    }
}

// === impl Estimator ===

impl Estimator {
    /// An estimator that saw nothing yet and asks for the floor.
    #[must_use]
    pub fn new(options: DemandOptions) -> Estimator {
        Estimator {
            options,
            fixed: None,
            stated: options.floor.min(options.most),
            begun: None,
            running_peak: Amount::ZERO,
            peaks: VecDeque::new(),
            claims: None,
        }
    }

    /// Says a peak besides the mean, for a bucket that holds what comes in during `burst`, if the grantor allows that; absent:
    /// as the grantor says.
    #[must_use]
    pub fn with_claims(self, burst: Option<Duration>) -> Estimator {
        let peak = Peak::new(burst.unwrap_or(limiter::Limiter::DEFAULT_BURST));
        let knocks = Knocks::default();
        let claims = Claims { burst, peak, knocks, stated: Amount::ZERO, quiet_from: Time::ZERO };
        Estimator { claims: Some(claims), ..self }
    }

    /// Follows the burst that the grantor allows, if it has named one.
    pub fn follow_burst(&mut self, said: Option<Duration>) {
        if let Some(claims) = &mut self.claims {
            let burst = claims.burst.into_iter().chain(said).min();
            claims.peak.set_burst(burst.unwrap_or(limiter::Limiter::DEFAULT_BURST));
        }
    }

    /// The least lease that would have let the last attempts through; absent where it is not measured, since the program said
    /// what it wants, or what it wants at most.
    #[must_use]
    pub fn peak(&self) -> Option<Amount> {
        let is_measured = self.fixed.is_none() && self.options.most == Amount::MAX;
        self.claims.as_ref().filter(|_| is_measured).map(|claims| claims.stated)
    }

    /// Whether a refusal is worth a knock at `now`.
    #[must_use]
    pub fn gate(&self, now: Time) -> KnockGate {
        match &self.claims {
            Some(claims) if self.peak().is_some() => claims.knocks.gate(now, haste::sure(now, &claims.peak)),
            _ => KnockGate::Shut,
        }
    }

    /// More was granted: the next refusal is the first one again.
    pub fn open_gate(&mut self) {
        if let Some(claims) = &mut self.claims {
            claims.knocks.open();
        }
    }

    /// Learns of attempts and what a limiter's counters read at `now`, a few times a window: closes the window when
    /// it is over, and says when it has become quiet.
    pub fn look(&mut self, now: Time, usage: limiter::RateUsage, attempts: &[Attempts]) -> Amount {
        if self.begun.is_none_or(|(begun, _)| now.since(begun) >= self.options.window) {
            self.observe_rate(now, usage);
        }
        let Some(claims) = &mut self.claims else { return self.wants() };
        attempts.iter().for_each(|&attempts| claims.peak.count(attempts));
        if usage.waiting == 0
            && now >= claims.quiet_from
            && let Some(bound) = haste::quiet(now, &claims.peak, self.stated)
        {
            claims.peak.forget();
            claims.stated = Amount::ZERO;
            self.stated = bound.max(self.options.floor).min(self.options.most);
            self.peaks.clear();
            self.begun = Some((now, Settled::of(usage)));
            return self.wants();
        }
        let need = claims.peak.need(now);
        if need > claims.stated || need.as_f64() * 2.0 < claims.stated.as_f64() {
            claims.stated = need;
        }
        let sure = haste::sure(now, &claims.peak);
        if claims.knocks.is_recent(now) && sure.as_f64() > self.stated.as_f64() * 1.1 {
            self.want_what_is_sure(now, sure);
        }
        self.wants()
    }

    /// After how long a [look](Estimator::look) may find something to say, if that is sooner than usual.
    #[must_use]
    pub fn look_again(&self, now: Time) -> Option<Duration> {
        let claims = self.claims.as_ref().filter(|_| self.peak().is_some())?;
        let may_be_quiet = || haste::may_be_quiet(now, &claims.peak, self.stated);
        claims.knocks.after(now).or_else(|| may_be_quiet().then_some(haste::SOON))
    }

    /// Something was refused at `now` while `held` was held: as much more is claimed, and what is certain is wanted.
    pub fn knock(&mut self, now: Time, attempts: &[Attempts], held: Amount) -> Amount {
        let Some(claims) = &mut self.claims else { return self.wants() };
        attempts.iter().for_each(|&attempts| claims.peak.count(attempts));
        claims.peak.claim(now, held.saturating_add(held));
        claims.stated = claims.peak.need(now);
        claims.quiet_from = now + QUIET_AFTER_A_KNOCK;
        let sure = haste::sure(now, &claims.peak);
        claims.knocks.knock(now, sure);
        self.want_what_is_sure(now, sure);
        self.wants()
    }

    /// A mean that is certain is wanted, and remembered as that of a window.
    fn want_what_is_sure(&mut self, now: Time, sure: Amount) {
        if sure > self.stated {
            self.stated = sure.min(self.options.most);
            self.close_window(now, sure);
        }
    }

    /// Asks for `wants` from here on, up to the most, whatever is used; `None` goes back to measuring.
    pub fn set(&mut self, wants: Option<Amount>) {
        self.fixed = wants;
    }

    /// The amount to ask for.
    #[must_use]
    pub fn wants(&self) -> Amount {
        self.fixed.map_or(self.stated, |wants| wants.min(self.options.most))
    }

    /// Learns what a limiter's counters read at `now`, and returns what to ask for. To be called about once a window;
    /// the first call only begins one.
    pub fn observe_rate(&mut self, now: Time, usage: limiter::RateUsage) -> Amount {
        let settled = Settled::of(usage);
        let Some((begun, before)) = self.begun else {
            self.begun = Some((now, settled));
            return self.wants();
        };
        let wanted = settled.all.saturating_sub(before.all).saturating_add(usage.waiting);
        // Of a window that still runs, what it wanted at least.
        let elapsed = now.since(begun);
        let mut want = per_second(wanted, elapsed.max(self.options.window));
        if elapsed >= self.options.window {
            if usage.waiting > 0 {
                // Who does one thing after the other attempts no more than it is granted, however much it could use.
                let doubled =
                    settled.granted.saturating_sub(before.granted).saturating_add(1).saturating_mul(2);
                want = want.max(per_second(doubled, elapsed));
            }
            self.begun = Some((now, settled));
            self.close_window(now, want);
        }
        self.state(now, want, Amount::from_micros(1));
        self.wants()
    }

    /// Learns how a gauge was used until `now`, and returns what to ask for, in whole units. Every
    /// [`gauge::Semaphore::usage`] must come here, since its peak begins anew each time.
    pub fn observe_gauge(&mut self, now: Time, usage: gauge::GaugeUsage) -> Amount {
        let (begun, _) = *self.begun.get_or_insert((now, Settled::default()));
        self.running_peak = self.running_peak.max(Amount::from_units(usage.peak));
        let want = self.running_peak;
        if now.since(begun) >= self.options.window {
            self.begun = Some((now, Settled::default()));
            self.running_peak = Amount::from_units(usage.in_use.saturating_add(usage.waiting));
            self.close_window(now, want);
        }
        self.state(now, want, Amount::from_units(1));
        self.wants()
    }

    fn close_window(&mut self, now: Time, want: Amount) {
        while self.peaks.back().is_some_and(|&(_, less)| less <= want) {
            self.peaks.pop_back();
        }
        self.peaks.push_back((now, want));
    }

    /// States what follows from the remembered wants and the running one, if it differs enough; in multiples of
    /// `grain`.
    fn state(&mut self, now: Time, running: Amount, grain: Amount) {
        let DemandOptions { window, windows, headroom_percent, floor, most } = self.options;
        let memory = window.saturating_mul(windows.max(1));
        while self.peaks.len() > 1 && self.peaks.front().is_some_and(|&(at, _)| now.since(at) >= memory) {
            self.peaks.pop_front();
        }
        let peak = self.peaks.front().map_or(running, |&(_, want)| want.max(running));
        let least = peak.max(floor).min(most);
        let greatest = above(peak, headroom_percent.saturating_mul(2), grain).max(floor).min(most);
        if self.stated < least || self.stated > greatest {
            self.stated = above(peak, headroom_percent, grain).max(floor).min(most);
        }
    }
}

/// `units` in `time`, as a rate.
fn per_second(units: u64, time: Duration) -> Amount {
    let micro_nanos = u128::from(Amount::from_units(units).as_micros()) * 1_000_000_000;
    Amount::from_micros(u64::try_from(micro_nanos / time.as_nanos().max(1)).unwrap_or(u64::MAX))
}

/// `amount` and so many per cent more, rounded up to a multiple of `grain`.
fn above(amount: Amount, percent: u32, grain: Amount) -> Amount {
    let more = u128::from(amount.as_micros()) * (100 + u128::from(percent));
    let grain = u128::from(grain.as_micros());
    let rounded = more.div_ceil(100 * grain) * grain;
    Amount::from_micros(u64::try_from(rounded).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests;
