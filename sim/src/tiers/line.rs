//! A run as one line of JSON.

use std::time::Duration;

use serde::Serialize;

use super::figures::{TiersFigures, title};
use super::history::History;

/// Everything that a run of tiers comes to, as one object.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TierLine {
    /// `tiers`.
    pub scenario: &'static str,
    /// The policies, as they are written.
    pub policy: String,
    /// The seed that random requests were drawn from.
    pub seed: u64,
    /// The time that was looked at.
    pub simulated_s: f64,
    /// The results of the run.
    #[serde(flatten)]
    pub figures: TiersFigures,
    /// The time that the run took.
    pub wall_s: f64,
}

// === impl TierLine ===

impl TierLine {
    /// The line of a run that took `wall`.
    #[must_use]
    pub fn new(history: &History, seed: u64, wall: Duration) -> TierLine {
        TierLine {
            scenario: "tiers",
            policy: title(history),
            seed,
            simulated_s: Duration::from_nanos(history.end).as_secs_f64(),
            figures: TiersFigures::new(history),
            wall_s: wall.as_secs_f64(),
        }
    }

    /// The object without a line break.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words are JSON")
    }
}
