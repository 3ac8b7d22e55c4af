//! An epoch: the key of the leader is ours, and the lease that it ends with.
//!
//! Authority stands on two legs. The *keep-alive* says that etcd keeps the key until its ttl has passed since a moment
//! that is later than the sending; this is why nobody else leads before. The *look* says that the key was ours at such a
//! moment. Both count from before the call was sent, and authority ends a little while after the older of the two.
//!
//! The lease alone would not do: an operator may delete the key to depose us, of which the lease knows nothing, and etcd
//! itself has been seen to end leases too early when its disk was slow (its issue 15247). With the look either is noticed
//! within the authority, which is what a new leader waits for before it takes the old one's books for final.
//!
//! The grant of the lease counts as the first keep-alive: etcd begins to count when it carries the grant out, which is
//! after it was sent, and a key that is put with the lease later ends no earlier than the lease. The campaign, or the
//! look that found the key to be ours, counts as the first look.

use std::time::Duration;

use lessor_proto::{Epoch, Time};

use super::call::{Answer, Call, Failure, LeaseId, Stored};
use super::config::ElectionConfig;
use super::context::StepContext;
use super::event::{Event, Ticket};
use super::leg::Leg;
use super::mutation::ElectionRule;
use super::reader::Reader;
use super::record::{epoch_apart, next_epoch};
use super::writer::{Writer, Wrote};
use crate::record::{EtcdCluster, Record, RecordChange, Terms, Unknown};

/// The lease that a candidate has been granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Lease {
    pub(super) id: LeaseId,
    pub(super) ttl: Duration,
    /// Before its grant was asked for; absent: before the zero of the clock.
    pub(super) basis: Option<Time>,
}

/// An epoch, from the election on.
#[derive(Clone, Debug)]
pub(super) struct Leadership {
    /// At which the key was created.
    revision: u64,
    /// The number of the epoch, once the record has been read.
    epoch: Epoch,
    lease: Lease,
    keep: Leg,
    look: Leg,
    /// Whether authority has not lapsed since it was last established.
    acting: bool,
    /// When the election was known to be won.
    since: Time,
    /// From then on nobody before us acts any more, even if the last was deposed by hand.
    alone: Time,
    stage: LeadershipStage,
}

#[derive(Clone, Debug)]
enum LeadershipStage {
    /// Reads what those before have left.
    Reading(Reader),
    /// Writes that they are not the last, and not closed.
    Opening { writer: Writer, record: Record },
    /// It can be told of the election as soon as it has authority.
    Ready { writer: Writer, record: Record },
    /// It has been told.
    Open { writer: Writer },
}

/// Why an epoch has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The key has gone, or is somebody else's.
    Deposed,
    /// The lease has ended at etcd, and the key with it.
    Expired,
    /// The record makes no sense to us: another task may know better.
    Unreadable(String),
}

// === impl Lease ===

impl Lease {
    /// It was asked for earlier by time that the clock did not show.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.basis = self.basis.and_then(|basis| basis.checked_earlier(lost));
    }
}

// === impl Leadership ===

impl Leadership {
    /// The key was created with `lease` at `revision`, and was known to be so by a call sent at `seen`.
    pub(super) fn new(
        now: Time,
        revision: u64,
        lease: Lease,
        seen: Time,
        config: &ElectionConfig,
    ) -> Leadership {
        Leadership {
            revision,
            epoch: Epoch::default(),
            lease,
            keep: Leg::new(lease.basis, config),
            look: Leg::new(Some(seen), config),
            acting: true,
            since: now,
            alone: Time::MAX,
            stage: LeadershipStage::Reading(Reader::new(now, config)),
        }
    }

    pub(super) fn lease(&self) -> Lease {
        self.lease
    }

    /// Whether the election has been told of.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.stage, LeadershipStage::Open { .. })
    }

    /// Returns the writer with all that a leader that resigns still has to write. At the end of it the record is
    /// closed, and tells the next leader that it need wait for nobody: only if nobody before us acts any more
    /// either.
    pub(super) fn into_writer(self, now: Time) -> Option<Writer> {
        let mut writer = match self.stage {
            LeadershipStage::Reading(_) => return None,
            LeadershipStage::Opening { writer, .. }
            | LeadershipStage::Ready { writer, .. }
            | LeadershipStage::Open { writer } => writer,
        };
        if self.alone <= now {
            writer.close(now);
        }
        Some(writer)
    }

    /// The revision of its key.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// Its number.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Until when it may act, if it may at all.
    pub(super) fn authority_until(&self, config: &ElectionConfig) -> Option<Time> {
        (self.acting && self.is_open()).then(|| self.stands_until(config)).flatten()
    }

    /// When the key may end at the earliest, as etcd has heard of us last: nobody else leads before, unless the key is deleted. It
    /// is absent before the election has been told of, since nobody is connected by then.
    pub(super) fn key_until(&self) -> Option<Time> {
        self.keep.basis.filter(|_| self.is_open()).map(|basis| basis + self.lease.ttl)
    }

    /// When the key was certainly ours, last.
    pub(super) fn led_at(&self) -> Option<Time> {
        self.look.basis
    }

    /// Takes account of time that the clock did not show: calls were sent earlier by it. The time for which those
    /// before us may still act is not over any sooner for that.
    pub(super) fn lose_time(&mut self, lost: Duration) {
        self.lease.lose_time(lost);
        self.keep.lose_time(lost);
        self.look.lose_time(lost);
    }

    pub(super) fn write(&mut self, change: RecordChange, config: &ElectionConfig) -> Option<Ticket> {
        let LeadershipStage::Open { writer } = &mut self.stage else { return None };
        // A successor waits for so long: it must not be told less than what we do.
        let terms =
            change.terms.map(|terms| Terms { authority: terms.authority.max(config.authority), ..terms });
        Some(writer.push(RecordChange { terms, ..change }))
    }

    /// Does what is due.
    pub(super) fn advance(&mut self, context: &mut StepContext<'_>) {
        if self.acting && self.stands_until(context.config).is_none_or(|until| until <= context.now) {
            self.acting = false;
            self.look.restart(context);
            if self.is_open() {
                context.out.tell(Event::Lapsed);
            }
        }
        let (lease, key) = (self.lease.id, &context.keys.leader);
        self.keep.advance(context, || Call::KeepAlive { lease });
        self.look.advance(context, || Call::Read { key: key.clone() });
        match &mut self.stage {
            LeadershipStage::Reading(reader) => reader.advance(context),
            LeadershipStage::Opening { writer, .. }
            | LeadershipStage::Ready { writer, .. }
            | LeadershipStage::Open { writer } => {
                writer.advance(context);
            }
        }
    }

    /// The call `id` was answered, or has failed.
    pub(super) fn on_answer(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: Result<Answer, Failure>,
    ) -> Result<(), End> {
        self.on_kept_alive(context, id, &result)?;
        self.on_look(context, id, &result)?;
        self.on_record(context, id, result)?;
        self.rise(context);
        Ok(())
    }

    pub(super) fn next_deadline(&self, config: &ElectionConfig) -> Time {
        let lapse = self.stands_until(config).filter(|_| self.acting).unwrap_or(Time::MAX);
        let record = match &self.stage {
            LeadershipStage::Reading(reader) => reader.next_deadline(),
            LeadershipStage::Opening { writer, .. }
            | LeadershipStage::Ready { writer, .. }
            | LeadershipStage::Open { writer } => writer.next_deadline(),
        };
        lapse.min(self.keep.next_deadline()).min(self.look.next_deadline()).min(record)
    }

    fn stands_until(&self, config: &ElectionConfig) -> Option<Time> {
        let authority = if config.rules.keep(ElectionRule::AuthorityBelowTtl) {
            config.authority
        } else {
            self.lease.ttl
        };
        let kept = self.keep.basis? + authority;
        if !config.rules.keep(ElectionRule::ReadBack) {
            return Some(kept);
        }
        Some(kept.min(self.look.basis? + authority))
    }

    fn on_kept_alive(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: &Result<Answer, Failure>,
    ) -> Result<(), End> {
        let Some(call) = self.keep.take(id) else { return Ok(()) };
        let failure = match result {
            Ok(Answer::KeptAlive { ttl }) if ttl.is_zero() => return Err(End::Expired),
            Err(Failure::LeaseNotFound) => return Err(End::Expired),
            Ok(Answer::KeptAlive { ttl }) if *ttl >= context.config.needed_ttl() => {
                let is_from_question = context.config.rules.keep(ElectionRule::FromQuestion);
                let basis = if is_from_question { call.sent } else { context.now };
                self.keep.succeeded(context, call, basis);
                return Ok(());
            }
            Ok(Answer::KeptAlive { ttl }) => Failure::Refused(too_short(*ttl, context.config)),
            Ok(other) => Failure::unexpected(other),
            Err(failure) => failure.clone(),
        };
        self.keep.failed(context, call, &failure);
        Ok(())
    }

    fn on_look(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: &Result<Answer, Failure>,
    ) -> Result<(), End> {
        let Some(call) = self.look.take(id) else { return Ok(()) };
        let failure = match result {
            Ok(Answer::Read { stored, .. }) => {
                let is_ours = stored.as_ref().is_some_and(|stored| stored.create_revision == self.revision);
                if !is_ours && context.config.rules.keep(ElectionRule::ReadBack) {
                    return Err(End::Deposed);
                }
                self.look.succeeded(context, call, call.sent);
                return Ok(());
            }
            Ok(other) => Failure::unexpected(other),
            Err(failure) => failure.clone(),
        };
        self.look.failed(context, call, &failure);
        Ok(())
    }

    fn on_record(
        &mut self,
        context: &mut StepContext<'_>,
        id: u64,
        result: Result<Answer, Failure>,
    ) -> Result<(), End> {
        match &mut self.stage {
            LeadershipStage::Reading(reader) if reader.awaits(id) => {
                let Some((stored, cluster)) = reader.on_answer(context, result) else { return Ok(()) };
                self.open(context, &stored, cluster)?;
            }
            LeadershipStage::Opening { writer, record } if writer.awaits(id) => {
                match writer.on_answer(context, result) {
                    Wrote::Nothing => {}
                    Wrote::Tickets(_) => {
                        self.stage =
                            LeadershipStage::Ready { writer: writer.clone(), record: record.clone() };
                    }
                    Wrote::Deposed => return Err(End::Deposed),
                }
            }
            LeadershipStage::Open { writer } if writer.awaits(id) => {
                match writer.on_answer(context, result) {
                    Wrote::Nothing => {}
                    Wrote::Tickets(tickets) => {
                        tickets.into_iter().for_each(|ticket| context.out.tell(Event::Written(ticket)));
                    }
                    Wrote::Deposed => return Err(End::Deposed),
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Begins the epoch with the record that was read at the etcd `cluster`.
    fn open(
        &mut self,
        context: &StepContext<'_>,
        stored: &[Stored],
        cluster: Option<EtcdCluster>,
    ) -> Result<(), End> {
        let config = context.config;
        let (record, mod_revision) =
            Record::decode(context.keys, stored).map_err(|bad| End::Unreadable(bad.to_string()))?;
        let mut record = match config.rules.keep(ElectionRule::AtItsCluster) {
            true => record.found_at(cluster, config.authority),
            false => record,
        }
        .with_stops(context.now, context.bounds, config.drift);
        self.alone = match record.closed {
            true => self.since,
            false => config.drift.grantor_end(self.since, record.authority),
        };
        let next = match record.is_copy {
            true => epoch_apart(record.epoch, config.date, config.nonce),
            false => next_epoch(record.epoch, config.date),
        };
        // Without a date the revision is as good as any.
        let least = Epoch(self.revision);
        self.epoch = if config.rules.keep(ElectionRule::EpochByDate) { least.max(next) } else { least };
        if record.line == 0 {
            // Whoever led before is in no line that this one could go on with.
            let begins = record.is_first() || record.is_copy;
            record.line = config.nonce;
            record.first_epoch = if begins { self.epoch } else { Epoch::default() };
        }
        let earlier = match config.has_parent {
            true => Vec::new(),
            false => record.to_tell(context.now, config.drift),
        };
        let change = RecordChange {
            terms: Some(opening(&record, config)),
            earlier: Some(earlier).filter(|stops| !stops.is_empty()),
            ..RecordChange::default()
        };
        let writer = Writer::new(self.revision, &record, self.epoch, change, mod_revision);
        self.stage = LeadershipStage::Opening { writer, record };
        Ok(())
    }

    /// Takes up authority, if there is any, and tells of the election when all is ready for it.
    fn rise(&mut self, context: &mut StepContext<'_>) {
        let stands = self.stands_until(context.config).is_some_and(|until| until > context.now);
        if !stands {
            return;
        }
        if !std::mem::replace(&mut self.acting, true) && self.is_open() {
            context.out.tell(Event::Resumed);
        }
        if let LeadershipStage::Ready { writer, record } = &mut self.stage {
            context.out.is_well();
            context.out.tell(Event::Elected { epoch: self.epoch, record: Box::new(std::mem::take(record)) });
            self.stage = LeadershipStage::Open { writer: writer.clone() };
        }
    }
}

/// The terms that a leader writes at first: that the record is not closed, and for how long all that is out may
/// last.
fn opening(record: &Record, config: &ElectionConfig) -> Terms {
    // One that has stopped needs not be waited for. Of any other it is not known whether it is alive, and a successor of ours may
    // come soon.
    let before = if record.closed { Duration::ZERO } else { record.authority };
    Terms {
        longest_lease: record.longest_lease,
        longest_safe_lease: record.longest_safe_lease,
        authority: config.authority.max(before),
        config_version: record.config_version,
        // Nobody has granted anything in an epoch that has just begun, and nothing is known of before the first.
        unknown: if record.is_first() { Unknown::All } else { record.unknown },
        // All that is out may be claimed and renewed.
        rest_over: None,
    }
}

pub(super) fn too_short(ttl: Duration, config: &ElectionConfig) -> String {
    format!(
        "authority {:?} needs a lease of {:?} or more, etcd gave one of {ttl:?}",
        config.authority,
        config.needed_ttl()
    )
}
