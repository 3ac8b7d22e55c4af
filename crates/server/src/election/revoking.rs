//! Leases that are given back: a campaign that failed may yet come to something, and must not.
//!
//! Once etcd has ended a lease, a put with it is refused. Until then the key of a campaign that was given up may appear; it
//! goes with the lease, which nobody renews.

use std::time::Duration;

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, LeaseId};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::retry::Retry;

/// Leases that are being given back.
#[derive(Clone, Debug)]
pub(super) struct Revoking {
    revokes: Vec<Revoke>,
    /// The longest wait between two tries.
    longest: Duration,
}

#[derive(Clone, Debug)]
struct Revoke {
    lease: LeaseId,
    retry: Retry,
    /// From then on etcd has surely ended it by itself, or is beyond our reach.
    until: Time,
}

// === impl Revoking ===

impl Revoking {
    pub(super) fn new(config: &ElectionConfig) -> Revoking {
        Revoking { revokes: Vec::new(), longest: config.keep_alive }
    }

    pub(super) fn add(&mut self, now: Time, lease: LeaseId, ttl: Duration) {
        self.revokes.push(Revoke { lease, retry: Retry::new(now, self.longest), until: now + ttl * 2 });
    }

    /// Gives nothing back any more: what is left ends by itself.
    pub(super) fn give_up(&mut self) {
        self.revokes.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.revokes.is_empty()
    }

    pub(super) fn advance(&mut self, context: &mut StepContext<'_>) {
        self.revokes.retain(|revoke| revoke.until > context.now);
        for Revoke { lease, retry, .. } in &mut self.revokes {
            retry.advance(context, || Call::Revoke { lease: *lease });
        }
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.revokes.iter().any(|revoke| revoke.retry.awaits(id))
    }

    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: &Result<Answer, Failure>,
    ) {
        self.revokes.retain_mut(|revoke| {
            let Some(call) = revoke.retry.take(id) else { return true };
            match result {
                Ok(_) | Err(Failure::LeaseNotFound) => {
                    context.out.succeeded(call);
                    false
                }
                Err(failure) => {
                    revoke.retry.failed(context, call, failure);
                    true
                }
            }
        });
    }

    pub(super) fn next_deadline(&self) -> Time {
        let moments = self.revokes.iter().map(|revoke| revoke.retry.next_deadline().min(revoke.until));
        moments.min().unwrap_or(Time::MAX)
    }
}
