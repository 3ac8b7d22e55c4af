//! Each check beside members that are well, and beside one where that very thing is wrong.

use lessor_server::shell::etcd::RoleRights;

use super::super::finding::Severity;
use super::*;

fn well() -> MemberHealth {
    MemberHealth {
        version: "3.4.23".to_owned(),
        cluster: 7,
        leader: 1,
        alarms: Vec::new(),
        shortest_lease: Some(Duration::from_secs(2)),
        reads: Ok(vec![Duration::from_millis(1); 5]),
        rights: Some(RoleRights { reads: true, writes: true, writes_elsewhere: false }),
    }
}

/// The findings about two members, of which the second is that, as checks, severities and texts.
fn found(second: Result<MemberHealth, String>) -> Vec<(String, Severity, String)> {
    let members = [
        MemberReport { url: "http://one:1".to_owned(), health: Ok(well()) },
        MemberReport { url: "http://two:1".to_owned(), health: second },
    ];
    let outcomes = checks(&members, "lessor/", true);
    assert_eq!(outcomes.len(), 4);
    let flat = |CheckOutcome { check, findings }| {
        findings.into_iter().map(move |found| (check.clone(), found.severity, found.what))
    };
    outcomes.into_iter().flat_map(flat).collect()
}

#[test]
fn members_that_are_well_have_no_findings() {
    assert_eq!(found(Ok(well())), []);
    let nobody = [MemberReport { url: "http://one:1".to_owned(), health: Ok(all_may()) }];
    let outcomes = checks(&nobody, "lessor/", false);
    assert!(outcomes.iter().all(|outcome| outcome.findings.is_empty()), "an etcd without users asks nobody");
}

fn all_may() -> MemberHealth {
    MemberHealth { rights: Some(RoleRights { reads: true, writes: true, writes_elsewhere: true }), ..well() }
}

#[test]
fn each_thing_that_is_wrong_is_found_by_itself() {
    let rights = |reads, writes| Some(RoleRights { reads, writes, writes_elsewhere: false });
    let slow = [1, 2, 201, 300, 400].map(Duration::from_millis).to_vec();
    let fault = Severity::Fault;
    for (second, check, severity, text) in [
        (Err("refused".to_owned()), "etcd answers", Severity::Warning, "http://two:1: refused"),
        (Ok(MemberHealth { leader: 0, ..well() }), "etcd answers", fault, "its cluster has no leader"),
        (
            Ok(MemberHealth { alarms: vec!["no space".to_owned()], ..well() }),
            "etcd answers",
            fault,
            "no space",
        ),
        (Ok(MemberHealth { cluster: 8, ..well() }), "one etcd", fault, "the members are of 2 clusters"),
        (
            Ok(MemberHealth { version: "3.5.1".to_owned(), ..well() }),
            "one etcd",
            Severity::Warning,
            "members of versions 3.4.23 and 3.5.1",
        ),
        (Ok(MemberHealth { reads: Ok(slow), ..well() }), "etcd in time", Severity::Warning, "take 201 ms"),
        (
            Ok(MemberHealth { rights: rights(false, true), ..well() }),
            "rights at etcd",
            fault,
            "may not read below",
        ),
        (
            Ok(MemberHealth { rights: rights(true, false), ..well() }),
            "rights at etcd",
            fault,
            "may not write below",
        ),
        (Ok(all_may()), "rights at etcd", Severity::Warning, "may write outside of lessor/"),
        (
            Ok(MemberHealth { rights: None, reads: Err("invalid auth token".to_owned()), ..well() }),
            "rights at etcd",
            fault,
            "invalid auth token",
        ),
    ] {
        let findings = found(second);
        let [(found_check, found_severity, what)] = &findings[..] else { panic!("{text}: {findings:?}") };
        assert_eq!((found_check.as_str(), *found_severity), (check, severity), "{what}");
        assert!(what.contains(text), "{text} in {what}");
    }
}

#[test]
fn a_lease_that_etcd_makes_longer_is_found_and_one_that_it_does_not_is_not() {
    let member = |shortest: Option<u64>| {
        let health = MemberHealth { shortest_lease: shortest.map(Duration::from_secs), ..well() };
        [MemberReport { url: "http://one:1".to_owned(), health: Ok(health) }]
    };
    assert!(leases(&member(Some(2)), Duration::from_secs(2)).is_empty());
    assert!(
        leases(&member(Some(2)), Duration::from_millis(1_500)).is_empty(),
        "it is asked for whole seconds"
    );
    let found = leases(&member(Some(8)), Duration::from_secs(3));
    assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
    let told =
        "http://one:1: it keeps the key of a leader for 8 s at the least, and tasks ask for 3s (--ttl)";
    assert!(found[0].what.starts_with(told), "{}", found[0].what);
    assert_eq!(leases(&member(None), Duration::from_secs(3))[0].severity, Severity::Fault);
}

#[test]
fn it_is_a_fault_where_no_member_answers() {
    let away = [MemberReport { url: "http://one:1".to_owned(), health: Err("refused".to_owned()) }];
    let outcomes = checks(&away, "lessor/", false);
    assert_eq!(outcomes[0].findings[0].severity, Severity::Fault);
}
