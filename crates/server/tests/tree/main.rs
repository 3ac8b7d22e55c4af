//! Shares in a tree are those of one server that knows every client: section 9.3 of the protocol, for random trees of real
//! nodes, weights and priorities.

mod grove;

use std::time::Duration;

use lessor_algorithms::{Demand, SharePolicy, Shares};
use lessor_client::Transport;
use lessor_proto::Time;
use lessor_proto::message::Band;
use proptest::prelude::*;

use grove::{Grove, template};

/// A tree, and who asks it for what.
#[derive(Clone, Debug)]
struct Forest {
    /// The node that each node but the root asks, as a part of the nodes before it.
    parents: Vec<f64>,
    /// The node that each holder asks, as a part of all of them, and the bands that it asks for.
    holders: Vec<(f64, Vec<Band>)>,
    /// The capacity, as a part of all that is wanted.
    capacity: f64,
    transport: Transport,
}

/// In a bucket of the demand curve the greatest wants are larger than the least by this factor, less one.
const BUCKET: f64 = 0.090_507_732;

// === impl Forest ===

impl Forest {
    fn wants(&self) -> f64 {
        self.holders.iter().flat_map(|(_, bands)| bands).map(|band| band.wants).sum()
    }

    /// The amount that each holder may use of a tree of real nodes when it has come to rest, as far as it wants it.
    fn in_the_tree(&self) -> Vec<f64> {
        let parents: Vec<Option<usize>> = std::iter::once(None)
            .chain(self.parents.iter().enumerate().map(|(before, part)| Some(pick(*part, before + 1))))
            .collect();
        let mut grove = Grove::new(&template(self.wants() * self.capacity), &parents, self.transport);
        for (part, bands) in &self.holders {
            grove.plant(pick(*part, parents.len()), bands, self.transport);
        }
        // Two lease lengths: what was granted on the way has been given back or has ended.
        grove.until(Time::ZERO + Duration::from_secs(120));
        let wanted = self.holders.iter().map(|(_, bands)| bands.iter().map(|band| band.wants).sum::<f64>());
        grove.believed().into_iter().zip(wanted).map(|(believed, wanted)| believed.min(wanted)).collect()
    }

    /// The amount that each would get of one server.
    fn on_one_server(&self) -> Vec<f64> {
        let mut shares = Shares::new(SharePolicy::FairShare, self.wants() * self.capacity);
        let demand =
            |band: &Band| Demand { priority: band.priority, weight: band.subclients, wants: band.wants };
        self.holders.iter().flat_map(|(_, bands)| bands).for_each(|band| shares.insert(&demand(band)));
        let share = |band: &Band| shares.share(&demand(band));
        self.holders.iter().map(|(_, bands)| bands.iter().map(share).sum()).collect()
    }
}

/// The place that lies at `part` of so many.
fn pick(part: f64, of: usize) -> usize {
    ((part * of as f64) as usize).min(of - 1)
}

/// From a hundredth to a thousand, as often small as large; or nothing.
fn wants() -> impl Strategy<Value = f64> {
    prop_oneof![9 => (-2.0..3.0_f64).prop_map(|power| 10.0_f64.powf(power)), 1 => Just(0.0)]
}

/// The wants of a client, or of many of them together.
fn bands() -> impl Strategy<Value = Vec<Band>> {
    let client =
        (0..3_i64, wants()).prop_map(|(priority, wants)| vec![Band { priority, subclients: 1, wants }]);
    let band = (0..3_i64, 1..40_u32, wants()).prop_map(|(priority, subclients, wants)| Band {
        priority,
        subclients,
        wants: wants * f64::from(subclients),
    });
    prop_oneof![2 => client, 1 => prop::collection::vec(band, 1..4)]
}

fn forest() -> impl Strategy<Value = Forest> {
    let holder = (0.0..1.0, bands());
    let (parents, holders) = (prop::collection::vec(0.0..1.0, 0..9), prop::collection::vec(holder, 1..30));
    let transport = prop_oneof![3 => Just(Transport::Stream), 1 => Just(Transport::Poll)];
    (parents, holders, 0.05..1.3, transport)
        .prop_map(|(parents, holders, capacity, transport)| Forest { parents, holders, capacity, transport })
        .prop_filter("something is wanted", |forest| forest.wants() > 0.0)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_shares_as_one_server_would(forest in forest()) {
        let capacity = forest.wants() * forest.capacity;
        let (tree, flat) = (forest.in_the_tree(), forest.on_one_server());
        let sum: f64 = tree.iter().sum();
        prop_assert!(sum <= capacity + 1e-6, "{sum} of {capacity}");
        // Nothing that somebody wants is left over.
        prop_assert!(sum >= flat.iter().sum::<f64>() * (1.0 - 1e-4) - 1e-4, "{sum} of {capacity}");
        let misplaced: f64 = tree.iter().zip(&flat).map(|(tree, flat)| (flat - tree).max(0.0)).sum();
        prop_assert!(misplaced <= capacity * (BUCKET / 4.0 + 1e-4) + 1e-4, "{misplaced} of {capacity} misplaced");
        // Only the bucket in which the level lies is not exact.
        for (holder, (tree, flat)) in tree.iter().zip(&flat).enumerate() {
            let least = flat / (1.0 + BUCKET) * (1.0 - 1e-4) - 1e-4;
            prop_assert!(*tree >= least, "holder {holder} has {tree} and would have {flat}");
        }
    }
}

#[test]
fn the_most_is_misplaced_where_all_want_about_the_same() {
    // One bucket holds them all. One leaf has some at its lower end and some at its upper end, and the other only those.
    let clients = [(0.4, 1.0001, 20), (0.4, 1.0904, 20), (0.9, 1.0904, 40)];
    let client = |wants| vec![Band { priority: 0, subclients: 1, wants }];
    let holders =
        clients.iter().flat_map(|&(leaf, wants, count)| vec![(leaf, client(wants)); count]).collect();
    let forest = Forest { parents: vec![0.0, 0.0], holders, capacity: 0.98, transport: Transport::Stream };
    let (tree, flat) = (forest.in_the_tree(), forest.on_one_server());
    let misplaced: f64 = tree.iter().zip(&flat).map(|(tree, flat)| (flat - tree).max(0.0)).sum();
    let part = misplaced / (forest.wants() * forest.capacity);
    assert!((0.005..=BUCKET / 4.0).contains(&part), "{part}");
}

/// 300, or as many as `CASES` says.
fn cases() -> u32 {
    std::env::var("CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(300)
}
