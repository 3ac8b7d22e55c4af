//! Grants: what a caller needs to settle later what it was granted, sealed, so that nothing has to be kept for it here.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use lessor_proto::Time;

use crate::rules::Limit;

/// The key with which grants are sealed: nobody else can make them, nor change them.
#[derive(Clone)]
pub struct GrantKey([u8; 32]);

/// Hits that were granted, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The time of it.
    pub made: Time,
    /// The hits, of each limit.
    pub hits: Vec<GrantedHits>,
}

/// Hits of a key of a limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GrantedHits {
    /// The limit.
    pub limit: LimitMark,
    /// The key.
    pub key: Box<str>,
    /// The hits.
    pub hits: u32,
}

/// A limit as it is known in grants, also when other rules are in force.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LimitMark([u8; 8]);

/// The seal of a grant, by which one is known that was settled already.
pub type Seal = [u8; 16];

/// The grants that were settled lately.
#[derive(Debug, Default)]
pub struct SettledGrants {
    seals: BTreeSet<Seal>,
    /// In the order of their times.
    order: VecDeque<(Time, Seal)>,
}

/// A grant is settled within so long, or not at all.
pub const HOLD: Duration = Duration::from_secs(3_600);
/// The most grants that are remembered as settled.
const MOST: usize = 1_000_000;
/// The most limits of a grant.
const MOST_LIMITS: usize = 64;

// === impl LimitMark ===

impl LimitMark {
    /// The mark of a limit.
    #[must_use]
    pub fn of(limit: &Limit) -> LimitMark {
        let mut mark = [0; 8];
        mark.copy_from_slice(&blake3::hash(limit.resource.as_bytes()).as_bytes()[..8]);
        LimitMark(mark)
    }
}

// === impl GrantKey ===

impl GrantKey {
    /// The key of these bytes, which nobody else may know.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> GrantKey {
        GrantKey(bytes)
    }

    /// A grant as text.
    #[must_use]
    pub fn seal(&self, grant: &Grant) -> String {
        let mut bytes = grant.made.as_nanos().to_be_bytes().to_vec();
        for GrantedHits { limit, key, hits } in grant.hits.iter().take(MOST_LIMITS) {
            bytes.extend(limit.0);
            bytes.extend(hits.to_be_bytes());
            // Names are shorter than that.
            bytes.push(u8::try_from(key.len()).unwrap_or(u8::MAX));
            bytes.extend(key.as_bytes());
        }
        bytes.extend(self.mac(&bytes));
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The grant in a text that was sealed with this key at most [`HOLD`] before `now`.
    #[must_use]
    pub fn open(&self, text: &str, now: Time) -> Option<(Grant, Seal)> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (body, mac) = bytes.split_last_chunk::<16>()?;
        // In a time that does not depend on where they differ.
        let is_own = blake3::Hash::from(widened(*mac)) == blake3::Hash::from(widened(self.mac(body)));
        let (made, mut rest) = body.split_first_chunk::<8>().filter(|_| is_own)?;
        let made = Time::from_nanos(u64::from_be_bytes(*made));
        if now.since(made) > HOLD {
            return None;
        }
        let mut hits = Vec::new();
        while !rest.is_empty() {
            let (limit, after) = rest.split_first_chunk::<8>()?;
            let (count, after) = after.split_first_chunk::<4>()?;
            let (&length, after) = after.split_first()?;
            let (key, after) = after.split_at_checked(length.into())?;
            let key = str::from_utf8(key).ok()?.into();
            hits.push(GrantedHits { limit: LimitMark(*limit), key, hits: u32::from_be_bytes(*count) });
            rest = after;
        }
        Some((Grant { made, hits }, *mac))
    }

    fn mac(&self, bytes: &[u8]) -> Seal {
        let mut mac = [0; 16];
        mac.copy_from_slice(&blake3::keyed_hash(&self.0, bytes).as_bytes()[..16]);
        mac
    }
}

impl std::fmt::Debug for GrantKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GrantKey(..)")
    }
}

fn widened(mac: Seal) -> [u8; 32] {
    let mut wide = [0; 32];
    wide[..16].copy_from_slice(&mac);
    wide
}

// === impl SettledGrants ===

impl SettledGrants {
    /// Remembers a grant as settled. Returns whether it is for the first time; if as many are remembered as may be that is not
    /// known, and it counts as settled.
    pub fn settle(&mut self, seal: Seal, now: Time) -> bool {
        while let Some(&(_, late)) = self.order.front().filter(|(settled, _)| now.since(*settled) > HOLD) {
            self.order.pop_front();
            self.seals.remove(&late);
        }
        if self.seals.len() >= MOST || !self.seals.insert(seal) {
            return false;
        }
        self.order.push_back((now, seal));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{LimitKind, Rule, TimeUnit, Window};

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn grant() -> Grant {
        let mut rule = Rule::new("edge/0", "edge/0");
        rule.limit(5, Window::of(TimeUnit::Minute), LimitKind::Exact);
        let limit = LimitMark::of(&rule.limits[0]);
        let hits = |key: &str, hits| GrantedHits { limit, key: key.into(), hits };
        Grant { made: at(10), hits: vec![hits("acme,GET", 3), hits("", u32::MAX)] }
    }

    #[test]
    fn a_grant_is_read_as_it_was_sealed() {
        let key = GrantKey::new([7; 32]);
        let text = key.seal(&grant());
        assert!(text.len() < 200, "{text}");
        assert_eq!(key.open(&text, at(20)).unwrap().0, grant());
        assert_eq!(key.open(&text, at(3_611)), None, "it is late");
        assert_eq!(GrantKey::new([8; 32]).open(&text, at(20)), None, "it is another's");
    }

    #[test]
    fn whatever_is_changed_in_a_grant_makes_it_none() {
        let key = GrantKey::new([7; 32]);
        let text = key.seal(&grant());
        for place in 0..text.len() {
            let mut forged = text.clone().into_bytes();
            forged[place] = if forged[place] == b'A' { b'B' } else { b'A' };
            let forged = String::from_utf8(forged).unwrap();
            assert_eq!(key.open(&forged, at(20)), None, "{place}");
            assert_eq!(key.open(&text[..place], at(20)), None, "{place}");
        }
        assert_eq!(key.open("not base64!", at(20)), None);
    }

    #[test]
    fn a_grant_is_settled_once() {
        let mut settled = SettledGrants::default();
        assert!(settled.settle([1; 16], at(20)) && settled.settle([2; 16], at(20)));
        assert!(!settled.settle([1; 16], at(3_000)));
        assert!(settled.settle([3; 16], at(9_000)));
        assert_eq!(settled.seals.len(), 1, "those that are late are forgotten");
    }
}
