//! The client's side of a lease: asking for it, holding it and spending it.
//!
//! A service opens its limits once, and asks them on each request. What a permit costs is an atomic operation, never a message:
//! leases are renewed in the background, and the server moves capacity to where it is wanted.
//!
//! ```no_run
//! # #[cfg(feature = "shell")]
//! # mod service {
//! use lessor_client::{Client, Denied, Gauge, Rate};
//!
//! struct Service {
//!     searches: Rate,     // units a second, of all replicas together
//!     connections: Gauge, // whole units in use at the same time
//! }
//!
//! impl Service {
//!     async fn search(&self, tenant: &str) -> Result<String, Denied> {
//!         self.searches.domain(tenant).try_acquire(1)?; // what this tenant may do of it
//!         let connection = self.connections.acquire(1).await?; // waits in order
//!         let found = format!("found for {tenant}");
//!         drop(connection); // it is free again
//!         Ok(found)
//!     }
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let client = Client::builder("127.0.0.1:15000").id("web-1").connect().await?;
//!     let searches = client.rate("search/queries").open()?;
//!     let connections = client.gauge("db-connections").open()?;
//!     let service = Service { searches, connections };
//!     match service.search("tenant-42").await {
//!         Ok(found) => println!("200 {found}"),
//!         Err(denied) if denied.is_over_limit() => println!("429, after {:?}", denied.retry_after()),
//!         Err(denied) => println!("503, {denied}"),
//!     }
//!     client.close().await; // gives all leases back
//!     Ok(())
//! }
//! # }
//! ```
//!
//! | type | what it is |
//! | --- | --- |
//! | [`Client`] | one for each process: it holds the leases, and renews them in the background |
//! | [`Rate`], [`Gauge`] | an open resource: units a second, whole units in use |
//! | [`Windows`] | a limit on the uses in any window, exact over all clients, by key |
//! | [`Domain`] | what one tenant may do of a rate, by the policies that come with the lease |
//! | [`Together`] | several of these in one request, all or nothing |
//! | [`Permit`] | units of a gauge, until it is dropped; [`Decision`]: hits of a domain |
//! | [`Denied`] | the one way to say no: the reason, and after how long to ask again |
//! | [`LeaseState`] | what is leased, until when, by which [`Rung`] of the ladder, and what went wrong last |
//! | [`Fallback`] | what a program goes on with when its lease has ended and no server answers |
//!
//! When no server answers, a lease ends to the millisecond, and what then is allowed is said by [`LeaseState`]: a floor that is
//! leased for longer, or nothing, or what [`Fallback`] asks for.
//!
//! `Client::metrics` gives plain numbers; with the feature `prometheus`, `Client::collector` is one of the crate
//! `prometheus-client`.
//!
//! Deliberately absent: a choice among several nodes, and any state on disk.

mod allowance;
mod companions;
mod decision;
mod demand;
mod denied;
mod domain;
mod fault;
mod gauge;
mod holding;
pub mod internals;
mod limiter;
mod mutation;
mod passing;
mod second_limit;
mod session;
#[cfg(feature = "shell")]
mod shortness;
mod sublessee;
mod suspend;
mod table;
mod together;
mod transport;
mod waiting;
mod window;

#[cfg(feature = "shell")]
mod shell;

pub use lessor_proto::message::BoundBy;
pub use lessor_proto::name::BadName;
pub use lessor_proto::{Amount, ClientId, ResourceId, Time};

pub use self::decision::{Bound, Decision, Ground};
pub use self::denied::{Denied, DomainDenial};
pub use self::domain::{Degraded, DomainCounts, DomainOptions};
pub use self::fault::{Failure, Fault};
pub use self::gauge::Permit;
pub use self::holding::{Fallback, Kind, Rung};
pub use self::second_limit::SecondUsage;
pub use self::session::SessionCounts;
#[cfg(feature = "prometheus")]
pub use self::shell::Collector;
#[cfg(feature = "shell")]
pub use self::shell::{
    BearerToken, BuildError, Builder, Client, Closed, ConnectError, Domain, Gauge, LastFault, LeaseState,
    Metrics, OpenError, Opening, Rate, Resource, ResourceMetrics, Tls, TlsFault, Together, TokenFault,
    Windows, WindowsOpening,
};
#[cfg(feature = "shell")]
pub use self::shortness::ShortBy;
pub use self::together::{Price, Refusal, TogetherAnswer, TogetherDenied, TogetherPermit};
pub use self::transport::Transport;
pub use self::window::WindowUsage;

/// A look at the domains of a rate: see `Rate::snapshot`.
pub mod snapshot {
    pub use crate::domain::{Filter, Order, Query, Rest, Row, Snapshot};
}
