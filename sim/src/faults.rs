//! What goes wrong in a town, how often, and how often it did.

use std::fmt;
use std::time::Duration;

use crate::dice::Dice;

/// What goes wrong, until when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Faults {
    /// When it stops.
    pub until: Duration,
    /// Requests and answers lost, in thousandths.
    pub loss: u32,
    /// Requests and answers that arrive twice, in thousandths.
    pub twice: u32,
    /// Messages that take long, in thousandths.
    pub slow: u32,
    /// How much longer they take on average.
    pub slow_mean: Duration,
    /// How long something goes on, on average: pauses, partitions, absences.
    pub spell: Duration,
    /// How long a client goes on wanting the same, on average; nothing: for ever.
    pub restless: Option<Duration>,
    /// How long from one mischief of each kind to the next, on average; nothing: it does not happen.
    pub mischief: [Option<Duration>; Mischief::ALL.len()],
}

/// Something that goes wrong at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mischief {
    /// A stream breaks, and both ends hear of it.
    Break,
    /// A stream breaks, and one end or none hears of it.
    Silence,
    /// A slow reader takes nothing from its stream.
    Stall,
    /// A client dies; its host says so.
    Crash,
    /// A client dies with its host.
    Vanish,
    /// Another process begins under the id of a client that lives.
    Twin,
    /// A client says good-bye and comes back later.
    Leave,
    /// A client drops a resource and asks for it again later.
    Drop,
    /// A client is frozen, and goes on later as if nothing had been.
    Freeze,
    /// A leader is frozen.
    FreezeLeader,
    /// A leader dies with all it knew.
    LoseLeader,
    /// A leader and the one above die together.
    LoseBoth,
    /// A client is cut off, in one direction or both.
    CutClient,
    /// A place is cut off from the one above.
    CutPlace,
    /// A place is cut off from all below.
    CutDoor,
    /// A clock runs at another rate.
    Drift,
    /// The capacity is changed.
    Capacity,
    /// The length of leases is changed.
    Lease,
    /// A template is removed, and put back later.
    Template,
}

/// How often it did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Requests and answers lost.
    pub lost: u64,
    /// Those that arrived twice.
    pub twice: u64,
    /// Messages that took long.
    pub slow: u64,
    /// Messages that broken streams and dead processes took with them.
    pub cut: u64,
    /// Each kind of mischief.
    pub mischief: [u64; Mischief::ALL.len()],
}

// === impl Mischief ===

impl Mischief {
    /// All of them.
    pub const ALL: [Mischief; 19] = [
        Mischief::Break,
        Mischief::Silence,
        Mischief::Stall,
        Mischief::Crash,
        Mischief::Vanish,
        Mischief::Twin,
        Mischief::Leave,
        Mischief::Drop,
        Mischief::Freeze,
        Mischief::FreezeLeader,
        Mischief::LoseLeader,
        Mischief::LoseBoth,
        Mischief::CutClient,
        Mischief::CutPlace,
        Mischief::CutDoor,
        Mischief::Drift,
        Mischief::Capacity,
        Mischief::Lease,
        Mischief::Template,
    ];

    /// How it is called in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Mischief::Break => "stream broken",
            Mischief::Silence => "stream dead in silence",
            Mischief::Stall => "reader stalled",
            Mischief::Crash => "client crashed",
            Mischief::Vanish => "client vanished",
            Mischief::Twin => "twin begun",
            Mischief::Leave => "client left",
            Mischief::Drop => "resource dropped",
            Mischief::Freeze => "client frozen",
            Mischief::FreezeLeader => "leader frozen",
            Mischief::LoseLeader => "leader lost",
            Mischief::LoseBoth => "leader and its parent lost",
            Mischief::CutClient => "client cut off",
            Mischief::CutPlace => "place cut off from above",
            Mischief::CutDoor => "place cut off from below",
            Mischief::Drift => "clock rate changed",
            Mischief::Capacity => "capacity changed",
            Mischief::Lease => "lease length changed",
            Mischief::Template => "template removed",
        }
    }
}

// === impl Faults ===

impl Faults {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> Faults {
        Faults {
            until: Duration::ZERO,
            loss: 0,
            twice: 0,
            slow: 0,
            slow_mean: Duration::ZERO,
            spell: Duration::ZERO,
            restless: None,
            mischief: [None; Mischief::ALL.len()],
        }
    }

    /// Some of everything until `until`, each kind switched on or off by the dice and as often as they say.
    #[must_use]
    pub fn draw(dice: &mut Dice, until: Duration) -> Faults {
        let mut some = |most: u64| if dice.chance(600) { dice.between(1, most) as u32 } else { 0 };
        let (loss, twice, slow) = (some(300), some(150), some(200));
        let mut mischief = [None; Mischief::ALL.len()];
        for kind in &mut mischief {
            if dice.chance(400) {
                // From about one a minute to about one every two seconds.
                *kind = Some(Duration::from_millis(dice.between(2_000, 60_000)));
            }
        }
        Faults {
            until,
            loss,
            twice,
            slow,
            slow_mean: Duration::from_millis(dice.between(100, 2_500)),
            spell: Duration::from_millis(dice.between(300, 8_000)),
            restless: Some(Duration::from_millis(dice.between(1_000, 20_000))),
            mischief,
        }
    }

    /// How often `kind` happens.
    #[must_use]
    pub fn every(&self, kind: Mischief) -> Option<Duration> {
        self.mischief[kind as usize]
    }
}

// === impl Tally ===

impl Tally {
    /// One more of `kind`.
    pub(crate) fn count(&mut self, kind: Mischief) {
        self.mischief[kind as usize] += 1;
    }

    /// The two together.
    #[must_use]
    pub fn plus(mut self, other: &Tally) -> Tally {
        self.lost += other.lost;
        self.twice += other.twice;
        self.slow += other.slow;
        self.cut += other.cut;
        for (mine, others) in self.mischief.iter_mut().zip(other.mischief) {
            *mine += others;
        }
        self
    }

    /// How often each kind happened, with what it is called.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let messages = [
            ("message lost", self.lost),
            ("message doubled", self.twice),
            ("message slow", self.slow),
            ("message cut off with its stream or receiver", self.cut),
        ];
        messages.into_iter().chain(Mischief::ALL.iter().map(|kind| kind.name()).zip(self.mischief))
    }
}

/// One kind a line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().try_for_each(|(name, count)| writeln!(f, "{count:>12}  {name}"))
    }
}
