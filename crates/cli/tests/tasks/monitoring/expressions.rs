//! The expressions of rules and dashboard, and the names that stand in them.

use std::collections::{BTreeMap, BTreeSet};

use promql_parser::label::{METRIC_NAME, MatchOp, Matchers};
use promql_parser::parser::{BinModifier, Expr, LabelModifier, VectorMatchCardinality};
use promql_parser::parser::{VectorSelector, parse};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde::Deserialize;

/// A file of rules.
#[derive(Deserialize)]
pub(super) struct RuleFile {
    pub(super) groups: Vec<Group>,
}

#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) rules: Vec<Rule>,
}

#[derive(Deserialize)]
pub(super) struct Rule {
    pub(super) record: Option<String>,
    pub(super) alert: Option<String>,
    pub(super) expr: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

/// A file of cases.
#[derive(Deserialize)]
pub(super) struct Cases {
    pub(super) tests: Vec<Case>,
}

#[derive(Deserialize)]
pub(super) struct Case {
    pub(super) alert_rule_test: Vec<Expected>,
}

#[derive(Deserialize)]
pub(super) struct Expected {
    pub(super) alertname: String,
    pub(super) exp_alerts: Vec<serde_json::Value>,
}

/// A dashboard.
#[derive(Deserialize)]
pub(super) struct Board {
    pub(super) panels: Vec<Panel>,
}

#[derive(Deserialize)]
pub(super) struct Panel {
    #[serde(default)]
    pub(super) targets: Vec<Target>,
}

#[derive(Deserialize)]
pub(super) struct Target {
    pub(super) expr: String,
}

/// A label that is asked of a series, and the value where it is one.
pub(super) type Asked = (String, Option<String>);

/// The names in an expression.
#[derive(Default)]
pub(super) struct Named {
    /// Series, with the labels that are asked of them.
    pub(super) series: Vec<(String, Vec<Asked>)>,
    /// The labels by which something is grouped or joined.
    pub(super) labels: BTreeSet<String>,
}

/// An expression of the dashboard with its variables set as when all is shown.
pub(super) fn plain(expression: &str) -> String {
    let set = [("$__rate_interval", "10s"), ("$node", ".*"), ("$resource", ".*")];
    let plain = set.iter().fold(expression.to_owned(), |text, (name, value)| text.replace(name, value));
    assert!(!plain.contains('$'), "{expression}: a variable that is not known");
    plain
}

/// The names in `expression`.
pub(super) fn named(expression: &str) -> Named {
    let parsed = parse(expression).unwrap_or_else(|fault| panic!("{expression}: {fault}"));
    let mut named = Named::default();
    assert_eq!(walk_expr(&mut named, &parsed), Ok(true), "{expression}");
    assert!(!named.series.is_empty(), "{expression} names nothing");
    named
}

// === impl Named ===

impl ExprVisitor for Named {
    type Error = String;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, String> {
        match expression {
            Expr::VectorSelector(selector) => self.add(selector),
            // The walk does not go into it.
            Expr::MatrixSelector(matrix) => self.add(&matrix.vs),
            Expr::Aggregate(aggregate) => self.group(aggregate.modifier.as_ref()),
            Expr::Binary(binary) => self.join(binary.modifier.as_ref()),
            _ => {}
        }
        Ok(true)
    }
}

impl Named {
    fn add(&mut self, selector: &VectorSelector) {
        let Matchers { matchers, .. } = &selector.matchers;
        let asked = matchers.iter().filter(|matcher| matcher.name != METRIC_NAME).map(|matcher| {
            let value = matches!(matcher.op, MatchOp::Equal).then(|| matcher.value.clone());
            (matcher.name.clone(), value)
        });
        let name = selector.name.clone().expect("every selector has a name");
        self.series.push((name, asked.collect()));
    }

    fn group(&mut self, modifier: Option<&LabelModifier>) {
        if let Some(LabelModifier::Include(labels) | LabelModifier::Exclude(labels)) = modifier {
            self.labels.extend(labels.labels.iter().cloned());
        }
    }

    fn join(&mut self, modifier: Option<&BinModifier>) {
        let Some(modifier) = modifier else { return };
        self.group(modifier.matching.as_ref());
        if let VectorMatchCardinality::ManyToOne(labels) | VectorMatchCardinality::OneToMany(labels) =
            &modifier.card
        {
            self.labels.extend(labels.labels.iter().cloned());
        }
    }
}
