//! Tests of figures of a run.

use super::*;

fn recorder(capacity: f64) -> Recorder {
    Recorder::new(capacity, 1, 10)
}

fn believe(recorder: &mut Recorder, time: f64, believes: f64) {
    recorder.event(time, &[100.0], &[believes], &[100.0]);
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() < 1e-9, "{found}, wanted {wanted}");
}

#[test]
fn overshoot_is_counted_at_every_event_and_lasts_until_the_next() {
    let mut recorder = recorder(100.0);
    for (time, believes) in [(1.0, 100.0), (2.0, 101.0), (2.5, 103.0), (4.0, 99.0), (9.0, 100.5)] {
        believe(&mut recorder, time, believes);
    }
    let recording = recorder.finish(None);
    assert_eq!((recording.events, recording.overshoot_events), (5, 3));
    near(recording.overshoot_seconds, 3.0);
    near(recording.overshoot_amount, 0.5 + 1.5 * 3.0 + 0.5);
    for (second, most) in [(0, 0.0), (1, 100.0), (2, 103.0), (3, 103.0), (4, 99.0), (9, 100.5)] {
        near(recording.seconds[second].believed_max, most);
    }
    near(recording.believed_max, 103.0);
}

#[test]
fn rounding_is_no_overshoot() {
    let mut recorder = recorder(0.3);
    believe(&mut recorder, 0.0, 0.1 + 0.2);
    assert_eq!(recorder.finish(None).overshoot_events, 0);
}

#[test]
fn a_second_is_worth_the_mean_over_all_of_it() {
    let mut recorder = recorder(100.0);
    believe(&mut recorder, 0.0, 100.0);
    believe(&mut recorder, 1.25, 80.0);
    believe(&mut recorder, 1.5, 60.0);
    believe(&mut recorder, 2.5, 100.0);
    let recording = recorder.finish(None);
    for (second, b, low) in [(0, 1.0, 0.0), (1, 0.25 + 0.2 + 0.3, 0.75), (2, 0.8, 0.5), (9, 1.0, 0.0)] {
        near(recording.seconds[second].b, b);
        near(recording.seconds[second].allocation_error, (1.0 - b) / 2.0);
        near(recording.seconds[second].low_seconds, low);
    }
}

#[test]
fn utilisation_is_of_what_is_wanted_where_that_is_less() {
    let recording = recorder(100.0).finish(None);
    for (wants, believes, b, error) in
        [(200.0, 50.0, 0.5, 0.05), (50.0, 50.0, 1.0, 0.1), (0.0, 0.0, 1.0, 0.0)]
    {
        let totals = Totals { wants, believes, misplaced: 5.0 };
        near(recording.b(&totals), b);
        near(recording.allocation_error(&totals), error);
    }
}

#[test]
fn calls_after_the_end_do_not_count() {
    let mut recorder = recorder(100.0);
    [0.0, 9.9, 10.0].into_iter().for_each(|time| recorder.call(time));
    assert_eq!(recorder.finish(None).calls, 2);
}
