//! Envoy's rate limit service: its requests as calls, and answers as its messages.
//!
//! A request has descriptors, of which each meets a rule or not, and one answer for all of them. Everything in it may have been
//! chosen by whoever sent a request to Envoy, the number of hits included.

use std::time::Duration;

use lessor_envoy_proto::RateLimitRequest;

use self::descriptors::RulesMet;
use crate::claim::Call;
pub use crate::malformed::Malformed;
use crate::reader::{Hits, Reader};
use crate::rules::{Rule, RuleBook};
use crate::shown::ShownPeer;

mod descriptors;
pub mod json;
mod metadata;
mod response;

/// The bounds on what a request may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// The descriptors of a call.
    pub descriptors: usize,
    /// The entries of a descriptor.
    pub entries: usize,
    /// The bytes of a key.
    pub key_bytes: usize,
    /// The bytes of a value.
    pub value_bytes: usize,
}

/// A request, and the rules that it meets.
#[derive(Clone, Debug)]
pub struct Heard<'b> {
    /// The call; absent: there is no such set, and everything passes.
    pub call: Option<Call<'b>>,
    /// The rules that its descriptors meet.
    pub met: Vec<Met>,
}

/// The rule that a descriptor meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Met {
    /// None, or one in place of which another stands.
    Nothing,
    /// One that says that there is any amount left.
    Unlimited,
    /// Rules with limits.
    Limits,
}

// === impl Bounds ===

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { descriptors: 64, entries: 16, key_bytes: 256, value_bytes: 1_024 }
    }
}

/// Reads a request of a peer.
///
/// # Errors
/// See [`Malformed`].
pub fn read<'b>(
    request: &RateLimitRequest,
    peer: &ShownPeer,
    book: &'b RuleBook,
    bounds: Bounds,
) -> Result<Heard<'b>, Malformed> {
    check(request, bounds)?;
    let Some(set) = book.set(&request.domain) else {
        if let Some(place) = request.descriptors.iter().position(|descriptor| descriptor.limit.is_some()) {
            let found = "is brought by a request of a domain that has no rules".to_owned();
            return Err(Malformed {
                field: format!("descriptors[{place}].limit"),
                found,
                wanted: "a domain whose overrides allow it".to_owned(),
            });
        }
        return Ok(Heard { call: None, met: vec![Met::Nothing; request.descriptors.len()] });
    };
    let mut reader = Reader::new(set);
    let mut met: Vec<Met> = Vec::with_capacity(request.descriptors.len());
    let mut rules = RulesMet::new();
    for (place, descriptor) in request.descriptors.iter().enumerate() {
        let hits = descriptor.hits_addend.unwrap_or(u64::from(request.hits_addend.max(1)));
        let hits = Hits { hits, is_negative: descriptor.is_negative_hits, descriptor: place };
        met.push(reader.descriptor(descriptor, peer, hits, &mut rules)?);
    }
    replace(&rules, &mut reader.call, &mut met);
    Ok(Heard { call: Some(reader.call), met })
}

/// Leaves out the descriptors whose rules are replaced by other rules that are met.
fn replace(rules: &[(usize, &Rule)], call: &mut Call<'_>, met: &mut [Met]) {
    let replaced = |rule: &Rule| {
        let names = rules
            .iter()
            .filter(|(_, other)| !std::ptr::eq(*other, rule))
            .flat_map(|(_, other)| &other.replaces);
        rule.policy.as_ref().is_some_and(|policy| names.into_iter().any(|name| name == policy))
    };
    for (place, rule) in rules {
        if replaced(rule) {
            met[*place] = Met::Nothing;
            call.claims.retain(|claim| claim.descriptor != *place);
        }
    }
}

fn check(request: &RateLimitRequest, bounds: Bounds) -> Result<(), Malformed> {
    let wrong = |field: String, found: String, wanted: String| Err(Malformed { field, found, wanted });
    if request.domain.is_empty() {
        return wrong("domain".into(), "is empty".into(), "the name of a set of rules".into());
    }
    if request.domain.len() > bounds.key_bytes {
        let found = format!("is of {} bytes", request.domain.len());
        return wrong("domain".into(), found, format!("at most {}", bounds.key_bytes));
    }
    let count = request.descriptors.len();
    if count == 0 || count > bounds.descriptors {
        let found = if count == 0 { "is empty".to_owned() } else { format!("has {count} descriptors") };
        return wrong("descriptors".into(), found, format!("1 to {}", bounds.descriptors));
    }
    for (place, descriptor) in request.descriptors.iter().enumerate() {
        let count = descriptor.entries.len();
        if count == 0 || count > bounds.entries {
            let found = if count == 0 { "is empty".to_owned() } else { format!("has {count} entries") };
            return wrong(format!("descriptors[{place}].entries"), found, format!("1 to {}", bounds.entries));
        }
        for (index, entry) in descriptor.entries.iter().enumerate() {
            let field = |of: &str| format!("descriptors[{place}].entries[{index}].{of}");
            if entry.key.is_empty() {
                return wrong(field("key"), "is empty".into(), format!("1 to {} bytes", bounds.key_bytes));
            }
            for (of, text, most) in
                [("key", &entry.key, bounds.key_bytes), ("value", &entry.value, bounds.value_bytes)]
            {
                if text.len() > most {
                    return wrong(
                        field(of),
                        format!("is of {} bytes", text.len()),
                        format!("at most {most}"),
                    );
                }
            }
        }
    }
    Ok(())
}

/// The time for which a call of gRPC waits at the most, as the field `grpc-timeout` says it.
#[must_use]
pub fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3_600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
