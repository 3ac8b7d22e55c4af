//! Rules and tokens, told as who may what, and laws of both.

use lessor_proto::message::{Ask, HolderKind, Limits, Report};
use lessor_proto::{ClientId, ResourceId, wire};

use super::*;
use crate::token::{Key, TokenKeys};

fn glob(text: &str) -> Glob {
    Glob::new(text).unwrap()
}

fn holder(text: &str) -> ClientId {
    ClientId::new(text, 256).unwrap()
}

fn resource(text: &str) -> ResourceId {
    ResourceId::new(text, 256).unwrap()
}

fn client(identity: &str, resources: &[&str]) -> ClientRule {
    let resources = Some(resources.iter().map(|text| glob(text)).collect());
    ClientRule { resources, ..ClientRule::new(glob(identity)) }
}

fn report(priority: i64, wants: f64) -> Report {
    let resource = wire::ResourceRequest {
        resource_id: Some("db".into()),
        priority: Some(priority),
        wants: Some(wants),
        ..Default::default()
    };
    let request = wire::GetCapacityRequest {
        client_id: Some("web-1".into()),
        resource: vec![resource],
        ..Default::default()
    };
    Ask::from_client(request, &Limits::default()).unwrap().reports.remove(0)
}

fn aggregate(bands: &[(i64, u32)]) -> Report {
    let mut report = report(0, 0.0);
    let band = |&(priority, subclients)| lessor_proto::message::Band { priority, subclients, wants: 5.0 };
    report.bands = bands.iter().map(band).collect();
    report
}

fn rights(access: &Access, identity: &str, kind: HolderKind, name: &str) -> Result<Rights, Denial> {
    access.holder(&Credential::of(identity), kind, &holder(name))
}

#[test]
fn who_is_named_goes_by_that_rule_and_not_by_a_pattern_before_it() {
    let access = Access {
        clients: vec![client("spiffe://a/*", &["all"]), client("spiffe://a/web", &["db"])],
        ..Access::default()
    };
    let may = |identity: &str, name: &str| {
        rights(&access, identity, HolderKind::Client, "x").and_then(|rights| rights.may_hold(&resource(name)))
    };
    assert_eq!(may("spiffe://a/web", "db"), Ok(()));
    assert_eq!(may("spiffe://a/web", "all").unwrap_err().place.unwrap().index, 1);
    assert_eq!(may("spiffe://a/cron", "all"), Ok(()));
    assert_eq!(may("spiffe://b/cron", "all").unwrap_err().why, Why::NoRule);
}

#[test]
fn a_floor_a_companion_and_the_lease_of_a_domain_are_for_who_may_hold_the_resource() {
    let access = Access { clients: vec![client("web", &["db"])], ..Access::default() };
    let rights = rights(&access, "web", HolderKind::Client, "x").unwrap();
    let names =
        [("db|safe", true), ("db|d:acme", true), ("db|beside", true), ("dc|safe", false), ("db2", false)];
    for (name, may) in names {
        assert_eq!(rights.may_hold(&resource(name)).is_ok(), may, "{name}");
    }
}

#[test]
fn only_a_node_of_the_rules_is_a_node_and_bears_its_name() {
    let paris = NodeRule::new(glob("spiffe://a/paris"), NamePattern::new("paris").unwrap());
    let everybody = ClientRule::new(glob("spiffe://a/*"));
    let access = Access { nodes: vec![paris], clients: vec![everybody], ..Access::default() };
    let why = |identity: &str, kind, name: &str| rights(&access, identity, kind, name).err().map(|d| d.why);
    assert_eq!(why("spiffe://a/paris", HolderKind::Node, "paris"), None);
    assert_eq!(why("spiffe://a/paris", HolderKind::Node, "tokyo"), Some(Why::Holder));
    assert_eq!(why("spiffe://a/web", HolderKind::Node, "paris"), Some(Why::NoRule));
    assert_eq!(why("spiffe://a/web", HolderKind::Client, "paris"), Some(Why::Holder));
    assert_eq!(why("spiffe://a/web", HolderKind::Client, "web-1"), None);
}

#[test]
fn an_identity_may_stand_for_several_nodes() {
    let rule = |name: &str| NodeRule::new(glob("leafs"), NamePattern::new(name).unwrap());
    let access = Access { nodes: vec![rule("paris"), rule("tokyo")], ..Access::default() };
    assert!(rights(&access, "leafs", HolderKind::Node, "tokyo").is_ok());
    let denial = rights(&access, "leafs", HolderKind::Node, "root").unwrap_err();
    assert_eq!(denial.to_string(), r#"nodes[0] does not let "leafs" call itself "root"; wanted "paris""#);
}

#[test]
fn the_end_of_an_identity_is_taken_as_it_is() {
    let pattern = NamePattern::new("{last}-*").unwrap();
    assert!(pattern.fits("spiffe://a/web", "web-17"));
    assert!(pattern.fits("web", "web-17"));
    assert!(!pattern.fits("spiffe://a/*", "web-17"), "a star in an identity is a star");
    assert!(pattern.fits("spiffe://a/*", "*-17"));
    assert!(!pattern.fits("spiffe://a/[", "x-1"));
    assert!(
        pattern.fits_somebody("web-17") && !pattern.fits_somebody("web/x-1") && !pattern.fits_somebody("web")
    );
    assert!(NamePattern::new("{lost}-*").unwrap_err().to_string().contains("wanted {last}"));
    assert!(NamePattern::new("[").is_err());
}

#[test]
fn a_client_with_too_great_a_priority_is_refused_and_one_that_wants_too_much_counts_for_less() {
    let mut rule = client("web", &["*"]);
    rule.allowance = Allowance { most_priority: Some(3), most_wants: Some(200.0), weight: 2 };
    let access = Access { clients: vec![rule], ..Access::default() };
    let rights = rights(&access, "web", HolderKind::Client, "x").unwrap();

    let mut urgent = report(i64::MAX, 1.0);
    let denial = rights.limit(&mut urgent).unwrap_err();
    assert_eq!(denial.why, Why::Priority);
    assert!(denial.to_string().ends_with("priority 9223372036854775807; wanted at most 3"), "{denial}");
    assert_eq!(urgent.bands[0].subclients, 1, "the report is as it was");

    let mut greedy = report(3, 1e308);
    greedy.peak = Some(1e308);
    assert_eq!(rights.limit(&mut greedy).unwrap().unwrap().why, Why::Wants);
    assert_eq!((greedy.bands[0].wants, greedy.peak, greedy.bands[0].subclients), (200.0, Some(200.0), 2));

    let mut modest = report(0, 7.0);
    assert_eq!(rights.limit(&mut modest), Ok(None));
    let mut twice = report(0, 7.0);
    twice.bands[0].subclients = 2;
    assert_eq!(modest, twice, "only its weight has changed");
}

#[test]
fn a_node_counts_for_as_many_clients_as_it_may_and_is_not_refused() {
    let mut rule = NodeRule::new(glob("paris"), NamePattern::new("paris").unwrap());
    (rule.most_clients, rule.most_priority) = (Some(100), Some(5));
    let access = Access { nodes: vec![rule], ..Access::default() };
    let rights = rights(&access, "paris", HolderKind::Node, "paris").unwrap();

    let mut honest = aggregate(&[(0, 60), (5, 40)]);
    let before = honest.clone();
    assert_eq!(rights.limit(&mut honest), Ok(None));
    assert_eq!(honest, before);

    let mut inflated = aggregate(&[(0, u32::MAX), (i64::MAX, u32::MAX), (1, 1)]);
    assert_eq!(rights.limit(&mut inflated).unwrap().unwrap().why, Why::Clients);
    let bands: Vec<_> = inflated.bands.iter().map(|band| (band.priority, band.subclients)).collect();
    assert_eq!(bands, [(0, 49), (5, 49), (1, 1)]);
}

#[test]
fn an_operator_does_what_a_role_of_its_own_says_and_a_team_sees_its_own() {
    let rule = |identity: &str, may: &[Role], resources: Option<Vec<Glob>>| OperatorRule {
        identity: glob(identity),
        may: may.to_vec(),
        resources,
        place: None,
    };
    let access = Access {
        operators: vec![
            rule("oncall", &[Role::See, Role::Override], None),
            rule("team", &[Role::See], Some(vec![glob("db/*")])),
            rule("uid:0", &[Role::All], None),
        ],
        ..Access::default()
    };
    let may = |who: &str, role, about: Option<&str>| {
        access
            .operator(&Credential::of(who), role, about.map(resource).as_ref())
            .err()
            .map(|denial| denial.why)
    };
    for role in Role::ALL {
        let has = matches!(role, Role::See | Role::Override);
        assert_eq!(may("oncall", role, None), (!has).then_some(Why::Role), "{role}");
        assert_eq!(may("uid:0", role, Some("db/x")), None, "{role}");
        assert_eq!(may("nobody", role, None), Some(Why::NoRule), "{role}");
    }
    assert_eq!(may("team", Role::See, Some("db/orders")), None);
    assert_eq!(may("team", Role::See, Some("api/x")), Some(Why::Resource));
    assert_eq!(may("team", Role::See, None), Some(Why::Resource), "all of them is more than its own");
}

// Tokens.

const KEY: Key = Key::new([7; 32]);

fn passport() -> Passport {
    Passport {
        identity: "web".into(),
        made: 1_000,
        ends: 2_000,
        client_id: Some(NamePattern::new("web-*").unwrap()),
        node: None,
        resources: Some(vec![glob("db/*")]),
        roles: vec![Role::See],
    }
}

#[test]
fn a_token_says_what_it_was_made_of_until_it_ends() {
    let keys = TokenKeys::new(KEY);
    let token = passport().seal(&keys);
    assert!(token.starts_with(bearer::PREFIX));
    assert_eq!(Passport::open(&token, &keys, 1_999), Ok(passport()));
    let over = Passport::open(&token, &keys, 2_000).unwrap_err();
    assert_eq!(
        over.to_string(),
        r#"the token of "web" ended at 2000, and now is 2000, in seconds since 1970"#
    );
    assert_eq!(Passport::read(&token), Ok(passport()));
}

#[test]
fn a_token_under_the_key_before_is_believed_and_under_another_is_not() {
    let other = Key::new([8; 32]);
    let token = passport().seal(&TokenKeys::new(KEY));
    let rotated = TokenKeys { current: other.clone(), previous: Some(KEY) };
    assert!(Passport::open(&token, &rotated, 1_500).is_ok());
    let denial = Passport::open(&token, &TokenKeys::new(other), 1_500).unwrap_err();
    assert_eq!(denial.why, Why::Token);
}

#[test]
fn a_token_is_for_its_own_names_and_resources() {
    let passport = passport();
    let access = Access::default();
    let ask = |kind, name: &str| access.holder(&Credential::with(&passport), kind, &holder(name));
    let rights = ask(HolderKind::Client, "web-1").unwrap();
    assert!(rights.may_hold(&resource("db/orders")).is_ok());
    assert!(rights.may_hold(&resource("api/x")).is_err());
    assert_eq!(ask(HolderKind::Client, "cron-1").unwrap_err().why, Why::Holder);
    assert_eq!(ask(HolderKind::Node, "web-1").unwrap_err().why, Why::Holder);
    let see = |about: Option<&str>| {
        access.operator(&Credential::with(&passport), Role::See, about.map(resource).as_ref()).is_ok()
    };
    assert_eq!((see(Some("db/x")), see(None)), (true, false));
    assert!(access.operator(&Credential::with(&passport), Role::Push, Some(&resource("db/x"))).is_err());
}

#[test]
fn where_a_rule_names_the_identity_of_a_token_both_have_to_allow_it() {
    let mut rule = client("web", &["db/orders", "api/*"]);
    rule.allowance.most_wants = Some(10.0);
    let access = Access { clients: vec![rule], ..Access::default() };
    let passport = passport();
    let rights = access.holder(&Credential::with(&passport), HolderKind::Client, &holder("web-1")).unwrap();
    let may = |name: &str| rights.may_hold(&resource(name)).is_ok();
    assert_eq!((may("db/orders"), may("db/users"), may("api/x")), (true, false, false));
    assert!(rights.limit(&mut report(0, 11.0)).unwrap().is_some());
}

#[test]
fn a_token_made_before_its_identity_was_revoked_counts_no_more() {
    let passport = passport();
    let revoked =
        |before| Access { revoked: vec![Revoked { identity: glob("web"), before }], ..Access::default() };
    let ask =
        |access: Access| access.holder(&Credential::with(&passport), HolderKind::Client, &holder("web-1"));
    assert!(ask(revoked(1_000)).is_ok());
    assert_eq!(ask(revoked(1_001)).unwrap_err().why, Why::Token);
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Whatever a node says, it counts for what it may, and no band of it is without a client.
        #[test]
        fn what_a_node_stands_for_is_bounded(
            bands in prop::collection::vec((any::<i64>(), 1u32..), 1..40),
            most in 40u64..1_000_000,
            priority in -5i64..5,
        ) {
            let rights = Rights::of_node(RulePlace::at(Section::Nodes, 0), "n", Some(most), Some(priority));
            let mut report = aggregate(&bands);
            let cut = rights.limit(&mut report).unwrap();
            let sum: u64 = report.bands.iter().map(|band| u64::from(band.subclients)).sum();
            prop_assert!(sum <= most + bands.len() as u64);
            prop_assert!(report.bands.iter().all(|band| band.priority <= priority && band.subclients > 0));
            let honest = bands.iter().all(|band| band.0 <= priority)
                && bands.iter().map(|band| u64::from(band.1)).sum::<u64>() <= most;
            prop_assert_eq!(cut.is_none(), honest);
        }

        // A token that was touched anywhere is none.
        #[test]
        fn a_token_that_was_touched_is_refused(at in 0usize..100, c in "[A-Za-z0-9_-]") {
            let keys = TokenKeys::new(KEY);
            let token = passport().seal(&keys);
            let at = at % token.len();
            let mut touched = token.clone();
            touched.replace_range(at..=at, &c);
            prop_assume!(touched != token);
            prop_assert!(Passport::open(&touched, &keys, 1_500).is_err());
        }

        // No text makes it panic.
        #[test]
        fn any_text_is_opened_or_refused(text in ".{0,200}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            use base64::Engine as _;
            let keys = TokenKeys::new(KEY);
            let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
            for token in [text.clone(), format!("lessor1.{text}"), format!("lessor1.{encoded}")] {
                prop_assert!(Passport::open(&token, &keys, 0).is_err());
                let _ = Passport::read(&token);
            }
        }
    }
}
