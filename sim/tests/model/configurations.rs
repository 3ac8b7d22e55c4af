//! The configurations that are explored: each has a small size, which is exhausted in seconds, and a large one.

use lessor_client::{Transport::Poll, Transport::Stream};

use super::bounds::{Bounds, Budget, Clocks, QUIET, Shape, TRUE_CLOCKS, WORST_CLOCKS};

/// The extent of an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Size {
    /// Exhausted in seconds, also without optimisation.
    Small,
    /// Exhausted in minutes.
    Large,
}

/// A configuration, and what must be reached in it.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) bounds: Bounds,
    pub(crate) reached: &'static [&'static str],
}

// === impl Configuration ===

impl Configuration {
    fn new(clocks: Vec<Clocks>, mut bounds: Bounds, reached: &'static [&'static str]) -> Configuration {
        bounds.clocks = clocks;
        Configuration { bounds, reached }
    }
}

// === impl Size ===

impl Size {
    fn of<T>(self, small: T, large: T) -> T {
        match self {
            Size::Small => small,
            Size::Large => large,
        }
    }

    fn clocks(self, small: Clocks) -> Vec<Clocks> {
        self.of(vec![small], vec![TRUE_CLOCKS, WORST_CLOCKS])
    }
}

/// The name of a fact that must be reached.
const FILLED: &str = "two clients fill the capacity together";
const ACKNOWLEDGED: &str = "a recall is acknowledged";
const INHERITED: &str = "a client has what a dead one had";
const DEBT: &str = "debt is entered";
const DEBT_LEFT: &str = "debt is left";
const CLAIMED: &str = "a claim is converted";
const RENEWED: &str = "a lease is renewed on a stream";
const BELOW: &str = "a client below a node holds something";

/// Requests and answers.
pub(crate) fn unary(size: Size) -> Vec<Configuration> {
    let budget = |words, ticks| Budget { words, ticks, ..QUIET };
    let (three, two) = (size.of([3, 1, 0], [3, 2, 0]), size.of([2, 1, 0], [2, 2, 0]));
    vec![
        Configuration::new(
            size.clocks(WORST_CLOCKS),
            Bounds { steady: true, ..Bounds::new("unary", Poll, Budget { changes: 1, ..budget(three, 4) }) },
            &[FILLED, ACKNOWLEDGED],
        ),
        Configuration::new(
            size.clocks(TRUE_CLOCKS),
            Bounds::new("unary, repeats", Poll, Budget { repeats: 1, ..budget([3, 2, 0], size.of(2, 3)) }),
            &[FILLED, ACKNOWLEDGED],
        ),
        Configuration::new(
            size.clocks(WORST_CLOCKS),
            Bounds::new("unary, a client dies", Poll, Budget { deaths: 1, ..budget([1, 3, 0], 5) }),
            &[INHERITED],
        ),
        Configuration::new(
            size.clocks(WORST_CLOCKS),
            Bounds::new(
                "unary, a twin",
                Poll,
                Budget { twins: 1, ..budget(size.of([1, 1, 1], [2, 1, 2]), 4) },
            ),
            &[],
        ),
        Configuration::new(
            size.clocks(WORST_CLOCKS),
            Bounds::new("unary, a cut", Poll, Budget { cuts: 1, ..budget(two, 5) }),
            &[DEBT, DEBT_LEFT],
        ),
        Configuration::new(
            size.clocks(TRUE_CLOCKS),
            Bounds {
                steady: true,
                wants: [1, 1],
                ..Bounds::new(
                    "unary, a cut and other wants",
                    Poll,
                    Budget { cuts: 1, changes: 1, ..budget(size.of([3, 2, 0], [4, 3, 0]), size.of(1, 3)) },
                )
            },
            &[DEBT, DEBT_LEFT],
        ),
        Configuration::new(
            size.clocks(WORST_CLOCKS),
            Bounds::new("unary, a succession", Poll, Budget { successions: 1, ..budget(three, 4) }),
            &[CLAIMED],
        ),
    ]
}

/// Streams.
pub(crate) fn streams(size: Size) -> Vec<Configuration> {
    let budget = |words, ticks| Budget { words, ticks, ..QUIET };
    let ticks = size.of(1, 2);
    let streams = |name, budget| Bounds::new(name, Stream, budget);
    let case = |bounds, reached: &'static [&'static str]| {
        Configuration::new(size.clocks(TRUE_CLOCKS), bounds, reached)
    };
    vec![
        case(streams("streams", budget([5, 5, 0], ticks)), &[FILLED, ACKNOWLEDGED, RENEWED]),
        case(
            Bounds {
                steady: true,
                ..streams("streams, other wants", Budget { changes: 1, ..budget([5, 3, 0], ticks) })
            },
            &[FILLED, ACKNOWLEDGED],
        ),
        case(
            Bounds { slow_reader: true, ..streams("streams, slow readers", budget([5, 5, 0], ticks)) },
            &[FILLED, ACKNOWLEDGED],
        ),
        case(
            streams(
                "streams, one breaks",
                Budget { breaks: 1, ..budget(size.of([5, 2, 0], [6, 3, 0]), ticks) },
            ),
            &[ACKNOWLEDGED, RENEWED],
        ),
        case(
            streams(
                "streams, one breaks and a twin",
                Budget { breaks: 1, twins: 1, ..budget(size.of([3, 0, 2], [4, 0, 4]), ticks) },
            ),
            &[ACKNOWLEDGED],
        ),
        case(
            streams("streams, a cut", Budget { cuts: 1, ..budget(size.of([4, 2, 0], [4, 4, 0]), ticks) }),
            &[DEBT, DEBT_LEFT],
        ),
        case(
            streams("streams, a succession", Budget { successions: 1, ..budget([5, 3, 0], ticks) }),
            &[CLAIMED],
        ),
    ]
}

/// A node between the root and one of the clients.
pub(crate) fn trees(size: Size) -> Vec<Configuration> {
    let tree =
        |name, transport, budget| Bounds { shape: Shape::Tree, ..Bounds::new(name, transport, budget) };
    let budget = |words, ticks| Budget { words, ticks, ..QUIET };
    vec![
        Configuration {
            bounds: Bounds {
                clocks: size.clocks(TRUE_CLOCKS),
                ..tree("a node between", Poll, budget([2, 1, 3], size.of(3, 4)))
            },
            reached: &[BELOW],
        },
        Configuration {
            bounds: tree("a node between, streams", Stream, budget(size.of([2, 2, 4], [3, 2, 4]), 1)),
            reached: &[BELOW],
        },
        Configuration {
            bounds: tree(
                "a node between, with a successor",
                Poll,
                Budget { successions_below: 1, ..budget([2, 1, 3], size.of(2, 3)) },
            ),
            reached: &[BELOW],
        },
    ]
}

/// Messages that come late from before a client left: an old release, and an old report.
pub(crate) fn late_release() -> Bounds {
    Bounds::new("a late release", Poll, Budget { moves: 2, words: [4, 2, 0], ticks: 2, ..QUIET })
}

/// The same without late releases.
pub(crate) fn late_report() -> Bounds {
    Bounds {
        steady: true,
        prompt_releases: true,
        wants: [0, 2],
        ..Bounds::new(
            "a late report",
            Poll,
            Budget { moves: 2, changes: 1, words: [4, 1, 0], ticks: 2, ..QUIET },
        )
    }
}
