//! Requests as claims: by the attributes that they have, or by descriptors.

use smallvec::SmallVec;

use crate::attribute::{Attribute, Attributes};
use crate::claim::{Call, Claim, Mode};
use crate::malformed::Malformed;
use crate::name::{Joint, KeyName};
use crate::rules::table::{Table, Values};
use crate::rules::{Cost, Limit, Rule, RuleSet};

/// Makes claims of requests, in one set.
pub(crate) struct Reader<'b> {
    pub(crate) set: &'b RuleSet,
    key: KeyName,
    pub(crate) call: Call<'b>,
}

/// The hits of a request, or of a part of it.
#[derive(Clone, Copy)]
pub(crate) struct Hits {
    pub(crate) hits: u64,
    pub(crate) is_negative: bool,
    /// The part, by its place in the request.
    pub(crate) descriptor: usize,
}

/// The bytes of the values that make a key.
pub(crate) type KeyValues<'v> = SmallVec<[&'v [u8]; 8]>;

// === impl Hits ===

impl Hits {
    /// Those of a request that has no parts.
    pub(crate) fn whole(hits: u64) -> Hits {
        Hits { hits, is_negative: false, descriptor: 0 }
    }
}

// === impl Reader ===

impl<'b> Reader<'b> {
    pub(crate) fn new(set: &'b RuleSet) -> Reader<'b> {
        Reader { set, key: KeyName::new(Joint::Comma), call: Call { set, claims: Vec::new() } }
    }

    /// The claims of all rules whose conditions are met. Returns whether there are such rules.
    pub(crate) fn attributes(
        &mut self,
        table: &Table,
        request: &impl Attributes,
        hits: Hits,
    ) -> Result<bool, Malformed> {
        let values = table.values(request);
        let found = table.find(&values);
        for &place in &found {
            let rule = &self.set.rules[place];
            let key: KeyValues<'_> =
                table.rows()[place].key.iter().map(|&slot| bytes(&values, slot)).collect();
            let cost = cost(&rule.cost, &values, hits.hits, table.attributes())?;
            self.rule(rule, &key, Hits { hits: cost, ..hits });
        }
        Ok(!found.is_empty())
    }

    /// The claims on all limits of a rule.
    pub(crate) fn rule(&mut self, rule: &'b Rule, values: &[&[u8]], hits: Hits) {
        let mode = if hits.is_negative { Mode::GiveBack } else { Mode::of(self.set, rule, hits.hits) };
        for limit in &rule.limits {
            self.claim((Some(rule), limit), values, hits, mode);
        }
    }

    /// The claim on one limit.
    pub(crate) fn claim(
        &mut self,
        (rule, limit): (Option<&'b Rule>, &'b Limit),
        values: &[&[u8]],
        hits: Hits,
        mode: Mode,
    ) {
        self.key.clear(limit.joint());
        values.iter().for_each(|value| self.key.push(value));
        let key = self.key.within(&limit.resource).into();
        self.call.claims.push(Claim { rule, limit, key, hits: hits.hits, mode, descriptor: hits.descriptor });
    }
}

fn bytes<'v>(values: &'v Values<'_>, slot: usize) -> &'v [u8] {
    values.get(slot).and_then(Option::as_deref).unwrap_or_default().as_bytes()
}

/// The hits that a request of these values is, of which it names `hits`.
fn cost(cost: &Cost, values: &Values<'_>, hits: u64, attributes: &[Attribute]) -> Result<u64, Malformed> {
    let value = |slot: usize| values.get(slot).and_then(Option::as_deref);
    let each = match cost {
        Cost::Each(each) => u64::from(*each),
        Cost::By { slot, costs } => {
            let known = costs.iter().find(|(of, _)| value(*slot) == Some(of));
            known.map_or(1, |&(_, cost)| cost.into())
        }
        Cost::Attribute { slot, most } => match value(*slot) {
            None => 1,
            Some(text) => match text.parse::<u64>() {
                Ok(number) if *most < u32::MAX => number.min((*most).into()),
                Ok(number) => number,
                Err(_) => {
                    let field = attributes.get(*slot).map(ToString::to_string).unwrap_or_default();
                    let found = format!("is {:?}", text.chars().take(40).collect::<String>());
                    return Err(Malformed { field, found, wanted: "a whole number".to_owned() });
                }
            },
        },
    };
    Ok(hits.saturating_mul(each))
}
