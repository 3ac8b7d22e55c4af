//! The call that a node answers: on which connection it came, and on what date.

use lessor_proto::message::WallClock;
use lessor_proto::{Incarnation, Time};

use crate::date::Date;
use crate::resource::{ConnectionMark, Sessions};

/// The call that is being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct CurrentCall {
    /// The numbers of sessions of clients that draw no incarnation.
    sessions: Sessions,
    date: Date,
}

// === impl CurrentCall ===

impl CurrentCall {
    /// At `now` the wall clock shows `wall`, for this call and those after it.
    pub(super) fn set_date(&mut self, now: Time, wall: WallClock) {
        self.date = Date::new(now, wall);
    }

    pub(super) fn date(&self) -> Date {
        self.date
    }

    /// The connection on which it came, if that is known.
    pub(super) fn caller(&self) -> Option<ConnectionMark> {
        self.sessions.caller
    }

    /// One that came on the connection `caller` begins.
    pub(super) fn begin(&mut self, caller: Option<ConnectionMark>) {
        self.sessions.caller = caller;
    }

    /// It is over.
    pub(super) fn end(&mut self) {
        self.sessions.caller = None;
    }

    /// The number of a session that it begins.
    pub(super) fn session(&self) -> Incarnation {
        self.sessions.number()
    }

    /// Another request begins other sessions.
    pub(super) fn pass(&mut self) {
        self.sessions.pass();
    }
}
