//! Leases of domains: what a node makes of them, on streams and for Doorman's clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::domain::{Override, Policies, Rules, Scope};
use lessor_client::internals::holding::HoldingConfig;
use lessor_client::internals::session::{self, Action, Session, SessionConfig};
use lessor_client::{Fallback, Kind, Transport};
use lessor_proto::message::{Ask, Bands, HolderKind, Report};
use lessor_proto::{Amount, Epoch, Glob, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, Output, Peer, StatusQuery};
use lessor_server::repository::{Domains, Template};

use super::holders::{client, repository, resource, template, wants};

/// Steps that an exchange takes at the most.
const STEPS: usize = 1_000;
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

/// A node and clients of the same domain that listen to it.
struct Town {
    now: Time,
    node: Node,
    resource: ResourceId,
    clients: Vec<Client>,
    /// Whose stream it is, by the peer.
    peers: BTreeMap<Peer, usize>,
}

struct Client {
    session: Session,
    stream: Option<(u64, Peer)>,
    allowance: Allowance,
}

// === impl Town ===

impl Town {
    fn new(template: Template, domain: &str) -> Town {
        let node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository(template));
        let (clients, peers) = (Vec::new(), BTreeMap::new());
        Town { now: Time::ZERO, node, resource: of(domain), clients, peers }
    }

    /// Somebody comes who wants so much.
    fn come(&mut self, wants: f64) {
        let name = format!("web-{}", self.clients.len());
        let mut session = Session::new(SessionConfig {
            transport: Transport::Stream,
            ..SessionConfig::new(client(&name), Incarnation(1), vec!["root:1".into()])
        });
        let config =
            HoldingConfig { fallback: Fallback::Pessimistic, ..HoldingConfig::new(Kind::Rate, wants, 0) };
        session.add(self.now, self.resource.clone(), config);
        self.clients.push(Client { session, stream: None, allowance: Allowance::NOTHING });
        self.exchange();
    }

    fn want(&mut self, index: usize, wants: f64) {
        self.clients[index].session.set_wants(self.now, &self.resource, wants);
    }

    /// Everything that is to be said now is said, and heard.
    fn exchange(&mut self) {
        for _ in 0..STEPS {
            let now = self.now;
            let action = (0..self.clients.len())
                .find_map(|index| Some((index, self.clients[index].session.poll(now)?)));
            if let Some((index, action)) = action {
                self.perform(index, action);
            } else if let Some(Output::Send { peer, down }) = self.node.poll(now) {
                let client = &mut self.clients[self.peers[&peer]];
                client
                    .session
                    .handle(now, session::Event::Down { id: client.stream.expect("a stream").0, down });
                self.node.ready(now, peer);
            } else {
                return;
            }
        }
        panic!("they do not come to an end");
    }

    fn perform(&mut self, index: usize, action: Action) {
        let client = &mut self.clients[index];
        match action {
            Action::Change(change) => client.allowance = change.allowance,
            Action::Connect { id, hello, .. } => {
                let peer = self.node.connect(self.now, hello);
                client.stream = Some((id, peer));
                self.peers.insert(peer, index);
            }
            Action::Send { up, .. } => {
                let (_, peer) = client.stream.expect("a stream");
                self.node.receive(self.now, peer, up);
            }
            other => panic!("not expected: {other:?}"),
        }
        self.check();
    }

    /// Nobody has a part of a part, and all together no more than there is.
    fn check(&self) {
        let template = self.node.repository().find(&self.resource).filter(|template| template.part.is_some());
        let Some(template) = template else { return };
        let part = template.grain().as_micros();
        let held = self.has().map(Amount::as_micros).collect::<Vec<_>>();
        assert!(held.iter().all(|held| held % part == 0), "{held:?} in parts of {part}");
        assert!(held.iter().sum::<u64>() <= template.capacity.as_micros(), "{held:?} of {template:?}");
    }

    fn has(&self) -> impl Iterator<Item = Amount> {
        let lasts = |client: &Client| client.allowance.until > self.now;
        self.clients.iter().map(move |client| match lasts(client) {
            true => client.allowance.capacity.expect("there is a limit"),
            false => Amount::ZERO,
        })
    }

    /// The rate that each has, in hits a second, rounded: a window is a nanosecond longer than it seems.
    fn have(&self) -> Vec<f64> {
        self.has().map(|held| held.as_f64().round()).collect()
    }

    fn step(&mut self) {
        self.now += STEP;
        self.node.advance(self.now);
        self.exchange();
    }

    fn later(&mut self, seconds: u32) {
        (0..seconds * 20).for_each(|_| self.step());
    }

    /// The parts of a second, on average over so many, that each client had.
    fn average(&mut self, seconds: u32) -> Vec<f64> {
        let mut sums = vec![0.0; self.clients.len()];
        for _ in 0..seconds * 20 {
            self.step();
            sums.iter_mut().zip(self.has()).for_each(|(sum, held)| *sum += held.as_f64());
        }
        sums.iter().map(|sum| sum / f64::from(seconds * 20)).collect()
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
        town.node.reload(town.now, repository(with(Scope::Strict, limit)));
        town.exchange();
        town.later(1);
        assert_eq!(town.have(), [capacity]);
    }
    town.node.reload(town.now, repository(with(Scope::Client, 29)));
    town.exchange();
    assert_eq!(town.node.repository().find(&town.resource).unwrap().part, None, "a name like others");
}

#[test]
fn a_lease_that_nothing_is_derived_for_any_more_ends() {
    let narrow = |scope| Template { glob: Glob::new("db").unwrap(), ..with(scope, 29) };
    let mut town = Town::new(narrow(Scope::Strict), "tenant");
    town.come(9.0);
    assert_eq!(town.have(), [9.0]);
    town.node.reload(town.now, repository(narrow(Scope::Client)));
    town.exchange();
    town.later(25);
    assert_eq!(town.have(), [0.0]);
    town.node.reload(town.now, repository(narrow(Scope::Strict)));
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
