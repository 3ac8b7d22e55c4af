//! The books of a resource, laid open for whoever checks them.

use std::collections::BTreeMap;

use lessor_client::session::Session;
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, ResourceId, Time};

use super::Node;
use super::parent::Above;
use crate::ledger::Ghost;
use crate::repository::Kind;
use crate::resource::Resource;

/// The books of one resource.
#[derive(Clone, PartialEq, Debug)]
pub struct Books {
    /// The limit of the sum.
    pub limit: Option<Amount>,
    /// The kind of what may be out.
    pub counted: Kind,
    /// Whether nothing is granted until all of that is over, as the template says another kind, or did meanwhile.
    pub changes_kind: bool,
    /// The sum as kept in passing, with the ghost, in millionths.
    pub total: u128,
    /// The amount that may be out under earlier leaders to holders that are not known.
    pub ghost: Amount,
    /// When the last of that is over.
    pub ghost_until: Time,
    /// The same by when it is over.
    pub ghost_parts: Ghost,
    /// Whether more is out than the limit since that was cut.
    pub in_debt: bool,
    /// The amount that was granted since, in millionths.
    pub since_cut: u128,
    /// The holders that are charged.
    pub children: Vec<ChildBook>,
}

/// The book of one holder.
#[derive(Clone, PartialEq, Debug)]
pub struct ChildBook {
    /// Whether a client or a node.
    pub kind: HolderKind,
    /// The holder.
    pub holder: String,
    /// Which life of it, if it says so.
    pub incarnation: Option<u64>,
    /// The most that it may still use.
    pub charge: Amount,
    /// When the last of it ends.
    pub ends: Option<Time>,
    /// The wants, in units (a second).
    pub wants: f64,
    /// The number of clients that it stands for.
    pub weight: u64,
    /// The amount that is due to it.
    pub share: Amount,
    /// Grants that count.
    pub entries: usize,
}

// === impl Node ===

impl Node {
    /// The books of a resource at `now`.
    #[must_use]
    pub fn books(&self, now: Time, resource: &ResourceId) -> Option<Books> {
        self.resources.get(resource).map(|resource| resource.books(now))
    }

    /// The amounts that a successor must be told: no more is out.
    #[must_use]
    pub fn outstanding(&self, now: Time) -> BTreeMap<ResourceId, Amount> {
        let before = self.config.record.iter().flat_map(|record| {
            let ghost = |id: &ResourceId| record.ghost(id, self.since, self.config.drift).at(now).amount();
            record.marks.keys().map(move |id| (id.clone(), ghost(id)))
        });
        let mut out: BTreeMap<_, _> = before.filter(|(_, amount)| *amount > Amount::ZERO).collect();
        out.extend(self.resources.iter().map(|(id, resource)| (id.clone(), resource.outstanding())));
        out
    }

    /// The session with the node above.
    #[must_use]
    pub fn parent_session(&self) -> Option<&Session> {
        self.parent.as_ref().map(Above::session)
    }
}

// === impl Resource ===

impl Resource {
    fn books(&self, now: Time) -> Books {
        Books {
            limit: self.ledger().limit(),
            counted: self.counted(),
            changes_kind: self.changes_kind(),
            total: self.ledger().total(),
            ghost: self.ledger().ghost(),
            ghost_until: self.ghost_until(),
            ghost_parts: *self.ledger().ghost_parts(),
            in_debt: self.ledger().in_debt(),
            since_cut: self.ledger().since_cut(),
            children: self.child_books(now),
        }
    }
}
