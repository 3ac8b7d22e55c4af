//! Overrides as they are written, counted and ended.

use std::sync::Arc;

use lessor_proto::message::HolderKind;
use lessor_proto::{Amount, ClientId, Glob, ResourceId, Time};

use super::*;
use crate::repository::{Fraction, Kind, Repository, Template};

fn at(seconds: u64) -> Time {
    Time::from_nanos(seconds * 1_000_000_000)
}

fn name(text: &str) -> ResourceId {
    ResourceId::new(text, 256).unwrap()
}

fn client(text: &str) -> ClientId {
    ClientId::new(text, 256).unwrap()
}

fn order(id: &str, act: OverrideAct) -> Override {
    Override { id: id.to_owned(), act, seconds: 60, ..Override::for_reason("why") }
}

fn freeze(resource: &str) -> OverrideAct {
    OverrideAct::Freeze { resource: resource.to_owned() }
}

fn cap(resource: &str, capacity: f64) -> OverrideAct {
    OverrideAct::Cap { resource: resource.to_owned(), capacity }
}

fn drain(client: &str, resource: Option<&str>, deny: bool) -> OverrideAct {
    OverrideAct::DrainClient { client: client.to_owned(), resource: resource.map(str::to_owned), deny }
}

fn overrides(acts: &[(&str, OverrideAct)]) -> Overrides {
    let mut all = Overrides::default();
    acts.iter().for_each(|(id, act)| all.put(order(id, act.clone()), at(100)).unwrap());
    all
}

#[test]
fn a_floor_is_frozen_with_its_resource_and_the_lease_of_a_domain_is_not() {
    let all = overrides(&[("a", freeze("db*"))]);
    let base = name("db");
    assert!(all.freezes(&base) && all.freezes(&base.floor()));
    let all = overrides(&[("a", freeze("db"))]);
    assert!(all.freezes(&base.floor()) && !all.freezes(&name("dbx")));
    assert!(!all.freezes(&base.of_domain("acme", 256).unwrap()));
}

#[test]
fn a_cap_and_a_freeze_are_about_the_second_limit_as_well() {
    let template = Template {
        beside: Some(Amount::from_units(400)),
        ..Template::new(Glob::new("*").unwrap(), Amount::from_units(500))
    };
    let repository = Repository::new(vec![template]).unwrap();
    let (db, companion) = (name("db"), name("db|beside"));
    for (cap_at, wanted) in [(450.0, [450, 400]), (300.0, [300, 300])] {
        let all = overrides(&[("a", cap("db", cap_at)), ("b", freeze("db"))]);
        let found = [&db, &companion].map(|id| repository.find_under(id, &all).unwrap().capacity);
        assert_eq!(found, wanted.map(Amount::from_units));
        assert!(all.freezes(&companion));
    }
}

#[test]
fn the_newest_of_two_drains_says_whether_asking_is_refused() {
    let (kind, web, db) = (HolderKind::Client, client("web-7"), name("db"));
    let mut all = overrides(&[("a", drain("web-*", None, true)), ("b", drain("web-7", Some("db"), false))]);
    let found = all.drains(kind, &web, &db).unwrap();
    assert_eq!((found.by.id.as_str(), found.is_denied), ("b", false));
    assert!(all.drains(kind, &web, &name("other")).unwrap().is_denied);
    assert!(
        all.drains(HolderKind::Node, &web, &db).is_none() && all.drains(kind, &client("api"), &db).is_none()
    );
    assert!(all.lift("b") && !all.lift("b"));
    assert!(all.drains(kind, &web, &db).unwrap().is_denied);
    let node = OverrideAct::DrainNode { node: "paris".to_owned() };
    let all = overrides(&[("a", node)]);
    assert!(all.drains(HolderKind::Node, &client("paris"), &db).is_some());
    assert!(all.drains(kind, &client("paris"), &db).is_none());
}

#[test]
fn a_cap_lowers_a_capacity_and_never_raises_it_and_the_newest_counts() {
    let template = |capacity| Arc::new(Template::new(Glob::new("*").unwrap(), Amount::from_units(capacity)));
    let capped = |acts: &[(&str, OverrideAct)], capacity| {
        overrides(acts).applied(&name("db"), &template(capacity)).capacity.as_f64()
    };
    assert_eq!(capped(&[("a", cap("db", 300.5))], 500).to_bits(), 300.5_f64.to_bits());
    assert_eq!(capped(&[("a", cap("db", 600.0))], 500).to_bits(), 500_f64.to_bits());
    assert_eq!(capped(&[("a", cap("db", 100.0)), ("b", cap("d*", 200.0))], 500).to_bits(), 200_f64.to_bits());
    assert_eq!(capped(&[("a", cap("dbx", 100.0)), ("b", freeze("db"))], 500).to_bits(), 500_f64.to_bits());
    let gauge = Template { kind: Kind::Gauge, ..Template::clone(&template(500)) };
    let all = overrides(&[("a", cap("db", 7.9))]);
    assert_eq!(all.applied(&name("db"), &Arc::new(gauge)).capacity, Amount::from_units(7));
}

#[test]
fn what_comes_of_a_template_comes_of_it_as_it_is_capped() {
    let template = Template {
        safe_fraction: Fraction::HALF,
        ..Template::new(Glob::new("db").unwrap(), Amount::from_units(100))
    };
    let repository = Repository::new(vec![template]).unwrap();
    let all = overrides(&[("a", cap("db", 40.0))]);
    let found = |id: &ResourceId| repository.find_under(id, &all).unwrap();
    let base = name("db");
    assert_eq!(
        (found(&base).shared(), found(&base.floor()).capacity),
        (Amount::from_units(20), Amount::from_units(20))
    );
    assert!(repository.find_under(&name("other"), &all).is_none());
    let none = Overrides::default();
    for id in [base.clone(), base.floor(), name("other")] {
        assert_eq!(repository.find_under(&id, &none), repository.find(&id));
    }
}

#[test]
fn what_does_not_hold_together_is_refused_with_its_field() {
    let told = |it: Override| it.check().unwrap_err().to_string();
    assert_eq!(told(order("", freeze("db"))), "id: \"\"; wanted 1 to 64 letters, digits and hyphens");
    assert!(told(order("a", freeze(""))).starts_with("resource: \"\"; wanted 1 to 1024 bytes"));
    assert!(told(order("a", freeze("a[b"))).starts_with("resource \"a[b\": "));
    assert!(told(order("a", drain("a\u{7}", None, false))).starts_with("client: "));
    assert!(told(order("a", cap("db", -1.0))).starts_with("capacity -1 is negative"));
    assert!(
        told(Override { seconds: 86_401, ..order("a", freeze("db")) })
            .ends_with("wanted a time from 1s to 24h")
    );
    assert!(told(Override { reason: " ".to_owned(), ..order("a", freeze("db")) }).starts_with("reason: "));
}

#[test]
fn no_more_are_in_force_than_may_be_and_one_of_the_same_id_takes_its_place() {
    let mut all = Overrides::default();
    for number in 0..Overrides::MOST {
        all.put(order(&format!("n{number}"), freeze("db")), at(100 + number as u64)).unwrap();
    }
    assert_eq!(all.put(order("more", freeze("db")), at(1)), Err(BadOverride::Many));
    all.put(order("n7", freeze("other")), at(500)).unwrap();
    assert_eq!((all.len(), all.iter().next_back().unwrap().0.id.as_str()), (Overrides::MOST, "n7"));
    assert_eq!((all.next_end(), all.at(at(150)).len()), (Some(at(100)), Overrides::MOST - 51 + 1));
}

#[test]
fn a_record_comes_back_as_it_was_and_is_told_from_others() {
    let all = [
        freeze("db*"),
        drain("web-*", Some("db"), true),
        drain("web-*", None, false),
        OverrideAct::DrainDomain { domain: "acme".to_owned(), resource: "db".to_owned() },
        OverrideAct::DrainNode { node: "paris".to_owned() },
        cap("db", 12.5),
    ];
    for act in all {
        let it = order("a-1", act);
        assert_eq!(Override::decode("P/a-1", it.encode().as_bytes()), Ok(it));
    }
    let text = order("a-1", freeze("db")).encode();
    let fault = |key: &str, text: &str| Override::decode(key, text.as_bytes()).unwrap_err().to_string();
    assert!(fault("P/b", &text).contains("override \"a-1\"; wanted the one of that key"));
    assert!(fault("P/a-1", &text.replace("freeze", "melt")).contains("unknown variant `melt`"));
    assert!(
        fault("P/a-1", &text.replace("\"form\":1", "\"form\":2")).contains("a later version has written it")
    );
    assert!(fault("P/a-1", &text.replace(":60", ":0")).contains("wanted a time from 1s to 24h"));
    assert!(fault("P/a-1", &" ".repeat(Override::MOST_BYTES + 1)).contains("at most 16384"));
}
