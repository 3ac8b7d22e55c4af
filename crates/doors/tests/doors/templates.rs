//! The templates of rules are what servers read, and match what doors ask for.

use lessor_doors::rules::LimitKind;
use lessor_doors::rules::templates::{glob, templates};
use lessor_proto::ResourceId;
use lessor_server::shell::source;

use crate::house::{PATIENT, rules};

#[test]
fn every_limit_has_a_template_that_servers_take() {
    let doors = "sets: {e.d: {overrides: [7/1m], rules: [\n\
        {limit: [100/1m, 1000/360days], key: [path, method]},\n\
        {limit: 20000/1s, kind: flow},\n\
        {limit: 20/1s, kind: shared, capacity: 500, hard_limit: 30, key: path, tiers: [{limit: 5, window: 1s, active: 1m, \
        cooldown: 2m}]}]}}";
    let service = "domain: \"a*b/[c]|d\"\ndescriptors: [{key: 'k\"?', value: 'x.y', rate_limit: {unit: year, requests_per_unit: 5}}]";
    let book = rules(doors, &[service]);
    let text = templates(&book);
    let repository =
        source::parse("templates.yaml", &text).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let mut limits = 0;
    for (_, limit) in book.sets().iter().flat_map(lessor_doors::rules::RuleSet::limits) {
        let name = match limit.kind {
            LimitKind::Exact | LimitKind::Concurrency => format!("{}k%2F,l~0123456789abcdef", limit.resource),
            LimitKind::Flow | LimitKind::Shared(_) => limit.resource.to_string(),
        };
        let resource = ResourceId::new(name.as_str(), 256).expect("a name");
        let template =
            repository.find(&resource).unwrap_or_else(|| panic!("{name} has no template:\n{text}"));
        assert_eq!(template.glob.as_str(), glob(limit), "of {name}");
        limits += 1;
    }
    assert_eq!(limits, 6);
}

#[test]
fn rules_without_limits_have_no_templates() {
    let service = "domain: d\ndescriptors: [{key: k, rate_limit: {unlimited: true}}]";
    assert!(templates(&rules(PATIENT, &[service])).ends_with("resources: []\n"));
}
