//! Descriptors as claims.

use std::borrow::Cow;

use lessor_envoy_proto::{RateLimitDescriptor, RateLimitOverride, RateLimitUnit};

use super::Met;
use crate::attribute::{Attribute, Attributes};
use crate::claim::Mode;
use crate::malformed::Malformed;
use crate::reader::{Hits, KeyValues, Reader};
use crate::rules::{Matcher, Rule, TimeUnit, Window};
use crate::shown::ShownPeer;

/// The rules that descriptors meet, each with the place of the descriptor.
pub(super) type RulesMet<'b> = Vec<(usize, &'b Rule)>;

// === impl Reader ===

impl<'b> Reader<'b> {
    /// The claims of a descriptor that a peer has sent.
    pub(super) fn descriptor(
        &mut self,
        descriptor: &RateLimitDescriptor,
        peer: &ShownPeer,
        hits: Hits,
        rules: &mut RulesMet<'b>,
    ) -> Result<Met, Malformed> {
        if let Some(brought) = &descriptor.limit {
            return self.brought(descriptor, brought, hits);
        }
        match &self.set.matcher {
            Matcher::Tree(tree) => {
                let pairs = descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value));
                let Some(found) = tree.find(pairs) else { return Ok(Met::Nothing) };
                let rule = &self.set.rules[found.rule];
                rules.push((hits.descriptor, rule));
                let open = descriptor.entries.iter().enumerate();
                let open = open.filter(|&(place, _)| found.open & 1 << place != 0);
                let values: KeyValues<'_> = open.map(|(_, entry)| entry.value.as_bytes()).collect();
                self.rule(rule, &values, hits);
                Ok(met(rule))
            }
            Matcher::Table(table) => match self.attributes(table, &Entries(descriptor, peer), hits)? {
                true => Ok(Met::Limits),
                false => Ok(Met::Nothing),
            },
        }
    }

    /// The claim on a limit that the request brings with it, whose key are all entries.
    fn brought(
        &mut self,
        descriptor: &RateLimitDescriptor,
        brought: &RateLimitOverride,
        hits: Hits,
    ) -> Result<Met, Malformed> {
        let length = window(brought).map(Window::length);
        let units = brought.requests_per_unit;
        let mut allowed = self.set.overrides.iter();
        let allowed = allowed.find(|limit| limit.units == units && Some(limit.window.length()) == length);
        let Some(limit) = allowed else {
            let field = format!("descriptors[{}].limit", hits.descriptor);
            let found = match length {
                Some(length) => format!("is {units} in {}", humantime::format_duration(length)),
                None => format!("has unit {}", brought.unit),
            };
            return Err(Malformed { field, found, wanted: self.overrides() });
        };
        let pairs =
            descriptor.entries.iter().flat_map(|entry| [entry.key.as_bytes(), entry.value.as_bytes()]);
        let values: KeyValues<'_> = pairs.collect();
        let mode = match hits.hits {
            _ if hits.is_negative => Mode::GiveBack,
            0 => Mode::Look,
            _ => Mode::Firm,
        };
        self.claim((None, limit), &values, hits, mode);
        Ok(Met::Limits)
    }

    /// The limits that requests may bring with them, in words.
    fn overrides(&self) -> String {
        let listed: Vec<String> = self.set.overrides.iter().map(ToString::to_string).collect();
        match listed.is_empty() {
            true => "no limit of its own, as the set has no overrides".to_owned(),
            false => listed.join(" or "),
        }
    }
}

fn met(rule: &Rule) -> Met {
    match rule.limits.is_empty() {
        true if rule.unlimited => Met::Unlimited,
        true => Met::Nothing,
        false => Met::Limits,
    }
}

/// The window that a request brings with it.
fn window(brought: &RateLimitOverride) -> Option<Window> {
    let unit = match RateLimitUnit::try_from(brought.unit).ok()? {
        RateLimitUnit::Unknown => return None,
        RateLimitUnit::Second => TimeUnit::Second,
        RateLimitUnit::Minute => TimeUnit::Minute,
        RateLimitUnit::Hour => TimeUnit::Hour,
        RateLimitUnit::Day => TimeUnit::Day,
        RateLimitUnit::Month => TimeUnit::Month,
        RateLimitUnit::Year => TimeUnit::Year,
    };
    Some(Window { unit, multiplier: brought.unit_multiplier.unwrap_or(1).max(1) })
}

/// The entries of a descriptor as attributes, and those of the connection.
struct Entries<'a>(&'a RateLimitDescriptor, &'a ShownPeer);

// === impl Entries ===

impl Attributes for Entries<'_> {
    fn value(&self, attribute: &Attribute) -> Option<Cow<'_, str>> {
        if attribute.is_shown() {
            return self.1.value(attribute);
        }
        let name = attribute.entry();
        let entry = self.0.entries.iter().find(|entry| entry.key == name)?;
        Some(attribute.of_entry(&entry.value))
    }
}
