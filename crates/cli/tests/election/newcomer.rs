//! A newcomer: a client that comes to an elected server and has nothing.

use lessor_client::internals::clock;
use lessor_client::{Builder, Client, Rate};
use lessor_proto::{Amount, Time};
use tokio::time::timeout;

use crate::house::AGES;

/// A client with a lease, which it keeps.
pub(crate) struct Guest {
    client: Client,
    resource: Rate,
}

// === impl Guest ===

impl Guest {
    /// Comes to a node now, and waits until it has something of the resource.
    pub(crate) async fn comes(name: &str, servers: &str, resource: &str) -> Guest {
        let servers: Vec<&str> = servers.split(',').collect();
        let builder = servers[1..].iter().fold(Client::builder(servers[0]).id(name), Builder::server);
        let client = builder.build().unwrap();
        let mut resource = client.rate(resource).wants(5.0).open().unwrap();
        let served = timeout(AGES, async {
            while resource.lease().capacity.is_none_or(|capacity| capacity == Amount::ZERO) {
                resource.changed().await.unwrap();
            }
        });
        served.await.expect("a newcomer is served");
        Guest { client, resource }
    }

    pub(crate) async fn leaves(self) {
        let Guest { client, resource } = self;
        drop(resource);
        timeout(AGES, client.close()).await.unwrap();
    }
}

/// When somebody who has nothing and comes now is first granted something.
pub(crate) async fn served(servers: &str, resource: &str) -> Time {
    let guest = Guest::comes("newcomer", servers, resource).await;
    let served = clock::now();
    guest.leaves().await;
    served
}
