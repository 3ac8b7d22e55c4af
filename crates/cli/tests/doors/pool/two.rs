//! Two doors with one key: never more work at a time than may, counted by the workers themselves, and all who can be served are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lessor_client::internals::clock;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Line, RULES, door};
use crate::front::Front;
use crate::house::{AGES, eventually};

/// Those who may work at a time.
const WORKERS: usize = 2;
/// The programs at each door, and the work that each has.
const PROGRAMS: usize = 4;
const WORK: usize = 25;

/// The work of all programs.
#[derive(Clone, Default)]
struct Works {
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    done: Arc<AtomicUsize>,
}

// === impl Works ===

impl Works {
    /// Works while this program has the lock: much shorter than a lease.
    async fn work(&self) {
        let count = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(count, Ordering::SeqCst);
        clock::sleep_until(clock::now() + Duration::from_millis(5)).await;
        self.now.fetch_sub(1, Ordering::SeqCst);
        self.done.fetch_add(1, Ordering::SeqCst);
    }

    /// A program that does its work, each time with a lock of the door at `address`. A door that is gone comes again.
    async fn program(self, address: String) {
        for _ in 0..WORK {
            loop {
                let opened = timeout(AGES, opened(&address)).await.expect("the door is there");
                let mut line = Line(BufReader::new(opened));
                if line.tell("ACQ4ME key 2 100 3600").await.is_err() {
                    continue;
                }
                match line.heard().await.as_deref() {
                    Some("LOCKED") => {
                        self.work().await;
                        if line.tell("RELEASE").await.is_ok() {
                            let answer = line.heard().await;
                            assert!(matches!(answer.as_deref(), None | Some("RELEASED")), "{answer:?}");
                        }
                        break;
                    }
                    // It was killed meanwhile.
                    None => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// A connection to a door that may not be there for a while.
async fn opened(address: &str) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(address).await {
            return stream;
        }
        clock::sleep_until(clock::now() + Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn two_doors_keep_one_key_also_when_one_is_killed() {
    // Short leases: what a dead door had is nobody's until its lease ends.
    let short = |text: String| {
        let altered =
            text.replace("lease_length: 60, refresh_interval: 5", "lease_length: 3, refresh_interval: 1");
        assert_ne!(altered, text);
        altered
    };
    let front = Front::open_with(RULES, "", short).await;
    let (mut one, other) = (door(&front, &[]).await, door(&front, &[]).await);
    let works = Works::default();
    let mut programs = JoinSet::new();
    for address in [&one.pool, &other.pool] {
        (0..PROGRAMS).for_each(|_| drop(programs.spawn(works.clone().program(address.clone()))));
    }
    let all = 2 * PROGRAMS * WORK;
    eventually("a third is done", async || works.done.load(Ordering::SeqCst) >= all / 3).await;
    let address = one.pool.clone();
    one.crash().await;
    let before = works.done.load(Ordering::SeqCst);
    eventually("the other door goes on", async || works.done.load(Ordering::SeqCst) >= before + 10).await;
    let again = front.door(&["--pool", &address]).await;
    while let Some(program) = programs.join_next().await {
        program.unwrap();
    }
    assert_eq!(works.done.load(Ordering::SeqCst), all);
    assert_eq!(works.most.load(Ordering::SeqCst), WORKERS, "never more, and as many as may");
    // Alone at its door each of them has all there is.
    for (there, elsewhere) in [(&again, &other), (&other, &again)] {
        let (mut first, mut second) = (Line::open(&there.pool).await, Line::open(&there.pool).await);
        assert_eq!(first.ask("ACQ4ME key 2 9 0").await, "LOCKED");
        assert_eq!(second.ask("ACQ4ME key 2 9 0").await, "LOCKED");
        let mut third = Line::open(&elsewhere.pool).await;
        third.say("ACQ4ME key 2 9 3600").await;
        assert_eq!(first.ask("RELEASE").await, "RELEASED");
        assert_eq!(third.hear().await, "LOCKED", "the unit gets there");
        // One that is gone has nothing.
        drop(second);
        assert_eq!(first.ask("ACQ4ME key 2 9 3600").await, "LOCKED");
    }
    again.stop().await;
    other.stop().await;
    front.server.stop().await;
}

#[tokio::test]
async fn work_that_is_done_at_one_door_is_done_for_who_waits_at_the_other() {
    let front = Front::open(RULES, "").await;
    let (one, other) = (door(&front, &[]).await, door(&front, &[]).await);
    let mut works = [Line::open(&one.pool).await, Line::open(&one.pool).await];
    let (mut anybody, mut itself) = (Line::open(&other.pool).await, Line::open(&other.pool).await);
    let mut looks = Line::open(&other.pool).await;
    let mut told = 0;
    for round in 0..3 {
        // Both workers of the key are at one door, and nobody else gets in.
        for line in &mut works {
            assert_eq!(line.ask("ACQ4ME key 2 100 3600").await, "LOCKED", "round {round}");
        }
        anybody.say("ACQ4ANY key 2 100 3600").await;
        itself.say("ACQ4ME key 2 100 3600").await;
        eventually("both wait", async || {
            // What was done just before the wait may count for it as well: then it asks again, as a caller who finds nothing.
            if anybody.is_told().await {
                assert_eq!(anybody.hear().await, "DONE", "round {round}");
                anybody.say("ACQ4ANY key 2 100 3600").await;
                told += 1;
            }
            looks.ask("STATS waiting_workers").await == "waiting_workers: 2"
        })
        .await;
        let [first, second] = &mut works;
        assert_eq!(first.ask("RELEASE").await, "RELEASED");
        assert_eq!(anybody.hear().await, "DONE", "round {round}");
        assert_eq!(itself.hear().await, "LOCKED", "and the unit goes to the one that waits for itself");
        assert_eq!(second.ask("RELEASE").await, "RELEASED");
        assert_eq!(itself.ask("RELEASE").await, "RELEASED");
    }
    let page = other.http("GET /metrics", "", "").await.body;
    let told = format!("lessor_pool_done_elsewhere_total {}\n", told + 3);
    assert!(page.contains(&told), "{told} of {page}");
    // Whoever dies has done nothing: its unit comes back when its lease has ended, or its door says so.
    assert_eq!(works[0].ask("ACQ4ME key 1 100 0").await, "LOCKED");
    anybody.say("ACQ4ANY key 1 100 3600").await;
    eventually("it waits", async || looks.ask("STATS waiting_workers").await == "waiting_workers: 1").await;
    drop(works);
    assert_eq!(anybody.hear().await, "LOCKED");
    drop((anybody, itself, looks));
    one.stop().await;
    other.stop().await;
    front.server.stop().await;
}
