//! The diaries of clients: what all of them believed at every instant, from what they wrote down.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use lessor_proto::{Amount, Time};
use serde_json::Value;

/// The error in the end of a lease as it is written down, a new one each time.
const ROUNDING: Duration = Duration::from_millis(2);

/// The belief of one client from that moment on, until its next belief.
#[derive(Clone, Debug)]
struct Belief {
    from: Time,
    amount: Amount,
    /// It uses nothing from here on, if nothing else comes.
    until: Time,
    rung: String,
}

/// The beliefs of the clients of one process, by their names, in order.
#[derive(Debug)]
pub(crate) struct Diary {
    file: BufReader<File>,
    beliefs: BTreeMap<String, Vec<Belief>>,
    /// A line of which the end is still to come.
    line: String,
}

/// The sum of all beliefs, seen over all time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Peak {
    /// The highest sum.
    pub(crate) sum: Amount,
    /// When it was reached first.
    pub(crate) at: Time,
    /// The number of changes of the sum.
    pub(crate) changes: usize,
}

// === impl Diary ===

impl Diary {
    pub(crate) fn open(path: &Path) -> Diary {
        let file = BufReader::new(File::open(path).unwrap());
        Diary { file, beliefs: BTreeMap::new(), line: String::new() }
    }

    /// Reads on, up to what has been written by then.
    pub(crate) fn read(&mut self) {
        while self.file.read_line(&mut self.line).unwrap() > 0 && self.line.ends_with('\n') {
            let line = std::mem::take(&mut self.line);
            let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if let Some(millis) = line["fields"]["lasts_ms"].as_u64() {
                let from = Time::from_nanos(line["timestamp"].as_str().unwrap().parse().unwrap());
                // Without a capacity there is no limit, which nobody was ever granted.
                let amount = Amount::from_f64(line["fields"]["capacity"].as_f64().unwrap());
                // Cut off to whole milliseconds.
                let until = from + Duration::from_millis(millis + 1);
                let rung = line["fields"]["rung"].as_str().unwrap().to_owned();
                let client = line["span"]["id"].as_str().unwrap().to_owned();
                self.beliefs.entry(client).or_default().push(Belief { from, amount, until, rung });
            }
        }
    }

    /// When each of its clients was granted anything for the first time, if it was.
    pub(crate) fn served(&self) -> Vec<Time> {
        let first = |beliefs: &Vec<Belief>| {
            beliefs.iter().find(|belief| belief.amount > Amount::ZERO).map(|belief| belief.from)
        };
        self.beliefs.values().filter_map(first).collect()
    }

    /// When each of its clients was first granted something after `since`: a lease that lasts longer than the one before.
    pub(crate) fn granted_after(&self, since: Time) -> Vec<Time> {
        let first = |beliefs: &Vec<Belief>| {
            let is_grant = |index: &usize| {
                let before = index.checked_sub(1).map_or(Time::ZERO, |before| beliefs[before].until);
                let Belief { from, amount, until, .. } = beliefs[*index];
                from > since && amount > Amount::ZERO && until > before + ROUNDING
            };
            (0..beliefs.len()).find(is_grant).map(|index| beliefs[index].from)
        };
        self.beliefs.values().filter_map(first).collect()
    }

    /// The clients that had a lease and then none between two moments: in words, with what was believed before and
    /// when that ended. At `until` the diary had not been read yet.
    pub(crate) fn losses(&self, since: Time, until: Time) -> Vec<String> {
        let mut losses = Vec::new();
        for (client, beliefs) in &self.beliefs {
            let leased = beliefs.iter().position(|belief| belief.amount > Amount::ZERO);
            let held = &beliefs[leased.unwrap_or(beliefs.len())..];
            for (index, belief) in held.iter().enumerate() {
                let next = held.get(index + 1).map_or(until, |next| next.from).min(until);
                let is_none = belief.amount == Amount::ZERO || belief.rung != "leased" || belief.until < next;
                if is_none && since < next && belief.from <= until {
                    let before = index.checked_sub(1).map(|before| &held[before]);
                    losses.push(format!("{client}: {before:?}, then {belief:?}, until {next}"));
                }
            }
        }
        losses
    }
}

/// The greatest sum of all beliefs at one instant until `now`, when the first of the diaries had not been read yet.
///
/// Of what comes later some diaries may hold the increase, and others not yet the reduction that made room for it.
pub(crate) fn peak<'a>(diaries: impl Iterator<Item = &'a Diary>, now: Time) -> Peak {
    // The sum falls before it rises at the same instant: a belief ends where the next begins.
    let mut steps: Vec<(Time, i128)> = Vec::new();
    for beliefs in diaries.flat_map(|diary| diary.beliefs.values()) {
        for (index, belief) in beliefs.iter().enumerate() {
            let until = beliefs.get(index + 1).map_or(belief.until, |next| next.from.min(belief.until));
            if belief.from < until {
                steps.push((belief.from, i128::from(belief.amount.as_micros())));
                steps.push((until, -i128::from(belief.amount.as_micros())));
            }
        }
    }
    steps.sort_unstable();
    let (mut sum, mut peak) = (0, (0, Time::ZERO));
    for &(at, step) in steps.iter().take_while(|&&(at, _)| at <= now) {
        sum += step;
        if sum > peak.0 {
            peak = (sum, at);
        }
    }
    let micros = u64::try_from(peak.0).unwrap();
    Peak { sum: Amount::from_micros(micros), at: peak.1, changes: steps.len() }
}
