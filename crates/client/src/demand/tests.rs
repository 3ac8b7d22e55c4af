//! Measured demand: what is said of which traffic.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Remembers ten windows of a second.
fn options() -> DemandOptions {
    DemandOptions { window: SECOND, windows: 10, headroom_percent: 10, ..DemandOptions::default() }
}

/// A program whose attempts at a rate are counted, looked at once a second.
struct Program {
    estimator: Estimator,
    now: Time,
    attempted: u64,
}

impl Program {
    fn new(options: DemandOptions) -> Program {
        let mut estimator = Estimator::new(options);
        estimator.observe_rate(Time::ZERO, limiter::RateUsage::default());
        Program { estimator, now: Time::ZERO, attempted: 0 }
    }

    /// Attempts so many units in the next second.
    fn second(&mut self, units: u64) -> Amount {
        self.now += SECOND;
        self.attempted += units;
        let usage = limiter::RateUsage { attempted: self.attempted, granted: self.attempted / 3, waiting: 0 };
        self.estimator.observe_rate(self.now, usage)
    }
}

fn units(units: u64) -> Amount {
    Amount::from_units(units)
}

fn gauge_usage(in_use: u64, waiting: u64, peak: u64) -> gauge::GaugeUsage {
    gauge::GaugeUsage { in_use, waiting, peak }
}

#[test]
fn an_idle_program_asks_for_the_floor() {
    let mut program = Program::new(DemandOptions { floor: units(5), ..options() });
    assert_eq!(program.estimator.wants(), units(5));
    assert!((0..30).all(|_| program.second(0) == units(5)));
}

#[test]
fn a_step_up_is_stated_in_the_same_window_and_a_step_down_when_it_is_forgotten() {
    let mut program = Program::new(options());
    assert_eq!(program.second(100), units(110));
    assert_eq!(program.second(1000), units(1100));
    for _ in 0..9 {
        assert_eq!(program.second(100), units(1100));
    }
    assert_eq!(program.second(100), units(110));
}

#[test]
fn small_changes_do_not_travel() {
    let mut program = Program::new(options());
    let stated = program.second(100);
    for units in [95, 105, 110, 101, 99, 108, 92, 110, 109, 91, 93] {
        assert_eq!(program.second(units), stated);
    }
}

#[test]
fn a_rise_shows_before_its_window_ends() {
    let mut program = Program::new(options());
    program.second(100);
    let half = program.now + SECOND / 2;
    let usage = limiter::RateUsage { attempted: program.attempted + 500, granted: 0, waiting: 0 };
    assert_eq!(program.estimator.observe_rate(half, usage), units(550));
}

#[test]
fn who_waits_is_wanted_in_every_window_and_counted_once() {
    let mut estimator = Estimator::new(options());
    let mut now = Time::ZERO;
    estimator.observe_rate(now, limiter::RateUsage::default());
    // 100 tasks wait, 10 a second are served and come back at once.
    for second in 1..20 {
        now += SECOND;
        let granted = 10 * second;
        let usage = limiter::RateUsage { attempted: granted + 100, granted, waiting: 100 };
        assert_eq!(estimator.observe_rate(now, usage), units(121));
    }
}

#[test]
fn the_program_may_say_what_it_wants() {
    let mut program = Program::new(DemandOptions { most: units(500), ..options() });
    program.estimator.set(Some(units(42)));
    assert_eq!(program.second(100_000), units(42));
    program.estimator.set(Some(units(1_000)));
    assert_eq!(program.estimator.wants(), units(500));
    program.estimator.set(None);
    assert_eq!(program.second(100_000), units(500));
}

#[test]
fn a_gauge_asks_for_whole_units_of_its_peak() {
    let mut estimator = Estimator::new(options());
    let mut now = Time::ZERO;
    assert_eq!(estimator.observe_gauge(now, gauge_usage(0, 0, 0)), units(1));
    now += SECOND;
    assert_eq!(estimator.observe_gauge(now, gauge_usage(2, 1, 7)), units(8));
    for _ in 0..9 {
        now += SECOND;
        assert_eq!(estimator.observe_gauge(now, gauge_usage(3, 0, 3)), units(8));
    }
    now += SECOND;
    assert_eq!(estimator.observe_gauge(now, gauge_usage(3, 0, 3)), units(4));
}

#[test]
fn looking_at_a_gauge_often_loses_no_peak() {
    let mut estimator = Estimator::new(options());
    let tenth = SECOND / 10;
    let mut now = Time::ZERO;
    estimator.observe_gauge(now, gauge_usage(0, 0, 20));
    for _ in 0..95 {
        now += tenth;
        assert_eq!(estimator.observe_gauge(now, gauge_usage(1, 0, 1)), units(22));
    }
}

proptest! {
    #[test]
    fn constant_load_is_stated_once(load in 0u64..1_000_000, seconds in 2usize..60) {
        let mut program = Program::new(options());
        let stated = program.second(load);
        prop_assert!(stated >= units(load));
        for _ in 0..seconds {
            prop_assert_eq!(program.second(load), stated);
        }
    }

    // Looks at odd moments see a constant load a little differently, and still say the same.
    #[test]
    fn constant_load_is_stated_once_whenever_one_looks(
        load in 100u64..100_000,
        looks in prop::collection::vec(1u64..3_000, 1..100),
    ) {
        let mut estimator = Estimator::new(options());
        let mut millis = 0;
        let usage = |millis: u64| limiter::RateUsage { attempted: millis * load, granted: 0, waiting: 0 };
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        estimator.observe_rate(at(0), usage(0));
        millis += 1_000;
        let stated = estimator.observe_rate(at(millis), usage(millis));
        for look in looks {
            millis += look;
            prop_assert_eq!(estimator.observe_rate(at(millis), usage(millis)), stated);
        }
    }

    #[test]
    fn steps_are_followed_in_the_stated_time(before in 0u64..100_000, after in 0u64..100_000, quiet in 1usize..20) {
        let mut program = Program::new(options());
        for _ in 0..quiet {
            program.second(before);
        }
        let stated = program.second(after);
        prop_assert!(stated >= units(after));
        for _ in 0..11 {
            program.second(after);
        }
        let greatest = above(units(after), 20, Amount::from_micros(1)).max(units(1));
        prop_assert!(program.estimator.wants() >= units(after) && program.estimator.wants() <= greatest);
    }

    #[test]
    fn never_below_the_floor_nor_above_the_most(
        loads in prop::collection::vec(0u64..u64::MAX / 100, 1..40),
        floor in 0u64..100,
        most in 100u64..10_000,
    ) {
        let mut program = Program::new(DemandOptions { floor: units(floor), most: units(most), ..options() });
        for load in loads {
            let wants = program.second(load);
            prop_assert!(wants >= units(floor) && wants <= units(most));
        }
    }
}

#[test]
fn one_thing_after_the_other_is_not_held_up_for_long() {
    // A program that could do 500 a second, one by one, and whose lease is what it asks for.
    let mut demand = Estimator::new(DemandOptions::default());
    let mut usage = limiter::RateUsage::default();
    let at = |second: u64| Time::ZERO + Duration::from_secs(second);
    demand.observe_rate(at(0), usage);
    for second in 1..=12 {
        let leased = demand.wants().floor_units();
        usage.granted += leased.min(500);
        usage.waiting = u64::from(leased < 500);
        usage.attempted = usage.granted + usage.waiting;
        demand.observe_rate(at(second), usage);
    }
    assert!(demand.wants() >= Amount::from_units(500), "{} after 12 s", demand.wants());
    assert!(demand.wants() <= Amount::from_units(1200), "{} does not run away", demand.wants());
}

#[test]
fn what_is_certain_is_looked_for_soon_after_a_knock_also_when_a_look_came_in_between() {
    let at = |millis: u64| Time::ZERO + Duration::from_millis(millis);
    let mut demand = Estimator::new(DemandOptions::default()).with_claims(None);
    let mut attempted = 0;
    let mut attempts = |millis: std::ops::Range<u64>| {
        attempted += millis.end - millis.start;
        let made: Vec<Attempts> = millis.map(|millis| Attempts { at: at(millis), units: 1 }).collect();
        (limiter::RateUsage { attempted, granted: 0, waiting: 0 }, made)
    };
    assert_eq!(demand.look_again(at(0)), None);
    let (_, made) = attempts(1_000..1_003);
    demand.knock(at(1_003), &made, units(1));
    let (usage, made) = attempts(1_003..1_010);
    assert!(demand.look(at(1_010), usage, &made) < units(100));
    let again = demand.look_again(at(1_010)).expect("there will be more to say");
    assert_eq!(again, Duration::from_millis(93));
    let (usage, made) = attempts(1_010..1_110);
    assert!(demand.look(at(1_110), usage, &made) > units(700));
}
