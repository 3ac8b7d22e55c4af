//! The need of a resource for room in the marks.

use lessor_proto::Amount;

use super::Resource;
use crate::marks::Need;

// === impl Resource ===

impl Resource {
    /// The need that its mark has to allow for: what is out, or would be as far as that is known.
    pub(crate) fn need(&self) -> Need {
        let (limit, ghost) = (self.ledger.limit(), self.ledger.ghost());
        let out = Amount::from_micros(u64::try_from(self.ledger.total()).unwrap_or(u64::MAX));
        let lack = self.ledger.lack();
        let amount = match limit {
            // Nothing else is granted before all of that is over.
            _ if self.changes_kind() => out,
            None => out.saturating_add(lack),
            Some(limit) => {
                let wanted = Amount::from_f64(self.wanted()).saturating_add(ghost);
                out.max(out.saturating_add(lack).max(wanted).min(limit))
            }
        };
        Need {
            amount,
            out,
            lasting: self
                .ledger
                .lasting()
                .saturating_add(amount.saturating_sub(out))
                .saturating_add(self.claims.room()),
            rest: Amount::ZERO,
            room: self.claims.room(),
            grain: self.terms.grain(),
            limit,
            is_tight: self.is_leased() || self.terms.in_steps,
            // What was shown while learning is charged at once: the record says meanwhile that it does not know.
            is_felt: lack.max(self.claims.room()) > Amount::ZERO
                || self.ledger.ceiling().is_some_and(|ceiling| out > ceiling.total),
            epoch: None,
            kind: Some(self.counted()),
        }
    }
}
