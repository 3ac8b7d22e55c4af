//! Stretches of low utilisation, and how long after a fault they end.

use super::{Mark, Recording};

/// A second with a mean utilisation below this is low, as a fraction of 1.
pub const LOW: f64 = 0.95;
/// Low seconds less than this apart belong to one stretch, in seconds.
const APART_SECONDS: u64 = 10;

/// Low seconds that are less than ten seconds apart, and what is between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// The first low second.
    pub from_seconds: u64,
    /// The second after the last low one.
    pub until_seconds: u64,
    /// The last fault until its beginning, if there was one.
    pub since_seconds: Option<u64>,
}

// === impl Stretch ===

impl Stretch {
    /// From its beginning to its end.
    #[must_use]
    pub fn length_seconds(&self) -> u64 {
        self.until_seconds - self.from_seconds
    }

    /// The time to recover: from the fault before it to its end. None if there was no fault.
    #[must_use]
    pub fn recovery_seconds(&self) -> Option<u64> {
        self.since_seconds.map(|since| self.until_seconds - since)
    }
}

/// All stretches from the second `conv` on, in their order.
pub(super) fn stretches(recording: &Recording, conv: usize) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (index, second) in recording.seconds.iter().enumerate().skip(conv) {
        if second.b >= LOW {
            continue;
        }
        let from_seconds = index as u64;
        let until_seconds = from_seconds + 1;
        match stretches.last_mut() {
            Some(last) if until_seconds - last.until_seconds < APART_SECONDS => {
                last.until_seconds = until_seconds;
            }
            _ => {
                let since_seconds = since(&recording.faults, from_seconds);
                stretches.push(Stretch { from_seconds, until_seconds, since_seconds });
            }
        }
    }
    stretches
}

/// The last fault until `at_seconds`. That a job has a master again is the end of a fault, not one more.
fn since(faults: &[Mark], at_seconds: u64) -> Option<u64> {
    let before = faults.iter().filter(|mark| mark.at_seconds <= at_seconds && mark.kind != "restore");
    before.map(|mark| mark.at_seconds).max()
}

#[cfg(test)]
mod tests {
    use super::super::Recorder;
    use super::*;

    /// The stretches of a run in which these seconds are low: from, until, time to recover.
    fn stretches_of(low: &[u64], faults: &[(u64, &str)]) -> Vec<(u64, u64, Option<u64>)> {
        let mut recorder = Recorder::new(100.0, 1, 300);
        for second in 0..300 {
            for (_, kind) in faults.iter().filter(|(at, _)| *at == second) {
                recorder.fault(second, kind, "root");
            }
            let has = if low.contains(&second) { 90.0 } else { 100.0 };
            recorder.event(second as f64, &[100.0], &[has], &[100.0]);
        }
        let found = stretches(&recorder.finish(None), 5);
        found
            .iter()
            .map(|found| (found.from_seconds, found.until_seconds, found.recovery_seconds()))
            .collect()
    }

    #[test]
    fn low_seconds_less_than_ten_apart_are_one_stretch() {
        assert_eq!(stretches_of(&[20, 21, 30], &[]), [(20, 31, None)]);
        assert_eq!(stretches_of(&[20, 21, 31], &[]), [(20, 22, None), (31, 32, None)]);
        assert_eq!(stretches_of(&[1, 2, 3, 4], &[]), [], "nothing counts before utilisation was good once");
    }

    #[test]
    fn recovery_is_counted_from_the_fault() {
        let faults = [(60, "lose"), (80, "restore"), (120, "spike")];
        assert_eq!(stretches_of(&[100, 101], &faults), [(100, 102, Some(42))]);
        let found = stretches_of(&[119, 120, 121], &faults);
        assert_eq!(found, [(119, 122, Some(62))], "it began before the next");
        assert_eq!(stretches_of(&[120], &faults), [(120, 121, Some(1))]);
    }
}
