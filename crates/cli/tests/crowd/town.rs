//! The test: starts the processes, kills some and starts them again, and looks at what all have written down.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lessor_proto::Amount;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{Interval, interval, timeout};

use crate::beliefs::{Diary, peak};
use crate::clients;
use crate::house::{AGES, House, eventually, everything};

const CAPACITY: f64 = 1000.0;
/// Seconds: shorter than the test, so that what the killed had comes back during it.
const LEASE: u32 = 4;
const PROCESSES: usize = 20;
const CLIENTS: usize = 10;
/// Time goes on in steps of that length while processes come and go.
const STEP: Duration = Duration::from_millis(50);

/// One life of a process.
struct Life {
    child: Child,
    diary: PathBuf,
}

/// All that live, and what the dead have left.
struct Town {
    server: String,
    directory: TempDir,
    living: Vec<Life>,
    dead: Vec<PathBuf>,
}

// === impl Town ===

impl Town {
    fn start(&mut self, process: usize, dice: &mut Pcg64) -> Life {
        let number = self.living.len() + self.dead.len();
        let diary = self.directory.path().join(format!("{process}-{number}-{}", dice.random::<u32>()));
        let seed: u64 = dice.random();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                clients::CALL,
                &self.server,
                &process.to_string(),
                &CLIENTS.to_string(),
                &seed.to_string(),
            ])
            .stdin(Stdio::null())
            .stdout(File::create(&diary).unwrap())
            .kill_on_drop(true)
            .spawn();
        Life { child: child.unwrap(), diary }
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

    async fn everybody_is_served(&self) {
        for (process, life) in self.living.iter().enumerate() {
            let served = async || Diary::read(&life.diary).served() == CLIENTS;
            eventually(&format!("everybody in process {process} is served"), served).await;
        }
    }

    fn diaries(&self) -> Vec<Diary> {
        let all = self.living.iter().map(|life| &life.diary).chain(&self.dead);
        all.map(|path| Diary::read(path)).collect()
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
    let nearly_all = async || peak(&town.diaries()).sum >= Amount::from_f64(0.9 * CAPACITY);
    eventually("nearly all is believed to be held", nearly_all).await;
    let peak = peak(&town.diaries());
    println!("{peak:?}, {} lives", PROCESSES + town.dead.len());
    assert!(peak.sum <= Amount::from_f64(CAPACITY), "more was believed than there is: {peak:?}");
    drop(town);
    house.stop().await;
}
