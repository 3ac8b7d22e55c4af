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

use model::checker::{explore, explore_once};
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
fn the_small_bounds_notice_some_rules_that_are_taken_out_and_no_others() {
    use lessor_sim::mutation::{GrantorRule, HolderRule, Mutation};

    let all = model::mutations::all();
    let there = HolderRule::ALL.map(Mutation::Holder).into_iter();
    for mutation in there.chain(GrantorRule::ALL.map(Mutation::Grantor)) {
        let times = all.iter().filter(|taken| taken.mutation == mutation).count();
        assert_eq!(times, 1, "{mutation:?} is in the tables {times} times");
    }
    for taken in all {
        look_for(&taken);
    }
    if size() == Size::Large {
        for taken in model::mutations::not_noticed_anywhere() {
            look_for(&taken);
        }
    }
}

#[cfg(feature = "mutations")]
fn look_for(taken: &model::mutations::Taken) {
    let mutation = format!("{:?}", taken.mutation);
    let Some(found) = taken.explore() else {
        return println!("{mutation:32} {:36} never asked for", taken.bounds.name);
    };
    assert!(
        !taken.noticed || found.asked.has(taken.mutation),
        "{mutation} is noticed and was never asked for"
    );
    let promise = match taken.noticed && size() == Size::Large {
        true => taken.explore_promise().steps(),
        false => String::new(),
    };
    println!("{mutation:32} {:36} {:>5} {promise:>5}", taken.bounds.name, found.steps());
    match &found.broken {
        Some(story) => assert!(taken.noticed, "{mutation} is noticed: {story}"),
        None => assert!(!taken.noticed && found.exhausted, "{mutation}: {found:?}"),
    }
}

fn check(configurations: &[Configuration]) {
    for Configuration { bounds, reached } in configurations {
        let found = explore_once(bounds, most(size()));
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
