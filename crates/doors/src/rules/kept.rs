//! The way in which a limit is kept by several doors, in words: what passes at the most, what is refused wrongly, what is waited
//! for.

use std::fmt;
use std::time::Duration;

use humantime::format_duration;

use super::templates::lease_length;
use super::{Limit, LimitKind};

/// The time within which doors hear what others have granted of a shared limit, beside the way between them.
const TOLD_WITHIN: f64 = 0.15;

/// The scope of a limit of hits.
const IN_ANY_WINDOW: &str = "in any window";

/// The promise of a limit at a number of doors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kept {
    /// The kind, as rules name it.
    pub kind: &'static str,
    /// The hits that pass at the most.
    pub most: u64,
    /// When so many pass: in any window, or at a time.
    pub scope: &'static str,
    /// The exception to that; empty where there is none.
    pub but: String,
    /// The hits that are refused though they would have been within the limit, and the wait before that.
    pub refuses: String,
    /// The effect of a door's death, and of a door that is cut off.
    pub failing: String,
}

// === impl Kept ===

impl Kept {
    /// The promise of `limit` at so many doors, whose answers wait for `wait` at the most.
    #[must_use]
    pub fn new(limit: &Limit, doors: u32, wait: Duration) -> Kept {
        let units = u64::from(limit.units);
        let doors = u64::from(doors.max(1));
        let waited = match wait.is_zero() {
            true => "without a wait".to_owned(),
            false => format!("after a wait of {}", format_duration(wait)),
        };
        let kind = limit.kind.word();
        match &limit.kind {
            LimitKind::Exact => {
                let lease = Duration::from_secs(lease_length(limit.window.length()));
                let lease = format_duration(lease);
                Kept {
                    kind,
                    most: units,
                    scope: IN_ANY_WINDOW,
                    but: format!("when the limit is cut the old one may pass for {lease}"),
                    refuses: format!("{waited}, what another door has and does not give up in that time"),
                    failing: format!(
                        "a door that is cut off soon has no lease, and what one had that dies comes back within {lease}"
                    ),
                }
            }
            LimitKind::Concurrency => {
                let window = limit.window.length();
                let lease = format_duration(Duration::from_secs(lease_length(window)));
                Kept {
                    kind,
                    most: units,
                    scope: "at a time",
                    but: format!("what takes longer than {} counts no more", format_duration(window)),
                    refuses: format!("{waited}, what another door has and does not give up in that time"),
                    failing: format!(
                        "an end that is not heard of is one after {}, and what a door had that dies comes back within {lease}",
                        format_duration(window)
                    ),
                }
            }
            LimitKind::Flow => Kept {
                kind,
                most: units.saturating_mul(2).saturating_add(doors),
                scope: IN_ANY_WINDOW,
                but: "a second's worth may be saved up".to_owned(),
                refuses: format!("{waited}, what another door has while demand moves"),
                failing: "a door that is cut off goes on for up to 1m, within the limit".to_owned(),
            },
            LimitKind::Shared(shared) => {
                let elsewhere = doors - 1;
                let most = match shared.hard_limit {
                    Some(hard) => {
                        let late = f64::from(hard) * TOLD_WITHIN;
                        units.saturating_add((elsewhere as f64 * late).ceil() as u64)
                    }
                    None => units.saturating_mul(doors),
                };
                let but = match shared.hard_limit {
                    Some(_) => "more by what is under way between doors that are far from each other",
                    None => "all doors at once, before they have heard of each other; hard_limit bounds that",
                };
                Kept {
                    kind,
                    most,
                    scope: IN_ANY_WINDOW,
                    but: but.to_owned(),
                    refuses: "nothing; a key that rests in its cooldown".to_owned(),
                    failing: "a door that is cut off counts alone".to_owned(),
                }
            }
        }
    }
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kept { kind: _, most, scope, but, refuses, failing } = self;
        write!(f, "passes at most {most} {scope}; {but}\nrefuses wrongly: {refuses}\nfails: {failing}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Rule, SharedLimit, TimeUnit, Window};

    fn kept(units: u32, kind: LimitKind, doors: u32) -> Kept {
        let mut rule = Rule::new("edge/0", "edge/0");
        rule.limit(units, Window::of(TimeUnit::Minute), kind);
        Kept::new(&rule.limits[0], doors, Duration::from_millis(100))
    }

    #[test]
    fn what_passes_depends_on_the_kind_and_on_the_number_of_doors() {
        let shared =
            |hard_limit| LimitKind::Shared(SharedLimit { capacity: 1_000, hard_limit, tiers: Vec::new() });
        for (doors, exact, flow, hard, soft) in [
            (1, 100, 201, 100, 100),
            (10, 100, 210, 127, 1_000),
            (u32::MAX, 100, 4_294_967_495, 12_884_901_982, 429_496_729_500),
        ] {
            assert_eq!(kept(100, LimitKind::Exact, doors).most, exact);
            assert_eq!(kept(100, LimitKind::Flow, doors).most, flow);
            assert_eq!(kept(100, shared(Some(20)), doors).most, hard);
            assert_eq!(kept(100, shared(None), doors).most, soft);
        }
    }

    #[test]
    fn what_is_under_way_is_counted_for_no_longer_than_it_may_take() {
        assert_eq!(
            kept(10, LimitKind::Concurrency, 2).to_string(),
            "passes at most 10 at a time; what takes longer than 1m counts no more\n\
             refuses wrongly: after a wait of 100ms, what another door has and does not give up in that time\n\
             fails: an end that is not heard of is one after 1m, and what a door had that dies comes back within 1m 36s"
        );
    }

    #[test]
    fn it_says_for_how_long_a_door_that_dies_is_waited_for() {
        assert_eq!(
            kept(100, LimitKind::Exact, 2).to_string(),
            "passes at most 100 in any window; when the limit is cut the old one may pass for 1m 36s\n\
             refuses wrongly: after a wait of 100ms, what another door has and does not give up in that time\n\
             fails: a door that is cut off soon has no lease, and what one had that dies comes back within 1m 36s"
        );
    }
}
