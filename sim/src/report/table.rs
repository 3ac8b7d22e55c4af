//! A run as a table, a row a second.

use std::fmt::Write as _;

use super::{ReportRun, words};
use crate::measure::Recording;

/// The run as comma-separated values: the second; for every level of the tree, from the root down to the clients, what it
/// wants, has given and may give at the site of the sample, in units of capacity; then the mean utilisation and allocation
/// error of the second, as fractions of 1 and empty in the last row; then its faults, with semicolons between them.
#[must_use]
pub fn csv(run: &ReportRun<'_>, recording: &Recording) -> String {
    let names = run.plan.level_names();
    let mut text = String::from("t");
    for name in names {
        text.push_str(&format!(",wants_{name},has_{name},capacity_{name}"));
    }
    text.push_str(",b,allocation_error,mishap\n");
    for sample in &recording.samples {
        let at = sample.at_seconds;
        write(&mut text, at);
        for level in &sample.levels {
            for number in [level.wants, level.has, level.capacity] {
                write(&mut text, format_args!(",{number:.6}"));
            }
        }
        match recording.seconds.get(at as usize) {
            Some(second) => {
                write(&mut text, format_args!(",{:.6},{:.6},", second.b, second.allocation_error));
            }
            None => text.push_str(",,,"),
        }
        let faults = recording.faults.iter().filter(|mark| mark.at_seconds == at);
        text.push_str(&faults.map(words).collect::<Vec<_>>().join(";"));
        text.push('\n');
    }
    text
}

fn write(text: &mut String, what: impl std::fmt::Display) {
    write!(text, "{what}").expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Level, Recorder};
    use crate::scenario::Mode;
    use crate::workload::Scenario;

    #[test]
    fn every_second_is_a_row() {
        let plan = Scenario::Two.plan();
        let run = ReportRun { scenario: Scenario::Two, plan: &plan, seed: 1, mode: Mode::Doorman };
        let mut recorder = Recorder::new(500.0, 1, 1);
        for second in 0..=1 {
            recorder.fault(second, "lose", "root");
            recorder.event(second as f64, &[500.0], &[250.0], &[500.0]);
            let clients = Level { wants: 500.0, has: 250.0, capacity: 250.0 };
            recorder.sample(second, vec![Level::default(), clients]);
        }
        recorder.fault(1, "restore", "root");
        let wanted = "\
t,wants_root,has_root,capacity_root,wants_clients,has_clients,capacity_clients,b,allocation_error,mishap
0,0.000000,0.000000,0.000000,500.000000,250.000000,250.000000,0.500000,0.250000,lose root
1,0.000000,0.000000,0.000000,500.000000,250.000000,250.000000,,,lose root;restore root
";
        assert_eq!(csv(&run, &recorder.finish(None)), wanted);
    }
}
