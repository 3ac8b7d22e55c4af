//! The books of a resource, laid open for whoever checks them.

use compact_str::CompactString;
use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, Incarnation, Time};

use super::Resource;
use super::holders::Child;
use crate::ledger::{Cut, Ghost};
use crate::repository::Kind;

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
    /// The cuts of a debt, oldest first.
    pub cuts: Vec<Cut>,
    /// The holders that are charged.
    pub children: Vec<ChildBook>,
}

/// The book of one holder.
#[derive(Clone, PartialEq, Debug)]
pub struct ChildBook {
    /// Whether a client or a node.
    pub kind: HolderKind,
    /// The holder.
    pub holder: CompactString,
    /// Which life of it, if it says so.
    pub incarnation: Option<Incarnation>,
    /// The most that it may still use.
    pub charge: Amount,
    /// When the last of it ends.
    pub ends: Option<Time>,
    /// The wants, in units (a second).
    pub wants: f64,
    /// The number of clients that it stands for.
    pub weight: u64,
    /// The number of demands that it states, one for each band.
    pub demands: usize,
    /// The greatest priority of them.
    pub priority: i64,
    /// The amount that is due to it; absent where that was not asked for.
    pub share: Option<Amount>,
    /// Grants that count.
    pub entries: usize,
}

// === impl Resource ===

impl Resource {
    /// The books at `now`, with what is due to each holder.
    pub(crate) fn books(&self, now: Time) -> Books {
        let mut books = self.charges();
        for ((slot, child), book) in self.holders.children().iter_slots().zip(&mut books.children) {
            book.share = Some(if child.is_withdrawn() { Amount::ZERO } else { self.target(now, slot) });
        }
        books
    }

    /// The books without what is due to each holder.
    pub(crate) fn charges(&self) -> Books {
        Books {
            limit: self.ledger().limit(),
            counted: self.counted(),
            changes_kind: self.changes_kind(),
            total: self.ledger().total(),
            ghost: self.ledger().ghost(),
            ghost_until: self.ghost_until(),
            ghost_parts: *self.ledger().ghost_parts(),
            in_debt: self.ledger().in_debt(),
            cuts: self.ledger().cuts().to_vec(),
            children: self.child_books(),
        }
    }

    /// The books of the children, one by one.
    fn child_books(&self) -> Vec<ChildBook> {
        let book = |child: &Child| ChildBook {
            kind: child.kind,
            holder: child.name.clone(),
            incarnation: child.flags.incarnated.then_some(child.life.session),
            charge: child.account().charge(),
            ends: child.account().last_end(),
            wants: child.demands().wants(),
            weight: child.demands().weight(),
            demands: child.demands().iter().count(),
            priority: child.demands().iter().map(|demand| demand.priority).max().unwrap_or_default(),
            share: None,
            entries: child.account().entries().len(),
        };
        let mut books = Vec::with_capacity(self.holders.children().len());
        books.extend(self.holders.children().iter().map(book));
        books
    }
}
