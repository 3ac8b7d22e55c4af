//! A server in this process, and what the tests have in common.

use std::net::SocketAddr;
use std::time::Duration;

use lessor_client::internals::clock;
use lessor_proto::{Amount, Epoch};
use lessor_server::node::{NodeConfig, StatusQuery};
use lessor_server::repository::{Glob, Repository, SafeCapacity, Template};
use lessor_server::shell::metrics::Metrics;
use lessor_server::shell::{Server, ServerOptions};
use tokio::time::timeout;

/// Longer than anything should take on any machine.
const AGES: Duration = Duration::from_secs(60);

/// A server of a hundred units of everything. Nobody who polls would ask it again within the test.
pub(crate) struct House {
    server: Server,
}

// === impl House ===

impl House {
    pub(crate) async fn open() -> House {
        House::open_with(|_| ()).await
    }

    pub(crate) async fn open_with(set: impl FnOnce(&mut ServerOptions)) -> House {
        let repository = Repository::new(vec![Template {
            safe_capacity: SafeCapacity::Fixed(Amount::ZERO),
            lease_length: Duration::from_secs(7_200),
            refresh_interval: Duration::from_secs(3_600),
            ..Template::new(Glob::new("*").unwrap(), Amount::from_units(100))
        }]);
        let mut options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        set(&mut options);
        let server =
            Server::start(options, NodeConfig::new("root", Epoch(1)), repository.unwrap()).await.unwrap();
        House { server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// The amount that is charged to holders of a resource.
    pub(crate) fn leased(&self, resource: &str) -> f64 {
        let query = StatusQuery { resource: Some(resource.to_owned()), ..StatusQuery::default() };
        let status = self.server.driver().status(&query).unwrap();
        status.resources.iter().map(|row| row.resource.leased).sum()
    }

    /// Streams that are open.
    pub(crate) async fn streams(&self) -> usize {
        self.server.driver().look(&StatusQuery::FIGURES).await.unwrap().streams
    }

    /// The value of a line of `/metrics` that is not of the node: of that nobody has asked anew.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = Metrics::new(self.server.driver().clone()).encode().unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        value.trim_end_matches(".0").parse().unwrap()
    }

    /// Ends it in order.
    pub(crate) async fn end(self) {
        assert!(soon(self.server.drain()).await, "it ends in time");
    }
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(AGES, future).await.expect("in time")
}

/// Waits until `holds`. A look may take long, and on the thread of what is waited for: that has four fifths of the time to itself.
pub(crate) async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        loop {
            let before = clock::now();
            if holds().await {
                return;
            }
            let now = clock::now();
            clock::sleep_until(now + (4 * now.since(before)).max(Duration::from_millis(5))).await;
        }
    };
    assert!(timeout(AGES, waiting).await.is_ok(), "never: {what}");
}
