//! Loans of what nobody wants to clients that state a peak: to whom, how much, and when they are recalled.

use std::collections::BTreeMap;
use std::time::Duration;

use lessor_proto::message::{
    Ask, Band, Bands, Down, Has, Hello, HolderKind, Order, Report, StreamReport, Up,
};
use lessor_proto::{Amount, Epoch, Incarnation, ReportId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer};
use lessor_server::repository::{Fraction, Kind, Template};

use super::holders::{client, repository, resource, template, wants};

/// Grants of one story: none takes as many, unless somebody is taken from and given to for ever.
const ENDLESS: usize = 2_000;

/// A client on a stream, which acknowledges at once what it is asked to.
#[derive(Clone, Copy, Debug)]
struct Borrower {
    peer: Peer,
    wants: f64,
    peak: Option<f64>,
    reports: u64,
    has: Option<(Amount, Order)>,
}

struct Bank {
    now: Time,
    node: Node,
    borrowers: BTreeMap<&'static str, Borrower>,
    grants: usize,
    /// The most that was believed at any time.
    most: f64,
}

// === impl Bank ===

impl Bank {
    fn new(template: Template) -> Bank {
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(template));
        Bank { now: Time::ZERO, node, borrowers: BTreeMap::new(), grants: 0, most: 0.0 }
    }

    fn says(&mut self, name: &'static str, wants: f64, peak: Option<f64>) {
        let hello = Hello::new(HolderKind::Client, client(name), Incarnation(1));
        if !self.borrowers.contains_key(name) {
            let peer = self.node.connect(self.now, hello);
            self.borrowers.insert(name, Borrower { peer, wants, peak, reports: 0, has: None });
        }
        let borrower = self.borrowers.get_mut(name).expect("it is there");
        (borrower.wants, borrower.peak) = (wants, peak);
        self.report(name, false);
        self.settle();
    }

    fn beats(&mut self, name: &'static str) {
        self.report(name, true);
        self.settle();
    }

    fn report(&mut self, name: &'static str, renew_all: bool) {
        let borrower = self.borrowers.get_mut(name).expect("it is there");
        borrower.reports += 1;
        let has = borrower.has.map(|(capacity, order)| Has {
            capacity,
            order: Some(order),
            token: Vec::new(),
            lasts: None,
            expiry: 0,
        });
        let report = Report {
            resource: resource(),
            bands: Bands::from_elem(Band { priority: 0, subclients: 1, wants: borrower.wants }, 1),
            held: has.as_ref().map(|has| has.capacity),
            has,
            domains: None,
            integer: None,
            peak: borrower.peak,
            unenforced: None,
        };
        let reports = if renew_all { Vec::new() } else { vec![report] };
        let report = StreamReport { id: ReportId(borrower.reports), target_epoch: None, renew_all, reports };
        let peer = borrower.peer;
        self.node.receive(self.now, peer, Up::Report(report));
    }

    /// Hears and answers until a second has passed in which nothing was said.
    fn settle(&mut self) {
        let mut until = self.now + Duration::from_secs(1);
        while self.now < until {
            while let Some(output) = self.node.poll(self.now) {
                let Output::Send { peer, down } = output else { continue };
                self.node.ready(self.now, peer);
                let Down::Grants(grants) = down else { continue };
                let (&name, borrower) =
                    self.borrowers.iter_mut().find(|(_, borrower)| borrower.peer == peer).expect("a client");
                let mut is_asked = false;
                for grant in &grants {
                    borrower.has = Some((grant.capacity, grant.order.expect("grants are numbered")));
                    is_asked |= grant.ack_wanted;
                }
                self.grants += grants.len();
                assert!(self.grants < ENDLESS, "they take from each other for ever");
                let believed: f64 = self.borrowers.keys().map(|&name| self.has(name)).sum();
                self.most = self.most.max(believed);
                if is_asked {
                    self.report(name, false);
                }
                until = self.now + Duration::from_secs(1);
            }
            match self.node.next_deadline().filter(|&due| due <= until) {
                Some(due) => self.now = self.now.max(due),
                None => self.now = until,
            }
        }
    }

    fn has(&self, name: &str) -> f64 {
        self.borrowers[name].has.map_or(0.0, |(amount, _)| amount.as_f64())
    }

    fn check(&self, wanted: &[(&str, f64)]) {
        for &(name, wanted) in wanted {
            let has = self.has(name);
            assert!((has - wanted).abs() < 1e-3, "{name} has {has}, and not {wanted}: {:?}", self.borrowers);
        }
        assert!(self.most <= 1_000.001, "{} of 1,000 were believed", self.most);
    }
}

fn bank() -> Bank {
    Bank::new(template(1_000.0))
}

#[test]
fn who_states_a_peak_is_lent_nine_tenths_of_what_nobody_wants() {
    let mut bank = bank();
    bank.says("alone", 10.0, Some(0.0));
    bank.check(&[("alone", 10.0 + 891.0)]);
}

#[test]
fn who_states_none_has_what_it_wants() {
    let mut bank = bank();
    bank.says("exact", 10.0, None);
    bank.check(&[("exact", 10.0)]);
    bank.says("alone", 10.0, Some(0.0));
    bank.check(&[("exact", 10.0), ("alone", 10.0 + 882.0)]);
}

#[test]
fn nothing_is_lent_of_a_gauge_or_where_the_operator_keeps_it() {
    let gauge = Template { kind: Kind::Gauge, ..template(1_000.0) };
    let kept = Template { spare_to_nodes: Some(Fraction::NONE), ..template(1_000.0) };
    for template in [gauge, kept] {
        let mut bank = Bank::new(template);
        bank.says("alone", 10.0, Some(500.0));
        bank.check(&[("alone", 10.0)]);
    }
}

#[test]
fn nothing_is_lent_while_another_kind_is_out() {
    let of_kind = |kind| Template { kind, ..template(1_000.0) };
    for (before, after) in [(Kind::Gauge, Kind::Rate), (Kind::Rate, Kind::Gauge)] {
        let mut bank = Bank::new(of_kind(before));
        bank.says("alone", 10.0, Some(500.0));
        let silent = Ask {
            kind: HolderKind::Client,
            holder: client("silent"),
            incarnation: Some(Incarnation(2)),
            report_id: Some(ReportId(1)),
            target_epoch: None,
            line: None,
            reports: vec![Report::new(resource(), wants(5.0).bands)],
        };
        let answer = bank.node.ask(bank.now, &silent).expect("it is asked well");
        assert_eq!(answer.grants[0].capacity, Amount::from_units(5), "it is served");
        bank.node.reload(bank.now, repository(of_kind(after)));
        bank.says("alone", 10.0, Some(500.0));
        bank.check(&[("alone", 0.0)]);
        bank.now += Duration::from_secs(61);
        bank.says("alone", 10.0, Some(500.0));
        bank.check(&[("alone", if after == Kind::Rate { 10.0 + 891.0 } else { 10.0 })]);
    }
}

#[test]
fn a_loan_is_recalled_for_a_share_and_no_further_than_it_takes() {
    let mut bank = bank();
    bank.says("rich", 10.0, Some(0.0));
    bank.says("poor", 500.0, None);
    // 490 are spare, of which a tenth is kept.
    bank.check(&[("rich", 10.0 + 441.0), ("poor", 500.0)]);
    bank.says("poor", 520.0, None);
    // 29 of the 49 that were kept are left, more than half of what should be.
    bank.check(&[("rich", 451.0), ("poor", 520.0)]);
    bank.says("poor", 990.0, None);
    bank.check(&[("rich", 10.0), ("poor", 990.0)]);
}

#[test]
fn a_peak_takes_from_no_share() {
    let mut bank = bank();
    bank.says("poor", 900.0, None);
    bank.says("rich", 100.0, Some(5_000.0));
    bank.check(&[("poor", 900.0), ("rich", 100.0)]);
    bank.says("poor", 950.0, None);
    bank.check(&[("poor", 900.0), ("rich", 100.0)]);
}

#[test]
fn the_loan_that_nobody_claims_goes_first() {
    let mut bank = bank();
    bank.says("busy", 50.0, Some(200.0));
    bank.says("idle", 0.0, Some(0.0));
    let idle = bank.has("idle");
    bank.says("busy", 50.0, Some(200.0));
    bank.says("idle", 0.0, Some(0.0));
    assert!(bank.has("idle") >= idle);
    bank.says("poor", 600.0, None);
    // 350 are spare and 315 lent: all of what is claimed, which is a lease of twice the peak, has no room.
    bank.check(&[("poor", 600.0)]);
    assert!(bank.has("busy") >= 50.0 + 300.0 && bank.has("idle") <= 15.1, "{:?}", bank.borrowers);
}

#[test]
fn wants_that_fall_are_kept_until_somebody_needs_them() {
    let mut bank = bank();
    bank.says("once", 600.0, Some(0.0));
    bank.check(&[("once", 600.0 + 360.0)]);
    // 40 of the 992 that nobody wants are kept, less than half of a tenth.
    bank.says("once", 8.0, Some(0.0));
    bank.check(&[("once", 8.0 + 892.8)]);
    let grants = bank.grants;
    bank.says("once", 600.0, Some(0.0));
    bank.says("once", 5.0, Some(0.0));
    bank.check(&[("once", 8.0 + 892.8)]);
    assert_eq!(bank.grants, grants, "coming back costs nothing");
}

#[test]
fn who_comes_later_is_lent_with_its_reports_until_it_has_half_of_its_part() {
    let mut bank = bank();
    bank.says("first", 0.0, Some(0.0));
    bank.says("second", 0.0, Some(0.0));
    for _ in 0..5 {
        bank.beats("second");
    }
    let (first, second) = (bank.has("first"), bank.has("second"));
    assert!(second >= 225.0 && first >= 450.0, "{first} and {second}");
    let grants = bank.grants;
    (0..5).for_each(|_| {
        bank.beats("first");
        bank.beats("second");
    });
    assert_eq!(bank.grants, grants, "nobody is told because the spare moved");
}
