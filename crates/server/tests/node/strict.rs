//! Leases of domains: what a node makes of them, on streams and for Doorman's clients.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Override, Policies, Rules, Scope};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{Action, Session, SessionConfig};
use lessor_client::{Fallback, Kind, Transport};
use lessor_proto::message::{Ask, Bands, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Glob, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, StatusQuery};
use lessor_server::repository::{Domains, Template};
use lessor_sim::net::{Heard, StillNet};

use super::holders::{client, repository, resource, template, wants};

/// The time that goes by in one step.
const STEP: Duration = Duration::from_millis(50);

fn contract(limit: u32) -> Contract {
    let window = Duration::from_secs(1);
    let tier = Tier {
        limit,
        window,
        active: window,
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    Contract::from(TierPolicy::new(vec![tier], None, None).expect("a policy that holds together"))
}

/// A template for every name: `limit` a second for each domain, less for one; probes are ignored, and some are closed out.
fn with(scope: Scope, limit: u32) -> Template {
    let closed = Contract::from(TierPolicy::new(vec![], None, None).expect("a policy that holds together"));
    let overrides = [("few", contract(5)), ("closed", closed)];
    let overrides =
        overrides.map(|(glob, contract)| Override { glob: Glob::new(glob).expect("a glob"), contract });
    let rules = Rules {
        scope,
        default: Some(contract(limit)),
        overrides: overrides.to_vec(),
        ignore_configured: vec!["probe".to_owned()],
        ..Rules::default()
    };
    let policies = Arc::new(Policies::new(rules).expect("nothing stands twice"));
    Template { domains: Some(Domains { policies, changes: Vec::new() }), ..template(500.0) }
}

fn of(domain: &str) -> ResourceId {
    resource().of_domain(domain, 256).expect("a name")
}

/// A node and clients of the same domain that listen to it, on a network that takes no time.
struct Town {
    now: Time,
    net: StillNet,
    resource: ResourceId,
    /// The allowance of each client.
    allowances: Vec<Allowance>,
}

/// The site of the node.
const NODE: usize = 0;

// === impl Town ===

impl Town {
    fn new(template: Template, domain: &str) -> Town {
        let mut net = StillNet::new(&[None]);
        net.net.begin(Time::ZERO, NODE, NodeConfig::new("root", Epoch(1)), repository(template));
        Town { now: Time::ZERO, net, resource: of(domain), allowances: Vec::new() }
    }

    /// Somebody comes who wants so much.
    fn come(&mut self, wants: f64) {
        let name = format!("web-{}", self.allowances.len());
        let mut session = Session::new(SessionConfig {
            transport: Transport::Stream,
            ..SessionConfig::new(client(&name), Incarnation(1), vec!["root:1".into()])
        });
        let config =
            HoldingConfig { fallback: Fallback::Pessimistic, ..HoldingConfig::new(Kind::Rate, wants, 0) };
        session.add(self.now, self.resource.clone(), config);
        self.net.add(NODE, session);
        self.allowances.push(Allowance::NOTHING);
        self.exchange();
    }

    fn want(&mut self, index: usize, wants: f64) {
        self.net.sessions[index].set_wants(self.now, &self.resource, wants);
    }

    /// The template in force of the domain, if it has one.
    fn template(&self) -> Option<Arc<Template>> {
        let node = self.net.net.node(NODE).expect("it is never lost");
        node.repository().find(&self.resource)
    }

    fn reload(&mut self, template: Template) {
        let node = self.net.net.node_mut(NODE).expect("it is never lost");
        node.reload(self.now, repository(template));
    }

    /// Everything that is to be said now is said, and heard. Nobody ever has a part of a part, and all together no more than
    /// there is.
    fn exchange(&mut self) {
        let template = self.template().filter(|template| template.part.is_some());
        let (now, allowances) = (self.now, &mut self.allowances);
        self.net.settle(now, &mut |client, heard| {
            let Heard::Action(Action::Change(change)) = heard else { return };
            allowances[client] = change.allowance;
            let Some(template) = &template else { return };
            let part = template.grain().as_micros();
            let held: Vec<u64> = allowances.iter().map(|of| usable(of, now).as_micros()).collect();
            assert!(held.iter().all(|held| held % part == 0), "{held:?} in parts of {part}");
            assert!(held.iter().sum::<u64>() <= template.capacity.as_micros(), "{held:?} of {template:?}");
        });
    }

    fn has(&self) -> impl Iterator<Item = Amount> {
        self.allowances.iter().map(|allowance| usable(allowance, self.now))
    }

    /// The rate that each has, in hits a second, rounded: a window is a nanosecond longer than it seems.
    fn have(&self) -> Vec<f64> {
        self.has().map(|held| held.as_f64().round()).collect()
    }

    fn step(&mut self) {
        self.now += STEP;
        self.exchange();
    }

    fn later(&mut self, seconds: u32) {
        (0..seconds * 20).for_each(|_| self.step());
    }

    /// The parts of a second, on average over so many, that each client had.
    fn average(&mut self, seconds: u32) -> Vec<f64> {
        let mut sums = vec![0.0; self.allowances.len()];
        for _ in 0..seconds * 20 {
            self.step();
            sums.iter_mut().zip(self.has()).for_each(|(sum, held)| *sum += held.as_f64());
        }
        sums.iter().map(|sum| sum / f64::from(seconds * 20)).collect()
    }
}

/// The amount that an allowance allows at `now`.
fn usable(allowance: &Allowance, now: Time) -> Amount {
    match allowance.until > now {
        true => allowance.capacity.expect("there is a limit"),
        false => Amount::ZERO,
    }
}

#[test]
fn a_domain_is_leased_in_whole_parts_and_what_one_does_not_want_goes_to_the_other() {
    let mut town = Town::new(with(Scope::Strict, 29), "tenant");
    town.come(27.0);
    assert_eq!(town.have(), [27.0], "three parts of nine");
    town.come(9.0);
    town.later(1);
    assert_eq!(town.have(), [18.0, 9.0]);
    town.want(0, 0.0);
    town.want(1, 27.0);
    town.later(1);
    assert_eq!(town.have(), [0.0, 27.0]);
    town.want(0, 9.0);
    town.later(1);
    assert_eq!(town.have(), [9.0, 18.0]);
}

#[test]
fn where_there_are_more_clients_than_parts_they_take_turns() {
    let mut town = Town::new(with(Scope::Strict, 29), "few");
    (0..3).for_each(|_| town.come(5.0));
    let average = town.average(60);
    // One part of five a second, for a second each; it takes a step to change hands.
    assert!(average.iter().all(|held| (1.5..1.7).contains(held)), "{average:?}");
    town.want(2, 0.0);
    let average = town.average(60);
    assert!(average[..2].iter().all(|held| (2.2..2.5).contains(held)), "{average:?}");
    assert!(average[2] < 0.1, "{average:?}");
}

#[test]
fn other_policies_are_another_capacity_and_another_scope_is_none() {
    let mut town = Town::new(with(Scope::Strict, 29), "tenant");
    town.come(100.0);
    assert_eq!(town.have(), [27.0]);
    for (limit, capacity) in [(9, 9.0), (39, 36.0)] {
        town.reload(with(Scope::Strict, limit));
        town.exchange();
        town.later(1);
        assert_eq!(town.have(), [capacity]);
    }
    town.reload(with(Scope::Client, 29));
    town.exchange();
    assert_eq!(town.template().unwrap().part, None, "a name like others");
}

#[test]
fn a_lease_that_nothing_is_derived_for_any_more_ends() {
    let narrow = |scope| Template { glob: Glob::new("db").unwrap(), ..with(scope, 29) };
    let mut town = Town::new(narrow(Scope::Strict), "tenant");
    town.come(9.0);
    assert_eq!(town.have(), [9.0]);
    town.reload(narrow(Scope::Client));
    town.exchange();
    town.later(25);
    assert_eq!(town.have(), [0.0]);
    town.reload(narrow(Scope::Strict));
    town.later(60);
    assert_eq!(town.have(), [9.0], "it is asked for again");
}

#[test]
fn what_no_domain_follows_is_refused_with_the_reason() {
    let check = |glob: &str, scope, name: &str, told: &str| {
        let template = Template { glob: Glob::new(glob).unwrap(), ..with(scope, 29) };
        let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(template));
        let refusal = ask(&mut node, ResourceId::new(name, 256).unwrap()).unwrap_err();
        assert_eq!(refusal, format!("resource[0].resource_id: no template matches {name:?}{told}"));
    };
    let told = ", and as the lease of a domain: \"db\" is closed to the domain";
    check("*", Scope::Strict, "db|d:closed", told);
    let told = ", and as the lease of a domain: the domain follows no policy, and needs no lease";
    check("*", Scope::Strict, "db|d:probe-1", told);
    let told = ", and as the lease of a domain: domains of \"db\" have no leases of their own: their scope is not strict";
    check("db", Scope::Client, "db|d:tenant", told);
    let told = "; wanted a name that a template covers, or a catch-all \"*\"";
    check("db", Scope::Strict, "other|d:tenant", told);
}

#[test]
fn doormans_clients_may_lease_a_part_too() {
    let mut node =
        Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(Scope::Strict, 29)));
    assert_eq!(
        ask(&mut node, of("tenant")),
        Ok((18.0, Duration::from_secs(20))),
        "two parts are what ten wants"
    );
}

#[test]
fn however_many_domains_have_leases_other_resources_are_shown_before_them() {
    let mut node =
        Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(with(Scope::Strict, 29)));
    let later = ResourceId::new("zoo", 256).unwrap();
    for id in [of("one"), of("two"), later] {
        ask(&mut node, id).unwrap();
    }
    let query = StatusQuery { resources: 2, ..StatusQuery::default() };
    let shown = node.status(Time::ZERO, &query).resources;
    let names: Vec<_> = shown.iter().map(|row| row.resource.resource.as_str()).collect();
    assert_eq!(names, ["zoo", "db|d:one"]);
}

/// The capacity granted to a client that polls, draws no incarnation and wants ten, and the length of the
/// grant.
fn ask(node: &mut Node, resource: ResourceId) -> Result<(f64, Duration), String> {
    let bands: Bands = wants(10.0).bands;
    let ask = Ask {
        kind: HolderKind::Client,
        holder: client("one"),
        incarnation: None,
        report_id: None,
        target_epoch: None,
        reports: vec![Report::new(resource, bands)],
        line: None,
    };
    let mut answer = node.ask(Time::ZERO, &ask).map_err(|refusal| refusal.to_string())?;
    let grant = answer.grants.remove(0);
    Ok((grant.capacity.as_f64().round(), grant.length))
}
