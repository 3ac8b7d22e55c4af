//! A status that is made a slice at a time, so that nobody has to keep a node to himself for as long as that takes.
//!
//! Each slice shows the node as it is then. A node of few holders is shown in one; the parts of a larger one are of
//! different moments, and what goes meanwhile is left out.

mod choice;

use std::collections::BTreeSet;
use std::collections::btree_set::IntoIter;

use lessor_proto::{Epoch, ResourceId, Time};

use self::choice::Choice;
use super::{Node, NodeStatus, OtherResources, ResourceRow, RowOrder, StatusQuery};
use crate::resource::{RankedHolder, Resource, Slot};

/// A status of which a part is made.
#[derive(Debug)]
pub struct StatusScan {
    query: StatusQuery,
    /// The epoch of the node that was looked at.
    epoch: Epoch,
    stage: ScanStage,
    /// The resources that are shown, with their names.
    rows: Vec<(ResourceId, ResourceRow)>,
    /// Those that are not shown, as one.
    others: Option<OtherResources>,
    /// Holders that may still be shown.
    holders: usize,
}

/// The next thing to look at.
#[derive(Debug)]
enum ScanStage {
    Resources(ResourceCursor),
    Choice(Choice),
    /// The resources that are shown.
    Chosen(IntoIter<ResourceId>),
    Ranks(HolderCursor),
    /// The holders that are shown of the row of that number.
    Holders(usize, IntoIter<RankedHolder>),
    Nothing,
}

/// The resources after a name.
#[derive(Default, Debug)]
struct ResourceCursor {
    after: Option<ResourceId>,
    /// Whether they are the leases of domains, which may be many and come last.
    of_domains: bool,
    /// Whether there are any of those.
    has_domains: bool,
}

/// The holders of a resource from a slot on.
#[derive(Debug)]
struct HolderCursor {
    /// The number of its row.
    row: usize,
    from: Slot,
    looked_at: usize,
    /// Those of the ones before that come first.
    first: BTreeSet<RankedHolder>,
}

/// Holders among which those with the most are looked for, of all resources together.
const MOST_RANKED: usize = 10_000;
/// Holders that are shown at the most, of all resources together.
const MOST_SHOWN: usize = 10_000;
/// The work of one slice, where one is that of looking at a holder or a resource.
const SLICE: usize = 512;
/// The work of showing it.
const SHOWN: usize = 8;

// === impl StatusScan ===

impl StatusScan {
    /// A status of which nothing is made yet.
    #[must_use]
    pub fn new(query: StatusQuery) -> StatusScan {
        let stage = ScanStage::Resources(ResourceCursor::default());
        let epoch = Epoch::default();
        StatusScan { query, epoch, stage, rows: Vec::new(), others: None, holders: MOST_SHOWN }
    }

    /// The choice of what it shows.
    #[must_use]
    pub fn query(&self) -> &StatusQuery {
        &self.query
    }

    /// Makes a slice of the status of `node` at `now`, from the beginning if that is the node of another epoch. Returns the
    /// status when all of it is made, but for what is known of domains where their synchronisation was
    /// [taken out](Node::take_domain_sync).
    pub fn step(&mut self, now: Time, node: &Node) -> Option<NodeStatus> {
        if self.epoch != node.epoch() {
            *self = StatusScan { epoch: node.epoch(), ..StatusScan::new(self.query.clone()) };
        }
        let mut work = SLICE;
        while work > 0 {
            self.stage = match std::mem::replace(&mut self.stage, ScanStage::Nothing) {
                ScanStage::Resources(cursor) => self.show_resources(now, node, cursor, &mut work),
                ScanStage::Choice(mut choice) => match choice.step(node, &self.query, &mut work) {
                    Some((names, others)) => {
                        self.others = Some(others);
                        ScanStage::Chosen(names.into_iter())
                    }
                    None => ScanStage::Choice(choice),
                },
                ScanStage::Chosen(names) => self.show_chosen(now, node, names, &mut work),
                ScanStage::Ranks(cursor) => self.rank_holders(node, cursor, &mut work),
                ScanStage::Holders(row, ranked) => self.show_holders((now, node), row, ranked, &mut work),
                ScanStage::Nothing => {
                    let rows = std::mem::take(&mut self.rows);
                    let resources = rows.into_iter().map(|(_, row)| row).collect();
                    return Some(NodeStatus { resources, others: self.others, ..node.figures(now) });
                }
            };
        }
        None
    }

    fn show_resources(
        &mut self,
        now: Time,
        node: &Node,
        mut cursor: ResourceCursor,
        work: &mut usize,
    ) -> ScanStage {
        if let Some(name) = &self.query.resource {
            let found = node.resources.find(name).filter(|_| self.query.resources > 0);
            self.rows.extend(found.map(|(id, resource)| (id.clone(), node.row(now, resource))));
            return self.holders_of(0);
        }
        if self.query.order == RowOrder::Busiest && node.resources.len() > self.query.resources {
            return ScanStage::Choice(Choice::default());
        }
        for (id, resource) in node.resources.after(cursor.after.as_ref()) {
            if self.rows.len() >= self.query.resources {
                return self.holders_of(0);
            }
            if *work == 0 {
                return ScanStage::Resources(cursor);
            }
            let is_of_domain = resource.terms().part.is_some();
            cursor.has_domains |= is_of_domain;
            let is_shown = is_of_domain == cursor.of_domains && self.query.takes(id);
            *work = work.saturating_sub(if is_shown { SHOWN } else { 1 });
            if is_shown {
                self.rows.push((id.clone(), node.row(now, resource)));
            }
            cursor.after = Some(id.clone());
        }
        match cursor.has_domains && !cursor.of_domains {
            true => ScanStage::Resources(ResourceCursor { of_domains: true, ..ResourceCursor::default() }),
            false => self.holders_of(0),
        }
    }

    fn show_chosen(
        &mut self,
        now: Time,
        node: &Node,
        mut names: IntoIter<ResourceId>,
        work: &mut usize,
    ) -> ScanStage {
        while *work > 0 {
            let Some(id) = names.next() else { return self.holders_of(0) };
            *work = work.saturating_sub(SHOWN);
            let row = node.resources.get(&id).map(|resource| node.row(now, resource));
            self.rows.extend(row.map(|row| (id, row)));
        }
        ScanStage::Chosen(names)
    }

    /// The holders of the row of that number, if there is such a one and any may be shown.
    fn holders_of(&self, row: usize) -> ScanStage {
        match row < self.rows.len() && self.most() > 0 {
            true => ScanStage::Ranks(HolderCursor { row, from: 0, looked_at: 0, first: BTreeSet::new() }),
            false => ScanStage::Nothing,
        }
    }

    /// Holders of the next resource that are shown.
    fn most(&self) -> usize {
        self.query.holders.min(self.holders)
    }

    fn rank_holders(&self, node: &Node, mut cursor: HolderCursor, work: &mut usize) -> ScanStage {
        let most = self.most();
        let looked_at = most.max(MOST_RANKED / self.rows.len());
        let resource = node.resources.get(&self.rows[cursor.row].0);
        let holders = resource.into_iter().flat_map(|resource| resource.ranked_from(cursor.from));
        for (slot, holder) in holders.take(looked_at - cursor.looked_at) {
            if *work == 0 {
                return ScanStage::Ranks(HolderCursor { from: slot, ..cursor });
            }
            *work -= 1;
            cursor.looked_at += 1;
            cursor.first.insert(holder);
            if cursor.first.len() > most {
                cursor.first.pop_last();
            }
        }
        ScanStage::Holders(cursor.row, cursor.first.into_iter())
    }

    fn show_holders(
        &mut self,
        (now, node): (Time, &Node),
        row: usize,
        mut ranked: IntoIter<RankedHolder>,
        work: &mut usize,
    ) -> ScanStage {
        let (id, shown) = &mut self.rows[row];
        let resource = node.resources.get(id);
        shown.resource.holders.reserve_exact(ranked.len());
        while *work > 0 {
            let Some(holder) = ranked.next() else { return self.holders_of(row + 1) };
            *work = work.saturating_sub(SHOWN);
            let status = resource.and_then(|resource: &Resource| resource.holder_status(now, &holder));
            self.holders -= usize::from(status.is_some());
            shown.resource.holders.extend(status);
        }
        ScanStage::Holders(row, ranked)
    }
}

#[cfg(test)]
mod tests;
