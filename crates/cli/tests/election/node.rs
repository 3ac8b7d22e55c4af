//! The tasks of one node.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::interval;

use crate::house::proxy::Proxy;
use crate::house::{AGES, House, template};

pub(crate) const CAPACITY: f64 = 500.0;
/// The time for which another may not lead after a leader was heard of last, and the time for which that one
/// leads without being heard.
pub(crate) const TTL: Duration = Duration::from_secs(3);
pub(crate) const AUTHORITY: Duration = Duration::from_secs(1);

/// A fault that is inflicted on a leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It was told to end, and has done so.
    Ended,
    Killed,
    /// Until it goes on again.
    Frozen,
    /// Nothing passes between it and etcd, until it does.
    CutOff,
}

/// A task, and its own way to etcd.
struct Task {
    house: Option<House>,
    way: Proxy,
    fault: Option<Fault>,
}

/// A node.
pub(crate) struct Node {
    pub(crate) name: &'static str,
    tasks: Vec<Task>,
}

// === impl Node ===

impl Node {
    pub(crate) async fn start(
        name: &'static str,
        tasks: usize,
        etcd: std::net::SocketAddr,
        key: &Path,
        parents: &str,
    ) -> Node {
        let algorithm =
            "{kind: FAIR_SHARE, lease_length: 30, refresh_interval: 2, learning_mode_duration: 0}";
        let mut node = Node { name, tasks: Vec::new() };
        for _ in 0..tasks {
            let way = Proxy::start(etcd).await;
            let url = way.url();
            let key = key.to_str().unwrap();
            let mut flags = vec!["--node", name, "--etcd", &url, "--token-key", key];
            flags.extend(["--ttl", "3s", "--authority", "1s", "--keep-alive", "300ms"]);
            if !parents.is_empty() {
                flags.extend(["--parent", parents]);
            }
            let house = House::open_with(&template("*", CAPACITY, algorithm), &flags).await;
            node.tasks.push(Task { house: Some(house), way, fault: None });
        }
        node
    }

    /// All its tasks, as clients and nodes below are told.
    pub(crate) fn addresses(&self) -> String {
        let addresses: Vec<String> =
            self.tasks.iter().map(|task| task.house().address().to_string()).collect();
        addresses.join(",")
    }

    /// The task that leads and may act, once one does.
    pub(crate) async fn leader(&self) -> usize {
        self.leader_but(usize::MAX).await
    }

    /// The same, once it is not this one.
    pub(crate) async fn leader_but(&self, old: usize) -> usize {
        let waiting = async {
            let mut timer = interval(Duration::from_millis(20));
            loop {
                match self.leads_now().await {
                    Some(leader) if leader != old => return leader,
                    _ => timer.tick().await,
                };
            }
        };
        let leader = tokio::time::timeout(AGES, waiting).await;
        leader.unwrap_or_else(|_| panic!("{}: nobody leads", self.name))
    }

    /// The task that leads and may act, of those that nothing has happened to.
    pub(crate) async fn leads_now(&self) -> Option<usize> {
        for (number, task) in self.tasks.iter().enumerate() {
            if task.fault.is_none() && task.leads().await {
                return Some(number);
            }
        }
        None
    }

    /// Tells a task to end, as whoever starts it again does.
    pub(crate) fn tell_to_end(&self, task: usize) {
        self.tasks[task].house().signal(Signal::TERM);
    }

    pub(crate) async fn inflict(&mut self, task: usize, fault: Fault) {
        let task = &mut self.tasks[task];
        task.fault = Some(fault);
        match fault {
            Fault::Ended => {
                let status = task.house.as_mut().unwrap().ended().await;
                assert!(status.success(), "{status}");
            }
            Fault::Killed => task.house.as_mut().unwrap().crash().await,
            Fault::Frozen => task.house().signal(Signal::STOP),
            Fault::CutOff => task.way.freeze(),
        }
    }

    /// Everything is in order again.
    pub(crate) async fn mend(&mut self, task: usize) {
        let task = &mut self.tasks[task];
        match task.fault.take().expect("it was at fault") {
            Fault::Ended | Fault::Killed => {
                let house = task.house.take().unwrap();
                task.house = Some(house.start_again().await);
            }
            Fault::Frozen => task.house().signal(Signal::CONT),
            Fault::CutOff => task.way.thaw(),
        }
    }

    /// Whether this task says that it leads and may act.
    pub(crate) async fn leads(&self, task: usize) -> bool {
        self.tasks[task].leads().await
    }

    /// The number of streams that were opened at a task.
    pub(crate) async fn streams_opened(&self, task: usize) -> f64 {
        self.tasks[task].house().metric("lessor_streams_opened_total").await
    }

    /// The number of the epoch, once somebody leads.
    pub(crate) async fn epoch(&self) -> f64 {
        let leader = self.leader().await;
        self.tasks[leader].house().metric("lessor_epoch").await
    }

    /// Whether the leader knows what another node holds.
    pub(crate) async fn knows(&self, below: &Node) -> bool {
        let leader = self.leader().await;
        let Some(resource) = self.tasks[leader].house().resource("db").await else { return false };
        let holds = |holder: &serde_json::Value| {
            holder["kind"] == "node" && holder["client"] == below.name && holder["has"].as_f64() > Some(0.0)
        };
        resource["holders"].as_array().is_some_and(|holders| holders.iter().any(holds))
    }

    /// Ends all tasks in order.
    pub(crate) async fn stop(self) {
        for task in self.tasks {
            task.house.unwrap().stop().await;
        }
    }
}

// === impl Task ===

impl Task {
    fn house(&self) -> &House {
        self.house.as_ref().expect("it is taken out only for a moment")
    }

    async fn leads(&self) -> bool {
        self.house().page("/status").await.json()["leads"] == true
    }
}
