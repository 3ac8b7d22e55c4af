//! Stories of one session, told in `tests/stories/`. `REWRITE=1 cargo test -p lessor-client --test stories` tells them
//! anew; the difference is to be reviewed.
//!
//! Each line is a moment and an event, or several; between two lines the session does by itself what its deadlines say. A story
//! starts with `session`, which may name servers, say `stream`, and say `node`; `run` goes on with it. The numbers in
//! `has 60 (1,2)` are the epoch and the sequence number. What happens on a stream is `down`, what comes of it `up`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Failure, Fallback, Kind, Transport};
use lessor_proto::message::{
    Answer, Ask, Down, Grant, HolderKind, Leader, Order, RefusedReport, Report, Up, Welcome,
};
use lessor_proto::{Amount, ClientId, Epoch, Features, Incarnation, ReportId, ResourceId, Time};

#[test]
fn stories_are_told_as_written() {
    datadriven::walk("tests/stories", |file| {
        let mut story = Story::new(&[], Transport::Poll, HolderKind::Client);
        file.run(|case| {
            match case.directive.as_str() {
                "session" => {
                    let servers = case.take_args("servers").unwrap_or_default();
                    let stream = case.take_flag("stream").unwrap();
                    let node = case.take_flag("node").unwrap();
                    let transport = if stream { Transport::Stream } else { Transport::Poll };
                    let kind = if node { HolderKind::Node } else { HolderKind::Client };
                    story = Story::new(&servers, transport, kind);
                }
                "run" => {}
                other => panic!("what is {other:?}?"),
            }
            story.tell(&case.input)
        });
    });
}

struct Story {
    session: Session,
    now: Time,
    /// The number of the request in flight.
    id: u64,
    /// The number of the last stream.
    stream: u64,
    said: String,
}

/// The words of one event, taken from the front.
struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

// === impl Story ===

impl Story {
    fn new(servers: &[String], transport: Transport, kind: HolderKind) -> Story {
        let mut servers: Vec<Arc<str>> = servers.iter().map(|server| server.as_str().into()).collect();
        if servers.is_empty() {
            servers.push("a".into());
        }
        let holder = ClientId::new("web-1", 256).unwrap();
        let config = SessionConfig { transport, kind, ..SessionConfig::new(holder, Incarnation(7), servers) };
        Story { session: Session::new(config), now: Time::ZERO, id: 0, stream: 0, said: String::new() }
    }

    fn tell(&mut self, events: &str) -> String {
        for line in events.lines().filter(|line| !line.trim().is_empty()) {
            let (time, event) = line.trim().split_once(' ').expect("a time and an event");
            self.wait_until(Time::ZERO + duration(time));
            event.split("; ").for_each(|event| self.happen(event));
            self.act();
        }
        std::mem::take(&mut self.said)
    }

    fn wait_until(&mut self, time: Time) {
        assert!(time >= self.now, "{time} is past");
        while self.session.next_deadline() <= time {
            self.now = self.now.max(self.session.next_deadline());
            self.act();
        }
        self.now = time;
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll(self.now) {
            let now = self.now;
            match action {
                Action::Change(change) => {
                    let allowance = text_of_allowance(change.allowance);
                    write!(self.said, "{now} {} {allowance}, {}", change.resource, change.rung.name())
                        .unwrap();
                    if let Some(fault) = change.fault {
                        write!(self.said, ": {fault}").unwrap();
                    }
                    self.said.push('\n');
                }
                Action::News(_) => panic!("nobody tells of domains"),
                Action::Ask { id, to, ask } => {
                    self.id = id.0;
                    writeln!(self.said, "{now} ask {id} to {to}: {}", text_of_ask(&ask)).unwrap();
                }
                Action::Connect { id, to, hello } => {
                    self.stream = id;
                    assert_eq!((hello.holder.as_str(), hello.incarnation), ("web-1", Incarnation(7)));
                    writeln!(self.said, "{now} connect {id} to {to}").unwrap();
                }
                Action::Send { id, up } => {
                    assert_eq!(id, self.stream, "there is one stream");
                    writeln!(self.said, "{now} up {id}: {}", text_of_up(&up)).unwrap();
                }
                Action::Disconnect { id } => writeln!(self.said, "{now} disconnect {id}").unwrap(),
                Action::Release { id, to, release } => {
                    self.id = id.0;
                    writeln!(self.said, "{now} release {id} to {to}: {:?}", release.resources).unwrap();
                }
            }
        }
    }

    fn happen(&mut self, event: &str) {
        let (now, id, session) = (self.now, self.id, &mut self.session);
        let mut words = Words(event.split_whitespace().peekable());
        match words.next() {
            "poll" => {}
            "add" => session.add(now, words.resource(), words.config()),
            "wants" => session.set_wants(now, &words.resource(), words.number()),
            "uses" => session.set_in_use(now, &words.resource(), Amount::from_f64(words.number())),
            "remove" => session.remove(now, &words.resource()),
            "close" => session.remove_all(now),
            "domains" => {
                let resource = words.resource();
                let stream = session.stream_of(&resource).map(|id| format!("stream {id}"));
                let stream = stream.unwrap_or_else(|| "no stream".to_owned());
                writeln!(self.said, "{now} domains of {resource} on {stream}").unwrap();
            }
            "loses" => session.lose_time(now, words.duration()),
            "grant" => {
                session.handle(now, session::Event::Answered { id: ReportId(id), answer: words.answer() });
            }
            "late" => {
                let id = words.next().parse().unwrap();
                session.handle(now, session::Event::Answered { id, answer: words.answer() });
            }
            "redirect" => {
                let leader = Leader { address: words.after("to").map(str::to_owned) };
                session.handle(
                    now,
                    session::Event::Answered { id: ReportId(id), answer: Answer::redirect(leader) },
                );
            }
            "released" => session.handle(now, session::Event::Released { id: ReportId(id), redirect: None }),
            "fail" => {
                let failure = Failure::Unreachable("connection refused".into());
                session.handle(now, session::Event::Failed { id: ReportId(id), failure });
            }
            "down" => {
                let stream = words.after("of").map_or(self.stream, |stream| stream.parse().unwrap());
                session.handle(now, session::Event::Down { id: stream, down: words.down() });
            }
            "breaks" => {
                let failure = Failure::Unreachable("connection reset".into());
                session.handle(now, session::Event::Closed { id: self.stream, failure });
            }
            "streamless" => session
                .handle(now, session::Event::Closed { id: self.stream, failure: Failure::Unimplemented }),
            "refuse" => {
                let failure = Failure::Refused(words.rest());
                session.handle(now, session::Event::Failed { id: ReportId(id), failure });
            }
            other => panic!("what is {other:?}?"),
        }
    }
}

// === impl Words ===

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        self.0.next().expect("another word")
    }

    fn rest(&mut self) -> String {
        self.0.by_ref().collect::<Vec<_>>().join(" ")
    }

    fn after(&mut self, key: &str) -> Option<&'a str> {
        self.0.next_if_eq(&key).map(|_| self.next())
    }

    fn number(&mut self) -> f64 {
        self.next().parse().expect("a number")
    }

    fn duration(&mut self) -> Duration {
        duration(self.next())
    }

    fn resource(&mut self) -> ResourceId {
        ResourceId::new(self.next(), 256).unwrap()
    }

    /// `[gauge] wants 100 [priority 2] [pessimistic|optimistic]`
    fn config(&mut self) -> HoldingConfig {
        let kind = self.0.next_if_eq(&"gauge").map_or(Kind::Rate, |_| Kind::Gauge);
        let wants = self.after("wants").expect("wants").parse().unwrap();
        let priority = self.after("priority").map_or(0, |priority| priority.parse().unwrap());
        let fallback = match self.0.next() {
            None => Fallback::Safe,
            Some("pessimistic") => Fallback::Pessimistic,
            Some("optimistic") => Fallback::Optimistic,
            Some(other) => panic!("what is {other:?}?"),
        };
        HoldingConfig { fallback, ..HoldingConfig::new(kind, wants, priority) }
    }

    /// `welcome 2 [closed] [beat 10s]`, `grant …`, `renewed 7 after 3`, `released 5`, `refused 5 why`, `redirect [to a]`.
    fn down(&mut self) -> Down {
        match self.next() {
            "welcome" => {
                let epoch = self.next().parse().unwrap();
                let claims_open = self.0.next_if_eq(&"closed").is_none();
                let claims_open_in = self.after("for").map(duration);
                let heartbeat = self.after("beat").map_or(Duration::from_secs(10), duration);
                let features = Features::CURRENT;
                Down::Welcome(Welcome { epoch, claims_open, claims_open_in, heartbeat, features })
            }
            "grant" => Down::Grants(self.answer().grants),
            "renewed" => {
                let basis = self.next().parse().unwrap();
                let grants = self.after("after").expect("after").parse().unwrap();
                Down::Renewed { basis, grants }
            }
            "released" => Down::Released { id: self.next().parse().unwrap() },
            "refused" => Down::Refused { id: self.next().parse().unwrap(), why: self.rest() },
            "redirect" => Down::Redirect(Leader { address: self.after("to").map(str::to_owned) }),
            other => panic!("what is {other:?}?"),
        }
    }

    /// `[epoch 2] [retry 1s] db 60 for 60s refresh 5s [seq 1] [basis 3] [safe 5] [ack] [floor] [learning] db2 … [refused db3 why]`: a grant without `seq` is one
    /// of Doorman's servers.
    fn answer(&mut self) -> Answer {
        let epoch = self.after("epoch").map(|epoch| epoch.parse().unwrap());
        let retry = self.after("retry").map(duration);
        let mut answer = Answer { epoch, retry, ..Answer::default() };
        while self.0.peek().is_some() {
            if self.0.next_if_eq(&"refused").is_some() {
                let resource = self.resource().to_string();
                answer.refused.push(RefusedReport { index: 0, resource, code: 5, reason: self.rest() });
                continue;
            }
            answer.grants.push(Grant {
                resource: self.resource(),
                capacity: Amount::from_f64(self.number()),
                length: self.after("for").map_or(Duration::from_secs(60), duration),
                refresh_interval: self.after("refresh").map_or(Duration::from_secs(5), duration),
                order: self
                    .after("seq")
                    .map(|seq| Order { epoch: epoch.unwrap_or(Epoch(1)), seq: seq.parse().unwrap() }),
                basis: self.after("basis").map(|basis| basis.parse().unwrap()),
                token: Vec::new(),
                safe_capacity: self.after("safe").map(|safe| safe.parse().unwrap()),
                ack_wanted: self.0.next_if_eq(&"ack").is_some(),
                safe_leased: self.0.next_if_eq(&"floor").is_some(),
                burst: None,
                learning: self.0.next_if_eq(&"learning").is_some(),
                learning_left: None,
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
            });
        }
        answer
    }
}

// === texts ===

fn duration(text: &str) -> Duration {
    let (number, unit) =
        text.split_at(text.find(|c: char| c.is_alphabetic()).expect("a duration with a unit"));
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        other => panic!("what is {other:?}?"),
    };
    Duration::from_secs_f64(number.parse::<f64>().unwrap() * seconds)
}

fn text_of_allowance(allowance: Allowance) -> String {
    match (allowance.capacity, allowance.until) {
        (Some(Amount::ZERO), _) => "nothing".to_owned(),
        (Some(capacity), Time::MAX) => format!("{capacity} from here on"),
        (Some(capacity), until) => format!("{capacity} until {until}"),
        (None, _) => "without limit".to_owned(),
    }
}

fn text_of_ask(ask: &Ask) -> String {
    text_of_reports(&ask.reports, ask.target_epoch.map(u64::from))
}

fn text_of_up(up: &Up) -> String {
    match up {
        Up::Hello(_) => panic!("the driver says hello"),
        Up::Report(report) => {
            let kind = if report.renew_all { "heartbeat" } else { "report" };
            let colon = if report.reports.is_empty() { "" } else { ": " };
            let reports = text_of_reports(&report.reports, report.target_epoch.map(u64::from));
            format!("{kind} {}{colon}{reports}", report.id)
        }
        Up::Release { id, resources } => format!("release {id}: {resources:?}"),
        Up::Domains(_) | Up::Units(_) | Up::View(_) | Up::Jobs(_) => {
            panic!("nobody tells of domains, asks for units, or is looked at")
        }
        Up::Bye => "bye".to_owned(),
    }
}

fn text_of_reports(reports: &[Report], epoch: Option<u64>) -> String {
    let reports: Vec<_> = reports.iter().map(text_of_report).collect();
    let epoch = epoch.map_or(String::new(), |epoch| format!(" [of epoch {epoch}]"));
    reports.join("; ") + &epoch
}

fn text_of_report(report: &Report) -> String {
    let mut text = format!("{} wants {}", report.resource, report.bands[0].wants);
    if report.bands[0].priority != 0 {
        write!(text, " priority {}", report.bands[0].priority).unwrap();
    }
    if let Some(has) = &report.has {
        write!(text, " has {}", has.capacity).unwrap();
        if let Some(order) = has.order {
            write!(text, " ({},{})", order.epoch, order.seq).unwrap();
        }
    }
    if let Some(held) = report.held {
        write!(text, " held {held}").unwrap();
    }
    text
}
