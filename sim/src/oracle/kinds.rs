//! The kinds of resources: nothing is used of one as a rate while units of it are in use, and in the end nothing as what it
//! was before.

use lessor_proto::Time;
use lessor_proto::message::HolderKind;
use lessor_server::node::ChildBook;
use lessor_server::repository::Kind;

use super::limit::LINGERS;
use super::{Facts, Oracle};
use crate::actor::Actor;
use crate::faults::Fault;
use crate::plan::{Election, Way};
use crate::site::Site;

/// The kind of a resource, and what is used of it as which.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The kind by which the last leader of the root acts.
    now: Kind,
    /// Until when something may be used as the other kind.
    until: Time,
    /// The amounts that clients use that say what they take it for, in millionths: as a rate, and as a gauge.
    used: [u128; 2],
    /// Somebody leads who does not know which kind was out, or did, and some of it has been in use ever since.
    blurred: bool,
}

// === impl Counted ===

impl Counted {
    pub(super) fn new(kind: Kind) -> Counted {
        Counted { now: kind, until: Time::ZERO, used: [0; 2], blurred: false }
    }

    /// Whether units may be out, of this kind or of the one before.
    pub(super) fn has_units(&self) -> bool {
        self.now == Kind::Gauge || self.used[Kind::Gauge as usize] > 0
    }

    /// The amount that is used as the kind that is not in force.
    fn left(&self) -> u128 {
        match self.now {
            Kind::Rate => self.used[Kind::Gauge as usize],
            Kind::Gauge => self.used[Kind::Rate as usize],
        }
    }
}

// === impl Oracle ===

impl Oracle {
    /// The root acts by that kind from here on. What was granted of another may be used until `patience`; under a new leader
    /// of the root, what was still being taken back as well.
    pub(crate) fn be_of_kind(&mut self, resource: usize, kind: Kind, patience: Time, succession: bool) {
        let counted = &mut self.kinds[resource];
        if counted.now != kind || succession {
            (counted.now, counted.until) = (kind, patience);
        }
    }
}

// === impl Oracle ===

impl Oracle {
    /// Judges what is used as which kind. From a succession without memory on both kinds may be in use: nodes below
    /// that are about to change show to such a leader what they have from before as what it will be. That is over when the
    /// leader has learnt all that may be out, and nothing is left of the kind that is not in force. Clients of Doorman's do not
    /// say what they take a resource for, and count as neither.
    pub(super) fn check_kinds(&mut self, facts: &Facts<'_>) {
        if !facts.changes_kinds() {
            return;
        }
        let learns = facts.learns_above();
        let mut used = vec![[0_u128; 2]; facts.resources.len()];
        for holding in facts.holdings {
            if facts.clients[holding.client as usize].way != Way::Legacy {
                used[usize::from(holding.resource)][holding.taken_as.kind as usize] +=
                    u128::from(facts.uses(holding));
            }
        }
        for (index, used) in used.into_iter().enumerate() {
            let counted = &mut self.kinds[index];
            counted.used = used;
            let (left, kind, over) = (counted.left(), counted.now, facts.now > counted.until);
            if left > 0 && kind == Kind::Rate {
                // Units in use are kept as long as their lease is renewed; nothing is granted meanwhile.
                counted.until = counted.until.max(facts.now + LINGERS);
            }
            counted.blurred = learns || counted.blurred && left > 0;
            if counted.blurred {
                continue;
            }
            let [rate, units] = used;
            if rate > 0 && units > 0 {
                self.fail(27, || {
                    format!("{rate} millionths of r{index} are used a second, and {units} as units")
                });
            } else if left > 0 && over {
                self.fail(27, || {
                    format!("r{index} has been a {kind:?} for a lease, and {left} millionths are used as the other")
                });
            }
        }
    }
}

// === impl Facts ===

impl Facts<'_> {
    fn changes_kinds(&self) -> bool {
        self.rules.faults.every(Fault::Kind).is_some()
    }

    /// Whether all who come to lead know what was out before, and of which kind.
    fn remembers(&self) -> bool {
        self.rules.election != Election::Alone && self.rules.memory.etcd.is_none()
    }

    /// Whether a holder knows which kind it holds. Where kinds are changed clients of Doorman's go on with the number that they
    /// have, also of what has become a gauge.
    pub(super) fn knows_kind(&self, actor: Actor) -> bool {
        let is_legacy = |client: u32| self.clients[client as usize].way == Way::Legacy;
        !self.changes_kinds() || !matches!(actor, Actor::Client(client) if is_legacy(client))
    }

    /// Whether what a holder shows is of the kind that it says. Where kinds are changed clients of Doorman's say none, and nodes
    /// that remember nothing do not know what they have from before.
    pub(super) fn shows_kind(&self, child: &ChildBook) -> bool {
        let shows = match child.kind {
            HolderKind::Node => self.remembers(),
            HolderKind::Client => child.incarnation.is_some(),
        };
        shows || !self.changes_kinds()
    }

    /// Whether the root or a node above others is led by one who may still be shown what was out before, and does not know of which
    /// kind. Of a leaf that remembers nothing the node above knows it.
    fn learns_above(&self) -> bool {
        let learns = |site: &Site| self.now < site.learns_until;
        let is_above = |site: &&Site| site.kin.parent.is_none() || !site.kin.children.is_empty();
        self.sites.iter().filter(is_above).any(learns)
    }
}
