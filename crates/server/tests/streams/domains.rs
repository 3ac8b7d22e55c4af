//! Domains of scope `shared` over sockets: clients of one server, and of two leaves below a root.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use lessor_algorithms::tiers::{Contract, Tier, TierPolicy, Window};
use lessor_client::internals::domain::{Policies, Rules};
use lessor_client::{Client, Rate, Transport};
use lessor_proto::{Amount, Epoch};
use lessor_server::node::{NodeConfig, ParentConfig};
use lessor_server::repository::{Domains, Glob, Repository, Template};
use lessor_server::shell::{Server, ServerOptions};

use crate::house::{eventually, soon};

/// Hits in an hour, which is longer than the test.
const LIMIT: u32 = 40;

fn repository() -> Repository {
    let hour = Duration::from_secs(3_600);
    let (window, active, cooldown) = (hour, hour, Duration::ZERO);
    let tier = Tier { limit: LIMIT, window, active, cooldown, is_skippable: false, kind: Window::Exact };
    let contract = Contract::from(TierPolicy::new(vec![tier], None, None).unwrap());
    let rules = Rules { default: Some(contract), ..Rules::default() };
    let policies = Arc::new(Policies::new(rules).unwrap());
    let template = Template::new(Glob::new("*").unwrap(), Amount::from_units(1_000_000));
    let domains = Some(Domains { policies, changes: Vec::new() });
    Repository::new(vec![Template { domains, learning: Duration::ZERO, ..template }]).unwrap()
}

async fn server(name: &str, parent: Option<SocketAddr>) -> Server {
    let mut config = NodeConfig::new(name, Epoch(1));
    config.parent = parent.map(|address| ParentConfig {
        servers: vec![address.to_string().into()],
        transport: Transport::Stream,
        eager: true,
    });
    let options = ServerOptions::new(([127, 0, 0, 1], 0).into());
    Server::start(options, config, repository()).await.unwrap()
}

/// A client of a server, and its lease.
fn client(server: &Server, id: &str) -> (Client, Rate) {
    let client = Client::builder(server.address().to_string()).id(id).build().unwrap();
    let lease = client.rate("db").wants(1_000.0).open().unwrap();
    (client, lease)
}

/// Each of two clients uses the domain until it knows what the other did: together they make as many hits as the tier allows,
/// and who is refused is refused for those.
async fn check(one: &Rate, other: &Rate) {
    soon(one.domain("tenant").acquire(30)).await.unwrap();
    soon(other.domain("tenant").acquire(1)).await.unwrap();
    let left = |of: &Rate| of.domain("tenant").peek(LIMIT, 1).granted;
    eventually("each knows of the other", async || (left(one), left(other)) == (9, 9)).await;
    let last = soon(other.domain("tenant").acquire_some(LIMIT, 1)).await.unwrap();
    assert_eq!(last.granted, 9);
    eventually("the tier is full", async || left(one) == 0).await;
    assert!(one.domain("tenant").try_acquire(1).is_err());
    assert!(one.domain("others").try_acquire(1).is_ok(), "nobody else is refused");
}

#[tokio::test]
async fn clients_of_one_server_share_the_tiers_of_a_domain() {
    let server = server("root", None).await;
    let ((near, one), (far, other)) = (client(&server, "near"), client(&server, "far"));
    check(&one, &other).await;
    soon(near.close()).await;
    soon(far.close()).await;
    assert!(soon(server.drain()).await, "it ends in time");
}

#[tokio::test]
async fn clients_of_two_leaves_share_the_tiers_of_a_domain() {
    let root = server("root", None).await;
    let leaves = [server("left", Some(root.address())).await, server("right", Some(root.address())).await];
    let ((near, one), (far, other)) = (client(&leaves[0], "near"), client(&leaves[1], "far"));
    check(&one, &other).await;
    soon(near.close()).await;
    soon(far.close()).await;
    for server in leaves {
        assert!(soon(server.drain()).await, "it ends in time");
    }
    assert!(soon(root.drain()).await, "it ends in time");
}
