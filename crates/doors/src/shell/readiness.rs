//! Whether doors welcome requests, and when they end.

use tokio::sync::watch;

/// Whether requests are welcome, and when to end.
#[derive(Clone, Debug)]
pub(super) struct Readiness(watch::Sender<Phase>);

/// The phase of doors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// Requests are welcome.
    Serving,
    /// They are answered, and those who look after their proxies hear that there is an end.
    Leaving,
    /// Requests that are under way are answered, and no others come.
    Ended,
}

// === impl Readiness ===

impl Readiness {
    /// Requests are welcome.
    pub(super) fn serving() -> Readiness {
        Readiness(watch::Sender::new(Phase::Serving))
    }

    /// Enters another phase.
    pub(super) fn enter(&self, phase: Phase) {
        self.0.send_replace(phase);
    }

    pub(super) fn is_serving(&self) -> bool {
        *self.0.borrow() == Phase::Serving
    }

    pub(super) async fn ended(self) {
        let mut changes = self.0.subscribe();
        // The sender is here, so there is one.
        let _ = changes.wait_for(|phase| *phase == Phase::Ended).await;
    }
}
