//! A root of three tasks, two leaves of two, and the processes with clients that write down what they believe.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use lessor_client::shell::clock;
use lessor_proto::{Amount, Time};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tempfile::TempDir;
use tokio::process::{Child, Command};
use tokio::time::{interval, timeout};

use crate::clients;
use crate::diary::{Diary, peak};
use crate::etcd::Etcd;
use crate::node::{CAPACITY, Node};

/// Where nodes are in [`Town::nodes`].
pub(crate) const ROOT: usize = 0;
pub(crate) const WEST: usize = 1;
pub(crate) const EAST: usize = 2;
/// At each leaf so many processes of so many clients. They want about twice of what there is.
const PROCESSES: usize = 5;
const CLIENTS: usize = 10;
/// At the root itself.
const DIRECT: usize = 4;
/// Longer than anything may take. Where a node and the one above it fail over together, what was out under both has to end
/// before everybody is served, which takes as long as a lease.
const LONG: Duration = Duration::from_secs(60);
/// How often diaries are read while something is waited for: it takes a while.
const LOOK: Duration = Duration::from_millis(250);

/// A process with clients.
struct Process {
    child: Child,
    diary: PathBuf,
    node: usize,
    clients: usize,
}

/// All of it.
pub(crate) struct Town {
    pub(crate) etcd: Etcd,
    pub(crate) nodes: [Node; 3],
    processes: Vec<Process>,
    directory: TempDir,
    dice: Pcg64,
}

// === impl Town ===

impl Town {
    /// Starts everything, and waits until everybody has a lease.
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
        let mut town = Town { etcd, nodes: [root, west, east], processes: Vec::new(), directory, dice };
        town.join(ROOT, DIRECT);
        for _ in 0..PROCESSES {
            town.join(WEST, CLIENTS);
            town.join(EAST, CLIENTS);
        }
        for process in 0..town.processes.len() {
            town.until("everybody is served", async || town.served(process)).await;
        }
        town
    }

    /// Another process with so many clients at a node: its place among them.
    pub(crate) fn join(&mut self, node: usize, clients: usize) -> usize {
        let number = self.processes.len();
        let name = format!("{}-{number}", self.nodes[node].name);
        let diary = self.directory.path().join(&name);
        let (servers, seed) = (self.nodes[node].addresses(), self.dice.random::<u64>());
        let child = Command::new(std::env::current_exe().unwrap())
            .args([clients::CALL, &servers, &name, &clients.to_string(), &seed.to_string()])
            .stdin(Stdio::null())
            .stdout(File::create(&diary).unwrap())
            .kill_on_drop(true)
            .spawn();
        self.processes.push(Process { child: child.unwrap(), diary, node, clients });
        number
    }

    /// When those at a node were first granted something after `since`, once all of them were. Newcomers from the process
    /// `before` on are not among them.
    pub(crate) async fn holders(&self, node: usize, before: usize, since: Time) -> Vec<Time> {
        let mut times = Vec::new();
        for process in self.processes[..before].iter().filter(|process| process.node == node) {
            let mut granted = Vec::new();
            self.until(&format!("holders at {} are served again", self.nodes[node].name), async || {
                granted = Diary::read(&process.diary).granted_after(since);
                granted.len() == process.clients
            })
            .await;
            times.append(&mut granted);
        }
        times.sort_unstable();
        times
    }

    /// When the only client of a process was first granted something, once it was.
    pub(crate) async fn newcomer(&self, process: usize) -> Time {
        self.until("a newcomer is served", async || self.served(process)).await;
        Diary::read(&self.processes[process].diary).served()[0]
    }

    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    fn served(&self, process: usize) -> bool {
        let Process { diary, clients, .. } = &self.processes[process];
        Diary::read(diary).served().len() == *clients
    }

    /// Never more is believed than there is, and nobody has lost anything.
    pub(crate) fn check(&mut self, when: &str) {
        for process in &mut self.processes {
            assert_eq!(process.child.try_wait().unwrap(), None, "clients live to the end");
        }
        let now = clock::now();
        let diaries: Vec<Diary> = self.processes.iter().map(|process| Diary::read(&process.diary)).collect();
        let peak = peak(&diaries);
        println!("{when}: {peak:?}");
        assert!(peak.sum <= Amount::from_f64(CAPACITY), "{when}: more was believed than there is: {peak:?}");
        let losses: Vec<String> = diaries.iter().flat_map(|diary| diary.losses(now)).collect();
        assert!(losses.is_empty(), "{when}: leases were lost:\n{}", losses.join("\n"));
    }

    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let mut timer = interval(LOOK);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let waiting = async {
            while !holds().await {
                timer.tick().await;
            }
        };
        assert!(timeout(LONG, waiting).await.is_ok(), "never: {what}");
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
