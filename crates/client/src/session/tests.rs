//! Tests of sessions: the work for a message is about what it speaks of, and not about all that is held.

use lessor_proto::message::{Band, Down, Grant, JobNews, Order, Unenforced, Up, Welcome};
use lessor_proto::{ClientId, Features, Incarnation, ReportId};

use super::entries::LOOKED_AT;
use super::*;
use crate::holding::{Fallback, Kind, Surplus};

/// A grant of `units` of a gauge, the number `seq`, counted from the first report.
pub(super) fn grant(resource: &ResourceId, seq: u64, units: u64) -> Grant {
    Grant {
        resource: resource.clone(),
        capacity: Amount::from_units(units),
        length: Duration::from_secs(600),
        refresh_interval: Duration::from_secs(60),
        order: Some(Order { epoch: Epoch(1), seq }),
        basis: Some(ReportId(2)),
        token: Vec::new(),
        ack_wanted: false,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: None,
        burst: None,
        due: None,
        window: None,
        unenforced: false,
        beside: false,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        generation: None,
    }
}

/// A session on a stream, and all that its driver does: what is said is taken down.
struct Driven {
    session: Session,
    now: Time,
    stream: u64,
    seq: u64,
    said: Vec<Up>,
}

// === impl Driven ===

impl Driven {
    /// One that holds a unit of each of so many resources.
    fn holding(resources: usize) -> Driven {
        let holder = ClientId::new("web-1", 256).unwrap();
        let config = SessionConfig::new(holder, Incarnation(1), vec!["a:1".into()]);
        let session = Session::new(SessionConfig { transport: Transport::Stream, ..config });
        let mut driven =
            Driven { session, now: Time::from_nanos(1 << 40), stream: 1, seq: 0, said: Vec::new() };
        for number in 0..resources {
            driven.session.add(driven.now, name(number), holding(1.0));
        }
        driven.act();
        let welcome = Welcome {
            epoch: Epoch(1),
            claims_open: true,
            claims_open_in: None,
            heartbeat: Duration::from_secs(60),
            features: Features::CURRENT,
        };
        driven.hear(Down::Welcome(welcome));
        driven.pass(Duration::from_secs(1));
        let grants = (0..resources).map(|number| driven.grant(number, 1)).collect();
        driven.hear(Down::Grants(grants));
        driven.pass(Duration::from_secs(1));
        // The program has heard of all that, and has said what it uses.
        let again = driven.grant(0, 1);
        driven.hear(Down::Grants(vec![again]));
        assert!((0..resources).all(|number| driven.session.rung(driven.now, &name(number)) == Rung::Leased));
        driven.said.clear();
        driven
    }

    fn grant(&mut self, number: usize, units: u64) -> Grant {
        self.seq += 1;
        grant(&name(number), self.seq, units)
    }

    fn hear(&mut self, down: Down) {
        self.session.handle(self.now, Event::Down { id: self.stream, down });
        self.act();
    }

    /// Some milliseconds, in which it does what it says itself.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let next = self.session.next_deadline();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.act();
        }
        self.now = end;
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll(self.now) {
            match action {
                Action::Connect { id, .. } => self.stream = id,
                Action::Send { up, .. } => self.said.push(up),
                Action::Change(change) => {
                    self.session.set_in_use(self.now, &change.resource, Amount::ZERO);
                }
                other => panic!("{other:?}"),
            }
        }
        let _ = self.session.next_deadline();
    }

    /// The entries that were looked at in `call`, and how many messages it said.
    fn looks(&mut self, call: impl FnOnce(&mut Driven)) -> (u64, usize) {
        let before = LOOKED_AT.get();
        self.said.clear();
        call(self);
        (LOOKED_AT.get() - before, self.said.len())
    }
}

fn name(number: usize) -> ResourceId {
    ResourceId::new(format!("key-{number:06}"), 256).unwrap()
}

fn holding(wants: f64) -> HoldingConfig {
    let config = HoldingConfig::new(Kind::Gauge, wants, 0);
    HoldingConfig { fallback: Fallback::Pessimistic, surplus: Surplus::Yield, ..config }
}

fn wants(units: f64) -> Bands {
    [Band { priority: 0, subclients: 1, wants: units }].into_iter().collect()
}

/// The looks at entries for one message of each kind, and the messages that were said then.
fn looks_of_a_session(resources: usize) -> Vec<(&'static str, (u64, usize))> {
    const KEY: usize = 70;
    let mut driven = Driven::holding(resources);
    let mut looks = Vec::new();
    let mut of = |what, driven: &mut Driven, call: &dyn Fn(&mut Driven)| {
        let found = driven.looks(call);
        looks.push((what, found));
    };
    of("a grant", &mut driven, &|driven| {
        let grants = vec![driven.grant(KEY, 2)];
        driven.hear(Down::Grants(grants));
    });
    of("a use", &mut driven, &|driven| {
        driven.session.set_use(driven.now, &name(KEY), Amount::from_units(1), wants(1.0));
        driven.act();
    });
    of("a want, and its report", &mut driven, &|driven| {
        driven.session.set_bands(driven.now, &name(KEY), wants(9.0));
        driven.pass(Duration::from_millis(10));
    });
    of("a refusal of that", &mut driven, &|driven| {
        let id = driven.session.sent.last_id();
        driven.hear(Down::Refused { id, why: "for a test".to_owned() });
        driven.pass(Duration::from_millis(1));
    });
    of("units", &mut driven, &|driven| {
        driven.hear(Down::Units { resource: name(KEY), units: 1, keep: None });
    });
    of("a key that is new, and its report", &mut driven, &|driven| {
        driven.session.add(driven.now, name(usize::MAX), holding(1.0));
        driven.pass(Duration::from_millis(10));
    });
    of("a key that is given back, and its release", &mut driven, &|driven| {
        driven.session.remove(driven.now, &name(KEY + 1));
        driven.act();
    });
    of("the confirmation of that", &mut driven, &|driven| {
        let id = driven.session.sent.last_id();
        driven.hear(Down::Released { id });
    });
    of("a heartbeat", &mut driven, &|driven| driven.pass(Duration::from_secs(61)));
    looks
}

#[test]
fn the_work_for_a_message_does_not_grow_with_the_keys_that_are_held() {
    let few = looks_of_a_session(100);
    let many = looks_of_a_session(10_000);
    assert_eq!(few, many);
    for (what, (looks, said)) in many {
        println!("{what}: {looks} looks, {said} messages");
        assert!(looks > 0 || what == "a heartbeat" || what == "units", "{what} looks at nothing");
        assert!(looks <= 100, "{what} looks at {looks} entries");
    }
}

/// The looks at entries for the answer to a heartbeat, which renews all of them and is told to the program, by the number of them.
fn looks_of_a_renewal(resources: usize) -> u64 {
    let mut driven = Driven::holding(resources);
    let renew = |driven: &mut Driven| {
        driven.pass(Duration::from_secs(61));
        let (basis, grants) = (driven.session.sent.last_id(), driven.seq);
        driven.hear(Down::Renewed { basis, grants });
        // What the program has said of each by then is looked at with the next event.
        let again = driven.grant(0, 1);
        driven.hear(Down::Grants(vec![again]));
    };
    renew(&mut driven);
    let (looks, _) = driven.looks(renew);
    looks / resources as u64
}

#[test]
fn the_work_for_a_renewal_of_all_is_the_same_for_each_however_many_there_are() {
    let few = looks_of_a_renewal(100);
    let many = looks_of_a_renewal(10_000);
    println!("{few} and {many} looks at each");
    assert!(many <= few, "{many} looks at each of 10,000, and {few} at each of 100");
}

// === jobs ===

#[test]
fn of_jobs_nothing_is_said_unasked_and_each_thing_once() {
    let mut driven = Driven::holding(2);
    let said = |driven: &mut Driven| {
        driven.pass(Duration::from_millis(5));
        let jobs =
            driven.said.drain(..).filter_map(|up| if let Up::Jobs(jobs) = up { Some(jobs) } else { None });
        jobs.flatten().map(|news| (news.resource.to_string(), news.done, news.asks)).collect::<Vec<_>>()
    };
    let (millis, asks) =
        (Duration::from_millis, |ago| JobNews { resource: name(0), done: None, asks: Some(ago) });
    driven.session.job_done(&name(0), driven.now);
    driven.session.job_done(&name(99), driven.now);
    assert_eq!(said(&mut driven), [], "nobody has asked");
    driven.hear(Down::Jobs(vec![asks(millis(4))]));
    assert_eq!(said(&mut driven), [], "that one was done before");
    driven.hear(Down::Jobs(vec![asks(Duration::MAX)]));
    let of = name(0).to_string();
    assert_eq!(said(&mut driven), [(of.clone(), Some(millis(10)), None)]);
    driven.hear(Down::Jobs(vec![asks(Duration::MAX)]));
    assert_eq!(said(&mut driven), [], "it was told of that one");
    for _ in 0..10 {
        driven.session.job_done(&name(0), driven.now);
        driven.session.await_job(&name(0), driven.now);
    }
    assert_eq!(said(&mut driven).len(), 1, "both in one");
    driven.session.job_done(&name(0), driven.now);
    assert_eq!(said(&mut driven), [], "it is told once");
    let events = |driven: &mut Driven| std::iter::from_fn(|| driven.session.next_job()).collect::<Vec<_>>();
    assert_eq!(events(&mut driven).len(), 3, "for the program: that it was asked");
    let done = JobNews { resource: name(0), done: Some(millis(3)), asks: None };
    driven.hear(Down::Jobs(vec![done]));
    let at = driven.now.earlier(millis(3));
    assert_eq!(events(&mut driven), [JobEvent::Done { resource: name(0), at }]);
    // A grantor that was not told anything, at the end of another stream.
    driven.session.await_job(&name(1), driven.now);
    assert_eq!(said(&mut driven).len(), 1);
    driven.session.remove(driven.now, &name(0));
    assert!(driven.session.next_job().is_none());
}

// === units that were let pass ===

/// The units that the next heartbeat says, where it speaks of the resource.
fn said_of_units(driven: &mut Driven) -> Option<Option<Unenforced>> {
    driven.said.clear();
    driven.pass(Duration::from_secs(61));
    let (basis, grants) = (driven.session.sent.last_id(), driven.seq);
    driven.hear(Down::Renewed { basis, grants });
    let said = driven.said.iter().flat_map(|up| match up {
        Up::Report(report) => &report.reports[..],
        _ => &[],
    });
    let said: Vec<_> = said.map(|report| report.unenforced).collect();
    assert!(said.len() <= 1, "{said:?}");
    said.first().copied()
}

#[test]
fn units_that_were_let_pass_go_up_with_heartbeats_and_each_once() {
    let mut driven = Driven::holding(1);
    let units = |asked, passed| Unenforced { asked, passed, silent: 0 };
    let tell = |driven: &mut Driven, unenforced| {
        let basis = Some(driven.session.sent.last_id());
        let told = Grant { unenforced, basis, ..driven.grant(0, 1) };
        driven.hear(Down::Grants(vec![told]));
    };
    let count = |driven: &mut Driven, counted| driven.session.set_unenforced(&name(0), counted);
    assert_eq!(said_of_units(&mut driven), None, "a heartbeat speaks of nothing that is as it was");
    tell(&mut driven, true);
    assert_eq!(said_of_units(&mut driven), Some(Some(units(0, 0))), "it says that it counts");
    assert_eq!(said_of_units(&mut driven), None);
    count(&mut driven, units(5, 2));
    count(&mut driven, units(9, 2));
    assert_eq!(said_of_units(&mut driven), Some(Some(units(9, 2))));
    count(&mut driven, units(9, 2));
    assert_eq!(said_of_units(&mut driven), None);
    count(&mut driven, units(10, 3));
    assert_eq!(said_of_units(&mut driven), Some(Some(units(1, 1))));
    // Whoever counts has begun anew.
    count(&mut driven, units(4, 4));
    tell(&mut driven, false);
    assert_eq!(said_of_units(&mut driven), Some(Some(units(4, 4))), "what is left is said");
    assert_eq!(said_of_units(&mut driven), None);
    // Of a node, how many below are silent is said until nobody is.
    count(&mut driven, Unenforced { silent: 3, ..units(4, 4) });
    assert_eq!(said_of_units(&mut driven), Some(Some(Unenforced { silent: 3, ..units(0, 0) })));
    count(&mut driven, units(4, 4));
    assert_eq!(said_of_units(&mut driven), Some(Some(units(0, 0))));
    assert_eq!(said_of_units(&mut driven), None);
}

#[test]
fn units_that_were_let_pass_are_said_before_what_they_are_of_is_released() {
    let mut driven = Driven::holding(3);
    let units = |asked, passed| Unenforced { asked, passed, silent: 0 };
    driven.session.set_unenforced(&name(0), units(7, 3));
    driven.session.set_unenforced(&name(1), units(2, 2));
    driven.said.clear();
    for number in [0, 2] {
        driven.session.remove(driven.now, &name(number));
    }
    driven.act();
    let [Up::Report(last), Up::Release { id, resources }] = &driven.said[..] else {
        panic!("{:?}", driven.said)
    };
    let said: Vec<_> = last.reports.iter().map(|report| (&report.resource, report.unenforced)).collect();
    assert_eq!(said, [(&name(0), Some(units(7, 3)))], "what stays is said with its heartbeat");
    assert_eq!(resources[..], [name(0), name(2)]);
    let down = Down::Released { id: *id };
    driven.hear(down);
    assert!(!driven.session.is_empty());
    assert_eq!(said_of_units(&mut driven), Some(Some(units(2, 2))), "that of what was released is said once");
}

#[test]
fn units_that_are_let_pass_of_what_is_opened_again_before_it_was_released_are_said_once() {
    let mut driven = Driven::holding(2);
    let units = |asked, passed| Unenforced { asked, passed, silent: 0 };
    driven.session.set_unenforced(&name(0), units(7, 3));
    driven.said.clear();
    driven.session.remove(driven.now, &name(0));
    driven.session.add(driven.now, name(0), holding(1.0));
    // Whoever counts has begun anew, and goes on as the release is answered.
    driven.session.set_unenforced(&name(0), units(2, 1));
    driven.act();
    driven.session.set_unenforced(&name(0), units(5, 4));
    let [Up::Report(last), Up::Release { id, .. }] = &driven.said[..] else { panic!("{:?}", driven.said) };
    assert_eq!(last.reports[0].unenforced, Some(units(9, 4)));
    let down = Down::Released { id: *id };
    driven.said.clear();
    driven.hear(down);
    driven.session.set_unenforced(&name(0), units(6, 4));
    driven.pass(Duration::from_secs(61));
    let said = driven.said.iter().flat_map(|up| match up {
        Up::Report(report) => &report.reports[..],
        _ => &[],
    });
    let said = said.filter_map(|report| report.unenforced).fold(Unenforced::default(), Unenforced::with);
    assert_eq!(said, units(4, 3));
}
