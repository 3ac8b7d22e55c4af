//! Domains with leases of their own (I28): in no window more hits than their limit over all clients together, and in the end
//! a part of the lease for everybody in turn.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::Time;

use super::{Facts, Oracle};

/// Nobody is waited for longer than that.
const LONGEST: Duration = Duration::from_secs(120);
/// A turn lasts so long at the least, or as long as a part takes for two hits.
const LEAST_TURN: Duration = Duration::from_secs(1);

/// When hits of a domain were made, in real time.
#[derive(Clone, Default, Debug)]
pub(super) struct Made(VecDeque<Time>);

// === impl Oracle ===

impl Oracle {
    /// Checks that no window has more hits of a domain than its limit, when `hits` of it were made. Clocks may run fast, so
    /// that a window is that much shorter in real time.
    pub(crate) fn watch_domain(&mut self, facts: &Facts<'_>, resource: u16, hits: u64) {
        let Some(domain) = facts.resources[usize::from(resource)].domain.filter(|_| hits > 0) else { return };
        let stretched = facts.rules.drift.stretch(domain.window);
        let window = domain.window.mul_f64(domain.window.as_secs_f64() / stretched.as_secs_f64());
        let now = facts.now;
        let Made(made) = &mut self.made[usize::from(resource)];
        made.retain(|&at| now.since(at) < window);
        made.extend((0..hits).map(|_| now));
        let count = made.len();
        if count > domain.limit as usize {
            self.fail(28, || {
                format!("{count} hits of r{resource} in {window:?}, and {} are allowed", domain.limit)
            });
        }
    }

    /// Checks that a client has whole parts of the lease of a domain: with each part a hit may be saved up.
    pub(crate) fn watch_parts(&mut self, facts: &Facts<'_>, hold: u32) {
        let holding = &facts.holdings[hold as usize];
        let Some(domain) = facts.resources[usize::from(holding.resource)].domain else { return };
        let (part, amount) = (domain.share().part().as_micros(), holding.amount);
        if !amount.is_multiple_of(part) {
            let (client, resource) = (holding.client, holding.resource);
            self.fail(28, || format!("client {client} has {amount} of r{resource}, whose parts are {part}"));
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Those to whom something is due of `parts` when all ask for all of them, and for how long each may have to wait. Nobody is
    /// waited for who would take too long.
    pub(crate) fn waits(&self, holds: &[u32], parts: u64, first_hit: Duration) -> Vec<(u32, Duration)> {
        let demand = |hold: u32| Demand {
            priority: self.holdings[hold as usize].demand.priority,
            weight: 1,
            wants: parts as f64,
        };
        let mut shares = Shares::new(SharePolicy::FairShare, parts as f64);
        holds.iter().for_each(|&hold| shares.insert(&demand(hold)));
        let turn = self.turn_of(Some(LEAST_TURN.max(first_hit * 2)));
        let wait = |&hold: &u32| {
            let due = shares.share(&demand(hold)).min(1.0);
            (hold, turn.mul_f64((4.0 / due).min(1e6)))
        };
        holds.iter().map(wait).filter(|&(_, wait)| wait <= LONGEST).collect()
    }
}
