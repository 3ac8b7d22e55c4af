//! A leader with an older configuration than was in force: it grants nothing, and another task may have the newer one.

use std::time::Duration;

use lessor_proto::Time;

/// The editions of the configuration that a task has, and for want of which it waits.
///
/// A leader grants nothing as long as a later edition than its own was in force: that may have been a cut. If it does not get
/// that within its patience, it leaves it to others to lead, and stands again when it has it; or after a while, as nobody else
/// may have it either.
#[derive(Clone, Debug)]
pub struct Lag {
    patience: Duration,
    /// Since when it leads and waits.
    since: Option<Time>,
    /// The edition for want of which it does not stand.
    lacks: Option<u64>,
}

/// A step that a task has to take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// To leave it to others to lead, for so long at the most.
    Aside(Duration),
    /// To stand for election again, as everybody does.
    Stand,
}

/// For so many times its patience it does not stand.
const ASIDE: u32 = 6;

// === impl Lag ===

impl Lag {
    /// Of a task that waits for so long.
    #[must_use]
    pub fn new(patience: Duration) -> Lag {
        Lag { patience, since: None, lacks: None }
    }

    /// The step to take at `now`, with the edition `here`; `later` is the one for want of which it grants nothing, if it leads.
    pub fn look(&mut self, now: Time, here: u64, later: Option<u64>) -> Option<Step> {
        let Some(later) = later else {
            self.since = None;
            return self.lacks.take_if(|lacked| *lacked <= here).map(|_| Step::Stand);
        };
        let since = *self.since.get_or_insert(now);
        if now < since + self.patience {
            return None;
        }
        (self.since, self.lacks) = (None, Some(later));
        Some(Step::Aside(self.patience * ASIDE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn lag() -> Lag {
        Lag::new(Duration::from_secs(10))
    }

    const ASIDE: Option<Step> = Some(Step::Aside(Duration::from_secs(60)));

    #[test]
    fn a_leader_that_has_what_was_in_force_goes_on() {
        let mut lag = lag();
        assert_eq!([1, 20, 300].map(|second| lag.look(at(second), 7, None)), [None; 3]);
    }

    #[test]
    fn one_that_gets_it_in_time_goes_on() {
        let mut lag = lag();
        assert_eq!([1, 10].map(|second| lag.look(at(second), 6, Some(7))), [None; 2]);
        assert_eq!([11, 30].map(|second| lag.look(at(second), 7, None)), [None; 2]);
        assert_eq!(lag.look(at(31), 7, Some(8)), None, "its patience begins anew");
    }

    #[test]
    fn one_that_does_not_leaves_it_to_others_until_it_has_it() {
        let mut lag = lag();
        assert_eq!(lag.look(at(1), 6, Some(7)), None);
        assert_eq!(lag.look(at(11), 6, Some(7)), ASIDE);
        assert_eq!([12, 20].map(|second| lag.look(at(second), 6, None)), [None; 2]);
        assert_eq!(lag.look(at(21), 7, None), Some(Step::Stand));
        assert_eq!(lag.look(at(22), 7, None), None);
    }
}
