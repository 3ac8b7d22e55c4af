//! The bucket in one word against the bucket under a lock.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use lessor_algorithms::bucket::{Bucket, NANO};
use lessor_proto::{Amount, Time};
use proptest::prelude::*;

use super::{MAX_BRIM, MeterTerms};
use crate::limiter::{Allowance, Denied, Limiter};
use crate::waiting::Waiting;
use crate::waiting::fake::{FakeClock, Tasks};

const MILLI: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;
const BURST: Duration = Duration::from_millis(10);
/// Grains in a unit.
const UNIT: u128 = 1_000_000 * 1_000_000_000;
/// From this rate on, in millionths a second, there are shards.
const SHARDS_FROM: u64 = 6_300 * 1_000_000;

fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn allowance(micros: u64, until: u64) -> Allowance {
    Allowance::new(Some(Amount::from_micros(micros)), at(until))
}

/// A limiter with so many millionths a second from zero on.
fn limiter(micros: u64) -> Limiter {
    let limiter = Limiter::new(BURST);
    limiter.allow(Time::ZERO, allowance(micros, u64::MAX));
    limiter
}

fn drain(limiter: &Limiter, now: u64) -> u64 {
    (0..).take_while(|_| limiter.try_acquire(1, || at(now)).is_ok()).count() as u64
}

#[test]
fn at_a_low_rate_grants_and_denials_take_no_lock() {
    let limiter = Limiter::new(Duration::from_millis(12));
    limiter.allow(Time::ZERO, allowance(500_000_000, u64::MAX));
    let held = limiter.lock();
    assert_eq!(drain(&limiter, 10 * MILLI), 5);
    assert_eq!(drain(&limiter, SECOND), 6);
    let spent = Denied::Spent { retry_after: Duration::from_millis(2) };
    assert_eq!(limiter.try_acquire(1, || at(SECOND)), Err(spent));
    assert_eq!(limiter.try_acquire(7, || at(SECOND)), Err(Denied::AboveBurst { n: 7, burst: 6 }));
    drop(held);
    assert_eq!((limiter.usage().granted, limiter.usage().attempted), (11, 11 + 1 + 1 + 1 + 7));
}

#[test]
fn the_meter_runs_until_somebody_waits_and_again_when_he_is_served() {
    let (limiter, clock) = (limiter(100_000_000), FakeClock::default());
    let mut tasks = Tasks::<Result<(), Denied>>::new(&clock);
    assert!(limiter.meter.stop().is_some());
    limiter.allow(Time::ZERO, allowance(100_000_000, u64::MAX));
    tasks.spawn(limiter.acquire_by(&clock, 1));
    assert_eq!(limiter.meter.stop(), None);
    tasks.pass(Duration::from_millis(10));
    assert_eq!(tasks.finished(), [(0, Ok(()))]);
    assert!(limiter.meter.stop().is_some());
}

#[test]
fn nothing_is_lost_however_long_it_runs() {
    let limiter = limiter(333_333_333);
    let granted: u64 = (0..=600_000).map(|step| drain(&limiter, step * 9 * MILLI)).sum();
    assert_eq!(granted, 333_333_333 * 5_400 / 1_000_000);
}

#[test]
fn a_full_bucket_is_full_after_years() {
    let limiter = limiter(100_000_000);
    for year in 1..5 {
        assert_eq!(limiter.try_acquire(1, || at(year * 365 * 86_400 * SECOND)), Ok(()));
        assert_eq!(drain(&limiter, year * 365 * 86_400 * SECOND), 0);
    }
}

#[test]
fn a_burst_of_a_minute_is_metered_as_well() {
    let limiter = Limiter::new(Duration::from_secs(60));
    limiter.allow(Time::ZERO, Allowance::forever(Amount::from_units(900)));
    assert!(limiter.try_acquire(54_001, || at(59 * SECOND)).is_err());
    let held = limiter.lock();
    let retry_after = Duration::from_secs(1);
    assert_eq!(limiter.try_acquire(54_000, || at(59 * SECOND)), Err(Denied::Spent { retry_after }));
    drop(held);
    assert_eq!(limiter.try_acquire(54_000, || at(61 * SECOND)), Ok(()));
}

#[test]
fn whoever_is_late_behind_another_finds_no_more_than_there_is() {
    let limiter = Limiter::new(BURST * 2);
    limiter.allow(Time::ZERO, allowance(100_000_000, u64::MAX));
    assert_eq!(drain(&limiter, 25 * MILLI), 2);
    let spent = Denied::Spent { retry_after: Duration::from_millis(25) };
    // The bucket ran over at 25 ms, so it was empty there and has its next token at 35 ms.
    assert_eq!(limiter.try_acquire(1, || at(10 * MILLI)), Err(spent));
    limiter.allow(at(10 * MILLI), allowance(100_000_000, u64::MAX));
    assert_eq!(drain(&limiter, 35 * MILLI - 1), 0);
    assert_eq!(drain(&limiter, 35 * MILLI), 1);
}

/// Many threads that ask as fast as they can, on a clock that each question moves by a tenth of a token at 5,000/s,
/// while this thread lets `change` change the allowance. Returns what was granted, and when it was over.
fn hammer(limiter: &Limiter, change: impl Fn(Time)) -> (u64, u64) {
    let clock = AtomicU64::new(0);
    let granted = std::thread::scope(|scope| {
        let work = || {
            let tick = || at(clock.fetch_add(20_000, SeqCst));
            (0..100_000).filter(|_| limiter.try_acquire(1, tick).is_ok()).count() as u64
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            change(at(clock.load(SeqCst)));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum::<u64>()
    });
    let now = clock.load(SeqCst);
    let granted = granted + drain(limiter, now);
    assert_eq!(limiter.usage().granted, granted);
    (granted, now)
}

#[test]
fn threads_get_the_rate_to_the_unit_while_the_meter_is_stopped_and_started_all_the_time() {
    let limiter = limiter(5_000_000_000);
    let (granted, nanos) = hammer(&limiter, |now| limiter.allow(now, allowance(5_000_000_000, u64::MAX)));
    assert_eq!(granted, nanos / 200_000);
}

#[test]
fn threads_keep_to_the_bound_while_the_rate_goes_up_and_down() {
    let limiter = limiter(5_000_000_000);
    let (granted, nanos) = hammer(&limiter, |now| {
        for micros in [1_000_000, 0, 5_000_000_000, 3_333_333_333, 5_000_000_000] {
            limiter.allow(now, allowance(micros, now.as_nanos() + SECOND));
        }
    });
    // A bucket starts empty, so not even a burst comes on top.
    assert!(granted <= nanos / 200_000, "{granted} in {nanos} ns");
}

#[test]
fn nothing_is_granted_between_the_return_of_an_allowance_of_nothing_and_the_next() {
    let limiter = limiter(5_000_000_000);
    let (clock, epoch) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let work = || {
            let mut wrong = 0;
            for _ in 0..100_000 {
                let before = epoch.load(SeqCst);
                let granted = limiter.try_acquire(1, || at(clock.fetch_add(20_000, SeqCst))).is_ok();
                let same = before == epoch.load(SeqCst);
                wrong += u32::from(granted && same && before % 2 == 1);
            }
            wrong
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(work)).collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            limiter.allow(at(clock.load(SeqCst)), Allowance::NOTHING);
            epoch.fetch_add(1, SeqCst);
            epoch.fetch_add(1, SeqCst);
            limiter.allow(at(clock.load(SeqCst)), allowance(5_000_000_000, u64::MAX));
        }
        for thread in threads {
            assert_eq!(thread.join().unwrap(), 0);
        }
    });
}

/// An event on the fake clock.
#[derive(Clone, Debug)]
enum Event {
    Pass(u64),
    Take {
        n: u32,
        times: usize,
    },
    Allow {
        micros: u64,
        length: u64,
    },
    Wait,
    /// The last one who waits goes away.
    GoAway,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let pass = prop_oneof![1..10_000u64, 1..10 * MILLI, 1..SECOND, 1..100 * SECOND];
    let micros = prop_oneof![
        1 => Just(0),
        9 => 1_000_000..10_000_000u64,
        18 => 1_000_000..SHARDS_FROM,
        1 => SHARDS_FROM..100_000_000_000
    ];
    let length = prop_oneof![2 => Just(u64::MAX / 2), 1 => 1..SECOND];
    let event = prop_oneof![
        6 => pass.prop_map(Event::Pass),
        6 => (1..4u32, 1..100usize).prop_map(|(n, times)| Event::Take { n, times }),
        2 => (micros, length).prop_map(|(micros, length)| Event::Allow { micros, length }),
        2 => Just(Event::Wait),
        1 => Just(Event::GoAway),
    ];
    prop::collection::vec(event, 1..100)
}

/// A limiter beside a plain bucket that is told what the limiter grants, and so must have it, and that must have next
/// to nothing where the limiter denies.
struct Play<'a> {
    limiter: &'a Limiter,
    clock: &'a FakeClock,
    tasks: Tasks<'a, Result<(), Denied>>,
    waiting: Vec<usize>,
    oracle: Bucket,
    until: u64,
    /// There have been shards. What was in them counts against the brim for a little after it is spent, so less than the
    /// oracle's may be there.
    blurred: bool,
}

impl<'a> Play<'a> {
    fn new(limiter: &'a Limiter, clock: &'a FakeClock) -> Play<'a> {
        Play {
            limiter,
            clock,
            tasks: Tasks::new(clock),
            waiting: Vec::new(),
            oracle: Bucket::empty(),
            until: 0,
            blurred: false,
        }
    }

    fn now(&self) -> u64 {
        use crate::waiting::Clock;
        self.clock.now().as_nanos()
    }

    /// Whether the oracle and the limiter agree at this moment: it is the end of a lease that shards may outlive.
    fn undecided(&self) -> bool {
        self.now() >= self.until && self.oracle.rate_micros() >= SHARDS_FROM
    }

    fn allow(&mut self, micros: u64, length: u64) {
        let now = self.now();
        self.until = now + length;
        self.blurred |= micros >= SHARDS_FROM;
        let burst =
            if micros == 0 { 0 } else { micros / 100 + if micros < 100_000_000 { 1_000_000 } else { 0 } };
        self.oracle.set(now, micros, burst, self.until);
        self.limiter.allow(at(now), allowance(micros, self.until));
        self.serve();
    }

    fn take(&mut self, n: u32, times: usize) {
        for _ in 0..times {
            if self.undecided() {
                return;
            }
            let now = self.now();
            self.oracle.refill(now);
            match self.limiter.try_acquire(n, || at(now)) {
                Ok(()) => {
                    assert!(self.waiting.is_empty() && now < self.until, "overtakes, or comes too late");
                    assert!(self.oracle.take(u64::from(n)), "{n} at {now} is more than there is");
                }
                Err(_) if self.blurred || !self.waiting.is_empty() || now >= self.until => {}
                Err(_) => {
                    let lacks = self.oracle.grains() < u128::from(n) * UNIT + u128::from(NANO);
                    assert!(lacks, "{n} at {now} should be there");
                }
            }
        }
    }

    /// Lets time pass, from one moment at which somebody should be served to the next.
    fn pass(&mut self, nanos: u64) {
        let end = self.now() + nanos;
        while self.now() < end {
            self.oracle.refill(self.now());
            let due = if self.waiting.is_empty() { None } else { self.oracle.available_at(1) };
            // A billionth of a unit comes in within a nanosecond at these rates, so one more is enough.
            let due =
                due.filter(|&due| due < self.until).map_or(end, |due| (due + 1).min(end)).max(self.now() + 1);
            self.tasks.pass(Duration::from_nanos(due - self.now()));
            self.serve();
        }
    }

    fn join(&mut self) {
        if self.undecided() {
            return;
        }
        let task = self.tasks.spawn(self.limiter.acquire_by(self.clock, 1));
        self.waiting.push(task);
        self.serve();
    }

    fn go_away(&mut self) {
        if let Some(task) = self.waiting.pop() {
            self.tasks.cancel(task);
            self.serve();
        }
    }

    /// Takes from the oracle what those have who were served, in order, and checks that nobody was forgotten.
    fn serve(&mut self) {
        self.tasks.run();
        let now = self.now();
        self.oracle.refill(now);
        for (task, result) in self.tasks.finished() {
            assert_eq!((task, result), (self.waiting.remove(0), Ok(())));
            assert!(self.oracle.take(1), "who waited got more than there is");
        }
        if !self.waiting.is_empty() && !self.blurred && now < self.until {
            assert!(self.oracle.grains() < UNIT + 2 * u128::from(self.oracle.rate_micros().max(NANO)));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, ..ProptestConfig::default() })]

    // Grants are within the plain bucket to the grain; denials lack at least all but a billionth of a unit.
    #[test]
    fn agrees_with_a_plain_bucket_to_a_billionth_of_a_unit(micros in 1_000_000..SHARDS_FROM, events in events()) {
        let clock = FakeClock::default();
        let patient = Waiting { max_wait: Duration::from_secs(1 << 40), max_waiters: 1 << 20 };
        let limiter = Limiter::new(BURST).with_waiting(patient);
        let mut play = Play::new(&limiter, &clock);
        play.allow(micros, u64::MAX / 2);
        for event in events {
            match event {
                Event::Pass(nanos) => play.pass(nanos),
                Event::Take { n, times } => play.take(n, times),
                Event::Allow { micros, length } => play.allow(micros, length),
                Event::Wait => play.join(),
                Event::GoAway => play.go_away(),
            }
        }
    }

    // Terms that a thread reads while they are written may be of two runs; their answer is thrown away.
    #[test]
    fn torn_terms_do_no_harm(words in any::<[u64; 4]>(), rest in 0..NANO, brim in 0..MAX_BRIM, n in 1..u32::MAX) {
        let [since, rate, level, spent] = words;
        let terms = MeterTerms { until: u64::MAX, since, rate, level, rest, brim: brim * 1000 };
        for now in [0, since, since.saturating_add(1), spent, u64::MAX] {
            for rate in [0, rate >> 40, rate] {
                for n in [1, n] {
                    let _ = MeterTerms { rate, ..terms }.judge(spent, n, now);
                }
            }
        }
    }
}
