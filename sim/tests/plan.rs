//! The law of plans: what a plan says of a change is what happens when it is made. Random trees, random demands, random changes;
//! everybody's share is then within 0.2 % of the capacity of what the plan has said, nobody is refused whom it has not named, and
//! all of it is so before the latest time that it gives.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules, Scope, Share};
use lessor_client::internals::holding::{HoldingConfig, Surplus};
use lessor_client::internals::session::{Action, Session, SessionConfig};
use lessor_client::{Kind as Counting, Transport};
use lessor_proto::message::{Ask, Band, HolderKind, Report};
use lessor_proto::{Amount, ClientId, Drift, Epoch, Incarnation, ResourceId, Time};
use lessor_server::node::{Node, NodeConfig, ParentConfig, PlanScan};
use lessor_server::overrides::{Override, OverrideAct, Overrides};
use lessor_server::plan::{NodeForecast, NodePlan, Plan, PlanChange, SupplyForecast};
use lessor_server::repository::{
    Domains, Field, Fraction, Glob, Kind, Legacy, Repository, SharePolicy, Template,
};
use lessor_sim::net::{Heard, StillNet};
use lessor_sim::rng::Rng;

const TREES: u64 = 50;
const SECOND: Duration = Duration::from_secs(1);
/// The part of the capacity by which a share may miss what was planned.
const LAW: f64 = 0.002;
/// The times that units may be handed back and forth at one moment.
const ROUNDS: usize = 1_000;
/// The units of a gauge that go round: whoever has one has it for a turn.
const TURN: f64 = 1.0;

/// A client that holds one resource.
struct TreeClient {
    id: String,
    home: usize,
    resource: ResourceId,
    is_gauge: bool,
    wants: Amount,
}

struct Forest {
    rng: Rng,
    now: Time,
    net: StillNet,
    parents: Vec<Option<usize>>,
    templates: Vec<Template>,
    clients: Vec<TreeClient>,
    /// The part of those who poll, of a thousand.
    pollers: u32,
    overrides: Overrides,
    /// The resources of which clients were told that they are refused.
    refused: BTreeSet<(usize, ResourceId)>,
}

/// The plan of a tree, and the share that it says of each client.
struct Said {
    plan: Plan,
    shares: BTreeMap<(usize, ResourceId), f64>,
}

// === impl Forest ===

impl Forest {
    /// A tree in which everybody has its share.
    fn grow(seed: u64) -> Forest {
        let mut rng = Rng::new(seed ^ 0x0091_a45e_ed00);
        let mut parents = vec![None];
        let mut level = vec![0];
        for _ in 0..rng.below(3) {
            for parent in std::mem::take(&mut level) {
                for _ in 0..rng.between(1, 3) {
                    level.push(parents.len());
                    parents.push(Some(parent));
                }
            }
        }
        let templates = (0..2).map(|number| template(&mut rng, number)).collect();
        let net = StillNet::new(&parents);
        let now = Time::ZERO + Duration::from_secs(1_000);
        let pollers = if rng.chance(400) { 300 } else { 0 };
        let (clients, overrides) = (Vec::new(), overrides(&mut rng, now));
        let refused = BTreeSet::new();
        let mut forest = Forest { rng, now, net, parents, templates, clients, pollers, overrides, refused };
        for site in 0..forest.parents.len() {
            forest.begin(site);
        }
        forest.settle_in(&level);
        forest.pass(100 * SECOND);
        for site in 0..forest.parents.len() {
            let node = forest.net.net.node_mut(site).expect("it leads");
            node.set_overrides(forest.now, &forest.overrides);
        }
        forest.pass(200 * SECOND);
        forest
    }

    fn begin(&mut self, site: usize) {
        let transport = self.way();
        let parent = self.parents[site].map(|parent| ParentConfig {
            servers: vec![parent.to_string().into()],
            transport,
            eager: true,
        });
        let config =
            NodeConfig { parent, drift: Drift::NONE, ..NodeConfig::new(format!("n{site}"), Epoch(1)) };
        let templates = Repository::new(self.templates.clone()).expect("templates");
        self.net.net.begin(self.now, site, config, templates);
    }

    fn way(&mut self) -> Transport {
        if self.rng.chance(self.pollers) { Transport::Poll } else { Transport::Stream }
    }

    /// A few clients of each leaf, and perhaps of others.
    fn settle_in(&mut self, leaves: &[usize]) {
        for site in 0..self.parents.len() {
            let most = if leaves.contains(&site) { 8 } else { 2 };
            for number in 0..self.rng.between(if leaves.contains(&site) { 2 } else { 0 }, most) {
                let resource = self.rng.index(self.templates.len());
                let is_of_domain = resource == 0 && strict_share(&self.templates[0]).is_some();
                let is_of_domain = is_of_domain && self.rng.chance(500);
                self.come(site, number, resource, is_of_domain);
            }
        }
    }

    fn come(&mut self, site: usize, number: u64, resource: usize, is_of_domain: bool) {
        let id = format!("c{site}-{number}");
        let template = &self.templates[resource];
        let share = strict_share(template).filter(|_| is_of_domain);
        let capacity = share.as_ref().map_or(template.capacity, Share::capacity);
        let most = capacity.as_f64() / 2.0;
        let is_rate = template.kind == Kind::Rate;
        let wants = (self.rng.fraction() * most).ceil();
        let priority = i64::from(self.rng.chance(200));
        let config = SessionConfig {
            drift: Drift::NONE,
            transport: self.way(),
            ..SessionConfig::new(name(&id), Incarnation(self.rng.number()), vec![site.to_string().into()])
        };
        let mut session = Session::new(config);
        let mut resource = id_of(resource);
        let counting = if is_rate { Counting::Rate } else { Counting::Gauge };
        let mut holding = HoldingConfig::new(counting, wants, priority);
        if let Some(share) = share {
            resource = resource.of_domain("acme", 64).expect("a name");
            holding.surplus = Surplus::ReturnParts(share.part());
        }
        session.add(self.now, resource.clone(), holding);
        self.net.add(site, session);
        let (is_gauge, wants) = (!is_rate, Amount::from_f64(wants));
        self.clients.push(TreeClient { id, home: site, resource, is_gauge, wants });
    }

    fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        loop {
            self.settle();
            if self.now >= end {
                return;
            }
            let next = self.net.next_deadline().max(self.now + Duration::from_millis(1));
            self.now = next.min(self.now + SECOND).min(end);
        }
    }

    /// All is said that is to be said now, and whoever has units of a gauge uses as many as it wants.
    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let (refused, mut changed) = (&mut self.refused, BTreeSet::new());
            self.net.settle(self.now, &mut |client, heard| {
                if let Heard::Action(Action::Change(change)) = heard {
                    changed.insert(client);
                    if change.fault.is_some_and(|fault| fault.to_string().contains("refused")) {
                        refused.insert((client, change.resource.clone()));
                    }
                }
            });
            changed.retain(|&client| self.clients[client].is_gauge);
            if changed.is_empty() {
                return;
            }
            for client in changed {
                let TreeClient { resource, wants, .. } = &self.clients[client];
                let session = &mut self.net.sessions[client];
                let used = session.allowance(self.now, resource).capacity.unwrap_or(*wants).min(*wants);
                session.set_in_use(self.now, resource, used);
            }
        }
        panic!("units do not come to rest");
    }

    /// Another configuration of the first resource.
    fn change(&mut self) -> Vec<Template> {
        let mut templates = self.templates.clone();
        let (kind, rng) = (templates[0].kind, &mut self.rng);
        let strict = strict_share(&templates[0]).filter(|_| rng.chance(500));
        match rng.below(10) {
            _ if strict.is_some() => templates[0].domains = Some(strict_domains(rng)),
            0..=4 => {
                let factor = 0.1 + rng.fraction() * 1.5;
                templates[0].capacity =
                    Amount::from_units((templates[0].capacity.as_f64() * factor).ceil() as u64);
            }
            5 => {
                templates[0].policy = match templates[0].policy {
                    SharePolicy::FairShare => SharePolicy::ProportionalShare,
                    _ => SharePolicy::FairShare,
                };
            }
            6 => _ = templates.remove(0),
            7 => templates[0].most_priority = Some(0),
            8 => templates[0].most_clients = Some(2),
            _ if kind == Kind::Rate => {
                templates[0].kind = Kind::Gauge;
                templates[0].safe_fraction = Fraction::NONE;
                templates[0].domains = None;
            }
            _ => templates[0].legacy = Legacy::Deny,
        }
        templates
    }

    fn scan(&self, site: usize, change: PlanChange) -> NodePlan {
        let node = self.net.net.node(site).expect("it leads");
        let mut scan = PlanScan::new(change);
        let mut steps = (0..100_000).filter_map(|_| scan.step(self.now, node));
        steps.next().expect("it comes to an end")
    }

    /// The plan of the whole tree: up from the leaves, and down again.
    fn plan(&self, templates: &[Template]) -> Said {
        let repository = Repository::new(templates.to_vec()).expect("templates");
        let change = || PlanChange { repository: Some(repository.clone()), ..PlanChange::default() };
        let mut plans: Vec<NodePlan> =
            (0..self.parents.len()).map(|site| self.scan(site, change())).collect();
        // Whoever is above has a lower number.
        for site in (0..plans.len()).rev() {
            plans[site].rehearse();
            let Some(parent) = self.parents[site] else { continue };
            let demands = plans[site].demands();
            let name = format!("n{site}");
            demands.iter().for_each(|(id, bands)| plans[parent].hear_demand(&name, id, bands));
        }
        let mut supplies: BTreeMap<String, Vec<SupplyForecast>> = BTreeMap::new();
        let mut forecasts = Vec::new();
        for (site, plan) in plans.iter_mut().enumerate() {
            let granted = supplies.remove(&format!("n{site}")).unwrap_or_default();
            let (forecast, passed) = plan.divide(&granted, &[]);
            supplies.extend(passed);
            forecasts.push(forecast);
        }
        let shares = self.shares_said(&forecasts);
        Said { plan: Plan::of(forecasts, 3), shares }
    }

    /// The share that each client would have of a resource and of its floor, where it is another one.
    fn shares_said(&self, forecasts: &[NodeForecast]) -> BTreeMap<(usize, ResourceId), f64> {
        let mut shares = BTreeMap::new();
        for resource in forecasts.iter().flat_map(|forecast| &forecast.resources) {
            let id = ResourceId::new(resource.resource.as_str(), 64).expect("a name");
            for mover in resource.losers.worst.iter().chain(&resource.gainers.worst) {
                let found = self.clients.iter().position(|client| client.id == mover.client);
                shares.insert((found.expect("a client"), id.clone()), mover.share[1]);
            }
        }
        shares
    }

    /// The share that each client has of its resource and of the floor of that, as its node explains it; nothing where it is not known
    /// there.
    fn shares(&mut self) -> BTreeMap<(usize, ResourceId), f64> {
        let mut shares = BTreeMap::new();
        for (client, TreeClient { id, home, resource, .. }) in self.clients.iter().enumerate() {
            let node = self.net.net.node_mut(*home).expect("it leads");
            for resource in [resource.clone(), resource.floor()] {
                let explained = node.explain(self.now, &resource, Some(&name(id)));
                let share =
                    explained.map_or(0.0, |explained| explained.lives.iter().map(|life| life.share).sum());
                shares.insert((client, resource), share);
            }
        }
        shares
    }

    /// All that is in force.
    fn told(&self) -> String {
        format!("{:?} under {:?}, {} of 1000 poll", self.templates, self.overrides, self.pollers)
    }

    fn push(&mut self, templates: &[Template]) {
        let repository = Repository::new(templates.to_vec()).expect("templates");
        for site in 0..self.parents.len() {
            let node = self.net.net.node_mut(site).expect("it leads");
            node.reload(self.now, repository.clone());
        }
    }
}

fn template(rng: &mut Rng, number: usize) -> Template {
    let capacity = Amount::from_units(rng.between(50, 500));
    let is_rate = rng.chance(800);
    let tenth = Fraction::check(Field::SafeFraction, 0.1).expect("a fraction");
    Template {
        kind: if is_rate { Kind::Rate } else { Kind::Gauge },
        policy: if rng.chance(800) { SharePolicy::FairShare } else { SharePolicy::ProportionalShare },
        safe_fraction: if is_rate && rng.chance(300) { tenth } else { Fraction::NONE },
        domains: (is_rate && rng.chance(300)).then(|| strict_domains(rng)),
        ..Template::new(Glob::new(&format!("r{number}")).expect("a glob"), capacity)
    }
}

/// Policies by which each domain has a lease of its own.
fn strict_domains(rng: &mut Rng) -> Domains {
    let second = Duration::from_secs(1);
    let limit = rng.between(20, 200) as u32;
    let tier = Tier {
        limit,
        window: second,
        active: second,
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    let policy = TierPolicy::new(vec![tier], None, None).expect("a policy");
    let rules = Rules { scope: Scope::Strict, default: Some(Contract::from(policy)), ..Rules::default() };
    Domains { policies: Arc::new(Policies::new(rules).expect("policies")), changes: Vec::new() }
}

/// The lease that each domain of a resource has together, if it has one.
fn strict_share(template: &Template) -> Option<Share> {
    let policies = &template.domains.as_ref()?.policies;
    let (_, share) = policies.shares().next().filter(|_| policies.scope() == Scope::Strict)?;
    share
}

/// Perhaps one that caps or freezes the first resource, or drains clients.
fn overrides(rng: &mut Rng, now: Time) -> Overrides {
    let mut overrides = Overrides::default();
    let act = match rng.below(8) {
        0 => OverrideAct::Cap { resource: "r0".to_owned(), capacity: rng.between(40, 200) as f64 },
        1 => OverrideAct::Freeze { resource: "r0".to_owned() },
        2 => OverrideAct::DrainClient { client: "*-1".to_owned(), resource: None, deny: rng.chance(500) },
        _ => return overrides,
    };
    let it = Override { id: "o".to_owned(), act, seconds: 3_600, ..Override::for_reason("the law") };
    overrides.put(it, now + 3_600 * SECOND).expect("an override");
    overrides
}

fn id_of(number: usize) -> ResourceId {
    ResourceId::new(format!("r{number}"), 16).expect("a name")
}

fn name(id: &str) -> ClientId {
    ClientId::new(id, 64).expect("a name")
}

/// The outcome of a change.
#[derive(Default, Debug)]
struct Held {
    /// The number of clients whose share was to be another one.
    moved: usize,
    /// The sum of the shares that there then are of what changes.
    shares: f64,
    /// The number of shares of leases of domains that were to be others.
    of_domains: usize,
    /// Where it is not as planned.
    misses: Vec<String>,
}

/// Grows the tree of a seed, plans a change of it, makes it, and holds what came of it against the plan.
fn hold(seed: u64) -> Held {
    let mut forest = Forest::grow(seed);
    let before = forest.shares();
    forest.refused.clear();
    let templates = forest.change();
    let said = forest.plan(&templates);
    // Of the one that is taken away nobody has anything.
    let capacity = |number: usize| {
        let after = templates.iter().find(|template| template.glob == forest.templates[number].glob);
        let before = forest.templates[number].capacity;
        after.map_or(before, |after| after.capacity.max(before)).as_f64()
    };
    let turns = |number: usize| if forest.templates[number].kind == Kind::Gauge { TURN } else { 0.0 };
    let bounds = [0, 1].map(|number| capacity(number) * LAW + turns(number));
    // Parts of the lease of a domain go round as units of a gauge do.
    let shares = [&forest.templates, &templates].map(|all| all.first().and_then(strict_share));
    let part = shares.iter().flatten().map(|share| share.part().as_f64()).fold(0.0, f64::max);
    forest.push(&templates);
    forest.pass(Duration::from_secs_f64(said.plan.latest_s().max(1.0)));
    let mut held = Held { moved: said.shares.len(), ..Held::default() };
    for (of, found) in forest.shares() {
        let before = before[&of];
        let planned = said.shares.get(&of).copied().unwrap_or(before);
        let (client, resource) = of;
        if resource.as_str() == "r0" {
            held.shares += found;
        }
        let is_of_domain = resource.domained().is_some();
        held.of_domains += usize::from(is_of_domain && (planned - before).abs() > LAW);
        let bound = bounds[usize::from(resource.as_str().starts_with("r1"))];
        // The equal shares of floors are steps that depend on what was before: the plan may miss one of those.
        let bound = if is_of_domain { bound.min(part) + part } else { bound };
        let bound = if resource.is_floor() { bound.max(planned.max(found) / 2.0) } else { bound };
        if (found - planned).abs() > bound {
            let id = &forest.clients[client].id;
            held.misses.push(format!(
                "seed {seed}: {id} has {found} of {resource}, where {planned} was planned and {before} was before"
            ));
        }
    }
    for (client, resource) in &forest.refused {
        let TreeClient { id, home, .. } = &forest.clients[*client];
        let is_named = said.plan.refused.iter().any(|refused| {
            refused.resource == resource.as_str()
                && refused.node == format!("n{home}")
                && refused.some.contains(id)
        });
        if !is_named {
            held.misses.push(format!("seed {seed}: {id} is refused {resource}, and not named"));
        }
    }
    if !held.misses.is_empty() {
        held.misses.push(format!(
            "{} -> {templates:?}, in {:?}: {:#?}",
            forest.told(),
            forest.parents,
            said.plan
        ));
    }
    held
}

#[test]
fn what_is_planned_of_fifty_trees_is_what_happens() {
    let all: Vec<Held> = (0..TREES).map(hold).collect();
    let misses: Vec<&str> = all.iter().flat_map(|held| &held.misses).map(String::as_str).collect();
    assert!(misses.is_empty(), "{}", misses.join("\n"));
    let moved = all.iter().filter(|held| held.moved > 0).count();
    assert!(moved > TREES as usize / 2, "{moved} of {TREES} changes have moved anything");
    let of_domains: usize = all.iter().map(|held| held.of_domains).sum();
    assert!(of_domains > 5, "{of_domains} shares of leases of domains have moved");
    let alive = all.iter().filter(|held| held.shares > 0.0).count();
    assert!(alive > TREES as usize / 2, "in {alive} of {TREES} trees anybody has anything");
}

#[test]
fn many_holders_are_counted_together_beyond_ten_thousand() {
    const CLIENTS: usize = 10_050;
    let now = Time::ZERO + SECOND;
    let template = |capacity| Template::new(Glob::new("r0").expect("a glob"), Amount::from_units(capacity));
    let repository = |capacity| Repository::new(vec![template(capacity)]).expect("templates");
    let mut node = Node::new(now, NodeConfig::new("root".to_owned(), Epoch(1)), repository(30_000));
    for client in 0..CLIENTS {
        // The first want less than the others, and have all of it also afterwards.
        let wants = if client < 50 { 0.5 } else { 2.0 };
        let band = Band { priority: 0, subclients: 1, wants };
        let ask = Ask {
            kind: HolderKind::Client,
            holder: name(&format!("c{client}")),
            incarnation: Some(Incarnation(client as u64)),
            report_id: None,
            target_epoch: None,
            line: None,
            reports: vec![Report::new(id_of(0), [band])],
        };
        node.ask(now, &ask).expect("it is granted");
    }
    let change = PlanChange { repository: Some(repository(10_025)), ..PlanChange::default() };
    let mut scan = PlanScan::new(change);
    let steps: Vec<Option<NodePlan>> = (0..1_000).map(|_| scan.step(now, &node)).collect();
    let slices = steps.iter().position(Option::is_some).expect("it comes to an end");
    let mut plan = steps.into_iter().flatten().next().expect("it is there");
    assert!(slices > CLIENTS / 512, "{slices} slices");
    plan.rehearse();
    let (forecast, _) = plan.divide(&[], &[]);
    let resource = &forecast.resources[0];
    assert_eq!((resource.not_named, resource.losers.count, resource.keep), (50, CLIENTS - 50, 50));
    assert!(
        (resource.shares[0] - 20_025.0).abs() < 1e-3 && (resource.shares[1] - 10_025.0).abs() < 1e-3,
        "{resource:?}"
    );
    assert!((resource.losers.sum - 10_000.0).abs() < 1e-3, "{resource:?}");
}
