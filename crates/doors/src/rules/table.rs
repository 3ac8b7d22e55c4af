//! The way from the attributes of a request to rules: all whose conditions it meets, in the order of the file.
//!
//! A rule is looked up by one of its conditions, that which fewest others share: by a value that is wanted, or by the beginning of a pattern. So a request is
//! compared with few rules however many there are; those without such a condition are compared always.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use foldhash::fast::FixedState;
use hashbrown::{Equivalent, HashMap};
use smallvec::SmallVec;

use crate::attribute::{Attribute, Attributes};
use crate::pattern::Pattern;

/// The conditions and keys of the rules of a set.
#[derive(Clone, Default, Debug)]
pub struct Table {
    /// The attributes that rules name, each once.
    attributes: Vec<Attribute>,
    rows: Vec<TableRow>,
    index: TableIndex,
}

/// The conditions and the key of one rule.
#[derive(Clone, PartialEq, Debug)]
pub struct TableRow {
    /// The conditions, all of which have to be met.
    pub conditions: Vec<Condition>,
    /// The attributes that make its key, in order. A request without one of them has an empty value there.
    pub key: Vec<usize>,
    /// Whether rows behind it are not looked at where it is met.
    pub stop: bool,
}

/// A condition of a rule on one attribute.
#[derive(Clone, PartialEq, Debug)]
pub struct Condition {
    /// The attribute's place in the table.
    pub slot: usize,
    /// The values that meet it.
    pub test: Test,
}

/// The values that meet a condition.
#[derive(Clone, PartialEq, Debug)]
pub enum Test {
    /// One of these values or patterns.
    AnyOf(Vec<Pattern>),
    /// None of these, or none at all.
    NoneOf(Vec<Pattern>),
    /// Any value.
    Present,
    /// None.
    Absent,
    /// A number below this.
    Below(f64),
    /// A number of at most this.
    AtMost(f64),
}

/// The values of a request for the attributes of a table, in their order.
pub type Values<'a> = SmallVec<[Option<Cow<'a, str>>; 8]>;

/// The rules that a request may meet, by one of its values.
#[derive(Clone, Default, Debug)]
struct TableIndex {
    /// By attribute and value.
    exact: HashMap<SlotText, Vec<usize>, FixedState>,
    /// By attribute and the beginning of a value.
    beginnings: HashMap<SlotText, Vec<usize>, FixedState>,
    /// The lengths of beginnings, for each attribute.
    lengths: Vec<Vec<usize>>,
    /// Those that are looked at always.
    always: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct SlotText {
    slot: usize,
    text: Box<str>,
}

/// The same of a borrowed text. Both are hashed alike.
#[derive(Clone, Copy)]
struct SlotRef<'a> {
    slot: usize,
    text: &'a str,
}

// === impl Table ===

impl Table {
    /// The table of these rows over these attributes.
    #[must_use]
    pub fn new(attributes: Vec<Attribute>, rows: Vec<TableRow>) -> Table {
        let mut index = TableIndex { lengths: vec![Vec::new(); attributes.len()], ..TableIndex::default() };
        // The number of rows that name a value, or a beginning: the rarest is looked up.
        let mut named: HashMap<SlotText, usize, FixedState> = HashMap::default();
        let lookups = rows.iter().flat_map(TableRow::lookups);
        for (slot, pattern) in lookups.flat_map(|(slot, patterns)| patterns.iter().map(move |of| (slot, of)))
        {
            *named.entry(SlotText { slot, text: pattern.beginning().into() }).or_default() += 1;
        }
        for (place, row) in rows.iter().enumerate() {
            let commonness = |&(slot, patterns): &(usize, &[Pattern])| {
                let of = |pattern: &Pattern| named.get(&SlotRef { slot, text: pattern.beginning() }).copied();
                patterns.iter().filter_map(of).sum::<usize>()
            };
            index.add(place, row.lookups().min_by_key(commonness));
        }
        Table { attributes, rows, index }
    }

    /// The attributes that it looks at.
    #[must_use]
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Its rows, in the order of the file.
    #[must_use]
    pub fn rows(&self) -> &[TableRow] {
        &self.rows
    }

    /// The values of a request.
    pub fn values<'a>(&self, request: &'a impl Attributes) -> Values<'a> {
        self.attributes.iter().map(|attribute| request.value(attribute)).collect()
    }

    /// The rows that these values meet, in order.
    #[must_use]
    pub fn find(&self, values: &Values<'_>) -> SmallVec<[usize; 8]> {
        let mut found = self.index.candidates(values);
        found.sort_unstable();
        found.dedup();
        found.retain(|place| self.rows[*place].is_met(values));
        if let Some(last) = found.iter().position(|&place| self.rows[place].stop) {
            found.truncate(last + 1);
        }
        found
    }

    /// The rows that can never be met, each with the one before it that ends the search for all that would meet it.
    #[must_use]
    pub fn shadowed(&self) -> Vec<(usize, usize)> {
        let stops = |place: usize| {
            let row = &self.rows[place];
            let before = self.rows[..place].iter().enumerate();
            before
                .filter(|(_, earlier)| earlier.stop && earlier.covers(row))
                .map(|(earlier, _)| earlier)
                .next()
        };
        (0..self.rows.len()).filter_map(|place| Some((place, stops(place)?))).collect()
    }
}

// === impl TableRow ===

impl TableRow {
    fn is_met(&self, values: &Values<'_>) -> bool {
        self.conditions.iter().all(|condition| {
            let value = values.get(condition.slot).and_then(Option::as_deref);
            condition.test.is_met(value)
        })
    }

    /// Whether all that meets `other` meets this, as far as that is seen without asking what patterns mean.
    fn covers(&self, other: &TableRow) -> bool {
        self.conditions
            .iter()
            .all(|own| other.conditions.iter().any(|its| its.slot == own.slot && own.test.covers(&its.test)))
    }

    /// The conditions by which it could be looked up: those that name values, or beginnings of them.
    fn lookups(&self) -> impl Iterator<Item = (usize, &[Pattern])> {
        let of_values = self.conditions.iter().filter_map(|condition| match &condition.test {
            Test::AnyOf(patterns) => Some((condition.slot, &patterns[..])),
            _ => None,
        });
        of_values.filter(|(_, patterns)| {
            patterns.iter().all(|pattern| !pattern.is_open() || !pattern.beginning().is_empty())
        })
    }
}

// === impl Test ===

impl Test {
    fn is_met(&self, value: Option<&str>) -> bool {
        let is_any =
            |patterns: &[Pattern], value: &str| patterns.iter().any(|pattern| pattern.matches(value));
        let number = || value.and_then(|value| value.parse::<f64>().ok());
        match self {
            Test::AnyOf(patterns) => value.is_some_and(|value| is_any(patterns, value)),
            Test::NoneOf(patterns) => !value.is_some_and(|value| is_any(patterns, value)),
            Test::Present => value.is_some(),
            Test::Absent => value.is_none(),
            Test::Below(bound) => number().is_some_and(|number| number < *bound),
            Test::AtMost(bound) => number().is_some_and(|number| number <= *bound),
        }
    }

    fn covers(&self, other: &Test) -> bool {
        match (self, other) {
            (Test::AnyOf(own), Test::AnyOf(its)) => its.iter().all(|pattern| {
                own.contains(pattern)
                    || !pattern.is_open() && own.iter().any(|own| own.matches(pattern.beginning()))
            }),
            (Test::Present, Test::AnyOf(_) | Test::Present | Test::Below(_) | Test::AtMost(_)) => true,
            (own, its) => own == its,
        }
    }
}

// === impl TableIndex ===

impl TableIndex {
    fn add(&mut self, place: usize, lookup: Option<(usize, &[Pattern])>) {
        let Some((slot, patterns)) = lookup else { return self.always.push(place) };
        for pattern in patterns {
            let key = SlotText { slot, text: pattern.beginning().into() };
            let length = key.text.len();
            match pattern.is_open() {
                false => self.exact.entry(key).or_default().push(place),
                true => {
                    self.beginnings.entry(key).or_default().push(place);
                    if !self.lengths[slot].contains(&length) {
                        self.lengths[slot].push(length);
                    }
                }
            }
        }
    }

    fn candidates(&self, values: &Values<'_>) -> SmallVec<[usize; 8]> {
        let mut found: SmallVec<[usize; 8]> = self.always.iter().copied().collect();
        for (slot, value) in values.iter().enumerate() {
            let Some(text) = value.as_deref() else { continue };
            found.extend(self.exact.get(&SlotRef { slot, text }).into_iter().flatten().copied());
            for &length in self.lengths.get(slot).into_iter().flatten() {
                let Some(text) = text.get(..length) else { continue };
                found.extend(self.beginnings.get(&SlotRef { slot, text }).into_iter().flatten().copied());
            }
        }
        found
    }
}

// === impl SlotText ===

impl Hash for SlotText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        SlotRef { slot: self.slot, text: &self.text }.hash(state);
    }
}

// === impl SlotRef ===

impl Hash for SlotRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.slot.hash(state);
        self.text.hash(state);
    }
}

impl Equivalent<SlotText> for SlotRef<'_> {
    fn equivalent(&self, other: &SlotText) -> bool {
        self.slot == other.slot && *self.text == *other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_of(slot: usize, patterns: &[&str]) -> Condition {
        Condition { slot, test: Test::AnyOf(patterns.iter().map(|text| Pattern::new(text)).collect()) }
    }

    fn row(conditions: Vec<Condition>) -> TableRow {
        TableRow { conditions, key: Vec::new(), stop: false }
    }

    fn found(rows: Vec<TableRow>, values: &[Option<&str>]) -> Vec<usize> {
        let table = Table::new(vec![Attribute::Method, Attribute::Path], rows);
        table.find(&values.iter().map(|value| value.map(Cow::Borrowed)).collect()).to_vec()
    }

    #[test]
    fn all_rules_that_are_met_apply_in_order() {
        let rows = vec![
            row(vec![any_of(1, &["/api/*"]), any_of(0, &["GET", "POST"])]),
            row(vec![]),
            row(vec![any_of(1, &["*.png"])]),
            row(vec![any_of(1, &["/api/x", "/y*"])]),
        ];
        assert_eq!(found(rows.clone(), &[Some("GET"), Some("/api/x")]), [0, 1, 3]);
        assert_eq!(found(rows.clone(), &[Some("PUT"), Some("/api/a.png")]), [1, 2]);
        assert_eq!(found(rows.clone(), &[None, Some("/yes")]), [1, 3]);
        let stop = TableRow { stop: true, ..rows[1].clone() };
        assert_eq!(
            found(vec![rows[0].clone(), stop, rows[3].clone()], &[Some("GET"), Some("/api/x")]),
            [0, 1]
        );
    }

    #[test]
    fn conditions_say_of_values_and_of_numbers() {
        let is_met = |test: Test, value| test.is_met(value);
        let of = |text: &str| vec![Pattern::new(text)];
        assert!(is_met(Test::NoneOf(of("free")), Some("gold")) && is_met(Test::NoneOf(of("free")), None));
        assert!(!is_met(Test::NoneOf(of("fr*")), Some("free")));
        assert!(is_met(Test::Absent, None) && !is_met(Test::Absent, Some("")));
        assert!(is_met(Test::Present, Some("")) && !is_met(Test::Present, None));
        assert!(is_met(Test::Below(5.0), Some("4.9")) && !is_met(Test::Below(5.0), Some("5")));
        assert!(is_met(Test::AtMost(5.0), Some("5")));
        assert!(!is_met(Test::AtMost(5.0), Some("nan")) && !is_met(Test::AtMost(5.0), None));
    }

    #[test]
    fn a_rule_behind_one_that_stops_all_of_it_is_never_met() {
        let all_gets = TableRow { stop: true, ..row(vec![any_of(0, &["GET"])]) };
        let rows =
            vec![all_gets, row(vec![any_of(0, &["GET"]), any_of(1, &["/a"])]), row(vec![any_of(1, &["/a"])])];
        let table = Table::new(vec![Attribute::Method, Attribute::Path], rows);
        assert_eq!(table.shadowed(), [(1, 0)]);
    }
}
