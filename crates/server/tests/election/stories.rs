//! Stories of one candidate, told in `tests/election/stories/`. `REWRITE=1 cargo test -p lessor-server --test election`
//! tells them anew; the difference is to be reviewed.
//!
//! Each line is a moment and an event, or several; between two lines the candidate does by itself what its deadlines say,
//! except before a moment with `!`: until then the process was frozen. A story starts with `task`; `run` goes on with it. The task is `a`, and its leases are numbered from 5 on. A call is answered by
//! its name and what came of it: `look free`, `campaign won 7`, `write fails timeout`. After `etcd hears` keep-alives and
//! looks of a leader are answered at once and not told, until `etcd silent`; events have a star. Whoever is followed says at
//! once what its clock shows, after `clocks silent` no more. `aside 60s` is to leave it to others to lead for so long, and
//! `stand` to stand again; `handover 10s` is to resign and to stand again after so long.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use lessor_proto::{Amount, Epoch, ResourceId, Time};
use lessor_server::election::call::{Action, Answer, Call, Failure, LeaseId, Stored, Watched};
use lessor_server::election::{Candidate, ElectionConfig, Event};
use lessor_server::record::{Record, RecordChange, Terms, Unknown};

#[test]
fn stories_are_told_as_written() {
    datadriven::walk("tests/election/stories", |file| {
        let mut story = Story::new();
        file.run(|case| {
            match case.directive.as_str() {
                "task" => story = Story::new(),
                "run" => {}
                other => panic!("what is {other:?}?"),
            }
            story.tell(&case.input)
        });
    });
}

#[test]
fn an_authority_that_outlasts_the_lease_is_refused() {
    let config =
        ElectionConfig { authority: Duration::from_millis(9_900), ..ElectionConfig::new("root", "a:1", 1) };
    let bad = Candidate::new(Time::ZERO, config).unwrap_err().to_string();
    assert_eq!(bad, "authority 9.9s needs a lease of 10.1s or more at etcd, ttl is 10s");
    let config = ElectionConfig { node: String::new(), ..ElectionConfig::new("root", "a:1", 1) };
    let bad = Candidate::new(Time::ZERO, config).unwrap_err().to_string();
    assert_eq!(bad, "node \"\" must be some text without control characters");
}

struct Story {
    candidate: Candidate,
    now: Time,
    /// The number of the last call of each name.
    calls: BTreeMap<&'static str, u64>,
    hears: bool,
    /// Leaders do not say what their clocks show.
    deaf: bool,
    lease: i64,
    epoch: u64,
    said: String,
}

struct Words<'a>(std::iter::Peekable<std::str::SplitWhitespace<'a>>);

const NONCE: u64 = 0xa1;

// === impl Story ===

impl Story {
    fn new() -> Story {
        let candidate = Candidate::new(Time::ZERO, ElectionConfig::new("root", "a:1", NONCE)).unwrap();
        Story {
            candidate,
            now: Time::ZERO,
            calls: BTreeMap::new(),
            hears: false,
            deaf: false,
            lease: 4,
            epoch: 0,
            said: String::new(),
        }
    }

    fn tell(&mut self, events: &str) -> String {
        for line in events.lines().filter(|line| !line.trim().is_empty()) {
            let (time, event) = line.trim().split_once(' ').expect("a time and an event");
            match time.strip_suffix('!') {
                Some(time) => self.now = Time::ZERO + duration(time),
                None => self.wait_until(Time::ZERO + duration(time)),
            }
            for event in event.split("; ") {
                self.happen(event);
                self.act();
            }
        }
        std::mem::take(&mut self.said)
    }

    fn wait_until(&mut self, time: Time) {
        assert!(time >= self.now, "{time} is past");
        while self.candidate.next_deadline() <= time {
            self.now = self.now.max(self.candidate.next_deadline());
            self.act();
        }
        self.now = time;
    }

    fn act(&mut self) {
        loop {
            let action = self.candidate.poll(self.now);
            if !self.deaf {
                self.candidate.hear_clock(Epoch::default(), self.now, self.now);
            }
            while let Some(event) = self.candidate.next_event() {
                self.note(&text_of_event(&event));
            }
            match action {
                Some(action) => self.perform(action),
                None => return,
            }
        }
    }

    fn perform(&mut self, action: Action) {
        let (name, id, text) = match action {
            Action::Call { id, call } => {
                if self.hears && self.is_heard(id, &call) {
                    return;
                }
                (name_of(&call), id, text_of_call(&call))
            }
            Action::Watch { id, key, from_revision } => {
                assert_eq!(key, "lessor/root/leader");
                ("watch", id, format!("watch from {from_revision}"))
            }
            Action::Unwatch { id } => {
                assert_eq!(id, self.calls["watch"]);
                return self.note("unwatch");
            }
        };
        self.calls.insert(name, id);
        self.note(&text);
    }

    /// A leader that is heard.
    fn is_heard(&mut self, id: u64, call: &Call) -> bool {
        let answer = match call {
            Call::KeepAlive { .. } => Answer::KeptAlive { ttl: Duration::from_secs(10) },
            Call::Read { .. } => {
                Answer::Read { stored: Some(self.key("a", self.epoch, self.lease)), revision: self.epoch }
            }
            _ => return false,
        };
        self.candidate.on_answer(self.now, id, Ok(answer));
        true
    }

    fn happen(&mut self, event: &str) {
        let mut words = Words(event.split_whitespace().peekable());
        match words.next() {
            "poll" => {}
            "etcd" => self.hears = words.next() == "hears",
            "clocks" => self.deaf = words.next() == "silent",
            "resign" => self.candidate.resign(self.now),
            "aside" => self.candidate.stand_aside(self.now, duration(words.next())),
            "handover" => {
                let has_led = self.candidate.hand_over(self.now, duration(words.next()));
                self.note(if has_led { "hands over" } else { "has nothing to hand over" });
            }
            "stand" => self.candidate.stand_again(self.now),
            "authority" => {
                let until = self.candidate.authority_until();
                self.note(
                    &until.map_or("no authority".to_owned(), |until| format!("authority until {until}")),
                );
            }
            "let" => {
                let change = words.record_change();
                let ticket = self.candidate.write(self.now, None, change);
                self.note(&ticket.map_or("not written".to_owned(), |ticket| format!("{ticket:?} begins")));
            }
            "watch" => {
                let watched = match words.next() {
                    "put" => Watched::Put(self.held(&mut words).0),
                    "gone" => Watched::Deleted,
                    "compacted" => Watched::Compacted,
                    "ends" => Watched::Ended(Failure::Unavailable("the watch has ended".to_owned())),
                    other => panic!("what is {other:?}?"),
                };
                self.candidate.on_watched(self.now, self.calls["watch"], watched);
            }
            name => {
                let id = *self.calls.get(name).unwrap_or_else(|| panic!("no {name:?} was made"));
                let result = match words.0.next_if_eq(&"fails") {
                    Some(_) => Err(words.failure()),
                    None => Ok(self.answer(name, &mut words)),
                };
                self.candidate.on_answer(self.now, id, result);
            }
        }
    }

    fn answer(&mut self, name: &str, words: &mut Words<'_>) -> Answer {
        match (name, words.next()) {
            ("look", "free") => Answer::Read { stored: None, revision: words.number() },
            ("look", "held") => {
                let (stored, revision) = self.held(words);
                Answer::Read { stored: Some(stored), revision }
            }
            ("grant", ttl) => {
                self.lease += 1;
                Answer::Granted { lease: LeaseId(self.lease), ttl: duration(ttl) }
            }
            ("campaign", "won") => {
                self.epoch = words.number();
                Answer::Won { revision: self.epoch }
            }
            ("campaign", "lost") => {
                let (by, revision) = self.held(words);
                Answer::Held { by, revision }
            }
            ("keep", "alive") => Answer::KeptAlive { ttl: duration(words.next()) },
            ("keep", "gone") => Answer::KeptAlive { ttl: Duration::ZERO },
            ("record", "empty") => Answer::Record { stored: Vec::new(), more: false, cluster: None },
            ("record", "of") => {
                let mut stored = vec![header(words.number(), words)];
                for mark in words.0.by_ref() {
                    let (resource, millionths) = mark.split_once('=').unwrap();
                    let value = format!("1 millionths {millionths}");
                    stored.push(key(&format!("lessor/root/mark/{resource}"), &value, 3, 3, None));
                }
                Answer::Record { stored, more: false, cluster: None }
            }
            ("record", "broken") => {
                let broken = key("lessor/root/reign", "9 something of a later version", 3, 3, None);
                Answer::Record { stored: vec![broken], more: false, cluster: None }
            }
            ("write", "done") => Answer::Written { revision: words.number() },
            // Refused: the key is ours, and the last write in the record is that of the epoch, its number `write`.
            ("write", "behind") => {
                let epoch = words.number();
                let write = words.number();
                let value = format!(
                    "1 epoch {epoch} write {write} longest_lease_ns 0 authority_ns 0 closed no config_version 0"
                );
                let order = key("lessor/root/reign", &value, 3, words.number(), None);
                Answer::Refused { guard: Some(self.key("a", self.epoch, self.lease)), order: Some(order) }
            }
            ("write", "deposed") => Answer::Refused { guard: None, order: None },
            ("revoke", "done") => Answer::Revoked,
            (name, other) => panic!("what is {name} {other:?}?"),
        }
    }

    /// `b 7 at 9`: by whom, since which revision, read at which; `a 7 under 5 at 9`: by this task with that lease.
    fn held(&self, words: &mut Words<'_>) -> (Stored, u64) {
        let (by, created) = (words.next(), words.number());
        let lease = words.after("under").map_or(1, |lease| lease.parse().unwrap());
        let revision = words.after("at").map_or(created, |revision| revision.parse().unwrap());
        (self.key(by, created, lease), revision)
    }

    #[expect(clippy::unused_self, reason = "reads like the rest")]
    fn key(&self, by: &str, created: u64, lease: i64) -> Stored {
        let nonce = if by == "a" { NONCE } else { 0xff };
        let address = by.trim_start_matches("old-");
        let value = format!("1 nonce {nonce:016x} address {address}:1");
        key("lessor/root/leader", &value, created, created, Some(LeaseId(lease)))
    }

    fn note(&mut self, text: &str) {
        writeln!(self.said, "{} {text}", self.now).unwrap();
    }
}

// === impl Words ===

impl<'a> Words<'a> {
    fn next(&mut self) -> &'a str {
        self.0.next().expect("another word")
    }

    fn after(&mut self, key: &str) -> Option<&'a str> {
        self.0.next_if_eq(&key).map(|_| self.next())
    }

    fn number(&mut self) -> u64 {
        self.next().parse().expect("a number")
    }

    fn failure(&mut self) -> Failure {
        match self.next() {
            "timeout" => Failure::Timeout,
            "unavailable" => Failure::Unavailable("connection refused".to_owned()),
            "lease" => Failure::LeaseNotFound,
            "refused" => Failure::Refused(self.0.by_ref().collect::<Vec<_>>().join(" ")),
            other => panic!("what is {other:?}?"),
        }
    }

    /// `db=7 mail=gone lease=60s`: marks in millionths.
    fn record_change(&mut self) -> RecordChange {
        let mut change = RecordChange::default();
        for item in self.0.by_ref() {
            let (name, value) = item.split_once('=').unwrap();
            let resource = ResourceId::new(name, 256).unwrap();
            match (name, value) {
                ("lease", length) => {
                    let (longest_lease, authority) = (duration(length), Duration::from_secs(4));
                    let longest_safe_lease = Duration::ZERO;
                    change.terms = Some(Terms {
                        longest_lease,
                        longest_safe_lease,
                        authority,
                        config_version: 1,
                        unknown: Unknown::Nothing,
                        rest_over: None,
                    });
                }
                (_, "gone") => {
                    change.deletes.insert(resource);
                }
                (_, mark) => {
                    change.marks.insert(resource, Amount::from_micros(mark.parse().unwrap()));
                }
            }
        }
        change
    }
}

// === texts ===

/// `[closed] [authority 4s]`: the header of a record of epoch `epoch`, put at revision 3.
fn header(epoch: u64, words: &mut Words<'_>) -> Stored {
    let closed = words.0.next_if_eq(&"closed").map_or("no", |_| "yes");
    let authority = words.after("authority").map_or(Duration::from_secs(4), duration).as_nanos();
    let value = format!(
        "1 epoch {epoch} write 1 longest_lease_ns 60000000000 authority_ns {authority} closed {closed} config_version 2"
    );
    key("lessor/root/reign", &value, 3, 3, None)
}

fn key(key: &str, value: &str, create_revision: u64, mod_revision: u64, lease: Option<LeaseId>) -> Stored {
    Stored { key: key.into(), value: value.into(), create_revision, mod_revision, lease }
}

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

fn name_of(call: &Call) -> &'static str {
    match call {
        Call::GrantLease { .. } => "grant",
        Call::KeepAlive { .. } => "keep",
        Call::Put { .. } => "put",
        Call::Campaign { .. } => "campaign",
        Call::Read { .. } => "look",
        Call::ReadRecord { .. } => "record",
        Call::Write(_) => "write",
        Call::Revoke { .. } => "revoke",
    }
}

fn text_of_call(call: &Call) -> String {
    match call {
        Call::GrantLease { ttl } => format!("grant {ttl:?}"),
        Call::KeepAlive { lease } => format!("keep alive {}", lease.0),
        Call::Campaign { lease, key, value } => format!("campaign under {}: {key} = {value}", lease.0),
        Call::Put { key, .. } => format!("put {key}"),
        Call::Read { .. } => "look".to_owned(),
        Call::ReadRecord { prefix, after, limit } => {
            assert_eq!((after, *limit), (&None, 500));
            format!("record {prefix}")
        }
        Call::Write(txn) => {
            let mut text =
                format!("write of {} behind {}", txn.guard.create_revision, txn.order.mod_revision);
            for (key, value) in &txn.puts {
                write!(text, "; {} = {value}", key.trim_start_matches("lessor/root/")).unwrap();
            }
            for key in &txn.deletes {
                write!(text, "; no {}", key.trim_start_matches("lessor/root/")).unwrap();
            }
            text
        }
        Call::Revoke { lease } => format!("revoke {}", lease.0),
    }
}

fn text_of_event(event: &Event) -> String {
    match event {
        Event::Elected { epoch, record } => format!("* elected, {epoch}: {}", text_of_record(record)),
        Event::Leader(Some(leader)) => format!("* {} leads, {}", leader.address, leader.revision),
        Event::Leader(None) => "* nobody leads".to_owned(),
        Event::Faulty(why) => format!("* faulty: {why}"),
        other => format!("* {}", format!("{other:?}").to_lowercase()),
    }
}

fn text_of_record(record: &Record) -> String {
    if record.is_first() {
        return "the first".to_owned();
    }
    let closed = if record.closed { "closed" } else { "open" };
    format!(
        "after {}, {closed}, leases {:?}, authority {:?}, marks {:?}",
        record.epoch, record.longest_lease, record.authority, record.marks
    )
}
