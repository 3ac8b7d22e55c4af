//! The kind of a resource: who asks for another one, and what happens when it is changed.
//!
//! Units a second and units in use cannot be added up. So nothing is granted of the kind that is in force while anything
//! may be out of the one before: everybody is told to keep to nothing, and what nobody gives back ends with its lease.
//! Then everybody is forgotten, and has to say anew what it takes the resource for.
//!
//! A record says of each mark which kind it counts. So a leader whose template says another one than was in force under the
//! leader before it does the same with all that may be out from before; and before the first is granted of a kind, the mark
//! has been written anew.

use lessor_proto::ResourceId;
use lessor_proto::message::{Ask, Grant, HolderKind, Refusal, Report};

use super::identity::holder;
use super::slab::Slot;
use super::{Resource, SharePolicy, shows_earlier};
use crate::config::NodeConfig;
use crate::ledger::{Ceiling, Ledger};
use crate::mutation::Rule;
use crate::repository::{Kind, Template};

/// The kind of what may be out of a resource.
#[derive(Clone, Copy, Debug)]
pub(super) struct CountedKind {
    kind: Kind,
    /// The template says another one, or did meanwhile, and something may be out.
    is_changing: bool,
    /// All holders were forgotten since that was last asked.
    forgot_all: bool,
}

// === impl CountedKind ===

impl CountedKind {
    /// That of a resource whose books are opened: the kind of what is left from before, if that is anything.
    pub(super) fn new(
        id: &ResourceId,
        template: &Template,
        ledger: &Ledger,
        config: &NodeConfig,
    ) -> CountedKind {
        let record = config.record.as_ref().filter(|_| ledger.total() > 0);
        let left = record.filter(|_| config.rules.keep(Rule::KindRecorded));
        let kind = left.and_then(|record| record.kinds.get(id).copied()).unwrap_or(template.kind);
        CountedKind { kind, is_changing: kind != template.kind, forgot_all: false }
    }
}

/// Refuses a report that takes the resource for one of another kind than `template` says.
pub(crate) fn check_kind(
    template: &Template,
    who: HolderKind,
    index: usize,
    report: &Report,
) -> Result<(), Refusal> {
    let (is_of_kind, keeps_to_it) = (fits(template, report), keeps_to_window(template, who, report));
    if is_of_kind && keeps_to_it {
        return Ok(());
    }
    let name = |kind, is_window| match kind {
        Kind::Rate => "a rate",
        Kind::Gauge if is_window => "a limit on windows",
        Kind::Gauge => "a gauge",
    };
    let other = if template.kind == Kind::Rate { Kind::Gauge } else { Kind::Rate };
    let found = if is_of_kind { template.kind } else { other };
    let field = if is_of_kind { "reserve" } else { "integer" };
    let wanted = name(template.kind, template.window.is_some());
    Err(Refusal::Invalid {
        field: format!("resource[{index}].{field}"),
        found: format!("opens {:?} as {}", report.resource.as_str(), name(found, report.reserve().is_some())),
        wanted: format!("{wanted}, as template {:?} says", template.glob.as_str()),
    })
}

/// Holders that do not say what they take it for are served. So is everybody where nothing is counted.
fn fits(template: &Template, report: &Report) -> bool {
    let counts = template.policy != SharePolicy::None;
    report.integer.filter(|_| counts).is_none_or(|integer| integer == (template.kind == Kind::Gauge))
}

/// Whether a client says that it keeps units for the window where there is one, and only there. Those below a node say so to that.
fn keeps_to_window(template: &Template, who: HolderKind, report: &Report) -> bool {
    who == HolderKind::Node || report.reserve().is_some() == template.window.is_some()
}

// === impl Resource ===

impl Resource {
    /// Refuses a report that takes the resource for one of another kind; not while its holder is to give back what it has of
    /// that.
    pub(crate) fn check_kind(
        &self,
        ask: &Ask,
        index: usize,
        report: &Report,
        config: &NodeConfig,
    ) -> Result<(), Refusal> {
        let gives_back = || {
            let slot = self.holders.children().locate(holder(ask, report, config));
            let is_charged = slot.is_some_and(|slot| !self.holders.at(slot).account().is_empty());
            // What it has from an earlier leader is a part of the ghost until it is claimed.
            self.changes_kind() && (is_charged || shows_earlier(report, config.epoch))
        };
        // Hardly ever refused, and only then is it looked up who asks.
        let refused = check_kind(&self.terms, ask.kind, index, report);
        if refused.is_err() && gives_back() { Ok(()) } else { refused }
    }

    /// The generation of what is granted: each kind has its own.
    pub(super) fn generation(&self) -> u32 {
        match self.terms.kind {
            Kind::Rate => Grant::RATE,
            Kind::Gauge => Grant::GAUGE,
        }
    }

    /// The kind of what may be out.
    pub(crate) fn counted(&self) -> Kind {
        self.counted.kind
    }

    /// Whether nothing is granted until all that is out is over.
    pub(crate) fn changes_kind(&self) -> bool {
        self.counted.is_changing
    }

    /// Whether units of a gauge may be out, which outlast a smaller lease for as long as that is renewed: also while the
    /// template says a rate already.
    pub(super) fn may_have_units_out(&self) -> bool {
        self.terms.kind == Kind::Gauge || self.changes_kind()
    }

    /// The template was another one before, perhaps of another kind. Units in use and uses in a window cannot be added up
    /// either; of another window, or another limit on it, everybody is told.
    pub(super) fn change_kind(&mut self, before: &Template) {
        if before.kind == self.terms.kind && before.window.is_some() == self.terms.window.is_some() {
            if before.use_window() != self.terms.use_window() {
                self.owe_all();
            }
            return;
        }
        self.counted.is_changing = self.ledger.rules().keep(Rule::KindAfterOther);
        if !self.changes_kind() {
            self.counted.kind = self.terms.kind;
        }
        // The node above is told of the other kind, and its lease is of the one before.
        self.supply.forgo();
        self.settle_kind();
    }

    /// Whether all holders were forgotten since that was last asked: those who listen have to hear of it.
    pub(crate) fn take_forgot_all(&mut self) -> bool {
        std::mem::take(&mut self.counted.forgot_all)
    }

    /// The kind is in force as soon as nothing of another one is out.
    pub(super) fn settle_kind(&mut self) {
        if !self.changes_kind() || self.ledger.total() > 0 {
            return;
        }
        let settled = CountedKind { kind: self.terms.kind, is_changing: false, forgot_all: true };
        let before = std::mem::replace(&mut self.counted, settled);
        if before.kind != self.terms.kind
            && self.ledger.ceiling().is_some()
            && self.ledger.rules().keep(Rule::MarkOfKind)
        {
            // The mark counts the kind before.
            self.set_ceiling(Some(Ceiling::default()));
        }
        let slots: Vec<Slot> = self.holders.children().iter_slots().map(|(slot, _)| slot).collect();
        slots.into_iter().for_each(|slot| self.forget(slot));
    }
}
