//! The check of how fast clocks go: leases hold as promised where two clocks differ by no more than is allowed for.

use std::time::Duration;

use lessor_proto::Time;

use super::finding::{CheckOutcome, Finding};

/// A look at the clock of a task: for how long it has led by that, and when it was asked and answered by the clock here.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskClock {
    pub(super) epoch: u64,
    pub(super) led: f64,
    pub(super) asked: Time,
    pub(super) told: Time,
}

/// The part by which a clock may go faster or slower than the real time (`Drift::DEFAULT`); two may differ by twice that.
const ALLOWED: f64 = 0.01;
/// A clock that a machine keeps differs from any other by no more.
const USUAL: f64 = 0.001;

/// A time between two looks.
pub(super) fn apart(text: &str) -> Result<Duration, String> {
    let wanted = "wanted a duration from 1s to 10m";
    let length = humantime::parse_duration(text).map_err(|error| format!("{error}; {wanted}"))?;
    match (Duration::from_secs(1)..=Duration::from_secs(600)).contains(&length) {
        true => Ok(length),
        false => Err(wanted.to_owned()),
    }
}

/// The check of all tasks that led, each with its two looks.
pub(super) fn check(tasks: &[(&str, Option<TaskClock>, Option<TaskClock>)]) -> CheckOutcome {
    let findings = tasks.iter().filter_map(|(server, first, second)| {
        let (Some(first), Some(second)) = (first, second) else {
            let what = format!("{server}: it has not said twice for how long it leads");
            return Some(Finding::warning(what, "run the check again"));
        };
        if first.epoch != second.epoch {
            let what = format!("{server}: it has begun to lead anew between two looks");
            return Some(Finding::warning(what, "run the check again"));
        }
        finding(server, drift(first, second)?)
    });
    CheckOutcome { check: "clocks go alike".to_owned(), findings: findings.collect() }
}

fn finding(server: &str, drift: f64) -> Option<Finding> {
    let percent = drift.abs() * 100.0;
    let way = if drift > 0.0 { "faster" } else { "slower" };
    let what = format!("{server}: its clock goes at least {percent:.2} % {way} than the one here");
    if drift.abs() > ALLOWED {
        let remedy = "move it to another machine: leases are counted longer or shorter than they are";
        return Some(Finding::fault(what, remedy));
    }
    (drift.abs() > USUAL)
        .then(|| Finding::warning(what, "look at what keeps the clock of that machine (NTP)"))
}

/// The part by which the clock of a task goes faster than the one here, for certain: an answer is of some moment between its
/// question and its arrival. None where no time has passed.
fn drift(first: &TaskClock, second: &TaskClock) -> Option<f64> {
    let seconds = |from: Time, to: Time| to.since(from).as_secs_f64();
    let (least, most) = (seconds(first.told, second.asked), seconds(first.asked, second.told));
    let theirs = second.led - first.led;
    if least <= 0.0 {
        return None;
    }
    Some(match theirs {
        theirs if theirs > most => theirs / most - 1.0,
        theirs if theirs < least => theirs / least - 1.0,
        _ => 0.0,
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    fn at(epoch: u64, led: f64, asked: f64, told: f64) -> Option<TaskClock> {
        let time = |seconds: f64| Time::ZERO + Duration::from_secs_f64(seconds);
        Some(TaskClock { epoch, led, asked: time(asked), told: time(told) })
    }

    fn severities(second: Option<TaskClock>) -> Vec<Severity> {
        let outcome = check(&[("root:1", at(7, 100.0, 5.0, 5.01), second)]);
        outcome.findings.iter().map(|found| found.severity).collect()
    }

    #[test]
    fn only_the_part_that_the_way_does_not_explain_counts() {
        assert_eq!(severities(at(7, 110.0, 15.0, 15.01)), []);
        // Up to 20 ms of these ten seconds may have been spent on the way.
        assert_eq!(severities(at(7, 110.02, 15.0, 15.01)), []);
        assert_eq!(severities(at(7, 110.05, 15.0, 15.01)), [Severity::Warning]);
        assert_eq!(severities(at(7, 109.95, 15.0, 15.01)), [Severity::Warning]);
        assert_eq!(severities(at(7, 110.2, 15.0, 15.01)), [Severity::Fault]);
        assert_eq!(severities(at(7, 109.8, 15.0, 15.01)), [Severity::Fault]);
        // The same on a slow way is nothing that is known.
        assert_eq!(severities(at(7, 110.2, 15.0, 15.5)), []);
    }

    #[test]
    fn a_task_that_leads_anew_or_is_silent_is_said() {
        assert_eq!(severities(at(8, 1.0, 15.0, 15.01)), [Severity::Warning]);
        assert_eq!(severities(None), [Severity::Warning]);
    }

    #[test]
    fn looks_are_a_second_to_ten_minutes_apart() {
        assert_eq!(apart("10s"), Ok(Duration::from_secs(10)));
        for wrong in ["0s", "11m", "soon"] {
            assert!(apart(wrong).unwrap_err().contains("wanted a duration from 1s to 10m"), "{wrong}");
        }
    }
}
