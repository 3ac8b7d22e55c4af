//! The end of a candidate: what is to be written is, the closing of the record last; then the lease is given back.

use lessor_proto::Time;

use super::call::{Answer, Failure};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::event::Event;
use super::leadership::Lease;
use super::revoking::Revoking;
use super::writer::{Writer, Wrote};

/// The end of a candidate.
#[derive(Clone, Debug)]
pub(super) struct Resigning {
    writer: Option<Writer>,
    lease: Option<Lease>,
    /// No later than that the lease is given back, written or not: a successor then waits as after a crash.
    write_until: Time,
    /// No later than that it is over, given back or not: then etcd ends the lease.
    until: Time,
}

/// Tries of each part.
const TRIES: u32 = 3;

// === impl Resigning ===

impl Resigning {
    pub(super) fn new(
        now: Time,
        writer: Option<Writer>,
        lease: Option<Lease>,
        config: &ElectionConfig,
    ) -> Resigning {
        let part = config.call_timeout * TRIES;
        Resigning { writer, lease, write_until: now + part, until: now + part * 2 }
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>, revoking: &mut Revoking) {
        if self.write_until <= context.now || self.writer.as_ref().is_some_and(Writer::is_done) {
            self.writer = None;
        }
        match &mut self.writer {
            Some(writer) => writer.advance(context),
            None => {
                if let Some(lease) = self.lease.take() {
                    revoking.add(context.now, lease.id, lease.ttl);
                }
            }
        }
    }

    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: Result<Answer, Failure>,
    ) {
        let Some(writer) = self.writer.as_mut().filter(|writer| writer.awaits(id)) else { return };
        match writer.on_answer(context, result) {
            Wrote::Nothing => {}
            Wrote::Tickets(tickets) => {
                tickets.into_iter().for_each(|ticket| context.out.tell(Event::Written(ticket)));
            }
            // Somebody leads already.
            Wrote::Deposed => self.writer = None,
        }
    }

    /// Whether there is nothing left to do, or no time for it.
    pub(super) fn is_over(&self, now: Time, is_given_back: bool) -> bool {
        self.until <= now || (self.writer.is_none() && self.lease.is_none() && is_given_back)
    }

    pub(super) fn next_deadline(&self, is_given_back: bool) -> Time {
        match &self.writer {
            Some(writer) => writer.next_deadline().min(self.write_until),
            None if self.lease.is_some() || is_given_back => Time::ZERO,
            None => self.until,
        }
    }
}
