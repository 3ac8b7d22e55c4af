//! The clean-up: memory of what has ended is given back, and how long resources were saturated is looked at.
//!
//! Anything that has ended stops counting when it is asked for, and whoever listens hears of it at once, whether or not this has
//! come to its resource. So a server of very many does not go over all of them each second.

use std::sync::Arc;
use std::time::Duration;

use lessor_proto::ResourceId;
use tokio::sync::watch;
use tracing::warn;

use super::{Driver, HoldKind, Unanswered};
use crate::node::Node;

/// The time between two turns.
const INTERVAL: Duration = Duration::from_secs(1);
/// Resources that are gone over in a turn: all where there are no more.
const OF_A_TURN: usize = 40 * AT_ONCE;
/// Resources that are gone over under the lock at once.
const AT_ONCE: usize = 256;

/// The progress of a round over all resources.
#[derive(Debug, Default)]
struct CleanUp {
    /// The last resource of the turns before; absent: a round begins.
    after: Option<ResourceId>,
    /// Resources that are left to this turn.
    left: usize,
}

// === impl CleanUp ===

impl CleanUp {
    /// Another turn begins. Returns whether it goes on with a round.
    fn begin(&mut self) -> bool {
        self.left = OF_A_TURN;
        self.after.is_some()
    }

    /// It went on to that resource; absent: to the last of all. Returns whether there is more to do in this turn.
    fn went_on(&mut self, last: Option<ResourceId>) -> bool {
        self.after = last;
        self.left = self.left.saturating_sub(AT_ONCE);
        self.after.is_some() && self.left > 0
    }
}

// === impl Driver ===

impl Driver {
    /// Gives back the memory of what has ended, a turn each second until stopped.
    pub(crate) async fn clean_up(self: Arc<Driver>, mut stopped: watch::Receiver<bool>) {
        let mut timer = tokio::time::interval(INTERVAL);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut round = CleanUp::default();
        loop {
            tokio::select! {
                _ = stopped.wait_for(|&stop| stop) => return,
                _ = timer.tick() => {}
            }
            if self.clean_some(&mut round).await == Err(Unanswered::Broken) {
                warn!("clean-up ends: the node is broken");
                return;
            }
            self.health.pulse.beat();
        }
    }

    /// A part of the resources at a time, and others have the lock in between.
    async fn clean_some(&self, round: &mut CleanUp) -> Result<(), Unanswered> {
        if round.begin() {
            // What ends beside resources does so in each turn.
            self.call(HoldKind::CleanUp, |node: &mut Node, now| node.advance_part(now, None, 0))?;
        }
        loop {
            let after = round.after.as_ref();
            let last =
                self.call(HoldKind::CleanUp, |node: &mut Node, now| node.advance_part(now, after, AT_ONCE))?;
            if !round.went_on(last) {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The resources gone over in each turn until a round is over, of so many.
    fn turns(resources: usize) -> Vec<usize> {
        let (mut round, mut passed, mut turns) = (CleanUp::default(), 0, Vec::new());
        while round.begin() || turns.is_empty() {
            let before = passed;
            loop {
                passed = resources.min(passed + AT_ONCE);
                let last = ResourceId::new(format!("r{passed}"), 256).expect("a name");
                if !round.went_on((passed < resources).then_some(last)) {
                    break;
                }
            }
            turns.push(passed - before);
        }
        turns
    }

    #[test]
    fn a_round_takes_as_many_turns_as_there_are_resources_for() {
        assert_eq!(turns(0), [0]);
        assert_eq!(turns(1_000), [1_000]);
        assert_eq!(turns(10_240), [10_240]);
        assert_eq!(turns(25_000), [10_240, 10_240, 4_520]);
    }
}
