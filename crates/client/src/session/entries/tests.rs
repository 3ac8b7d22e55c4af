//! Tests of entries: an index finds what a look through all of them does.

use std::time::Duration;

use lessor_proto::ReportId;
use lessor_proto::message::Grant;
use proptest::prelude::*;

use super::*;
use crate::holding::{HoldingConfig, Kind};
use crate::session::tests::grant;

/// A change of the entry of a name.
#[derive(Clone, Debug)]
enum EntryStep {
    Add(usize, bool),
    Remove(usize),
    Due(usize, u64),
    Alone(usize, bool),
    Exchange(usize, Option<u64>),
    Said(usize, u64),
    Pace(usize, u64),
    Want(usize, u16),
    /// It is granted something until then, perhaps with a floor.
    Grant(usize, u64, bool),
    Floor(usize, bool),
    Leave(usize),
    /// Time goes on, and the changes are taken.
    Take(u64),
}

/// Names that are in another order than they come in, of which some are floors of others.
const NAMES: [&str; 8] = ["m", "b", "z", "a", "m/floor", "q", "c", "b/floor"];

fn name(index: usize) -> ResourceId {
    let own = ResourceId::new(NAMES[index].trim_end_matches("/floor"), 256).unwrap();
    if NAMES[index].ends_with("/floor") { own.floor() } else { own }
}

fn step() -> impl Strategy<Value = EntryStep> {
    let index = || 0..NAMES.len();
    let number = || 0u64..6;
    prop_oneof![
        4 => (index(), any::<bool>()).prop_map(|(index, is_gauge)| EntryStep::Add(index, is_gauge)),
        1 => index().prop_map(EntryStep::Remove),
        3 => (index(), prop_oneof![4 => number(), 1 => Just(u64::MAX)]).prop_map(|(i, due)| EntryStep::Due(i, due)),
        1 => (index(), any::<bool>()).prop_map(|(index, is_alone)| EntryStep::Alone(index, is_alone)),
        2 => (index(), prop::option::of(number())).prop_map(|(index, id)| EntryStep::Exchange(index, id)),
        2 => (index(), number()).prop_map(|(index, id)| EntryStep::Said(index, id)),
        1 => (index(), number()).prop_map(|(index, pace)| EntryStep::Pace(index, pace)),
        2 => (index(), 0u16..4).prop_map(|(index, wants)| EntryStep::Want(index, wants)),
        2 => (index(), 1u64..40, any::<bool>()).prop_map(|(i, end, floored)| EntryStep::Grant(i, end, floored)),
        1 => (index(), any::<bool>()).prop_map(|(index, is_floor)| EntryStep::Floor(index, is_floor)),
        1 => index().prop_map(EntryStep::Leave),
        2 => (0u64..3).prop_map(EntryStep::Take),
    ]
}

fn go(entries: &mut Entries, now: Time, step: &EntryStep) {
    let mut edit = |index: usize, change: &dyn Fn(&mut Entry)| {
        if let Some(place) = entries.find(&name(index)) {
            change(&mut entries.edit(place));
        }
    };
    match *step {
        EntryStep::Add(index, is_gauge) => {
            if entries.find(&name(index)).is_none() {
                let kind = if is_gauge { Kind::Gauge } else { Kind::Rate };
                entries.insert(Entry::new(now, name(index), HoldingConfig::new(kind, 1.0, 0)));
            }
        }
        EntryStep::Remove(index) => {
            if let Some(place) = entries.find(&name(index)) {
                entries.remove(place);
            }
        }
        EntryStep::Due(index, due) => edit(index, &|entry| entry.due = Time::from_nanos(due)),
        EntryStep::Alone(index, is_alone) => edit(index, &|entry| entry.setbacks.alone = is_alone),
        EntryStep::Exchange(index, id) => edit(index, &|entry| entry.exchange = id.map(ReportId)),
        EntryStep::Said(index, id) => edit(index, &|entry| {
            entry.report(now, None, &config());
            entry.told_up(ReportId(id));
        }),
        EntryStep::Pace(index, pace) => {
            edit(index, &|entry| entry.streamed.pace = Some(Duration::from_nanos(pace)));
        }
        EntryStep::Want(index, wants) => edit(index, &|entry| entry.config().set_wants(wants.into())),
        EntryStep::Grant(index, end, safe_leased) => edit(index, &|entry| {
            let grant = Grant { safe_leased, ..grant(&name(index), 1, 1) };
            // One that has ended is not taken up.
            let _ = entry.holding.adopt(now, Grant { order: None, ..grant }, Time::from_nanos(end));
        }),
        EntryStep::Floor(index, is_floor) => edit(index, &|entry| entry.is_floor = is_floor),
        EntryStep::Leave(index) => edit(index, &|entry| _ = entry.leave(now)),
        EntryStep::Take(_) => {}
    }
}

fn config() -> crate::session::SessionConfig {
    let holder = lessor_proto::ClientId::new("web-1", 256).unwrap();
    crate::session::SessionConfig::new(holder, lessor_proto::Incarnation(1), vec!["a:1".into()])
}

fn names(entries: &Entries, places: &[usize]) -> Vec<String> {
    places.iter().map(|&place| entries[place].resource.to_string()).collect()
}

/// Both find the same by every mark.
fn check(indexed: &Entries, few: &Entries) {
    for index in 0..NAMES.len() {
        assert_eq!(indexed.find(&name(index)).is_some(), few.find(&name(index)).is_some());
    }
    for mark in Mark::ALL {
        for number in 0..7 {
            assert_eq!(indexed.least(mark, number), few.least(mark, number), "{mark:?} from {number}");
            let of = |entries: &Entries| names(entries, &entries.places(mark, number..=number + 1));
            assert_eq!(of(indexed), of(few), "{mark:?} at {number}");
            let first = |entries: &Entries| {
                names(entries, &entries.first_places(&[(mark, number), (Mark::Changed, 0)], 3))
            };
            assert_eq!(first(indexed), first(few), "{mark:?} up to {number}");
        }
    }
    assert_eq!(names(indexed, &indexed.in_order()), names(few, &few.in_order()));
    assert_eq!(indexed.next_end(), few.next_end());
}

proptest! {
    #[test]
    fn an_index_finds_what_a_look_at_all_of_them_does(steps in prop::collection::vec(step(), 1..60)) {
        let (mut indexed, mut few, mut now) = (Entries::default(), Entries::default(), Time::ZERO);
        for step in &steps {
            indexed.index.get_or_insert_with(|| Box::new(EntryIndex::new(&[])));
            go(&mut indexed, now, step);
            go(&mut few, now, step);
            prop_assert!(few.index.is_none());
            if let EntryStep::Take(passed) = *step {
                now += Duration::from_nanos(passed);
                let taken = [&mut indexed, &mut few].map(|entries| {
                    let changed = entries.take_changed(now);
                    names(entries, &entries.with_kin(changed))
                });
                prop_assert_eq!(&taken[0], &taken[1]);
            }
            if matches!(step, EntryStep::Take(_)) {
                check(&indexed, &few);
            }
        }
        check(&indexed, &few);
    }
}

#[test]
fn what_comes_to_be_many_is_indexed_and_places_are_used_again() {
    let mut entries = Entries::default();
    let name = |number: usize| ResourceId::new(format!("r{number}"), 256).unwrap();
    let add = |entries: &mut Entries, number| {
        entries.insert(Entry::new(Time::ZERO, name(number), HoldingConfig::new(Kind::Gauge, 1.0, 0)))
    };
    (0..FEW).for_each(|number| assert_eq!(add(&mut entries, number), number));
    assert!(entries.index.is_none());
    (FEW..1_000).for_each(|number| assert_eq!(add(&mut entries, number), number));
    assert!(entries.index.is_some());
    let gone = entries.find(&name(500)).unwrap();
    entries.remove(gone);
    assert_eq!((entries.find(&name(500)), entries.len()), (None, 999));
    assert_eq!(add(&mut entries, 5_000), gone);
    assert_eq!(entries.find(&name(5_000)), Some(gone));
    entries.retain(|_| false);
    assert!(entries.is_empty() && entries.index.is_none() && entries.slots.is_empty());
}

#[test]
fn of_thousands_that_are_due_those_go_first_that_have_been_for_longest() {
    let mut entries = Entries::default();
    let named = |number: u64| ResourceId::new(format!("key-{number:05}"), 256).unwrap();
    for number in 0..5_000 {
        let place =
            entries.insert(Entry::new(Time::ZERO, named(number), HoldingConfig::new(Kind::Rate, 1.0, 0)));
        // The last one by its name is due first.
        entries.edit(place).due = Time::from_nanos(10_000 - number);
    }
    let looked_at = LOOKED_AT.get();
    let places = entries.first_places(&[(Mark::Due, 20_000), (Mark::Changed, 0)], 3);
    assert!(LOOKED_AT.get() - looked_at < 50, "the others are not looked at");
    assert_eq!(names(&entries, &places), ["key-04997", "key-04998", "key-04999"]);
    let places = entries.first_places(&[(Mark::Due, 5_002)], 3);
    assert_eq!(names(&entries, &places), ["key-04998", "key-04999"]);
}
