//! A server of Lessor, and a client of it.

use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules, Scope};
use lessor_client::{Client, Gauge, Rate, Rung};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::NodeConfig;
use lessor_server::repository::{Domains, Glob, Kind, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};

/// An hour: no test is so slow that a window of it ends.
pub(crate) const HOUR: Duration = Duration::from_secs(3_600);

/// A server that runs, and a client of it.
pub(crate) struct House {
    pub(crate) client: Client,
    server: Server,
}

fn template(glob: &str, kind: Kind, units: u64) -> Template {
    let template = Template::new(Glob::new(glob).unwrap(), Amount::from_units(units));
    Template { kind, learning: Duration::ZERO, ..template }
}

/// A million a second of `requests`, of which each domain may have `limit` an hour; ten a second of `slow`; `running` of
/// `running` at a time.
fn repository(limit: u32, running: u64) -> Repository {
    let tier = Tier {
        limit,
        window: HOUR,
        active: HOUR,
        cooldown: Duration::ZERO,
        is_skippable: false,
        kind: Window::Exact,
    };
    let default = Some(Contract::from(TierPolicy::new(vec![tier], None, None).unwrap()));
    let rules = Rules { default, scope: Scope::Client, ..Rules::default() };
    let policies = Arc::new(Policies::new(rules).unwrap());
    let domains = Some(Domains { policies, changes: Vec::new() });
    let requests = Template { domains, ..template("requests", Kind::Rate, 1_000_000) };
    let templates =
        vec![requests, template("slow", Kind::Rate, 10), template("running", Kind::Gauge, running)];
    Repository::new(templates).unwrap()
}

impl House {
    pub(crate) async fn open(limit: u32, running: u64) -> House {
        let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
        let config = NodeConfig::new("root", Epoch(1));
        let server = Server::start(options, config, repository(limit, running)).await.unwrap();
        let client = Client::builder(server.address().to_string()).build().unwrap();
        House { client, server }
    }

    /// A rate that is leased, and of which something has come in.
    pub(crate) async fn rate(&self, name: &str) -> Rate {
        let mut rate = self.client.rate(name).wants(1_000_000.0).open().unwrap();
        while rate.lease().rung != Rung::Leased {
            soon(rate.changed()).await.unwrap();
        }
        soon(rate.acquire(1)).await.unwrap();
        rate
    }

    /// A gauge that is leased.
    pub(crate) async fn gauge(&self, name: &str, units: u64) -> Gauge {
        let mut gauge = self.client.gauge(name).wants(units as f64).open().unwrap();
        while gauge.lease().capacity != Some(Amount::from_units(units)) {
            soon(gauge.changed()).await.unwrap();
        }
        gauge
    }

    pub(crate) async fn close(self) {
        soon(self.client.close()).await;
        soon(self.server.drain()).await;
    }
}

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("within 30 s")
}
