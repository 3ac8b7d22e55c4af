//! Leases that are given back: a campaign that failed may yet come to something, and must not.
//!
//! Once etcd has ended a lease, a put with it is refused. Until then the key of a campaign that was given up may appear; it
//! goes with the lease, which nobody renews.

use std::time::Duration;

use lessor_proto::Time;

use super::call::{Answer, Call, Failure, LeaseId};
use super::config::ElectionConfig;
use super::outbox::{Outbox, PendingCall};
use super::pace::Pace;

/// Leases that are being given back.
#[derive(Clone, Default, Debug)]
pub(super) struct Revoking(Vec<Revoke>);

#[derive(Clone, Debug)]
struct Revoke {
    lease: LeaseId,
    call: Option<PendingCall>,
    next: Time,
    /// From then on etcd has surely ended it by itself, or is beyond our reach.
    until: Time,
    pace: Pace,
}

// === impl Revoking ===

impl Revoking {
    pub(super) fn add(&mut self, now: Time, lease: LeaseId, ttl: Duration) {
        self.0.push(Revoke { lease, call: None, next: now, until: now + ttl * 2, pace: Pace::default() });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn advance(&mut self, now: Time, config: &ElectionConfig, out: &mut Outbox) {
        self.0.retain(|revoke| revoke.until > now);
        for revoke in &mut self.0 {
            if let Some(call) = revoke.call.take_if(|call| call.until <= now) {
                revoke.fail(now, call, &Failure::Timeout, config, out);
            }
            if revoke.call.is_none() && revoke.next <= now {
                revoke.call = Some(out.call(now, Call::Revoke { lease: revoke.lease }));
            }
        }
    }

    pub(super) fn awaits(&self, id: u64) -> bool {
        self.0.iter().any(|revoke| revoke.call.is_some_and(|call| call.id == id))
    }

    pub(super) fn on_answer(
        &mut self,
        now: Time,
        id: u64,
        result: &Result<Answer, Failure>,
        config: &ElectionConfig,
        out: &mut Outbox,
    ) {
        self.0.retain_mut(|revoke| {
            let Some(call) = revoke.call.take_if(|call| call.id == id) else { return true };
            match result {
                Ok(_) | Err(Failure::LeaseNotFound) => {
                    out.succeeded(call);
                    false
                }
                Err(failure) => {
                    revoke.fail(now, call, failure, config, out);
                    true
                }
            }
        });
    }

    pub(super) fn deadline(&self) -> Time {
        let moments =
            self.0.iter().map(|revoke| revoke.call.map_or(revoke.next, |call| call.until).min(revoke.until));
        moments.min().unwrap_or(Time::MAX)
    }
}

// === impl Revoke ===

impl Revoke {
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
