//! Domains with leases of their own (I28): in no window more hits than their limit over all clients together, and in the end
//! a part of the lease for everybody in turn.

use std::collections::VecDeque;
use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_proto::Time;

use super::Violation;
use crate::simulation::Simulation;

/// The interval at which programs ask when it is judged whom nobody forgets.
const STEP: Duration = Duration::from_millis(100);
/// Nobody is waited for longer than that.
const LONGEST: Duration = Duration::from_secs(120);
/// A turn lasts so long at the least, or as long as a part takes for two hits.
const LEAST_TURN: Duration = Duration::from_secs(1);

/// When hits of a domain were made, in real time.
#[derive(Clone, Default, Debug)]
pub(super) struct Made(VecDeque<Time>);

// === impl Simulation ===

impl Simulation {
    /// Checks that no window has more hits of a domain than its limit, when `hits` of it were made. Clocks may run fast, so
    /// that a window is that much shorter in real time.
    pub(crate) fn watch_domain(&mut self, resource: u16, hits: u64) {
        let Some(domain) = self.resources[usize::from(resource)].domain.filter(|_| hits > 0) else { return };
        let stretched = self.rules.drift.stretch(domain.window);
        let window = domain.window.mul_f64(domain.window.as_secs_f64() / stretched.as_secs_f64());
        let now = self.now;
        let Made(made) = &mut self.oracle.made[usize::from(resource)];
        made.retain(|&at| now.since(at) < window);
        made.extend((0..hits).map(|_| now));
        let count = made.len();
        if count > domain.limit as usize {
            self.oracle.fail(28, || {
                format!("{count} hits of r{resource} in {window:?}, and {} are allowed", domain.limit)
            });
        }
    }

    /// Checks that a client has whole parts of the lease of a domain: with each part a hit may be saved up.
    pub(crate) fn watch_parts(&mut self, hold: u32) {
        let holding = &self.holdings[hold as usize];
        let Some(domain) = self.resources[usize::from(holding.resource)].domain else { return };
        let (part, amount) = (domain.share().part().as_micros(), holding.amount);
        if !amount.is_multiple_of(part) {
            let (client, resource) = (holding.client, holding.resource);
            self.oracle
                .fail(28, || format!("client {client} has {amount} of r{resource}, whose parts are {part}"));
        }
    }

    /// Checks that everybody who goes on asking for a domain has a part of its lease in its turn.
    ///
    /// # Errors
    /// When one has none for too long: rule 28, or when another rule is broken meanwhile.
    pub fn judge_domains(&mut self) -> Result<(), Box<Violation>> {
        for resource in 0..self.resources.len() as u16 {
            self.judge_domain(resource)?;
        }
        Ok(())
    }

    fn judge_domain(&mut self, resource: u16) -> Result<(), Box<Violation>> {
        let found = &self.resources[usize::from(resource)];
        let Some(domain) = found.domain.filter(|domain| self.resources[usize::from(domain.of)].covered)
        else {
            return Ok(());
        };
        let asks = |hold: &u32| {
            let holding = &self.holdings[*hold as usize];
            holding.resource == resource && self.clients[holding.client as usize].lives()
        };
        let holds: Vec<u32> = (0..self.holdings.len() as u32).filter(asks).collect();
        let waits = self.waits(&holds, domain.share().parts(), domain.share().first_hit());
        let longest = waits.iter().map(|&(_, wait)| wait).max().unwrap_or_default();
        let (mut left, until): (Vec<u32>, Time) =
            (waits.into_iter().map(|(hold, _)| hold).collect(), self.now + longest);
        // Where a node polls the one above, a part may be there for a moment only.
        for &hold in &holds {
            let holding = &mut self.holdings[hold as usize];
            holding.was_counted = holding.counted > 0;
        }
        while !left.is_empty() && self.now < until {
            holds.iter().for_each(|&hold| self.ask_domain(hold, 1));
            left.retain(|&hold| !self.holdings[hold as usize].was_counted);
            self.pass(STEP)?;
        }
        if let Some(&hold) = left.first() {
            let client = self.holdings[hold as usize].client;
            self.oracle.fail(28, || format!("client {client} has no part of r{resource} in {longest:?}"));
        }
        self.look()
    }

    /// Those to whom something is due of `parts` when all ask for all of them, and for how long each may have to wait. Nobody is
    /// waited for who would take too long.
    fn waits(&self, holds: &[u32], parts: u64, first_hit: Duration) -> Vec<(u32, Duration)> {
        let demand = |hold: u32| Demand {
            priority: self.holdings[hold as usize].priority,
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
