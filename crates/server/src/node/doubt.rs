//! The doubt of a node about its record: it does not know what was out before it began, or learns that it does not.

use std::time::Duration;

use lessor_proto::message::{Ask, Order, Report};
use lessor_proto::{Epoch, Time};

use super::Node;
use crate::config::{NodeConfig, learning};
use crate::mutation::Rule;
use crate::record::{Record, Unknown};
use crate::repository::{Repository, Template};
use crate::token::Bearer;

/// The times for which a node learns what is out, each the longest of all its templates; zero: it does not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LearningTimes {
    /// For leases.
    pub leases: Duration,
    /// For floors, whose leases are longer.
    pub floors: Duration,
}

// === impl LearningTimes ===

impl LearningTimes {
    /// The times of a node that begins with these settings.
    #[must_use]
    pub fn at_start(repository: &Repository, config: &NodeConfig) -> LearningTimes {
        let unlearnt = if config.marks { Unknown::Nothing } else { Unknown::All };
        let unknown = config.record.as_ref().map_or(unlearnt, |record| record.unknown);
        // Below another node that one knows it.
        match config.parent {
            Some(_) => LearningTimes::default(),
            None => LearningTimes::unknowing(repository, config).of(unknown),
        }
    }

    /// Those of what is not known.
    fn of(self, unknown: Unknown) -> LearningTimes {
        let of = |time, is_floor| if unknown.is_of(is_floor) { time } else { Duration::ZERO };
        LearningTimes { leases: of(self.leases, false), floors: of(self.floors, true) }
    }

    /// The times of one that does not know what is out.
    fn unknowing(repository: &Repository, config: &NodeConfig) -> LearningTimes {
        let of = |template: &Template, is_floor| {
            learning(template, is_floor, config.record.as_ref(), config.drift)
        };
        let mut times = LearningTimes::default();
        for template in repository.templates().iter().chain(&config.unknown_names) {
            times.leases = times.leases.max(of(template, false));
            times.floors =
                times.floors.max(template.floor().map_or(Duration::ZERO, |floor| of(&floor, true)));
        }
        times
    }
}

// === impl Node ===

impl Node {
    /// The times for which this node leases nothing but what was out before it began: it does not know what that was.
    #[must_use]
    pub fn learning_times(&self) -> LearningTimes {
        LearningTimes::at_start(&self.repository, &self.config)
    }

    /// Whether a report shows that somebody led after the last whom the record knows of: it was restored, or is an old one.
    pub(super) fn shows_a_gap(&self, ask: &Ask, report: &Report) -> bool {
        if !self.config.rules.keep(Rule::OldRecordDoubted) {
            return false;
        }
        let is_known = |record: &&Record| record.knows(&report.resource) && record.epoch > Epoch::default();
        let record = self.config.record.as_ref().filter(is_known);
        let (Some(record), Some(has)) = (record, &report.has) else { return false };
        let between = |order: Order| order.epoch > record.epoch && order.epoch < self.config.epoch;
        if !has.order.is_some_and(between) {
            return false;
        }
        let Some(keys) = &self.config.keys else { return true };
        let (node, kind, holder) = (&*self.config.name, ask.kind, ask.holder.as_str());
        let incarnation = ask.incarnation.unwrap_or_default();
        let bearer = Bearer { node, kind, holder, incarnation, resource: &report.resource };
        match ask.incarnation {
            Some(_) => keys.open(&bearer, &has.token).is_ok_and(|content| between(content.order)),
            None => keys.open_poller(&bearer, &has.token).is_ok_and(|lease| between(lease.order)),
        }
    }

    /// The record does not tell what is out: that is learnt, as without one. Whatever it was, it ends no later than if it had
    /// been granted up to the beginning of this epoch.
    pub(super) fn distrust_record(&mut self, now: Time) {
        let Some(record) = &mut self.config.record else { return };
        (record.is_copy, record.unknown) = (true, Unknown::All);
        self.counters.tally.records_distrusted += 1;
        self.learn_as_told(now);
        for id in self.resources.names() {
            self.with(now, &id, |resource, around| resource.learn_anew(around.cx));
        }
    }

    /// The record says for as long as these templates that it is not known what is out, if it is not.
    pub(super) fn learn_as_told(&mut self, now: Time) {
        let Some(marks) = &mut self.marks else { return };
        for (unknown, time) in told(&self.repository, &self.config) {
            if let Some(time) = time {
                marks.learn_until(now, unknown, Some(self.tenure.since() + time));
            }
        }
    }
}

/// The resources of which a leader does not know what is out, nor would its successor. Below another node nothing is out in a line
/// of succession that has just begun: that one charges what was before to another holder. A successor of this leader is the same
/// holder, and must know all that is out under this one.
fn unlearnt(config: &NodeConfig) -> Unknown {
    let knows = config.parent.is_some() && config.rules.keep(Rule::KnownBelow);
    config.record.as_ref().filter(|_| !knows).map_or(Unknown::Nothing, |record| record.unknown)
}

/// For how long a leader learns what it does not know, class by class; absent: there is no template that could say.
pub(super) fn told(repository: &Repository, config: &NodeConfig) -> Vec<(Unknown, Option<Duration>)> {
    let unknown = unlearnt(config);
    if unknown == Unknown::Nothing {
        return Vec::new();
    }
    let silent = repository.templates().is_empty() && config.unknown_names.is_none();
    if silent && config.rules.keep(Rule::UntoldIsUnknown) {
        return vec![(unknown, None)];
    }
    let times = LearningTimes::unknowing(repository, config);
    // Floors of before are learnt to their end, whatever templates say of them by then, if anything is to be learnt.
    let has_floors =
        |record: &&Record| record.longest_safe_lease > Duration::ZERO && times.leases > Duration::ZERO;
    let before = config.record.as_ref().filter(has_floors);
    let before = before.map_or(Duration::ZERO, |record| record.longest_safe_lease + record.authority);
    let LearningTimes { leases, floors } = times.of(unknown);
    vec![(unknown, Some(leases)), (Unknown::Floors, Some(floors.max(config.drift.stretch(before))))]
}
