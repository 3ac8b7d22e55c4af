//! A kind that is changed while nobody leads, or by whoever leads next: what is out of the other one counts until it ends.

use std::time::Duration;

use lessor_proto::message::{Ask, Has, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::election::state::{Clock, State};
use lessor_server::node::{Node, NodeConfig};
use lessor_server::record::RecordChange;
use lessor_server::repository::{Kind, Template};

use super::holders::{client, repository, resource, template, wants};

/// Leaders of one node in turn, who find what those before them have written.
struct Line {
    record: String,
    epoch: u64,
    node: Option<Node>,
}

/// A holder that asks for a rate, or for units.
struct Holder {
    name: &'static str,
    integer: bool,
    reports: u64,
    has: Option<Has>,
}

const NO_RATE: &str = "resource[0].integer: opens \"db\" as a rate; wanted a gauge, as template \"*\" says";

// === impl Line ===

impl Line {
    fn new() -> Line {
        let mut state = State::begin("root", 7, 1);
        state.apply(&RecordChange { terms: Some(Default::default()), ..RecordChange::default() });
        Line { record: state.encode(&clock()), epoch: 1, node: None }
    }

    /// Another leader begins, by whose template it is that kind.
    fn succeed(&mut self, kind: Kind) {
        self.epoch += 1;
        let (_, mut record) =
            State::left(self.record.as_bytes(), "root", &clock()).expect("it was written by us");
        record.authority = Duration::ZERO;
        record.stops.clear();
        let mut config = NodeConfig::new("root", Epoch(self.epoch));
        (config.record, config.marks, config.trust_claims) = (Some(record), true, true);
        self.node = Some(Node::new(Time::ZERO, config, repository(of_kind(kind))));
    }

    fn node(&mut self) -> &mut Node {
        self.node.as_mut().expect("somebody leads")
    }

    /// Writes what the leader wants written.
    fn write(&mut self, now: Time) {
        let later = now + Duration::from_millis(20);
        while let Some(write) = self.node().next_marks(later) {
            let ticket = write.ticket;
            let (mut state, _) = State::decode(&self.record, "root").expect("it was written by us");
            state.apply(&write.change);
            self.record = state.encode(&clock());
            self.node().on_marks(later, ticket, true);
        }
    }

    /// Asks until what is granted has been written.
    fn ask(&mut self, seconds: u64, holder: &mut Holder, amount: f64) -> Result<Amount, String> {
        holder.ask(self.node(), at(seconds), amount)?;
        self.write(at(seconds));
        let granted = holder.ask(self.node(), at(seconds), amount);
        self.write(at(seconds));
        granted
    }
}

fn clock() -> Clock {
    Clock { boot: Some("here".to_owned()), at: Time::ZERO }
}

// === impl Holder ===

impl Holder {
    fn new(name: &'static str, integer: bool) -> Holder {
        Holder { name, integer, reports: 0, has: None }
    }

    fn ask(&mut self, node: &mut Node, now: Time, amount: f64) -> Result<Amount, String> {
        self.reports += 1;
        let ask = Ask {
            kind: HolderKind::Client,
            holder: client(self.name),
            incarnation: Some(Incarnation(1)),
            report_id: Some(ReportId(self.reports)),
            target_epoch: None,
            line: None,
            reports: vec![Report {
                resource: resource(),
                bands: wants(amount).bands,
                has: self.has.clone(),
                held: None,
                domains: None,
                integer: Some(self.integer),
                peak: None,
                unenforced: None,
            }],
        };
        let answer = node.ask(now, &ask).map_err(|refusal| refusal.to_string())?;
        if let Some(grant) = answer.grants.into_iter().next() {
            let (capacity, order) = (grant.capacity, grant.order);
            self.has = Some(Has { capacity, order, token: Vec::new(), lasts: None, expiry: 0 });
        }
        Ok(self.has.as_ref().map_or(Amount::ZERO, |has| has.capacity))
    }
}

fn at(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

fn units(units: u64) -> Result<Amount, String> {
    Ok(Amount::from_units(units))
}

fn of_kind(kind: Kind) -> Template {
    Template { kind, ..template(10.0) }
}

/// A leader by whose template it is `before` has granted 6 of 10, and the next one takes it for `after`.
fn changed(before: Kind, after: Kind) -> (Line, Holder, Holder) {
    let mut line = Line::new();
    line.succeed(before);
    let mut old = Holder::new("old", before == Kind::Gauge);
    let new = Holder::new("new", after == Kind::Gauge);
    assert_eq!(line.ask(1, &mut old, 6.0), units(6));
    line.succeed(after);
    (line, old, new)
}

#[test]
fn what_was_never_out_of_one_kind_is_not_there_of_the_other() {
    for (before, after) in [(Kind::Rate, Kind::Gauge), (Kind::Gauge, Kind::Rate)] {
        let (mut line, _, mut new) = changed(before, after);
        assert_eq!(
            line.ask(1, &mut new, 5.0),
            units(0),
            "6 are out, and nobody knows how many of the others they are"
        );
        assert_eq!(line.ask(59, &mut new, 5.0), units(0));
        // Nobody has given them back: their lease has ended.
        assert_eq!(line.ask(64, &mut new, 5.0), units(5));
    }
}

#[test]
fn whoever_shows_what_it_has_of_the_other_kind_may_give_it_back() {
    let (mut line, mut old, mut new) = changed(Kind::Rate, Kind::Gauge);
    assert_eq!(line.ask(1, &mut new, 5.0), units(0));
    // It is heard, told to use nothing, and says that it does not.
    assert_eq!(line.ask(2, &mut old, 6.0), units(0));
    let books = line.node().books(at(2), &resource()).expect("somebody holds");
    assert!(books.ghost >= Amount::from_units(0) && books.total < 6_000_000, "{books:?}");
    // The mark was a little more than that, which nobody shows.
    assert_eq!(line.ask(64, &mut new, 5.0), units(5));
    assert_eq!(line.ask(65, &mut old, 6.0), Err(NO_RATE.to_owned()));
}

#[test]
fn who_has_nothing_of_the_other_kind_is_told_both() {
    let (mut line, _, _) = changed(Kind::Rate, Kind::Gauge);
    let mut stranger = Holder::new("stranger", false);
    assert_eq!(line.ask(1, &mut stranger, 1.0), Err(NO_RATE.to_owned()));
}

#[test]
fn a_kind_that_is_as_before_again_goes_on_as_if_nothing_had_been() {
    let (mut line, mut old, mut new) = changed(Kind::Rate, Kind::Gauge);
    assert_eq!(line.ask(1, &mut new, 5.0), units(0));
    line.succeed(Kind::Rate);
    assert_eq!(line.ask(1, &mut old, 6.0), units(6), "it claims what it has");
    let mut other = Holder::new("other", false);
    assert_eq!(line.ask(1, &mut other, 3.0), units(3), "what was never out is there at once");
}

#[test]
fn the_first_of_a_kind_is_granted_when_the_record_says_that_kind() {
    let mut line = Line::new();
    line.succeed(Kind::Rate);
    let mut rate = Holder::new("rate", false);
    assert_eq!(line.ask(1, &mut rate, 8.0), units(8));
    line.node().reload(at(2), repository(of_kind(Kind::Gauge)));
    assert_eq!(line.ask(2, &mut rate, 8.0), units(0));
    let mut gauge = Holder::new("gauge", true);
    // Nothing is out any more, and the mark of the rate is still there.
    assert_eq!(gauge.ask(line.node(), at(3), 5.0), units(0), "the record would say that these are a rate");
    assert_eq!(line.ask(3, &mut gauge, 5.0), units(5));
    // A leader that has not heard of the change.
    line.succeed(Kind::Rate);
    let mut other = Holder::new("other", false);
    assert_eq!(line.ask(3, &mut other, 5.0), units(0), "five units are in use");
    assert_eq!(line.ask(66, &mut other, 5.0), units(5));
}

#[test]
fn a_record_that_does_not_say_of_which_kind_its_marks_are_is_taken_for_the_same() {
    let (mut line, mut old, _) = changed(Kind::Gauge, Kind::Gauge);
    let (mut state, _) = State::decode(&line.record, "root").expect("it was written by us");
    let marks = [(resource(), Amount::from_units(6))].into();
    state.apply(&RecordChange { marks, ..RecordChange::default() });
    line.record = state.encode(&clock());
    line.succeed(Kind::Gauge);
    let mut new = Holder::new("new", true);
    assert_eq!(
        line.ask(1, &mut new, 4.0),
        units(4),
        "as with a record that was written before there were kinds"
    );
    assert_eq!(line.ask(1, &mut old, 6.0), units(6));
}
