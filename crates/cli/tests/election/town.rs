//! A root of three tasks, two leaves of two, and the processes with clients that write down what they believe.

use std::ops::Range;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Amount, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;
use tokio::process::Child;
use tokio::time::{interval, timeout};

use crate::house::clients::Clients;
use crate::house::diary::{Diary, peak};
use crate::house::etcd::Etcd;
use crate::house::eventually;
use crate::node::{CAPACITY, Node};

/// Where nodes are in [`Town::nodes`].
pub(crate) const ROOT: usize = 0;
pub(crate) const WEST: usize = 1;
pub(crate) const EAST: usize = 2;
/// At each leaf so many processes of so many clients. They want about twice of what there is.
const PROCESSES: usize = 5;
const CLIENTS: usize = 10;
/// Somebody of a process wants something else so often, and never nothing, so that nobody is ever rightly without a lease.
const PACE: Duration = Duration::from_millis(250);
const WANTS: Range<f64> = 1.0..20.0;
/// At the root itself.
const DIRECT: usize = 4;
/// Longer than anything may take.
const LONG: Duration = Duration::from_secs(60);
/// The interval at which diaries are read while something is waited for: it takes a while.
const LOOK: Duration = Duration::from_millis(250);

/// A process with clients.
struct Process {
    child: Child,
    diary: Diary,
    node: usize,
    clients: usize,
}

/// All of it.
pub(crate) struct Town {
    pub(crate) etcd: Etcd,
    pub(crate) nodes: [Node; 3],
    processes: Vec<Process>,
    /// In which epoch each node was when it was looked at last.
    epochs: [f64; 3],
    /// No two nodes have failed over at once.
    orderly: bool,
    /// From then on nobody is to be without a lease.
    settled: Time,
    directory: TempDir,
    dice: Pcg64,
}

// === impl Town ===

impl Town {
    /// Starts everything, and waits until everybody has a lease, and has renewed it.
    pub(crate) async fn start(etcd: Etcd, seed: u64) -> Town {
        let mut dice = Pcg64::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        let key = directory.path().join("key");
        let digits: String = (0..4).map(|_| format!("{:016x}", dice.random::<u64>())).collect();
        std::fs::write(&key, digits).unwrap();
        let root = Node::start("root", 3, etcd.address(), &key, "").await;
        let parents = root.addresses();
        let west = Node::start("west", 2, etcd.address(), &key, &parents).await;
        let east = Node::start("east", 2, etcd.address(), &key, &parents).await;
        let (nodes, processes, epochs) = ([root, west, east], Vec::new(), [0.0; 3]);
        let settled = Time::MAX;
        let mut town = Town { etcd, nodes, processes, epochs, orderly: true, settled, directory, dice };
        town.look().await;
        town.join(ROOT, DIRECT);
        for _ in 0..PROCESSES {
            town.join(WEST, CLIENTS);
            town.join(EAST, CLIENTS);
        }
        for process in 0..town.processes.len() {
            town.newcomers(process).await;
        }
        let served = clock::now();
        for node in [ROOT, WEST, EAST] {
            town.holders(node, town.processes.len(), served).await;
        }
        town.settle();
        town
    }

    /// Another process with so many clients at a node: its place among them.
    pub(crate) fn join(&mut self, node: usize, clients: usize) -> usize {
        let number = self.processes.len();
        let name = format!("{}-{number}", self.nodes[node].name);
        let path = self.directory.path().join(&name);
        let (servers, seed) = (self.nodes[node].addresses(), self.dice.random::<u64>());
        let child = Clients { servers, name, clients, seed, pace: PACE, wants: WANTS }.start(&path);
        let diary = Diary::open(&path);
        self.processes.push(Process { child, diary, node, clients });
        number
    }

    /// When those at a node were first granted something after `since`, once all of them were. Newcomers from the process
    /// `before` on are not among them.
    pub(crate) async fn holders(&mut self, node: usize, before: usize, since: Time) -> Vec<Time> {
        let what = format!("holders at {} are served again", self.nodes[node].name);
        let mut times = Vec::new();
        for process in self.processes[..before].iter_mut().filter(|process| process.node == node) {
            times.extend(process.once(&what, |diary| diary.granted_after(since)).await);
        }
        times.sort_unstable();
        times
    }

    /// When the clients of a process were granted something at all, once they were.
    pub(crate) async fn newcomers(&mut self, process: usize) -> Vec<Time> {
        self.processes[process].once("newcomers are served", Diary::served).await
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// From here on nobody is to be without a lease. While all come at once and marks rise from nothing somebody may be for
    /// a moment: that is said.
    fn settle(&mut self) {
        self.settled = clock::now();
        self.processes.iter_mut().for_each(|process| process.diary.read());
        let diaries = self.processes.iter().map(|process| &process.diary);
        let losses: Vec<String> = diaries.flat_map(|diary| diary.losses(Time::ZERO, self.settled)).collect();
        if let Some(first) = losses.first() {
            println!("at the start {} times somebody was without a lease, as {first}", losses.len());
        }
    }

    /// Which nodes have failed over since it was looked last.
    pub(crate) async fn look(&mut self) -> Vec<usize> {
        let mut changed = Vec::new();
        for (number, node) in self.nodes.iter().enumerate() {
            let epoch = node.epoch().await;
            if std::mem::replace(&mut self.epochs[number], epoch) < epoch {
                changed.push(number);
            }
        }
        changed
    }

    /// One fail-over at a time: one of the root is over when both leaves have shown what they have.
    pub(crate) async fn know_leaves(&self) {
        let [root, leaves @ ..] = &self.nodes;
        for leaf in leaves {
            eventually("the leaves are known again", async || root.knows(leaf).await).await;
        }
    }

    /// The task to which something has happened is there again, and does not lead.
    pub(crate) async fn mend(&mut self, node: usize, task: usize) {
        self.nodes[node].mend(task).await;
        let node = &self.nodes[node];
        eventually("who comes back does not lead", async || !node.leads(task).await).await;
    }

    /// Never more is believed than there is, and nobody has lost anything: unless nodes have failed over that should not
    /// have, as happens on a machine that is so slow that etcd hears of nobody for seconds. Returns whether the nodes failed over
    /// that should have, and no others.
    pub(crate) async fn check(&mut self, when: &str, failed: &[usize]) -> bool {
        for process in &mut self.processes {
            assert_eq!(process.child.try_wait().unwrap(), None, "clients live to the end");
        }
        let changed = self.look().await;
        if changed != failed {
            self.orderly = false;
            let names = |nodes: &[usize]| nodes.iter().map(|&node| self.nodes[node].name).collect::<Vec<_>>();
            let (meant, changed) = (names(failed), names(&changed));
            println!(
                "NOT JUDGED from here on is who loses a lease: {changed:?} failed over, and {meant:?} should have"
            );
        }
        let now = clock::now();
        self.processes.iter_mut().for_each(|process| process.diary.read());
        let diaries = || self.processes.iter().map(|process| &process.diary);
        let peak = peak(diaries(), now);
        println!("{when}: {peak:?}");
        assert!(peak.sum <= Amount::from_f64(CAPACITY), "{when}: more was believed than there is: {peak:?}");
        let losses: Vec<String> = diaries().flat_map(|diary| diary.losses(self.settled, now)).collect();
        let some = &losses[..losses.len().min(20)];
        assert!(
            losses.is_empty() || !self.orderly,
            "{when}: {} times somebody was without a lease:\n{}",
            losses.len(),
            some.join("\n")
        );
        changed == failed
    }

    /// Ends the clients, and then all tasks in order.
    pub(crate) async fn stop(self) {
        let Town { nodes: [root, west, east], processes, etcd, .. } = self;
        drop(processes);
        for node in [west, east, root] {
            node.stop().await;
        }
        drop(etcd);
    }
}

// === impl Process ===

impl Process {
    /// When something was so for each of its clients, once it was for all.
    async fn once(&mut self, what: &str, when: impl Fn(&Diary) -> Vec<Time>) -> Vec<Time> {
        let mut timer = interval(LOOK);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let waiting = async {
            loop {
                timer.tick().await;
                self.diary.read();
                let times = when(&self.diary);
                if times.len() == self.clients {
                    return times;
                }
            }
        };
        timeout(LONG, waiting).await.unwrap_or_else(|_| panic!("never: {what}"))
    }
}
