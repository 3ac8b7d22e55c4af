//! Templates: which one covers a resource, and which are refused.

use std::time::Duration;

use lessor_proto::Amount;

use super::*;

fn template(glob: &str) -> Template {
    Template::new(Glob::new(glob).unwrap(), Amount::from_units(100))
}

#[track_caller]
fn check(globs: &[&str], cases: &[(&str, Option<&str>)]) {
    let repository = Repository::new(globs.iter().map(|glob| template(glob)).collect()).unwrap();
    for &(name, wanted) in cases {
        let found = repository.find(&ResourceId::new(name, 256).unwrap());
        assert_eq!(found.as_ref().map(|template| template.glob.as_str()), wanted, "{name}");
    }
}

#[track_caller]
fn check_faults(templates: Vec<Template>, faults: &str) {
    assert_eq!(Repository::new(templates).unwrap_err().to_string(), faults);
}

#[test]
fn first_matching_glob_is_followed() {
    check(
        &["db-*", "db-orders-*", "*"],
        &[("db-orders-1", Some("db-*")), ("db/orders", Some("*")), ("x", Some("*"))],
    );
}

#[test]
fn exact_name_comes_before_every_glob() {
    check(&["*", "db", "d?"], &[("db", Some("db")), ("dc", Some("*"))]);
    // Doorman compares the glob as it is written, too.
    check(&["d*", "d[b]"], &[("d[b]", Some("d[b]")), ("db", Some("d*")), ("d*", Some("d*"))]);
}

#[test]
fn a_floor_follows_a_template_derived_from_that_of_its_resource() {
    let reserving = |glob| Template {
        safe_fraction: Fraction::HALF,
        learning: Duration::from_secs(60),
        ..template(glob)
    };
    let own = Template { lease_length: Duration::from_secs(90), ..template("x|safe") };
    let repository = Repository::new(vec![reserving("db-*"), reserving("x"), own, template("*")]).unwrap();
    let find = |name| repository.find(&ResourceId::new(name, 256).unwrap()).unwrap();
    let (base, floor) = (find("db-1"), find("db-1|safe"));
    assert_eq!((base.shared(), base.reserved()), (Amount::from_units(50), Amount::from_units(50)));
    assert_eq!((floor.capacity, floor.shared()), (Amount::from_units(50), Amount::from_units(50)));
    let hour = Duration::from_secs(3_600);
    assert_eq!((floor.lease_length, floor.learning, floor.legacy), (hour, hour, Legacy::Deny));
    assert!(floor.in_steps && !floor.reserves());
    // A template of its very name comes first; what reserves nothing has no floor, and the name is like others.
    assert_eq!(find("x|safe").lease_length, Duration::from_secs(90));
    assert_eq!(find("other|safe").glob.as_str(), "*");
    assert_eq!(find("db-1|safe|safe").glob.as_str(), "db-*");
    assert!(!find("db-1|safe|safe").in_steps);
}

#[test]
fn a_companion_follows_a_template_that_nobody_keeps_to() {
    let trying = |glob| Template {
        beside: Some(Amount::from_units(40)),
        safe_fraction: Fraction::HALF,
        ..template(glob)
    };
    let own = Template { lease_length: Duration::from_secs(90), ..template("x|beside") };
    let templates = vec![trying("db-?"), trying("x"), own, template("y"), template("*beside*")];
    let repository = Repository::new(templates).unwrap();
    let id = |name| ResourceId::new(name, 256).unwrap();
    let find = |name| repository.find(&id(name));
    let companion = find("db-1|beside").unwrap();
    assert_eq!((companion.capacity, companion.shared()), (Amount::from_units(40), Amount::from_units(40)));
    assert_eq!((companion.enforce, companion.small_leases), (Fraction::NONE, Some(SmallLeases::Save)));
    assert!(companion.beside.is_none() && repository.is_companion(&id("db-1|beside")));
    // A template of its very name comes first; and where none is tried no glob covers the name.
    assert_eq!(find("x|beside").unwrap().lease_length, Duration::from_secs(90));
    assert!(find("y|beside").is_none());
    for name in ["db-1|beside|safe", "db-1|beside|beside", "other|beside"] {
        assert_eq!(find(name).unwrap().glob.as_str(), "*beside*", "{name}");
    }
    for name in ["x|beside", "y|beside", "other|beside"] {
        assert!(!repository.is_companion(&id(name)), "{name}");
    }
    let why = repository.why_unknown(&id("y|beside"));
    assert_eq!(why.as_deref(), Some("no second limit is tried beside \"y\""));
}

#[test]
fn unmatched_name_is_unknown() {
    check(&["db-*"], &[("db", None), ("db-1/x", None)]);
    check(&[], &[("db", None)]);
}

#[test]
fn glob_behind_the_catch_all_is_shadowed_but_a_name_is_not() {
    let globs = ["db-*", "*", "disk-?", "disk"];
    let repository = Repository::new(globs.map(template).to_vec()).unwrap();
    let shadowed: Vec<_> = repository.shadowed().map(|template| template.glob.as_str()).collect();
    assert_eq!(shadowed, ["disk-?"]);
    assert_eq!(Repository::new(vec![template("*")]).unwrap().shadowed().count(), 0);
}

#[test]
fn every_fault_is_told_at_once() {
    let seconds = Duration::from_secs;
    check_faults(
        vec![
            Template { lease_length: seconds(5), refresh_interval: seconds(8), ..template("disk*") },
            template("db"),
            Template { kind: Kind::Gauge, capacity: Amount::from_f64(2.5), ..template("db") },
            Template {
                kind: Kind::Gauge,
                safe_capacity: SafeCapacity::Fixed(Amount::from_f64(0.5)),
                refresh_interval: Duration::ZERO,
                learning: seconds(40_000_000),
                ..template("pool")
            },
        ],
        "template \"disk*\": lease_length 5 is shorter than refresh_interval 8\n\
         template \"db\": identifier_glob is that of template 2 already\n\
         template \"db\": capacity 2.5 of a gauge is not whole; wanted whole units, or kind: rate\n\
         template \"pool\": refresh_interval 0 is too short; wanted whole seconds from 1 to 31536000 (a year)\n\
         template \"pool\": learning_mode_duration 40000000 is too large; wanted whole seconds from 0 (no learning) to \
         31536000 (a year)\n\
         template \"pool\": safe_capacity 0.5 of a gauge is not whole; wanted whole units, or kind: rate",
    );
}

#[test]
fn lease_may_be_as_long_as_the_refresh_interval() {
    let seconds = Duration::from_secs;
    let tight = Template { lease_length: seconds(8), refresh_interval: seconds(8), ..template("disk") };
    assert!(Repository::new(vec![tight]).is_ok());
}

#[test]
fn numbers_are_taken_within_bounds() {
    assert_eq!(Template::check_capacity(0.5), Ok(Amount::from_micros(500_000)));
    assert_eq!(Template::check_capacity(1.8e13), Ok(Amount::from_units(18_000_000_000_000)));
    assert_eq!(SafeCapacity::from_units(-1.0), Ok(SafeCapacity::Unlimited));
    assert_eq!(SafeCapacity::from_units(0.0), Ok(SafeCapacity::Fixed(Amount::ZERO)));
    for (problem, told) in [
        (Template::check_capacity(-3.0).unwrap_err(), "capacity -3 is negative; wanted "),
        (Template::check_capacity(f64::NAN).unwrap_err(), "capacity NaN is not finite; wanted "),
        (Template::check_capacity(2e13).unwrap_err(), "capacity 20000000000000 is too large; wanted "),
        (SafeCapacity::from_units(-2.0).unwrap_err(), "safe_capacity -2 is negative; wanted "),
        (
            Template::check_seconds(Field::LeaseLength, 1.5).unwrap_err(),
            "lease_length 1.5 is not whole; wanted ",
        ),
        (
            Template::check_seconds(Field::LeaseLength, f64::INFINITY).unwrap_err(),
            "lease_length inf is not finite",
        ),
    ] {
        assert!(problem.to_string().starts_with(told), "{problem}");
    }
}

#[test]
fn a_name_says_how_many_workers_there_are() {
    let pool = Template { kind: Kind::Gauge, workers_in_name: true, ..template("pool|*") };
    let repository = Repository::new(vec![pool, template("other|*")]).unwrap();
    let id = |name| ResourceId::new(name, 256).unwrap();
    let capacity = |name| repository.find(&id(name)).map(|template| template.capacity);
    assert_eq!(capacity("pool|w:2|key"), Some(Amount::from_units(2)));
    assert_eq!(capacity("pool|w:100|key"), Some(Amount::from_units(100)));
    assert_eq!(
        (capacity("pool|w:101|key"), capacity("pool|key"), capacity("pool|w:0|key")),
        (None, None, None)
    );
    assert_eq!(capacity("other|w:2|key"), Some(Amount::from_units(100)));
    let why = |name| repository.why_unknown(&id(name));
    assert_eq!(why("pool|w:101|key").as_deref(), Some("the name says 101 workers; wanted at most 100"));
    let none = "the name says no number of workers; wanted POOL|w:N|KEY with N from 1 to 100";
    assert_eq!((why("pool|key").as_deref(), why("pool|w:2|key")), (Some(none), None));
    let rate = Template { workers_in_name: true, ..template("a") };
    let window = Some(Duration::from_secs(1));
    let windowed = Template {
        kind: Kind::Gauge,
        workers_in_name: true,
        window,
        learning: Duration::from_secs(60),
        ..template("b")
    };
    check_faults(
        vec![rate, windowed],
        "template \"a\": workers is about whole units, and this is a rate; wanted kind: gauge\n\
         template \"b\": workers is about units that are given back; wanted no window",
    );
}
