//! Tests of state files that grow.

use lessor_proto::{Amount, ResourceId, Time};

use super::*;

/// Marks of a record to which changes are added.
const LONG: usize = 1_400;

/// A file, as it is written for one change after the other.
struct Grown {
    state: State,
    growth: Growth,
    text: String,
    /// The bytes that were written in all, and the writes of the whole.
    written: usize,
    wholes: usize,
    clock: Clock,
}

// === impl Grown ===

impl Grown {
    /// One of so many marks.
    fn with(marks: usize) -> Grown {
        let mut grown = Grown {
            state: State::begin("root", 99, 1_790_000_000_000),
            growth: Growth::default(),
            text: String::new(),
            written: 0,
            wholes: 0,
            clock: Clock { boot: Some("b1 4026531834".to_owned()), at: Time::from_nanos(1) },
        };
        let marks = (0..marks).map(|number| (name(number), Amount::from_units(7))).collect();
        grown.change(&RecordChange { marks, ..RecordChange::default() });
        grown
    }

    fn change(&mut self, change: &RecordChange) {
        self.state.apply(change);
        self.clock.at = Time::from_nanos(self.clock.at.as_nanos() + 1);
        let write = self.growth.next(&self.state, Some(change), &self.clock);
        self.growth.wrote(&write, true);
        match write {
            FileWrite::Whole(text) => {
                (self.wholes, self.written) = (self.wholes + 1, self.written + text.len());
                self.text = text;
            }
            FileWrite::Added(text) => {
                self.written += text.len();
                self.text.push_str(&text);
            }
        }
    }

    fn check(&self) {
        let (read, clock) = State::decode(&self.text, "root").unwrap();
        assert_eq!((read.read(), clock), (self.state.read(), self.clock.clone()));
        assert_eq!(read.header.write, self.state.header.write);
    }
}

fn name(number: usize) -> ResourceId {
    ResourceId::new(format!("rls/client|0:c{number}"), 256).unwrap()
}

fn raise(number: usize) -> RecordChange {
    RecordChange { marks: [(name(number), Amount::from_units(9))].into(), ..RecordChange::default() }
}

#[test]
fn what_is_added_is_read_and_what_is_gone_is_not() {
    let mut grown = Grown::with(LONG);
    grown.check();
    for number in 0..50 {
        grown.change(&raise(number * 17));
        grown.change(&RecordChange { deletes: [name(number * 5)].into(), ..RecordChange::default() });
    }
    grown.check();
    assert_eq!(grown.wholes, 1);
    grown.state.close();
    let FileWrite::Whole(last) = grown.growth.next(&grown.state, None, &grown.clock) else {
        panic!("the last is whole")
    };
    assert!(last.starts_with("lessor state 1\n"), "an earlier version reads what was ended in order");
}

#[test]
fn a_write_costs_what_it_changes_and_a_short_record_is_written_as_a_whole() {
    let mut grown = Grown::with(0);
    for number in 0..5_000 {
        grown.change(&raise(number));
    }
    grown.check();
    // The whole with each would be 700 MB.
    assert!(grown.written < 50 << 20, "{} bytes were written", grown.written);
    let short = Grown::with(10);
    assert!(short.text.starts_with("lessor state 1\n"), "{}", short.text);
}

#[test]
fn what_was_not_written_to_its_end_counts_for_nothing() {
    let mut grown = Grown::with(LONG);
    grown.change(&raise(3));
    let before = (grown.text.len(), grown.state.read());
    grown.change(&raise(5));
    for end in (before.0..grown.text.len()).step_by(5) {
        let (read, _) = State::decode(&grown.text[..end], "root").unwrap();
        assert_eq!(read.read(), before.1, "{end} of {} bytes", grown.text.len());
    }
    let whole = grown.text.find("more ").unwrap();
    for end in (0..whole).step_by(9_973).chain([whole - 1]) {
        assert!(State::decode(&grown.text[..end], "root").is_err(), "{end} bytes");
    }
}

#[test]
fn a_file_that_was_touched_is_damaged_wherever_that_was() {
    let mut grown = Grown::with(LONG);
    let whole = grown.text.len();
    grown.change(&raise(3));
    grown.change(&raise(5));
    // From the seal of the first part on, bits of all kinds of lines.
    for at in (0..whole).step_by(9_973).chain((whole - 80..grown.text.len()).step_by(7)) {
        let mut touched = grown.text.clone().into_bytes();
        touched[at] ^= 1;
        let touched = String::from_utf8(touched).unwrap();
        assert!(State::decode(&touched, "root").is_err(), "byte {at}: {}", &touched[at..]);
    }
    let first = grown.text.find("more ").unwrap();
    let second = grown.text.rfind("more ").unwrap();
    let without = format!("{}{}", &grown.text[..first], &grown.text[second..]);
    assert!(State::decode(&without, "root").is_err(), "the first addition is not there");
}

#[test]
fn what_may_stand_there_in_part_is_followed_by_the_whole() {
    let mut grown = Grown::with(LONG);
    grown.state.apply(&raise(3));
    let write = grown.growth.next(&grown.state, Some(&raise(3)), &grown.clock);
    assert!(matches!(write, FileWrite::Added(_)));
    grown.growth.wrote(&write, false);
    grown.change(&raise(4));
    assert_eq!(grown.wholes, 2);
    grown.check();
    // A whole that was not written is followed by another.
    grown.growth = Growth::default();
    let write = grown.growth.next(&grown.state, Some(&raise(4)), &grown.clock);
    grown.growth.wrote(&write, false);
    grown.change(&raise(5));
    assert_eq!(grown.wholes, 3);
}
