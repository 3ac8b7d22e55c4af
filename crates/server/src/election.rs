//! The election: one task of a node that leads it, or waits until it may.
//!
//! Every node has one key in etcd, which ends with a lease. Whoever puts it where it is not leads, and its epoch bears the number
//! of the revision at which that was. Those who find it wait until it goes. A leader acts only while
//! [`Candidate::authority_until`] lies ahead: it is counted on its own clock from *before* it spoke to etcd, and ends
//! well before etcd can let the key go, whatever clocks and messages do. So two never act at once, and no clock of
//! anybody else needs to be believed.
//!
//! Before an epoch begins, what the one before left is read, and the record says that it is open; see [`record`].
//!
//! A [`Candidate`] does no I/O: [`Candidate::poll`] gives out calls of etcd, [`Candidate::on_answer`] takes what came of them,
//! and [`Candidate::next_event`] tells what that means.
//!
//! ```
//! use std::time::Duration;
//!
//! use lessor_proto::{Epoch, Time};
//! use lessor_server::election::call::{Action, Answer, Call, LeaseId};
//! use lessor_server::election::{Candidate, ElectionConfig, Event};
//!
//! let (ttl, now) = (Duration::from_secs(10), Time::ZERO + Duration::from_secs(7));
//! let mut candidate = Candidate::new(now, ElectionConfig::new("root", "10.0.0.7:5101", 0xa1))?;
//! let mut now = now;
//! let epoch = loop {
//!     if let Some(Event::Elected { epoch, .. }) = candidate.next_event() {
//!         break epoch;
//!     }
//!     match candidate.poll(now) {
//!         Some(Action::Call { id, call }) => {
//!             // An etcd of which nobody else knows.
//!             let answer = match call {
//!                 Call::Read { .. } => Answer::Read { stored: None, revision: 1 },
//!                 Call::GrantLease { .. } => Answer::Granted { lease: LeaseId(5), ttl },
//!                 Call::Campaign { .. } => Answer::Won { revision: 2 },
//!                 Call::ReadRecord { .. } => Answer::Record { stored: vec![], more: false, cluster: None },
//!                 Call::Write(_) => Answer::Written { revision: 3 },
//!                 other => panic!("{other:?} comes later"),
//!             };
//!             candidate.on_answer(now, id, Ok(answer));
//!         }
//!         Some(other) => panic!("{other:?} is for those who wait"),
//!         None => now = candidate.next_deadline(),
//!     }
//! };
//! assert_eq!(epoch, Epoch(2));
//! // Counted from the moment before the campaign left, or before the lease was asked for.
//! assert!(candidate.authority_until().unwrap() <= now + Duration::from_secs(4));
//! # Ok::<(), lessor_server::election::BadConfig>(())
//! ```

mod bound;
pub mod call;
mod config;
mod context;
mod event;
pub mod files;
mod following;
pub mod lag;
mod last_leader;
mod leadership;
mod left;
mod leg;
pub mod mutation;
mod outbox;
pub(crate) mod pace;
mod reader;
pub mod record;
mod resigning;
mod retry;
mod revoking;
mod standing;
pub mod state;
mod writer;

use std::time::Duration;

use lessor_proto::{Epoch, Time};

pub use self::bound::ClockBounds;
pub use self::config::{BadConfig, ElectionConfig};
pub use self::event::{Event, Leader, Ticket};

use self::call::{Action, Answer, Call, Failure, Watched};
use self::context::StepContext;
use self::following::{Following, Seen};
use self::last_leader::LastLeader;
use self::leadership::{Leadership, Lease};
use self::outbox::{Outbox, PendingCall};
use self::pace::Pace;
use self::record::RecordKeys;
use self::resigning::Resigning;
use self::revoking::Revoking;
use crate::record::RecordChange;

/// One task of a node, which leads it or waits until it may.
#[derive(Clone, Debug)]
pub struct Candidate {
    config: ElectionConfig,
    keys: RecordKeys,
    phase: Phase,
    revoking: Revoking,
    /// Failures on the way to an election.
    pace: Pace,
    /// Campaigns so far.
    campaigns: u64,
    /// It leaves it to others to lead until then.
    stands_from: Time,
    /// When it has given up, it stands again.
    comes_back: bool,
    /// The leader that was announced last.
    leader: Option<Leader>,
    last: LastLeader,
    /// The bounds that are known of the clocks of leaders.
    bounds: ClockBounds,
    out: Outbox,
}

#[derive(Clone, Debug)]
enum Phase {
    /// Waits before it looks again who leads.
    Resting { until: Time },
    /// Looks who leads.
    Looking(PendingCall),
    /// Nobody leads. Waits a little, or all who wait would campaign in the same instant; sees whether somebody was faster.
    Poised { at: Time, following: Option<Following> },
    /// Asks for a lease to campaign with.
    Granting(PendingCall),
    /// Campaigns.
    Campaigning { lease: Lease, call: PendingCall },
    /// Has campaigned, and does not know what came of it: looks who leads.
    Unsure { lease: Lease, call: Option<PendingCall>, next: Time },
    /// Waits while somebody leads.
    Following(Following),
    /// Leads.
    Leading(Box<Leadership>),
    /// Gives up.
    Resigning(Box<Resigning>),
    /// Has given up.
    Resigned,
}

/// Things that can be due at one moment. More than that would never end.
const STEPS: usize = 100;

// === impl Candidate ===

impl Candidate {
    /// A task that begins to stand for election at `now`.
    ///
    /// # Errors
    /// When the configuration cannot work; above all if the lease at etcd does not outlast the authority.
    pub fn new(now: Time, config: ElectionConfig) -> Result<Candidate, BadConfig> {
        config.check()?;
        Ok(Candidate {
            keys: RecordKeys::new(&config.prefix, &config.node),
            phase: Phase::Resting { until: now },
            revoking: Revoking::new(&config),
            pace: Pace::default(),
            campaigns: 0,
            stands_from: Time::ZERO,
            comes_back: false,
            leader: None,
            last: LastLeader::default(),
            bounds: ClockBounds::default(),
            out: Outbox::new(config.call_timeout),
            config,
        })
    }

    /// The next thing to do, if anything is due. What comes out is to be done in that order, or at least begun.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        self.advance(now);
        self.out.actions.pop_front()
    }

    /// Returns the next event. To be called after every other call, and before what [`Candidate::poll`] gives out
    /// is done.
    pub fn next_event(&mut self) -> Option<Event> {
        self.out.events.pop_front()
    }

    /// When to poll again if nothing else happens.
    #[must_use]
    pub fn next_deadline(&self) -> Time {
        if !self.out.actions.is_empty() {
            return Time::ZERO;
        }
        let phase = match &self.phase {
            Phase::Resting { until } => *until,
            Phase::Poised { at, .. } => *at,
            Phase::Looking(call) | Phase::Granting(call) | Phase::Campaigning { call, .. } => call.until,
            Phase::Unsure { call, next, .. } => call.map_or(*next, |call| call.until),
            Phase::Following(following) => following.next_deadline(),
            Phase::Leading(leadership) => leadership.next_deadline(&self.config),
            Phase::Resigning(resigning) => resigning.next_deadline(self.revoking.is_empty()),
            Phase::Resigned => Time::MAX,
        };
        phase.min(self.revoking.next_deadline())
    }

    /// Until when it may act as the leader, if it may at all: to be asked before every step that grants anything or changes the
    /// books, with the clock read after the step began.
    #[must_use]
    pub fn authority_until(&self) -> Option<Time> {
        match &self.phase {
            Phase::Leading(leadership) => leadership.authority_until(&self.config),
            _ => None,
        }
    }

    /// Until when nobody else can lead, as etcd has heard of it last: whoever is connected to it finds nobody else before, also while
    /// its authority has lapsed. It is no authority to act.
    #[must_use]
    pub fn key_until(&self) -> Option<Time> {
        match &self.phase {
            Phase::Leading(leadership) => leadership.key_until(),
            _ => None,
        }
    }

    /// When nobody else led yet for certain, if it leads.
    #[must_use]
    pub fn led_at(&self) -> Option<Time> {
        match &self.phase {
            Phase::Leading(leadership) => leadership.led_at(),
            _ => None,
        }
    }

    /// The revision at which its key was made, while that is there as far as it knows.
    #[must_use]
    pub fn key_revision(&self) -> Option<u64> {
        match &self.phase {
            Phase::Leading(leadership) => Some(leadership.revision()),
            _ => None,
        }
    }

    /// Time has passed that the clock of `now` did not show: what was sent was sent that much earlier, so that authority ends
    /// earlier. What has to be waited for is waited for in full.
    pub fn lose_time(&mut self, now: Time, lost: Duration) {
        self.bounds.lose_time(now, lost);
        match &mut self.phase {
            Phase::Looking(call) | Phase::Granting(call) => call.lose_time(lost),
            Phase::Campaigning { lease, call } => {
                lease.lose_time(lost);
                call.lose_time(lost);
            }
            Phase::Unsure { lease, call, .. } => {
                lease.lose_time(lost);
                call.iter_mut().for_each(|call| call.lose_time(lost));
            }
            Phase::Leading(leadership) => leadership.lose_time(lost),
            Phase::Resting { .. }
            | Phase::Poised { .. }
            | Phase::Following(_)
            | Phase::Resigning(_)
            | Phase::Resigned => {}
        }
        self.advance(now);
    }

    /// The number of its epoch, if it leads.
    #[must_use]
    pub fn epoch(&self) -> Option<Epoch> {
        match &self.phase {
            Phase::Leading(leadership) => Some(leadership.epoch()),
            _ => None,
        }
    }

    /// The leader of the epoch `epoch`, which is the one that was seen last, was asked at `asked` what its clock shows, and that was
    /// `shown`: so this task can tell which leases of that leader still counted when it stopped, and should rather take its place
    /// than one that cannot.
    pub fn hear_clock(&mut self, epoch: Epoch, asked: Time, shown: Time) {
        self.bounds.note(epoch, asked, shown, self.config.drift);
        self.last.hear();
    }

    /// The date is this. It is asked for nothing but a number above all that holders have heard of.
    pub fn set_date(&mut self, since_epoch: Duration) {
        self.config.date = u64::try_from(since_epoch.as_millis()).unwrap_or(0);
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &ElectionConfig {
        &self.config
    }

    /// Lets the leader's record be changed in `epoch`, or in whichever is on. [`Event::Written`] says when it is; if
    /// [`Event::Deposed`] comes before, it may have been or not. Nothing if this task does not lead, or in another epoch.
    pub fn write(&mut self, now: Time, epoch: Option<Epoch>, change: RecordChange) -> Option<Ticket> {
        self.advance(now);
        match &mut self.phase {
            Phase::Leading(leadership) if epoch.is_none_or(|epoch| epoch == leadership.epoch()) => {
                leadership.write(change, &self.config)
            }
            _ => None,
        }
    }

    /// Gives up for good, so that another task can begin at once: the caller has stopped to act, and for that matter has
    /// no authority any more. What it let be written before still is; then the record says that it has stopped, and the key
    /// goes.
    pub fn resign(&mut self, now: Time) {
        self.advance(now);
        let (mut writer, mut lease) = (None, None);
        match std::mem::replace(&mut self.phase, Phase::Resigned) {
            Phase::Resigned => return,
            Phase::Resigning(resigning) => {
                self.phase = Phase::Resigning(resigning);
                self.comes_back = false;
                return;
            }
            Phase::Leading(leadership) => {
                lease = Some(leadership.lease());
                writer = leadership.into_writer(now);
            }
            Phase::Campaigning { lease: held, .. } | Phase::Unsure { lease: held, .. } => lease = Some(held),
            Phase::Following(following) | Phase::Poised { following: Some(following), .. } => {
                following.stop(&mut self.context(now));
            }
            Phase::Resting { .. } | Phase::Looking(_) | Phase::Granting(_) | Phase::Poised { .. } => {}
        }
        self.phase = Phase::Resigning(Box::new(Resigning::new(now, writer, lease, &self.config)));
        self.advance(now);
    }

    /// Gives up the epoch as [`Candidate::resign`] does, and stands for election again after so long; meanwhile it tells who
    /// leads. Returns whether it has led.
    pub fn hand_over(&mut self, now: Time, time: Duration) -> bool {
        self.advance(now);
        let Phase::Leading(leadership) = &self.phase else { return false };
        if !leadership.is_open() {
            return false;
        }
        let epoch = leadership.epoch();
        self.tell_deposed(now, epoch);
        (self.comes_back, self.stands_from) = (true, now + time);
        self.resign(now);
        true
    }

    /// Leaves it to others to lead for so long, and gives up its key if it leads. It goes on telling who does.
    pub fn stand_aside(&mut self, now: Time, time: Duration) {
        self.advance(now);
        self.stands_from = now + time;
        match &mut self.phase {
            Phase::Leading(leadership) => {
                let (lease, epoch, is_open) = (leadership.lease(), leadership.epoch(), leadership.is_open());
                if is_open {
                    self.tell_deposed(now, epoch);
                }
                self.revoking.add(now, lease.id, lease.ttl);
                self.phase = Phase::Resting { until: now + self.config.keep_alive };
            }
            Phase::Poised { at, .. } => *at = self.stands_from,
            _ => {}
        }
        self.advance(now);
    }

    /// Stands for election from here on, as everybody does.
    pub fn stand_again(&mut self, now: Time) {
        self.stands_from = Time::ZERO;
        match &mut self.phase {
            Phase::Resting { until: at } | Phase::Poised { at, .. } => *at = now.min(*at),
            _ => {}
        }
        self.advance(now);
    }

    /// The call `id` was answered, or has failed. What is not waited for any more is passed over.
    pub fn on_answer(&mut self, now: Time, id: u64, result: Result<Answer, Failure>) {
        // What has run out must not be brought back by what comes too late.
        self.advance(now);
        if self.revoking.awaits(id) {
            let Candidate { keys, config, bounds, out, revoking, .. } = self;
            revoking.on_answer(&mut StepContext { now, keys, config, bounds, out }, id, &result);
        } else {
            let phase = std::mem::replace(&mut self.phase, Phase::Resigned);
            self.phase = self.answered(now, phase, id, result);
        }
        self.advance(now);
    }

    /// Something was seen on the watch `id`.
    pub fn on_watched(&mut self, now: Time, id: u64, watched: Watched) {
        self.advance(now);
        let phase = std::mem::replace(&mut self.phase, Phase::Resigned);
        self.phase = match phase {
            Phase::Following(mut following) => {
                let seen = following.on_watched(&self.context(now), id, watched);
                self.followed(now, following, seen)
            }
            Phase::Poised { at, following: Some(mut following) } => {
                match following.on_watched(&self.context(now), id, watched) {
                    Seen::Other(stored) => self.followed(now, following, Seen::Other(stored)),
                    Seen::Same | Seen::Gone => Phase::Poised { at, following: Some(following) },
                }
            }
            other => other,
        };
        self.advance(now);
    }
}

// === what is due ===

impl Candidate {
    fn advance(&mut self, now: Time) {
        for _ in 0..STEPS {
            let Candidate { keys, config, bounds, out, revoking, .. } = &mut *self;
            revoking.advance(&mut StepContext { now, keys, config, bounds, out });
            let phase = std::mem::replace(&mut self.phase, Phase::Resigned);
            let (phase, again) = self.step(now, phase);
            self.phase = phase;
            if !again {
                return;
            }
        }
        unreachable!("something is due again and again at {now}");
    }

    /// Does what is due, and says whether the phase is another one.
    fn step(&mut self, now: Time, phase: Phase) -> (Phase, bool) {
        let next = match phase {
            Phase::Resting { until } if until <= now => self.look(now),
            Phase::Poised { at, following } if at <= now => {
                if let Some(following) = following {
                    following.stop(&mut self.context(now));
                }
                let ttl = self.config.ttl;
                Phase::Granting(self.out.call(now, Call::GrantLease { ttl }))
            }
            Phase::Looking(call) | Phase::Granting(call) | Phase::Campaigning { call, .. }
                if call.until <= now =>
            {
                self.answered(now, phase, call.id, Err(Failure::Timeout))
            }
            Phase::Unsure { call: Some(call), .. } if call.until <= now => {
                self.answered(now, phase, call.id, Err(Failure::Timeout))
            }
            Phase::Unsure { lease, call: None, next } if next <= now => {
                let call = self.out.call(now, Call::Read { key: self.keys.leader.clone() });
                Phase::Unsure { lease, call: Some(call), next }
            }
            Phase::Following(mut following) => {
                following.advance(&mut self.context(now));
                return (Phase::Following(following), false);
            }
            Phase::Leading(mut leadership) => {
                leadership.advance(&mut self.context(now));
                return (Phase::Leading(leadership), false);
            }
            Phase::Resigning(mut resigning) => {
                let Candidate { keys, config, bounds, out, revoking, .. } = &mut *self;
                let mut context = StepContext { now, keys, config, bounds, out };
                resigning.advance(&mut context, revoking);
                if !resigning.is_over(now, revoking.is_empty()) {
                    // The lease may be given back from here on.
                    revoking.advance(&mut context);
                    return (Phase::Resigning(resigning), false);
                }
                if std::mem::take(&mut self.comes_back) {
                    return (self.look(now), true);
                }
                self.out.tell(Event::Resigned);
                // What could not be given back until here ends by itself.
                self.revoking.give_up();
                Phase::Resigned
            }
            other => return (other, false),
        };
        (next, true)
    }

    /// The context of a step at `now`.
    fn context(&mut self, now: Time) -> StepContext<'_> {
        let Candidate { keys, config, bounds, out, .. } = self;
        StepContext { now, keys, config, bounds, out }
    }

    fn look(&mut self, now: Time) -> Phase {
        Phase::Looking(self.out.call(now, Call::Read { key: self.keys.leader.clone() }))
    }
}
