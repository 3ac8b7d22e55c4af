//! Tests of rules of access as they are written.

use super::super::Document;
use super::*;

const ALL: &str = r#"
x-shop: &shop "spiffe://acme/ns/shop/sa/*"
version: 3
default: audit
nodes:
  - {identity: "spiffe://acme/ns/lessor/sa/paris", node: paris, most_clients: 50000, priority: {most: 5}}
clients:
  - identity: *shop
    client_id: "{last}-*"
    resources: ["db/orders", "api/*"]
    priority: {most: 3}
    max_wants: 200
    weight: 2
    budget: {streams: 50, reports: 100/s, resources: 100}
operators:
  - {identity: "uid:0", may: [all]}
  - {identity: "team", may: [see, explain], resources: ["db/orders"]}
revoked:
  - {identity: web, before: "2026-11-24T00:00:00Z"}
"#;

#[test]
fn everything_that_a_document_may_say_is_read() {
    let access = Access::parse("access.yaml", ALL).unwrap();
    assert_eq!((access.version, access.stance), (3, Stance::Audit));
    let place = |section, index, line| Some(RulePlace { section, index, line: Some(line) });
    let glob = |text| Glob::new(text).unwrap();
    let node = &access.nodes[0];
    assert_eq!((node.most_clients, node.most_priority), (Some(50_000), Some(5)));
    assert_eq!(node.place, place(Section::Nodes, 0, 6));
    let client = &access.clients[0];
    assert_eq!(client.identity, glob("spiffe://acme/ns/shop/sa/*"));
    assert_eq!(client.client_id, Some(NamePattern::new("{last}-*").unwrap()));
    assert_eq!(client.resources, Some(vec![glob("db/orders"), glob("api/*")]));
    let allowance = Allowance { most_priority: Some(3), most_wants: Some(200.0), weight: 2 };
    assert_eq!(client.allowance, allowance);
    let budget = Budget { streams: Some(50), reports: Some(100.0), resources: Some(100) };
    assert_eq!(client.budget, budget);
    assert_eq!(access.operators[1].may, [Role::See, Role::Explain]);
    assert_eq!(access.revoked, [Revoked { identity: glob("web"), before: 1_795_478_400 }]);
}

#[test]
fn all_that_is_wrong_is_said_at_once() {
    let text = r#"
version: 1.5
nodes:
  - {identity: "a", most_clients: 0}
clients:
  - {client_id: "{who}"}
  - {identity: "[", weight: 0, max_wants: -1, priority: 3}
  - {identity: "a", budget: {reports: 100, streams: 0}, groups: []}
operators:
  - {identity: "b", may: [look]}
  - {identity: "c"}
revoked:
  - {identity: "d", before: yesterday}
"#;
    let faults = Access::parse("access.yaml", text).unwrap_err();
    let said: Vec<_> = faults.iter().map(|fault| (fault.line, fault.message.as_str())).collect();
    let wanted = [
        (2, "version 1.5 is out of bounds"),
        (2, "default is missing; wanted deny, or audit"),
        (4, "nodes[0]: node is missing; wanted the name of the node"),
        (4, "nodes[0]: most_clients 0 is out of bounds; wanted a whole number from 1"),
        (6, "clients[0]: client_id \"{who}\" has braces that stand for nothing; wanted {last}, or none"),
        (6, "clients[0]: identity is missing; wanted an identity or a glob, in quotes"),
        (7, "clients[1]: identity \"[\" is malformed"),
        (7, "clients[1]: weight 0 is out of bounds"),
        (7, "clients[1]: max_wants -1 is out of bounds"),
        (7, "clients[1]: priority is a single value; wanted a mapping with most"),
        (8, "clients[2]: reports 100 is no rate; wanted a number of them a second, as in 100/s"),
        (8, "clients[2]: streams 0 is out of bounds"),
        (8, "clients[2]: unknown field \"groups\" in a rule for clients"),
        (10, "operators[0]: may look means nothing; wanted see, explain"),
        (11, "operators[1]: may is missing; wanted a list of see, explain"),
        (13, "revoked[0]: before yesterday is no date; wanted a date"),
    ];
    for (line, message) in wanted {
        let is_said = |&(at, said): &(usize, &str)| at == line && said.starts_with(message);
        assert!(said.iter().any(is_said), "line {line}: {message}\n{said:#?}");
    }
    assert_eq!(said.len(), wanted.len(), "{said:#?}");
}

#[test]
fn a_rule_that_decides_about_nobody_is_a_fault() {
    let text = "default: deny\nclients:\n  - {identity: a}\n  - {identity: a, weight: 2}\n";
    let faults = Access::parse("access.yaml", text).unwrap_err();
    let said: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
    assert_eq!(said, ["clients[1]: identity is that of clients[0] already"]);
}
