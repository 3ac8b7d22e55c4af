//! The holders and servers of a measurement of windows, with the ways to them.

use lessor_proto::Time;

use super::faults::Standstill;
use super::holder::SimulatedHolder;

/// A holder, or the one that was there before it died.
pub(super) struct HolderStation {
    /// Absent when it has died.
    pub(super) holder: Option<SimulatedHolder>,
    /// Nothing gets to it, nor from it.
    pub(super) is_cut: bool,
    /// Until when all that is said to it, or by it, is on its way.
    pub(super) unheard_until: Time,
    /// It stands still.
    pub(super) still: Option<Standstill>,
    /// Nothing overtakes what was sent before it, up and down.
    pub(super) clear: [Time; 2],
}

/// A server, and the way from it to the one above.
#[derive(Clone, Default)]
pub(super) struct ServerStation {
    /// When it is looked at next.
    pub(super) due: Option<Time>,
    /// Nothing overtakes what was sent before it, up and down.
    pub(super) clear: [Time; 2],
}

// === impl HolderStation ===

impl HolderStation {
    /// One that can be heard.
    pub(super) fn new(holder: SimulatedHolder) -> HolderStation {
        HolderStation {
            holder: Some(holder),
            is_cut: false,
            unheard_until: Time::ZERO,
            still: None,
            clear: [Time::ZERO; 2],
        }
    }
}

// === impl ServerStation ===

impl ServerStation {
    /// It is to be looked at at `at`, if not before. Returns whether that is news.
    pub(super) fn expect(&mut self, at: Time) -> bool {
        let is_news = self.due.is_none_or(|due| at < due);
        if is_news {
            self.due = Some(at);
        }
        is_news
    }
}
