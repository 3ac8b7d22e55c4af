//! A table: rows of which every field can be filtered and sorted, a page at a time.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::cursor::{self, Key, Keys};
use crate::parameters::Parameters;
use crate::problem::ApiProblem;
use crate::sieve::Sieve;

/// The value of a field in a row.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Cell<'a> {
    Number(f64),
    Text(Cow<'a, str>),
    Truth(bool),
    Absent,
}

/// The kind of the values of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnKind {
    Number,
    Text,
    Truth,
}

/// A field of the rows of a table.
#[derive(Debug)]
pub(crate) struct Column<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    pub(crate) of: fn(&R) -> Cell<'_>,
}

/// A table of rows.
#[derive(Debug)]
pub(crate) struct Table<R: 'static> {
    pub(crate) columns: &'static [Column<R>],
    /// The columns that tell rows apart.
    pub(crate) id: &'static [&'static str],
    /// The order where none is asked for.
    pub(crate) order: &'static str,
}

/// A page of a table.
#[derive(Debug)]
pub(crate) struct Page<'a, R> {
    pub(crate) rows: Vec<&'a R>,
    /// The rows that match, on all pages.
    pub(crate) matching: usize,
    /// The cursor of the next page, if there is one.
    pub(crate) next: Option<String>,
}

/// The order of rows: columns, and whether the greatest come first.
type Order<R> = Vec<(&'static Column<R>, bool)>;

// === impl Cell ===

impl<'a> Cell<'a> {
    pub(crate) fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }

    /// A number, where there is one.
    pub(crate) fn maybe(number: Option<f64>) -> Cell<'a> {
        number.map_or(Cell::Absent, Cell::Number)
    }

    fn key(self) -> Key {
        match self {
            // JSON has no others.
            Cell::Number(number) if number.is_finite() => Key::Number(number),
            Cell::Number(_) | Cell::Absent => Key::Absent,
            Cell::Text(text) => Key::Text(text.into_owned()),
            Cell::Truth(truth) => Key::Truth(truth),
        }
    }
}

// === impl Table ===

impl<R> Table<R> {
    pub(crate) fn column(&self, name: &str) -> Option<&'static Column<R>> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The page of `rows` that `where`, `sort`, `limit` and `after` ask for.
    pub(crate) fn page<'a>(&self, rows: &'a [R], asked: &Parameters) -> Result<Page<'a, R>, ApiProblem> {
        let sieve = Sieve::read(self, asked.text("where").unwrap_or_default())?;
        let order = self.order(asked.text("sort"))?;
        let limit = asked.limit()?;
        let after = asked.text("after").map(|text| cursor::decode(text, order.len())).transpose()?;
        let matching: Vec<&R> = rows.iter().filter(|row| sieve.passes(row)).collect();
        let count = matching.len();
        let keyed = matching.into_iter().map(|row| (keys(&order, row), row));
        let is_after = |keys: &Keys| {
            after.as_ref().is_none_or(|after| compare(&order, keys, after) == Ordering::Greater)
        };
        let mut left: Vec<(Keys, &R)> = keyed.filter(|(keys, _)| is_after(keys)).collect();
        left.sort_by(|(one, _), (other, _)| compare(&order, one, other));
        let next = (left.len() > limit).then(|| cursor::encode(&left[limit - 1].0));
        left.truncate(limit);
        Ok(Page { rows: left.into_iter().map(|(_, row)| row).collect(), matching: count, next })
    }

    fn order(&self, asked: Option<&str>) -> Result<Order<R>, ApiProblem> {
        let mut order: Order<R> = Vec::new();
        for part in asked.unwrap_or(self.order).split(',') {
            let (name, is_descending) = part.strip_prefix('-').map_or((part, false), |name| (name, true));
            let column = self.column(name).ok_or_else(|| self.unknown("sort", name))?;
            order.push((column, is_descending));
        }
        let id = self.id.iter().filter_map(|name| self.column(name)).map(|column| (column, false));
        order.extend(id);
        Ok(order)
    }

    /// A field is named that there is not.
    pub(crate) fn unknown(&self, parameter: &str, name: &str) -> ApiProblem {
        let known: Vec<&'static str> = self.columns.iter().map(|column| column.name).collect();
        let wanted = format!("a field, one of {}", known.join(", "));
        ApiProblem::invalid(parameter, name, &wanted).knowing(known)
    }
}

fn keys<R>(order: &Order<R>, row: &R) -> Keys {
    order.iter().map(|(column, _)| (column.of)(row).key()).collect()
}

fn compare<R>(order: &Order<R>, one: &[Key], other: &[Key]) -> Ordering {
    let pairs = order.iter().zip(one.iter().zip(other));
    let unequal = pairs.map(|((_, is_descending), (one, other))| one.compare(other, *is_descending));
    unequal.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) type Pair = (&'static str, Option<f64>);

    pub(crate) const PAIRS: Table<Pair> = Table {
        columns: &[
            Column { name: "name", kind: ColumnKind::Text, of: |row| Cell::text(row.0) },
            Column { name: "has", kind: ColumnKind::Number, of: |row| Cell::maybe(row.1) },
            Column { name: "long", kind: ColumnKind::Truth, of: |row| Cell::Truth(row.0.len() > 3) },
        ],
        id: &["name"],
        order: "-has",
    };

    fn page<'a>(rows: &'a [Pair], query: &str) -> Result<Page<'a, Pair>, ApiProblem> {
        let uri = format!("/?{query}").parse().expect("a path");
        PAIRS.page(rows, &Parameters::read(&uri, &["where", "sort", "limit", "after"])?)
    }

    #[test]
    fn pages_go_on_where_the_one_before_has_ended() {
        let rows: Vec<Pair> =
            vec![("c", Some(1.0)), ("a", Some(1.0)), ("none", None), ("d", Some(7.0)), ("b", Some(1.0))];
        let (mut seen, mut after) = (Vec::new(), String::new());
        for _ in 0..9 {
            let page = page(&rows, &format!("limit=2{after}")).expect("a page");
            assert_eq!(page.matching, 5);
            seen.extend(page.rows.iter().map(|row| row.0));
            match page.next {
                Some(next) => after = format!("&after={next}"),
                None => break,
            }
        }
        assert_eq!(seen, ["d", "a", "b", "c", "none"]);
        let by_name = page(&rows, "sort=-name").expect("a page");
        assert_eq!(by_name.rows.iter().map(|row| row.0).collect::<String>(), "nonedcba");
    }

    #[test]
    fn a_field_that_there_is_not_is_named_with_those_that_there_are() {
        let fault = page(&[], "sort=-haz").expect_err("there is none");
        assert_eq!(fault.error, "sort: found \"haz\"; wanted a field, one of name, has, long");
        assert_eq!(fault.known, ["name", "has", "long"]);
        let fault = page(&[], "sort=name,has&after=WyJhIl0").expect_err("it is of another order");
        assert!(fault.error.starts_with("after: found"), "{fault:?}");
    }
}
