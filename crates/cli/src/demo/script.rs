//! The script of the demonstration: four acts, each told in a sentence.

use std::f64::consts::TAU;
use std::time::Duration;

/// When everything happens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script {
    length: Duration,
}

/// A stretch of the demonstration.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Act {
    /// One leaf is busy, the other is not.
    Begin,
    /// The other one becomes hungry.
    Hunger,
    /// The root ends, and another begins that knows nothing.
    Restart,
    /// The first one has had enough.
    Turn,
}

/// The wants of a client over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Appetite {
    script: Script,
    leaf: usize,
    /// Requests a second that are its equal share.
    fair: f64,
    /// Where it is among the clients of its leaf, from 0 to 1.
    place: f64,
}

/// The time from the beginning until the greedy tenant has burst, and has rested.
const BURST_AND_REST: Duration = Duration::from_secs(9);
/// The length of the root's leases.
pub(super) const LEASE: Duration = Duration::from_secs(5);
/// The time for which the root is away.
pub(super) const ABSENCE: Duration = Duration::from_secs(1);
/// The time for which the root learns, which is a little more than a lease, and the time for which one cares to
/// look at it afterwards.
const RECOVERY: Duration = Duration::from_millis(6_500);
/// When the acts begin, in hundredths of the whole.
const ACTS: [(u32, Act); 4] = [(0, Act::Begin), (20, Act::Hunger), (42, Act::Restart), (68, Act::Turn)];
/// The names of the leaves.
pub(super) const LEAVES: [&str; 2] = ["west", "east"];
/// The wants of the clients of each leaf on the average, in each act, as multiples of what would be their equal
/// share.
const HUNGER: [[f64; 2]; 4] = [[2.2, 0.5], [1.9, 1.9], [1.9, 1.9], [0.5, 2.2]];
/// A client's appetite swings by so much of itself, in so many seconds.
const SWING: f64 = 0.15;
const PERIOD: f64 = 7.0;

// === impl Script ===

impl Script {
    pub(super) fn new(length: Duration) -> Script {
        Script { length }
    }

    pub(super) fn length(&self) -> Duration {
        self.length
    }

    /// Which act it is `since` the beginning.
    pub(super) fn act(&self, since: Duration) -> Act {
        let begun = ACTS.iter().rev().find(|(hundredths, _)| self.at(*hundredths) <= since);
        begun.map_or(Act::Begin, |&(_, act)| act)
    }

    /// From when the root is away, if there is time for that.
    pub(super) fn restart(&self) -> Option<Duration> {
        let (from, to) = (self.at(ACTS[2].0), self.at(ACTS[3].0));
        (to - from >= ABSENCE + RECOVERY).then_some(from)
    }

    /// The parts of the demonstration for which there is no time, and how much each would take.
    pub(super) fn left_out(&self) -> Vec<String> {
        let least = (ABSENCE + RECOVERY) * 100 / (ACTS[3].0 - ACTS[2].0);
        let least = least.as_secs_f64().ceil();
        let restart = self.restart().is_none().then(|| format!("the end of the root, which takes {least} s"));
        let greedy = BURST_AND_REST;
        let greedy = (self.length < greedy)
            .then(|| format!("how the greedy tenant bursts and rests, which takes {} s", greedy.as_secs()));
        restart.into_iter().chain(greedy).collect()
    }

    /// The line that says what is to be seen.
    pub(super) fn says(&self, since: Duration) -> &'static str {
        match self.act(since) {
            Act::Begin => "west is busy and east is not",
            Act::Hunger => "east grows hungry: capacity moves over, and nobody has what another still uses",
            Act::Restart => match self.restart() {
                Some(from) if since < from + ABSENCE => {
                    "the root has ended: everybody goes on with the lease it has"
                }
                Some(_) => "another root has begun: before it moves anything it lets all show what they hold",
                None => "both are hungry, and everybody gets the same",
            },
            Act::Turn => "west has had enough: what it gives back moves to east",
        }
    }

    fn at(&self, hundredths: u32) -> Duration {
        self.length * hundredths / 100
    }
}

// === impl Appetite ===

impl Appetite {
    /// That of client `number` of `clients` of a leaf, where `fair` requests a second are everybody's equal share.
    pub(super) fn new(script: Script, leaf: usize, fair: f64, number: usize, clients: usize) -> Appetite {
        let place = (number as f64 + 0.5) / clients.max(1) as f64;
        Appetite { script, leaf, fair, place }
    }

    /// Requests a second, `since` the beginning.
    pub(super) fn at(&self, since: Duration) -> f64 {
        let hunger = HUNGER[self.script.act(since) as usize][self.leaf];
        let wave = SWING * (TAU * (since.as_secs_f64() / PERIOD + self.place)).sin();
        self.fair * hunger * (0.4 + 1.2 * self.place) * (1.0 + wave)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(script: Script, leaf: usize, seconds: u64) -> f64 {
        let at = Duration::from_secs(seconds);
        (0..6).map(|number| Appetite::new(script, leaf, 40.0, number, 6).at(at)).sum()
    }

    #[test]
    fn there_is_never_enough_for_all_and_who_is_hungry_changes() {
        let script = Script::new(Duration::from_secs(30));
        for second in 0..30 {
            let (west, east) = (wanted(script, 0, second), wanted(script, 1, second));
            assert!(west + east > 480.0, "second {second}: {west} and {east}");
        }
        assert!(wanted(script, 0, 3) > 2.0 * wanted(script, 1, 3));
        assert!(wanted(script, 1, 29) > 2.0 * wanted(script, 0, 29));
    }

    #[test]
    fn acts_follow_one_another() {
        let script = Script::new(Duration::from_secs(100));
        let acts = [0, 19, 20, 41, 42, 67, 68, 100].map(|at| script.act(Duration::from_secs(at)));
        let (begin, hunger, restart, turn) = (Act::Begin, Act::Hunger, Act::Restart, Act::Turn);
        assert_eq!(acts, [begin, begin, hunger, hunger, restart, restart, turn, turn]);
    }

    #[test]
    fn what_there_is_no_time_for_is_said() {
        let left_out = |seconds| Script::new(Duration::from_secs(seconds)).left_out().join(", ");
        let [root, greedy] = ["the end of the root", "how the greedy tenant bursts and rests"];
        assert_eq!(left_out(8), format!("{root}, which takes 29 s, {greedy}, which takes 9 s"));
        assert_eq!(left_out(9), format!("{root}, which takes 29 s"));
        assert_eq!(left_out(29), "");
    }

    #[test]
    fn the_root_ends_only_where_there_is_time_to_recover() {
        assert_eq!(Script::new(Duration::from_secs(5)).restart(), None);
        let script = Script::new(Duration::from_secs(30));
        let from = script.restart().unwrap();
        assert_eq!(from, Duration::from_millis(12_600));
        assert!(script.says(from).contains("has ended"));
        assert_eq!(script.left_out(), Vec::<String>::new());
        assert!(script.says(from + ABSENCE).contains("another root"));
    }
}
