//! The faults of a simulation: their kinds, how often each is to happen, and how often it did.

use std::fmt;
use std::time::Duration;

use crate::rng::Rng;

/// The faults of a simulation, and the time at which they stop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlan {
    /// When it stops.
    pub until: Duration,
    /// Requests and answers lost, in thousandths.
    pub loss: u32,
    /// Requests and answers that arrive twice, in thousandths.
    pub twice: u32,
    /// Messages that take long, in thousandths.
    pub slow: u32,
    /// The time by which they take longer, on average.
    pub slow_mean: Duration,
    /// Calls of etcd and answers lost, in thousandths.
    pub etcd_loss: u32,
    /// Calls of etcd and answers that take long, in thousandths; then as much longer as other messages.
    pub etcd_slow: u32,
    /// The length of pauses, partitions and absences, on average.
    pub spell: Duration,
    /// The time for which a client goes on wanting the same, on average; nothing: for ever.
    pub restless: Option<Duration>,
    /// The time from one fault of each kind to the next, on average; nothing: it does not happen.
    pub gaps: [Option<Duration>; Fault::ALL.len()],
}

/// Something that goes wrong at one moment.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Fault {
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
    /// A task dies that leads, with all it knew.
    LoseLeader,
    /// One dies that leads a site, and with it the one that leads the site above.
    LoseBoth,
    /// All tasks of a site die.
    LoseSite,
    /// A leader gives up in order, and its process begins anew.
    Resign,
    /// Somebody deletes the key of a leader, which is not told.
    Depose,
    /// A task is cut off from etcd, and from nobody else.
    CutEtcd,
    /// A task sees nothing more on its watch, and is not told.
    DeafWatch,
    /// Etcd is frozen.
    FreezeEtcd,
    /// Etcd cannot be reached.
    LoseEtcd,
    /// Etcd begins anew, with everything that was written.
    RestartEtcd,
    /// Etcd forgets what has been.
    CompactEtcd,
    /// A client is cut off, in one direction or both.
    CutClient,
    /// A site is cut off from the one above.
    CutSite,
    /// A site is cut off from all below.
    CutDoor,
    /// A clock runs at another rate.
    Drift,
    /// The capacity is changed.
    Capacity,
    /// The length of leases is changed.
    Lease,
    /// A template is removed, and put back later.
    Template,
    /// Another policy is configured.
    Policy,
    /// A server with a state directory and its machine lose power.
    LosePower,
    /// The disk of a state directory is full for a while.
    FillDisk,
    /// A byte of a state file is changed.
    DamageFile,
    /// The servers of a site are given another way to remember.
    Move,
    /// A machine stands still, and its clock with it.
    Pause,
    /// A rate becomes a gauge, or a gauge a rate.
    Kind,
    /// Another limit is configured for a domain.
    Domain,
    /// A right is taken away, given, or limited.
    Rights,
    /// A template has other caps.
    Caps,
    /// An operator takes back what somebody has.
    Recall,
    /// The etcd of the templates is put back to an older copy.
    Restore,
    /// An operator looks at the tree below a leader.
    Look,
    /// An operator freezes, drains or caps something for a while.
    Override,
    /// A second limit is tried no more, and again later.
    Beside,
}

/// The number of times that each fault happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tally {
    /// Requests and answers lost.
    pub lost: u64,
    /// Those that arrived twice.
    pub twice: u64,
    /// Messages that took long.
    pub slow: u64,
    /// Messages that broken streams and dead processes took with them.
    pub cut: u64,
    /// Calls of etcd lost.
    pub etcd_lost: u64,
    /// Answers of etcd lost, of writes that were made.
    pub etcd_unanswered: u64,
    /// Calls that etcd carried out when those who had made them had given them up.
    pub etcd_late: u64,
    /// Messages that waited for a leader whose authority had lapsed.
    pub lapsed: u64,
    /// Epochs that have begun while another leader of the site had authority.
    pub beside: u64,
    /// Each kind of fault.
    pub gaps: [u64; Fault::ALL.len()],
}

// === impl Fault ===

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 43] = [
        Fault::Break,
        Fault::Silence,
        Fault::Stall,
        Fault::Crash,
        Fault::Vanish,
        Fault::Twin,
        Fault::Leave,
        Fault::Drop,
        Fault::Freeze,
        Fault::FreezeLeader,
        Fault::LoseLeader,
        Fault::LoseBoth,
        Fault::LoseSite,
        Fault::Resign,
        Fault::Depose,
        Fault::CutEtcd,
        Fault::DeafWatch,
        Fault::FreezeEtcd,
        Fault::LoseEtcd,
        Fault::RestartEtcd,
        Fault::CompactEtcd,
        Fault::CutClient,
        Fault::CutSite,
        Fault::CutDoor,
        Fault::Drift,
        Fault::Capacity,
        Fault::Lease,
        Fault::Template,
        Fault::Policy,
        Fault::LosePower,
        Fault::FillDisk,
        Fault::DamageFile,
        Fault::Move,
        Fault::Pause,
        Fault::Kind,
        Fault::Domain,
        Fault::Rights,
        Fault::Caps,
        Fault::Recall,
        Fault::Restore,
        Fault::Look,
        Fault::Override,
        Fault::Beside,
    ];
    /// The first of them that only some simulations can have: it is drawn with what it needs.
    const FIRST_SPECIAL: usize = Fault::LosePower as usize;

    /// The name of it in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::Break => "stream broken",
            Fault::Silence => "stream dead in silence",
            Fault::Stall => "reader stalled",
            Fault::Crash => "client crashed",
            Fault::Vanish => "client vanished",
            Fault::Twin => "twin begun",
            Fault::Leave => "client left",
            Fault::Drop => "resource dropped",
            Fault::Freeze => "client frozen",
            Fault::FreezeLeader => "leader frozen",
            Fault::LoseLeader => "leader lost",
            Fault::LoseBoth => "leader and its parent lost",
            Fault::LoseSite => "all tasks of a site lost",
            Fault::Resign => "leader resigned",
            Fault::Depose => "leader deposed by hand",
            Fault::CutEtcd => "task cut off from etcd",
            Fault::DeafWatch => "watch dead in silence",
            Fault::FreezeEtcd => "etcd frozen",
            Fault::LoseEtcd => "etcd not to be reached",
            Fault::RestartEtcd => "etcd begun anew",
            Fault::CompactEtcd => "etcd compacted",
            Fault::CutClient => "client cut off",
            Fault::CutSite => "site cut off from above",
            Fault::CutDoor => "site cut off from below",
            Fault::Drift => "clock rate changed",
            Fault::Capacity => "capacity changed",
            Fault::Lease => "lease length changed",
            Fault::Template => "template removed",
            Fault::Policy => "policy changed",
            Fault::LosePower => "machine with a state directory lost",
            Fault::FillDisk => "disk full",
            Fault::DamageFile => "state file damaged",
            Fault::Move => "way to remember changed",
            Fault::Pause => "machine stood still with its clock",
            Fault::Kind => "kind changed",
            Fault::Domain => "limit of a domain changed",
            Fault::Rights => "right changed",
            Fault::Caps => "cap of a template changed",
            Fault::Recall => "lease recalled by an operator",
            Fault::Restore => "templates put back to an older copy",
            Fault::Look => "tree looked at",
            Fault::Override => "override by an operator",
            Fault::Beside => "second limit taken out",
        }
    }
}

// === impl FaultPlan ===

impl FaultPlan {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> FaultPlan {
        FaultPlan {
            until: Duration::ZERO,
            loss: 0,
            twice: 0,
            slow: 0,
            slow_mean: Duration::ZERO,
            etcd_loss: 0,
            etcd_slow: 0,
            spell: Duration::ZERO,
            restless: None,
            gaps: [None; Fault::ALL.len()],
        }
    }

    /// Some of everything until `until`, each kind switched on or off by the rng and as often as they say.
    #[must_use]
    pub fn draw(rng: &mut Rng, until: Duration) -> FaultPlan {
        let mut some = |most: u64| if rng.chance(600) { rng.between(1, most) as u32 } else { 0 };
        let (loss, twice, slow) = (some(300), some(150), some(200));
        let (etcd_loss, etcd_slow) = ([0, 20, 150][rng.index(3)], [0, 50, 200][rng.index(3)]);
        let mut gaps = [None; Fault::ALL.len()];
        for kind in &mut gaps[..Fault::FIRST_SPECIAL] {
            if rng.chance(400) {
                // From about one a minute to about one every two seconds.
                *kind = Some(Duration::from_millis(rng.between(2_000, 60_000)));
            }
        }
        FaultPlan {
            until,
            loss,
            twice,
            slow,
            slow_mean: Duration::from_millis(rng.between(100, 2_500)),
            etcd_loss,
            etcd_slow,
            spell: Duration::from_millis(rng.between(300, 8_000)),
            restless: Some(Duration::from_millis(rng.between(1_000, 20_000))),
            gaps,
        }
    }

    /// The time from one fault of `kind` to the next, on average, if it happens.
    #[must_use]
    pub fn every(&self, kind: Fault) -> Option<Duration> {
        self.gaps[kind as usize]
    }
}

// === impl Tally ===

impl Tally {
    /// One more of `kind`.
    pub(crate) fn count(&mut self, kind: Fault) {
        self.gaps[kind as usize] += 1;
    }

    /// The two together.
    #[must_use]
    pub fn plus(mut self, other: &Tally) -> Tally {
        self.lost += other.lost;
        self.twice += other.twice;
        self.slow += other.slow;
        self.cut += other.cut;
        self.etcd_lost += other.etcd_lost;
        self.etcd_unanswered += other.etcd_unanswered;
        self.etcd_late += other.etcd_late;
        self.lapsed += other.lapsed;
        self.beside += other.beside;
        for (mine, others) in self.gaps.iter_mut().zip(other.gaps) {
            *mine += others;
        }
        self
    }

    /// The name of each kind, and the number of times that it happened.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let messages = [
            ("message lost", self.lost),
            ("message doubled", self.twice),
            ("message slow", self.slow),
            ("message cut off with its stream or receiver", self.cut),
            ("call of etcd lost", self.etcd_lost),
            ("write made and the answer lost", self.etcd_unanswered),
            ("call of etcd late", self.etcd_late),
            ("message waited for a leader that had lapsed", self.lapsed),
            ("epoch begun beside another", self.beside),
        ];
        messages.into_iter().chain(Fault::ALL.iter().map(|kind| kind.name()).zip(self.gaps))
    }
}

impl Default for Tally {
    /// Nothing has gone wrong.
    fn default() -> Tally {
        Tally {
            lost: 0,
            twice: 0,
            slow: 0,
            cut: 0,
            etcd_lost: 0,
            etcd_unanswered: 0,
            etcd_late: 0,
            lapsed: 0,
            beside: 0,
            gaps: [0; Fault::ALL.len()],
        }
    }
}

/// One kind a line.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.counts().try_for_each(|(name, count)| writeln!(f, "{count:>12}  {name}"))
    }
}
