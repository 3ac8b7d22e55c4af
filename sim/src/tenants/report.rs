//! The report of a run of tenants, in numbers that can be added up.

use serde::Serialize;

/// The outcome of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct TenantsReport {
    /// Requests.
    pub asked: u64,
    /// Hits that clients granted.
    pub granted: u64,
    /// Hits that the center granted for the same requests.
    pub granted_by_center: u64,
    /// Refusals by clients.
    pub refused: u64,
    /// Those of them that whoever knew everything would have granted.
    pub incorrect: u64,
    /// Those of these that are not explained by what messages take from one client to another: whoever knew everything that
    /// was older than that, and placed it by no more than that too early, would have granted them as well.
    pub unexcused: u64,
    /// Hits that clients granted and whoever knew everything would have refused.
    pub excess: u64,
    /// Requests that were granted as nobody was heard.
    pub unheard: u64,
    /// Questions that were asked before a refusal.
    pub questions: u64,
    /// Reports of domains that went up.
    pub reports: u64,
    /// News of domains that came down.
    pub news: u64,
    /// Messages of every kind, up and down, those for leases among them, from the first request that may come to the last.
    pub messages: u64,
}

// === impl TenantsReport ===

impl TenantsReport {
    /// The hits that clients granted beyond those of the center, as a fraction of the latter.
    #[must_use]
    pub fn over(&self) -> f64 {
        self.granted as f64 / (self.granted_by_center.max(1)) as f64 - 1.0
    }

    /// The sum of two runs.
    #[must_use]
    pub fn plus(self, other: TenantsReport) -> TenantsReport {
        TenantsReport {
            asked: self.asked + other.asked,
            granted: self.granted + other.granted,
            granted_by_center: self.granted_by_center + other.granted_by_center,
            refused: self.refused + other.refused,
            incorrect: self.incorrect + other.incorrect,
            unexcused: self.unexcused + other.unexcused,
            excess: self.excess + other.excess,
            unheard: self.unheard + other.unheard,
            questions: self.questions + other.questions,
            reports: self.reports + other.reports,
            news: self.news + other.news,
            messages: self.messages + other.messages,
        }
    }
}
