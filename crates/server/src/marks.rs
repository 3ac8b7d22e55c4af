//! High-water marks: what a leader promises its successors that it will not pass.
//!
//! A leader keeps nobody's lease anywhere but in memory. What it writes down is one number a resource, the *mark*: as much
//! may be out, in all. A raised mark counts when it has certainly been written; a lowered one from the moment it is to be
//! written. So whoever reads the record after this leader, at whatever moment, finds at least what is out.
//!
//! Marks are raised ahead of need, by an eighth of it and a sixty-fourth of the capacity, and lowered when the need has been
//! smaller by twice as much for some seconds: a resource that goes from idle to full costs 19 writes at the most, and
//! one whose demand is steady none. A node that holds a lease lowers its marks to what is out: what they are too high by a
//! successor could not hand out before it has waited for all that may be. Whatever is due at about the same time is written
//! together.
//!
//! With the marks goes a header: how long leases may last, and how long their leader may act unseen. It too is written
//! before it counts, so a leader grants nothing before its first write.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_client::holding::Proof;
use lessor_proto::{Amount, Drift, ResourceId, Time};

use crate::config::{Longest, NodeConfig, Record};

/// A change of the record, to be made whole and only as long as this leader has not been succeeded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MarkWrite {
    /// To be given back with what has become of it.
    pub ticket: u64,
    /// Marks to be set.
    pub puts: BTreeMap<ResourceId, Amount>,
    /// What is to stand beside them: what shows the lease of the node.
    pub proofs: BTreeMap<ResourceId, Proof>,
    /// Marks to be removed: nothing is out.
    pub deletes: BTreeSet<ResourceId>,
    /// What is to stand beside the marks; absent: as it does.
    pub header: Option<Header>,
}

/// What stands beside the marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// No lease is granted for longer, but of floors.
    pub longest_lease: Duration,
    /// No floor is granted for longer, nor for longer than that; zero where there are none.
    pub longest_safe_lease: Duration,
    /// A leader goes on for no longer without hearing that it leads.
    pub authority: Duration,
    /// Nothing is granted after this was written.
    pub closed: bool,
    /// The newest configuration that was in force.
    pub config_version: u64,
    /// More may be out than the marks say: the leader does not know yet what was before it.
    pub unknown: bool,
}

/// What a mark has to allow for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Need {
    /// What is out or would be, if there were no mark.
    pub(crate) amount: Amount,
    /// What is out.
    pub(crate) out: Amount,
    /// Nothing is granted in fractions of this.
    pub(crate) grain: Amount,
    /// The most that can be out; absent: without limit.
    pub(crate) limit: Option<Amount>,
    /// Whether whatever a mark is too high by is missing to those who hold from a successor: of a lease from the node above,
    /// which is as much as is wanted, and of what everybody wants more of than there is.
    pub(crate) is_tight: bool,
    /// Whether somebody got less than its share because of the mark.
    pub(crate) is_felt: bool,
    /// The reign of the node above under which that lease was granted.
    pub(crate) reign: Option<u64>,
}

/// The marks of all resources of a node.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    marks: BTreeMap<ResourceId, Mark>,
    header: Heading,
    /// Whose mark is to be raised.
    due: BTreeSet<ResourceId>,
    /// When what is due is written.
    due_at: Time,
    /// Nothing is written before then.
    not_before: Time,
    /// Whose mark is to be lowered, and when.
    falling: BTreeSet<(Time, ResourceId)>,
    in_flight: Option<MarkWrite>,
    last_ticket: u64,
    resigned: bool,
    /// A later configuration was in force than is now: nothing is granted.
    outdated: bool,
    /// Of these more is out than their marks allow: it was shown by holders while that was not known.
    beyond: BTreeSet<ResourceId>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    /// The record holds no more for certain, and perhaps less.
    most: Amount,
    /// The record holds no less for certain: so much may be out.
    least: Amount,
    /// When it is to be lowered, or written again.
    falling: Option<Time>,
    /// The reign of the lease whose proof stands beside it for certain.
    reign: Option<u64>,
}

/// What the header is to say.
#[derive(Clone, Debug)]
struct Heading {
    /// What it says for certain, or less; absent before the first write.
    written: Option<Header>,
    /// Whether it may say something else.
    doubtful: bool,
    /// The longest leases that may be granted from here on.
    longest: Longest,
    authority: Duration,
    config_version: u64,
    /// Longer leases that may be out, until then.
    past: Vec<(Longest, Time)>,
    /// For how long the leader before may act unseen, and when it certainly does not.
    before: (Duration, Time),
    /// Until then it is not known what is out from before.
    unknown_until: Time,
}

/// What has come of a write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settled {
    /// Whose marks count from here on.
    pub(crate) resources: Vec<ResourceId>,
    /// Whether longer leases may be granted than before.
    pub(crate) longer: bool,
}

/// What is due is written so long after the first of it.
const WINDOW: Duration = Duration::from_millis(2);
/// A mark is lowered when it was too high for so long.
const PATIENCE: Duration = Duration::from_secs(5);
/// By what fraction of a lease a mark may be too high for longer.
const TIGHT: u64 = 256;
/// After a write that failed, or may have.
const BACK_OFF: Duration = Duration::from_millis(100);

// === impl Marks ===

impl Marks {
    /// The marks of a leader that begins at `since` and finds them as its configuration says; `longest` are the longest
    /// that it may grant.
    pub(crate) fn new(since: Time, config: &NodeConfig, longest: Longest) -> Marks {
        let empty = Record::default();
        let record = config.record.as_ref().unwrap_or(&empty);
        let opens = record.opens(since, config.drift);
        let ends = |id: &ResourceId| record.ends(id, since, config.drift);
        let found = |(id, &amount): (&ResourceId, &Amount)| {
            let reign = record.proofs.get(id).map(|proof| proof.order.epoch);
            (id.clone(), Mark { most: amount, least: amount, falling: Some(ends(id)), reign })
        };
        let past = record.longest().classes();
        let past = past.map(|(class, length)| (class, record.after(since, length, config.drift)));
        Marks {
            marks: record.marks.iter().map(found).collect(),
            header: Heading {
                written: None,
                doubtful: true,
                longest,
                authority: config.authority,
                config_version: record.config_version,
                past: past.to_vec(),
                before: (if record.closed { Duration::ZERO } else { record.authority }, opens),
                unknown_until: Time::ZERO,
            },
            due: BTreeSet::new(),
            due_at: since,
            not_before: since,
            falling: record.marks.keys().map(|id| (ends(id), id.clone())).collect(),
            in_flight: None,
            last_ticket: 0,
            resigned: false,
            outdated: false,
            beyond: BTreeSet::new(),
        }
    }

    /// So much may be out of a resource.
    pub(crate) fn ceiling(&self, id: &ResourceId) -> Amount {
        self.marks.get(id).map_or(Amount::ZERO, |mark| mark.least)
    }

    /// No lease may be longer.
    pub(crate) fn longest(&self) -> Longest {
        match self.header.written {
            Some(written) if !self.resigned && !self.outdated => written.longest(),
            _ => Longest::default(),
        }
    }

    /// Leases of up to `longest` are to be granted from here on.
    pub(crate) fn set_longest(&mut self, now: Time, longest: Longest, drift: Drift) {
        let before = std::mem::replace(&mut self.header.longest, longest);
        for (class, length) in before.classes() {
            if class.passes(longest) {
                self.header.past.push((class, drift.grantor_end(now, length)));
            }
        }
        if longest.passes(before) {
            self.hurry(now);
        }
    }

    /// That configuration is in force from here on.
    pub(crate) fn set_config_version(&mut self, now: Time, version: u64) {
        self.outdated = version < self.header.config_version;
        if self.header.config_version < version {
            self.header.config_version = version;
            self.hurry(now);
        }
    }

    /// Before `until` it is not known what is out from before, if that is later than what was said so far.
    pub(crate) fn learn_until(&mut self, until: Time) {
        self.header.unknown_until = self.header.unknown_until.max(until);
    }

    /// The version of a configuration that was in force and is later than the one that is now, if there is such a one.
    pub(crate) fn later_config(&self) -> Option<u64> {
        self.outdated.then_some(self.header.config_version)
    }

    /// A resource may have come to need another mark. Returns whether it needs a larger one.
    pub(crate) fn note(&mut self, now: Time, id: &ResourceId, need: Need) -> bool {
        let found = self.marks.get(id).copied();
        let Mark { most, least, falling, reign } = found.unwrap_or_default();
        let opening = self.header.written.is_none();
        match need.out > least {
            true => _ = self.beyond.insert(id.clone()),
            false => _ = self.beyond.remove(id),
        }
        let short = need.amount > least;
        if (need.is_felt || opening) && short && !self.due.contains(id) {
            self.due.insert(id.clone());
            self.hurry(now);
        }
        let is_old = least > Amount::ZERO && need.reign > reign;
        match (is_old || need.is_exceeded_by(most), falling) {
            (true, None) => self.set_falling(id, Some(now + PATIENCE)),
            // Until the end of what is out from before, that is not known.
            (false, Some(_)) => self.set_falling(id, None),
            _ => {}
        }
        short
    }

    /// What is to be written at `now`, if anything; `need` tells what each resource needs, and `proof` what is to stand
    /// beside its mark. Nothing before it is known what has become of the write before.
    pub(crate) fn next(
        &mut self,
        now: Time,
        need: impl Fn(&ResourceId) -> Need,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> Option<MarkWrite> {
        if self.resigned || self.deadline().is_none_or(|at| now < at) {
            return None;
        }
        let mut values: BTreeMap<ResourceId, Amount> = BTreeMap::new();
        if self.due_at <= now {
            for id in std::mem::take(&mut self.due) {
                let need = need(&id);
                if need.amount > self.ceiling(&id) {
                    values.insert(id, need.mark());
                }
            }
        }
        while let Some((at, id)) = self.falling.first().filter(|(at, _)| *at <= now).cloned() {
            self.falling.remove(&(at, id.clone()));
            let mark = self.marks.entry(id.clone()).or_default();
            mark.falling = None;
            let need = need(&id);
            if need.is_exceeded_by(mark.most) {
                values.entry(id).or_insert(need.lower_mark());
            } else if need.reign > mark.reign && mark.least > Amount::ZERO {
                values.entry(id).or_insert(mark.least);
            }
        }
        let header = self.header.next(now, false, self.beyond.is_empty());
        self.due_at = Time::MAX;
        (!values.is_empty() || header.is_some()).then(|| self.write(values, header, proof))
    }

    /// What has become of the write `ticket`; not `committed`: nobody knows.
    pub(crate) fn settle(&mut self, now: Time, ticket: u64, committed: bool) -> Option<Settled> {
        let write = self.in_flight.take_if(|write| write.ticket == ticket)?;
        let mut settled = Settled::default();
        if let Some(header) = write.header.filter(|_| committed) {
            let before = self.header.written.replace(header).map_or(Longest::default(), Header::longest);
            self.header.doubtful = false;
            settled.longer = header.longest().passes(before);
        }
        let deletes = write.deletes.into_iter().map(|id| (id, Amount::ZERO));
        for (id, amount) in write.puts.into_iter().chain(deletes) {
            let mark = self.marks.entry(id.clone()).or_default();
            match committed {
                true if amount == Amount::ZERO && mark.falling.is_none() => _ = self.marks.remove(&id),
                true => {
                    (mark.most, mark.least) = (amount, amount);
                    mark.reign = write.proofs.get(&id).map(|proof| proof.order.epoch);
                }
                false if mark.least < amount => _ = self.due.insert(id.clone()),
                false => self.set_falling(&id, Some(now + PATIENCE)),
            }
            settled.resources.extend(committed.then_some(id));
        }
        if !committed {
            self.not_before = now + BACK_OFF;
        }
        if !self.due.is_empty() || self.header.is_due() {
            self.due_at = now;
        }
        Some(settled)
    }

    /// The last write of this leader, which grants nothing any more: what is out of each resource. Before it is certain that
    /// its predecessor does not act any more, it cannot say so of itself.
    pub(crate) fn resign(
        &mut self,
        now: Time,
        need: impl Fn(&ResourceId) -> Amount,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> MarkWrite {
        self.resigned = true;
        self.in_flight = None;
        let values: BTreeMap<ResourceId, Amount> =
            self.marks.iter().map(|(id, mark)| (id.clone(), mark.least.min(need(id)))).collect();
        let closed = now >= self.header.before.1;
        let header = self.header.next(now, closed, self.beyond.is_empty()).or(self.header.written);
        self.write(values, header, proof)
    }

    /// When there is something to be written.
    pub(crate) fn deadline(&self) -> Option<Time> {
        if self.in_flight.is_some() || self.resigned {
            return None;
        }
        let falling = self.falling.first().map(|&(at, _)| at);
        let learnt = self.header.learnt_at().filter(|_| self.beyond.is_empty());
        let changes = [falling, self.header.changes_at(), learnt].into_iter().flatten();
        let at = changes.fold(self.due_at, Time::min);
        (at < Time::MAX).then(|| at.max(self.not_before))
    }

    fn write(
        &mut self,
        values: BTreeMap<ResourceId, Amount>,
        header: Option<Header>,
        proof: impl Fn(&ResourceId) -> Option<Proof>,
    ) -> MarkWrite {
        self.last_ticket += 1;
        let mut write = MarkWrite { ticket: self.last_ticket, header, ..MarkWrite::default() };
        for (id, amount) in values {
            let mark = self.marks.entry(id.clone()).or_default();
            mark.most = mark.most.max(amount);
            mark.least = mark.least.min(amount);
            if amount > Amount::ZERO {
                write.proofs.extend(proof(&id).map(|proof| (id.clone(), proof)));
                write.puts.insert(id, amount);
            } else {
                write.deletes.insert(id);
            }
        }
        if let Some(header) = header {
            self.header.send(header);
        }
        self.in_flight = Some(write.clone());
        write
    }

    fn set_falling(&mut self, id: &ResourceId, at: Option<Time>) {
        let Some(mark) = self.marks.get_mut(id) else { return };
        if let Some(before) = std::mem::replace(&mut mark.falling, at) {
            self.falling.remove(&(before, id.clone()));
        }
        if let Some(at) = at {
            self.falling.insert((at, id.clone()));
        }
    }

    fn hurry(&mut self, now: Time) {
        self.due_at = self.due_at.min(now + WINDOW);
    }
}

// === impl Header ===

impl Header {
    /// How long leases may last.
    fn longest(self) -> Longest {
        Longest { lease: self.longest_lease, safe_lease: self.longest_safe_lease }
    }
}

// === impl Heading ===

impl Heading {
    /// What it should say at `now`, if it does not.
    fn next(&mut self, now: Time, closed: bool, all_marked: bool) -> Option<Header> {
        self.past.retain(|&(_, until)| now < until);
        let longest = self.past.iter().fold(self.longest, |longest, &(past, _)| longest.max(past));
        let (authority, until) = self.before;
        let before = if now < until { authority } else { Duration::ZERO };
        let header = Header {
            longest_lease: longest.lease,
            longest_safe_lease: longest.safe_lease,
            authority: self.authority.max(before),
            closed,
            config_version: self.config_version,
            unknown: now < self.unknown_until || !all_marked,
        };
        (self.doubtful || self.written != Some(header)).then_some(header)
    }

    /// It may say `header` from here on.
    fn send(&mut self, header: Header) {
        self.doubtful = true;
        if let Some(written) = &mut self.written {
            let Longest { lease, safe_lease } = written.longest().min(header.longest());
            (written.longest_lease, written.longest_safe_lease) = (lease, safe_lease);
        }
    }

    /// When it is to say that the marks are all there is to know, if it says that they are not.
    fn learnt_at(&self) -> Option<Time> {
        self.written.filter(|written| written.unknown).map(|_| self.unknown_until)
    }

    /// Whether it does not allow what is to be granted.
    fn is_due(&self) -> bool {
        self.doubtful || self.written.is_none_or(|written| self.longest.passes(written.longest()))
    }

    /// When it says more than it has to.
    fn changes_at(&self) -> Option<Time> {
        let written = self.written?;
        let past = self.past.iter().map(|&(_, until)| until).min();
        let past = past.filter(|_| written.longest().passes(self.longest));
        let before = (written.authority > self.authority).then_some(self.before.1);
        past.into_iter().chain(before).min()
    }
}

// === impl Need ===

impl Need {
    /// What is written for it.
    fn mark(&self) -> Amount {
        if self.amount == Amount::ZERO {
            return Amount::ZERO;
        }
        let (grain, ahead) = (self.grain.as_micros().max(1), self.amount.saturating_add(self.chunk()));
        let ahead = Amount::from_micros(ahead.as_micros().div_ceil(grain).saturating_mul(grain));
        match self.limit {
            // What is out may pass a limit that was cut.
            Some(limit) => ahead.min(limit.max(self.amount)),
            None => ahead,
        }
    }

    /// What is written when it has been less for some time.
    fn lower_mark(&self) -> Amount {
        if self.is_tight { self.amount } else { self.mark() }
    }

    /// Whether a mark is much too high.
    fn is_exceeded_by(&self, mark: Amount) -> bool {
        let chunk = self.chunk();
        let ample = match self.is_tight {
            true => Amount::from_micros(self.whole().as_micros() / TIGHT),
            false => chunk.saturating_add(chunk),
        };
        mark > self.amount.saturating_add(ample) || self.amount == Amount::ZERO && mark > Amount::ZERO
    }

    fn whole(&self) -> Amount {
        self.limit.unwrap_or(self.amount)
    }

    /// How far ahead marks are raised.
    fn chunk(&self) -> Amount {
        Amount::from_micros(self.amount.as_micros() / 8 + self.whole().as_micros().div_ceil(64))
    }
}
