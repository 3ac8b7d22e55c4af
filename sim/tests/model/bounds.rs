//! The bounds of a run of the model: what it may do, and how often. Every bound is a number here.

use std::time::Duration;

use lessor_client::Transport;
#[cfg(feature = "mutations")]
use lessor_sim::mutation::Mutation;

/// The drift that clocks may have: one that runs slow by the whole of it makes 3 steps while a fast one makes
/// 5.
pub(crate) const DRIFT_PPM: u32 = 250_000;
/// The length of a lease by the clock of its holder. Its grantor counts 40 s.
pub(crate) const LEASE: Duration = Duration::from_secs(24);
/// The longest that a lease can last in real time: on a slow clock.
pub(crate) const LEASE_NANOS: u64 = 32_000_000_000;
/// The interval at which a lease is renewed.
pub(crate) const REFRESH: Duration = Duration::from_secs(8);
/// The step of real time: a refresh, and a little more, so that what ends with a step has ended for everybody who rounds
/// up a little (a grantor looks after its holders 15 times a second).
pub(crate) const TICK: u64 = 8_025_000_000;
/// In units.
pub(crate) const CAPACITY: u64 = 2;

/// The rate of a clock, in quarters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate(pub(crate) u64);

pub(crate) const SLOW: Rate = Rate(3);
pub(crate) const EVEN: Rate = Rate(4);
pub(crate) const FAST: Rate = Rate(5);

/// The clocks of one run: of the clients, and of everything that grants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) clients: [Rate; 2],
    pub(crate) nodes: Rate,
}

/// Everybody agrees.
pub(crate) const TRUE_CLOCKS: Clocks = Clocks { clients: [EVEN, EVEN], nodes: EVEN };
/// Leases last as long as they can, and charges as short as they can.
pub(crate) const WORST_CLOCKS: Clocks = Clocks { clients: [SLOW, EVEN], nodes: FAST };

/// Where the clients are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Both at the root.
    Flat,
    /// One below a node, the other at the root.
    Tree,
}

/// The number of times that each thing may happen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Budget {
    /// Steps of time.
    pub(crate) ticks: u8,
    /// Messages that each holder gets out, the first client, the second, and all others; what they send after that is lost.
    pub(crate) words: [u8; 3],
    /// Changes of wants.
    pub(crate) changes: u8,
    /// Clients that leave, and those that come back.
    pub(crate) moves: u8,
    /// Messages that arrive once more.
    pub(crate) repeats: u8,
    /// Streams that break.
    pub(crate) breaks: u8,
    /// Clients that are started once more under the same id, while the old process lives on.
    pub(crate) twins: u8,
    /// Clients that die.
    pub(crate) deaths: u8,
    /// Cuts of the capacity to half.
    pub(crate) cuts: u8,
    /// Leaders of the root that die and are succeeded at once.
    pub(crate) successions: u8,
    /// The same of the node below.
    pub(crate) successions_below: u8,
}

/// Nothing but time and two messages of each.
pub(crate) const QUIET: Budget = Budget {
    ticks: 5,
    words: [2, 2, 2],
    changes: 0,
    moves: 0,
    repeats: 0,
    breaks: 0,
    twins: 0,
    deaths: 0,
    cuts: 0,
    successions: 0,
    successions_below: 0,
};

/// One configuration of the model.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    pub(crate) name: &'static str,
    pub(crate) transport: Transport,
    pub(crate) shape: Shape,
    pub(crate) budget: Budget,
    /// One beginning each.
    pub(crate) clocks: Vec<Clocks>,
    /// The amounts that the two clients want at first, in units.
    pub(crate) wants: [u64; 2],
    /// A stream takes the next message only when the last one has arrived; else at once.
    pub(crate) slow_reader: bool,
    /// Only the first client changes its wants.
    pub(crate) steady: bool,
    /// A release is lost when its client says anything else before it has arrived.
    pub(crate) prompt_releases: bool,
    /// Only the promise itself is watched, not the rules behind it.
    pub(crate) only_promise: bool,
    #[cfg(feature = "mutations")]
    pub(crate) mutation: Option<Mutation>,
}

// === impl Bounds ===

impl Bounds {
    pub(crate) fn new(name: &'static str, transport: Transport, budget: Budget) -> Bounds {
        Bounds {
            name,
            transport,
            shape: Shape::Flat,
            budget,
            clocks: vec![TRUE_CLOCKS],
            wants: [2, 2],
            slow_reader: false,
            steady: false,
            prompt_releases: false,
            only_promise: false,
            #[cfg(feature = "mutations")]
            mutation: None,
        }
    }
}
