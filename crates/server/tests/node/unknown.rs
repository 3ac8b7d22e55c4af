//! A leader that does not know what is out from before: what it charges, and what its successor would read.

use std::time::Duration;

use lessor_proto::message::{Ask, Band, Has, HolderKind, Lasts, Order, Report};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{LearningTimes, NodeConfig};
use lessor_server::record::{Record, Unknown};
use lessor_server::repository::{Field, Fraction, Repository, Template};

use super::holders::{client, repository, resource, template};
use super::listeners::{Hall, Heard};

const SHORT: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(300);
/// A write is decided on so long after the first that there is to write.
const WINDOW: Duration = Duration::from_millis(5);

fn leases(lease_length: Duration) -> Template {
    Template { lease_length, learning: lease_length, ..template(100.0) }
}

fn none() -> Repository {
    Repository::new(Vec::new()).expect("an empty one")
}

fn config() -> NodeConfig {
    let record = Some(Record { unknown: Unknown::All, ..Record::default() });
    NodeConfig { record, marks: true, trust_claims: true, ..NodeConfig::new("root", Epoch(2)) }
}

/// A root that begins with an empty record, of which everything is written at once.
fn begin(repository: Repository) -> Hall {
    let mut hall = Hall::of(repository, config());
    hall.record.prompt = true;
    hall.until(Time::ZERO + WINDOW);
    hall
}

fn pass(hall: &mut Hall, time: Duration) {
    hall.until(hall.now + time);
}

fn says_unknown(hall: &Hall) -> bool {
    hall.record.header.is_some_and(|header| header.unknown > Unknown::Nothing)
}

fn charged(hall: &Hall) -> Amount {
    let books = hall.node.books(hall.now, &resource());
    books.map_or(Amount::ZERO, |books| Amount::from_micros(u64::try_from(books.total).expect("a few units")))
}

/// The report of a holder that was granted 40 by the leader of that epoch.
fn shows(epoch: u64) -> Report {
    let wish = Band { priority: 0, subclients: 1, wants: 40.0 };
    let has = Has {
        capacity: Amount::from_f64(40.0),
        order: Some(Order { epoch: Epoch(epoch), seq: 1 }),
        token: Vec::new(),
        lasts: Some(Lasts { length: LONG, remaining: LONG, counts: LONG }),
        expiry: u64::MAX,
    };
    Report {
        resource: resource(),
        bands: [wish].into_iter().collect(),
        has: Some(has),
        held: None,
        domains: None,
        integer: None,
        peak: None,
        unenforced: None,
    }
}

fn say(hall: &mut Hall, epoch: u64) {
    hall.hello("old", HolderKind::Client, Some(1));
    hall.show("old", shows(epoch));
}

/// Asks without a stream. Returns what it is granted, if anything.
fn ask(hall: &mut Hall, report_id: u64, incarnation: Option<u64>, report: Report) -> Option<Amount> {
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client("old"),
        incarnation: incarnation.map(Incarnation),
        report_id: incarnation.map(|_| report_id).map(ReportId),
        target_epoch: None,
        reports: vec![report],
        line: None,
    };
    let answer = hall.node.ask(hall.now, &ask).expect("it is asked well");
    answer.grants.first().map(|grant| grant.capacity)
}

fn held(hall: &Hall) -> Option<Amount> {
    hall.listeners["old"].lease.as_ref().map(|(grant, _)| grant.capacity)
}

#[test]
fn without_a_template_nobody_can_tell_how_long_what_is_out_may_last() {
    let mut hall = begin(none());
    assert!(says_unknown(&hall), "{:?}", hall.record);
    pass(&mut hall, LONG);
    assert!(says_unknown(&hall), "{:?}", hall.record);
    // By the templates that come all of it is over.
    hall.node.reload(hall.now, repository(leases(SHORT)));
    pass(&mut hall, WINDOW);
    assert!(hall.record.header.is_some() && !says_unknown(&hall), "{:?}", hall.record);
}

#[test]
fn templates_that_come_later_say_for_how_long_it_is_learnt() {
    let mut hall = begin(none());
    pass(&mut hall, SHORT);
    hall.node.reload(hall.now, repository(leases(LONG)));
    // From the beginning of the epoch, with room for clocks.
    pass(&mut hall, LONG - SHORT);
    assert!(says_unknown(&hall), "{:?}", hall.record);
    pass(&mut hall, SHORT);
    assert!(!says_unknown(&hall), "{:?}", hall.record);
}

/// A root that has learnt for as long as its templates said, and is to learn for longer by others.
fn learns_again() -> Hall {
    let mut hall = begin(repository(leases(SHORT)));
    pass(&mut hall, 2 * SHORT);
    assert!(hall.record.header.is_some() && !says_unknown(&hall), "{:?}", hall.record);
    hall.record.prompt = false;
    hall.node.reload(hall.now, repository(leases(LONG)));
    hall
}

#[test]
fn what_is_shown_on_a_stream_counts_when_the_record_says_that_it_was_not_known() {
    let mut hall = learns_again();
    say(&mut hall, 1);
    pass(&mut hall, WINDOW);
    assert_eq!(charged(&hall), Amount::ZERO, "the record says that nothing is out");
    assert_eq!(held(&hall), None, "it is told nothing that would take its lease away");
    // Nobody knows what became of the write.
    hall.commit(false);
    pass(&mut hall, WINDOW);
    assert_eq!(charged(&hall), Amount::ZERO);
    hall.record.prompt = true;
    pass(&mut hall, Duration::from_secs(1));
    assert!(says_unknown(&hall), "{:?}", hall.record);
    assert_eq!((charged(&hall), held(&hall)), (Amount::from_f64(40.0), Some(Amount::from_f64(40.0))));
}

#[test]
fn what_is_shown_without_a_stream_counts_when_the_record_says_that_it_was_not_known() {
    for incarnation in [Some(1), None] {
        let mut hall = learns_again();
        // Who says that it may be told nothing is told nothing; a poller is left what it shows.
        let left = incarnation.is_none().then_some(Amount::from_f64(40.0));
        assert_eq!(ask(&mut hall, 1, incarnation, shows(1)), left);
        pass(&mut hall, WINDOW);
        assert_eq!(charged(&hall), Amount::ZERO, "the record says that nothing is out");
        hall.record.prompt = true;
        hall.commit(true);
        pass(&mut hall, WINDOW);
        assert_eq!(ask(&mut hall, 2, incarnation, shows(1)), Some(Amount::from_f64(40.0)));
        assert_eq!(charged(&hall), Amount::from_f64(40.0));
    }
}

#[test]
fn who_waits_is_heard_when_all_of_it_is_over() {
    let mut hall = begin(repository(leases(SHORT)));
    pass(&mut hall, 2 * SHORT);
    hall.record.prompt = false;
    let later = 3 * SHORT;
    hall.node.reload(hall.now, repository(leases(later)));
    say(&mut hall, 1);
    // No write is ever heard of.
    pass(&mut hall, later);
    assert_eq!(hall.node.next_deadline().filter(|&at| at <= hall.now), None, "nothing is left to be done");
    hall.record.prompt = true;
    hall.commit(true);
    pass(&mut hall, Duration::from_secs(1));
    assert_eq!(held(&hall), Some(Amount::from_f64(40.0)));
}

/// A root that is to learn again, where one life of a client listens and an operator recalls from it; another life shows what it had
/// from an earlier leader, before that or after, and waits for the record.
fn recalls_from_one_that_waits(is_before: bool) -> Hall {
    let mut hall = learns_again();
    hall.hello("old/listens", HolderKind::Client, None);
    hall.report("old/listens", Some(shows(1).bands), None, false);
    hall.hear();
    let show = |hall: &mut Hall| {
        hall.hello("old/waits", HolderKind::Client, None);
        hall.listeners.get_mut("old/waits").expect("it said hello").prompt = true;
        hall.show("old/waits", shows(1));
        hall.hear();
    };
    if is_before {
        show(&mut hall);
    }
    let lives = hall.node.recall(hall.now, &resource(), &client("old"), SHORT).expect("one listens");
    assert_eq!(lives.len(), 1, "the other is not known before it is heard");
    if !is_before {
        show(&mut hall);
    }
    hall
}

#[test]
fn who_waits_and_is_recalled_from_meanwhile_gets_nothing_when_it_is_heard() {
    for is_before in [true, false] {
        let mut hall = recalls_from_one_that_waits(is_before);
        hall.record.prompt = true;
        hall.commit(true);
        pass(&mut hall, Duration::from_secs(1));
        let lease = hall.listeners["old/waits"].lease.as_ref();
        assert_eq!(lease.map(|(grant, _)| grant.capacity), Some(Amount::ZERO), "{is_before}");
    }
}

#[test]
fn who_waits_says_again_what_it_wants_when_a_recall_is_lifted() {
    let mut hall = recalls_from_one_that_waits(false);
    assert!(hall.node.lift_recall(hall.now, &resource(), &client("old")));
    let closed: Vec<Heard> = hall.hear().into_iter().map(|(_, heard)| heard).collect();
    for name in ["old/listens", "old/waits"] {
        assert!(closed.contains(&Heard::Closed(name.to_owned())), "{name} of {closed:?}");
    }
}

#[test]
fn a_record_that_is_not_the_last_one_says_so_before_anything_is_charged() {
    let marks = [(resource(), Amount::from_f64(2.0))].into();
    let record = Record { epoch: Epoch(3), marks, longest_lease: SHORT, ..Record::default() };
    let config = NodeConfig { record: Some(record), epoch: Epoch(7), ..config() };
    let mut hall = Hall::new(leases(SHORT), config);
    hall.record.prompt = true;
    pass(&mut hall, WINDOW);
    assert!(hall.record.header.is_some() && !says_unknown(&hall), "{:?}", hall.record);
    hall.record.prompt = false;
    say(&mut hall, 5);
    pass(&mut hall, WINDOW);
    assert!(charged(&hall) <= Amount::from_f64(2.0), "the record says that no more is out");
    hall.record.prompt = true;
    hall.commit(true);
    pass(&mut hall, WINDOW);
    assert!(says_unknown(&hall), "{:?}", hall.record);
    assert_eq!((charged(&hall), held(&hall)), (Amount::from_f64(40.0), Some(Amount::from_f64(40.0))));
}

/// Leases of ten seconds, and floors of an hour.
fn with_floors() -> Repository {
    let safe_fraction = Fraction::check(Field::SafeFraction, 0.1).expect("a fraction");
    repository(Template { safe_fraction, ..leases(SHORT) })
}

fn unknown_of(hall: &Hall) -> Option<Unknown> {
    hall.record.header.map(|header| header.unknown)
}

fn newcomer(resource: ResourceId) -> Report {
    Report { resource, has: None, ..shows(1) }
}

/// Times of learning by class: what was before the first start may be out as long as floors last, and only those are learnt so long.
#[test]
fn leases_are_learnt_for_a_lease_length_where_floors_last_for_longer() {
    let longest = (SHORT, Duration::from_secs(3600));
    let record = Record {
        unknown: Unknown::All,
        longest_lease: longest.0,
        longest_safe_lease: longest.1,
        ..Record::default()
    };
    let config = NodeConfig { record: Some(record), ..config() };
    let times = LearningTimes::at_start(&with_floors(), &config);
    let [leases, floors] = [times.leases, times.floors].map(|time| time.as_secs_f64());
    assert!((10.0..11.0).contains(&leases) && (3600.0..3700.0).contains(&floors), "{times:?}");

    let mut hall = Hall::of(with_floors(), config);
    hall.record.prompt = true;
    hall.until(Time::ZERO + SHORT);
    assert_eq!(unknown_of(&hall), Some(Unknown::All));
    assert_eq!(ask(&mut hall, 1, Some(7), newcomer(resource())), Some(Amount::ZERO));
    pass(&mut hall, Duration::from_secs(1));
    assert_eq!(unknown_of(&hall), Some(Unknown::Floors), "what leases are out is known");
    // What is granted is written down first.
    ask(&mut hall, 2, Some(7), newcomer(resource()));
    pass(&mut hall, WINDOW);
    assert_eq!(ask(&mut hall, 3, Some(7), newcomer(resource())), Some(Amount::from_f64(40.0)));
    pass(&mut hall, Duration::from_secs(3700));
    assert_eq!(unknown_of(&hall), Some(Unknown::Nothing));
}

/// One that begins in the hour after a first start, when 30 are out and no floor that is known of.
fn in_the_first_hour(repository: Repository) -> Hall {
    begin_after(Unknown::Floors, repository)
}

fn begin_after(unknown: Unknown, repository: Repository) -> Hall {
    let record = Record {
        unknown,
        epoch: Epoch(1),
        longest_lease: SHORT,
        longest_safe_lease: Duration::from_secs(3600),
        marks: [(resource(), Amount::from_f64(30.0))].into(),
        ..Record::default()
    };
    let mut hall = Hall::of(repository, NodeConfig { record: Some(record), ..config() });
    hall.record.prompt = true;
    hall.until(Time::ZERO + WINDOW);
    hall
}

#[test]
fn a_successor_in_the_first_hour_knows_what_leases_are_out_and_learns_floors() {
    let mut hall = in_the_first_hour(with_floors());
    let times = hall.node.learning_times();
    assert!(times.leases.is_zero() && times.floors > Duration::from_secs(3600), "{times:?}");
    // There are 90 beside floors, and who may have 30 of them is not known.
    let all = |id: u64| Report {
        bands: [Band { priority: 0, subclients: 1, wants: 100.0 }].into_iter().collect(),
        ..newcomer(if id > 10 { resource().floor() } else { resource() })
    };
    ask(&mut hall, 1, Some(7), all(1));
    pass(&mut hall, WINDOW);
    assert_eq!(ask(&mut hall, 2, Some(7), all(2)), Some(Amount::from_f64(60.0)));
    for id in [11, 12] {
        pass(&mut hall, WINDOW);
        assert_eq!(ask(&mut hall, id, Some(7), all(id)), Some(Amount::ZERO), "a floor");
    }
    assert_eq!(unknown_of(&hall), Some(Unknown::Floors));
    pass(&mut hall, Duration::from_secs(3700));
    assert_eq!(unknown_of(&hall), Some(Unknown::Nothing));
    ask(&mut hall, 13, Some(7), all(13));
    pass(&mut hall, WINDOW);
    assert!(ask(&mut hall, 14, Some(7), all(14)) > Some(Amount::ZERO), "a floor");
}

#[test]
fn floors_of_before_are_not_known_for_as_long_as_they_last_also_where_there_are_none_any_more() {
    for unknown in [Unknown::Floors, Unknown::All] {
        let mut hall = begin_after(unknown, repository(leases(SHORT)));
        assert_eq!(unknown_of(&hall), Some(unknown));
        pass(&mut hall, Duration::from_secs(3600));
        assert_eq!(unknown_of(&hall), Some(Unknown::Floors), "of {unknown:?}");
        pass(&mut hall, Duration::from_secs(100));
        assert_eq!(unknown_of(&hall), Some(Unknown::Nothing), "of {unknown:?}");
    }
}

#[test]
fn what_is_shown_of_a_lease_waits_where_the_record_says_that_only_floors_are_not_known() {
    let mut hall = in_the_first_hour(with_floors());
    hall.record.prompt = false;
    say(&mut hall, 1);
    pass(&mut hall, WINDOW);
    let most = Amount::from_f64(30.0);
    assert!(charged(&hall) <= most, "the record says that no more is out: {}", charged(&hall));
    // It says so of a leader after the last that it knows of, so nothing in it is believed.
    hall.listeners.remove("old");
    let between = NodeConfig { epoch: Epoch(7), ..config() };
    let record = Record {
        unknown: Unknown::Floors,
        epoch: Epoch(3),
        longest_lease: SHORT,
        longest_safe_lease: Duration::from_secs(3600),
        marks: [(resource(), Amount::from_f64(2.0))].into(),
        ..Record::default()
    };
    let mut hall = Hall::of(with_floors(), NodeConfig { record: Some(record), ..between });
    hall.record.prompt = true;
    hall.until(Time::ZERO + WINDOW);
    hall.record.prompt = false;
    say(&mut hall, 5);
    pass(&mut hall, WINDOW);
    assert!(charged(&hall) <= Amount::from_f64(2.0), "the record says that no more is out");
    assert_eq!(unknown_of(&hall), Some(Unknown::Floors));
    hall.record.prompt = true;
    hall.commit(true);
    pass(&mut hall, WINDOW);
    assert_eq!(unknown_of(&hall), Some(Unknown::All));
    assert_eq!((charged(&hall), held(&hall)), (Amount::from_f64(40.0), Some(Amount::from_f64(40.0))));
}

/// The record that a leader of the next epoch finds when this one dies.
fn left_by(hall: &Hall) -> Record {
    let header = hall.record.header.expect("it has been written");
    Record {
        epoch: hall.node.config().epoch,
        marks: hall.record.marks.clone(),
        unknown: header.unknown,
        longest_lease: header.longest_lease,
        longest_safe_lease: header.longest_safe_lease,
        authority: header.authority,
        ..Record::default()
    }
}

fn told(hall: &Hall) -> Option<Duration> {
    hall.record.header.map(|header| header.longest_lease)
}

#[test]
fn a_longer_lease_that_is_shown_without_a_stream_counts_when_the_record_says_how_long_it_may_last() {
    for incarnation in [Some(1), None] {
        let mut hall = begin(repository(leases(SHORT)));
        pass(&mut hall, WINDOW);
        hall.record.prompt = false;
        let left = incarnation.is_none().then_some(Amount::from_f64(40.0));
        assert_eq!(ask(&mut hall, 1, incarnation, shows(1)), left);
        assert_eq!((charged(&hall), told(&hall)), (Amount::ZERO, Some(SHORT)));
        hall.record.prompt = true;
        pass(&mut hall, WINDOW);
        assert_eq!(ask(&mut hall, 2, incarnation, shows(1)), Some(Amount::from_f64(40.0)));
        assert_eq!((charged(&hall), told(&hall)), (Amount::from_f64(40.0), Some(LONG)));
    }
}

/// A holder that shows a lease of before has one of this leader from then on, which is no longer than others; others like the first
/// may be out, with somebody who is not heard of.
#[test]
fn a_successor_learns_for_as_long_as_leases_last_that_its_predecessor_was_shown() {
    let mut hall = begin(repository(leases(SHORT)));
    pass(&mut hall, WINDOW);
    // Nothing is written at first, and nobody knows what became of the next write.
    hall.record.prompt = false;
    say(&mut hall, 1);
    for _ in 0..3 {
        pass(&mut hall, WINDOW);
        assert!(
            held(&hall).is_none() || told(&hall) >= Some(LONG),
            "a successor may not be shown it any more"
        );
        hall.commit(false);
    }
    hall.record.prompt = true;
    pass(&mut hall, Duration::from_secs(1));
    assert_eq!((held(&hall), told(&hall)), (Some(Amount::from_f64(40.0)), Some(LONG)));

    let config = NodeConfig { record: Some(left_by(&hall)), epoch: Epoch(3), ..config() };
    let mut next = Hall::of(repository(leases(SHORT)), config);
    next.record.prompt = true;
    let newcomer = || Report { has: None, ..shows(2) };
    for id in 1..10 {
        pass(&mut next, LONG / 10);
        assert_eq!(ask(&mut next, id, Some(7), newcomer()), Some(Amount::ZERO), "at {:?}", next.now);
    }

    // When all of it is over successors are told so.
    pass(&mut hall, LONG + SHORT);
    assert_eq!((told(&hall), says_unknown(&hall)), (Some(SHORT), false));
}
