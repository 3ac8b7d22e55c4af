//! A run as one line of JSON.

use std::time::Duration;

use serde::Serialize;

use super::ReportRun;
use crate::measure::{Figures, Recording};

/// Everything that a run is judged by, as one object: shares as fractions of 1, times in seconds, capacities in units of
/// capacity; null where a figure does not exist. What each figure is stands at [`Figures`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ReportLine {
    /// `one` to `seven`.
    pub scenario: &'static str,
    /// The seed.
    pub seed: u64,
    /// `stream`, `poll` or `doorman`.
    pub mode: &'static str,
    /// The capacity to share.
    pub capacity: f64,
    /// Mean utilisation once it was good.
    pub b_mean_conv: Option<f64>,
    /// Mean utilisation with the start.
    pub b_mean_whole: Option<f64>,
    /// 5th percentile of utilisation once it was good.
    pub b_p5_conv: Option<f64>,
    /// Seconds with utilisation below 95 %.
    pub below95_total_s: Option<u64>,
    /// The longest stretch of them.
    pub below95_longest_s: Option<u64>,
    /// The time below 95 %, however short at a time.
    pub below95_exact_s: Option<f64>,
    /// The longest time from a fault until utilisation was good again.
    pub recovery_longest_s: Option<u64>,
    /// Mean allocation error once utilisation was good.
    pub allocation_error_conv: Option<f64>,
    /// Mean utilisation in samples every 5 s.
    pub b_mean_conv_sampled: Option<f64>,
    /// Mean allocation error in samples every 5 s.
    pub allocation_error_conv_sampled: Option<f64>,
    /// Events after which clients believed more than there is.
    pub overshoot_events: u64,
    /// The most by which they did.
    pub overshoot_max: f64,
    /// For how long they did.
    pub overshoot_s: f64,
    /// The most that clients believed.
    pub believed_max: f64,
    /// The first second with utilisation of 95 %.
    pub conv_at_s: Option<u64>,
    /// Requests on all hops.
    pub calls_per_client_minute: f64,
    /// Events after which beliefs were added up.
    pub events: u64,
    /// Of everything that happened, in hexadecimal digits.
    pub trace_hash: Option<String>,
    /// The time that the run took.
    pub wall_s: f64,
}

// === impl ReportLine ===

impl ReportLine {
    /// The line of a run that took `wall`.
    #[must_use]
    pub fn new(run: &ReportRun<'_>, recording: &Recording, figures: &Figures, wall: Duration) -> ReportLine {
        ReportLine {
            scenario: run.scenario.name(),
            seed: run.seed,
            mode: run.mode.name(),
            capacity: recording.capacity,
            b_mean_conv: figures.b_mean_conv,
            b_mean_whole: figures.b_mean_whole,
            b_p5_conv: figures.b_p5_conv,
            below95_total_s: figures.below95_total_seconds,
            below95_longest_s: figures.below95_longest_seconds,
            below95_exact_s: figures.below95_exact_seconds,
            recovery_longest_s: figures.recovery_longest_seconds,
            allocation_error_conv: figures.allocation_error_conv,
            b_mean_conv_sampled: figures.b_mean_conv_sampled,
            allocation_error_conv_sampled: figures.allocation_error_conv_sampled,
            overshoot_events: figures.overshoot_events,
            overshoot_max: figures.overshoot_max,
            overshoot_s: figures.overshoot_seconds,
            believed_max: figures.believed_max,
            conv_at_s: figures.conv_at_seconds,
            calls_per_client_minute: figures.calls_per_client_minute,
            events: recording.events,
            trace_hash: recording.trace_hash.map(|hash| format!("{hash:016x}")),
            wall_s: wall.as_secs_f64(),
        }
    }

    /// The object without a line break.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("numbers and words are JSON")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Recorder;
    use crate::scenario::Mode;
    use crate::workload::Scenario;

    #[test]
    fn a_figure_that_does_not_exist_is_null() {
        let plan = Scenario::One.plan();
        let run = ReportRun { scenario: Scenario::One, plan: &plan, seed: 7, mode: Mode::Poll };
        let mut recorder = Recorder::new(500.0, 1, 10);
        recorder.event(0.0, &[500.0], &[250.0], &[500.0]);
        let recording = recorder.finish(Some(0xabc));
        let json = ReportLine::new(&run, &recording, &recording.figures(), Duration::from_millis(5)).json();
        let begin = r#"{"scenario":"one","seed":7,"mode":"poll","capacity":500.0,"b_mean_conv":null,"b_mean_whole":0.5,"#;
        assert!(json.starts_with(begin), "{json}");
        assert!(json.ends_with(r#","trace_hash":"0000000000000abc","wall_s":0.005}"#), "{json}");
    }
}
