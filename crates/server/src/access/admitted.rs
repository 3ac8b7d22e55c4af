//! Admission: the rights that a holder comes in with.

use lessor_proto::message::Report;

use super::Stance;
use super::denial::Denial;
use super::rights::Rights;
use super::ruling::Ruling;

/// The rights to which a holder is admitted.
#[derive(Clone, PartialEq, Debug)]
pub enum Admitted {
    /// The rights of a rule.
    With(Rights),
    /// All, though no rule lets it: why it would be refused.
    Audited(Denial),
}

// === impl Admitted ===

impl Admitted {
    /// Holds a report against the rules, which are of the stance `stance`, and cuts what it says down to what may be said.
    pub fn check(&self, stance: Stance, report: &mut Report) -> Ruling {
        let mut ruling = Ruling::default();
        let Admitted::With(rights) = self else { return ruling };
        let denied = rights.may_hold(&report.resource).err();
        if !denied.is_some_and(|denial| ruling.deny(stance, denial)) {
            rights.limit_by(stance, report, &mut ruling);
        }
        ruling
    }
}
