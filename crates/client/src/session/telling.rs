//! Reports and news of domains, up the stream and down: they are passed on, in order, and have nothing to do with
//! leases.

use lessor_proto::ResourceId;
use lessor_proto::message::{DomainReport, Up};

use super::line::{LineState, OpenStream};
use super::{Action, Session};

// === impl Session ===

impl Session {
    /// The number of the stream on which `resource` is granted, if there is one: what its domains do can be told there.
    #[must_use]
    pub fn stream_of(&self, resource: &ResourceId) -> Option<u64> {
        let LineState::Open(open) = self.streams.line else { return None };
        let entry = &self.entries[self.find(resource).ok()?];
        (entry.is_open() && entry.streamed.granted.is_some()).then_some(open.id)
    }

    /// Says on the stream what domains did. Without a stream it is lost, and has to be said again on the next.
    pub fn tell(&mut self, report: DomainReport) {
        if matches!(self.streams.line, LineState::Open(_)) {
            self.streams.side_mut().unsaid.push_back(Box::new(report));
        }
    }

    pub(super) fn tell_up(&mut self, open: OpenStream) -> Option<Action> {
        let report = self.streams.side.as_mut()?.unsaid.pop_front()?;
        Some(self.send(open.id, Up::Domains(report)))
    }
}
