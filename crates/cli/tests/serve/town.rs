//! Clients that come, grow, shrink, leave, crash and lie, and never hold more together than there is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::wire::Lease;
use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::{Amount, Time};
use rand::seq::{IndexedRandom, SliceRandom};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tonic::transport::Channel;

use crate::house::holder::{Holder, Nature, claim, fair_shares};
use crate::house::{House, eventually, everything};

const CAPACITY: f64 = 1000.0;
/// Seconds. So short that those who crash are waited for during the test.
const LEASE: u32 = 3;
const ACTS: usize = 400;
/// One act in so much time: the test goes on for longer than a lease.
const PACE: Duration = Duration::from_millis(10);
/// Refreshes in which the shares become exact.
const ROUNDS: usize = 6;
/// Shares are counted in millionths; the oracle rounds too.
const EXACT: f64 = 2e-6;

/// The seed of a random test: a fresh one for each run, or the one to look at again.
fn dice() -> Pcg64 {
    let seed = match std::env::var("LESSOR_TEST_SEED") {
        Ok(seed) => seed.parse().expect("LESSOR_TEST_SEED is a number"),
        Err(_) => rand::random::<u64>(),
    };
    println!("LESSOR_TEST_SEED={seed}");
    Pcg64::seed_from_u64(seed)
}

fn wants(dice: &mut impl Rng) -> f64 {
    match dice.random_range(0..10) {
        0 => 0.0,
        1 => 1e12,
        _ => dice.random_range(0.0..200.0),
    }
}

/// All clients of one resource.
struct Town {
    server: CapacityClient<Channel>,
    /// Those who live, and when each asks next.
    living: Vec<(Holder, Time)>,
    /// Those who crashed: they may go on using what they have until it ends.
    crashed: Vec<Holder>,
    /// Those who lied, and those who crashed and have come back as somebody else.
    lost: Vec<Holder>,
    born: usize,
    /// The number of acts of each kind.
    tally: [usize; Act::ALL.len()],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Join,
    Grow,
    Shrink,
    Leave,
    Crash,
    /// A crashed client starts again while its old lease goes on.
    ComeBack,
    /// A client asks for less, and the answer is lost: it goes on with what it has.
    Lose,
    Lie,
}

// === impl Act ===

impl Act {
    const ALL: [Act; 8] =
        [Act::Join, Act::Grow, Act::Shrink, Act::Leave, Act::Crash, Act::ComeBack, Act::Lose, Act::Lie];
    /// In percent.
    const CHANCES: [u32; 8] = [24, 20, 20, 12, 5, 3, 12, 4];

    fn draw(dice: &mut impl Rng) -> Act {
        let mut lot = dice.random_range(0..100);
        for (act, chance) in Act::ALL.into_iter().zip(Act::CHANCES) {
            if lot < chance {
                return act;
            }
            lot -= chance;
        }
        unreachable!("the chances sum up to a hundred")
    }
}

// === impl Town ===

impl Town {
    async fn found(house: &House) -> Town {
        let server = house.capacity().await;
        Town {
            server,
            living: Vec::new(),
            crashed: Vec::new(),
            lost: Vec::new(),
            born: 0,
            tally: Default::default(),
        }
    }

    /// Checks that all of them together would use no more than the capacity at this moment, to the millionth.
    #[track_caller]
    fn check(&self) {
        let living = self.living.iter().map(|(holder, _)| holder);
        let all = living.chain(&self.crashed).chain(&self.lost);
        let sum: u64 = all.map(|holder| holder.holds().as_micros()).sum();
        assert!(sum <= Amount::from_f64(CAPACITY).as_micros(), "{sum} millionths are held");
    }

    async fn report(&mut self, index: usize) {
        let (holder, next) = &mut self.living[index];
        let granted =
            holder.report(&mut self.server).await.unwrap_or_else(|error| panic!("{holder:?}: {error}"));
        *next = clock::now() + holder.refresh_interval();
        assert!(granted <= holder.wants + EXACT, "{granted} is more than wanted: {holder:?}");
        self.check();
    }

    /// Everybody whose time has come asks again.
    async fn refresh(&mut self) {
        let now = clock::now();
        let due: Vec<usize> = (0..self.living.len()).filter(|&index| self.living[index].1 <= now).collect();
        for index in due {
            self.report(index).await;
        }
        for gone in [&mut self.crashed, &mut self.lost] {
            gone.retain(|holder| holder.holds() > Amount::ZERO);
        }
    }

    async fn act(&mut self, act: Act, dice: &mut impl Rng) {
        self.tally[act as usize] += 1;
        let somebody = dice.random_range(0..self.living.len().max(1));
        match act {
            Act::Join => self.join(dice).await,
            _ if self.living.is_empty() => {}
            Act::Grow | Act::Shrink => {
                let factor =
                    if act == Act::Grow { dice.random_range(1.0..5.0) } else { dice.random_range(0.0..1.0) };
                self.living[somebody].0.wants *= factor;
                self.report(somebody).await;
            }
            Act::Leave => {
                let (mut holder, _) = self.living.swap_remove(somebody);
                holder.release(&mut self.server).await.unwrap();
            }
            Act::Crash => {
                let (holder, _) = self.living.swap_remove(somebody);
                self.crashed.push(holder);
            }
            Act::ComeBack => {
                if let Some(holder) = self.crashed.pop() {
                    self.living.push((holder.reborn(), Time::ZERO));
                    self.lost.push(holder);
                    self.report(self.living.len() - 1).await;
                }
            }
            Act::Lose => {
                let (holder, _) = &mut self.living[somebody];
                holder.wants = holder.capacity() * dice.random_range(0.0..1.0);
                holder.ask_in_vain(&mut self.server).await.unwrap();
                self.check();
            }
            Act::Lie => {
                let victim = self.living[somebody].0.clone();
                self.lie(&victim, dice).await;
            }
        }
    }

    async fn join(&mut self, dice: &mut impl Rng) {
        self.born += 1;
        let nature = *Nature::ALL.choose(dice).unwrap();
        let holder = Holder::new(format!("client-{}", self.born), nature, "db", wants(dice));
        self.living.push((holder, Time::ZERO));
        self.report(self.living.len() - 1).await;
    }

    /// A process that shows what it never got, under a name of its own or of another, and keeps what it is given.
    async fn lie(&mut self, victim: &Holder, dice: &mut impl Rng) {
        self.born += 1;
        let name = if dice.random() { victim.id.clone() } else { format!("liar-{}", self.born) };
        let mut liar = Holder::new(name, Nature::Echoes, "db", 1e300);
        let mut request = liar.request();
        request.resource[0].has = Some(match dice.random_range(0..3) {
            0 => claim(1e9),
            1 => Lease { epoch: Some(1), seq: Some(u64::MAX), token: Some(vec![0; 8]), ..claim(1e9) },
            _ => Lease {
                epoch: victim.lease.as_ref().and_then(|lease| lease.epoch),
                seq: Some(u64::MAX),
                token: Some(vec![0xff; 8]),
                ..claim(1e9)
            },
        });
        liar.send(&mut self.server, request).await.unwrap_or_else(|error| panic!("{liar:?}: {error}"));
        self.lost.push(liar);
        self.check();
    }

    /// Everybody asks once, in any order.
    async fn round(&mut self, dice: &mut impl Rng) {
        let mut order: Vec<usize> = (0..self.living.len()).collect();
        order.shuffle(dice);
        for index in order {
            self.report(index).await;
        }
    }

    fn check_shares(&self) {
        let wants: Vec<f64> = self.living.iter().map(|(holder, _)| holder.wants).collect();
        for ((holder, _), share) in self.living.iter().zip(fair_shares(CAPACITY, &wants)) {
            let off = (holder.capacity() - share).abs();
            assert!(off <= EXACT, "{share} is due, off by {off}: {holder:?}");
        }
    }
}

#[tokio::test]
async fn clients_that_come_go_crash_and_lie_never_hold_more_than_there_is() {
    let mut dice = dice();
    let house = House::open(&everything(CAPACITY, LEASE)).await;
    let mut town = Town::found(&house).await;

    let mut timer = tokio::time::interval(PACE);
    for _ in 0..ACTS {
        timer.tick().await;
        town.refresh().await;
        town.act(Act::draw(&mut dice), &mut dice).await;
    }
    assert!(town.tally.iter().all(|&count| count > 0), "something never happened: {:?}", town.tally);
    while town.living.len() < 12 {
        town.join(&mut dice).await;
    }

    // What crashed and lied is gone when its lease is. Where several lives of one id were given nothing, one that sends
    // back only how much that is cannot be told from the others until it gets something, so everybody wants something.
    for (holder, _) in &mut town.living {
        holder.wants = dice.random_range(1.0..200.0);
    }
    eventually("only those who live are counted", async || {
        town.refresh().await;
        house.resource("db").await.unwrap()["clients"] == town.living.len()
    })
    .await;
    for _ in 0..3 {
        for (holder, _) in &mut town.living {
            holder.wants = wants(&mut dice);
        }
        for _ in 0..ROUNDS {
            town.round(&mut dice).await;
        }
        town.check_shares();
    }
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);
    house.stop().await;
}

/// The amount that each of many processes believes it may use, seen from above.
#[derive(Clone, Default)]
struct Beliefs(Arc<Mutex<Vec<Amount>>>);

// === impl Beliefs ===

impl Beliefs {
    fn believe(&self, index: usize, amount: Amount) {
        let beliefs = {
            let mut beliefs = self.0.lock().unwrap();
            beliefs[index] = amount;
            beliefs.clone()
        };
        let sum: u64 = beliefs.iter().map(|amount| amount.as_micros()).sum();
        assert!(sum <= Amount::from_f64(CAPACITY).as_micros(), "{sum} millionths: {beliefs:?}");
    }
}

/// Answers are on their way while others are served, which is when capacity is given away twice if it ever is.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_that_ask_all_at_once_never_hold_more_than_there_is() {
    const CLIENTS: usize = 12;
    let mut dice = dice();
    // Nothing ends while it goes on: each belief lasts until the next answer.
    let house = House::open(&everything(CAPACITY, 600)).await;
    let beliefs = Beliefs(Arc::new(Mutex::new(vec![Amount::ZERO; CLIENTS])));
    let mut tasks = tokio::task::JoinSet::new();
    for index in 0..CLIENTS {
        let (beliefs, mut server) = (beliefs.clone(), house.capacity().await);
        let mut dice = Pcg64::seed_from_u64(dice.random());
        tasks.spawn(async move {
            let mut holder = Holder::new(format!("client-{index}"), Nature::ALL[index % 3], "db", 0.0);
            for _ in 0..100 {
                holder.wants = wants(&mut dice);
                let request = holder.request();
                // A client that promises keeps its promise from here on; the others use what they have meanwhile.
                beliefs.believe(index, holder.holds());
                holder.send(&mut server, request).await.unwrap();
                beliefs.believe(index, holder.holds());
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    house.stop().await;
}
