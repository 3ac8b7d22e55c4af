//! A server with rules of access, and callers with tokens.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lessor_proto::wire::capacity_client::CapacityClient;
use lessor_proto::wire::{
    GetCapacityRequest, GetServerCapacityRequest, Lease, PriorityBandAggregate, ResourceRequest,
    ServerCapacityResourceRequest,
};
use tempfile::TempDir;
use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::house::{AGES, House, everything, run};

pub(crate) const KEY: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";
pub(crate) const OTHER_KEY: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\n";

/// A server with rules and a key, and the files that hold them.
pub(crate) struct Gate {
    pub(crate) house: House,
    directory: TempDir,
}

/// A caller, with or without a token.
#[derive(Clone)]
pub(crate) struct Visitor {
    pub(crate) capacity: CapacityClient<Channel>,
    token: Option<String>,
    /// The last lease of each client and resource, which is shown with the next request.
    has: BTreeMap<(String, String), Lease>,
}

// === impl Gate ===

impl Gate {
    /// A server of one resource of 1,000 with these rules.
    pub(crate) async fn open(rules: &str) -> Gate {
        Gate::open_with(rules, &[]).await
    }

    /// The same with more flags.
    pub(crate) async fn open_with(rules: &str, flags: &[&str]) -> Gate {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("access.yaml"), rules).unwrap();
        std::fs::write(directory.path().join("auth.key"), KEY).unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        let (access, key) = (path("access.yaml"), path("auth.key"));
        let mut all = vec!["--access", &access, "--auth-key", &key];
        all.extend(flags);
        let house = House::open_with(&everything(1000.0, 20), &all).await;
        Gate { house, directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Puts another file in the place of one, in one step as editors do.
    pub(crate) fn replace(&self, name: &str, text: &str) {
        std::fs::write(self.path("beside"), text).unwrap();
        std::fs::rename(self.path("beside"), self.path(name)).unwrap();
    }

    /// A token that `lessor token new` has sealed with the key of the server.
    pub(crate) async fn token(&self, flags: &[&str]) -> String {
        token(self.path("auth.key").to_str().unwrap(), flags).await
    }

    /// A caller without a token.
    pub(crate) async fn stranger(&self) -> Visitor {
        Visitor { capacity: self.house.capacity().await, token: None, has: BTreeMap::new() }
    }

    /// A caller with this token.
    pub(crate) async fn with(&self, token: impl Into<String>) -> Visitor {
        Visitor { token: Some(token.into()), ..self.stranger().await }
    }

    /// A caller with a token for which these flags are given.
    pub(crate) async fn visitor(&self, flags: &[&str]) -> Visitor {
        self.with(self.token(flags).await).await
    }

    /// The sum of what holders of the resource are charged for.
    pub(crate) async fn outstanding(&self) -> f64 {
        self.house.metric("lessor_outstanding{resource=\"db\"}").await
    }
}

/// A token that is sealed with the key in that file.
pub(crate) async fn token(key: &str, flags: &[&str]) -> String {
    let mut all = vec!["token", "new", "--key", key];
    all.extend(flags);
    let outcome = run(&all).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    outcome.out.trim().to_owned()
}

// === impl Visitor ===

impl Visitor {
    /// A request with the token, if there is one.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let bearer = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", bearer);
        }
        request
    }

    /// The capacity that is granted to `client`, which wants so much of the resource.
    pub(crate) async fn get(&mut self, client: &str, resource: &str, wants: f64) -> Result<f64, Status> {
        self.get_at(client, resource, wants, 0).await
    }

    /// The same with a priority.
    pub(crate) async fn get_at(
        &mut self,
        client: &str,
        resource: &str,
        wants: f64,
        priority: i64,
    ) -> Result<f64, Status> {
        let key = (client.to_owned(), resource.to_owned());
        let resource = ResourceRequest {
            resource_id: Some(resource.to_owned()),
            priority: Some(priority),
            wants: Some(wants),
            has: self.has.get(&key).cloned(),
            ..ResourceRequest::default()
        };
        let request = GetCapacityRequest {
            client_id: Some(client.to_owned()),
            resource: vec![resource],
            incarnation: Some(7),
            ..GetCapacityRequest::default()
        };
        let request = self.request(request);
        let answer = timeout(AGES, self.capacity.get_capacity(request)).await.expect("an answer in time")?;
        let lease = answer.into_inner().response.remove(0).gets;
        let capacity = lease.capacity();
        self.has.insert(key, lease);
        Ok(capacity)
    }

    /// The capacity that is granted to the node `name`, below which so many clients want so much together.
    pub(crate) async fn get_as_node(&mut self, name: &str, clients: i64, wants: f64) -> Result<f64, Status> {
        let band = PriorityBandAggregate {
            priority: Some(0),
            num_clients: Some(clients),
            wants: Some(wants),
            ..PriorityBandAggregate::default()
        };
        let key = (name.to_owned(), "db".to_owned());
        let resource = ServerCapacityResourceRequest {
            resource_id: Some("db".to_owned()),
            wants: vec![band],
            has: self.has.get(&key).cloned(),
            ..ServerCapacityResourceRequest::default()
        };
        let request = GetServerCapacityRequest {
            server_id: Some(name.to_owned()),
            resource: vec![resource],
            holder_epoch: Some(3),
            ..GetServerCapacityRequest::default()
        };
        let request = self.request(request);
        let answer =
            timeout(AGES, self.capacity.get_server_capacity(request)).await.expect("an answer in time")?;
        let lease = answer.into_inner().response.remove(0).gets;
        let capacity = lease.capacity();
        self.has.insert(key, lease);
        Ok(capacity)
    }
}
