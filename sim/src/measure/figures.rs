//! The figures of a run.

use super::stretch::{LOW, Stretch, stretches};
use super::{Recording, Sample};

/// The figures by which a run is judged: shares as fractions of 1, times in seconds.
///
/// A figure that ends with `conv` counts the seconds from the first with b >= 0.95 on, and does not exist if
/// there is none.
#[derive(Clone, PartialEq, Debug)]
pub struct Figures {
    /// The first second with b >= 0.95.
    pub conv_at_seconds: Option<u64>,
    /// Mean of b.
    pub b_mean_conv: Option<f64>,
    /// Mean of b with the start.
    pub b_mean_whole: Option<f64>,
    /// The 5th percentile of b, between two seconds where it falls between them.
    pub b_p5_conv: Option<f64>,
    /// The number of seconds with b < 0.95.
    pub below95_total_seconds: Option<u64>,
    /// The longest stretch of them, with less than ten seconds from one to the next.
    pub below95_longest_seconds: Option<u64>,
    /// The time with b < 0.95, however short at a time.
    pub below95_exact_seconds: Option<f64>,
    /// The longest time to recover: from a fault to the end of the last stretch that begins before the next fault.
    pub recovery_longest_seconds: Option<u64>,
    /// Mean of the allocation error.
    pub allocation_error_conv: Option<f64>,
    /// Mean of b in the samples at 5, 10, 15 s and so on, which show wants that just changed and grants that could not.
    pub b_mean_conv_sampled: Option<f64>,
    /// Mean of the allocation error in the same samples.
    pub allocation_error_conv_sampled: Option<f64>,
    /// Events after which clients believed more than there is.
    pub overshoot_events: u64,
    /// The time for which they believed more than there is.
    pub overshoot_seconds: f64,
    /// The most by which they did after any event, in units of capacity; 0 if they never did.
    pub overshoot_max: f64,
    /// The most that all clients believed after any event, in units of capacity.
    pub believed_max: f64,
    /// Requests on all hops over clients and minutes.
    pub calls_per_client_minute: f64,
}

/// Seconds between two samples that count.
const SAMPLE_SECONDS: u64 = 5;

pub(super) fn figures(recording: &Recording) -> Figures {
    let seconds = &recording.seconds;
    let whole: Vec<f64> = seconds.iter().map(|second| second.b).collect();
    let conv = whole.iter().position(|b| *b >= LOW);
    let after = &seconds[conv.unwrap_or(seconds.len())..];
    let b: Vec<f64> = after.iter().map(|second| second.b).collect();
    let errors: Vec<f64> = after.iter().map(|second| second.allocation_error).collect();
    let stretches = conv.map(|conv| stretches(recording, conv));
    let longest = |lengths: fn(&Stretch) -> Option<u64>| {
        stretches.as_ref().map(|all| all.iter().filter_map(lengths).max().unwrap_or(0))
    };
    let sampled = |share: fn(&Recording, &Sample) -> f64| mean(&sampled(recording, conv?, share));
    let overshoot = recording.believed_max - recording.capacity;
    Figures {
        conv_at_seconds: conv.map(|conv| conv as u64),
        b_mean_conv: mean(&b),
        b_mean_whole: mean(&whole),
        b_p5_conv: quantile(&b, 0.05),
        below95_total_seconds: conv.map(|_| b.iter().filter(|b| **b < LOW).count() as u64),
        below95_longest_seconds: longest(|stretch| Some(stretch.length_seconds())),
        below95_exact_seconds: conv.map(|_| after.iter().map(|second| second.low_seconds).sum()),
        recovery_longest_seconds: longest(Stretch::recovery_seconds),
        allocation_error_conv: mean(&errors),
        b_mean_conv_sampled: sampled(|recording, sample| recording.b(&sample.totals)),
        allocation_error_conv_sampled: sampled(|recording, sample| {
            recording.allocation_error(&sample.totals)
        }),
        overshoot_events: recording.overshoot_events,
        overshoot_seconds: recording.overshoot_seconds,
        overshoot_max: if recording.overshoot_events > 0 { overshoot } else { 0.0 },
        believed_max: recording.believed_max,
        calls_per_client_minute: recording.calls as f64 / recording.clients as f64 * 60.0
            / seconds.len() as f64,
    }
}

fn sampled(recording: &Recording, conv: usize, share: fn(&Recording, &Sample) -> f64) -> Vec<f64> {
    let counts = |at: u64| at > 0 && at >= conv as u64 && at.is_multiple_of(SAMPLE_SECONDS);
    let samples = recording.samples.iter().filter(|sample| counts(sample.at_seconds));
    samples.map(|sample| share(recording, sample)).collect()
}

fn mean(numbers: &[f64]) -> Option<f64> {
    (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64)
}

/// The number below which a `share` of all lies, with a straight line between two of them; none of nothing.
#[must_use]
pub fn quantile(numbers: &[f64], share: f64) -> Option<f64> {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let site = share.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[site.floor() as usize], sorted[site.ceil() as usize]);
    Some(low + (high - low) * site.fract())
}

/// The number in the middle; none of nothing.
#[must_use]
pub fn median(numbers: &[f64]) -> Option<f64> {
    quantile(numbers, 0.5)
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;

    fn near(found: Option<f64>, wanted: f64) {
        assert!(found.is_some_and(|found| (found - wanted).abs() < 1e-12), "{found:?}, wanted {wanted}");
    }

    fn believe(recorder: &mut Recorder, second: usize, believes: f64) {
        recorder.event(second as f64, &[80.0, 80.0], &[believes, 0.0], &[50.0, 50.0]);
        recorder.sample(second as u64, Vec::new());
        recorder.call(second as f64);
    }

    #[test]
    fn means_count_from_the_first_good_second_and_from_the_first_of_all() {
        let mut recorder = Recorder::new(100.0, 2, 10);
        for (second, has) in [0.0, 0.0, 50.0, 96.0, 90.0, 100.0].iter().enumerate() {
            believe(&mut recorder, second, *has);
        }
        let figures = recorder.finish(None).figures();
        assert_eq!(figures.conv_at_seconds, Some(3));
        near(figures.b_mean_conv, 6.86 / 7.0);
        near(figures.b_mean_whole, 7.36 / 10.0);
        near(figures.b_p5_conv, 0.9 + 0.3 * 0.06);
        near(figures.allocation_error_conv, (0.48 + 0.45 + 5.0 * 0.5) / 7.0);
        near(figures.b_mean_conv_sampled, 1.0);
        assert_eq!((figures.below95_total_seconds, figures.below95_longest_seconds), (Some(1), Some(1)));
        near(figures.below95_exact_seconds, 1.0);
        near(Some(figures.calls_per_client_minute), 6.0 / 2.0 * 6.0);
    }

    #[test]
    fn a_run_that_is_never_good_has_no_figures_of_its_good_part() {
        let mut recorder = Recorder::new(100.0, 2, 10);
        believe(&mut recorder, 0, 50.0);
        let figures = recorder.finish(None).figures();
        assert_eq!((figures.conv_at_seconds, figures.b_mean_conv), (None, None));
        assert_eq!((figures.b_p5_conv, figures.below95_total_seconds), (None, None));
        assert_eq!((figures.recovery_longest_seconds, figures.b_mean_conv_sampled), (None, None));
        near(figures.b_mean_whole, 0.5);
    }

    #[test]
    fn the_largest_overshoot_is_over_the_capacity() {
        let mut recorder = Recorder::new(100.0, 2, 10);
        believe(&mut recorder, 1, 60.0);
        near(Some(recorder.clone().finish(None).figures().overshoot_max), 0.0);
        believe(&mut recorder, 2, 119.0);
        near(Some(recorder.finish(None).figures().overshoot_max), 19.0);
    }

    #[test]
    fn quantiles_lie_on_a_line_between_numbers() {
        near(median(&[3.0, 1.0, 2.0, 10.0]), 2.5);
        near(quantile(&[0.0, 10.0], 0.05), 0.5);
        near(quantile(&[7.0], 0.95), 7.0);
        assert_eq!(median(&[]), None);
    }
}
