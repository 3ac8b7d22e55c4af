//! Reads the record, page after page.
//!
//! Nobody but the leader can write it, and whoever reads has won the election: pages read one after the other fit
//! together as long as the reader still leads when it has read the last.

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, Stored};
use super::config::ElectionConfig;
use super::outbox::{Outbox, PendingCall};
use super::pace::Pace;
use super::record::RecordKeys;

/// Keys in one page.
const PAGE: usize = 500;

/// The record as far as it has been read.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    stored: Vec<Stored>,
    call: Option<PendingCall>,
    next: Time,
    pace: Pace,
}

// === impl Reader ===

impl Reader {
    pub(super) fn new(now: Time) -> Reader {
        Reader { stored: Vec::new(), call: None, next: now, pace: Pace::default() }
    }

    pub(super) fn advance(
        &mut self,
        now: Time,
        keys: &RecordKeys,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        if let Some(call) = self.call.take_if(|call| call.until <= now) {
            self.fail(now, call, &Failure::Timeout, config, out);
        }
        if self.call.is_none() && self.next <= now {
            let after = self.stored.last().map(|last| last.key.clone());
            let call = Call::ReadRecord { prefix: keys.node.clone(), after, limit: PAGE };
            self.call = Some(out.call(now, call));
        }
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.call.is_some_and(|call| call.id == id)
    }

    /// All of it, when the last page has come.
    pub(super) fn on_answer(
        &mut self,
        now: Time,
        result: Result<Answer, Failure>,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) -> Option<Vec<Stored>> {
        let call = self.call.take()?;
        match result {
            // An empty page that says there is more would be asked for without end.
            Ok(Answer::Record { stored, more }) if !(more && stored.is_empty()) => {
                out.succeeded(call);
                self.pace.succeeded();
                self.stored.extend(stored);
                self.next = now;
                (!more).then(|| std::mem::take(&mut self.stored))
            }
            Ok(other) => {
                self.fail(now, call, &Failure::unexpected(&other), config, out);
                None
            }
            Err(failure) => {
                self.fail(now, call, &failure, config, out);
                None
            }
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.call.map_or(self.next, |call| call.until)
    }

    fn fail(
        &mut self,
        now: Time,
        call: PendingCall,
        failure: &Failure,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        out.failed(call, failure);
        self.next = now + self.pace.failed(config.nonce, config.keep_alive);
    }
}
