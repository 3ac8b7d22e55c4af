//! The server's side of a lease: a node, its resources, and what is charged to whom.
//!
//! The mind of a server is [`node::Node`]: reports in, grants out, with the time as an argument and nothing but values
//! as results. Which task of a node leads is decided by [`election::Candidate`], in the same way. Around them, behind the
//! feature `shell`, is the body: gRPC, HTTP, etcd, files, signals.
//!
//! ```
//! use std::time::Duration;
//!
//! use lessor_proto::{Amount, Epoch, Time, message::{Ask, Limits}, wire};
//! use lessor_server::node::{Node, NodeConfig};
//! use lessor_server::repository::{Glob, Repository, Template};
//!
//! let repository = Repository::new(vec![Template::new(Glob::new("db-*")?, Amount::from_units(120))])?;
//! let mut node = Node::new(Time::ZERO, NodeConfig::new("root", Epoch(1)), repository);
//!
//! let ask = |client: &str, wants: f64| {
//!     let resource = wire::ResourceRequest {
//!         resource_id: Some("db-orders".into()),
//!         priority: Some(0),
//!         wants: Some(wants),
//!         ..Default::default()
//!     };
//!     let request = wire::GetCapacityRequest {
//!         client_id: Some(client.into()),
//!         resource: vec![resource],
//!         ..Default::default()
//!     };
//!     Ask::from_client(request, &Limits::default())
//! };
//! let now = Time::ZERO + Duration::from_secs(1);
//! let answer = node.ask(now, &ask("a", 1000.0)?)?;
//! assert_eq!(answer.grants[0].capacity, Amount::from_units(120));
//! // Until "a" has said that it keeps to less, there is nothing for "b".
//! let answer = node.ask(now, &ask("b", 50.0)?)?;
//! assert_eq!(answer.grants[0].capacity, Amount::ZERO);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Deliberately absent: how shares are computed (`lessor-algorithms`), and everything a client does with a lease
//! (`lessor-client`).

pub mod access;
mod caps;
pub mod config;
mod date;
pub mod domain_sync;
pub mod election;
pub mod follower;
mod jobs;
pub mod ledger;
pub mod look;
pub mod marks;
pub mod measured;
pub mod mutation;
pub mod node;
pub mod overrides;
pub mod plan;
pub mod record;
pub mod repository;
pub mod resource;
pub mod revision;
#[cfg(feature = "shell")]
pub mod shell;
mod streams;
mod table;
pub mod token;

pub use lessor_proto::identity;
