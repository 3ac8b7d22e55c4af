//! Everything that two clients and a grantor can do within small bounds, with the real machines.
//!
//! A breadth-first search over real sessions and real nodes: messages are lost, late, repeated and out of order, streams
//! break, clocks run as wrong as they may, clients die and come twice, the capacity is cut, leaders are succeeded. After
//! every step all rules are looked at. What is not explored: processes that pause, refusals and redirects, more than one
//! resource, priorities, gauges, and holders that draw no incarnation.
//!
//! `LESSOR_MODEL=large` explores the larger bounds: minutes, and only with optimisation.

mod model {
    pub(crate) mod arrivals;
    pub(crate) mod bounds;
    pub(crate) mod checker;
    pub(crate) mod configurations;
    #[cfg(feature = "mutations")]
    pub(crate) mod mutations;
    pub(crate) mod parts;
    pub(crate) mod rules;
    pub(crate) mod world;
}

use model::checker::explore;
use model::configurations::{Configuration, Size, late_release, late_report, streams, trees, unary};

#[test]
fn requests_and_answers_break_no_rule() {
    check(&unary(size()));
}

#[test]
fn streams_break_no_rule() {
    check(&streams(size()));
}

#[test]
fn a_node_between_breaks_no_rule() {
    check(&trees(size()));
}

/// Two mistakes that this model has found: what came late from before a client left counted for what it had since it was
/// back.
#[test]
fn what_comes_late_from_before_a_client_left_changes_nothing() {
    for bounds in [late_release(), late_report()] {
        let found = explore(&bounds, most(size()));
        println!("{}", found.line(bounds.name));
        if let Some(story) = &found.broken {
            panic!("{}: {story}", bounds.name);
        }
    }
}

#[cfg(feature = "mutations")]
#[test]
fn rules_that_are_taken_out_are_missed() {
    for taken in model::mutations::all() {
        let (any, promise) = taken.explore();
        println!(
            "{:32} {:36} {:>5} {:>5}",
            format!("{:?}", taken.mutation),
            taken.bounds.name,
            any.steps(),
            promise.steps()
        );
        assert_eq!(any.broken.is_some(), taken.missed, "{:?}: {any:?}", taken.mutation);
    }
}

fn check(configurations: &[Configuration]) {
    for Configuration { bounds, reached } in configurations {
        let found = explore(bounds, most(size()));
        println!("{}", found.line(bounds.name));
        if let Some(story) = &found.broken {
            panic!("{}: {story}", bounds.name);
        }
        assert!(found.exhausted, "{}: the bounds are too wide", bounds.name);
        for name in *reached {
            assert!(found.reached().contains(name), "{}: never happens: {name}", bounds.name);
        }
    }
}

fn size() -> Size {
    match std::env::var("LESSOR_MODEL").as_deref() {
        Ok("large") => Size::Large,
        _ => Size::Small,
    }
}

/// Where exploring stops: it was meant to be over long before.
fn most(size: Size) -> usize {
    match size {
        Size::Small => 400_000,
        Size::Large => 20_000_000,
    }
}
