//! The test: starts the processes, kills some and starts them again, and looks at what all have written down.

use std::ops::Range;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::Amount;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::time::{Interval, interval, timeout};

use crate::house::clients::Clients;
use crate::house::diary::{Diary, Peak, peak};
use crate::house::{AGES, House, eventually, everything};

const CAPACITY: f64 = 1000.0;
/// Seconds: shorter than the test, so that what the killed had comes back during it.
const LEASE: u32 = 4;
const PROCESSES: usize = 20;
const CLIENTS: usize = 10;
/// Somebody of a process wants something else so often: on the average twice of what everybody is due.
const PACE: Duration = Duration::from_millis(100);
const WANTS: Range<f64> = 0.0..20.0;
/// Time goes on in steps of that length while processes come and go.
const STEP: Duration = Duration::from_millis(50);

/// One life of a process.
struct Life {
    child: Child,
    diary: Diary,
}

/// All that live, and what the dead have left.
struct Town {
    server: String,
    directory: TempDir,
    living: Vec<Life>,
    dead: Vec<Diary>,
}

// === impl Town ===

impl Town {
    fn start(&mut self, process: usize, dice: &mut Pcg64) -> Life {
        let number = self.living.len() + self.dead.len();
        let path = self.directory.path().join(format!("{process}-{number}-{}", dice.random::<u32>()));
        let clients = Clients {
            servers: self.server.clone(),
            name: format!("client-{process}"),
            clients: CLIENTS,
            seed: dice.random(),
            pace: PACE,
            wants: WANTS,
        };
        Life { child: clients.start(&path), diary: Diary::open(&path) }
    }

    /// Ends a process without a word, and starts another in its place a while later.
    async fn replace(&mut self, process: usize, steps: &mut Interval, dice: &mut Pcg64) {
        let life = &mut self.living[process];
        assert_eq!(life.child.try_wait().unwrap(), None, "it lives until it is killed");
        timeout(AGES, life.child.kill()).await.unwrap().unwrap();
        for _ in 0..dice.random_range(0..8) {
            steps.tick().await;
        }
        let fresh = self.start(process, dice);
        let gone = std::mem::replace(&mut self.living[process], fresh);
        self.dead.push(gone.diary);
    }

    async fn everybody_is_served(&mut self) {
        for (process, life) in self.living.iter_mut().enumerate() {
            let served = async || {
                life.diary.read();
                life.diary.served().len() == CLIENTS
            };
            eventually(&format!("everybody in process {process} is served"), served).await;
        }
    }

    /// The greatest sum of beliefs until before the first diary is read.
    fn peak(&mut self) -> Peak {
        let now = clock::now();
        let mut diaries: Vec<&mut Diary> =
            self.living.iter_mut().map(|life| &mut life.diary).chain(&mut self.dead).collect();
        diaries.iter_mut().for_each(|diary| diary.read());
        peak(diaries.iter().map(|diary| &**diary), now)
    }
}

pub(crate) async fn test() {
    let seed = match std::env::var("LESSOR_TEST_SEED") {
        Ok(seed) => seed.parse().expect("LESSOR_TEST_SEED is a number"),
        Err(_) => rand::random::<u64>(),
    };
    println!("LESSOR_TEST_SEED={seed}");
    let mut dice = Pcg64::seed_from_u64(seed);
    let house = House::open(&everything(CAPACITY, LEASE)).await;
    let (server, directory) = (house.address().to_string(), tempfile::tempdir().unwrap());
    let mut town = Town { server, directory, living: Vec::new(), dead: Vec::new() };
    for process in 0..PROCESSES {
        let life = town.start(process, &mut dice);
        town.living.push(life);
    }
    town.everybody_is_served().await;

    let mut mortal: Vec<usize> = (0..PROCESSES / 2).collect();
    mortal.shuffle(&mut dice);
    let mut steps = interval(STEP);
    for process in mortal {
        for _ in 0..dice.random_range(0..8) {
            steps.tick().await;
        }
        town.replace(process, &mut steps, &mut dice).await;
    }
    town.everybody_is_served().await;
    let all = PROCESSES * CLIENTS;
    eventually("all have a stream", async || house.metric("lessor_streams").await == all as f64).await;
    assert_eq!(house.metric("lessor_overcommitment{resource=\"db\"}").await, 0.0);

    // Everybody wants twice what there is, so sooner or later nearly all of it is held.
    let nearly_all = async || town.peak().sum >= Amount::from_f64(0.9 * CAPACITY);
    eventually("nearly all is believed to be held", nearly_all).await;
    let peak = town.peak();
    println!("{peak:?}, {} lives", PROCESSES + town.dead.len());
    assert!(peak.sum <= Amount::from_f64(CAPACITY), "more was believed than there is: {peak:?}");
    drop(town);
    house.stop().await;
}
