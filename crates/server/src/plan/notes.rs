//! Notes on a change: what is allowed, and is perhaps not meant.

use std::cmp::Ordering;

use lessor_client::internals::domain::Scope;
use lessor_proto::message::Unenforced;

use crate::config::NodeConfig;
use crate::repository::{Fraction, Repository, SafeCapacity, SharePolicy, Template};

use super::PlannedResource;
use super::forecast::PlanNote;
use super::node::SupplyForecast;

/// The notes on a resource at a node, under a node above that would grant `supply`.
pub(super) fn of_resource(
    config: &NodeConfig,
    planned: &PlannedResource,
    supply: Option<&SupplyForecast>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let (before, Some(after)) = (planned.before.as_deref(), planned.after.as_deref()) else { return notes };
    if planned.is_frozen {
        notes
            .push("it is frozen: nobody gets more of it, whatever its share, before that is over".to_owned());
    }
    if let Some(supply) = supply {
        if let Some(above) = supply.lease_length.filter(|above| after.lease_length > *above / 2) {
            notes.push(format!(
                "leases of {} s are more than half of those of {} s of the node above: they are cut short",
                after.lease_length.as_secs(),
                above.as_secs()
            ));
        }
        if supply.lease_length.is_some() && supply.kind != after.kind {
            notes.push("the node above counts it as another kind: nothing is granted".to_owned());
        }
        let is_as_before = before.is_some_and(is_told_from_template);
        if is_told_from_template(after) && !is_as_before {
            notes.push(
                "safe_capacity is left out, and is told to clients from the capacity of the template, not from the lease"
                    .to_owned(),
            );
        }
    }
    if let Some(before) = before {
        notes.extend(of_enforcing(before, after));
        if before.enforce != Fraction::ALL {
            notes.extend(of_unenforced(planned.figures.unenforced));
        }
        notes.extend(of_scope(before, after));
    }
    let tried = before.and_then(|before| before.beside);
    let counted = tried.zip(of_unenforced(planned.figures.beside));
    notes.extend(of_beside(before, after).map(|note| match counted {
        Some((tried, counted)) => format!("{note}; with that of {tried}, {counted}"),
        None => note,
    }));
    let is_limited = |template: &Template| template.policy != SharePolicy::None;
    if before.is_some_and(is_limited) && !is_limited(after) {
        notes.push("nobody would be limited any more".to_owned());
    }
    if config.parent.is_none() && before.is_some_and(|before| before.lease_length > after.lease_length) {
        notes.push(format!("leases become shorter: {} s", after.lease_length.as_secs()));
    }
    notes
}

/// Whether more clients would let everything pass, or fewer; and the same of policies of domains.
fn of_enforcing(before: &Template, after: &Template) -> Option<String> {
    let said = |template: &Template| {
        let lenient = template.domains.as_ref().is_some_and(|domains| domains.policies.unenforced());
        (template.enforce, lenient)
    };
    let ((part, lenient), (next, next_lenient)) = (said(before), said(after));
    match (next.cmp(&part), lenient, next_lenient) {
        (Ordering::Less, ..) if next == Fraction::NONE => {
            Some("clients would let everything pass, and count what they would refuse".to_owned())
        }
        (Ordering::Less, ..) => Some(format!(
            "only {:.1} % of clients would keep to it, and the others let everything pass",
            next.as_f64() * 100.0
        )),
        (Ordering::Greater, ..) if next == Fraction::ALL => Some("all clients would keep to it".to_owned()),
        (Ordering::Greater, ..) => {
            Some(format!("{:.1} % of clients would keep to it", next.as_f64() * 100.0))
        }
        (Ordering::Equal, false, true) => {
            Some("what policies of domains refuse would be granted, and counted".to_owned())
        }
        (Ordering::Equal, true, false) if after.domains.is_some() => {
            Some("what policies of domains refuse would be refused indeed".to_owned())
        }
        _ => None,
    }
}

/// The units that would have been refused while everything was let pass.
fn of_unenforced(Unenforced { asked, passed, silent }: Unenforced) -> Option<String> {
    let unheard = match silent {
        0 => String::new(),
        silent => format!("; {silent} that let everything pass have said nothing, as earlier versions do"),
    };
    let part = 100.0 * passed as f64 / asked as f64;
    match asked {
        0 if silent == 0 => None,
        0 => Some(format!("nobody has said yet what would have been refused{unheard}")),
        _ => Some(format!(
            "of {asked} units since the leader began {passed} would have been refused ({part:.1} %){unheard}"
        )),
    }
}

/// Whether another second limit would be tried, or none any more.
fn of_beside(before: Option<&Template>, after: &Template) -> Option<String> {
    let tried = before.and_then(|before| before.beside);
    let said = |template: &Template| (template.beside, template.capacity);
    match (tried, after.beside) {
        (_, Some(beside)) if before.map(said) != Some(said(after)) => {
            Some(format!("a second limit of {beside} would be tried beside {}", after.capacity))
        }
        (Some(beside), None) if beside == after.capacity => {
            Some(format!("the second limit of {beside}, which was tried, would be the one in force"))
        }
        (Some(beside), None) => Some(format!("the second limit of {beside} would be tried no more")),
        _ => None,
    }
}

/// Whether the hits of others would count in another way for a domain.
fn of_scope(before: &Template, after: &Template) -> Option<String> {
    let scope = |template: &Template| template.domains.as_ref().map(|domains| domains.policies.scope());
    let name = |scope| match scope {
        None => "no policies",
        Some(Scope::Client) => "scope client",
        Some(Scope::Shared) => "scope shared",
        Some(Scope::Strict) => "scope strict",
    };
    let (before, after) = (scope(before), scope(after));
    (before != after).then(|| format!("its domains would have {} in place of {}", name(after), name(before)))
}

/// Whether clients are told a safe capacity that no lease backs.
fn is_told_from_template(template: &Template) -> bool {
    template.safe_capacity == SafeCapacity::Dynamic && !template.reserves()
}

/// The notes on templates that would be in force at a node.
pub(super) fn of_templates(config: &NodeConfig, templates: &Repository) -> Vec<PlanNote> {
    let note = |template: &std::sync::Arc<Template>| PlanNote {
        resource: template.glob.to_string(),
        node: config.name.clone(),
        note: "\"*\" stands before it: nothing follows it".to_owned(),
    };
    templates.shadowed().map(note).collect()
}

#[cfg(test)]
mod tests {
    use lessor_proto::Amount;

    use super::*;
    use crate::repository::Glob;

    #[test]
    fn what_would_have_been_refused_is_said_where_anybody_has_said_it() {
        let said = |asked, passed, silent| of_unenforced(Unenforced { asked, passed, silent });
        assert_eq!(said(0, 0, 0), None);
        let of = "of 12345 units since the leader began 37 would have been refused (0.3 %)";
        assert_eq!(said(12_345, 37, 0).as_deref(), Some(of));
        let silent = "2 that let everything pass have said nothing, as earlier versions do";
        assert_eq!(said(12_345, 37, 2), Some(format!("{of}; {silent}")));
        assert!(said(0, 0, 2).is_some_and(|said| said.ends_with(silent)));
    }

    #[test]
    fn a_second_limit_is_noted_where_it_changes() {
        let of = |capacity, beside: Option<u64>| Template {
            beside: beside.map(Amount::from_units),
            ..Template::new(Glob::new("db").unwrap(), Amount::from_units(capacity))
        };
        let noted = |before, after| of_beside(Some(&before), &after).unwrap_or_default();
        assert_eq!(noted(of(500, Some(400)), of(500, Some(400))), "");
        let tried = "a second limit of 400 would be tried beside 500";
        assert_eq!(noted(of(500, None), of(500, Some(400))), tried);
        assert_eq!(of_beside(None, &of(500, Some(400))).as_deref(), Some(tried));
        assert_eq!(
            noted(of(500, Some(400)), of(400, None)),
            "the second limit of 400, which was tried, would be the one in force"
        );
        assert_eq!(
            noted(of(500, Some(400)), of(500, None)),
            "the second limit of 400 would be tried no more"
        );
    }
}
