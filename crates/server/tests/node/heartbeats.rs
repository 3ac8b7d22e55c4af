//! Streams that hold much: a heartbeat renews everything, what was put off is caught up with, and nobody waits for them.

use std::collections::BTreeSet;
use std::time::Duration;

use lessor_proto::message::{Ask, Band, Down, Hello, HolderKind, Report, StreamReport, Up};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer, StatusQuery};
use lessor_server::repository::{Glob, Kind, Repository, Template};

use super::holders::{client, repository, template};

/// Resources of the stream that holds much: some slices, and a part of one.
const MANY: usize = 5_000;
/// More resources than are looked at in one slice, and one whose name comes after all of theirs.
const FIRST: usize = 300;
const LAST: usize = 999;
/// The slices of the stream that holds much, less the first.
const SLICES: usize = (MANY - 1) / 256;
/// The time for which a slow reader takes nothing.
const MOMENT: Duration = Duration::from_millis(200);
const LEASE: Duration = Duration::from_secs(60);
/// The longest interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A node, and the time.
struct Hall {
    now: Time,
    node: Node,
    /// Looks at something whose time had come.
    looks: usize,
}

fn wants(resource: usize, amount: f64) -> Report {
    Report::new(
        ResourceId::new(format!("r{resource}"), 256).expect("a name"),
        [Band { priority: 0, subclients: 1, wants: amount }],
    )
}

// === impl Hall ===

impl Hall {
    fn new() -> Hall {
        let template = Template { lease_length: LEASE, learning: Duration::ZERO, ..template(100.0) };
        Hall::of(repository(template))
    }

    fn of(repository: Repository) -> Hall {
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository);
        Hall { now: Time::ZERO, node, looks: 0 }
    }

    /// A stream that wants so much of each of so many resources, and has been granted it.
    fn stream(&mut self, name: &str, resources: usize, amount: f64) -> Peer {
        self.stream_of(name, 0..resources, amount)
    }

    /// The same of these resources.
    fn stream_of(&mut self, name: &str, resources: impl Iterator<Item = usize>, amount: f64) -> Peer {
        let hello = Hello::new(HolderKind::Client, client(name), Incarnation(7));
        let peer = self.node.connect(self.now, hello);
        self.report(peer, 1, resources.map(|number| wants(number, amount)).collect());
        self.all();
        peer
    }

    fn report(&mut self, peer: Peer, id: u64, reports: Vec<Report>) {
        let renew_all = reports.is_empty();
        let report = StreamReport { id: ReportId(id), target_epoch: None, renew_all, reports };
        self.node.receive(self.now, peer, Up::Report(report));
    }

    fn give_back(&mut self, peer: Peer, resource: usize) {
        let resources = vec![ResourceId::new(format!("r{resource}"), 256).expect("a name")];
        self.node.receive(self.now, peer, Up::Release { id: ReportId(2), resources });
    }

    fn beat(&mut self, peer: Peer, id: u64) {
        self.report(peer, id, Vec::new());
    }

    /// Heartbeats from `first` on, one each ten seconds, each of which is answered with one message. Returns those that renew
    /// everything.
    fn beats(&mut self, peer: Peer, first: u64, number: u64) -> Vec<u64> {
        let mut renewed = Vec::new();
        for id in first..first + number {
            let said = self.wait(HEARTBEAT);
            assert!(said.is_empty(), "{said:?}");
            self.beat(peer, id);
            let said = self.all();
            let renewals = renewals(&said, peer);
            let is_empty = |down: &Down| matches!(down, Down::Grants(grants) if grants.is_empty());
            assert!(said.len() == 1 && (renewals == [id] || is_empty(&said[0].1)), "{said:?}");
            renewed.extend(renewals);
        }
        renewed
    }

    /// A stream is answered something, and does not take it.
    fn stall(&mut self, peer: Peer) {
        self.give_back(peer, 0);
        let answer = self.node.poll_said(self.now);
        assert!(matches!(answer, Some(Output::Send { peer: to, .. }) if to == peer), "{answer:?}");
    }

    /// A stream takes what it was sent, and is sent the next message, which it does not take.
    fn next(&mut self, slow: Peer) -> Down {
        self.node.ready(self.now, slow);
        for _ in 0..10 * MANY {
            match self.node.poll_said(self.now) {
                Some(Output::Send { peer, down }) if peer == slow => return down,
                Some(Output::Send { peer, .. }) => self.node.ready(self.now, peer),
                _ => self.node.look_next(self.now),
            }
        }
        panic!("nothing is said");
    }

    /// The messages that are there to be sent, each of which is taken at once, without a look at anything.
    fn said(&mut self) -> Vec<(Peer, Down)> {
        let mut said = Vec::new();
        while let Some(output) = self.node.poll_said(self.now) {
            if let Output::Send { peer, down } = output {
                self.node.ready(self.now, peer);
                said.push((peer, down));
            }
        }
        said
    }

    /// The same with every look that is due.
    fn all(&mut self) -> Vec<(Peer, Down)> {
        let mut said = self.said();
        while self.node.is_look_due(self.now) {
            self.looks += 1;
            self.node.look_next(self.now);
            said.extend(self.said());
        }
        said
    }

    /// Goes on for so long, and returns what was said meanwhile.
    fn wait(&mut self, time: Duration) -> Vec<(Peer, Down)> {
        let (end, mut said) = (self.now + time, Vec::new());
        while let Some(at) = self.node.next_deadline().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            said.extend(self.all());
        }
        self.now = end;
        said
    }

    /// The amount that is charged of one resource.
    fn leased(&mut self, resource: usize) -> Amount {
        self.node.advance(self.now);
        let name = format!("r{resource}");
        let query = StatusQuery { resource: Some(name), ..StatusQuery::default() };
        let leased = self.node.status(self.now, &query).resources.first().map(|row| row.resource.leased);
        leased.map_or(Amount::ZERO, Amount::from_f64)
    }
}

fn renewals(said: &[(Peer, Down)], of: Peer) -> Vec<u64> {
    let basis = |(peer, down): &(Peer, Down)| match down {
        Down::Renewed { basis, .. } if *peer == of => Some(basis.0),
        _ => None,
    };
    said.iter().filter_map(basis).collect()
}

#[test]
fn whoever_holds_little_is_renewed_in_the_middle_of_one_who_holds_much() {
    let mut hall = Hall::new();
    let (large, small) = (hall.stream("large", MANY, 10.0), hall.stream("small", 1, 10.0));
    hall.beat(large, 2);
    hall.node.look_next(hall.now);
    assert!(renewals(&hall.said(), large).is_empty(), "a slice is not all of it");
    hall.beat(small, 2);
    let said = hall.said();
    assert_eq!((renewals(&said, small), renewals(&said, large)), (vec![2], vec![]));
    let said = hall.all();
    assert_eq!(renewals(&said, large), [2]);
}

#[test]
fn of_many_heartbeats_the_latest_is_answered_when_its_time_comes() {
    let mut hall = Hall::new();
    let large = hall.stream("large", MANY, 10.0);
    (2..100).for_each(|id| hall.beat(large, id));
    assert_eq!(renewals(&hall.all(), large), [2]);
    // 20 µs for each resource, of which 50 ms are free.
    assert!(renewals(&hall.wait(Duration::from_millis(50)), large).is_empty());
    assert_eq!(renewals(&hall.wait(Duration::from_millis(10)), large), [99]);
}

#[test]
fn heartbeats_in_slices_keep_every_lease_and_nothing_else_does() {
    let mut hall = Hall::new();
    let large = hall.stream("large", MANY, 10.0);
    let ten = Amount::from_units(10);
    for id in 2..20 {
        hall.wait(LEASE / 3);
        hall.beat(large, id);
        assert_eq!(renewals(&hall.all(), large), [id]);
    }
    assert_eq!((hall.leased(0), hall.leased(MANY - 1)), (ten, ten));
    hall.wait(LEASE * 2);
    assert_eq!((hall.leased(0), hall.leased(MANY - 1)), (Amount::ZERO, Amount::ZERO));
}

/// A template of leases that are renewed once in three, or once in five heartbeats: that of a window has little beyond it.
fn lasting(window: Option<Duration>) -> Template {
    let minute = Duration::from_secs(60);
    let lease_length = if window.is_some() { minute * 64 } else { minute * 7 };
    let kind = if window.is_some() { Kind::Gauge } else { Kind::Rate };
    let learning = lease_length;
    Template { kind, window, lease_length, refresh_interval: minute, learning, ..template(100.0) }
}

#[test]
fn what_lasts_for_long_is_renewed_as_often_as_it_must_be() {
    let hour = Duration::from_secs(3_600);
    // 240 s less the 36 by which clocks may err are 204, a sixth of which is 34.
    for (window, renewed) in [(None, vec![2, 7, 12, 17]), (Some(hour), vec![2, 5, 8, 11, 14, 17, 20])] {
        let mut hall =
            Hall::of(Repository::new(vec![lasting(window)]).expect("a template that holds together"));
        hall.wait(hour * 2);
        let hello = Hello::new(HolderKind::Client, client("large"), Incarnation(7));
        let large = hall.node.connect(hall.now, hello);
        // Whoever keeps to windows says what it wants besides, if nobody else does.
        let besides = window.map(|_| Band { priority: Band::RESERVE, subclients: 1, wants: 0.0 });
        let mut reports: Vec<_> = (0..MANY).map(|number| wants(number, 10.0)).collect();
        reports.iter_mut().for_each(|report| report.bands.extend(besides));
        hall.report(large, 1, reports);
        hall.all();
        assert_eq!(hall.beats(large, 2, 19), renewed, "{window:?}");
        let ten = Amount::from_units(10);
        assert_eq!((hall.leased(0), hall.leased(MANY - 1)), (ten, ten));
        // Between two that renew, a heartbeat costs the same for however many.
        hall.looks = 0;
        let next = 2 + 19;
        assert!(hall.beats(large, next, 1).is_empty());
        assert_eq!(hall.looks, 0);
    }
}

#[test]
fn what_does_not_last_for_long_is_renewed_with_each_heartbeat() {
    let short = Template { glob: Glob::new("r999").expect("a glob"), ..template(100.0) };
    let short =
        Template { lease_length: LEASE, refresh_interval: HEARTBEAT, learning: Duration::ZERO, ..short };
    let mut hall = Hall::of(Repository::new(vec![short.clone(), lasting(None)]).expect("they hold together"));
    hall.wait(LEASE * 8);
    let large = hall.stream("large", FIRST, 10.0);
    assert_eq!(hall.beats(large, 2, 6), [2, 7]);
    hall.report(large, 8, vec![wants(LAST, 10.0)]);
    hall.all();
    assert_eq!(hall.beats(large, 9, 3), [9, 10, 11]);
    hall.give_back(large, LAST);
    hall.all();
    assert_eq!(hall.beats(large, 13, 6), [13, 18]);

    // Other templates are in force.
    let sooner = Template { refresh_interval: HEARTBEAT, ..lasting(None) };
    hall.node.reload(hall.now, Repository::new(vec![short, sooner]).expect("they hold together"));
    hall.all();
    assert_eq!(hall.beats(large, 20, 3), [20, 21, 22]);
}

#[test]
fn whoever_was_evicted_hears_of_it_with_the_next_heartbeat() {
    let mut hall = Hall::of(repository(lasting(None)));
    let config = NodeConfig { clients_per_resource: 1, ..NodeConfig::new("root", Epoch(1)) };
    hall.node = Node::new(Time::ZERO, config, repository(lasting(None)));
    hall.wait(LEASE * 8);
    let idle = hall.stream("idle", 1, 0.0);
    assert_eq!(hall.beats(idle, 2, 2), [2]);
    hall.stream("other", 1, 10.0);
    assert_eq!((hall.leased(0), hall.node.streams()), (Amount::from_units(10), 2));
    hall.beat(idle, 4);
    assert!(hall.all().is_empty());
    assert_eq!(hall.node.streams(), 1, "it has to say everything anew");
}

#[test]
fn a_stream_that_goes_in_the_middle_leaves_nothing_to_do() {
    let mut hall = Hall::new();
    let large = hall.stream("large", MANY, 10.0);
    (2..5).for_each(|id| hall.beat(large, id));
    hall.node.look_next(hall.now);
    hall.node.disconnect(hall.now, large);
    assert!(hall.all().is_empty());
    assert!(!hall.node.is_look_due(hall.now));
    hall.wait(LEASE * 2);
    assert_eq!(hall.leased(0), Amount::ZERO);
}

#[test]
fn a_heartbeat_of_one_that_takes_nothing_is_heard_once() {
    let mut hall = Hall::new();
    let large = hall.stream("large", MANY, 10.0);
    hall.stall(large);
    hall.wait(Duration::from_secs(1));
    hall.looks = 0;
    hall.beat(large, 3);
    hall.wait(Duration::from_secs(1));
    assert!(hall.looks <= MANY / 256 + 1, "{} looks for a heartbeat of {MANY} resources", hall.looks);
    hall.node.ready(hall.now, large);
    assert_eq!(renewals(&hall.wait(Duration::from_secs(1)), large), [3]);
}

#[test]
fn what_was_put_off_for_a_stream_that_holds_much_is_told_in_slices() {
    let mut hall = Hall::new();
    let large = hall.stream("large", MANY, 100.0);
    hall.stall(large);
    // It does not take that, while another wants half of everything.
    hall.stream("other", MANY, 100.0);
    let said = hall.wait(Duration::from_secs(1));
    assert!(said.iter().all(|&(peer, _)| peer != large));
    hall.node.ready(hall.now, large);
    let mut told = BTreeSet::new();
    for _ in 0..10 * MANY {
        let mut grants = 0;
        for (_, down) in hall.said().into_iter().filter(|&(peer, _)| peer == large) {
            let Down::Grants(all) = down else { panic!("{down:?}") };
            grants += all.len();
            told.extend(all.into_iter().map(|grant| grant.resource));
        }
        assert!(grants <= 300, "{grants} at once");
        if !hall.node.is_look_due(hall.now) {
            break;
        }
        hall.node.look_next(hall.now);
    }
    assert_eq!(told.len(), MANY - 1);
    assert!(!hall.node.awaits_streams());
}

#[test]
fn what_is_put_off_of_the_first_names_again_and_again_keeps_neither_the_last_nor_a_heartbeat() {
    let mut hall = Hall::new();
    let slow = hall.stream_of("slow", (0..FIRST).chain([LAST]), 10.0);
    hall.stall(slow);
    hall.report(slow, 3, vec![wants(LAST, 20.0)]);
    hall.beat(slow, 4);
    assert!(hall.wait(MOMENT).is_empty(), "it takes nothing");
    let last = ResourceId::new(format!("r{LAST}"), 256).expect("a name");
    let (mut is_told, mut is_renewed) = (false, false);
    for turn in 0..8 {
        // It wants more of the first ones before it takes anything.
        let reports = (0..FIRST).map(|number| wants(number, 11.0 + turn as f64)).collect();
        hall.report(slow, 5 + turn, reports);
        assert!(hall.wait(MOMENT).is_empty(), "it takes nothing");
        match hall.next(slow) {
            Down::Grants(grants) => is_told |= grants.iter().any(|grant| grant.resource == last),
            Down::Renewed { basis, .. } => is_renewed |= basis == ReportId(4),
            down => panic!("{down:?}"),
        }
    }
    assert!(is_told, "the last name");
    assert!(is_renewed, "the heartbeat");
}

#[test]
fn a_stream_that_held_much_ends_in_slices_and_nobody_is_granted_anything_on_it() {
    let mut hall = Hall::new();
    let (small, large) = (hall.stream("small", MANY, 60.0), hall.stream("large", MANY, 60.0));
    assert_eq!(hall.leased(LAST), Amount::from_units(100));

    // It is short of 20 when it ends, and there is room for that then.
    hall.node.disconnect(hall.now, large);
    hall.give_back(small, LAST);
    let looks = hall.looks;
    let said = hall.all();
    assert!(said.iter().all(|&(peer, _)| peer == small), "{said:?}");
    assert!(hall.looks - looks >= SLICES, "{} looks", hall.looks - looks);
    hall.wait(LEASE - Duration::from_secs(1));
    assert_eq!(hall.leased(LAST), Amount::from_units(40));
    hall.wait(Duration::from_secs(10));
    assert_eq!(hall.leased(LAST), Amount::ZERO);
}

#[test]
fn whoever_leaves_gives_all_back_in_slices() {
    let mut hall = Hall::new();
    let (large, small) = (hall.stream("large", MANY, 60.0), hall.stream("small", 0, 0.0));
    hall.node.receive(hall.now, large, Up::Bye);
    assert_eq!((hall.leased(0), hall.leased(LAST)), (Amount::ZERO, Amount::from_units(60)));
    // Somebody else is heard in the middle, and is granted what is free.
    hall.report(small, 2, vec![wants(LAST, 100.0)]);
    assert_eq!(hall.leased(LAST), Amount::from_units(100));
    let looks = hall.looks;
    hall.all();
    assert!(hall.looks - looks >= SLICES, "{} looks", hall.looks - looks);
    for resource in (0..MANY).step_by(97) {
        assert_eq!(hall.leased(resource), Amount::ZERO, "r{resource}");
    }
    hall.wait(Duration::from_secs(1));
    assert_eq!(hall.leased(LAST), Amount::from_units(100));
}

#[test]
fn what_one_is_granted_who_has_left_and_comes_back_is_not_given_back_with_the_rest() {
    for is_polling in [false, true] {
        let mut hall = Hall::new();
        let large = hall.stream("large", MANY, 60.0);
        hall.node.receive(hall.now, large, Up::Bye);
        let report = wants(LAST, 70.0);
        if is_polling {
            let ask = Ask {
                kind: HolderKind::Client,
                holder: client("large"),
                incarnation: Some(Incarnation(7)),
                report_id: Some(ReportId(9)),
                target_epoch: None,
                line: None,
                reports: vec![report],
            };
            let answer = hall.node.ask(hall.now, &ask).expect("it is granted");
            assert_eq!(answer.grants.len(), 1);
        } else {
            let hello = Hello::new(HolderKind::Client, client("large"), Incarnation(7));
            let peer = hall.node.connect(hall.now, hello);
            hall.report(peer, 9, vec![report]);
        }
        hall.all();
        assert_eq!(hall.leased(LAST), Amount::from_units(70), "polling: {is_polling}");
        assert_eq!(hall.leased(FIRST), Amount::ZERO);
    }
}

#[test]
fn what_has_ended_is_cleaned_up_in_parts_as_at_once() {
    let mut hall = Hall::new();
    let (large, small) = (hall.stream("large", FIRST, 60.0), hall.stream("small", LAST, 60.0));
    hall.node.disconnect(hall.now, large);
    hall.give_back(small, LAST - 1);
    hall.all();
    let mut looked_at = [0; 3];
    for (which, minutes) in [1, 30, 120].into_iter().enumerate() {
        hall.now = Time::ZERO + Duration::from_secs(60 * minutes);
        let mut whole = hall.node.clone();
        whole.advance(hall.now);
        let (mut after, mut parts) = (None, 0);
        loop {
            after = hall.node.advance_part(hall.now, after.as_ref(), 100);
            parts += 1;
            if after.is_none() {
                break;
            }
        }
        let all = |node: &Node| node.status(hall.now, &StatusQuery::default());
        assert_eq!(format!("{:?}", all(&hall.node)), format!("{:?}", all(&whole)), "after {minutes} minutes");
        looked_at[which] = parts;
    }
    assert_eq!(looked_at, [10, 10, 1], "parts, while there is something");
}
