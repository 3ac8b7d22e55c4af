//! Who knows everything: adds up what all clients believe, after every event.

use lessor_client::allowance::Allowance;
use lessor_proto::{Amount, Time};

/// What all clients believe, against what there is.
#[derive(Clone, Debug)]
pub struct Oracle {
    capacity: Amount,
    /// Belief times nanoseconds, to be divided by the time in the end.
    area: f64,
    since: Time,
    believed: u128,
    highest: u128,
}

/// The law is broken: clients believe more than there is.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("clients believe {believed} of {capacity} millionths")]
pub struct Overshoot {
    /// What they believe together, in millionths.
    pub believed: u128,
    /// What there is, in millionths.
    pub capacity: u64,
}

// === impl Oracle ===

impl Oracle {
    /// Nobody believes anything yet.
    #[must_use]
    pub fn new(capacity: Amount) -> Oracle {
        Oracle { capacity, area: 0.0, since: Time::ZERO, believed: 0, highest: 0 }
    }

    /// Looks at all allowances at `now`.
    ///
    /// # Errors
    /// When they sum up to more than the capacity.
    pub fn look<'a>(
        &mut self,
        now: Time,
        allowances: impl Iterator<Item = &'a Allowance>,
    ) -> Result<(), Overshoot> {
        self.area += self.believed as f64 * now.since(self.since).as_secs_f64();
        self.since = now;
        self.believed = allowances.map(|allowance| believes(now, allowance)).sum();
        self.highest = self.highest.max(self.believed);
        if self.believed > self.capacity.as_micros().into() {
            return Err(Overshoot { believed: self.believed, capacity: self.capacity.as_micros() });
        }
        Ok(())
    }

    /// The mean belief so far, as a fraction of the capacity.
    #[must_use]
    pub fn utilisation(&self) -> f64 {
        self.area / self.since.since(Time::ZERO).as_secs_f64() / self.capacity.as_micros() as f64
    }

    /// The highest belief so far, as a fraction of the capacity.
    #[must_use]
    pub fn highest(&self) -> f64 {
        self.highest as f64 / self.capacity.as_micros() as f64
    }
}

fn believes(now: Time, allowance: &Allowance) -> u128 {
    match allowance.capacity {
        _ if now >= allowance.until => 0,
        Some(amount) => amount.as_micros().into(),
        None => u128::from(u64::MAX),
    }
}
