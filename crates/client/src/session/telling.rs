//! Reports and news of domains, up the stream and down, and views of whoever is looked at: they are passed on, in order, and have
//! nothing to do with leases.

use lessor_proto::message::{DomainReport, Up, ViewPart};
use lessor_proto::{Features, ResourceId};

use super::line::{LineState, OpenStream};
use super::{Action, Session};

// === impl Session ===

impl Session {
    /// The number of the stream on which `resource` is granted, if there is one: what its domains do can be told there.
    #[must_use]
    pub fn stream_of(&self, resource: &ResourceId) -> Option<u64> {
        let LineState::Open(open) = self.streams.line else { return None };
        let entry = &self.entries[self.find(resource)?];
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
    /// Says a part of a view on stream `id`, when nothing else is to be said there. If that is not open any more, or its other
    /// end is not known to look, it is lost.
    pub fn show(&mut self, id: u64, part: ViewPart) {
        let LineState::Open(open) = self.streams.line else { return };
        if open.id == id && self.config.features.and(open.features).covers(Features::LOOKS) {
            self.streams.side_mut().views.push_back(part);
        }
    }

    pub(super) fn show_up(&mut self, open: OpenStream) -> Option<Action> {
        let part = self.streams.side.as_mut()?.views.pop_front()?;
        Some(self.send(open.id, Up::View(part)))
    }
}
