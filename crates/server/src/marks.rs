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
//! The remainder of a ghost is over sooner than what the leader grants itself, so beside a mark stands how much of it
//! is *left from before*, and in the header when that is over. Both are written once holders have had time to claim,
//! and when that is over for how long is written anew every ten seconds. Whatever outlasts it stays within the rest of
//! the mark: a claim that does not waits until the record says so.
//!
//! With the marks goes a header: how long leases may last, and how long their leader may act unseen. It too is written
//! before it counts, so a leader grants nothing before its first write.

mod header;
mod known;
mod need;
mod schedule;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lessor_proto::{Amount, Drift, ResourceId, Time};

use crate::config::NodeConfig;
use crate::ledger::Ceiling;
use crate::mutation::Rule;
use crate::record::{EarlierStop, Longest, Record, RecordChange, Terms, Unknown};
use crate::repository::Kind;

use self::header::{Heading, UnknownUntil};
use self::known::KnownMark;
pub(crate) use self::need::{Need, Over};
use self::schedule::WriteSchedule;

/// A change of the record that waits for its outcome.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MarkWrite {
    /// To be given back with what has become of it.
    pub ticket: u64,
    /// The change to be made.
    pub change: RecordChange,
    /// Nothing is granted after this was written.
    pub closed: bool,
}

/// The marks of all resources of a node.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    marks: BTreeMap<ResourceId, KnownMark>,
    header: Heading,
    schedule: WriteSchedule,
    in_flight: Option<(MarkWrite, Over)>,
    last_ticket: u64,
    resigned: bool,
    /// A later configuration was in force than is now: nothing is granted.
    outdated: bool,
    /// Whether that is looked at.
    heeds_versions: bool,
    /// Of these more is out than their marks allow: it was shown by holders while that was not known.
    beyond: BTreeSet<ResourceId>,
    /// The record may say of these that something is left from before.
    rests: BTreeSet<ResourceId>,
}

/// The outcome of a write.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Settled {
    /// Whose marks count from here on.
    pub(crate) resources: Vec<ResourceId>,
    /// Whether longer leases may be granted than before.
    pub(crate) longer: bool,
    /// The resources of which it says from here on that more may be out than the marks say, if it did not.
    pub(crate) unknown: Unknown,
}

/// A mark is lowered when it was too high for so long.
const PATIENCE: Duration = Duration::from_secs(5);

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
            let epoch = record.proofs.get(id).map(|proof| proof.order.epoch);
            // The first write of an election says that all of it is the own part.
            let (most, least, lasting) = (amount, amount, amount);
            let kind = record.kinds.get(id).copied();
            (
                id.clone(),
                KnownMark {
                    most,
                    least,
                    lasting,
                    falling: Some(ends(id)),
                    epoch,
                    kind,
                    ..KnownMark::default()
                },
            )
        };
        let past = record.longest().classes();
        let past = past.map(|(class, length)| (class, record.after(since, length, config.drift)));
        let earlier = earlier(since, config);
        let falling = record.marks.keys().map(|id| (ends(id), id.clone())).collect();
        let looks_at = (!record.marks.is_empty()).then(|| record.settles(since, config.drift));
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
                unknown_until: UnknownUntil::default(),
                untold: Unknown::Nothing,
                earlier_doubtful: !earlier.is_empty(),
                earlier,
            },
            schedule: WriteSchedule::new(since, falling, looks_at),
            in_flight: None,
            last_ticket: 0,
            resigned: false,
            outdated: false,
            heeds_versions: config.rules.keep(Rule::NewestConfig),
            beyond: BTreeSet::new(),
            rests: BTreeSet::new(),
        }
    }

    /// The most that may be out of a resource of that kind, and that may outlast what is left from before.
    pub(crate) fn ceiling(&self, id: &ResourceId, kind: Kind) -> Ceiling {
        let mark = self.marks.get(id).copied().unwrap_or_default();
        if mark.kind.is_none_or(|counted| counted == kind) { mark.ceiling() } else { Ceiling::default() }
    }

    /// Sets the kind of what may be out of a resource from here on: nothing of another kind is. A mark that counts
    /// the other kind allows for nothing of this one.
    fn align(&mut self, id: &ResourceId, kind: Option<Kind>) {
        let Some(mark) = self.marks.get_mut(id) else { return };
        if kind.is_some() && mark.kind.is_some() && mark.kind != kind {
            (mark.least, mark.lasting) = (Amount::ZERO, Amount::ZERO);
        }
        mark.kind = kind.or(mark.kind);
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
            self.schedule.hurry(now);
        }
    }

    /// Leases of up to `longest` may be out from before until then, with whoever shows them no more to a successor.
    pub(crate) fn keep_longest(&mut self, now: Time, longest: Longest, until: Time) {
        let past = &mut self.header.past;
        if now >= until || past.iter().any(|&(past, end)| !longest.passes(past) && until <= end) {
            return;
        }
        past.retain(|&(past, end)| past.passes(longest) || until < end);
        past.push((longest, until));
        self.schedule.hurry(now);
    }

    /// That configuration is in force from here on.
    pub(crate) fn set_config_version(&mut self, now: Time, version: u64) {
        self.outdated = self.heeds_versions && version < self.header.config_version;
        if self.header.config_version < version {
            self.header.config_version = version;
            self.schedule.hurry(now);
        }
    }

    /// Before `until` it is not known what is out from before of `unknown`, if that is later than what was said so far; absent:
    /// that is not known as long as there is no template.
    pub(crate) fn learn_until(&mut self, now: Time, unknown: Unknown, until: Option<Time>) {
        self.header.untold = if until.is_none() { unknown } else { Unknown::Nothing };
        self.header.unknown_until.extend(unknown, until.unwrap_or(Time::ZERO));
        if self.header.unknown_until.at(now) > self.header.says_unknown() {
            self.schedule.hurry(now);
        }
    }

    /// Names no earlier leaders any more: what they have left is not what their record says.
    pub(crate) fn forget_earlier(&mut self, now: Time) {
        self.header.forget_earlier();
        self.schedule.hurry(now);
    }

    /// The longest leases of which the record says for certain that they may be out, beyond the marks where it says that.
    pub(crate) fn learnt_longest(&self) -> Longest {
        self.header.written.map_or(Longest::default(), Terms::longest)
    }

    /// The resources of which the record says for certain that more may be out than the marks say.
    pub(crate) fn says_unknown(&self) -> Unknown {
        self.header.says_unknown()
    }

    /// The resources of which more is out than the marks say.
    fn unmarked(&self) -> Unknown {
        self.beyond.iter().map(|id| Unknown::with(id.is_floor())).max().unwrap_or_default()
    }

    /// The version of a configuration that was in force and is later than the one that is now, if there is such a one.
    pub(crate) fn later_config(&self) -> Option<u64> {
        self.outdated.then_some(self.header.config_version)
    }

    /// A resource may have come to need another mark. Returns whether it needs a larger one.
    pub(crate) fn note(&mut self, now: Time, id: &ResourceId, need: Need) -> bool {
        self.align(id, need.kind);
        let found = self.marks.get(id).copied();
        let KnownMark { most, least, lasting, falling, epoch, .. } = found.unwrap_or_default();
        let opening = self.header.written.is_none();
        match need.out > least {
            true => _ = self.beyond.insert(id.clone()),
            false => _ = self.beyond.remove(id),
        }
        let short = need.amount > least || need.lasting > lasting;
        // What cannot be granted would be waited for by the next leader.
        if (need.is_felt || opening) && short && !self.outdated && self.schedule.raise(id) {
            self.schedule.hurry(now);
        }
        let is_old = least > Amount::ZERO && need.epoch > epoch;
        match (is_old || need.is_exceeded_by(most), falling) {
            (true, None) => self.set_falling(id, Some(now + PATIENCE)),
            // Until the end of what is out from before, that is not known.
            (false, Some(_)) => self.set_falling(id, None),
            _ => {}
        }
        short
    }

    fn set_falling(&mut self, id: &ResourceId, at: Option<Time>) {
        let Some(mark) = self.marks.get_mut(id) else { return };
        let before = std::mem::replace(&mut mark.falling, at);
        self.schedule.lower(id, before, at);
    }
}

/// The leaders before one that begins at `since`, as it writes them down. Below another node, where what they left may be over
/// sooner than the record says, that is nothing.
fn earlier(since: Time, config: &NodeConfig) -> Vec<EarlierStop> {
    let record = config.record.as_ref().filter(|_| config.parent.is_none());
    let mut earlier = record.map_or(Vec::new(), |record| record.to_tell(since, config.drift));
    if !config.rules.keep(Rule::RestChecked) {
        earlier.iter_mut().for_each(|earlier| earlier.until = Time::MAX);
    }
    earlier
}
