//! What the town of a seed is like.

mod clocks;
mod kinds;
mod memory;

use std::time::Duration;

use lessor_client::holding::Fallback;
use lessor_client::session::Transport;
use lessor_proto::{Amount, Drift};
use lessor_server::node::Claims;
use lessor_server::repository::{Kind, Legacy, Policy, Rotate, SmallLeases};

use super::Options;
use crate::dice::Dice;
use crate::faults::{Faults, Mischief};
use crate::plan::{
    ClientPlan, Election, EtcdPlan, Hold, Link, Manners, Memory, PlacePlan, ResourcePlan, Terms, TownPlan,
    Watch, Way,
};

/// The town of a seed.
#[must_use]
pub fn plan(seed: u64, options: &Options) -> TownPlan {
    let mut dice = Dice::new(seed ^ 0x005e_ed0f_7077);
    let short = dice.chance(500);
    let drift = Drift::from_parts_per_million([0, 1_000, 10_000, 50_000, 50_000][dice.index(5)]);
    let mut faults = Faults::draw(&mut dice, options.faulty);
    if short && dice.chance(800) {
        // The bias of section 13: a fifth of all messages later than a lease lasts.
        (faults.slow, faults.slow_mean) = (200, Duration::from_secs(2));
    }
    let mut more = Dice::new(seed ^ 0x0dd5_e77e);
    options.without.iter().for_each(|&kind| faults.mischief[kind as usize] = None);
    let mut resources = resources(&mut dice);
    let mut places = places(&mut dice, options, short);
    let flat = places.len() == 1;
    let hold = Duration::from_secs(Dice::new(seed ^ 0x0571_c4e5).between(60, 90));
    for resource in &mut resources {
        turns(&mut more, resource);
        let burst = more.chance(300).then(|| Duration::from_millis(more.between(1, 1_000)));
        resource.legacy = match more.below(10) {
            0 => Legacy::Deny,
            // Below another node that is refused.
            1..=3 if flat && resource.kind == Kind::Rate => Legacy::Sticky { hold },
            _ => Legacy::Expire,
        };
        resource.burst = burst.filter(|_| resource.kind == Kind::Rate);
    }
    let mut small = Dice::new(seed ^ 0x5a11_1ea5);
    for resource in &mut resources {
        resource.small_leases = if small.chance(300) { SmallLeases::Save } else { SmallLeases::Request };
    }
    let mut record = Dice::new(seed ^ 0x7ec0_7d00);
    // Most leaders may go on for longer than the shortest leases last.
    let authority = Duration::from_millis(record.between(1_000, 3_000));
    places.iter_mut().for_each(|place| place.authority = authority);
    let mut clients = clients(&mut dice, options, short, &places, &resources);
    let ours = clients.iter_mut().filter(|client| client.way != Way::Legacy);
    for hold in ours.flat_map(|client| &mut client.holds) {
        hold.weight = if more.chance(200) { more.between(2, 5) as u32 } else { 1 };
    }
    measure(&mut Dice::new(seed ^ 0x0de3_a4d5), &mut clients, &resources);
    let tokens = record.chance(500);
    let claims = if record.chance(200) { Claims::Deferred } else { Claims::Freed };
    let overstays = more.chance(300);
    // Where nothing is reserved, both come to nothing.
    let fallback = if more.chance(500) { Fallback::Safe } else { Fallback::Pessimistic };
    let election = election(&mut record, authority, drift);
    if election == Election::Alone {
        // A server that knows nothing of those before it learns for as long as its own leases last.
        faults.mischief[Mischief::Lease as usize] = None;
    }
    let are_two = |place: &PlacePlan| place.parent.is_some() && place.tasks > 1;
    let may_be_two = election == Election::Alone && places.iter().any(are_two);
    let namesakes = may_be_two && Dice::new(seed ^ 0x2a_3e5a_4e5a).chance(400);
    faults.mischief[Mischief::Twin as usize] =
        faults.mischief[Mischief::Twin as usize].map(|every| every.max(Duration::from_secs(8)));
    let mut plan = TownPlan {
        places,
        clients,
        resources,
        drift,
        odd_clocks: dice.chance(800),
        manners: Manners {
            timeout: Duration::from_secs(dice.between(1, 5)),
            // A lease of a second is to be renewed before it ends.
            spacing: Duration::from_millis(if short {
                dice.between(100, 250)
            } else {
                dice.between(50, 1_000)
            }),
            longest_back_off: Duration::from_secs(dice.between(2, 10)),
            eager: dice.chance(800),
            overstays,
        },
        faults,
        watch: Watch::Close,
        tokens,
        claims,
        election,
        namesakes,
        memory: Memory::default(),
        fallback,
        // In one town of four tasks have copies of their own.
        editions: Dice::new(seed ^ 0x0ed1_7105).chance(250),
        clients_from: Duration::ZERO,
        #[cfg(feature = "mutations")]
        mutation: options.mutation,
    };
    memory::remember(seed, options, &mut plan);
    clocks::pause(seed, options, &mut plan);
    kinds::change(seed, options, &mut plan);
    plan
}

/// Mostly an etcd, in half of the towns with leases that are as short as authority allows.
fn election(dice: &mut Dice, authority: Duration, drift: Drift) -> Election {
    if dice.chance(50) {
        return Election::Alone;
    }
    let needed = drift.stretch(authority).as_nanos().div_ceil(1_000_000_000) as u64;
    let spare = if dice.chance(500) { 0 } else { dice.between(1, 4) };
    Election::Etcd(EtcdPlan {
        // It grants nothing shorter than two seconds.
        ttl: Duration::from_secs((needed + spare).max(2)),
        keep_alive: authority / 4,
        call_timeout: authority.mul_f64([0.2, 0.5][dice.index(2)]),
        link: Link {
            latency: Duration::from_micros(200),
            jitter: Duration::from_millis(dice.between(1, 20)),
        },
    })
}

fn resources(dice: &mut Dice) -> Vec<ResourcePlan> {
    let count = if dice.chance(700) { 1 } else { 2 };
    let one = |number: usize| {
        let gauge = dice.chance(300);
        let capacity = dice.between(5, 500);
        ResourcePlan {
            name: format!("r{number}"),
            kind: if gauge { Kind::Gauge } else { Kind::Rate },
            policy: if dice.chance(850) { Policy::FairShare } else { Policy::ProportionalShare },
            capacity: Amount::from_units(capacity),
            rotate: None,
            quantum: None,
            burst: None,
            small_leases: SmallLeases::default(),
            legacy: Legacy::default(),
        }
    };
    (0..count).map(one).collect()
}

/// Draws the way in which the units of a gauge are taken in turns, and the length of a turn, which is mostly
/// left unset.
fn turns(dice: &mut Dice, resource: &mut ResourcePlan) {
    let rotate = [None, Some(Rotate::Fair), Some(Rotate::Sticky), Some(Rotate::None)][dice.index(4)];
    let quantum = dice.chance(400).then(|| Duration::from_millis(dice.between(100, 1_000)));
    if resource.kind == Kind::Gauge {
        (resource.rotate, resource.quantum) = (rotate, quantum.filter(|_| rotate != Some(Rotate::None)));
    }
}

fn places(dice: &mut Dice, options: &Options, short: bool) -> Vec<PlacePlan> {
    let depth = if options.flat { 1 } else { dice.between(1, 3) };
    let mut places: Vec<PlacePlan> = Vec::new();
    let mut level: Vec<Option<u32>> = vec![None];
    for number in 0..depth {
        let mut next = Vec::new();
        for &parent in &level {
            let children = if number == 0 { 1 } else { dice.between(1, 3) };
            for _ in 0..children {
                let name = format!("p{}", places.len());
                next.push(Some(places.len() as u32));
                places.push(place(dice, options, name, parent, short, depth));
            }
        }
        level = next;
    }
    places
}

/// In a tree of `depth` levels, with leases that are short or not: as a lease gets shorter from level to level, and a node
/// that polls asks once a second, or after two thirds of it, they must not be too short to be renewed.
fn place(
    dice: &mut Dice,
    options: &Options,
    name: String,
    parent: Option<u32>,
    short: bool,
    depth: u64,
) -> PlacePlan {
    let polls = options.polling || dice.chance(150);
    let lease = match (short, depth) {
        (true, 1) => dice.between(1, 3),
        (true, depth) => dice.between(depth + 1, depth + 3),
        (false, depth) => dice.between(1 + 3 * depth, 30),
    };
    let refresh = dice.between(1, (lease / 2).clamp(1, 8));
    PlacePlan {
        tasks: dice.between(1, 3) as u8,
        link: link(dice, short),
        transport: if polls { Transport::Poll } else { Transport::Stream },
        streams: !dice.chance(50),
        terms: Terms {
            lease_length: Duration::from_secs(lease),
            refresh_interval: Duration::from_secs(refresh),
        },
        ..PlacePlan::new(name, parent)
    }
}

fn clients(
    dice: &mut Dice,
    options: &Options,
    short: bool,
    places: &[PlacePlan],
    resources: &[ResourcePlan],
) -> Vec<ClientPlan> {
    let all_stream = !options.polling && dice.chance(400);
    let shortest = places.iter().map(|place| place.terms.lease_length).min().unwrap_or_default();
    let mut clients = Vec::new();
    for place in 0..places.len() as u32 {
        let is_leaf = places.iter().all(|other| other.parent != Some(place));
        let most = if places.len() > 4 { 4 } else { 12 };
        let count = if is_leaf { dice.between(2, most) } else { dice.below(3) };
        for number in 0..count {
            let way = match dice.below(10) {
                _ if all_stream => Way::Stream,
                0..=4 if !options.polling => Way::Stream,
                // One that asks once a second at most, and counts whole seconds, cannot keep a lease of one; and one of
                // a few is no longer below other nodes.
                9 if shortest >= Duration::from_secs(if place == 0 { 3 } else { 8 }) => Way::Legacy,
                _ => Way::Poll,
            };
            let link = link(dice, short);
            let holds = holds(dice, resources);
            clients.push(ClientPlan { name: format!("c{place}-{number}"), place, link, way, holds });
        }
    }
    clients
}

fn holds(dice: &mut Dice, resources: &[ResourcePlan]) -> Vec<Hold> {
    let mut holds: Vec<Hold> = Vec::new();
    for (index, resource) in resources.iter().enumerate() {
        if holds.is_empty() && index + 1 == resources.len() || dice.chance(800) {
            let wants = (resource.capacity.as_f64() * dice.fraction() / 4.0).ceil();
            let priority = if dice.chance(200) { 1 } else { 0 };
            holds.push(Hold { priority, ..Hold::new(index as u16, wants) });
        }
    }
    holds
}

/// In two towns of five most programs with a rate do not state what they want.
fn measure(dice: &mut Dice, clients: &mut [ClientPlan], resources: &[ResourcePlan]) {
    let is_measured = dice.chance(400);
    for hold in
        clients.iter_mut().filter(|client| client.way != Way::Legacy).flat_map(|client| &mut client.holds)
    {
        let chosen = dice.chance(700) && resources[usize::from(hold.resource)].kind == Kind::Rate;
        hold.is_measured = is_measured && chosen;
    }
}

/// A way that is short where leases are: a session that sees its lease end waits a third of the rest for an answer.
fn link(dice: &mut Dice, short: bool) -> Link {
    let latency = Duration::from_micros(dice.between(100, if short { 10_000 } else { 50_000 }));
    Link { latency, jitter: latency.mul_f64(dice.fraction()) }
}
