//! The deference of a task that has not what another task of its node has in force: it leaves it to that one to lead.

use std::time::Duration;

use lessor_proto::Time;

use crate::election::lag::Step;

/// The deference of a task.
#[derive(Clone, Default, Debug)]
pub struct Deference {
    /// Since when it leads and should not.
    since: Option<Time>,
    /// Until when it has said that it does not stand.
    aside_until: Option<Time>,
}

/// A leader may still get what it lacks within that time.
const PATIENCE: Duration = Duration::from_secs(10);
/// It does not stand for so long, unless it is looked at again.
const ASIDE: Duration = Duration::from_secs(30);

// === impl Deference ===

impl Deference {
    /// The step to take at `now`, where the task `should_stand` or should not, and leads or does not.
    pub fn look(&mut self, now: Time, should_stand: bool, leads: bool) -> Option<Step> {
        if should_stand {
            self.since = None;
            return self.aside_until.take().map(|_| Step::Stand);
        }
        if leads {
            let since = *self.since.get_or_insert(now);
            if now < since + PATIENCE {
                return None;
            }
        } else if self.aside_until.is_some_and(|until| now + ASIDE / 2 < until) {
            return None;
        }
        (self.since, self.aside_until) = (None, Some(now + ASIDE));
        Some(Step::Aside(ASIDE))
    }

    /// Whether it has said that it does not stand.
    #[must_use]
    pub fn is_aside(&self) -> bool {
        self.aside_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(looks: &[(u64, bool, bool)]) -> Vec<Option<Step>> {
        let mut deference = Deference::default();
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        looks.iter().map(|&(second, stands, leads)| deference.look(at(second), stands, leads)).collect()
    }

    #[test]
    fn who_does_not_lead_stands_aside_at_once_and_for_as_long_as_it_has_to() {
        let found = looks(&[
            (1, false, false),
            (10, false, false),
            (17, false, false),
            (18, true, false),
            (19, true, false),
        ]);
        let aside = Some(Step::Aside(ASIDE));
        assert_eq!(found, [aside, None, aside, Some(Step::Stand), None]);
    }

    #[test]
    fn a_leader_has_ten_seconds_to_get_what_it_lacks() {
        let found = looks(&[
            (1, false, true),
            (9, false, true),
            (10, true, true),
            (12, false, true),
            (22, false, true),
        ]);
        assert_eq!(found, [None, None, None, None, Some(Step::Aside(ASIDE))]);
    }
}
