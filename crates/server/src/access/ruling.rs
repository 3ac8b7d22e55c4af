//! Rulings: what becomes of something that a holder says, and what is to be noted of that.

use lessor_proto::message::{Refusal, Report};

use super::Stance;
use super::denial::Denial;
use super::rights::Rights;

/// The rights to which a holder is admitted.
#[derive(Clone, PartialEq, Debug)]
pub enum Admitted {
    /// The rights of a rule.
    With(Rights),
    /// All, though no rule lets it: why it would be refused.
    Audited(Denial),
}

/// The ruling about something that a holder says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ruling {
    /// Why it is refused; absent: it is not.
    pub refusal: Option<Refusal>,
    /// Whether it is passed over without a word.
    pub is_passed_over: bool,
    /// The denials, to be counted and logged.
    pub denials: Vec<NotedDenial>,
}

/// A denial, as it is noted.
#[derive(Clone, PartialEq, Debug)]
pub struct NotedDenial {
    /// Something that no rule allows.
    pub denial: Denial,
    /// Whether it is refused, and not allowed all the same or cut down to what is allowed.
    pub is_refused: bool,
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

// === impl Ruling ===

impl Ruling {
    /// Refuses what no rule allows, or notes it and goes on. Returns whether it is refused.
    pub(super) fn deny(&mut self, stance: Stance, denial: Denial) -> bool {
        let is_refused = stance == Stance::Deny;
        if is_refused {
            self.refusal = Some(denial.refusal());
        }
        self.denials.push(NotedDenial { denial, is_refused });
        is_refused
    }

    /// Notes what was cut down.
    pub(super) fn note(&mut self, denial: Denial) {
        self.denials.push(NotedDenial { denial, is_refused: false });
    }
}
