//! The sieve of a table: conditions that a row has to meet, all of them, as `where` says them.
//!
//! `has<share,client^=web-,state="gives back"`: a field, one of `= != < > <= >= ^=`, and another field, a number, `true`, `false`,
//! `null` for what is absent, or text, which may stand between quotation marks as in JSON.

use crate::problem::ApiProblem;
use crate::table::{Cell, Column, ColumnKind, Table};

/// Conditions, all of which have to be met.
#[derive(Debug)]
pub(crate) struct Sieve<R: 'static>(Vec<Condition<R>>);

#[derive(Debug)]
struct Condition<R: 'static> {
    column: &'static Column<R>,
    relation: Relation,
    right: Operand<R>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Relation {
    Equal,
    Unequal,
    Less,
    Greater,
    AtMost,
    AtLeast,
    BeginsWith,
}

/// The right side of a condition.
#[derive(Debug)]
enum Operand<R: 'static> {
    Column(&'static Column<R>),
    Value(Cell<'static>),
}

/// Longer ones come first: `<=` is not `<`.
const RELATIONS: [(&str, Relation); 7] = [
    ("<=", Relation::AtMost),
    (">=", Relation::AtLeast),
    ("^=", Relation::BeginsWith),
    ("!=", Relation::Unequal),
    ("=", Relation::Equal),
    ("<", Relation::Less),
    (">", Relation::Greater),
];
/// Conditions of one sieve.
const MOST_CONDITIONS: usize = 16;

// === impl Sieve ===

impl<R> Sieve<R> {
    /// The conditions in `text`, of the fields of a table.
    pub(crate) fn read(table: &Table<R>, text: &str) -> Result<Sieve<R>, ApiProblem> {
        let mut conditions = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            if conditions.len() == MOST_CONDITIONS {
                let wanted = format!("at most {MOST_CONDITIONS} conditions");
                return Err(ApiProblem::invalid("where", text, &wanted));
            }
            let (condition, behind) = read_condition(table, rest)?;
            conditions.push(condition);
            rest = match behind.trim_start().strip_prefix(',') {
                Some(next) if !next.trim().is_empty() => next.trim_start(),
                None if behind.trim().is_empty() => "",
                _ => return Err(ApiProblem::invalid("where", behind, "another condition behind a comma")),
            };
        }
        Ok(Sieve(conditions))
    }

    pub(crate) fn passes(&self, row: &R) -> bool {
        self.0.iter().all(|condition| condition.holds(row))
    }
}

fn read_condition<'a, R>(table: &Table<R>, text: &'a str) -> Result<(Condition<R>, &'a str), ApiProblem> {
    let end =
        text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let column = table.column(name).ok_or_else(|| table.unknown("where", name))?;
    let rest = rest.trim_start();
    let relation = RELATIONS.iter().find_map(|(sign, relation)| Some((*relation, rest.strip_prefix(sign)?)));
    let (relation, rest) = relation.ok_or_else(|| {
        ApiProblem::invalid("where", text, "= != < > <= >= or ^= behind the name of a field")
    })?;
    if relation == Relation::BeginsWith && column.kind != ColumnKind::Text {
        return Err(ApiProblem::invalid("where", text, &format!("another relation: {name} is no text")));
    }
    let rest = rest.trim_start();
    if rest.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let value = values.next().and_then(Result::ok);
        let value =
            value.ok_or_else(|| ApiProblem::invalid("where", rest, "text between quotation marks"))?;
        let right = Operand::Value(literal(column, &value, true)?);
        return Ok((Condition { column, relation, right }, &rest[values.byte_offset()..]));
    }
    let (word, behind) = rest.split_at(rest.find(',').unwrap_or(rest.len()));
    let word = word.trim();
    let right = match table.column(word).filter(|other| other.kind == column.kind) {
        Some(other) => Operand::Column(other),
        None => Operand::Value(literal(column, word, false)?),
    };
    Ok((Condition { column, relation, right }, behind))
}

/// The value that a word stands for beside a column.
fn literal<R>(column: &Column<R>, word: &str, is_quoted: bool) -> Result<Cell<'static>, ApiProblem> {
    if word == "null" && !is_quoted {
        return Ok(Cell::Absent);
    }
    let field = format!("where: {}", column.name);
    match column.kind {
        ColumnKind::Text => Ok(Cell::Text(word.to_owned().into())),
        ColumnKind::Number => word.parse().map(Cell::Number).map_err(|_| {
            ApiProblem::invalid(&field, word, "a number, another field that is a number, or null")
        }),
        ColumnKind::Truth => match word {
            "true" => Ok(Cell::Truth(true)),
            "false" => Ok(Cell::Truth(false)),
            _ => Err(ApiProblem::invalid(&field, word, "true or false")),
        },
    }
}

// === impl Condition ===

impl<R> Condition<R> {
    fn holds(&self, row: &R) -> bool {
        let left = (self.column.of)(row);
        match &self.right {
            Operand::Column(column) => self.relation.holds(&left, &(column.of)(row)),
            Operand::Value(value) => self.relation.holds(&left, value),
        }
    }
}

// === impl Relation ===

impl Relation {
    /// Whether it holds. Nothing is less or greater than what is absent.
    fn holds(self, left: &Cell<'_>, right: &Cell<'_>) -> bool {
        let order = match (left, right) {
            (Cell::Number(left), Cell::Number(right)) => left.partial_cmp(right),
            (Cell::Text(left), Cell::Text(right)) => Some(left.cmp(right)),
            (Cell::Truth(left), Cell::Truth(right)) => Some(left.cmp(right)),
            _ => None,
        };
        let is_equal = left == right;
        match self {
            Relation::Equal => is_equal,
            Relation::Unequal => !is_equal,
            Relation::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Relation::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Relation::AtMost => order.is_some_and(std::cmp::Ordering::is_le),
            Relation::AtLeast => order.is_some_and(std::cmp::Ordering::is_ge),
            Relation::BeginsWith => match (left, right) {
                (Cell::Text(left), Cell::Text(right)) => left.starts_with(right.as_ref()),
                _ => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::tests::{PAIRS, Pair};

    const ROWS: [Pair; 4] = [("web-1", Some(3.0)), ("web-2", None), ("has", Some(7.5)), ("a,b", Some(0.0))];

    fn passing(text: &str) -> Vec<&'static str> {
        let sieve = Sieve::read(&PAIRS, text).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
        ROWS.iter().filter(|row| sieve.passes(row)).map(|row| row.0).collect()
    }

    #[test]
    fn rows_pass_that_meet_all_conditions() {
        assert_eq!(passing(""), ["web-1", "web-2", "has", "a,b"]);
        assert_eq!(passing("has>=3"), ["web-1", "has"]);
        assert_eq!(passing("has<=3, has != 0"), ["web-1"]);
        assert_eq!(passing("name^=web-,has=null"), ["web-2"]);
        assert_eq!(passing("has!=null,long=false"), ["has", "a,b"]);
        // Text that looks like a field is text beside a text, as none of those is called so.
        assert_eq!(passing("name=has"), ["has"]);
        assert_eq!(passing(r#"name="a,b",has<1"#), ["a,b"]);
        // Both sides may be fields.
        assert_eq!(passing("has<has"), Vec::<&str>::new());
        assert_eq!(passing("has>=has"), ["web-1", "has", "a,b"]);
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let cases = [
            ("haz<3", "where: found \"haz\"; wanted a field, one of name, has, long"),
            ("has~3", "where: found \"has~3\"; wanted = != < > <= >= or ^= behind the name of a field"),
            ("has<x", "where: has: found \"x\"; wanted a number, another field that is a number, or null"),
            ("long=1", "where: long: found \"1\"; wanted true or false"),
            ("has^=1", "where: found \"has^=1\"; wanted another relation: has is no text"),
            ("has<1,", "where: found \",\"; wanted another condition behind a comma"),
            (r#"name="a"b"#, "where: found \"b\"; wanted another condition behind a comma"),
            (r#"name="a"#, "where: found \"\\\"a\"; wanted text between quotation marks"),
        ];
        for (text, told) in cases {
            assert_eq!(Sieve::read(&PAIRS, text).expect_err(text).error, told, "{text}");
        }
        let many = vec!["has<1"; 17].join(",");
        let fault = Sieve::read(&PAIRS, &many).expect_err("too many");
        assert!(fault.error.ends_with("wanted at most 16 conditions"), "{fault:?}");
    }
}
