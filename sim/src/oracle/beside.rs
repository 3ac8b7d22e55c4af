//! The rule about second limits that are tried: whoever holds a resource beside which one is tried asks for its companion, and
//! nobody else does.

use super::{Facts, Oracle};
use crate::holding::{Holding, Stance};

// === impl Oracle ===

impl Oracle {
    /// Checks that the companion of a resource is asked for by those who hold that, as long as it is tried.
    pub(super) fn judge_companions(&mut self, facts: &Facts<'_>, resource: u16) {
        let Some(of) = facts.resources[usize::from(resource)].companion_of else { return };
        let is_tried = facts.is_covered(resource);
        for holding in facts.holdings.iter().filter(|holding| holding.resource == resource) {
            let client = &facts.clients[holding.client as usize];
            let holds = client.holds.clone().map(|hold| &facts.holdings[hold as usize]);
            let held = holds.filter(|_| client.lives()).find(|held| held.resource == of);
            let Some(held) = held.filter(|held| facts.is_served(held)) else { continue };
            let is_due = is_tried && held.stance == Stance::Kept;
            if holding.is_asked() != is_due {
                let client = holding.client;
                let (asks, is) =
                    (if is_due { "does not ask" } else { "asks" }, if is_tried { "is" } else { "is not" });
                self.fail(41, || {
                    format!("client {client} {asks} for r{resource}, which {is} tried beside r{of}")
                });
            }
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    /// Whether a template covers a resource, and tries a second limit if it is the companion of one.
    pub(super) fn is_covered(&self, resource: u16) -> bool {
        let found = &self.resources[usize::from(resource)];
        found.covered && found.companion_of.is_none_or(|of| self.resources[usize::from(of)].covered)
    }

    /// Whether somebody grants a holding what it may have, if it is nothing.
    fn is_served(&self, holding: &Holding) -> bool {
        self.may_hold(holding) && self.has_place(holding) && !self.is_denied(holding)
    }
}
