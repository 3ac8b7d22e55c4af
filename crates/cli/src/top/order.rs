//! Orders of rows, and lists of which a row is chosen.

use std::cmp::Ordering;

use lessor_server::repository::Glob;

use crate::status::lines::fullness;
use crate::status::node::{Holder, Resource};

/// A column by which resources are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResourceOrder {
    Full,
    Short,
    Wanted,
    Out,
    Clients,
    Name,
}

/// A column by which holders are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HolderOrder {
    Short,
    Has,
    Wants,
    Ends,
    Name,
}

/// A kind of rows, and the orders that it has.
pub(super) trait RowOrder: Copy + PartialEq + 'static {
    /// A row.
    type Row;
    /// All orders, in turn.
    const ALL: &'static [Self];

    /// The name of the column.
    fn label(self) -> &'static str;
    /// The order of two rows, that which is looked for first.
    fn compare(self, one: &Self::Row, other: &Self::Row) -> Ordering;
    /// The name of a row.
    fn name(row: &Self::Row) -> &str;
}

/// The way to look at rows: their order, a filter, and the one that is chosen.
#[derive(Clone, Debug)]
pub(super) struct Listing<O> {
    pub(super) order: O,
    pub(super) is_reversed: bool,
    /// A part of names, or a pattern.
    pub(super) filter: String,
    /// The name of the chosen row, and where it was last: another one stands there when it has gone.
    chosen: Option<String>,
    at: usize,
}

// === impl ResourceOrder ===

impl RowOrder for ResourceOrder {
    type Row = Resource;
    const ALL: &'static [ResourceOrder] = &[
        ResourceOrder::Full,
        ResourceOrder::Short,
        ResourceOrder::Wanted,
        ResourceOrder::Out,
        ResourceOrder::Clients,
        ResourceOrder::Name,
    ];

    fn label(self) -> &'static str {
        match self {
            ResourceOrder::Full => "full",
            ResourceOrder::Short => "short",
            ResourceOrder::Wanted => "wanted",
            ResourceOrder::Out => "out",
            ResourceOrder::Clients => "clients",
            ResourceOrder::Name => "resource",
        }
    }

    fn compare(self, one: &Resource, other: &Resource) -> Ordering {
        let fuller = || fullness(other).total_cmp(&fullness(one)).then(other.short.total_cmp(&one.short));
        let first = match self {
            // More than may be is worse than full.
            ResourceOrder::Full => (other.overcommitment > 0.0).cmp(&(one.overcommitment > 0.0)),
            ResourceOrder::Short => other.short.total_cmp(&one.short),
            ResourceOrder::Wanted => other.wants.total_cmp(&one.wants),
            ResourceOrder::Out => other.outstanding.total_cmp(&one.outstanding),
            ResourceOrder::Clients => other.clients.cmp(&one.clients),
            ResourceOrder::Name => one.resource.cmp(&other.resource),
        };
        first.then_with(fuller).then_with(|| one.resource.cmp(&other.resource))
    }

    fn name(row: &Resource) -> &str {
        &row.resource
    }
}

// === impl HolderOrder ===

impl RowOrder for HolderOrder {
    type Row = Holder;
    const ALL: &'static [HolderOrder] =
        &[HolderOrder::Short, HolderOrder::Has, HolderOrder::Wants, HolderOrder::Ends, HolderOrder::Name];

    fn label(self) -> &'static str {
        match self {
            HolderOrder::Short => "short",
            HolderOrder::Has => "has",
            HolderOrder::Wants => "wants",
            HolderOrder::Ends => "ends in",
            HolderOrder::Name => "client",
        }
    }

    fn compare(self, one: &Holder, other: &Holder) -> Ordering {
        let first = match self {
            // Where all have their shares, those first who want the most above that.
            HolderOrder::Short => {
                other.short().total_cmp(&one.short()).then(other.unmet().total_cmp(&one.unmet()))
            }
            HolderOrder::Has => Ordering::Equal,
            HolderOrder::Wants => other.wants.total_cmp(&one.wants),
            HolderOrder::Ends => one.ends_in_seconds.total_cmp(&other.ends_in_seconds),
            HolderOrder::Name => one.client.cmp(&other.client),
        };
        let same = || one.client.cmp(&other.client).then(one.superseded.cmp(&other.superseded));
        first.then(other.has.total_cmp(&one.has)).then_with(same)
    }

    fn name(row: &Holder) -> &str {
        &row.client
    }
}

// === impl Listing ===

impl<O: RowOrder> Listing<O> {
    pub(super) fn new() -> Listing<O> {
        Listing { order: O::ALL[0], is_reversed: false, filter: String::new(), chosen: None, at: 0 }
    }

    /// The rows that pass the filter, in order.
    pub(super) fn rows<'a>(&self, all: &'a [O::Row]) -> Vec<&'a O::Row> {
        let mut rows: Vec<&O::Row> = all.iter().filter(|row| self.passes(O::name(row))).collect();
        rows.sort_by(|one, other| self.order.compare(one, other));
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    fn passes(&self, name: &str) -> bool {
        match Glob::new(&self.filter) {
            Ok(glob) if !glob.is_plain() => glob.matches(name),
            _ => name.to_lowercase().contains(&self.filter.to_lowercase()),
        }
    }

    /// The place of the chosen row, if there is any.
    pub(super) fn chosen(&self, rows: &[&O::Row]) -> Option<usize> {
        let name = self.chosen.as_deref();
        let found = rows.iter().position(|row| Some(O::name(row)) == name);
        found.or((!rows.is_empty()).then(|| self.at.min(rows.len() - 1)))
    }

    /// Chooses the row that is so many below, or above; at most the last, or the first.
    pub(super) fn step(&mut self, rows: &[&O::Row], by: isize) {
        let Some(at) = self.chosen(rows) else { return };
        self.at = at.saturating_add_signed(by).min(rows.len() - 1);
        self.chosen = Some(O::name(rows[self.at]).to_owned());
    }

    /// Sorts by the next column.
    pub(super) fn sort_on(&mut self) {
        let at = O::ALL.iter().position(|&order| order == self.order).unwrap_or(0);
        (self.order, self.is_reversed) = (O::ALL[(at + 1) % O::ALL.len()], false);
        self.forget();
    }

    /// Sorts the other way round.
    pub(super) fn turn_round(&mut self) {
        self.is_reversed = !self.is_reversed;
        self.forget();
    }

    /// The filter, to be changed.
    pub(super) fn new_filter(&mut self) -> &mut String {
        self.forget();
        &mut self.filter
    }

    /// Chooses the first row, as others are in sight.
    fn forget(&mut self) {
        (self.chosen, self.at) = (None, 0);
    }
}
