//! The state of a server that is alone: the record that elected leaders keep in etcd, in one file.
//!
//! ```text
//! lessor state 1
//! boot 5f0c1d0e-3c1b-4f0a-9d57-1f6ad0f1a8b2 4026531834
//! clock_ns 86400000000000
//! state/root/epoch<TAB>1 epoch 117309440000000 write 3 longest_lease_ns 60000000000 authority_ns 0 closed no config_version 2 line 55770067919
//! state/root/mark/orders<TAB>1 millionths 120000000
//! blake3 1b0e…
//! ```
//!
//! Keys and values are those of [`record`](super::record). The file is written as a whole, and the last line seals all
//! before it, so that a part of one, or of two, is not taken for a record. To a long one changes are added
//! (`state/growth.rs`). `boot` says since which start of the machine its clock has gone on, and `clock_ns` what that
//! clock showed: a server that reads both in the same start knows by its own clock how long ago everything was. `line` is
//! drawn when the record begins: a node below another says it there, as all servers that go on from one record succeed
//! each other.

mod growth;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use lessor_proto::{Epoch, Time};

use super::call::Stored;
use super::record::{BadRecord, EarlierStops, FORM, Mark, RecordHeader, RecordKeys, Rest, next_epoch};
use crate::record::{EarlierStop, Record, RecordChange, RestOver, Terms, Unknown};

pub use self::growth::{FILE_NAME, FileWrite, Growth};
use self::growth::{GROWING, WrittenForm};

/// The record of one node in a file.
#[derive(Clone, Debug)]
pub struct State {
    keys: RecordKeys,
    header: RecordHeader,
    /// The marks, and what is known of earlier leaders, by key.
    marks: BTreeMap<String, String>,
}

/// The clock of a machine, and since which start it has gone on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Clock {
    /// The start of the machine; absent: it cannot be told from others.
    pub boot: Option<String>,
    /// The reading of the clock.
    pub at: Time,
}

/// Why a text is not the state of a node.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadState {
    /// It is empty, cut off, or was changed.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It is that of another node.
    #[error("it is of node {found:?}, and this is node {wanted:?}")]
    Foreign {
        /// Of that one.
        found: String,
        /// Of this one.
        wanted: String,
    },
    /// It is of a form that a later version writes.
    #[error("a later version has written it: form {0}, and this one reads form {GROWING}")]
    Later(u32),
    /// A value in it makes no sense.
    #[error("it is damaged: {0}")]
    Record(#[from] BadRecord),
}

/// The beginning of a file, before the number of its form.
const TITLE: &str = "lessor state ";
const PREFIX: &str = "state";
/// The beginning of a line that seals all before it.
const SEAL: &str = "blake3 ";

// === impl State ===

impl State {
    /// That of a node of which nothing is known, in its first epoch: the date is `date`, in milliseconds, and `line` a random
    /// number.
    #[must_use]
    pub fn begin(node: &str, line: u64, date: u64) -> State {
        let mut state = State {
            keys: RecordKeys::new(PREFIX, node),
            header: RecordHeader {
                epoch: Epoch::default(),
                write: 0,
                closed: false,
                terms: Terms::default(),
                line,
                first_epoch: Epoch::default(),
            },
            marks: BTreeMap::new(),
        };
        state.header.terms.unknown = Unknown::All;
        state.succeed(date, Vec::new());
        state
    }

    /// That of a node of which nothing is known, before its first epoch, and what it says. Whoever bore the name before is
    /// somebody else to the node above.
    #[must_use]
    pub fn of_nobody(node: &str, line: u64) -> (State, Record) {
        let mut state = State::begin(node, line, 0);
        state.header.first_epoch = Epoch::default();
        (state, Record { unknown: Unknown::All, ..Record::default() })
    }

    /// Returns the state in the file of `node`, and the record that it leaves to a process that has the directory
    /// to itself, on a machine whose clock shows `machine`: nobody acts any more who wrote it there.
    ///
    /// # Errors
    /// When it is damaged, or of another node.
    pub fn left(bytes: &[u8], node: &str, machine: &Clock) -> Result<(State, Record), BadState> {
        let (state, written) = State::decode(text_of(bytes)?, node)?;
        let read = state.read()?;
        let unsure = !machine.has_gone_on_since(&written);
        // By the same clock some of what was left from before is over; after another start all of it counts from here.
        let passed = if unsure { Duration::ZERO } else { machine.at.since(written.at) };
        let [lease, safe_lease] =
            [read.rest_over.lease, read.rest_over.safe_lease].map(|over| over.saturating_sub(passed));
        let rest_over = RestOver { lease, safe_lease };
        let record = Record { authority: Duration::ZERO, unsure, rest_over, ..read };
        Ok((state, record.stopped_at((!unsure).then_some(machine.at))))
    }

    /// Another epoch begins, above all that went before. Its leader knows that those of `earlier` have stopped: that is written
    /// with its beginning, or nobody would know it any more when it dies before it has written anything else.
    pub fn succeed(&mut self, date: u64, earlier: Vec<EarlierStop>) {
        let epoch = next_epoch(self.header.epoch, date);
        // All that is out may be claimed and renewed.
        let terms = Terms { rest_over: None, ..self.header.terms };
        let is_first = self.header.write == 0 && self.header.first_epoch == Epoch::default();
        let first_epoch = if is_first { epoch } else { self.header.first_epoch };
        self.header = RecordHeader { epoch, write: 0, closed: false, terms, first_epoch, ..self.header };
        self.name_earlier(earlier);
    }

    /// The number of its last epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.header.epoch
    }

    /// The line of succession of all who go on from this record.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.header.line
    }

    /// Changes it as a leader wants it changed.
    pub fn apply(&mut self, change: &RecordChange) {
        self.header.write += 1;
        self.header.terms = change.terms.unwrap_or(self.header.terms);
        for (resource, &amount) in &change.marks {
            let epoch = self.header.epoch;
            let rest = change.rests.get(resource).map(|&amount| Rest { amount, epoch });
            let kind = change.kinds.get(resource).copied();
            let mark = Mark { amount, kind, rest, proof: change.proofs.get(resource).cloned() };
            self.marks.insert(self.keys.mark(resource), mark.encode());
        }
        if let Some(earlier) = &change.earlier {
            self.name_earlier(earlier.clone());
        }
        for resource in &change.deletes {
            self.marks.remove(&self.keys.mark(resource));
        }
    }

    /// The leader grants nothing any more.
    pub fn close(&mut self) {
        self.header.closed = true;
    }

    /// The record that it leaves to the next leader.
    ///
    /// # Errors
    /// When a value makes no sense.
    pub fn read(&self) -> Result<Record, BadRecord> {
        let stored = |(key, value): (&String, &String)| Stored {
            key: key.clone().into_bytes(),
            value: value.clone().into_bytes(),
            create_revision: 1,
            mod_revision: 1,
            lease: None,
        };
        let header = (self.keys.epoch.clone(), self.header.encode());
        let all = self.marks.iter().chain([(&header.0, &header.1)]);
        Ok(Record::decode(&self.keys, &all.map(stored).collect::<Vec<_>>())?.0)
    }

    /// As it stands in the file, when the clock shows this.
    #[must_use]
    pub fn encode(&self, clock: &Clock) -> String {
        self.encode_as(FORM, clock)
    }

    fn encode_as(&self, form: u32, clock: &Clock) -> String {
        let mut text = String::with_capacity(512 + self.bytes());
        writeln!(text, "{TITLE}{form}").expect("text takes all");
        write_clock(&mut text, clock);
        write_pair(&mut text, &self.keys.epoch, &self.header.encode());
        self.marks.iter().for_each(|(key, value)| write_pair(&mut text, key, value));
        let seal = blake3::hash(text.as_bytes());
        writeln!(text, "{SEAL}{}", seal.to_hex()).expect("text takes all");
        text
    }

    /// Returns the state in the file of `node`, and the clock at the time when it was written.
    ///
    /// # Errors
    /// When it is damaged, or of another node.
    pub fn decode(text: &str, node: &str) -> Result<(State, Clock), BadState> {
        // It may be sealed in another way as well.
        let form = text.lines().next().and_then(|title| title.strip_prefix(TITLE)).map(WrittenForm::of);
        if let Some(WrittenForm::Later(form)) = form {
            return Err(BadState::Later(form));
        }
        if form == Some(WrittenForm::Growing) {
            return growth::decode(text, node);
        }
        let (body, seal) = sealed(text)?;
        let hash = blake3::hash(body.as_bytes()).to_hex();
        if seal.strip_prefix(SEAL) != Some(hash.as_str()) {
            return Err(damaged(&format!("its last line is {seal:?}, and not \"{SEAL}{hash}\"")));
        }
        State::decode_body(body, FORM, node)
    }

    /// The same of what stands before the seal.
    fn decode_body(body: &str, form: u32, node: &str) -> Result<(State, Clock), BadState> {
        let mut lines = body.lines();
        let title = format!("{TITLE}{form}");
        if lines.next() != Some(&title) {
            return Err(damaged(&format!("it does not begin with {title:?}")));
        }
        let clock = read_clock(&mut lines)?;
        let mut state = State::begin(node, 0, 0);
        let pairs: Option<Vec<_>> = lines.map(|line| line.split_once('\t')).collect();
        let pairs = pairs.ok_or_else(|| damaged("a line has no tab"))?;
        let (key, value) = *pairs.first().ok_or_else(|| damaged("it has no record"))?;
        if key != state.keys.epoch {
            let found = key.split('/').nth(1).unwrap_or(key).replace("%2F", "/").replace("%25", "%");
            return Err(BadState::Foreign { found, wanted: node.to_owned() });
        }
        state.take_header(value)?;
        state.marks = pairs[1..].iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
        state.read()?;
        Ok((state, clock))
    }

    /// The bytes of all but the header.
    fn bytes(&self) -> usize {
        self.marks.iter().map(|(key, value)| key.len() + value.len() + 2).sum()
    }

    fn take_header(&mut self, value: &str) -> Result<(), BadState> {
        self.header = RecordHeader::decode(&Stored {
            key: self.keys.epoch.clone().into(),
            value: value.into(),
            create_revision: 1,
            mod_revision: 1,
            lease: None,
        })?;
        Ok(())
    }

    fn name_earlier(&mut self, stops: Vec<EarlierStop>) {
        if stops.is_empty() {
            self.marks.remove(&self.keys.earlier);
            return;
        }
        let earlier = EarlierStops { epoch: self.header.epoch, stops };
        self.marks.insert(self.keys.earlier.clone(), earlier.encode());
    }
}

// === impl BadState ===

impl BadState {
    /// Whether a later version has written it, which may come back to it.
    #[must_use]
    pub fn is_later(&self) -> bool {
        matches!(self, BadState::Later(_) | BadState::Record(BadRecord::Later { .. }))
    }
}

// === impl Clock ===

impl Clock {
    /// Whether this clock has gone on since `earlier` was read off it.
    #[must_use]
    pub fn has_gone_on_since(&self, earlier: &Clock) -> bool {
        self.boot.is_some() && self.boot == earlier.boot && earlier.at <= self.at
    }
}

fn damaged(what: &str) -> BadState {
    BadState::Damaged(what.to_owned())
}

/// The text of a file. Where it ends within a letter, not all of the last addition was written.
fn text_of(bytes: &[u8]) -> Result<&str, BadState> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(fault) if fault.error_len().is_none() => text_of(&bytes[..fault.valid_up_to()]),
        Err(_) => Err(damaged("it is no text")),
    }
}

/// The text before its last line, and that line.
fn sealed(text: &str) -> Result<(&str, &str), BadState> {
    let whole = text.strip_suffix('\n').ok_or_else(|| damaged("it is cut off"))?;
    let end = whole.rfind('\n').ok_or_else(|| damaged("it is cut off"))? + 1;
    Ok((&text[..end], &whole[end..]))
}

fn write_pair(text: &mut String, key: &str, value: &str) {
    for part in [key, "\t", value, "\n"] {
        text.push_str(part);
    }
}

fn write_clock(text: &mut String, clock: &Clock) {
    let boot = clock.boot.as_deref().unwrap_or("-");
    writeln!(text, "boot {boot}\nclock_ns {}", clock.at.as_nanos()).expect("text takes all");
}

fn read_clock(lines: &mut std::str::Lines<'_>) -> Result<Clock, BadState> {
    let mut after = |name: &str| lines.next().and_then(|line| line.strip_prefix(name));
    let boot = after("boot ").ok_or_else(|| damaged("it has no boot"))?;
    let at = after("clock_ns ").and_then(|nanos| nanos.parse().ok());
    let at = Time::from_nanos(at.ok_or_else(|| damaged("it has no clock_ns"))?);
    Ok(Clock { boot: (boot != "-").then(|| boot.to_owned()), at })
}

#[cfg(test)]
mod tests;
