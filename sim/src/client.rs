//! A client: a session or a client of Doorman's kind, its clock, and the lives it has had.

use std::ops::Range;

use lessor_client::internals::session::{self, Action, Session};
use lessor_proto::{ClientId, Epoch, Incarnation, Time};

use crate::legacy::Legacy;
use crate::plan::Way;
use crate::process::Process;

/// One client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) site: u32,
    pub(crate) way: Way,
    pub(crate) incarnation: Incarnation,
    pub(crate) mind: Mind,
    pub(crate) process: Process,
    /// The range of its holdings in the list of all holdings.
    pub(crate) holds: Range<u32>,
    /// The client of the same id beside which it lives.
    pub(crate) twin_of: Option<u32>,
    /// The greatest epoch that it has put on a report.
    pub(crate) fence: Epoch,
    /// When its driver looks again at what is in use, by its clock.
    pub(crate) next_look: Time,
}

/// The part of a client that decides.
#[derive(Debug)]
pub(crate) enum Mind {
    /// It does not live.
    Nobody,
    /// Ours.
    Ours(Box<Session>),
    /// As Doorman's.
    Legacy(Box<Legacy>),
}

// === impl Client ===

impl Client {
    pub(crate) fn lives(&self) -> bool {
        !matches!(self.mind, Mind::Nobody)
    }
}

// === impl Mind ===

impl Mind {
    pub(crate) fn poll(&mut self, now: Time) -> Option<Action> {
        match self {
            Mind::Nobody => None,
            Mind::Ours(session) => session.poll(now),
            Mind::Legacy(legacy) => legacy.poll(now),
        }
    }

    pub(crate) fn next_deadline(&self) -> Time {
        match self {
            Mind::Nobody => Time::MAX,
            Mind::Ours(session) => session.next_deadline(),
            Mind::Legacy(legacy) => legacy.next_deadline(),
        }
    }

    /// Something came from a server.
    pub(crate) fn handle(&mut self, now: Time, event: session::Event) {
        match (self, event) {
            (Mind::Ours(session), event) => session.handle(now, event),
            (Mind::Legacy(legacy), session::Event::Answered { id, answer }) => {
                legacy.on_answer(now, id, answer);
            }
            (Mind::Legacy(legacy), session::Event::Failed { id, .. }) => legacy.on_failure(now, id),
            (Mind::Legacy(_) | Mind::Nobody, _) => {}
        }
    }

    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        match self {
            Mind::Ours(session) => Some(session),
            Mind::Nobody | Mind::Legacy(_) => None,
        }
    }
}
