//! The spacing of reports: when one may go out that was not due before.

use lessor_proto::Time;
use lessor_proto::message::HolderKind;

use super::entry::Entry;
use super::{Session, Transport};

/// When a report may go out that was not due before.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spacing {
    /// On a stream.
    Stream(Time),
    /// By polling, of a holder of that kind.
    Poll(Time, HolderKind),
    /// Not before it is due.
    ByTimer,
}

// === impl Session ===

impl Session {
    /// When a report may go out that says what has changed.
    pub(super) fn spacing(&self, now: Time) -> Spacing {
        let config = &self.config;
        let since = self.sent.last_ask();
        let spaced = |spacing| since.map_or(now, |sent| sent + spacing);
        match self.streams.transport {
            Transport::Stream => Spacing::Stream(spaced(config.stream_spacing)),
            Transport::Poll if config.eager => Spacing::Poll(spaced(config.spacing), config.kind),
            Transport::Poll => Spacing::ByTimer,
        }
    }
}

// === impl Spacing ===

impl Spacing {
    /// Brings the next report of `entry` forward if there is something to say.
    pub(super) fn expedite(self, now: Time, entry: &mut Entry) {
        match self {
            _ if !entry.is_open() => {}
            Spacing::Stream(at) => entry.hasten(now, at),
            Spacing::Poll(at, kind) => entry.expedite(now, at, kind),
            Spacing::ByTimer => {}
        }
    }
}
