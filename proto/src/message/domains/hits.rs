//! Hits of one domain, in both directions.

use std::sync::Arc;

use crate::message::Refusal;
use crate::{Time, wire};

/// Bytes in the name of a domain of which others are told.
pub const LONGEST_DOMAIN: usize = 256;
/// The most domains in one message.
pub const MOST_DOMAINS: usize = 1_000;
/// The most entries in one message, of all domains together.
pub const MOST_ENTRIES: usize = 16_384;

/// Hits of one domain that others made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DomainHits {
    /// Whose.
    pub domain: Arc<str>,
    /// They are all that count: what was told before does not.
    pub all: bool,
    /// Downwards: how many other clients use it.
    pub others: u32,
    /// When and where.
    pub entries: Vec<DomainEntry>,
}

/// Hits of one moment in one tier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainEntry {
    /// Which policy of the contract, counted from 0.
    pub policy: u32,
    /// Which tier of it, counted from 1.
    pub tier: u32,
    /// By the clock of the grantor; rather too early than too late.
    pub at: Time,
    /// May be 0: then only the tier is entered.
    pub hits: u32,
    /// The tier began its active time with them.
    pub is_entered: bool,
}

// === impl DomainHits ===

impl DomainHits {
    pub(super) fn to_wire(&self) -> wire::DomainHits {
        wire::DomainHits {
            domain: Some(self.domain.to_string()),
            entry: self.entries.iter().map(|entry| entry.to_wire()).collect(),
            all: self.all.then_some(true),
            others: (self.others > 0).then_some(self.others),
        }
    }

    /// Reads the hits from the field `path`.
    pub(super) fn from_wire(path: &str, wire: wire::DomainHits) -> Result<DomainHits, Refusal> {
        let wanted = || format!("at most {LONGEST_DOMAIN} bytes of text");
        let field = || format!("{path}.domain");
        let domain = wire.domain.ok_or_else(|| Refusal::missing(field(), wanted()))?;
        if domain.len() > LONGEST_DOMAIN {
            return Err(Refusal::invalid(field(), format!("has {} bytes", domain.len()), wanted()));
        }
        let entries = wire.entry.into_iter().enumerate();
        let entries = entries.map(|(index, entry)| {
            DomainEntry::from_wire(&entry)
                .map_err(|field| Refusal::missing(format!("{path}.entry[{index}].{field}"), "a number"))
        });
        Ok(DomainHits {
            domain: domain.into(),
            all: wire.all.unwrap_or(false),
            others: wire.others.unwrap_or(0),
            entries: entries.collect::<Result<_, _>>()?,
        })
    }
}

/// All of what a message says in the field `path`.
pub(super) fn from_wire(path: &str, domains: Vec<wire::DomainHits>) -> Result<Vec<DomainHits>, Refusal> {
    let exhausted =
        |what: &str, count, limit| Err(Refusal::Exhausted { what: what.to_owned(), count, limit });
    if domains.len() > MOST_DOMAINS {
        return exhausted("domains in one message", domains.len(), MOST_DOMAINS);
    }
    let entries = domains.iter().map(|domain| domain.entry.len()).sum();
    if entries > MOST_ENTRIES {
        return exhausted("entries of domains in one message", entries, MOST_ENTRIES);
    }
    let domains = domains.into_iter().enumerate();
    domains.map(|(index, domain)| DomainHits::from_wire(&format!("{path}[{index}]"), domain)).collect()
}

// === impl DomainEntry ===

impl DomainEntry {
    fn to_wire(self) -> wire::DomainEntry {
        wire::DomainEntry {
            policy: (self.policy > 0).then_some(self.policy),
            tier: Some(self.tier),
            at_nanos: Some(self.at.as_nanos()),
            hits: (self.hits > 0).then_some(self.hits),
            is_entered: self.is_entered.then_some(true),
        }
    }

    /// Fails with the field that is missing.
    fn from_wire(wire: &wire::DomainEntry) -> Result<DomainEntry, &'static str> {
        Ok(DomainEntry {
            policy: wire.policy.unwrap_or(0),
            tier: wire.tier.ok_or("tier")?,
            at: Time::from_nanos(wire.at_nanos.ok_or("at_nanos")?),
            hits: wire.hits.unwrap_or(0),
            is_entered: wire.is_entered.unwrap_or(false),
        })
    }
}
