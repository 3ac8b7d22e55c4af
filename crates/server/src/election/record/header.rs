//! The header of a record: whose write was the last, and what holds for all leases.

use std::str::SplitWhitespace;
use std::time::Duration;

use lessor_proto::Epoch;

use super::fault::{BadRecord, bad};
use super::words::{after, if_there, number};
use crate::election::call::Stored;
use crate::record::{RestOver, Terms, Unknown};

/// The value of the key `reign`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::election) struct RecordHeader {
    pub(in crate::election) epoch: Epoch,
    pub(in crate::election) write: u64,
    pub(in crate::election) closed: bool,
    pub(in crate::election) terms: Terms,
    pub(in crate::election) line: u64,
    pub(in crate::election) first_epoch: Epoch,
}

pub(super) const HEADER: &str = "1 epoch _ write _ longest_lease_ns _ [longest_safe_lease_ns _] authority_ns _ closed yes|no \
                      config_version _ [unknown yes|floors] [line _ [since _]] [rest_over_ns _ safe_rest_over_ns _] (numbers for _)";

// === impl RecordHeader ===

impl RecordHeader {
    pub(in crate::election) fn encode(&self) -> String {
        let Terms { longest_lease, longest_safe_lease, authority, config_version, unknown, rest_over } =
            self.terms;
        let unknown = match unknown {
            Unknown::Nothing => "",
            Unknown::Floors => " unknown floors",
            Unknown::All => " unknown yes",
        };
        let line = match self.line {
            0 => String::new(),
            line if self.first_epoch == Epoch::default() => format!(" line {line}"),
            line => format!(" line {line} since {}", self.first_epoch),
        };
        let rest = rest_over.map_or(String::new(), |RestOver { lease, safe_lease }| {
            format!(" rest_over_ns {} safe_rest_over_ns {}", lease.as_nanos(), safe_lease.as_nanos())
        });
        let floors = match longest_safe_lease.as_nanos() {
            0 => String::new(),
            nanos => format!(" longest_safe_lease_ns {nanos}"),
        };
        format!(
            "1 epoch {} write {} longest_lease_ns {}{floors} authority_ns {} closed {} config_version {config_version}{unknown}{line}{rest}",
            self.epoch,
            self.write,
            longest_lease.as_nanos(),
            authority.as_nanos(),
            if self.closed { "yes" } else { "no" },
        )
    }

    pub(in crate::election) fn decode(stored: &Stored) -> Result<RecordHeader, BadRecord> {
        let read = || {
            let mut words = std::str::from_utf8(&stored.value).ok()?.split_whitespace();
            (words.next()? == "1").then_some(())?;
            let header = RecordHeader {
                epoch: Epoch(number(&mut words, "epoch")?),
                write: number(&mut words, "write")?,
                terms: Terms {
                    longest_lease: Duration::from_nanos(number(&mut words, "longest_lease_ns")?),
                    longest_safe_lease: Duration::from_nanos(
                        if_there(&mut words, "longest_safe_lease_ns")?.unwrap_or(0),
                    ),
                    authority: Duration::from_nanos(number(&mut words, "authority_ns")?),
                    ..Terms::default()
                },
                line: 0,
                first_epoch: Epoch::default(),
                closed: match after(&mut words, "closed")? {
                    "yes" => true,
                    "no" => false,
                    _ => return None,
                },
            };
            let config_version = number(&mut words, "config_version")?;
            let unknown = unknown(&mut words)?;
            let line = if_there(&mut words, "line")?;
            let first_epoch = line.map_or(Some(None), |_| if_there(&mut words, "since"))?;
            let rest_over = match if_there(&mut words, "rest_over_ns")? {
                Some(lease) => {
                    let safe_lease = number(&mut words, "safe_rest_over_ns")?;
                    let [lease, safe_lease] = [lease, safe_lease].map(Duration::from_nanos);
                    Some(RestOver { lease, safe_lease })
                }
                None => None,
            };
            let terms = Terms { config_version, unknown, rest_over, ..header.terms };
            let (line, first_epoch) = (line.unwrap_or(0), Epoch(first_epoch.unwrap_or(0)));
            words.next().is_none().then_some(RecordHeader { terms, line, first_epoch, ..header })
        };
        read().ok_or_else(|| bad(stored, HEADER))
    }
}

/// The resources of which nothing is known, if that comes next.
fn unknown(words: &mut SplitWhitespace<'_>) -> Option<Unknown> {
    if words.clone().next() != Some("unknown") {
        return Some(Unknown::Nothing);
    }
    match after(words, "unknown")? {
        "yes" => Some(Unknown::All),
        "floors" => Some(Unknown::Floors),
        _ => None,
    }
}
