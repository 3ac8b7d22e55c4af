//! Hot domains under a change: by the hits that count, those that would be refused and are not.

use serde::{Deserialize, Serialize};

use crate::domain_sync::RehearsedDomain;

/// The forecast of the hot domains of a resource at a node.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct DomainsForecast {
    /// The node.
    pub node: String,
    /// Hot domains that were looked at.
    pub hot: usize,
    /// Those of them of which one more hit would be refused, and is not.
    pub refused: usize,
    /// Those of them of which one more hit is refused, and would not be.
    pub released: usize,
    /// Some of those that would be refused, with the most used first.
    pub some: Vec<RefusedDomain>,
}

/// A hot domain that would be refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RefusedDomain {
    /// Its name.
    pub domain: String,
    /// The limit that would refuse it: `tiers`, `hard`, `global`, `debt`, or `policy` where none would be left for it.
    pub by: String,
    /// Hits that would count in the tier that has the least left; 0 where none is active.
    pub hits: u32,
    /// The limit of that tier.
    pub limit: u32,
    /// Its window, in seconds.
    pub window_seconds: f64,
}

/// Domains that are named.
const MOST_NAMED: usize = 10;

// === impl DomainsForecast ===

impl DomainsForecast {
    /// The hot domains that are looked at for one, those with the least left first.
    pub const MOST: usize = 1_000;

    /// That at a node, with no domain yet.
    pub(crate) fn at(node: &str) -> DomainsForecast {
        DomainsForecast { node: node.to_owned(), ..DomainsForecast::default() }
    }

    /// One more.
    pub(crate) fn add(&mut self, rehearsed: &RehearsedDomain) {
        self.hot += 1;
        match (rehearsed.is_refused, rehearsed.refused_by) {
            (false, Some(by)) => {
                self.refused += 1;
                let (hits, limit, window_seconds) = rehearsed.tier.unwrap_or_default();
                let domain = rehearsed.domain.to_string();
                if self.some.len() < MOST_NAMED {
                    self.some.push(RefusedDomain { domain, by: by.to_owned(), hits, limit, window_seconds });
                }
            }
            (true, None) => self.released += 1,
            _ => {}
        }
    }

    /// The forecast in words, if there is anything to say.
    pub(super) fn note(&self) -> Option<String> {
        let DomainsForecast { hot, refused, released, .. } = self;
        let named = |it: &RefusedDomain| match it.limit {
            0 => it.domain.clone(),
            limit => format!("{} ({} of {limit} in {} s)", it.domain, it.hits, it.window_seconds),
        };
        let some: Vec<String> = self.some.iter().map(named).collect();
        let more = refused.saturating_sub(some.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        match (refused, released) {
            (0, 0) => None,
            (0, _) => Some(format!("{released} of {hot} hot domains would be refused no more")),
            _ => Some(format!("{refused} of {hot} hot domains would be refused: {}{more}", some.join(", "))),
        }
    }
}
