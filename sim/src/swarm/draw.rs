//! The drawing of a simulation's plan from a seed.

mod beside;
mod clocks;
mod domains;
mod kinds;
mod limits;
mod looks;
mod memory;
mod shared;
mod templates;
mod versions;
mod windows;

use std::time::Duration;

use lessor_client::{Fallback, Transport};
use lessor_proto::{Amount, Drift};
use lessor_server::node::Claims;
use lessor_server::repository::{Kind, Legacy, Rotate, SharePolicy, SmallLeases};

use super::Options;
use crate::faults::{Fault, FaultPlan};
use crate::plan::{
    ClientPlan, Election, EtcdPlan, Hold, LimitPlan, Link, Memory, ResourcePlan, Scrutiny, Settings,
    SimulationPlan, SitePlan, Terms, Way,
};
use crate::rng::Rng;

/// The simulation of a seed.
#[must_use]
pub fn plan(seed: u64, options: &Options) -> SimulationPlan {
    let mut rng = Rng::new(seed ^ 0x005e_ed0f_7077);
    let short = rng.chance(500);
    let drift = Drift::from_parts_per_million([0, 1_000, 10_000, 50_000, 50_000][rng.index(5)]);
    let mut faults = faults(&mut rng, options, short);
    let mut more = Rng::new(seed ^ 0x0dd5_e77e);
    let mut resources = resources(&mut rng);
    let mut sites = sites(&mut rng, options, short);
    let flat = sites.len() == 1;
    finish(seed, &mut more, &mut resources, flat);
    let mut record = Rng::new(seed ^ 0x7ec0_7d00);
    // Most leaders may go on for longer than the shortest leases last.
    let authority = Duration::from_millis(record.between(1_000, 3_000));
    sites.iter_mut().for_each(|site| site.authority = authority);
    let mut clients = clients(&mut rng, options, short, &sites, &resources);
    let ours = clients.iter_mut().filter(|client| client.way != Way::Legacy);
    for hold in ours.flat_map(|client| &mut client.holds) {
        hold.weight = if more.chance(200) { more.between(2, 5) as u32 } else { 1 };
    }
    measure(&mut Rng::new(seed ^ 0x0de3_a4d5), &mut clients, &resources);
    let tokens = record.chance(500);
    let claims = if record.chance(200) { Claims::Deferred } else { Claims::Freed };
    let overstays = more.chance(300);
    // Where nothing is reserved, both come to nothing.
    let fallback = if more.chance(500) { Fallback::Safe } else { Fallback::Pessimistic };
    let election = election(&mut record, authority, drift);
    if election == Election::Alone {
        // A server that knows nothing of those before it learns for as long as its own leases last.
        faults.gaps[Fault::Lease as usize] = None;
    }
    let namesakes = has_namesakes(seed, election, &sites);
    let forgetful = seed % 5 == 3 && clients.iter().any(|client| client.way == Way::Legacy);
    let mut plan = SimulationPlan {
        sites,
        clients,
        resources,
        drift,
        odd_clocks: rng.chance(800),
        settings: settings(&mut rng, short, overstays),
        faults,
        watch: Scrutiny::Close,
        tokens,
        claims,
        election,
        namesakes,
        memory: Memory::default(),
        fallback,
        // In one simulation of four tasks have copies of their own.
        editions: Rng::new(seed ^ 0x0ed1_7105).chance(250),
        follows: false,
        mixed: None,
        forgetful,
        domain: None,
        limits: LimitPlan::default(),
        clients_from: Duration::ZERO,
        #[cfg(feature = "mutations")]
        mutation: options.mutation,
    };
    change(seed, options, &mut plan);
    plan
}

/// Draws how often what goes wrong, with leases that are short or not.
fn faults(rng: &mut Rng, options: &Options, short: bool) -> FaultPlan {
    let mut faults = FaultPlan::draw(rng, options.faulty);
    if short && rng.chance(800) {
        // The bias of section 13: a fifth of all messages later than a lease lasts.
        (faults.slow, faults.slow_mean) = (200, Duration::from_secs(2));
    }
    options.without.iter().for_each(|&kind| faults.gaps[kind as usize] = None);
    let twins = &mut faults.gaps[Fault::Twin as usize];
    *twins = twins.map(|every| every.max(Duration::from_secs(8)));
    faults
}

/// Draws what was added to simulations since, each from numbers of its own: all else is as it would be without.
fn change(seed: u64, options: &Options, plan: &mut SimulationPlan) {
    memory::remember(seed, options, plan);
    clocks::pause(seed, options, plan);
    kinds::change(seed, options, plan);
    domains::lease(seed, plan);
    shared::share(seed, options, plan);
    versions::mix(seed, plan);
    limits::limit(seed, options, plan);
    templates::follow(seed, options, plan);
    windows::keep(seed, plan);
    looks::look(seed, options, plan);
    beside::accompany(seed, options, plan);
}

/// Draws turns, bursts and legacies of all resources, and how they save small leases up.
fn finish(seed: u64, rng: &mut Rng, resources: &mut [ResourcePlan], flat: bool) {
    let hold = Duration::from_secs(Rng::new(seed ^ 0x0571_c4e5).between(60, 90));
    for resource in &mut *resources {
        turns(rng, resource);
        let burst = rng.chance(300).then(|| Duration::from_millis(rng.between(1, 1_000)));
        resource.legacy = match rng.below(10) {
            0 => Legacy::Deny,
            // Below another node that is refused.
            1..=3 if flat && resource.kind == Kind::Rate => Legacy::Sticky { hold },
            _ => Legacy::Expire,
        };
        resource.burst = burst.filter(|_| resource.kind == Kind::Rate);
    }
    let mut small = Rng::new(seed ^ 0x5a11_1ea5);
    for resource in resources {
        resource.small_leases = if small.chance(300) { SmallLeases::Save } else { SmallLeases::Request };
    }
}

/// Whether two servers of one name go on side by side, where that may be.
fn has_namesakes(seed: u64, election: Election, sites: &[SitePlan]) -> bool {
    let are_two = |site: &SitePlan| site.parent.is_some() && site.tasks > 1;
    let may_be_two = election == Election::Alone && sites.iter().any(are_two);
    may_be_two && Rng::new(seed ^ 0x2a_3e5a_4e5a).chance(400)
}

fn settings(rng: &mut Rng, short: bool, overstays: bool) -> Settings {
    Settings {
        timeout: Duration::from_secs(rng.between(1, 5)),
        // A lease of a second is to be renewed before it ends.
        spacing: Duration::from_millis(if short { rng.between(100, 250) } else { rng.between(50, 1_000) }),
        longest_back_off: Duration::from_secs(rng.between(2, 10)),
        eager: rng.chance(800),
        overstays,
    }
}

/// Mostly an etcd, in half of the simulations with leases that are as short as authority allows.
fn election(rng: &mut Rng, authority: Duration, drift: Drift) -> Election {
    if rng.chance(50) {
        return Election::Alone;
    }
    let needed = drift.stretch(authority).as_nanos().div_ceil(1_000_000_000) as u64;
    let spare = if rng.chance(500) { 0 } else { rng.between(1, 4) };
    Election::Etcd(EtcdPlan {
        // It grants nothing shorter than two seconds.
        ttl: Duration::from_secs((needed + spare).max(2)),
        keep_alive: authority / 4,
        call_timeout: authority.mul_f64([0.2, 0.5][rng.index(2)]),
        link: Link { latency: Duration::from_micros(200), jitter: Duration::from_millis(rng.between(1, 20)) },
    })
}

fn resources(rng: &mut Rng) -> Vec<ResourcePlan> {
    let count = if rng.chance(700) { 1 } else { 2 };
    let one = |number: usize| {
        let gauge = rng.chance(300);
        let capacity = rng.between(5, 500);
        ResourcePlan {
            name: format!("r{number}"),
            kind: if gauge { Kind::Gauge } else { Kind::Rate },
            policy: if rng.chance(850) { SharePolicy::FairShare } else { SharePolicy::ProportionalShare },
            capacity: Amount::from_units(capacity),
            rotate: None,
            quantum: None,
            window: None,
            burst: None,
            small_leases: SmallLeases::default(),
            legacy: Legacy::default(),
            domain: None,
            companion_of: None,
            most_priority: None,
            most_clients: None,
        }
    };
    (0..count).map(one).collect()
}

/// Draws the way in which the units of a gauge are taken in turns, and the length of a turn, which is mostly
/// left unset.
fn turns(rng: &mut Rng, resource: &mut ResourcePlan) {
    let rotate = [None, Some(Rotate::Fair), Some(Rotate::Sticky), Some(Rotate::None)][rng.index(4)];
    let quantum = rng.chance(400).then(|| Duration::from_millis(rng.between(100, 1_000)));
    if resource.kind == Kind::Gauge {
        (resource.rotate, resource.quantum) = (rotate, quantum.filter(|_| rotate != Some(Rotate::None)));
    }
}

fn sites(rng: &mut Rng, options: &Options, short: bool) -> Vec<SitePlan> {
    let depth = if options.flat { 1 } else { rng.between(1, 3) };
    let mut sites: Vec<SitePlan> = Vec::new();
    let mut level: Vec<Option<u32>> = vec![None];
    for number in 0..depth {
        let mut next = Vec::new();
        for &parent in &level {
            let children = if number == 0 { 1 } else { rng.between(1, 3) };
            for _ in 0..children {
                let plan = SitePlan::new(format!("p{}", sites.len()), parent);
                next.push(Some(sites.len() as u32));
                sites.push(site(rng, options, plan, short, depth));
            }
        }
        level = next;
    }
    sites
}

/// Draws the rest of the plan of a site in a tree of `depth` levels, with leases that are short or not: as a lease gets shorter from level to level, and a node
/// that polls asks once a second, or after two thirds of it, they must not be too short to be renewed.
fn site(rng: &mut Rng, options: &Options, plan: SitePlan, short: bool, depth: u64) -> SitePlan {
    let polls = options.polling || rng.chance(150);
    let lease = match (short, depth) {
        (true, 1) => rng.between(1, 3),
        (true, depth) => rng.between(depth + 1, depth + 3),
        (false, depth) => rng.between(1 + 3 * depth, 30),
    };
    let refresh = rng.between(1, (lease / 2).clamp(1, 8));
    SitePlan {
        tasks: rng.between(1, 3) as u8,
        link: link(rng, short),
        transport: if polls { Transport::Poll } else { Transport::Stream },
        streams: !rng.chance(50),
        terms: Terms {
            lease_length: Duration::from_secs(lease),
            refresh_interval: Duration::from_secs(refresh),
        },
        ..plan
    }
}

fn clients(
    rng: &mut Rng,
    options: &Options,
    short: bool,
    sites: &[SitePlan],
    resources: &[ResourcePlan],
) -> Vec<ClientPlan> {
    let all_stream = !options.polling && rng.chance(400);
    let shortest = sites.iter().map(|site| site.terms.lease_length).min().unwrap_or_default();
    let mut clients = Vec::new();
    for site in 0..sites.len() as u32 {
        let is_leaf = sites.iter().all(|other| other.parent != Some(site));
        let most = if sites.len() > 4 { 4 } else { 12 };
        let count = if is_leaf { rng.between(2, most) } else { rng.below(3) };
        for number in 0..count {
            let way = match rng.below(10) {
                _ if all_stream => Way::Stream,
                0..=4 if !options.polling => Way::Stream,
                // One that asks once a second at most, and counts whole seconds, cannot keep a lease of one; and one of
                // a few is no longer below other nodes.
                9 if shortest >= Duration::from_secs(if site == 0 { 3 } else { 8 }) => Way::Legacy,
                _ => Way::Poll,
            };
            let link = link(rng, short);
            let holds = holds(rng, resources);
            clients.push(ClientPlan { name: format!("c{site}-{number}"), site, link, way, holds });
        }
    }
    clients
}

fn holds(rng: &mut Rng, resources: &[ResourcePlan]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        if holds.is_empty() && index + 1 == resources.len() || rng.chance(800) {
            let wants = (resource.capacity.as_f64() * rng.fraction() / 4.0).ceil();
            let priority = if rng.chance(200) { 1 } else { 0 };
            holds.push(Hold { priority, ..Hold::new(index as u16, wants) });
        }
    }
    holds
}

/// In two simulations of five most programs with a rate do not state what they want.
fn measure(rng: &mut Rng, clients: &mut [ClientPlan], resources: &[ResourcePlan]) {
    let is_measured = rng.chance(400);
    for hold in
        clients.iter_mut().filter(|client| client.way != Way::Legacy).flat_map(|client| &mut client.holds)
    {
        let chosen = rng.chance(700) && resources[usize::from(hold.resource)].kind == Kind::Rate;
        hold.is_measured = is_measured && chosen;
    }
}

/// A way that is short where leases are: a session that sees its lease end waits a third of the rest for an answer.
fn link(rng: &mut Rng, short: bool) -> Link {
    let latency = Duration::from_micros(rng.between(100, if short { 10_000 } else { 50_000 }));
    Link { latency, jitter: latency.mul_f64(rng.fraction()) }
}
