//! A look at the domains of a running client: who is busiest, who has little left, who rests, who owes.

use std::cmp::Ordering;

use lessor_algorithms::tiers::Standing;
use lessor_proto::Time;

use super::counts::DomainCounts;
use super::record::Record;
use super::store::Domains;

/// Which domains to show, in which order, and how many of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Query {
    /// Which ones.
    pub filter: Filter,
    /// Which of them first.
    pub order: Order,
    /// The most domains to be listed by name.
    pub most: usize,
}

/// Which domains.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Filter {
    /// All that are remembered.
    All,
    /// Those that have less than this share left, from 0 to 1: see [`Row::remaining`].
    Below(f64),
    /// Those of which a tier cools down.
    CoolingDown,
    /// Those that owe hits.
    Indebted,
}

/// Which domains come first; equal ones come by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Those with the most hits in the last second, or else with the most granted.
    Busiest,
    /// Those with the least share left.
    LeastLeft,
    /// Those with the most refusals.
    MostRefused,
    /// Those that owe the most.
    MostOwed,
}

/// The result of a query.
#[derive(Clone, PartialEq, Debug)]
pub struct Snapshot {
    /// The first of the domains that were looked for.
    pub rows: Vec<Row>,
    /// All others that are remembered, together.
    pub rest: Rest,
    /// The counts of what was asked and granted since the beginning, by domains that are forgotten as well.
    pub counts: DomainCounts,
}

/// One domain.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Its name.
    pub domain: String,
    /// Hits granted since it was last idle.
    pub granted: u64,
    /// Requests refused since then.
    pub refused: u64,
    /// Hits of the last second.
    pub hits_in_second: u32,
    /// The current tier of the policy that has the least left, counted from 1; 0 where none is active.
    pub tier: usize,
    /// Of that tier.
    pub tier_limit: u32,
    /// Hits that count in it.
    pub hits_in_tier: u32,
    /// The share of the limit of that tier that is left, from 0 to 1. With none active: all.
    pub remaining: f64,
    /// Until when the tier rests that cools down the longest.
    pub cooling_until: Option<Time>,
    /// Hits that are owed.
    pub debt: u32,
}

/// Several domains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rest {
    /// The number of domains.
    pub domains: usize,
    /// Hits granted since each was last idle.
    pub granted: u64,
    /// Requests refused since then.
    pub refused: u64,
    /// Hits of the last second.
    pub hits_in_second: u64,
}

/// The first rows of all that were seen.
struct First<'a> {
    query: &'a Query,
    rows: Vec<Row>,
    /// The last of as many as are looked for, of those that were seen when there were last too many.
    last: Option<Row>,
    rest: Rest,
}

// === impl Domains ===

impl Domains {
    /// Looks at all domains that are remembered, one shard after the other: it is for now and then.
    #[must_use]
    pub fn snapshot(&self, query: &Query, now: Time) -> Snapshot {
        let mut first = First { query, rows: Vec::new(), last: None, rest: Rest::default() };
        for shard in self.shards() {
            shard.records().for_each(|record| first.take(record, now));
        }
        let (rows, rest) = first.finish();
        Snapshot { rows, rest, counts: self.counts() }
    }
}

// === impl First ===

impl First<'_> {
    /// The number of rows that may be kept for a while beyond those that are looked for.
    const SLACK: usize = 64;

    fn take(&mut self, record: &Record, now: Time) {
        // Its name is another place in memory, and most are not shown.
        let row = Row::of(record, now);
        let compare = |last: &Row| self.query.order.compare((&row, record.name()), (last, &last.domain));
        let is_out = self.last.as_ref().is_some_and(|last| compare(last).is_gt());
        if is_out || !self.query.filter.takes(&row) {
            return self.rest.add(&row);
        }
        self.rows.push(Row { domain: record.name().to_owned(), ..row });
        if self.rows.len() >= self.query.most.saturating_mul(2).saturating_add(First::SLACK) {
            self.narrow();
        }
    }

    /// Drops those that others come before.
    fn narrow(&mut self) {
        let Query { order, most, .. } = *self.query;
        if most > 0 && self.rows.len() > most {
            self.rows.select_nth_unstable_by(most - 1, |one, other| {
                order.compare((one, &one.domain), (other, &other.domain))
            });
            self.last = Some(self.rows[most - 1].clone());
        }
        self.rows.drain(most.min(self.rows.len())..).for_each(|row| self.rest.add(&row));
    }

    fn finish(mut self) -> (Vec<Row>, Rest) {
        self.narrow();
        let order = self.query.order;
        self.rows.sort_unstable_by(|one, other| order.compare((one, &one.domain), (other, &other.domain)));
        (self.rows, self.rest)
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// All that the rows do not show, domains that are forgotten included: with the rows it adds up to the counts.
    #[must_use]
    pub fn others(&self) -> Rest {
        let sum = |of: fn(&Row) -> u64| self.rows.iter().map(of).sum::<u64>();
        Rest {
            granted: self.counts.granted.saturating_sub(sum(|row| row.granted)),
            refused: self.counts.refused.saturating_sub(sum(|row| row.refused)),
            ..self.rest
        }
    }
}

// === impl Query ===

impl Query {
    /// A query for the `most` busiest domains.
    #[must_use]
    pub fn busiest(most: usize) -> Query {
        Query { filter: Filter::All, order: Order::Busiest, most }
    }
}

// === impl Filter ===

impl Filter {
    fn takes(self, row: &Row) -> bool {
        match self {
            Filter::All => true,
            Filter::Below(share) => row.remaining < share,
            Filter::CoolingDown => row.cooling_until.is_some(),
            Filter::Indebted => row.debt > 0,
        }
    }
}

// === impl Order ===

impl Order {
    /// Two rows, each with the name of its domain.
    fn compare(self, (one, name): (&Row, &str), (other, other_name): (&Row, &str)) -> Ordering {
        let first = match self {
            Order::Busiest => {
                let busy = |row: &Row| (row.hits_in_second, row.granted);
                busy(other).cmp(&busy(one))
            }
            Order::LeastLeft => one.remaining.total_cmp(&other.remaining),
            Order::MostRefused => other.refused.cmp(&one.refused),
            Order::MostOwed => other.debt.cmp(&one.debt),
        };
        first.then_with(|| name.cmp(other_name))
    }
}

// === impl Row ===

impl Row {
    /// That of a domain, without its name.
    fn of(record: &Record, now: Time) -> Row {
        let (history, contract) = (&record.history, record.contract());
        let now = now.as_nanos();
        let Standing { current, cooling_until } = history.standing(contract, now);
        Row {
            domain: String::new(),
            granted: record.granted(),
            refused: record.refused(),
            hits_in_second: history.hits_in_second(contract, now),
            tier: current.map_or(0, |tier| tier.tier),
            tier_limit: current.map_or(0, |tier| tier.limit),
            hits_in_tier: current.map_or(0, |tier| tier.hits),
            remaining: current.map_or(1.0, |tier| tier.left()),
            cooling_until: cooling_until.map(Time::from_nanos),
            debt: history.debt(),
        }
    }
}

// === impl Rest ===

impl Rest {
    fn add(&mut self, row: &Row) {
        self.domains += 1;
        self.granted += row.granted;
        self.refused += row.refused;
        self.hits_in_second += u64::from(row.hits_in_second);
    }
}
