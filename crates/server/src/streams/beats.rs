//! Heartbeats of one stream: which of them is to be answered, when, and how far that has come.
//!
//! A heartbeat is a message of a few bytes that renews every resource of its stream, so what it costs is not what it weighs. Of
//! those that wait only the latest counts: it says all that those before it said. And after each one the next begins no sooner
//! than by what that one cost, so that nobody has more than a small part of a processor, however fast he sends. A client beats
//! a few times in a lease, and never waits for it.
//!
//! The interval of heartbeats follows from all templates of a node, and what is granted on one stream may last for much longer:
//! so a heartbeat is only answered where the next one comes early enough to renew everything, and costs the same however much is
//! held.

use std::time::Duration;

use lessor_proto::{ReportId, ResourceId, Time};
use smallvec::SmallVec;

/// One heartbeat: its number, and when it came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Beat {
    pub(crate) id: ReportId,
    pub(crate) at: Time,
}

/// The heartbeats of one stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beats {
    /// The latest that nobody has begun to answer. It stands for all before it.
    latest: Option<Beat>,
    /// When what was begun so far is paid off.
    paid_at: Time,
    /// The one that is being answered; absent also for those that are answered in one step.
    pub(crate) run: Option<Box<BeatRun>>,
    /// When everything on the stream is to be renewed; at once before that was done.
    renew_by: Time,
    /// The round in which that was done.
    round: u32,
}

/// A heartbeat that is being answered, a slice of its resources at a time.
#[derive(Clone, Debug)]
pub(crate) struct BeatRun {
    pub(crate) beat: Beat,
    /// The stream took nothing when it began: the holder is heard, and answered when it does.
    pub(crate) is_busy: bool,
    /// The last resource of the last slice.
    pub(crate) after: Option<ResourceId>,
    /// Whether one message says it for all resources.
    pub(crate) all: bool,
    /// Resources that were granted anew, in order.
    pub(crate) granted: SmallVec<[ResourceId; 1]>,
    /// All have been heard, and those that were not granted anew are granted now.
    pub(crate) grants_rest: bool,
    /// When the first of those that it has come to is to be renewed again.
    pub(crate) renew_by: Time,
    /// The round in which it began.
    round: u32,
}

/// The time for which another heartbeat waits, for each resource: some ten times as long as it takes.
const EACH: Duration = Duration::from_micros(20);
/// The resources that a heartbeat costs as much as by itself.
const BY_ITSELF: u32 = 50;
/// The time by which heartbeats may be ahead of what they cost.
const BURST: Duration = Duration::from_millis(50);

// === impl Beats ===

impl Beats {
    /// The next one may begin then.
    pub(crate) fn begins_at(&self) -> Time {
        if self.run.is_some() { Time::MAX } else { self.paid_at.checked_earlier(BURST).unwrap_or(Time::ZERO) }
    }

    /// One begins at `now` that renews so many resources.
    pub(crate) fn begin(&mut self, now: Time, resources: usize) {
        let resources = u32::try_from(resources).unwrap_or(u32::MAX);
        self.paid_at = self.paid_at.max(now) + EACH * resources.saturating_add(BY_ITSELF);
    }

    /// `beat` waits, unless a later one does.
    pub(crate) fn wait(&mut self, beat: Beat) {
        if self.latest.is_none_or(|latest| latest.at <= beat.at) {
            self.latest = Some(beat);
        }
    }

    /// The latest that waits, which does so no more.
    pub(crate) fn take(&mut self) -> Option<Beat> {
        self.latest.take()
    }

    /// Whether it is enough in `round` to renew everything with the one after `beat`, which comes after `interval`. Nothing of what
    /// was renewed in an earlier round is as it was.
    pub(crate) fn may_rest(&self, beat: Beat, interval: Duration, round: u32) -> bool {
        self.round == round && beat.at + interval < self.renew_by
    }

    /// `run` has renewed everything.
    pub(crate) fn renewed(&mut self, run: &BeatRun) {
        (self.renew_by, self.round) = (run.renew_by, run.round);
    }

    /// Something was granted that is to be renewed by then.
    pub(crate) fn renew_no_later(&mut self, than: Time) {
        self.renew_by = self.renew_by.min(than);
        if let Some(run) = &mut self.run {
            run.renew_by = run.renew_by.min(than);
        }
    }

    /// Whether another one waits than `beat`.
    pub(crate) fn is_another_waiting(&self, beat: Beat) -> bool {
        self.latest.is_some_and(|latest| latest != beat)
    }
}

// === impl BeatRun ===

impl BeatRun {
    pub(crate) fn new(beat: Beat, is_busy: bool, round: u32) -> BeatRun {
        BeatRun {
            beat,
            is_busy,
            after: None,
            all: true,
            granted: SmallVec::new(),
            grants_rest: false,
            renew_by: Time::MAX,
            round,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    fn beat(id: u64, micros: u64) -> Beat {
        Beat { id: ReportId(id), at: at(micros) }
    }

    #[test]
    fn a_client_of_few_resources_never_waits() {
        let mut beats = Beats::default();
        for turn in 0..1_000 {
            let now = at(turn * 10_000);
            assert!(beats.begins_at() <= now, "one beat each 10 ms is more than any client does");
            beats.begin(now, 100);
        }
    }

    #[test]
    fn many_in_a_row_wait_for_as_long_as_they_cost() {
        let mut beats = Beats::default();
        let (mut now, mut begun) = (Time::ZERO, 0);
        while now < Time::ZERO + Duration::from_secs(10) {
            if beats.begins_at() <= now {
                beats.begin(now, 20_000);
                begun += 1;
            }
            now += Duration::from_millis(1);
        }
        // One in 0.4 s, and what is free at first; as many as came took 11 ms each before.
        assert_eq!(begun, 26);
    }

    #[test]
    fn what_is_granted_while_all_is_renewed_counts_as_well() {
        let (mut beats, second) = (Beats::default(), Duration::from_secs(1));
        let renewed = |beats: &mut Beats, renew_by, round| {
            beats.renewed(&BeatRun { renew_by, ..BeatRun::new(beat(1, 0), false, round) });
        };
        assert!(!beats.may_rest(beat(1, 0), second, 0), "nothing was renewed");
        renewed(&mut beats, at(3_000_001), 0);
        assert!(beats.may_rest(beat(2, 2_000_000), second, 0));
        assert!(!beats.may_rest(beat(2, 2_000_001), second, 0), "the next would be too late");
        assert!(!beats.may_rest(beat(2, 2_000_000), second, 1), "other templates are in force");
        beats.run = Some(Box::new(BeatRun::new(beat(3, 2_500_000), false, 1)));
        beats.renew_no_later(at(5_000_000));
        let run = beats.run.take().expect("it runs");
        assert_eq!(run.renew_by, at(5_000_000));
        assert!(!beats.may_rest(beat(4, 2_500_000), second, 1), "it is not over");
        beats.renewed(&run);
        assert!(beats.may_rest(beat(4, 3_500_000), second, 1));
    }

    #[test]
    fn the_latest_stands_for_all() {
        let mut beats = Beats::default();
        beats.wait(beat(1, 10));
        beats.wait(beat(3, 30));
        beats.wait(beat(2, 20));
        assert_eq!((beats.take(), beats.take()), (Some(beat(3, 30)), None));
    }
}
