//! The first second of a program, and the first one after a pause: with nothing said but `open()`, and capacity that nobody wants.

use std::time::Duration;

use lessor_client::internals::allowance::Allowance;
use lessor_client::internals::clock;
use lessor_client::internals::limiter::Limiter;
use lessor_client::{Client, Denied, Rate};
use lessor_proto::{Amount, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::house::{AGES, House};

const SECOND: Duration = Duration::from_secs(1);

/// 5,000 a second of which nobody wants any; of "200", "201" and so on 200; and 5,000 of "shares" that are lent to nobody.
const IDLE: &str = "resources:\n\
- identifier_glob: \"*\"\n  capacity: 5000\n  algorithm: &fair {kind: FAIR_SHARE, lease_length: 60, \
                    refresh_interval: 5, learning_mode_duration: 0}\n\
- identifier_glob: \"20*\"\n  capacity: 200\n  algorithm: *fair\n\
- identifier_glob: \"shares\"\n  capacity: 5000\n  algorithm: *fair\n  spare_to_nodes: 0\n";

/// A program with a lease, and nothing attempted yet.
async fn program(client: &Client, resource: &str) -> Rate {
    let mut rate = client.rate(resource).open().unwrap();
    while rate.lease().capacity.is_none_or(|capacity| capacity.as_f64() <= 0.0) {
        timeout(AGES, rate.changed()).await.expect("a lease in time").unwrap();
    }
    // A bucket fills in a twentieth of a second.
    clock::sleep_until(clock::now() + SECOND / 20).await;
    rate
}

/// The attempts at a resource, and at the same moments at a judge, a limiter that always has so many a second.
/// Where the machine stood still, both refuse what comes too late together.
struct Trial {
    rate: Rate,
    judge: Limiter,
    attempted: u32,
    refused: u32,
    refused_by_judge: u32,
}

impl Trial {
    fn new(rate: &Rate, judge: u64) -> Trial {
        let (rate, limiter) = (rate.clone(), Limiter::new(SECOND / 20));
        limiter.allow(clock::now(), Allowance::forever(Amount::from_units(judge)));
        Trial { rate, judge: limiter, attempted: 0, refused: 0, refused_by_judge: 0 }
    }

    /// Attempts `batch` units at once, so many times, `pause` apart.
    async fn repeat(mut self, batch: u32, times: u32, pause: Duration) -> Trial {
        let begin: Time = clock::now() + SECOND / 20;
        for time in 0..times {
            self.attempt(batch, begin + pause * time).await;
        }
        self
    }

    /// Attempts one unit after the other for so long, at random, so many a second on average.
    async fn at_random(mut self, per_second: f64, seed: u64, length: Duration) -> Trial {
        let mut dice = Pcg64Mcg::seed_from_u64(seed);
        let begin = clock::now() + SECOND / 20;
        let mut at = begin;
        while at < begin + length {
            self.attempt(1, at).await;
            at += Duration::from_secs_f64(-(1.0 - dice.random::<f64>()).ln() / per_second);
        }
        self
    }

    async fn attempt(&mut self, batch: u32, at: Time) {
        clock::sleep_until(at).await;
        self.attempted += batch;
        for _ in 0..batch {
            self.refused_by_judge += u32::from(self.judge.try_acquire(1, clock::now).is_err());
            self.refused += u32::from(self.rate.try_acquire(1).is_err());
        }
    }

    /// The attempts that were refused beyond those that the judge refused, in per cent of all attempts.
    fn lost(&self) -> f64 {
        100.0 * f64::from(self.refused.saturating_sub(self.refused_by_judge)) / f64::from(self.attempted)
    }

    fn check(&self, most: f64, what: &str) {
        let Trial { attempted, refused, refused_by_judge, .. } = self;
        let lost = self.lost();
        println!(
            "{what}: {refused} of {attempted} were refused, and {refused_by_judge} by the judge: {lost:.3} %"
        );
        assert!(
            lost <= most,
            "{what}: {refused} of {attempted} were refused, and {refused_by_judge} by the judge"
        );
    }
}

#[tokio::test]
async fn a_steady_rate_is_granted_from_the_first_second_and_after_quiet() {
    let house = House::open(IDLE).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let mut pauses = JoinSet::new();
    for (resource, pause) in [("six", 6), ("fifteen", 15), ("minute", 60)] {
        let rate = program(&client, resource).await;
        pauses.spawn(async move {
            let first = Trial::new(&rate, 1_000).repeat(1, 1_000, SECOND / 200).await;
            first.check(0.1, "from the first second on");
            clock::sleep_until(clock::now() + SECOND * pause).await;
            let again = Trial::new(&rate, 1_000).repeat(1, 1_000, SECOND / 200).await;
            again.check(0.1, &format!("after {pause} s of quiet"));
        });
    }
    pauses.join_all().await;
}

#[tokio::test]
async fn a_steady_rate_of_which_nothing_is_lent_has_to_be_asked_for_first() {
    let house = House::open(IDLE).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client, "shares").await;
    let first = Trial::new(&rate, 1_000).repeat(1, 1_000, SECOND / 200).await;
    assert!(first.lost() > 1.0, "only {} were refused", first.refused);
}

#[tokio::test]
async fn twenty_at_once_each_second_are_granted() {
    let house = House::open(IDLE).await;
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client, "db").await;
    let trial = Trial::new(&rate, 1_000).repeat(20, 8, SECOND).await;
    trial.check(1.0, "twenty at once");
}

#[tokio::test]
async fn requests_at_random_are_granted_where_the_lease_brings_more() {
    let house = House::open(IDLE).await;
    let mut trials = JoinSet::new();
    for number in 0..8 {
        // Each alone at its resource: the lease is what nobody wants, less the tenth that is kept.
        let client = Client::builder(house.address().to_string()).build().unwrap();
        let rate = program(&client, &format!("20{number}")).await;
        trials.spawn(async move {
            let _open = client;
            Trial::new(&rate, 180).at_random(120.0, number, SECOND * 15).await
        });
    }
    let mut all = trials.join_all().await.into_iter();
    let first = all.next().expect("there is one");
    let sum = all.fold(first, |sum, trial| Trial {
        attempted: sum.attempted + trial.attempted,
        refused: sum.refused + trial.refused,
        refused_by_judge: sum.refused_by_judge + trial.refused_by_judge,
        ..sum
    });
    assert!(sum.attempted > 13_000, "{} were attempted", sum.attempted);
    sum.check(0.1, "at random");
}

#[tokio::test]
async fn nobody_is_refused_a_wait_because_its_demand_is_not_known_yet() {
    let house = House::open(IDLE).await;
    let other = Client::builder(house.address().to_string()).build().unwrap();
    let mut whole = other.rate("db").wants(4_999.0).open().unwrap();
    while whole.lease().capacity.is_none_or(|capacity| capacity.as_f64() < 4_998.0) {
        timeout(AGES, whole.changed()).await.expect("a lease in time").unwrap();
    }
    let client = Client::builder(house.address().to_string()).build().unwrap();
    let rate = program(&client, "db").await;
    assert!(rate.lease().capacity.unwrap().as_f64() < 2.0, "there is no more to be had");
    // The other stops; that this one may have more nobody has told it.
    whole.set_wants(1.0);
    let mut waits = JoinSet::new();
    for _ in 0..50 {
        let rate = rate.clone();
        waits.spawn(async move { timeout(AGES, rate.acquire(1)).await.expect("an answer in time") });
    }
    let got: Vec<Result<(), Denied>> = waits.join_all().await;
    assert!(got.iter().all(Result::is_ok), "{got:?}");
}
