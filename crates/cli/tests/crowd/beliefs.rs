//! What all clients believed at every instant, from what they wrote down.

use std::collections::BTreeMap;
use std::path::Path;

use lessor_proto::{Amount, Time};
use serde_json::Value;

/// What one client believed from then on, until its next belief.
#[derive(Clone, Copy, Debug)]
struct Belief {
    from: Time,
    amount: Amount,
    /// It uses nothing from here on, if nothing else comes.
    until: Time,
}

/// The beliefs of the clients of one process, by their names, in order.
#[derive(Debug, Default)]
pub(crate) struct Diary(BTreeMap<String, Vec<Belief>>);

/// The sum of all beliefs, seen over all time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Peak {
    /// The highest sum.
    pub(crate) sum: Amount,
    /// When it was reached first.
    pub(crate) at: Time,
    /// How often the sum changed.
    pub(crate) changes: usize,
}

// === impl Diary ===

impl Diary {
    /// What a process has written up to now. The last line may be cut off by its death.
    pub(crate) fn read(path: &Path) -> Diary {
        let text = std::fs::read_to_string(path).unwrap();
        let mut diary = Diary::default();
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            if let Some(millis) = line["fields"]["lasts_ms"].as_u64() {
                let from = Time::from_nanos(line["timestamp"].as_str().unwrap().parse().unwrap());
                // Without a capacity there is no limit, which nobody was ever granted.
                let amount = Amount::from_f64(line["fields"]["capacity"].as_f64().unwrap());
                let until = from + std::time::Duration::from_millis(millis);
                let client = line["span"]["id"].as_str().unwrap().to_owned();
                diary.0.entry(client).or_default().push(Belief { from, amount, until });
            }
        }
        diary
    }

    /// How many of its clients have ever been granted anything.
    pub(crate) fn served(&self) -> usize {
        let granted = |beliefs: &&Vec<Belief>| beliefs.iter().any(|belief| belief.amount > Amount::ZERO);
        self.0.values().filter(granted).count()
    }
}

/// The greatest sum of all beliefs at one instant.
pub(crate) fn peak(diaries: &[Diary]) -> Peak {
    // The sum falls before it rises at the same instant: a belief ends where the next begins.
    let mut steps: Vec<(Time, i128)> = Vec::new();
    for beliefs in diaries.iter().flat_map(|diary| diary.0.values()) {
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
    for &(at, step) in &steps {
        sum += step;
        if sum > peak.0 {
            peak = (sum, at);
        }
    }
    let micros = u64::try_from(peak.0).unwrap();
    Peak { sum: Amount::from_micros(micros), at: peak.1, changes: steps.len() }
}
