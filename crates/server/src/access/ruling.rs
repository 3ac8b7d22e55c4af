//! Rulings: what becomes of something that a holder says, and what is to be noted of that.

use lessor_proto::message::Refusal;

use super::Stance;
use super::denial::Denial;

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
