//! The way to an election, and back: what answers make of one who looks, campaigns, doubts, follows or leads.

use lessor_proto::{Epoch, Time};

use super::call::{Answer, Call, Class, Failure, Stored};
use super::event::{Event, Leader};
use super::following::{Following, Seen};
use super::leadership::{self, End, Leadership, Lease};
use super::outbox::PendingCall;
use super::pace::fraction;
use super::record::KeyHolder;
use super::{Candidate, Phase};

/// Those who wait campaign at moments spread over this part of the keep-alive interval.
const SPREAD: f64 = 0.1;

// === answers ===

impl Candidate {
    pub(super) fn answered(
        &mut self,
        now: Time,
        phase: Phase,
        id: u64,
        result: Result<Answer, Failure>,
    ) -> Phase {
        match phase {
            Phase::Looking(call) if call.id == id => self.on_looked(now, call, result),
            Phase::Granting(call) if call.id == id => self.on_granted(now, call, result),
            Phase::Campaigning { lease, call } if call.id == id => {
                self.on_campaigned(now, lease, call, result)
            }
            Phase::Unsure { lease, call: Some(call), .. } if call.id == id => {
                self.on_sure(now, lease, call, result)
            }
            Phase::Following(mut following) if following.awaits(id) => {
                let seen = following.on_answer(&mut self.context(now), result);
                self.followed(now, following, seen)
            }
            Phase::Leading(mut leadership) => {
                match leadership.on_answer(&mut self.context(now), id, result) {
                    Ok(()) => Phase::Leading(leadership),
                    Err(end) => self.on_end(now, &leadership, end),
                }
            }
            Phase::Resigning(mut resigning) => {
                resigning.on_answer(&mut self.context(now), id, result);
                Phase::Resigning(resigning)
            }
            phase => {
                // Nobody waited for it any more, but etcd would keep it for as long as it lasts.
                if let Ok(Answer::Granted { lease, ttl }) = result {
                    self.revoking.add(now, lease, ttl);
                }
                phase
            }
        }
    }

    fn on_looked(&mut self, now: Time, call: PendingCall, result: Result<Answer, Failure>) -> Phase {
        match result {
            Ok(Answer::Read { stored: Some(stored), revision }) => {
                self.out.succeeded(call);
                self.follow(now, &stored, revision)
            }
            Ok(Answer::Read { stored: None, .. }) => {
                self.out.succeeded(call);
                if now < self.stands_from {
                    // Another one may come to lead meanwhile.
                    self.tell_leader(None);
                    return Phase::Resting { until: self.stands_from.min(now + self.config.longest_wait()) };
                }
                self.poise(now, None)
            }
            Ok(other) => self.rest(now, call, &Failure::unexpected(&other)),
            Err(failure) => self.rest(now, call, &failure),
        }
    }

    fn on_granted(&mut self, now: Time, call: PendingCall, result: Result<Answer, Failure>) -> Phase {
        match result {
            Ok(Answer::Granted { lease, ttl }) if ttl >= self.config.needed_ttl() => {
                self.out.succeeded(call);
                self.campaign(now, Lease { id: lease, ttl, basis: Some(call.sent) })
            }
            Ok(Answer::Granted { lease, ttl }) => {
                self.revoking.add(now, lease, ttl);
                self.rest(now, call, &Failure::Refused(leadership::too_short(ttl, &self.config)))
            }
            Ok(other) => self.rest(now, call, &Failure::unexpected(&other)),
            Err(failure) => self.rest(now, call, &failure),
        }
    }

    fn on_campaigned(
        &mut self,
        now: Time,
        lease: Lease,
        call: PendingCall,
        result: Result<Answer, Failure>,
    ) -> Phase {
        match result {
            Ok(Answer::Won { revision }) => {
                self.out.succeeded(call);
                self.leadership(now, revision, lease, call.sent)
            }
            Ok(Answer::Held { by, revision }) => {
                self.out.succeeded(call);
                self.settle(now, lease, call, &by, revision)
            }
            Err(failure @ Failure::LeaseNotFound) => self.rest(now, call, &failure),
            Err(failure @ Failure::Refused(_)) => {
                self.revoking.add(now, lease.id, lease.ttl);
                self.rest(now, call, &failure)
            }
            Err(failure @ (Failure::Timeout | Failure::Unavailable(_))) => {
                self.doubt(now, lease, call, &failure)
            }
            Ok(other) => self.doubt(now, lease, call, &Failure::unexpected(&other)),
        }
    }

    /// Handles the result of looking who leads, after a campaign of which nothing was heard.
    fn on_sure(
        &mut self,
        now: Time,
        lease: Lease,
        call: PendingCall,
        result: Result<Answer, Failure>,
    ) -> Phase {
        match result {
            Ok(Answer::Read { stored: Some(stored), revision }) => {
                self.out.succeeded(call);
                self.settle(now, lease, call, &stored, revision)
            }
            Ok(Answer::Read { stored: None, .. }) => {
                self.out.succeeded(call);
                if lease.basis.is_none_or(|basis| basis + self.config.authority <= now) {
                    self.revoking.add(now, lease.id, lease.ttl);
                    return self.poise(now, None);
                }
                // The first may still be on its way: whichever comes first wins, and both are ours.
                self.campaign(now, lease)
            }
            Ok(other) => self.doubt(now, lease, call, &Failure::unexpected(&other)),
            Err(failure) => self.doubt(now, lease, call, &failure),
        }
    }

    fn on_end(&mut self, now: Time, leadership: &Leadership, end: End) -> Phase {
        if leadership.is_open() {
            self.tell_deposed(now, leadership.epoch());
        }
        if end != End::Expired {
            self.revoking.add(now, leadership.lease().id, leadership.lease().ttl);
        }
        match end {
            End::Deposed | End::Expired => self.look(now),
            End::Unreadable(why) => {
                self.out.fault(Class::Write, why);
                // A task that can read it may take the place meanwhile.
                Phase::Resting { until: now + self.config.ttl }
            }
        }
    }
}

// === phases ===

impl Candidate {
    fn campaign(&mut self, now: Time, lease: Lease) -> Phase {
        let value = KeyHolder { nonce: self.config.nonce, address: self.config.address.clone() }.encode();
        let call = Call::Campaign { lease: lease.id, key: self.keys.leader.clone(), value };
        Phase::Campaigning { lease, call: self.out.call(now, call) }
    }

    /// Somebody has the key: we do, by a campaign with this lease, or another.
    fn settle(&mut self, now: Time, lease: Lease, call: PendingCall, by: &Stored, revision: u64) -> Phase {
        let is_ours = by.lease == Some(lease.id)
            && KeyHolder::decode(by).is_ok_and(|holder| holder.nonce == self.config.nonce);
        if is_ours {
            return self.leadership(now, by.create_revision, lease, call.sent);
        }
        self.revoking.add(now, lease.id, lease.ttl);
        self.follow(now, by, revision)
    }

    /// This task leads no more in the epoch `epoch`. Its clock then was the very one that it has now.
    pub(super) fn tell_deposed(&mut self, now: Time, epoch: Epoch) {
        self.bounds.note(epoch, now, now, self.config.drift);
        self.out.tell(Event::Deposed);
    }

    fn leadership(&mut self, now: Time, revision: u64, lease: Lease, seen: Time) -> Phase {
        self.pace.succeeded();
        self.tell_leader(None);
        // Its own clock it has.
        self.last.see(revision);
        self.last.hear();
        Phase::Leading(Box::new(Leadership::new(now, revision, lease, seen, &self.config)))
    }

    /// Somebody else leads: also an earlier life of this task, or this one by a lease that was given up.
    fn follow(&mut self, now: Time, stored: &Stored, revision: u64) -> Phase {
        self.pace.succeeded();
        self.out.is_well();
        self.tell_leader(self.leader_of(stored));
        let created = stored.create_revision;
        self.last.see(created);
        Phase::Following(Following::new(&mut self.context(now), created, revision))
    }

    pub(super) fn followed(&mut self, now: Time, following: Following, seen: Seen) -> Phase {
        match seen {
            Seen::Same => Phase::Following(following),
            Seen::Other(stored) => {
                self.last.see(stored.create_revision);
                self.tell_leader(self.leader_of(&stored));
                Phase::Following(following)
            }
            Seen::Gone => self.poise(now, Some(following)),
        }
    }

    /// Those who know the clock of the last leader go first. Who has seen none knows as little as anybody who was not there.
    fn poise(&mut self, now: Time, following: Option<Following>) -> Phase {
        self.tell_leader(None);
        self.campaigns += 1;
        let spread = self.config.keep_alive.mul_f64(SPREAD * fraction(self.config.nonce, self.campaigns));
        let wait = if self.last.is_known() { spread } else { self.config.keep_alive + spread };
        Phase::Poised { at: (now + wait).max(self.stands_from), following }
    }

    fn doubt(&mut self, now: Time, lease: Lease, call: PendingCall, failure: &Failure) -> Phase {
        self.out.failed(call, failure);
        let next = now + self.pace.failed(self.config.nonce, self.config.keep_alive);
        Phase::Unsure { lease, call: None, next }
    }

    fn rest(&mut self, now: Time, call: PendingCall, failure: &Failure) -> Phase {
        self.out.failed(call, failure);
        self.tell_leader(None);
        Phase::Resting { until: now + self.pace.failed(self.config.nonce, self.config.longest_wait()) }
    }

    /// The leader by a key; none that could be asked if it is this address, where nobody leads.
    fn leader_of(&self, stored: &Stored) -> Option<Leader> {
        let address = KeyHolder::decode(stored).ok()?.address;
        (address != self.config.address).then_some(Leader { address, revision: stored.create_revision })
    }

    fn tell_leader(&mut self, leader: Option<Leader>) {
        if self.leader != leader {
            self.leader.clone_from(&leader);
            self.out.tell(Event::Leader(leader));
        }
    }
}
