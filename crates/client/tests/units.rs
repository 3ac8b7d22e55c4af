//! Units of a gauge between a session, a gauge and threads that take permits at the worst moment.
//!
//! A driver is played step by step. Between any two of its steps others take every permit that there is; each story is told
//! once for each such moment. What a report promises has to hold from the moment in which it is built, whatever others do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use lessor_client::internals::gauge::Semaphore;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Kind, Permit, Transport};
use lessor_proto::message::{Answer, Ask, Down, Grant, HolderKind, Order, Report, Up, Welcome};
use lessor_proto::{Amount, ClientId, Epoch, Features, Incarnation, ReportId, ResourceId, Time};

/// The times at which a driver reads the units in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    /// By a timer, and after each change of an allowance, before it does anything else.
    AfterChanges,
    /// By a timer only.
    ByTimer,
}

struct Program {
    session: Session,
    gauge: Semaphore,
    now: Time,
    reading: Reading,
    permits: Vec<Permit>,
    /// Steps until others take all that there is.
    steps_left: usize,
    /// The last promise, and the grant that it is about.
    promised: Option<(Order, Amount)>,
    asked: u64,
    stream: u64,
}

fn pool() -> ResourceId {
    ResourceId::new("pool", 256).unwrap()
}

fn second(seconds: u64) -> Time {
    Time::ZERO + Duration::from_secs(seconds)
}

/// Grant `seq`, to be acknowledged if it is not the first.
fn grant(units: u64, seq: u64, basis: u64) -> Grant {
    Grant {
        resource: pool(),
        capacity: Amount::from_units(units),
        length: Duration::from_secs(60),
        refresh_interval: Duration::from_secs(5),
        order: Some(Order { epoch: Epoch(1), seq }),
        basis: Some(ReportId(basis)),
        token: Vec::new(),
        ack_wanted: seq > 1,
        safe_leased: false,
        learning: false,
        learning_left: None,
        safe_capacity: None,
        burst: None,
        due: None,
        window: None,
        generation: None,
        sharing: None,
        domains: None,
        before: None,
        earlier: None,
        bound_by: None,
        unenforced: false,
        beside: false,
    }
}

// === impl Program ===

impl Program {
    /// Holds ten units, of which none is in use, and has said so.
    fn new(transport: Transport, reading: Reading, steps_left: usize) -> Program {
        let holder = ClientId::new("web", 256).unwrap();
        let config =
            SessionConfig { transport, ..SessionConfig::new(holder, Incarnation(1), vec!["a".into()]) };
        let mut program = Program {
            session: Session::new(config),
            gauge: Semaphore::default(),
            now: second(0),
            reading,
            permits: Vec::new(),
            steps_left: usize::MAX,
            promised: None,
            asked: 0,
            stream: 0,
        };
        program.session.add(program.now, pool(), HoldingConfig::new(Kind::Gauge, 10.0, 0));
        program.act();
        program.hear(10, 1);
        program.act();
        program.now = second(1);
        program.observe();
        program.act();
        program.steps_left = steps_left;
        program
    }

    /// The moment between two steps.
    fn step(&mut self) {
        match self.steps_left.checked_sub(1) {
            Some(left) => self.steps_left = left,
            None => self.take_all(),
        }
    }

    /// Others take all that there is, once.
    fn take_all(&mut self) {
        let now = self.now;
        while let Ok(permit) = self.gauge.try_acquire(1, || now) {
            self.permits.push(permit);
        }
        self.steps_left = usize::MAX;
    }

    fn observe(&mut self) {
        let in_use = Amount::from_units(self.gauge.in_use().into());
        self.step();
        self.session.set_in_use(self.now, &pool(), in_use);
        self.step();
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll(self.now) {
            self.step();
            match action {
                Action::Change(change) => {
                    self.gauge.allow(self.now, change.allowance);
                    self.step();
                    if self.reading == Reading::AfterChanges {
                        let in_use = Amount::from_units(self.gauge.in_use().into());
                        self.step();
                        self.session.set_in_use(self.now, &change.resource, in_use);
                    }
                }
                Action::Ask { id, ask: Ask { reports, .. }, .. } => self.promise(id.0, &reports),
                Action::Connect { id, .. } => {
                    self.stream = id;
                    let welcome = Welcome {
                        epoch: Epoch(1),
                        claims_open: true,
                        claims_open_in: None,
                        heartbeat: Duration::from_secs(100),
                        features: Features::CURRENT,
                    };
                    self.session.handle(self.now, session::Event::Down { id, down: Down::Welcome(welcome) });
                }
                Action::Send { up: Up::Report(report), .. } => self.promise(report.id.0, &report.reports),
                other => panic!("what for: {other:?}"),
            }
            self.step();
        }
    }

    fn promise(&mut self, id: u64, reports: &[Report]) {
        self.asked = id;
        for report in reports {
            let order = report.has.as_ref().and_then(|has| has.order);
            self.promised = order.zip(report.held).or(self.promised);
        }
        self.check();
    }

    /// The grantor grants so much.
    fn hear(&mut self, units: u64, seq: u64) {
        let grant = grant(units, seq, self.asked);
        match self.session.transport() {
            Transport::Stream => self
                .session
                .handle(self.now, session::Event::Down { id: self.stream, down: Down::Grants(vec![grant]) }),
            Transport::Poll => {
                self.session.handle(
                    self.now,
                    session::Event::Answered {
                        id: ReportId(self.asked),
                        answer: Answer { grants: vec![grant], ..Answer::default() },
                    },
                );
            }
        }
        self.step();
    }

    /// Checks that what is in use keeps to what was promised.
    fn check(&self) {
        if let Some((_, held)) = self.promised {
            let in_use = Amount::from_units(self.gauge.in_use().into());
            assert!(in_use <= held, "{in_use} in use, {held} promised");
        }
    }

    /// The promise, after others have taken all that they can get.
    fn promised(&mut self) -> u64 {
        self.take_all();
        self.check();
        self.promised.unwrap().1.floor_units()
    }
}

/// Tells a story once for each moment in which others may take all there is, and collects what is promised at its end.
fn at_every_moment(transport: Transport, reading: Reading, story: impl Fn(&mut Program)) -> Vec<u64> {
    let mut promises = Vec::new();
    for steps in 0..40 {
        let mut program = Program::new(transport, reading, steps);
        story(&mut program);
        promises.push(program.promised());
    }
    promises.sort_unstable();
    promises.dedup();
    promises
}

/// Ten are leased, and then four.
fn recalled(program: &mut Program) {
    // Over a stream grants come unasked, and otherwise with the answer to a question.
    if program.session.transport() == Transport::Poll {
        program.now = second(5);
        program.act();
    }
    program.hear(4, 2);
    program.act();
    for seconds in 6..10 {
        program.now = second(seconds);
        program.observe();
        program.act();
        if program.session.transport() == Transport::Poll {
            program.hear(4, seconds);
            program.act();
        }
    }
}

/// Ten are leased, and only three wanted any more.
fn less_wanted(program: &mut Program) {
    program.now = second(2);
    program.session.set_wants(program.now, &pool(), 3.0);
    program.step();
    program.act();
}

#[test]
fn what_is_recalled_is_promised_after_the_limit_was_lowered() {
    for transport in [Transport::Stream, Transport::Poll] {
        let promises = at_every_moment(transport, Reading::AfterChanges, recalled);
        assert_eq!(
            promises,
            [4, 10],
            "{transport:?}: given up where nothing was taken, and kept where it was"
        );
    }
}

#[test]
fn what_is_not_wanted_any_more_is_given_back_after_the_limit_was_lowered() {
    for transport in [Transport::Stream, Transport::Poll] {
        let promises = at_every_moment(transport, Reading::AfterChanges, less_wanted);
        assert_eq!(
            promises,
            [3, 10],
            "{transport:?}: given back where nothing was taken, and kept where it was"
        );
    }
}

#[test]
fn a_driver_that_does_not_read_after_a_change_promises_no_more_than_it_keeps() {
    for transport in [Transport::Stream, Transport::Poll] {
        assert_eq!(at_every_moment(transport, Reading::ByTimer, recalled), [4, 10], "{transport:?}");
        at_every_moment(transport, Reading::ByTimer, less_wanted);
    }
}

#[test]
fn a_node_says_itself_what_it_has_handed_out() {
    let holder = ClientId::new("paris", 256).unwrap();
    let config = SessionConfig {
        kind: HolderKind::Node,
        ..SessionConfig::new(holder, Incarnation(1), vec!["a".into()])
    };
    let mut session = Session::new(config);
    session.add(second(0), pool(), HoldingConfig::new(Kind::Gauge, 10.0, 0));
    let mut ids = Vec::new();
    let mut held = None;
    for (seconds, units) in [(0, 10), (5, 4), (10, 4)] {
        let now = second(seconds);
        while let Some(action) = session.poll(now) {
            if let Action::Ask { id, ask, .. } = action {
                ids.push(id);
                held = ask.reports[0].held;
                let grants = vec![grant(units, seconds + 1, id.0)];
                session.handle(
                    now,
                    session::Event::Answered { id, answer: Answer { grants, ..Answer::default() } },
                );
            }
        }
    }
    assert_eq!((ids.len() >= 3, held), (true, Some(Amount::from_units(4))), "nothing was handed out");
}
