//! A root with two leaves, each a process of its own, and twenty clients, of which some want more than there is.

use lessor_client::{Client, Gauge, Rate};

use crate::house::{House, eventually};

/// The tree, and the clients of its leaves.
pub(crate) struct Town {
    pub(crate) root: House,
    pub(crate) leaves: Vec<House>,
    pub(crate) clients: Vec<(Client, Rate, Gauge)>,
}

const TEMPLATES: &str = "resources:
- identifier_glob: db
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: LEASE, refresh_interval: 2, learning_mode_duration: 0}
  domains:
    scope: shared
    default: {tiers: [{limit: 2, window: 1s, active: 1s}, {limit: 20, window: 10s, active: 10s, cooldown: 30s}]}
- identifier_glob: workers
  kind: gauge
  capacity: 12
  algorithm: {kind: FAIR_SHARE, lease_length: LEASE, refresh_interval: 2, learning_mode_duration: 0}
";

// === impl Town ===

impl Town {
    pub(crate) async fn open() -> Town {
        let root = House::open(&TEMPLATES.replace("LEASE", "60")).await;
        let (mut leaves, mut clients) = (Vec::new(), Vec::new());
        for name in ["paris", "tokyo"] {
            let above = root.address().to_string();
            let flags = ["--node", name, "--parent", &above];
            let leaf = House::open_with(&TEMPLATES.replace("LEASE", "20"), &flags).await;
            for number in 0..10 {
                let id = format!("{name}-{number}");
                let client =
                    Client::builder(leaf.address().to_string()).id(id).connect().await.expect("it is served");
                let priority = if number == 3 { 5 } else { 0 };
                let queries = client
                    .rate("db")
                    .wants(2.0 + f64::from(number))
                    .priority(priority)
                    .open()
                    .expect("a rate");
                let workers = client.gauge("workers").wants(1.0).open().expect("a gauge");
                clients.push((client, queries, workers));
            }
            leaves.push(leaf);
        }
        let town = Town { root, leaves, clients };
        eventually("the root knows of all", async || {
            let row = town.root.resource("db").await;
            row.is_some_and(|row| row["subclients"] == 20)
        })
        .await;
        town
    }

    /// The address of a view of the root.
    pub(crate) fn view(&self, hash: &str) -> String {
        format!("http://{}/{hash}", self.root.http())
    }

    /// Everybody asks for one tenant, who bursts and is refused.
    pub(crate) fn press(&self) {
        for (_, queries, _) in &self.clients {
            // A denial is what it comes for.
            let _ = queries.domain("acme").try_acquire(1);
        }
    }

    pub(crate) async fn close(self) {
        for (client, queries, workers) in self.clients {
            drop((queries, workers));
            client.close().await;
        }
        for house in self.leaves.into_iter().chain([self.root]) {
            house.stop().await;
        }
    }
}
